//! Names of formatters and variables, and the suggestion for a misspelled one.

use super::super::item::{FormatItem, Unit};
use super::super::time::DateFormat;
use crate::heads::HeadSide;

/// Constructs an item.
type Make = fn() -> FormatItem;

/// Formatters of one letter: varnishncsa's, and some of Apache's.
pub(super) const FORMATTERS: &[(char, Make)] = &[
    ('a', || FormatItem::Address),
    ('b', || FormatItem::BodyOut),
    ('B', || FormatItem::BodyOut),
    ('D', || FormatItem::Took(Unit::Micros)),
    ('H', || FormatItem::Protocol),
    ('h', || FormatItem::Address),
    ('I', || FormatItem::BytesIn),
    ('l', || FormatItem::Never),
    ('m', || FormatItem::Method),
    ('O', || FormatItem::BytesOut),
    ('q', || FormatItem::Query),
    ('r', || FormatItem::RequestUrl),
    ('S', || FormatItem::BytesBoth),
    ('s', || FormatItem::Status),
    ('t', || FormatItem::Began),
    ('T', || FormatItem::Took(Unit::Seconds)),
    ('U', || FormatItem::Path),
    ('u', || FormatItem::User),
    ('V', || FormatItem::Host),
    ('v', || FormatItem::Site),
];

/// Variables of nginx without a parameter.
pub(super) const VARIABLES: &[(&str, Make)] = &[
    ("remote_addr", || FormatItem::Address),
    ("remote_user", || FormatItem::User),
    ("time_local", || FormatItem::EndedAs(DateFormat::parts("%d/%b/%Y:%H:%M:%S %z"))),
    ("time_iso8601", || FormatItem::EndedAs(DateFormat::parts("%Y-%m-%dT%H:%M:%S+00:00"))),
    ("msec", || FormatItem::EndedAs(DateFormat::millis())),
    ("request", || FormatItem::RequestLine),
    ("request_method", || FormatItem::Method),
    ("request_uri", || FormatItem::Target),
    ("uri", || FormatItem::Path),
    ("document_uri", || FormatItem::Path),
    ("args", || FormatItem::Arguments),
    ("query_string", || FormatItem::Arguments),
    ("is_args", || FormatItem::HasArguments),
    ("status", || FormatItem::Status),
    ("body_bytes_sent", || FormatItem::BodyOut),
    ("bytes_sent", || FormatItem::BytesOut),
    ("request_length", || FormatItem::BytesIn),
    ("request_time", || FormatItem::Took(Unit::SecondsMillis)),
    ("request_completion", || FormatItem::Completion),
    ("server_protocol", || FormatItem::Protocol),
    ("scheme", || FormatItem::Scheme),
    ("https", || FormatItem::Tls),
    ("ssl_protocol", || FormatItem::TlsProtocol),
    ("ssl_cipher", || FormatItem::TlsSuite),
    ("host", || FormatItem::Host),
    ("server_name", || FormatItem::Site),
    ("content_type", || FormatItem::Joined(HeadSide::Req, b"content-type".to_vec())),
    ("content_length", || FormatItem::Joined(HeadSide::Req, b"content-length".to_vec())),
    ("request_id", || FormatItem::Number),
    ("connection", || FormatItem::Session),
    ("upstream_addr", || FormatItem::Server),
    ("upstream_status", || FormatItem::OriginStatus),
    ("upstream_response_time", || FormatItem::OriginTook(Unit::SecondsMillis)),
    ("upstream_header_time", || FormatItem::OriginFirstByte(Unit::SecondsMillis)),
    ("upstream_cache_status", || FormatItem::CacheStatus),
];

/// The name among `known` that is closest to `written`; `None` if all differ too much.
pub(super) fn closest<'a>(
    written: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    // At most a third of the letters may differ.
    let tolerance = (written.chars().count() / 3).max(1);
    let distance = |name: &str| strsim::osa_distance(name, &written.to_ascii_lowercase());
    known
        .into_iter()
        .map(|name| (distance(name), name))
        .filter(|(distance, name)| *distance <= tolerance && *distance < name.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}
