//! A case of a faulty origin, and its usual parts.

use crate::origin::Script;

/// The required result at the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultExpectation {
    /// An error page of the proxy with this status.
    Error(u16),
    /// A message that every client recognises as incomplete. If the fault shows before anything was
    /// delivered, an error page of the proxy is right, too.
    Incomplete,
    /// The origin's whole response, with this status and body.
    Whole(u16, &'static str),
}

/// One case.
#[derive(Clone, Debug)]
pub struct FaultCase {
    /// The case's name, usable in a URL path.
    pub name: String,
    /// The origin's script for the first GET of its URL.
    pub script: Script,
    /// The required result.
    pub expected: FaultExpectation,
    /// True if a second request must be a hit; otherwise it must reach the origin.
    pub stored: bool,
    /// Milliseconds between the first request and the second, for the script's last acts. The proxy
    /// can recognise surplus bytes only once they have arrived.
    pub settle_ms: u64,
}

/// Makes a case for GET whose response must not be stored.
pub(super) fn case(
    name: impl Into<String>,
    expected: FaultExpectation,
    script: Script,
) -> FaultCase {
    FaultCase { name: name.into(), script, expected, stored: false, settle_ms: 0 }
}

/// Makes a case whose response is whole and must be stored.
pub(super) fn kept(name: &str, body: &'static str, script: Script) -> FaultCase {
    FaultCase { stored: true, ..case(name, FaultExpectation::Whole(200, body), script) }
}

/// A head with status 200 that allows storing, with further `fields` (each with CRLF).
pub(super) fn head(fields: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nCache-Control: public, max-age=300\r\n{fields}\r\n")
}

/// [`head`] with `Content-Length: length`.
pub(super) fn sized(length: usize) -> String {
    head(&format!("Content-Length: {length}\r\n"))
}

/// [`head`] with `Transfer-Encoding: chunked`.
pub(super) fn chunked() -> String {
    head("Transfer-Encoding: chunked\r\n")
}
