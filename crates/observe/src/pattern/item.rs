//! Items of a log format: the facts that a format can write.

use super::time::DateFormat;
use crate::heads::HeadSide;
use crate::query::NamedField;

/// The unit in which a time is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Seconds,
    Millis,
    Micros,
    /// Seconds with three decimals.
    SecondsMillis,
    /// Seconds with six decimals.
    SecondsMicros,
}

/// A fact about a transaction.
#[derive(Clone, Debug)]
pub(super) enum FormatItem {
    Address,
    /// A value that Larder never knows.
    Never,
    User,
    /// The start, in brackets.
    Began,
    BeganAs(DateFormat),
    /// The end.
    EndedAs(DateFormat),
    /// The first line of the request with an absolute URL.
    RequestUrl,
    /// The first line of the request as received.
    RequestLine,
    Method,
    Target,
    Path,
    /// The query with its `?`; empty if absent.
    Query,
    Arguments,
    Argument(Vec<u8>),
    /// `?` if the request has a query.
    HasArguments,
    Protocol,
    Scheme,
    /// `on` over TLS.
    Tls,
    TlsProtocol,
    TlsSuite,
    Host,
    Site,
    Status,
    BodyOut,
    BytesIn,
    BytesOut,
    /// Bytes received and sent.
    BytesBoth,
    /// `OK` if the response was completed.
    Completion,
    Took(Unit),
    FirstByte(Unit),
    /// The last field of a name in a head.
    Field(HeadSide, Vec<u8>),
    /// All fields of a name, joined as nginx does.
    Joined(HeadSide, Vec<u8>),
    /// A cookie of the request.
    Cookie(Vec<u8>),
    HitMiss,
    Handling,
    ClientOrBackend,
    Number,
    Session,
    Logged(Vec<u8>),
    Server,
    OriginStatus,
    OriginTook(Unit),
    OriginFirstByte(Unit),
    /// The cache result in nginx's terms.
    CacheStatus,
    /// A record of Varnish's log: tag, prefix, number of a blank-separated field.
    Vsl(String, Option<Vec<u8>>, Option<usize>),
    /// A field of the filter language.
    Own(NamedField),
}
