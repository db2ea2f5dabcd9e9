//! FastCGI 1.0 engine, on the web server's side, without I/O: encodes a request as records, and
//! decodes a response from records. One request at a time on a connection, always with id 1, since
//! application servers do not multiplex (PHP-FPM rejects it).
//!
//! An application must never be trusted more than an HTTP origin: strict fields, limited heads, and
//! a body with a known end. Results depend on the bytes only, never on where they were split.
//!
//! Begin with [`encode`] and [`params::write`], then [`RecordReader`] for the records of the
//! response, and [`HeadReader`] for the head in its STDOUT. [`script`] maps a path to a script.

mod decode;
pub mod encode;
mod error;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
mod head;
pub mod params;
pub mod script;
mod wire;

pub use decode::{Event, ProtocolStatus, RecordReader, RecordStep, RequestEnd};
pub use error::{HeadError, RecordError};
pub use head::{Head, HeadLimits, HeadReader};
