//! A case, and what most of them are made of.

use crate::origin::Script;

/// The result that the client of a faulty origin must see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultExpectation {
    /// An error page of the proxy's own with this status.
    Error(u16),
    /// A message that no client takes for whole; or, when the fault shows before anything was
    /// passed on, an error page of the proxy's own.
    Incomplete,
    /// The origin's answer, whole, with this status and body.
    Whole(u16, &'static str),
}

/// One case.
#[derive(Clone, Debug)]
pub struct FaultCase {
    /// Its name, fit for a URL path.
    pub name: String,
    /// Script of the origin for the first request for its URL, a GET.
    pub script: Script,
    /// The result that the client must see.
    pub expected: FaultExpectation,
    /// True if a second request must be answered from the store; otherwise it must reach the
    /// origin.
    pub stored: bool,
    /// Milliseconds to wait after the first request for the script's last acts. Only bytes that
    /// have arrived can be told from an answer to the next request.
    pub settle_ms: u64,
}

/// A case for GET that stores nothing.
pub(super) fn case(
    name: impl Into<String>,
    expected: FaultExpectation,
    script: Script,
) -> FaultCase {
    FaultCase { name: name.into(), script, expected, stored: false, settle_ms: 0 }
}

/// A case whose answer is whole and kept.
pub(super) fn kept(name: &str, body: &'static str, script: Script) -> FaultCase {
    FaultCase { stored: true, ..case(name, FaultExpectation::Whole(200, body), script) }
}

/// A head of status 200 that any cache would love to keep, with further `fields` (CRLF each).
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
