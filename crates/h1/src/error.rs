//! Errors: the reasons why a message was rejected.

use std::fmt;

use base::Limit;
use message::Status;
use message::authority::AuthorityError;
use message::target::TargetError;

/// A fault in a line of a head or trailer section (RFC 9112 2.2, 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldError {
    /// A CR that no LF follows.
    BareCr,
    /// An LF without CR before it.
    BareLf,
    /// A control byte in a field value or reason phrase.
    Control,
    /// A field name that is not a token, or a line without a colon.
    Name,
    /// A line that begins with a colon.
    EmptyName,
    /// White space between field name and colon.
    SpaceBeforeColon,
    /// White space at the begin of a later line: a folded field.
    ObsFold,
    /// White space between start line and first field.
    LeadingSpace,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BareCr => "bare CR",
            Self::BareLf => "bare LF",
            Self::Control => "control byte in a field value",
            Self::Name => "malformed field name",
            Self::EmptyName => "empty field name",
            Self::SpaceBeforeColon => "white space before a colon",
            Self::ObsFold => "folded field line",
            Self::LeadingSpace => "white space before the first field",
        })
    }
}

/// The reason why a body's length is ambiguous (RFC 9112 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FramingError {
    /// Content-Length is not `1*DIGIT` or beyond 2^63-1.
    ContentLength,
    /// More than one Content-Length; in a response only if they differ.
    DuplicateContentLength,
    /// Transfer-Encoding is not exactly one `chunked`.
    TransferEncoding,
    /// Transfer-Encoding is one coding that is not `chunked`.
    UnknownCoding,
    /// Transfer-Encoding in HTTP/1.0, or in a 1xx response.
    TransferEncodingForbidden,
    /// Content-Length and Transfer-Encoding together.
    LengthAndCoding,
    /// A name that equals Content-Length or Transfer-Encoding if `_` is read as `-`.
    Lookalike,
    /// Connection names Host, Content-Length or Transfer-Encoding, or too many options.
    Connection,
}

impl fmt::Display for FramingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ContentLength => "malformed Content-Length",
            Self::DuplicateContentLength => "more than one Content-Length",
            Self::TransferEncoding => "malformed Transfer-Encoding",
            Self::UnknownCoding => "unknown transfer coding",
            Self::TransferEncodingForbidden => "Transfer-Encoding where it is not permitted",
            Self::LengthAndCoding => "Content-Length and Transfer-Encoding together",
            Self::Lookalike => "field name mistakable for a framing field",
            Self::Connection => "Connection names a field that it must not",
        })
    }
}

/// The reason why a request head was rejected. The connection must be closed after any of these,
/// since the start of the next request is ambiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestError {
    /// The request line is not `method SP target SP version CRLF`.
    RequestLine,
    /// The method is longer than any known one.
    MethodTooLong,
    /// CONNECT: this is not a tunnel.
    Connect,
    /// A byte that is invalid in a target.
    TargetByte,
    /// The form of the target does not fit method and listener (RFC 9112 3.2).
    Target,
    /// `%00` in the path.
    EncodedNul,
    /// A version that is not HTTP/1.x.
    Version,
    /// No Host in HTTP/1.1.
    MissingHost,
    /// More than one Host.
    DuplicateHost,
    /// The authority of Host or target is malformed.
    Authority,
    /// An expectation other than `100-continue`.
    Expectation,
    /// A malformed line.
    Field(FieldError),
    /// Ambiguous framing.
    Framing(FramingError),
    /// A limit was reached.
    Limit(Limit),
}

impl RequestError {
    /// The status that answers the request.
    pub fn status(&self) -> Status {
        let code = match self {
            Self::Limit(Limit::TargetBytes) => 414,
            Self::Expectation => 417,
            Self::Limit(_) => 431,
            Self::MethodTooLong | Self::Connect | Self::Framing(FramingError::UnknownCoding) => 501,
            Self::Version => 505,
            _ => 400,
        };
        Status::new(code).expect("a status of three digits")
    }

