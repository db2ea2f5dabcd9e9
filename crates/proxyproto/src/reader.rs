//! Reader of headers of either version.

use crate::error::Error;
use crate::header::HeaderProgress;
use crate::{v1, v2};

/// Parses the header at the start of `bytes`, a connection's first bytes. While the result is
/// [`HeaderProgress::Partial`], call it again with more bytes. Bytes behind the header are ignored.
///
/// `max` limits a version 2 header in bytes, including additional values. A version 1 line has at
/// most 107.
///
/// # Errors
/// As soon as the bytes cannot become a header.
pub fn read(bytes: &[u8], max: usize) -> Result<HeaderProgress, Error> {
    match bytes.first() {
        None => Ok(HeaderProgress::Partial),
        Some(b'P') => v1::read(bytes),
        Some(_) => v2::read(bytes, max),
    }
}
