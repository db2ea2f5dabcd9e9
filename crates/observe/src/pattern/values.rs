//! Values of a record for the items of a log format.

use std::borrow::Cow;

use super::item::{FormatItem, Unit};
use crate::field_subscriptions::basic_user;
use crate::format::{FieldPositions, version};
use crate::heads::{self, HeadSide};
use crate::query::RecordValue;
use crate::record::{Flags, Record, Served};
use crate::steps::{self, VclTraceLine};
use crate::view::TransactionView;
use crate::vsl;

/// A value.
pub(super) enum Value<'a> {
    Text(Cow<'a, [u8]>),
    /// A number.
    Number(String),
    /// A text that is absent.
    NoText,
    /// A number that is absent.
    NoNumber,
}

impl<'a> Value<'a> {
    fn text(text: &'a [u8]) -> Self {
        Self::Text(text.into())
    }

    fn word(word: &'static str) -> Self {
        Self::Text(word.as_bytes().into())
    }

    fn own(text: String) -> Self {
        Self::Text(text.into_bytes().into())
    }

    fn number(number: u64) -> Self {
        Self::Number(number.to_string())
    }

    fn maybe(text: Option<&'a [u8]>) -> Self {
        text.map_or(Self::NoText, Self::text)
    }

    fn some(text: &'a [u8]) -> Self {
        Self::maybe(Some(text).filter(|text| !text.is_empty()))
    }
}

/// The value of `item` for `record`.
pub(super) fn value<'a>(
    item: &FormatItem,
    record: &Record<'a>,
    fields: &FieldPositions,
    view: TransactionView,
) -> Value<'a> {
    let back = view == TransactionView::Backend;
    match item {
        FormatItem::Address => address_of(record, back),
        FormatItem::Never => Value::NoText,
        FormatItem::User => user(record, fields).map_or(Value::NoText, Value::Text),
        FormatItem::Field(side, name) => {
            Value::maybe(header(record, fields, seen_from(*side, back), name))
        }
        FormatItem::Joined(side, name) => {
            joined(record, fields, seen_from(*side, back), name).map_or(Value::NoText, Value::Text)
        }
        FormatItem::Cookie(name) => {
            let side = seen_from(HeadSide::Req, back);
            let cookies = joined(record, fields, side, b"cookie");
            let found = cookies.and_then(|cookies| cookie(&cookies, name).map(<[u8]>::to_vec));
            found.map_or(Value::NoText, |value| Value::Text(value.into()))
        }
        FormatItem::Status | FormatItem::OriginStatus
            if back || matches!(item, FormatItem::OriginStatus) =>
        {
            match record.origin_status {
                0 => Value::NoNumber,
                status => Value::number(status.into()),
            }
        }
        FormatItem::Status => Value::number(record.status.into()),
        FormatItem::Completion if record.flags.has(Flags::CUT_OFF) => Value::word(""),
        FormatItem::Completion => Value::word("OK"),
        FormatItem::HitMiss => Value::word(if is_hit(record.served) { "hit" } else { "miss" }),
        FormatItem::Handling => Value::word(handling(record)),
        FormatItem::ClientOrBackend => Value::word(if back { "b" } else { "c" }),
        FormatItem::Number if record.xid != 0 => Value::number(record.xid.into()),
        FormatItem::Number => Value::own(format!("{:x}", record.id)),
        // Only sessions under VCL have numbers.
        FormatItem::Session if record.session == 0 => Value::NoNumber,
        FormatItem::Session => Value::number(record.session.into()),
        FormatItem::Logged(key) => Value::maybe(logged(record, key)),
        // nginx writes no scheme there.
        FormatItem::Server => {
            let scheme = memchr::memmem::find(record.server, b"://").map_or(0, |at| at + 3);
            Value::some(record.server.get(scheme..).unwrap_or_default())
        }
        FormatItem::CacheStatus => cache_status(record.served).map_or(Value::NoText, Value::word),
        FormatItem::Site => Value::some(record.site),
        FormatItem::Vsl(tag, prefix, field) => {
            let lines = vsl::lines(record, view);
            let found = vsl::find(&lines, tag, prefix.as_deref(), *field);
            found.map_or(Value::NoText, |text| Value::Text(text.into()))
        }
        FormatItem::Own(field) => match field.of(record) {
            RecordValue::Nothing | RecordValue::Client(None) => Value::NoText,
            RecordValue::Text(text) => Value::some(text),
            RecordValue::Number(number) => Value::Number(number.to_string()),
            RecordValue::Client(Some(client)) => Value::own(client.to_string()),
        },
        item => match moment(item, record, back).or_else(|| bytes(item, record)) {
            Some(value) => value,
            None => of_request(item, record, fields, back),
        },
    }
}

