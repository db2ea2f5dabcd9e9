//! Step of an encoder or decoder: it never takes or makes more than a bounded number of bytes.

/// Most input bytes of one step: they bound its work even if the caller passes more.
pub const STEP_BYTES: usize = 16 << 10;

/// The mode of an encoder's step, as in zlib.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FlushMode {
    /// Take the input; its output may wait for more input.
    Gather,
    /// Make all input so far decodable, as where a streamed page pauses. It costs some bytes.
    Flush,
    /// End the stream.
    Finish,
}

/// The result of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CodingProgress {
    /// Bytes taken from the input.
    pub taken: usize,
    /// Bytes written to the output, from its beginning.
    pub made: usize,
    /// True if all input is taken and all output that the mode requires is written. Otherwise the
    /// caller repeats the step with the rest of the input and an output that is not empty.
    pub done: bool,
}

/// Position of a decoder in its stream.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum DecoderPosition {
    /// Before the first byte.
    Start,
    /// Inside, where an end would be an error.
    Inside,
    /// Where the stream may end: after a gzip member, a zstd frame, or a whole brotli stream.
    End,
}
