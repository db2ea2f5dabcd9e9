//! The API: requests to the daemon, their callers, and the daemon's responses.

use std::fmt;
use std::future::Future;
use std::net::IpAddr;

use base::{Counter, Limit, Limits};
use bytes::Bytes;
use http::StatusCode;
use serde_json::Value;

use crate::body::Body;
use crate::role::Role;
use crate::routes::Operation;

/// The peer of an admin connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdminPeer {
    /// A process on the unix socket: its user, and its process id if known.
    Local {
        /// User id.
        uid: u32,
        /// Process id.
        pid: Option<i32>,
    },
    /// A peer at this address.
    Address(IpAddr),
}

impl fmt::Display for AdminPeer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local { uid, pid: Some(pid) } => write!(f, "uid {uid} (process {pid})"),
            Self::Local { uid, pid: None } => write!(f, "uid {uid}"),
            Self::Address(address) => write!(f, "{address}"),
        }
    }
}

/// The sender of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The caller's role; `None` if the route needs no token.
    pub role: Option<Role>,
    /// The peer of the connection.
    pub peer: AdminPeer,
}

/// A request that was routed and authorised.
#[derive(Clone, Debug)]
pub struct AdminRequest {
    /// The sender of the request.
    pub caller: Caller,
    /// The path.
    pub path: String,
    /// The query parameters: those of the route only, each once, in the order of the request.
    pub query: Vec<(String, String)>,
    /// The body; `Null` without one.
    pub body: Value,
}

impl AdminRequest {
    /// The parameter called `name`.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }
}

/// A response.
#[derive(Debug)]
pub struct AdminResponse {
    /// The status.
    pub status: StatusCode,
    /// The media type.
    pub content_type: &'static str,
    /// The body.
    pub body: Body,
}

impl AdminResponse {
    /// A response with status 200 and JSON.
    pub fn json(value: &Value) -> Self {
        Self::json_of(StatusCode::OK, value)
    }

    /// A response with JSON and another status.
    pub fn json_of(status: StatusCode, value: &Value) -> Self {
        let body = Body::Full(Bytes::from(format!("{value}\n")));
        Self { status, content_type: "application/json", body }
    }

    /// A response with plain text.
    pub fn text(status: StatusCode, text: impl Into<String>) -> Self {
        let body = Body::Full(Bytes::from(text.into()));
        Self { status, content_type: "text/plain; charset=utf-8", body }
    }

    /// A refusal: `{"error": ...}`, which names the remedy.
    pub fn refusal(status: StatusCode, why: &str) -> Self {
        Self::json_of(status, &serde_json::json!({ "error": why }))
    }
}

/// Operations that the daemon performs for the admin listener.
pub trait Api: Send + Sync + 'static {
    /// The limits in force.
    fn limits(&self) -> Limits;

    /// Counts an event; called by one thread at a time.
    fn count(&self, counter: Counter);

    /// Counts that a limit was reached; called by one thread at a time.
    fn count_limit(&self, limit: Limit);

    /// Ends when another process has taken the daemon's place: nothing is accepted from then on,
    /// and the current response of a connection is its last.
    fn handed_over(&self) -> impl Future<Output = ()> + Send;

    /// Performs the requested operation.
    fn answer(
        &self,
        operation: Operation,
        asked: AdminRequest,
    ) -> impl Future<Output = AdminResponse> + Send;
}
