//! Errors: the reasons why an application's output was rejected.

use std::fmt;

use base::Limit;

/// The reason why a connection's records are malformed. The connection must be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordError {
    /// A version other than 1.
    Version(u8),
    /// A type of record that no application sends.
    Kind(u8),
    /// A record of another request.
    RequestId(u16),
    /// An END_REQUEST whose content is not eight bytes.
    EndRequest,
    /// STDOUT after its end.
    AfterStdout,
    /// Too many management records.
    Management,
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(version) => write!(f, "FastCGI version {version}"),
            Self::Kind(kind) => write!(f, "FastCGI record of type {kind}"),
            Self::RequestId(id) => write!(f, "FastCGI record of request {id}"),
            Self::EndRequest => f.write_str("malformed END_REQUEST"),
            Self::AfterStdout => f.write_str("STDOUT after its end"),
            Self::Management => f.write_str("too many FastCGI management records"),
        }
    }
}

impl std::error::Error for RecordError {}

/// The reason why a CGI response head was rejected; the client gets a 502.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadError {
    /// A line that is not `name ":" value`, or a folded one.
    Line,
    /// A control byte in a value.
    Control,
    /// Status is not three digits from 200 on with an optional reason, or is repeated.
    Status,
    /// Content-Length is not a number, or is repeated.
    ContentLength,
    /// A limit was exceeded.
    Limit(Limit),
}

impl HeadError {
    /// The limit that was exceeded, if it was one.
    pub fn limit(&self) -> Option<Limit> {
        match self {
            Self::Limit(limit) => Some(*limit),
            _ => None,
        }
    }
}

impl fmt::Display for HeadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line => f.write_str("malformed field line"),
            Self::Control => f.write_str("control byte in a field value"),
            Self::Status => f.write_str("malformed Status"),
            Self::ContentLength => f.write_str("malformed Content-Length"),
            Self::Limit(limit) => {
                let spec = base::limits::TABLE.iter().find(|spec| spec.limit == *limit);
                write!(f, "beyond the limit {}", spec.map_or("", |spec| spec.name))
            }
        }
    }
}

impl std::error::Error for HeadError {}

impl From<Limit> for HeadError {
    fn from(limit: Limit) -> Self {
        Self::Limit(limit)
    }
}
