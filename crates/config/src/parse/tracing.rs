//! `[tracing]`: the export of traces.

use std::net::IpAddr;

use origin::{Address, ServerConfig, ServerUrlError, parse_server};
use policy::headers::{FieldName, FieldValue};
use toml::de::DeValue;

use crate::model::{FieldSource, OriginTls, PlacedPath, Tracing};
use crate::reader::{Reader, SettingValue};
use crate::rows::{self, put, section};

/// OTLP's port over HTTP; over HTTPS collectors use that of HTTPS.
const PORT: u16 = 4318;

/// Fields that describe the body.
const OF_BODY: [&[u8]; 2] = [b"Content-Type", b"Content-Encoding"];

section! {
    pub(crate) TRACING, TRACING_ROWS: Traces; "[tracing]",
    "Traces: W3C trace context for origins, and spans for a collector (OTLP over HTTP, protobuf), \
     made from the log ring. Larder continues a trace that a client sends, with the client's \
     sampling decision. To add this table to a running daemon, restart the daemon.";
    @needed("[tracing] needs `endpoint`", "such as endpoint = \"http://127.0.0.1:4318\"")
    "endpoint", "a URL", "required", "URL of the collector, such as \"http://127.0.0.1:4318\" or \"https://otlp.example.com\". The default port is 4318, with https 443. Larder appends `/v1/traces`.",
        |r, item, to| to.collector = collector(r, item);
    "ca", path ca, "the system's", "PEM file with the authorities that verify the collector's certificate.";
    #Secret @table(FIELD_FILE) "headers", "a table such as { api-key = { file = \"/etc/larder/api-key\" } }", "none", "Fields of each request to the collector: names with values, or with files that contain the values (see `{ file }`). Larder never shows the values.",
        |r, item, to| to.headers = headers(r, item);
    "compression", "\"gzip\" or \"none\"", "\"gzip\"", "Coding of requests to the collector.",
        |r, item, to| put(&mut to.gzip, r.word(item, &[("gzip", true), ("none", false)]));
    "sample", "a number from 0 to 1", "0.01", "Share of the requests without a trace of their own for which Larder begins one.",
        |r, item, to| put(&mut to.sample, sample(r, item));
}

section! {
    pub(crate) FIELD_FILE, FIELD_FILE_ROWS: Option<PlacedPath>; "{ file }",
    "File with the value of a field in `[tracing] headers`, to keep the value out of the \
     configuration.";
    @needed("a value is a text, or in a file", "{ file = \"/etc/larder/api-key\" }")
    "file", "an absolute path", "required", "File with the whole value in one line, such as `Bearer ...`. Read at the start and at each reload, by the daemon's user or root. A file that everybody can read is an error.",
        |r, item, to| *to = r.path(item);
}

/// A `[tracing]` while it is read.
struct Traces {
    /// The server, and the path in front of [`Tracing::END`].
    collector: Option<(ServerConfig, String)>,
    ca: Option<PlacedPath>,
    headers: Vec<(FieldName, FieldSource)>,
    gzip: bool,
    sample: f64,
}

pub(super) fn tracing(r: &mut Reader, item: &SettingValue<'_>) -> Option<Tracing> {
    let table = r.table(item, &TRACING)?;
    let mut draft =
        Traces { collector: None, ca: None, headers: Vec::new(), gzip: true, sample: 0.01 };
    rows::read(r, &table, TRACING_ROWS, &mut draft);
    let Traces { collector, ca, headers, gzip, sample } = draft;
    let (server, path) = collector?;
    if let (false, Some(item)) = (server.tls, table.item("ca")) {
        r.warning(item.span, "`ca`, and `endpoint` lacks `https://`");
    }
    if let (false, Some(item)) = (server.tls || is_here(&server), table.item("headers")) {
        r.warning(item.span, "`headers` cross the network as they are").help =
            Some("write `endpoint` with https://".to_owned());
    }
    let place = r.location(&table.item("endpoint")?.span);
    let tls = server.tls.then(|| OriginTls { ca, ..super::plain_origin(place) });
    Some(Tracing { server, tls, path, headers, gzip, sample })
}