/// The address of the peer: the client's, or the server's with `back`.
fn address_of<'a>(record: &Record<'a>, back: bool) -> Value<'a> {
    match record.client {
        _ if back => address(record.server).map_or(Value::NoText, Value::own),
        Some(client) => Value::own(client.to_string()),
        None if record.is_client() => Value::word("unix:"),
        None => Value::NoText,
    }
}

/// The value of an item that counts bytes; `None` for any other item.
fn bytes<'a>(item: &FormatItem, record: &Record<'a>) -> Option<Value<'a>> {
    let bytes_in = u64::from(record.head_in) + record.body_in;
    let bytes_out = u64::from(record.head_out) + record.body_out;
    Some(Value::number(match item {
        FormatItem::BodyOut => record.body_out,
        FormatItem::BytesIn => bytes_in,
        FormatItem::BytesOut => bytes_out,
        FormatItem::BytesBoth => bytes_in + bytes_out,
        _ => return None,
    }))
}

/// The value of an item that is a time; `None` for any other item.
fn moment<'a>(item: &FormatItem, record: &Record<'a>, back: bool) -> Option<Value<'a>> {
    let p = &record.phases;
    let (sent, head) = (p.fetch.map(u64::from), p.head.map(u64::from));
    let since = |us: Option<u64>| us.zip(sent).map(|(us, sent)| us.saturating_sub(sent));
    let start_us = record.start_unix_ms * 1000;
    let began_us = start_us + sent.filter(|_| back).unwrap_or(0);
    let took = if back { since(Some(p.end)) } else { Some(p.end) };
    let first = if back { since(head) } else { Some(record.ttfb_us()) };
    Some(match item {
        FormatItem::Began => {
            let date = message::date::LogDate::new(began_us / 1_000_000);
            Value::own(format!("[{}]", date.as_str()))
        }
        FormatItem::BeganAs(format) => Value::own(format.text(began_us)),
        FormatItem::EndedAs(format) => Value::own(format.text(start_us + p.end)),
        FormatItem::Took(unit) => time(took, *unit),
        FormatItem::FirstByte(unit) => time(first, *unit),
        FormatItem::OriginTook(unit) => time(since(Some(p.end)), *unit),
        FormatItem::OriginFirstByte(unit) => time(since(head), *unit),
        _ => return None,
    })
}

fn time<'a>(us: Option<u64>, unit: Unit) -> Value<'a> {
    let Some(us) = us else { return Value::NoNumber };
    Value::Number(match unit {
        Unit::Seconds => (us / 1_000_000).to_string(),
        Unit::Millis => (us / 1000).to_string(),
        Unit::Micros => us.to_string(),
        Unit::SecondsMillis => format!("{}.{:03}", us / 1_000_000, us / 1000 % 1000),
        Unit::SecondsMicros => format!("{}.{:06}", us / 1_000_000, us % 1_000_000),
    })
}

/// The value of an item that describes the request.
fn of_request<'a>(
    item: &FormatItem,
    record: &Record<'a>,
    fields: &FieldPositions,
    back: bool,
) -> Value<'a> {
    let target = record.target;
    let query_at = memchr::memchr(b'?', target);
    let (path, query) = target.split_at(query_at.unwrap_or(target.len()));
    let protocol = version(if back { 11 } else { record.version });
    match item {
        // The TLS parameters are the client's, not those of connections to origins.
        FormatItem::TlsProtocol | FormatItem::TlsSuite if back => Value::NoText,
        FormatItem::TlsProtocol => record.suite.protocol().map_or(Value::NoText, Value::word),
        FormatItem::TlsSuite => match record.suite.name() {
            Some(name) => Value::own(name.into_owned()),
            None => Value::NoText,
        },
        FormatItem::Scheme => {
            Value::word(if record.flags.has(Flags::TLS) { "https" } else { "http" })
        }
        FormatItem::Tls => Value::word(if record.flags.has(Flags::TLS) { "on" } else { "" }),
        // No part of the request line could be read.
        _ if record.flags.has(Flags::REFUSED) => match item {
            FormatItem::Query | FormatItem::HasArguments => Value::word(""),
            FormatItem::Protocol => Value::word("HTTP/1.0"),
            FormatItem::RequestLine => Value::some(record.target),
            _ => Value::NoText,
        },
        FormatItem::RequestUrl => {
            let side = if back { HeadSide::Bereq } else { HeadSide::Req };
            let host = header(record, fields, side, b"host").unwrap_or(record.host);
            let parts = [record.method, b" http://", host, target, b" ", protocol.as_bytes()];
            Value::Text(parts.concat().into())
        }
        FormatItem::RequestLine => {
            Value::Text([record.method, b" ", target, b" ", protocol.as_bytes()].concat().into())
        }
        FormatItem::Method => Value::some(record.method),
        FormatItem::Target => Value::some(target),
        FormatItem::Path => Value::some(path),
        FormatItem::Query => Value::text(query),
        FormatItem::Arguments => Value::some(query.get(1..).unwrap_or_default()),
        FormatItem::Argument(name) => {
            Value::maybe(argument(query.get(1..).unwrap_or_default(), name))
        }
        FormatItem::HasArguments => Value::word(if query.len() > 1 { "?" } else { "" }),
        FormatItem::Protocol => Value::word(protocol),
        FormatItem::Host => Value::some(record.host),
        _ => Value::NoText,
    }
}

