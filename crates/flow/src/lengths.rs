//! How long a response's body is said to be.

use message::{Framing, HeaderId, Response};

/// What its Content-Length says: of an answer to HEAD, what a GET would have got.
pub(crate) fn content_length(response: &Response) -> Option<u64> {
    let value = response.headers.value(HeaderId::ContentLength)?;
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// What its framing says; none where only its end tells.
pub(crate) fn declared_length(framing: Framing) -> Option<u64> {
    match framing {
        Framing::None => Some(0),
        Framing::Length(length) => Some(length),
        Framing::Chunked | Framing::UntilClose => None,
    }
}
