//! Text that stands for values, as Varnish reads and writes it: numbers, times, addresses, bytes.
//! Nothing here knows a program.

pub(crate) mod address;
pub mod calendar;
pub(crate) mod codec;
pub mod number;
mod spelling;

pub use spelling::{INT_MAX, REAL_MAX, append_blob, append_int, append_ip, append_real};
