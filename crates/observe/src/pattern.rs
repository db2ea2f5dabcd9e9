//! Formats of log lines as `varnishncsa -F` and nginx's `log_format` have them.
//!
//! Both can stand in one format. Times of day are in UTC.

mod parse;
mod time;
mod values;

#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::Range;

use crate::format::Fields;
use crate::heads::Side;
use crate::query::NamedField;
use crate::record::Record;
use crate::text::{json_text, quote};
use crate::vsl;

use time::DateFormat;
use values::Value;

/// A format, ready to be written.
#[derive(Clone, Debug)]
pub struct Pattern {
    parts: Vec<Part>,
}

/// A mistake in a format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError {
    /// The part of the text that is not known, in bytes.
    pub span: Range<usize>,
    /// The mistake, in words.
    pub message: String,
    /// A suggestion: a name that may have been meant, or all there are.
    pub help: Option<String>,
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.help {
            Some(help) => write!(f, "; {help}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for PatternError {}

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
    Item(Item, Escape),
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
    Field(Side, Vec<u8>),
    /// All of them, as nginx joins them.
    Joined(Side, Vec<u8>),
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
    /// Returns the part of `text` that is not known.
    pub fn parse(text: &str, json: bool) -> Result<Self, PatternError> {
        let mut parts = parse::parts(text)?;
        if json {
            parts.iter_mut().for_each(|part| {
                if let Part::Item(_, escape) = part {
                    *escape = Escape::Json;
                }
            });
        }
        Ok(Self { parts })
    }

    /// The header fields that it tells besides the user who signed in, in small letters, each once.
    pub fn fields(&self) -> Vec<(Side, String)> {
        let mut fields: Vec<(Side, String)> = Vec::new();
        for part in &self.parts {
            let (side, name): (_, &[u8]) = match part {
                Part::Item(Item::Field(side, name) | Item::Joined(side, name), _) => (*side, name),
                Part::Item(Item::Cookie(_), _) => (Side::Req, b"cookie"),
                Part::Item(Item::RequestUrl, _) => (Side::Req, b"host"),
                Part::Item(Item::Vsl(tag, Some(prefix), _), _) => match vsl::side(tag) {
                    Some(side) => (side, prefix.as_slice()),
                    None => continue,
                },
                _ => continue,
            };
            let field = (side, String::from_utf8_lossy(name).to_ascii_lowercase());
            if !fields.contains(&field) {
                fields.push(field);
            }
        }
        fields
    }

    /// The names of the header fields that it tells, each once.
    pub fn headers(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        let user = |part: &Part| matches!(part, Part::Item(Item::User, _));
        let user = self.parts.iter().any(user).then(|| "authorization".to_owned());
        for name in self.fields().into_iter().map(|(_, name)| name).chain(user) {
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
                Part::Item(item, escape) => {
                    let value = values::value(item, record, fields, view);
                    escape.write(item, &value, out);
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
