//! Errors: the reasons why an origin gave no usable response.

use std::fmt;
use std::io;
use std::sync::Arc;

use base::units::DurationMs;
use base::{Counter, Counters, Limit};
use message::Status;

/// The reason why an exchange failed. Every variant but those about the whole origin names the
/// server.
#[derive(Debug)]
pub enum Error {
    /// The server accepted no connection.
    Connect {
        /// The server.
        server: Arc<str>,
        /// The reason, for the last address tried.
        source: io::Error,
    },
    /// The server's name has no known address.
    Resolve {
        /// The server.
        server: Arc<str>,
    },
    /// A step exceeded its timeout.
    Timeout {
        /// The server.
        server: Arc<str>,
        /// The step.
        step: TimeoutStep,
        /// The timeout, in milliseconds.
        after_ms: u64,
    },
    /// Too many requests wait for the server already.
    QueueFull {
        /// The server.
        server: Arc<str>,
    },
    /// Probes report all of the origin's servers sick.
    NoHealthyServer {
        /// The origin.
        origin: Arc<str>,
    },
    /// Sending the request failed, and no response came.
    Write {
        /// The server.
        server: Arc<str>,
        /// The reason.
        source: io::Error,
    },
    /// Reading the response failed.
    Read {
        /// The server.
        server: Arc<str>,
        /// The reason.
        source: io::Error,
        /// Reading failed after the response's head.
        in_body: bool,
    },
    /// The server closed the connection before the end of the response's head.
    ClosedBeforeHead {
        /// The server.
        server: Arc<str>,
    },
    /// The response's head is malformed or too large.
    Response {
        /// The server.
        server: Arc<str>,
        /// The reason.
        source: h1::ResponseError,
    },
    /// More 1xx responses than a request may have.
    TooManyInterim {
        /// The server.
        server: Arc<str>,
    },
    /// The server switched protocols without a request for it, or to another protocol.
    UnexpectedUpgrade {
        /// The server.
        server: Arc<str>,
    },
    /// The response's body is malformed.
    Body {
        /// The server.
        server: Arc<str>,
        /// The reason.
        source: h1::BodyError,
    },
    /// The response is not FastCGI, or belongs to no request.
    Records {
        /// The server.
        server: Arc<str>,
        /// The reason.
        source: fastcgi::RecordError,
    },
    /// A script's response head is malformed or too large.
    ScriptHead {
        /// The server.
        server: Arc<str>,
        /// The reason.
        source: fastcgi::HeadError,
    },
    /// A FastCGI server ended the request without a response.
    NoAnswer {
        /// The server.
        server: Arc<str>,
        /// The protocol status with which it ended the request.
        protocol: fastcgi::ProtocolStatus,
    },
    /// A script's output was longer than its Content-Length.
    Surplus {
        /// The server.
        server: Arc<str>,
    },
    /// A FastCGI origin has no root for its scripts.
    NoScripts {
        /// The origin.
        origin: Arc<str>,
    },
    /// The connection ended before the response's body.
    Truncated {
        /// The server.
        server: Arc<str>,
    },
    /// The server answered with a status for which another server is tried.
    Unwanted {
        /// The server.
        server: Arc<str>,
        /// The status of its response.
        status: Status,
    },
    /// The server guarantees that it has not processed the request (HTTP/2, REFUSED_STREAM).
    Refused {
        /// The server.
        server: Arc<str>,
    },
    /// The server ended the exchange, and not the connection (HTTP/2, RST_STREAM).
    Reset {
        /// The server.
        server: Arc<str>,
        /// The error code (RFC 9113 7).
        code: u32,
        /// The exchange ended after the response's head.
        in_body: bool,
    },
    /// The connection broke the rules of HTTP/2.
    Frames {
        /// The server.
        server: Arc<str>,
        /// The reason.
        source: h2::ConnectionError,
    },
    /// The response is malformed or too large (HTTP/2).
    Fields {
        /// The server.
        server: Arc<str>,
        /// The reason.
        source: h2::ResponseError,
    },
    /// The request's head is larger than the server takes (HTTP/2, SETTINGS_MAX_HEADER_LIST_SIZE).
    HeadTooLarge {
        /// The server.
        server: Arc<str>,
    },
    /// The server chose another protocol than HTTP/2 (RFC 7301).
    NotHttp2 {
        /// The server.
        server: Arc<str>,
    },
    /// The request's body does not match its framing, or its source failed.
    RequestBody(RequestBodyError),
}

