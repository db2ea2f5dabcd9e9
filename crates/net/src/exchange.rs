//! An exchange as every engine has it, from a request's head to its last byte.
//!
//! An [`Engine`] says what HTTP/1 or HTTP/2 does with an interim response, a reply and the pieces
//! of its body; [`Exchange`] says in which order, and what follows when something breaks. Nothing
//! here knows of frames and sockets.

mod body;
mod deferred_exchange;
mod engine;
mod note;

pub(crate) use self::body::{BodyFault, Intake};
pub(crate) use self::deferred_exchange::Exchange;
pub(crate) use self::engine::{Engine, ExchangeAbort};
pub(crate) use self::note::{DeferredRequest, ExchangeBytes, ExchangeTimestamp, Note};