fn collector(r: &mut Reader, item: &SettingValue<'_>) -> Option<(ServerConfig, String)> {
    let text = r.text(item)?;
    let split = split(text).map(|(server, path)| (server, path.to_owned()));
    let why = split.as_ref().err().copied();
    if let Some(why) = why {
        let found = r.error(item.span.clone(), format!("`{text}` is no collector's URL"));
        found.help = Some(match why {
            Some(why) => why.to_string(),
            None => "`https://` or `http://` and a host, perhaps with port and path".to_owned(),
        });
    }
    split.ok()
}

/// Splits a URL into the server, and the path in front of [`Tracing::END`] without its final slash.
/// The error names a fault of the server, if that is one.
fn split(url: &str) -> Result<(ServerConfig, &str), Option<ServerUrlError>> {
    let (scheme, rest) = url.split_once("://").ok_or(None)?;
    let is_plain = rest.bytes().all(|b| b.is_ascii_graphic() && !b"?#@".contains(&b));
    if !["http", "https"].contains(&scheme) || !is_plain {
        return Err(None);
    }
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let says_port = authority.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
    let server = match scheme == "http" && !says_port && !authority.is_empty() {
        true => parse_server(&format!("{scheme}://{authority}:{PORT}")),
        false => parse_server(&format!("{scheme}://{authority}")),
    };
    let path = path.trim_end_matches('/');
    let path = path.strip_suffix(Tracing::END).unwrap_or(path).trim_end_matches('/');
    server.map(|server| (server, path)).map_err(Some)
}

/// Returns true if a server is on this machine.
fn is_here(server: &ServerConfig) -> bool {
    let Address::Tcp { host, .. } = &server.address else { return true };
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Reads fields of every request. A fault is located at the name: the value may be a secret.
fn headers(r: &mut Reader, item: &SettingValue<'_>) -> Vec<(FieldName, FieldSource)> {
    let mut fields: Vec<(FieldName, FieldSource)> = Vec::new();
    for (name, span, value) in r.pairs(item) {
        let name = match FieldName::parse(name) {
            Ok(name) => name,
            Err(why) => {
                r.error(span, format!("`{}`: {why}", name.escape_debug()));
                continue;
            }
        };
        let same = |other: &[u8]| other.eq_ignore_ascii_case(name.as_bytes());
        if OF_BODY.iter().any(|own| same(own)) {
            r.error(span.clone(), format!("`{name}` describes the body, and Larder sets it"));
        }
        if fields.iter().any(|(earlier, _)| same(earlier.as_bytes())) {
            r.error(span.clone(), format!("`{name}` occurs twice"));
        }
        let source = match value.value {
            DeValue::String(text) => match FieldValue::parse(text) {
                Ok(value) if !value.as_bytes().is_empty() => Some(FieldSource::Text(value)),
                Ok(_) => {
                    r.error(span, format!("`{name}` is empty"));
                    None
                }
                Err(why) => {
                    r.error(span, format!("`{name}`: {why}"));
                    None
                }
            },
            _ => from_file(r, &value),
        };
        fields.extend(source.map(|source| (name, source)));
    }
    fields
}

/// Reads `{ file = "..." }`.
fn from_file(r: &mut Reader, value: &SettingValue<'_>) -> Option<FieldSource> {
    let mut file = None;
    rows::read_table(r, value, &FIELD_FILE, FIELD_FILE_ROWS, &mut file);
    file.map(FieldSource::File)
}

/// Reads a share.
fn sample(r: &mut Reader, item: &SettingValue<'_>) -> Option<f64> {
    let text = match item.value {
        DeValue::Float(number) => number.as_str(),
        DeValue::Integer(number) => number.as_str(),
        _ => {
            r.wrong_type(item);
            return None;
        }
    };
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    if share.is_none() {
        r.error(item.span.clone(), "`sample` is a share from 0 to 1");
    }
    share
}
