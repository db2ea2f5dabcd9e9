//! Text forms of values, parsed and printed as Varnish does: numbers, times, addresses, blobs.
//! Nothing here depends on a program.

pub(crate) mod address;
pub mod calendar;
pub(crate) mod codec;
pub mod number;
mod spelling;

pub use spelling::{INT_MAX, REAL_MAX, append_blob, append_int, append_ip, append_real};
