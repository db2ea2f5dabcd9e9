//! Requests as data: what a source of URLs produces and what a run sends.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A server that is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// `http` or `https`.
    pub scheme: String,
    /// The host and, where it is not the scheme's own, the port.
    pub authority: String,
    /// The path of a unix socket that is connected to in place of the authority.
    pub unix_socket: Option<String>,
}

/// One request of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// The server that is asked.
    pub target: Target,
    /// The method.
    pub method: String,
    /// The path and the query, as they are sent.
    pub path: String,
    /// Header fields in the order in which they are sent.
    pub headers: Vec<(String, String)>,
    /// The body; empty for a request without one.
    pub body: Vec<u8>,
    /// The number of times that a source saw this request.
    pub weight: u32,
    /// The time since the start of a replay at which the request is due.
    pub due: Option<Duration>,
}
