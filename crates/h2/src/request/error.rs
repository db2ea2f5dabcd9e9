//! Errors: the reasons why a request was rejected.

use std::fmt;

use base::Limit;
use message::Status;
use message::authority::AuthorityError;
use message::target::TargetError;

/// A fault that makes a request malformed (RFC 9113 8.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// A pseudo-field after a regular field.
    PseudoOrder,
    /// A pseudo-field that requests do not have.
    PseudoUnknown,
    /// A repeated pseudo-field.
    PseudoRepeated,
    /// `:method`, `:scheme` or `:path` is missing.
    PseudoMissing,
    /// A pseudo-field in a trailer section.
    PseudoTrailer,
    /// The method is not a token.
    Method,
    /// CONNECT with missing or additional pseudo-fields (RFC 9113 8.5).
    Connect,
    /// `:scheme` is not the connection's.
    Scheme,
    /// `:protocol` is empty, or with a method other than CONNECT (RFC 8441 4).
    Protocol,
    /// A fault in `:path`.
    Target(TargetError),
    /// `:authority` or Host is malformed.
    Authority,
    /// Neither `:authority` nor Host.
    MissingHost,
    /// More than one Host.
    DuplicateHost,
    /// Host and `:authority` differ.
    HostMismatch,
    /// A field name that is not a token in lower case.
    Name,
    /// A control byte in a field value.
    Value,
    /// White space at the begin or end of a field value.
    ValueSpace,
    /// A field of HTTP/1 connections (RFC 9113 8.2.2).
    ConnectionField,
    /// TE that is not `trailers`.
    Te,
    /// Content-Length is not `1*DIGIT`, beyond 2^63-1, or in a request without body.
    ContentLength,
    /// More than one Content-Length, even if they agree.
    DuplicateContentLength,
    /// A name that equals Content-Length or Transfer-Encoding if `_` is read as `-`.
    Lookalike,
    /// A trailer field that would change framing or routing.
    Trailer,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PseudoOrder => "pseudo-field behind a field",
            Self::PseudoUnknown => "unknown pseudo-field",
            Self::PseudoRepeated => "repeated pseudo-field",
            Self::PseudoMissing => "missing pseudo-field",
            Self::PseudoTrailer => "pseudo-field in a trailer section",
            Self::Method => "malformed method",
            Self::Connect => "malformed CONNECT",
            Self::Scheme => "wrong scheme",
            Self::Protocol => ":protocol where it is not permitted",
            Self::Target(error) => return error.fmt(f),
            Self::Authority => return AuthorityError.fmt(f),
            Self::MissingHost => "missing host",
            Self::DuplicateHost => "more than one Host",
            Self::HostMismatch => "Host differs from the authority",
            Self::Name => "malformed field name",
            Self::Value => "control byte in a field value",
            Self::ValueSpace => "white space around a field value",
            Self::ConnectionField => "field of HTTP/1 connections",
            Self::Te => "malformed TE",
            Self::ContentLength => "malformed Content-Length",
            Self::DuplicateContentLength => "more than one Content-Length",
            Self::Lookalike => "field name mistakable for a framing field",
            Self::Trailer => "forbidden trailer field",
        })
    }
}

/// The reason why a request was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestError {
    /// The request is malformed: its stream is reset (PROTOCOL_ERROR) without a response.
    Malformed(Malformed),
    /// A limit was exceeded.
    Limit(Limit),
    /// The method is longer than any known one.
    MethodTooLong,
    /// An expectation other than `100-continue`.
    Expectation,
    /// CONNECT without a known protocol: this is not a tunnel.
    Connect,
}

impl RequestError {
    /// The status of the response; `None` if the request is malformed.
    pub fn status(&self) -> Option<Status> {
        let code = match self {
            Self::Malformed(_) => return None,
            Self::Limit(Limit::TrailerBytes) => 400,
            Self::Limit(Limit::TargetBytes) => 414,
            Self::Expectation => 417,
            Self::Limit(_) => 431,
            Self::MethodTooLong | Self::Connect => 501,
        };
        Some(Status::new(code).expect("a status of three digits"))
    }

    /// The limit that was exceeded, if it was one.
    pub fn limit(&self) -> Option<Limit> {
        match self {
            Self::Limit(limit) => Some(*limit),
            _ => None,
        }
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(what) => what.fmt(f),
            Self::Limit(limit) => {
                let spec = base::limits::TABLE.iter().find(|spec| spec.limit == *limit);
                write!(f, "beyond the limit {}", spec.map_or("", |spec| spec.name))
            }
            Self::MethodTooLong => f.write_str("method too long"),
            Self::Expectation => f.write_str("unknown expectation"),
            Self::Connect => f.write_str("CONNECT is not supported"),
        }
    }
}

impl std::error::Error for RequestError {}

impl From<Malformed> for RequestError {
    fn from(what: Malformed) -> Self {
        Self::Malformed(what)
    }
}

impl From<AuthorityError> for RequestError {
    fn from(_: AuthorityError) -> Self {
        Self::Malformed(Malformed::Authority)
    }
}

impl From<TargetError> for RequestError {
    fn from(error: TargetError) -> Self {
        Self::Malformed(Malformed::Target(error))
    }
}

impl From<Limit> for RequestError {
    fn from(limit: Limit) -> Self {
        Self::Limit(limit)
    }
}
