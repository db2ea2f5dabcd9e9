//! Lengths that a response declares for its body.

use message::{Framing, HeaderId, Response};

/// Returns the length in Content-Length: in an answer to HEAD, the length that a GET would have
/// got.
pub(crate) fn content_length(response: &Response) -> Option<u64> {
    let value = response.headers.value(HeaderId::ContentLength)?;
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// Returns the length that the framing declares; `None` where only the end tells.
pub(crate) fn declared_length(framing: Framing) -> Option<u64> {
    match framing {
        Framing::None => Some(0),
        Framing::Length(length) => Some(length),
        Framing::Chunked | Framing::UntilClose => None,
    }
}
