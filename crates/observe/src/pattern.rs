//! Formats of log lines as `varnishncsa -F` and nginx's `log_format` have them.
//!
//! A text with `%` in it is of the first kind, any other of the second. Times of day are in UTC.

mod parse;
mod time;
mod values;

#[cfg(test)]
mod tests;

use crate::format::Fields;
use crate::heads::Side;
use crate::query::NamedField;
use crate::record::Record;
use crate::text::{json_text, quote};

use time::DateFormat;
use values::Value;

/// A format, ready to be written.
#[derive(Clone, Debug)]
pub struct Pattern {
    parts: Vec<Part>,
    escape: Escape,
}

/// The escaping of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Escape {
    /// As varnishncsa does.
    Varnish,
    /// As nginx does.
    Nginx,
    /// As the inside of JSON's strings.
    Json,
}

#[derive(Clone, Debug)]
enum Part {
    Text(Vec<u8>),
    Item(Item),
}

/// In what a time is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
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
enum Item {
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
    Host,
    Site,
    Status,
    BodyOut,
    BytesIn,
    BytesOut,
    Took(Unit),
    FirstByte(Unit),
    Field(Side, Vec<u8>),
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
    /// A field of the filters.
    Own(NamedField),
}

/// From which side a transaction is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// The client's.
    Client,
    /// The origin's, where it was asked: Larder is its client.
    Backend,
}

impl Pattern {
    /// Reads a format; with `json` values are written so that they fit between JSON's quotes.
    ///
    /// # Errors
    /// Returns a message about the part of `text` that is not known.
    pub fn parse(text: &str, json: bool) -> Result<Self, String> {
        let (parts, escape) = match text.contains('%') {
            true => (parse::varnish(text)?, Escape::Varnish),
            false => (parse::nginx(text)?, Escape::Nginx),
        };
        Ok(Self { parts, escape: if json { Escape::Json } else { escape } })
    }

    /// The names of the header fields that it tells, each once.
    pub fn headers(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for part in &self.parts {
            let name: &[u8] = match part {
                Part::Item(Item::Field(_, name)) => name,
                Part::Item(Item::User) => b"authorization",
                Part::Item(Item::RequestUrl) => b"host",
                _ => continue,
            };
            let name = String::from_utf8_lossy(name).into_owned();
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// Appends the line of a record.
    pub fn write(&self, record: &Record<'_>, fields: &Fields, view: View, out: &mut Vec<u8>) {
        for part in &self.parts {
            match part {
                Part::Text(text) => out.extend_from_slice(text),
                Part::Item(item) => {
                    let value = values::value(item, record, fields, view);
                    self.escape.write(item, &value, out);
                }
            }
        }
        out.push(b'\n');
    }
}

impl Escape {
    fn write(self, item: &Item, value: &Value<'_>, out: &mut Vec<u8>) {
        match (self, value) {
            (_, Value::Number(number)) => out.extend_from_slice(number.as_bytes()),
            (Self::Json, Value::NoText) => {}
            (Self::Json, Value::NoNumber) => out.extend_from_slice(b"null"),
            (_, Value::NoText | Value::NoNumber) => out.push(b'-'),
            (Self::Json, Value::Text(text)) => json_text(out, text),
            (Self::Nginx, Value::Text(text)) => quote(out, text),
            // The quotes of a first line are the format's own.
            (Self::Varnish, Value::Text(text)) if matches!(item, Item::Began) => {
                out.extend_from_slice(text);
            }
            (Self::Varnish, Value::Text(text)) => quote_as_varnish(text, out),
        }
    }
}

/// Writes text as Varnish's `VSB_QUOTE_ESCHEX` does.
fn quote_as_varnish(text: &[u8], out: &mut Vec<u8>) {
    for byte in text {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', *byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x20..0x7f => out.push(*byte),
            byte => out.extend_from_slice(format!("\\x{byte:02x}").as_bytes()),
        }
    }
}
