//! Response head and status codes. The body is never part of it.

use std::fmt;

use crate::header::{HeaderBlock, HeaderId};
use crate::request::Version;

/// A status code, 100 to 999.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Status(u16);

impl Status {
    /// 100 Continue.
    pub const CONTINUE: Self = Self(100);
    /// 200 OK.
    pub const OK: Self = Self(200);
    /// 204 No Content.
    pub const NO_CONTENT: Self = Self(204);
    /// 206 Partial Content.
    pub const PARTIAL_CONTENT: Self = Self(206);
    /// 301 Moved Permanently.
    pub const MOVED_PERMANENTLY: Self = Self(301);
    /// 304 Not Modified.
    pub const NOT_MODIFIED: Self = Self(304);

    /// 416 Range Not Satisfiable.
    pub const RANGE_NOT_SATISFIABLE: Self = Self(416);
    /// 500 Internal Server Error.
    pub const INTERNAL_SERVER_ERROR: Self = Self(500);
    /// 502 Bad Gateway.
    pub const BAD_GATEWAY: Self = Self(502);
    /// 503 Service Unavailable
    pub const SERVICE_UNAVAILABLE: Self = Self(503);

    /// The status `code`, unless it is not of three digits.
    pub const fn new(code: u16) -> Option<Self> {
        if code >= 100 && code <= 999 { Some(Self(code)) } else { None }
    }

    /// The number.
    pub const fn code(self) -> u16 {
        self.0
    }

    /// 1xx: another response follows.
    pub const fn is_interim(self) -> bool {
        self.0 < 200
    }

    /// 5xx.
    pub const fn is_server_error(self) -> bool {
        self.0 / 100 == 5
    }

    /// Returns true if a response of this status never has a body (RFC 9110 6.4.1).
    pub const fn has_no_body(self) -> bool {
        self.0 < 200 || self.0 == 204 || self.0 == 304
    }

    /// The standard reason phrase; empty for other statuses.
    pub const fn reason(self) -> &'static str {
        match self.0 {
            100 => "Continue",
            101 => "Switching Protocols",
            102 => "Processing",
            103 => "Early Hints",
            200 => "OK",
            201 => "Created",
            202 => "Accepted",
            203 => "Non-Authoritative Information",
            204 => "No Content",
            205 => "Reset Content",
            206 => "Partial Content",
            300 => "Multiple Choices",
            301 => "Moved Permanently",
            302 => "Found",
            303 => "See Other",
            304 => "Not Modified",
            307 => "Temporary Redirect",
            308 => "Permanent Redirect",
            400 => "Bad Request",
            401 => "Unauthorized",
            403 => "Forbidden",
            404 => "Not Found",
            405 => "Method Not Allowed",
            406 => "Not Acceptable",
            408 => "Request Timeout",
            409 => "Conflict",
            410 => "Gone",
            411 => "Length Required",
            412 => "Precondition Failed",
            413 => "Content Too Large",
            414 => "URI Too Long",
            415 => "Unsupported Media Type",
            416 => "Range Not Satisfiable",
            417 => "Expectation Failed",
            421 => "Misdirected Request",
            422 => "Unprocessable Content",
            425 => "Too Early",
            426 => "Upgrade Required",
            429 => "Too Many Requests",
            431 => "Request Header Fields Too Large",
            451 => "Unavailable For Legal Reasons",
            500 => "Internal Server Error",
            501 => "Not Implemented",
            502 => "Bad Gateway",
            503 => "Service Unavailable",
            504 => "Gateway Timeout",
            505 => "HTTP Version Not Supported",
            _ => "",
        }
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A response's head.
#[derive(Clone, Debug)]
pub struct Response {
    /// Version of the received message.
    pub version: Version,
    /// Status code.
    pub status: Status,
    /// Reason phrase as received; empty for the standard one.
    pub reason: Vec<u8>,
    /// True if it is sent without a reason phrase (RFC 9112 4).
    pub no_reason: bool,
    /// True if its trailers are forwarded. Trailer is then for the next hop.
    pub passes_trailers: bool,
    /// All header fields as received, including framing fields, which only the encoder replaces.
    pub headers: HeaderBlock,
}

impl Response {
    /// The Content-Length; for HEAD, the length of the response to a GET.
    pub fn content_length(&self) -> Option<u64> {
        let value = self.headers.value(HeaderId::ContentLength)?;
        std::str::from_utf8(value).ok()?.parse().ok()
    }

    /// An empty response of `status`.
    pub fn new(status: Status) -> Self {
        Self {
            version: Version::Http11,
            status,
            reason: Vec::new(),
            no_reason: false,
            passes_trailers: false,
            headers: HeaderBlock::new(),
        }
    }
}
