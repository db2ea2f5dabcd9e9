//! Progress of a reader.

/// Progress of a reader: it needs more bytes, or is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadProgress<T> {
    /// Everything so far is well-formed; call again with more bytes.
    Partial,
    /// Done.
    Complete(T),
}
