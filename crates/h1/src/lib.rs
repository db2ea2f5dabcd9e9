//! HTTP/1.x engine (RFC 9112): bytes in, events and bytes out.
//!
//! All strictness about HTTP/1's framing lives here and nowhere else; hosts, targets and lengths
//! are read by what `message` has for every engine. What the readers accept is one canonical
//! [`message::Request`] or [`message::Response`] whose body length is decided once, as a
//! [`message::Framing`]; received bytes are never forwarded, and [`encode`] alone writes framing. A
//! message that two implementations could read differently is refused, not repaired.
//!
//! Pure: no sockets, no clock, no globals. A reader keeps what it learned of a message between
//! calls and looks at no byte twice; its result depends on the bytes alone, never on where they
//! were split.
//!
//! Order of calls: [`RequestReader::read`] (or [`ResponseReader::read`]) with a growing buffer
//! until [`Progress::Complete`], then a [`BodyReader`] made from the framing, until it is done.

mod body;
mod class;
pub mod encode;
mod error;
mod fields;
mod framing;
#[cfg(feature = "fuzzing")]
pub mod fuzz;
mod limits;
mod progress;
mod request;
mod response;
mod stored_head;

pub use body::{BodyReader, BodyStep};
pub use error::{BodyError, FieldError, FramingError, RequestError, ResponseError};
pub use limits::HeadLimits;
pub use progress::ReadProgress;
pub use request::RequestReader;
pub use response::{ResponseHead, ResponseReader};
pub use stored_head::parse_stored_head;