/// The steps of an exchange that have a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutStep {
    /// The wait for one of the server's connections.
    Queue,
    /// Connecting, including name resolution.
    Connect,
    /// The server's receipt of bytes of the request.
    Send,
    /// The response's head.
    FirstByte,
    /// The next byte of the response's body.
    BetweenBytes,
    /// The whole exchange.
    Total,
}

/// The reason why the request's body could not be sent completely.
#[derive(Debug)]
pub enum RequestBodyError {
    /// It ended before its length.
    TooShort,
    /// It continued after its length.
    TooLong,
    /// Its length must be known before it is sent, and it exceeds this limit of the spool.
    TooLarge(Limit),
    /// Other spooled bodies use up the space for files.
    NoFileSpace,
    /// The spool file could not be created or written.
    File(io::Error),
    /// There is no memory to spool it.
    NoMemory,
    /// Its source failed: usually the client has left.
    Source(SourceError),
}

/// The reason why the source of a request's body failed, as text for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceError(pub &'static str);

impl Error {
    /// The status for the client, as nginx selects it: 504 for timeouts, 503 if no server could be
    /// tried, 400 or 413 for the request's own body, 431 for its head, else 502.
    pub fn status(&self) -> Status {
        let code = match self {
            Self::RequestBody(RequestBodyError::TooLarge(_)) => 413,
            Self::RequestBody(
                RequestBodyError::NoMemory
                | RequestBodyError::NoFileSpace
                | RequestBodyError::File(_),
            ) => 503,
            Self::NoAnswer { protocol: fastcgi::ProtocolStatus::Overloaded, .. } => 503,
            Self::RequestBody(_) => 400,
            Self::HeadTooLarge { .. } => 431,
            Self::Resolve { .. }
            | Self::QueueFull { .. }
            | Self::NoHealthyServer { .. }
            | Self::Timeout { step: TimeoutStep::Queue, .. } => 503,
            Self::Timeout { .. } => 504,
            _ => 502,
        };
        Status::new(code).expect("a status of three digits")
    }

    /// Counts an exchange without a usable response. Failures of the client are counted elsewhere.
    pub(crate) fn count(&self, counters: &Counters) {
        if !matches!(self, Self::RequestBody(_)) {
            counters.inc(Counter::FetchFailures);
        }
        if let Some(limit) = self.limit() {
            counters.limit(limit);
        }
    }

    /// The limit that was exceeded, if it was one.
    pub fn limit(&self) -> Option<Limit> {
        match self {
            Self::Timeout { step, .. } => Some(step.limit()),
            Self::QueueFull { .. } => Some(Limit::OriginQueue),
            Self::TooManyInterim { .. } => Some(Limit::InterimResponses),
            Self::Response { source, .. } => source.limit().map(of_response),
            Self::Body { source, .. } => source.limit(),
            Self::Frames { source, .. } => source.limit.map(of_response),
            Self::Fields { source, .. } => source.limit().map(of_response),
            Self::ScriptHead { source, .. } => source.limit().map(of_response),
            Self::RequestBody(RequestBodyError::TooLarge(limit)) => Some(*limit),
            Self::RequestBody(RequestBodyError::NoFileSpace) => Some(Limit::SpoolFileBytes),
            Self::RequestBody(RequestBodyError::NoMemory) => Some(Limit::ClientMemory),
            _ => None,
        }
    }

    /// Returns true if the server was unreachable: no connection, no response in time, or a
    /// connection that failed before the response's head. Such a failure counts against the
    /// server's health, and a stale response may replace the response (RFC 9111 4.2.4
    /// "disconnected", RFC 5861 4).
    pub fn is_unreachable(&self) -> bool {
        match self {
            Self::Connect { .. }
            | Self::Resolve { .. }
            | Self::NoHealthyServer { .. }
            | Self::Write { .. }
            | Self::ClosedBeforeHead { .. }
            | Self::NotHttp2 { .. }
            | Self::Read { in_body: false, .. } => true,
            Self::Timeout { step, .. } => {
                matches!(step, TimeoutStep::Connect | TimeoutStep::Send | TimeoutStep::FirstByte)
            }
            _ => false,
        }
    }

