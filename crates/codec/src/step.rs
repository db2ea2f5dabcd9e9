//! One step of a coder, either way: bounded bytes in, bounded bytes out.

/// The most bytes of input that one step takes, however many there are: the work of a step is
/// bounded even if its caller does not bound it.
pub const STEP_BYTES: usize = 16 << 10;

/// The distance that an encoder is to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FlushMode {
    /// Take the input; what comes out of it may wait for more.
    Gather,
    /// Make all that was taken decodable (a streamed page pauses here). It costs some bytes.
    Flush,
    /// End the stream.
    Finish,
}

/// The outcome of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CodingProgress {
    /// Bytes of the input that were taken.
    pub taken: usize,
    /// Bytes that were written to the output, from its beginning.
    pub made: usize,
    /// True if the step's goal is reached: all input is taken; and what had to come out of it is
    /// out. Else the next step begins with the rest of the input, and an output that has room.
    pub done: bool,
}

/// Where a decoder is in its stream.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum DecoderPosition {
    /// Before its first byte.
    Start,
    /// Where it must not end.
    Inside,
    /// Where it may end: after a gzip member, a zstd frame, all of a brotli stream.
    End,
}
