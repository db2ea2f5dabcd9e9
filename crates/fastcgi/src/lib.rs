//! FastCGI 1.0, the web server's side: a request as records, and records as a response.
//!
//! One request at a time on a connection, always with id 1: nobody's application server multiplexes
//! (PHP-FPM, like most, refuses to). What an application says is held to the same rules as an HTTP
//! origin's answer: strict fields, bounded heads, and a body whose end is known.
//!
//! Pure: no sockets, no files, no clock. [`script`] decides which script a path means, and asks
//! its caller what is on disk. Results depend on the bytes alone, never on where they were split.
//!
//! Order of calls: [`encode::begin_request`], [`params::write`], then one [`encode::stdin_start`]
//! for each piece of body and [`encode::STDIN_END`]; what comes back goes to a [`RecordReader`],
//! and its STDOUT to a [`HeadReader`] until that has the head.

mod decode;
pub mod encode;
mod error;
mod head;
pub mod params;
pub mod script;
mod wire;

pub use decode::{Event, ProtocolStatus, RecordReader, RecordStep, RequestEnd};
pub use error::{HeadError, RecordError};
pub use head::{Head, HeadLimits, HeadReader};
