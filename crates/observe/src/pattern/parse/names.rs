//! The names that formats know, and which of them a slip is likely to mean.

use super::super::item::{Item, Unit};
use super::super::time::DateFormat;
use crate::heads::Side;

/// Makes an item.
type Make = fn() -> Item;

/// Formatters of one letter: those of varnishncsa, and some that only Apache has.
pub(super) const FORMATTERS: &[(char, Make)] = &[
    ('a', || Item::Address),
    ('b', || Item::BodyOut),
    ('B', || Item::BodyOut),
    ('D', || Item::Took(Unit::Micros)),
    ('H', || Item::Protocol),
    ('h', || Item::Address),
    ('I', || Item::BytesIn),
    ('l', || Item::Never),
    ('m', || Item::Method),
    ('O', || Item::BytesOut),
    ('q', || Item::Query),
    ('r', || Item::RequestUrl),
    ('S', || Item::BytesBoth),
    ('s', || Item::Status),
    ('t', || Item::Began),
    ('T', || Item::Took(Unit::Seconds)),
    ('U', || Item::Path),
    ('u', || Item::User),
    ('V', || Item::Host),
    ('v', || Item::Site),
];

/// Variables of nginx that stand for themselves.
pub(super) const VARIABLES: &[(&str, Make)] = &[
    ("remote_addr", || Item::Address),
    ("remote_user", || Item::User),
    ("time_local", || Item::EndedAs(DateFormat::parts("%d/%b/%Y:%H:%M:%S %z"))),
    ("time_iso8601", || Item::EndedAs(DateFormat::parts("%Y-%m-%dT%H:%M:%S+00:00"))),
    ("msec", || Item::EndedAs(DateFormat::millis())),
    ("request", || Item::RequestLine),
    ("request_method", || Item::Method),
    ("request_uri", || Item::Target),
    ("uri", || Item::Path),
    ("document_uri", || Item::Path),
    ("args", || Item::Arguments),
    ("query_string", || Item::Arguments),
    ("is_args", || Item::HasArguments),
    ("status", || Item::Status),
    ("body_bytes_sent", || Item::BodyOut),
    ("bytes_sent", || Item::BytesOut),
    ("request_length", || Item::BytesIn),
    ("request_time", || Item::Took(Unit::SecondsMillis)),
    ("request_completion", || Item::Completion),
    ("server_protocol", || Item::Protocol),
    ("scheme", || Item::Scheme),
    ("https", || Item::Tls),
    ("ssl_protocol", || Item::TlsProtocol),
    ("ssl_cipher", || Item::TlsSuite),
    ("host", || Item::Host),
    ("server_name", || Item::Site),
    ("content_type", || Item::Joined(Side::Req, b"content-type".to_vec())),
    ("content_length", || Item::Joined(Side::Req, b"content-length".to_vec())),
    ("request_id", || Item::Number),
    ("connection", || Item::Session),
    ("upstream_addr", || Item::Server),
    ("upstream_status", || Item::OriginStatus),
    ("upstream_response_time", || Item::OriginTook(Unit::SecondsMillis)),
    ("upstream_header_time", || Item::OriginFirstByte(Unit::SecondsMillis)),
    ("upstream_cache_status", || Item::CacheStatus),
];

/// The name among `known` that `written` is most likely a slip of, if any is close.
pub(super) fn closest<'a>(
    written: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    // A third of the letters may be wrong.
    let tolerance = (written.chars().count() / 3).max(1);
    let distance = |name: &str| strsim::osa_distance(name, &written.to_ascii_lowercase());
    known
        .into_iter()
        .map(|name| (distance(name), name))
        .filter(|(distance, name)| *distance <= tolerance && *distance < name.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}
