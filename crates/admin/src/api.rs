//! Requests to the daemon, their callers, and the daemon's answers.

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

/// Where a caller is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdminPeer {
    /// At the other end of the unix socket: the user it runs as, and its process where that is
    /// known.
    Local {
        /// User id.
        uid: u32,
        /// Process id.
        pid: Option<i32>,
    },
    /// At this address.
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
    /// The caller's role; `None` where no token was asked for.
    pub role: Option<Role>,
    /// Where it is.
    pub peer: AdminPeer,
}

/// A request that its route lets through.
#[derive(Clone, Debug)]
pub struct AdminRequest {
    /// The sender of the request.
    pub caller: Caller,
    /// The path.
    pub path: String,
    /// Its parameters: those of the route alone, each once, in the order of the request.
    pub query: Vec<(String, String)>,
    /// Its body; `Null` when there was none.
    pub body: Value,
}

impl AdminRequest {
    /// The parameter called `name`.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }
}

/// An answer.
#[derive(Debug)]
pub struct AdminResponse {
    /// Its status.
    pub status: StatusCode,
    /// Its media type.
    pub content_type: &'static str,
    /// Its body.
    pub body: Body,
}

impl AdminResponse {
    /// 200 with JSON.
    pub fn json(value: &Value) -> Self {
        Self::json_of(StatusCode::OK, value)
    }

    /// JSON with another status.
    pub fn json_of(status: StatusCode, value: &Value) -> Self {
        let body = Body::Full(Bytes::from(format!("{value}\n")));
        Self { status, content_type: "application/json", body }
    }

    /// Plain text.
    pub fn text(status: StatusCode, text: impl Into<String>) -> Self {
        let body = Body::Full(Bytes::from(text.into()));
        Self { status, content_type: "text/plain; charset=utf-8", body }
    }

    /// A refusal: `{"error": ...}`, which says what to do instead.
    pub fn refusal(status: StatusCode, why: &str) -> Self {
        Self::json_of(status, &serde_json::json!({ "error": why }))
    }
}

/// Operations that the daemon performs for its listener.
pub trait Api: Send + Sync + 'static {
    /// The limits in force.
    fn limits(&self) -> Limits;

    /// Counts an event; called by one thread at a time.
    fn count(&self, counter: Counter);

    /// Counts that a limit was reached; called by one thread at a time.
    fn count_limit(&self, limit: Limit);

    /// Does what is asked.
    fn answer(
        &self,
        operation: Operation,
        asked: AdminRequest,
    ) -> impl Future<Output = AdminResponse> + Send;
}
