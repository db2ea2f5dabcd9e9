//! Exchange: one request with its reply, the same for both protocols.
//!
//! An [`Engine`] sends interim responses, the reply and pieces of its body; [`Exchange`] decides
//! their order, and what follows a failure. Neither frames nor sockets may appear here.

mod body;
mod deferred_exchange;
mod engine;
mod note;

pub(crate) use self::body::{BodyFault, Intake};
pub(crate) use self::deferred_exchange::Exchange;
pub(crate) use self::engine::{Engine, ExchangeAbort};
pub(crate) use self::note::{DeferredRequest, ExchangeBytes, ExchangeTimestamp, Note};
