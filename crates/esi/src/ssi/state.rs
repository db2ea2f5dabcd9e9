//! States of the parser, and the end of a command.

/// The end of a command.
const END: &[u8; 3] = b"-->";

/// A place in a page.
#[derive(Clone, Copy, Debug)]
pub(super) enum SsiState {
    Text,
    /// So many bytes into the beginning of a command.
    Mark(usize),
    /// Before the command's name.
    Begun,
    Name,
    /// Between parameters.
    Between,
    Parameter,
    /// Between a parameter's name and its `=`.
    Named,
    /// After `=`.
    Equals,
    /// In a value that ends with this quote.
    Value(u8),
    /// After a backslash in it.
    Escaped(u8),
    /// After a value's quote.
    Quoted,
    /// So many bytes into [`END`].
    End(usize),
    /// In a command that is not one, so many bytes into [`END`].
    Bad(usize),
    /// Beyond a limit: all is text.
    Rest,
}

/// The state after a byte that no command has there. As in nginx, what does not fit the end is not
/// looked at again.
pub(super) fn bad(state: SsiState, byte: u8) -> SsiState {
    let SsiState::Bad(matched) = state else { return SsiState::Bad(0) };
    SsiState::Bad(if END.get(matched) == Some(&byte) { matched + 1 } else { 0 })
}
