//! From a format's text to its parts.

use super::time::DateFormat;
use super::{Item, Part, Unit};
use crate::heads::Side;
use crate::query::NamedField;

/// Parts being collected.
#[derive(Default)]
struct Parts(Vec<Part>);

impl Parts {
    fn text(&mut self, c: char) {
        if !matches!(self.0.last(), Some(Part::Text(_))) {
            self.0.push(Part::Text(Vec::new()));
        }
        if let Some(Part::Text(text)) = self.0.last_mut() {
            text.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }

    fn item(&mut self, item: Item) {
        self.0.push(Part::Item(item));
    }
}

/// A format of `varnishncsa`.
pub(super) fn varnish(text: &str) -> Result<Vec<Part>, String> {
    let mut parts = Parts::default();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        match c {
            '%' => {
                let (item, after) = specifier(after)?;
                match item {
                    Some(item) => parts.item(item),
                    None => parts.text('%'),
                }
                rest = after;
                continue;
            }
            '\\' if after.starts_with('n') => parts.text('\n'),
            '\\' if after.starts_with('t') => parts.text('\t'),
            '\\' if after.starts_with('"') => parts.text('"'),
            c => {
                parts.text(c);
                rest = after;
                continue;
            }
        }
        rest = &after[1..];
    }
    Ok(parts.0)
}

/// Reads the item behind a `%`, and returns it with the text that follows; `None` for `%%`.
fn specifier(text: &str) -> Result<(Option<Item>, &str), String> {
    if let Some(inner) = text.strip_prefix('{') {
        // A date's format may have braces of its own: `%{%{sec}}t` is none, but `%{sec}t` is.
        let (name, after) =
            inner.split_once('}').ok_or_else(|| format!("`%{text}`: the `}}` is missing"))?;
        let kind = after.chars().next().unwrap_or(' ');
        let item = braced(name, kind)?;
        return Ok((Some(item), &after[kind.len_utf8()..]));
    }
    let kind = text.chars().next().ok_or("the format ends with `%`: `%%` is a percent sign")?;
    let item = match kind {
        '%' => return Ok((None, &text[1..])),
        'b' => Item::BodyOut,
        'D' => Item::Took(Unit::Micros),
        'H' => Item::Protocol,
        'h' => Item::Address,
        'I' => Item::BytesIn,
        'l' => Item::Never,
        'm' => Item::Method,
        'O' => Item::BytesOut,
        'q' => Item::Query,
        'r' => Item::RequestUrl,
        's' => Item::Status,
        't' => Item::Began,
        'T' => Item::Took(Unit::Seconds),
        'U' => Item::Path,
        'u' => Item::User,
        other => return Err(format!("`%{other}` is no formatter of varnishncsa")),
    };
    Ok((Some(item), &text[1..]))
}

fn braced(name: &str, kind: char) -> Result<Item, String> {
    let wrong = |why: &str| Err(format!("`%{{{name}}}{kind}`: {why}"));
    match kind {
        'i' => Ok(Item::Field(Side::Req, name.to_ascii_lowercase().into())),
        'o' => Ok(Item::Field(Side::Resp, name.to_ascii_lowercase().into())),
        't' => DateFormat::parse(name).map(Item::BeganAs),
        'T' => match name {
            "s" => Ok(Item::Took(Unit::Seconds)),
            "ms" => Ok(Item::Took(Unit::Millis)),
            "us" => Ok(Item::Took(Unit::Micros)),
            _ => wrong("a unit belongs here: s, ms or us"),
        },
        'x' => match name.split_once(':') {
            Some(("Varnish", "time_firstbyte")) => Ok(Item::FirstByte(Unit::SecondsMicros)),
            Some(("Varnish", "hitmiss")) => Ok(Item::HitMiss),
            Some(("Varnish", "handling")) => Ok(Item::Handling),
            Some(("Varnish", "side")) => Ok(Item::ClientOrBackend),
            Some(("Varnish", "vxid")) => Ok(Item::Number),
            Some(("VCL_Log", key)) if !key.is_empty() => Ok(Item::Logged(key.into())),
            Some(("Larder", field)) => NamedField::named(field).map(Item::Own),
            Some(("VSL", _)) => wrong(
                "there are no VSL records here; %{VCL_Log:KEY}x and %{Larder:FIELD}x tell more, \
                 FIELD being one of a filter's",
            ),
            _ => wrong(
                "there are Varnish:time_firstbyte, Varnish:hitmiss, Varnish:handling, \
                 Varnish:side, Varnish:vxid, VCL_Log:KEY and Larder:FIELD",
            ),
        },
        _ => wrong("one of i, o, t, T and x belongs behind the braces"),
    }
}