    /// Returns true if there was no connection.
    pub fn is_before_sending(&self) -> bool {
        match self {
            Self::Timeout { step, .. } => matches!(step, TimeoutStep::Queue | TimeoutStep::Connect),
            Self::Connect { .. }
            | Self::Resolve { .. }
            | Self::QueueFull { .. }
            | Self::NoHealthyServer { .. }
            | Self::NoScripts { .. } => true,
            _ => false,
        }
    }

    /// Returns true if the error is about the server: neither the client's fault nor this
    /// machine's.
    pub(crate) fn is_servers_fault(&self) -> bool {
        match self {
            Self::RequestBody(_) | Self::NoScripts { .. } | Self::HeadTooLarge { .. } => false,
            Self::Connect { source, .. } => !is_shortage(source),
            _ => true,
        }
    }

    /// Returns true if the server closed the connection, as it also does with one that was idle for
    /// long.
    pub(crate) fn is_drop(&self) -> bool {
        matches!(
            self,
            Self::Write { .. } | Self::ClosedBeforeHead { .. } | Self::Read { in_body: false, .. }
        )
    }
}

/// Maps a limit of request heads to that of response heads.
fn of_response(limit: Limit) -> Limit {
    match limit {
        Limit::HeaderBytes => Limit::ResponseHeaderBytes,
        Limit::HeaderFieldBytes => Limit::ResponseFieldBytes,
        other => other,
    }
}

impl TimeoutStep {
    /// The limit of this step's timeout.
    pub const fn limit(self) -> Limit {
        match self {
            Self::Queue => Limit::OriginQueueTimeout,
            Self::Connect => Limit::ConnectTimeout,
            Self::Send | Self::BetweenBytes => Limit::BetweenBytesTimeout,
            Self::FirstByte => Limit::FirstByteTimeout,
            Self::Total => Limit::TotalTimeout,
        }
    }

    const fn about(self) -> &'static str {
        match self {
            Self::Queue => "no connection became free",
            Self::Connect => "not connected",
            Self::Send => "took no byte of the request",
            Self::FirstByte => "sent no response head",
            Self::BetweenBytes => "sent no further byte of the body",
            Self::Total => "not done",
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect { server, source } => write!(f, "{server}: cannot connect: {source}"),
            Self::Resolve { server } => write!(f, "{server}: its name has no known address"),
            Self::Timeout { server, step, after_ms } => write!(
                f,
                "{server}: {} within {} ({})",
                step.about(),
                DurationMs(*after_ms),
                limit_name(step.limit()),
            ),
            Self::QueueFull { server } => write!(
                f,
                "{server}: too many requests are waiting for it ({})",
                limit_name(Limit::OriginQueue),
            ),
            Self::NoHealthyServer { origin } => write!(f, "{origin}: no healthy server"),
            Self::Write { server, source } => {
                write!(f, "{server}: cannot send the request: {source}")
            }
            Self::Read { server, source, in_body } => {
                let part = if *in_body { "body" } else { "head" };
                write!(f, "{server}: cannot read the response's {part}: {source}")
            }
            Self::ClosedBeforeHead { server } => {
                write!(f, "{server}: closed the connection before the end of the response's head")
            }
            Self::Response { server, source } => write!(f, "{server}: bad response: {source}"),
            Self::TooManyInterim { server } => write!(
                f,
                "{server}: too many 1xx responses ({})",
                limit_name(Limit::InterimResponses),
            ),
            Self::UnexpectedUpgrade { server } => {
                write!(f, "{server}: switched protocols without being asked to")
            }
            Self::Body { server, source } => write!(f, "{server}: bad response body: {source}"),
            Self::Records { server, source } => write!(f, "{server}: bad response: {source}"),
            Self::ScriptHead { server, source } => {
                write!(f, "{server}: bad response head of a script: {source}")
            }
            Self::NoAnswer { server, protocol } => write!(
                f,
                "{server}: {}",
                match protocol {
                    fastcgi::ProtocolStatus::Overloaded => "is overloaded",
                    fastcgi::ProtocolStatus::Complete => "ended the request without a response",
                    _ => "refused the request",
                },
            ),
            Self::Surplus { server } => {
                write!(f, "{server}: the response's body is longer than its Content-Length")
            }
            Self::NoScripts { origin } => write!(f, "{origin}: no root for its scripts"),
            Self::Truncated { server } => {
                write!(f, "{server}: the connection ended before the response's body did")
            }
            Self::Refused { server } => write!(f, "{server}: refused the request (REFUSED_STREAM)"),
            Self::Reset { server, code, in_body } => write_reset(f, server, *code, *in_body),
            Self::Frames { server, source } => write!(f, "{server}: bad HTTP/2: {source}"),
            Self::Fields { server, source } => write!(f, "{server}: bad response: {source}"),
            Self::HeadTooLarge { server } => {
                write!(f, "{server}: takes no request with as many header fields")
            }
            Self::NotHttp2 { server } => write!(f, "{server}: does not speak HTTP/2"),
            Self::Unwanted { server, status } => write!(f, "{server}: answered {status}"),
            Self::RequestBody(error) => write!(f, "request body: {error}"),
        }
    }
}

