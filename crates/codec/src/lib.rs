//! Content codings (RFC 9110 8.4): gzip, brotli and zstd, both ways, and all that is decided about
//! them.
//!
//! Pure: no sockets, no clock, no tasks. It never makes a variant of a client's spelling, and never
//! codes what may not be coded.
//!
//! [`Worth`] says if a response is worth coding, [`Accept`] which form a client gets, [`etag`] what
//! the form's entity tag is. [`Encoder`] and [`Decoder`] are streams: bytes in and bytes out, both
//! bounded by their caller, one step at a time. What a step costs is bounded by [`STEP_BYTES`] and
//! by blocks: gzip works as it reads; zstd codes 32 KiB at once, brotli 128 KiB from level 4 on.
//! The levels from which that is too long to hold up others (brotli 9, zstd 16) are for threads
//! that may block.
//!
//! [`dictionary`] and [`delta`] are for content that a client has parts of (RFC 9842).
//!
//! Order of calls: [`EncodeSettings`], then [`EncodeSettings::most_memory`] to reserve, then the
//! encoder; likewise [`DecodeLimits`] and the decoder.

mod accept;
mod allocator;
mod br;
mod coding;
mod compression;
mod concatenation;
mod decode;
pub mod delta;
pub mod dictionary;
mod eligibility;
mod encode;
mod error;
pub mod etag;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
mod gz;
mod step;
#[cfg(test)]
mod tests;
mod zst;

pub use accept::Accept;
pub use coding::{Coding, Codings};
pub use compression::{Compression, CompressionScope, gzip};
pub use concatenation::{CrcShift, HEAD, STORED_BYTES, TrailerBuilder, crc32, stored_head};
pub use decode::{DecodeLimits, Decoder};
pub use eligibility::{CodingCriteria, IneligibilityReason, LEAST_BYTES, MEDIA_TYPES};
pub use encode::{EncodeSettings, Encoder};
pub use error::{DecodeLimit, Error};
pub use gz::{Segment, segment};
pub use step::{CodingProgress, FlushMode, STEP_BYTES};
