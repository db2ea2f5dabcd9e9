//! Events of a request before its response is there.

use message::Response;

use crate::error::Error;

/// A listener to the fate of a request while its final response is awaited. `()` is for callers who
/// do not want to know.
pub trait Events {
    /// A connection is at hand: a kept one or a new one.
    fn connected(&mut self, _server: &str, _reused: bool) {}

    /// A try failed, and another follows.
    fn retry(&mut self, _error: &Error) {}

    /// An interim response came: any 1xx but 100 (Continue), as many as the limit
    /// `interim_responses` allows. Its head is as the server sent it.
    fn interim(&mut self, _response: Response) {}
}

impl Events for () {}