    /// The limit that was reached, if it was one.
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
            Self::RequestLine => f.write_str("malformed request line"),
            Self::MethodTooLong => f.write_str("method too long"),
            Self::Connect => f.write_str("CONNECT is not supported"),
            Self::TargetByte => TargetError::Byte.fmt(f),
            Self::Target => TargetError::Form.fmt(f),
            Self::EncodedNul => TargetError::EncodedNul.fmt(f),
            Self::Version => f.write_str("unsupported HTTP version"),
            Self::MissingHost => f.write_str("missing Host"),
            Self::DuplicateHost => f.write_str("more than one Host"),
            Self::Authority => AuthorityError.fmt(f),
            Self::Expectation => f.write_str("unknown expectation"),
            Self::Field(error) => error.fmt(f),
            Self::Framing(error) => error.fmt(f),
            Self::Limit(limit) => write_limit(f, *limit),
        }
    }
}

impl std::error::Error for RequestError {}

impl From<FieldError> for RequestError {
    fn from(error: FieldError) -> Self {
        Self::Field(error)
    }
}

impl From<FramingError> for RequestError {
    fn from(error: FramingError) -> Self {
        Self::Framing(error)
    }
}

impl From<AuthorityError> for RequestError {
    fn from(_: AuthorityError) -> Self {
        Self::Authority
    }
}

impl From<TargetError> for RequestError {
    fn from(error: TargetError) -> Self {
        match error {
            TargetError::Byte => Self::TargetByte,
            TargetError::Form => Self::Target,
            TargetError::EncodedNul => Self::EncodedNul,
            TargetError::Authority => Self::Authority,
        }
    }
}

impl From<Limit> for RequestError {
    fn from(limit: Limit) -> Self {
        Self::Limit(limit)
    }
}

/// Why an origin's response head was refused; the client sees a 502 and the connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseError {
    /// The status line is not `HTTP/1.x SP 3DIGIT [ SP reason ] CRLF`.
    StatusLine,
    /// A malformed line.
    Field(FieldError),
    /// Doubtful framing.
    Framing(FramingError),
    /// A limit was reached.
    Limit(Limit),
}

impl ResponseError {
    /// The limit that was reached, if it was one.
    pub fn limit(&self) -> Option<Limit> {
        match self {
            Self::Limit(limit) => Some(*limit),
            _ => None,
        }
    }
}

impl fmt::Display for ResponseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StatusLine => f.write_str("malformed status line"),
            Self::Field(error) => error.fmt(f),
            Self::Framing(error) => error.fmt(f),
            Self::Limit(limit) => write_limit(f, *limit),
        }
    }
}

impl std::error::Error for ResponseError {}

impl From<FieldError> for ResponseError {
    fn from(error: FieldError) -> Self {
        Self::Field(error)
    }
}

impl From<FramingError> for ResponseError {
    fn from(error: FramingError) -> Self {
        Self::Framing(error)
    }
}

impl From<Limit> for ResponseError {
    fn from(limit: Limit) -> Self {
        Self::Limit(limit)
    }
}

/// Why a body cannot be read on. The connection is closed: where the next message would begin is
/// unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyError {
    /// A chunk size is not `1*HEXDIG`, at most 16 of them.
    ChunkSize,
    /// A chunk extension is malformed.
    ChunkExtension,
    /// The chunk extensions of one body are longer in all than anyone needs.
    ChunkExtensionBytes,
    /// A chunk line or a chunk's data does not end with CRLF.
    ChunkEnd,
    /// A malformed trailer field.
    Trailer(FieldError),
    /// A trailer field that would change framing or routing.
    TrailerForbidden,
    /// The trailer section is larger than its limit.
    TrailerBytes,
    /// The connection ended before the body did.
    Truncated,
}

impl BodyError {
    /// The limit that was exceeded, if it was one.
    pub fn limit(&self) -> Option<Limit> {
        match self {
            Self::TrailerBytes => Some(Limit::TrailerBytes),
            _ => None,
        }
    }
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ChunkSize => f.write_str("malformed chunk size"),
            Self::ChunkExtension => f.write_str("malformed chunk extension"),
            Self::ChunkExtensionBytes => f.write_str("chunk extensions too large"),
            Self::ChunkEnd => f.write_str("chunk without CRLF"),
            Self::Trailer(error) => write!(f, "trailer section: {error}"),
            Self::TrailerForbidden => f.write_str("forbidden trailer field"),
            Self::TrailerBytes => write_limit(f, Limit::TrailerBytes),
            Self::Truncated => f.write_str("body cut short"),
        }
    }
}

impl std::error::Error for BodyError {}

fn write_limit(f: &mut fmt::Formatter<'_>, limit: Limit) -> fmt::Result {
    let spec = base::limits::TABLE.iter().find(|spec| spec.limit == limit);
    write!(f, "beyond the limit {}", spec.map_or("", |spec| spec.name))
}
