//! The progress of readers.

/// The progress of a reader: it needs more bytes, or is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadProgress<T> {
    /// Everything so far is well-formed; call again when there are more bytes.
    Partial,
    /// Done.
    Complete(T),
}
