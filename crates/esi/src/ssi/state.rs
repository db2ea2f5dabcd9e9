//! State of the SSI parser, and the match of a command's end.

/// End of a command.
const END: &[u8; 3] = b"-->";

/// State of the parser at a byte of the page.
#[derive(Clone, Copy, Debug)]
pub(super) enum SsiState {
    Text,
    /// In a possible mark; the number counts its matched bytes.
    Mark(usize),
    /// Before the name of the command.
    Begun,
    Name,
    /// Between parameters.
    Between,
    Parameter,
    /// Between the name of a parameter and `=`.
    Named,
    /// After `=`.
    Equals,
    /// In a value that ends with this quote.
    Value(u8),
    /// After a backslash in such a value.
    Escaped(u8),
    /// After the closing quote of a value.
    Quoted,
    /// In the end; the number counts the matched bytes of [`END`].
    End(usize),
    /// In a malformed command; the number counts the matched bytes of [`END`].
    Bad(usize),
    /// Beyond a limit: the rest of the page is text.
    Rest,
}

/// The state after a byte that no command has there. As in nginx, a byte that does not fit [`END`]
/// is not matched again.
pub(super) fn bad(state: SsiState, byte: u8) -> SsiState {
    let SsiState::Bad(matched) = state else { return SsiState::Bad(0) };
    SsiState::Bad(if END.get(matched) == Some(&byte) { matched + 1 } else { 0 })
}
