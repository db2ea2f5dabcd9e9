//! Patterns of log lines, in the languages of `varnishncsa -F` and nginx's `log_format`. One
//! pattern may mix both. Times of day are in UTC.

mod error;
mod format_parser;
mod item;
mod part;
mod time;
mod values;

#[cfg(test)]
mod tests;

use crate::format::FieldPositions;
use crate::heads::HeadSide;
use crate::record::Record;
use crate::vsl;

pub use crate::view::TransactionView;
pub use error::PatternError;

use item::FormatItem;
use part::{Escape, FormatPart};

/// A parsed pattern.
#[derive(Clone, Debug)]
pub struct Pattern {
    parts: Vec<FormatPart>,
}

impl Pattern {
    /// Parses a pattern. With `json`, values are escaped for JSON strings.
    ///
    /// # Errors
    /// An unknown part of `text`.
    pub fn parse(text: &str, json: bool) -> Result<Self, PatternError> {
        let mut parts = format_parser::parts(text)?;
        if json {
            parts.iter_mut().for_each(|part| {
                if let FormatPart::Item(_, escape) = part {
                    *escape = Escape::Json;
                }
            });
        }
        Ok(Self { parts })
    }

    /// The header fields that the pattern writes, in lower case, without duplicates. The user of
    /// the scheme Basic is not among them.
    pub fn fields(&self) -> Vec<(HeadSide, String)> {
        let mut fields: Vec<(HeadSide, String)> = Vec::new();
        for part in &self.parts {
            let (side, name): (_, &[u8]) = match part {
                FormatPart::Item(
                    FormatItem::Field(side, name) | FormatItem::Joined(side, name),
                    _,
                ) => (*side, name),
                FormatPart::Item(FormatItem::Cookie(_), _) => (HeadSide::Req, b"cookie"),
                FormatPart::Item(FormatItem::RequestUrl, _) => (HeadSide::Req, b"host"),
                FormatPart::Item(FormatItem::Vsl(tag, Some(prefix), _), _) => {
                    match vsl::side(tag) {
                        Some(side) => (side, prefix.as_slice()),
                        None => continue,
                    }
                }
                _ => continue,
            };
            let field = (side, String::from_utf8_lossy(name).to_ascii_lowercase());
            if !fields.contains(&field) {
                fields.push(field);
            }
        }
        fields
    }

    /// The names of the header fields that the pattern writes, without duplicates.
    pub fn headers(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        let user = |part: &FormatPart| matches!(part, FormatPart::Item(FormatItem::User, _));
        let user = self.parts.iter().any(user).then(|| "authorization".to_owned());
        for name in self.fields().into_iter().map(|(_, name)| name).chain(user) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// Appends the log line of a record.
    pub fn write(
        &self,
        record: &Record<'_>,
        fields: &FieldPositions,
        view: TransactionView,
        out: &mut Vec<u8>,
    ) {
        for part in &self.parts {
            match part {
                FormatPart::Text(text) => out.extend_from_slice(text),
                FormatPart::Item(item, escape) => {
                    let value = values::value(item, record, fields, view);
                    escape.write(item, &value, out);
                }
            }
        }
        out.push(b'\n');
    }
}