/// A format of nginx's `log_format`.
pub(super) fn nginx(text: &str) -> Result<Vec<Part>, String> {
    let mut parts = Parts::default();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        if c != '$' {
            parts.text(c);
            continue;
        }
        let name;
        (name, rest) = match rest.strip_prefix('{') {
            Some(inner) => {
                inner.split_once('}').ok_or_else(|| format!("`${rest}`: the `}}` is missing"))?
            }
            None => {
                let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
                rest.split_at(rest.find(|c| !is_name(c)).unwrap_or(rest.len()))
            }
        };
        parts.item(variable(name)?);
    }
    Ok(parts.0)
}

fn variable(name: &str) -> Result<Item, String> {
    if let Some(item) = prefixed(name) {
        return item;
    }
    let local = || DateFormat::parse("%d/%b/%Y:%H:%M:%S %z");
    Ok(match name {
        "remote_addr" => Item::Address,
        "remote_user" => Item::User,
        "time_local" => Item::EndedAs(local()?),
        "time_iso8601" => Item::EndedAs(DateFormat::parse("%Y-%m-%dT%H:%M:%S+00:00")?),
        "msec" => Item::EndedAs(DateFormat::millis()),
        "request" => Item::RequestLine,
        "request_method" => Item::Method,
        "request_uri" => Item::Target,
        "uri" | "document_uri" => Item::Path,
        "args" | "query_string" => Item::Arguments,
        "is_args" => Item::HasArguments,
        "status" => Item::Status,
        "body_bytes_sent" => Item::BodyOut,
        "bytes_sent" => Item::BytesOut,
        "request_length" => Item::BytesIn,
        "request_time" => Item::Took(Unit::SecondsMillis),
        "server_protocol" => Item::Protocol,
        "scheme" => Item::Scheme,
        "https" => Item::Tls,
        "host" => Item::Host,
        "server_name" => Item::Site,
        "request_id" => Item::Number,
        "connection" => Item::Session,
        "upstream_addr" => Item::Server,
        "upstream_status" => Item::OriginStatus,
        "upstream_response_time" => Item::OriginTook(Unit::SecondsMillis),
        "upstream_header_time" => Item::OriginFirstByte(Unit::SecondsMillis),
        "upstream_cache_status" => Item::CacheStatus,
        "" => return Err("`$` without a name".to_owned()),
        name => {
            return Err(format!(
                "`${name}` is not known; there are remote_addr, remote_user, time_local, \
                 time_iso8601, msec, request, request_method, request_uri, uri, args, is_args, \
                 arg_NAME, status, body_bytes_sent, bytes_sent, request_length, request_time, \
                 server_protocol, scheme, https, host, server_name, request_id, connection, \
                 http_NAME, sent_http_NAME, upstream_http_NAME, upstream_addr, upstream_status, \
                 upstream_response_time, upstream_header_time, upstream_cache_status, and \
                 larder_NAME for each field of a filter"
            ));
        }
    })
}

/// A variable that names something else; `None` if it is not of those.
fn prefixed(name: &str) -> Option<Result<Item, String>> {
    if let Some(field) = name.strip_prefix("larder_") {
        return Some(NamedField::named_with_underscores(field).map(Item::Own));
    }
    if let Some(argument) = name.strip_prefix("arg_") {
        return Some(Ok(Item::Argument(argument.into())));
    }
    let sides =
        [("http_", Side::Req), ("sent_http_", Side::Resp), ("upstream_http_", Side::Beresp)];
    sides.into_iter().find_map(|(prefix, side)| {
        let field = name.strip_prefix(prefix).filter(|field| !field.is_empty())?;
        Some(Ok(Item::Field(side, field.to_ascii_lowercase().replace('_', "-").into())))
    })
}
