//! Content codings (RFC 9110 8.4): gzip, brotli and zstd in both directions, their negotiation, and
//! the choice of responses to code.
//!
//! Pure: no sockets, clock or tasks. It never makes a variant of a client's spelling, and never
//! codes a response that must not be transformed.
//!
//! Begin with [`CodingCriteria`] (eligible responses), [`Accept`] (the coding for a client) and the
//! streams [`Encoder`] and [`Decoder`], whose steps take at most [`STEP_BYTES`]. A caller reserves
//! [`EncodeSettings::most_memory`] before it makes an encoder. Brotli from level 9 on and zstd from
//! level 16 on take too long for a core; they are for threads that may block. [`dictionary`] and
//! [`delta`] implement RFC 9842; [`etag`] names the coded forms.

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
