//! HTTP/1.x engine (RFC 9112), without I/O: bytes in, requests and responses out, and back.
//!
//! A reader keeps its state between calls and looks at no byte twice; its result depends on the
//! bytes only, never on where they were split. Order of calls: a head's reader with a growing
//! buffer until [`ReadProgress::Complete`], then a [`BodyReader`] made from the framing, until it
//! is done.
//!
//! Must never repair a message that two implementations could interpret differently, nor forward
//! received bytes: [`encode`] alone writes framing. Hosts, targets and lengths are parsed by
//! `message`, for all engines alike.
//!
//! Begin with [`RequestReader`], [`BodyReader`] and [`encode`].

mod body;
mod class;
pub mod encode;
mod error;
mod fields;
mod framing;
#[cfg(any(test, feature = "fuzzing"))]
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
