//! A header of either version.

use crate::error::Error;
use crate::header::HeaderProgress;
use crate::{v1, v2};

/// Reads the header that `bytes`, a connection's first, begin with. Call it again with more of
/// them while it is [`Progress::Partial`]; what follows the header is left alone.
///
/// `max` bounds a version 2 header in bytes, additional values included. A version 1 line has at
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
