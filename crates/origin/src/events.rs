//! Events of a request before its response.

use message::Response;

use crate::error::Error;

/// A listener for the progress of a request until its final response. `()` ignores all events.
pub trait Events {
    /// A connection is ready: reused or new.
    fn connected(&mut self, _server: &str, _reused: bool) {}

    /// A try failed, and another follows.
    fn retry(&mut self, _error: &Error) {}

    /// An interim response arrived: any 1xx but 100 (Continue), at most as many as the limit
    /// `interim_responses`. Its head is as the server sent it.
    fn interim(&mut self, _response: Response) {}
}

impl Events for () {}
