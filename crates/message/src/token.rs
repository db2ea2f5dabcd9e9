//! Tokens (RFC 9110 5.6.2), such as field names and methods.

/// Returns true if `name` is a token (RFC 9110 5.6.2), as every field name must be.
pub fn is_token(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|b| is_token_byte(*b))
}

/// Returns true if `b` is valid in a token (RFC 9110 5.6.2).
pub const fn is_token_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric()
        || matches!(
            b,
            b'!' | b'#'
                | b'$'
                | b'%'
                | b'&'
                | b'\''
                | b'*'
                | b'+'
                | b'-'
                | b'.'
                | b'^'
                | b'_'
                | b'`'
                | b'|'
                | b'~'
        )
}