fn write_reset(f: &mut fmt::Formatter<'_>, server: &str, code: u32, in_body: bool) -> fmt::Result {
    let part = if in_body { "in the response's body" } else { "without a response" };
    match h2::Code::name(code) {
        Some(name) => write!(f, "{server}: ended the request {part} ({name})"),
        None => write!(f, "{server}: ended the request {part} (code {code})"),
    }
}

/// Returns true if a socket failed for lack of descriptors, ports or memory here (Linux: ENOMEM,
/// ENFILE, EMFILE, EADDRNOTAVAIL, ENOBUFS).
fn is_shortage(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(12 | 23 | 24 | 99 | 105))
}

fn limit_name(limit: Limit) -> &'static str {
    base::limits::TABLE.iter().find(|spec| spec.limit == limit).map_or("", |spec| spec.name)
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Connect { source, .. }
            | Self::Write { source, .. }
            | Self::Read { source, .. } => Some(source),
            Self::Response { source, .. } => Some(source),
            Self::Body { source, .. } => Some(source),
            Self::Records { source, .. } => Some(source),
            Self::ScriptHead { source, .. } => Some(source),
            Self::Frames { source, .. } => Some(source),
            Self::Fields { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl fmt::Display for RequestBodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooShort => f.write_str("shorter than declared"),
            Self::TooLong => f.write_str("longer than declared"),
            Self::TooLarge(limit) => {
                write!(f, "of unknown length, and too long to be spooled ({})", limit_name(*limit),)
            }
            Self::NoFileSpace => write!(
                f,
                "of unknown length, and no space is left in spool files ({})",
                limit_name(Limit::SpoolFileBytes),
            ),
            Self::File(error) => {
                write!(f, "of unknown length, and the spool file failed: {error}")
            }
            Self::NoMemory => write!(
                f,
                "of unknown length, and no memory is left to spool it ({})",
                limit_name(Limit::ClientMemory),
            ),
            Self::Source(error) => error.fmt(f),
        }
    }
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for SourceError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeout(step: TimeoutStep) -> Error {
        Error::Timeout { server: "app:80".into(), step, after_ms: 2_000 }
    }

    #[test]
    fn a_timeout_names_its_server_step_and_setting() {
        let text = timeout(TimeoutStep::FirstByte).to_string();
        assert_eq!(text, "app:80: sent no response head within 2s (first_byte_timeout)");
        assert_eq!(timeout(TimeoutStep::Connect).limit(), Some(Limit::ConnectTimeout));
    }

    #[test]
    fn statuses_tell_slow_busy_and_broken_apart() {
        assert_eq!(timeout(TimeoutStep::FirstByte).status().code(), 504);
        assert_eq!(timeout(TimeoutStep::Queue).status().code(), 503);
        assert_eq!(Error::Truncated { server: "app:80".into() }.status().code(), 502);
        assert_eq!(Error::RequestBody(RequestBodyError::TooShort).status().code(), 400);
    }

    #[test]
    fn a_shortage_here_is_not_held_against_the_server() {
        let connect =
            |source| Error::Connect { server: "app:80".into(), source }.is_servers_fault();
        assert!(connect(io::ErrorKind::ConnectionRefused.into()));
        assert!(!connect(io::Error::from_raw_os_error(24)));
        assert!(!Error::RequestBody(RequestBodyError::TooLong).is_servers_fault());
    }

    #[test]
    fn only_what_happens_before_the_head_speaks_of_reachability() {
        let read = |in_body| Error::Read {
            server: "app:80".into(),
            source: io::ErrorKind::ConnectionReset.into(),
            in_body,
        };
        assert!(read(false).is_unreachable());
        assert!(!read(true).is_unreachable());
        assert!(timeout(TimeoutStep::Connect).is_unreachable());
        assert!(!timeout(TimeoutStep::Queue).is_unreachable());
    }
}
