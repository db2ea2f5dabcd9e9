//! An exchange as every engine has it, from a request's head to its last byte.
//!
//! An [`Engine`] says what HTTP/1 or HTTP/2 does with an interim response, a reply and the pieces
//! of its body; [`Exchange`] says in which order, and what follows when something breaks. Nothing
//! here knows of frames and sockets.

mod body;
mod course;
mod engine;
mod note;

pub(crate) use self::body::{BodyFault, Intake};
pub(crate) use self::course::Exchange;
pub(crate) use self::engine::{Broken, Engine};
pub(crate) use self::note::{Asked, Moment, Moved, Note};
