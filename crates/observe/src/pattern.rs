//! Formats of log lines as `varnishncsa -F` and nginx's `log_format` have them.
//!
//! Both can stand in one format. Times of day are in UTC.

mod error;
mod item;
mod parse;
mod part;
mod time;
mod values;

#[cfg(test)]
mod tests;

use crate::format::Fields;
use crate::heads::Side;
use crate::record::Record;
use crate::vsl;

pub use crate::view::View;
pub use error::PatternError;

use item::Item;
use part::{Escape, Part};

/// A format, ready to be written.
#[derive(Clone, Debug)]
pub struct Pattern {
    parts: Vec<Part>,
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
