//! Requests as they arrive from the engine: those to be answered, and those that cannot be read.

use h2::{RequestError, StreamAt};
use message::Request;

/// The stream of a request that has just come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asking {
    pub(super) at: StreamAt,
    /// The request has no body.
    pub(super) ends: bool,
}

/// A request that cannot be dealt with.
#[derive(Clone, Copy)]
pub(super) struct Malformed<'a> {
    /// Its stream; `None` if it has none.
    pub(super) at: Option<StreamAt>,
    /// As much of it as was read.
    pub(super) request: &'a Request,
    pub(super) error: &'a RequestError,
}
