//! Term: the time for which an entry is remembered.

/// A span of time, in milliseconds of the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Term {
    pub(crate) from_ms: u64,
    /// The first moment after the term.
    pub(crate) until_ms: u64,
}
