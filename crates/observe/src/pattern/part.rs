//! Parts of a log line, and the escaping of values.

use super::item::FormatItem;
use super::values::Value;
use crate::text::{json_text, quote};

/// The escaping of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Escape {
    /// As varnishncsa does.
    Varnish,
    /// As nginx does.
    Nginx,
    /// As inside JSON strings.
    Json,
}

/// A part of a line.
#[derive(Clone, Debug)]
pub(super) enum FormatPart {
    Text(Vec<u8>),
    Item(FormatItem, Escape),
}

impl Escape {
    /// Appends the value of an item.
    pub(super) fn write(self, item: &FormatItem, value: &Value<'_>, out: &mut Vec<u8>) {
        match (self, value) {
            (_, Value::Number(number)) => out.extend_from_slice(number.as_bytes()),
            (Self::Json, Value::NoText) => {}
            (Self::Json, Value::NoNumber) => out.extend_from_slice(b"null"),
            (_, Value::NoText | Value::NoNumber) => out.push(b'-'),
            (Self::Json, Value::Text(text)) => json_text(out, text),
            (Self::Nginx, Value::Text(text)) => quote(out, text),
            // The quotes of a first line belong to the format.
            (Self::Varnish, Value::Text(text)) if matches!(item, FormatItem::Began) => {
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
