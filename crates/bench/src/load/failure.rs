//! Failures of the load: reasons for which a request got no response.

use std::io;

/// A request that got no response, or a connection that could not be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LoadFailure {
    /// The connection could not be opened.
    Connect(String),
    /// The TLS handshake failed.
    Tls(String),
    /// The response was not complete in time.
    Timeout,
    /// The server closed the connection before the end of the response.
    Closed,
    /// The connection broke.
    Broken(String),
    /// The response was not valid HTTP.
    Malformed(String),
    /// The machine has no port, descriptor or memory left.
    Machine(String),
}

impl LoadFailure {
    /// Makes the failure of a connection attempt.
    pub(crate) fn connecting(error: &io::Error) -> Self {
        match error.raw_os_error() {
            // EMFILE, ENFILE, ENOMEM, EADDRNOTAVAIL, ENOBUFS
            Some(24 | 23 | 12 | 99 | 105) => Self::Machine(error.to_string()),
            _ => Self::Connect(error.to_string()),
        }
    }

    /// Makes the failure of an open connection.
    pub(crate) fn broken(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Closed,
            _ => Self::Broken(error.to_string()),
        }
    }

    /// The name of the kind in results.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Connect(_) => "connect",
            Self::Tls(_) => "tls",
            Self::Timeout => "timeout",
            Self::Closed => "closed",
            Self::Broken(_) => "broken",
            Self::Malformed(_) => "malformed",
            Self::Machine(_) => "machine",
        }
    }

    /// The text of the cause.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Timeout => "no whole response in time",
            Self::Closed => "the connection ended before the response",
            Self::Connect(text)
            | Self::Tls(text)
            | Self::Broken(text)
            | Self::Malformed(text)
            | Self::Machine(text) => text,
        }
    }
}