/// The head that `side` means from the client's or the backend's view.
fn seen_from(side: HeadSide, back: bool) -> HeadSide {
    match (side, back) {
        (HeadSide::Req, true) => HeadSide::Bereq,
        (HeadSide::Resp, true) => HeadSide::Beresp,
        (side, _) => side,
    }
}

/// The user who authenticated with the scheme Basic.
fn user<'a>(record: &Record<'a>, fields: &FieldPositions) -> Option<Cow<'a, [u8]>> {
    let told = || header(record, fields, HeadSide::Req, b"authorization").and_then(basic_user);
    fields.user(record).map(Cow::Borrowed).or_else(|| told().map(Cow::Owned))
}

/// The values of all fields of a name, as nginx joins them since 1.23.
fn joined<'a>(
    record: &Record<'a>,
    fields: &FieldPositions,
    side: HeadSide,
    name: &[u8],
) -> Option<Cow<'a, [u8]>> {
    let is_it = |f: &heads::Field<'a>| f.side == side && f.name.eq_ignore_ascii_case(name);
    let all: Vec<_> =
        heads::fields(record.heads()).filter(is_it).map(|field| field.value).collect();
    match *all.as_slice() {
        [] => header(record, fields, side, name).map(Cow::Borrowed),
        [one] => Some(one.into()),
        _ => {
            let between: &[u8] = if name == b"cookie" { b"; " } else { b", " };
            Some(all.join(between).into())
        }
    }
}

/// The value of the cookie called `name`.
fn cookie<'a>(cookies: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    cookies.split(|byte| *byte == b';').find_map(|pair| {
        let (own, value) = pair.trim_ascii().split_at_checked(name.len())?;
        if own == name { value.strip_prefix(b"=") } else { None }
    })
}

/// A field's value, from the logged heads or from the request fields of the ring.
fn header<'a>(
    record: &Record<'a>,
    fields: &FieldPositions,
    side: HeadSide,
    name: &[u8],
) -> Option<&'a [u8]> {
    let kept = || {
        let name = std::str::from_utf8(name).ok().filter(|_| side == HeadSide::Req)?;
        record.values.iter().nth(fields.position(name)?).flatten()
    };
    heads::value(record.heads(), side, name).or_else(kept)
}

fn argument<'a>(query: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    query.split(|byte| *byte == b'&').find_map(|pair| {
        let (own, value) = pair.split_at_checked(name.len())?;
        if own.eq_ignore_ascii_case(name) { value.strip_prefix(b"=") } else { None }
    })
}

/// The value of the last `key:value` that the VCL program logged.
fn logged<'a>(record: &Record<'a>, key: &[u8]) -> Option<&'a [u8]> {
    let of_key = |step: VclTraceLine<'a>| match step {
        VclTraceLine::Logged { tag: b"VCL_Log", text } => {
            let (own, value) = text.split_at_checked(key.len())?;
            let value = value.strip_prefix(b":")?;
            own.eq_ignore_ascii_case(key).then(|| value.trim_ascii())
        }
        _ => None,
    };
    steps::steps(record.vcl).filter_map(of_key).last()
}

/// The address in a server's name.
fn address(server: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(server);
    let text = text.rsplit_once("://").map_or(&*text, |(_, rest)| rest);
    let host = text.rsplit_once(':').map_or(text, |(host, _)| host);
    (!host.is_empty()).then(|| host.trim_matches(['[', ']']).to_owned())
}

/// Returns true for results that other servers call a hit. Files are among them.
fn is_hit(served: Served) -> bool {
    served.is_hit() || served == Served::File
}

/// The cache result in the terms of varnishncsa's `Varnish:handling`.
fn handling(record: &Record<'_>) -> &'static str {
    match record.served {
        _ if record.flags.has(Flags::TUNNEL) => "pipe",
        Served::Pass => "pass",
        Served::Synth | Served::Peer => "synth",
        served if is_hit(served) => "hit",
        _ => "miss",
    }
}

/// The cache result in the terms of nginx's `$upstream_cache_status`.
fn cache_status(served: Served) -> Option<&'static str> {
    Some(match served {
        Served::Hit | Served::Collapsed => "HIT",
        Served::Stale => "UPDATING",
        Served::StaleOnError => "STALE",
        Served::Revalidated => "REVALIDATED",
        Served::Miss | Served::HitForMiss => "MISS",
        Served::Pass => "BYPASS",
        Served::Refresh => "EXPIRED",
        Served::Synth | Served::File | Served::Peer => return None,
    })
}
