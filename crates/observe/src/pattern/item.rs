//! The facts that a format can tell.

use super::time::DateFormat;
use crate::heads::HeadSide;
use crate::query::NamedField;

/// In what a time is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Seconds,
    Millis,
    Micros,
    /// Seconds with three decimals.
    SecondsMillis,
    /// Seconds with six.
    SecondsMicros,
}

/// A fact about a transaction that a format can tell.
#[derive(Clone, Debug)]
pub(super) enum FormatItem {
    Address,
    /// A value that is never known.
    Never,
    User,
    /// When it began, in brackets.
    Began,
    BeganAs(DateFormat),
    /// When it ended.
    EndedAs(DateFormat),
    /// The first line of the request with a whole URL.
    RequestUrl,
    /// The same with its target.
    RequestLine,
    Method,
    Target,
    Path,
    /// With its `?`; empty if it is absent.
    Query,
    Arguments,
    Argument(Vec<u8>),
    /// `?` where there are arguments.
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
    /// Those of both.
    BytesBoth,
    /// `OK` if the answer reached its end.
    Completion,
    Took(Unit),
    FirstByte(Unit),
    /// The last of a head's fields of a name.
    Field(HeadSide, Vec<u8>),
    /// All of them, as nginx joins them.
    Joined(HeadSide, Vec<u8>),
    /// The cookie of a request.
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
    /// In nginx's words.
    CacheStatus,
    /// A record of Varnish's log: its tag, what it begins with, the number of a word.
    Vsl(String, Option<Vec<u8>>, Option<usize>),
    /// A field of the filters.
    Own(NamedField),
}
