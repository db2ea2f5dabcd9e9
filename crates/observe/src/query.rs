//! Filters: which records are of interest.
//!
//! A small language: comparisons of a record's fields with values, joined by `and`, `or`, `not` and
//! parentheses.
//!
//! ```text
//! resp.status >= 500 and req.url ~ "^/api"
//! time.total > 250ms and not served == hit
//! client.ip == 10.0.0.0/8 or req.http.user-agent ~ "(?i)bot"
//! ```
//!
//! A field that stands alone is true when it says something: `error`, `not limit`.

mod field;
mod filter_parser;
mod lexer;
mod node;
#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::Range;

use crate::format::FieldPositions;
use crate::record::Record;

use field::QueryField;
pub use field::{ABOUT, FieldDescription};
pub(crate) use field::{NamedField, RecordValue};
use lexer::SpannedError;
use node::Node;

/// A filter, ready to be asked.
#[derive(Clone, Debug)]
pub struct Query(Node);

/// Why a text is no filter, and where in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryError {
    /// The text.
    pub text: String,
    /// The part that is wrong, in bytes.
    pub span: Range<usize>,
    /// The mistake, in words.
    pub message: String,
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let before = self.text.get(..self.span.start).unwrap_or_default().chars().count();
        let marked = self.text.get(self.span.clone()).unwrap_or_default().chars().count();
        let carets = "^".repeat(marked.max(1));
        let shown: String =
            self.text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        write!(f, "{shown}\n{:before$}{carets} {}", "", self.message)
    }
}

impl std::error::Error for QueryError {}

impl Query {
    /// Reads a filter for records with `fields`.
    ///
    /// # Errors
    /// Returns the mistake in `text`, and its place.
    pub fn parse(text: &str, fields: &FieldPositions) -> Result<Self, QueryError> {
        filter_parser::query(text, fields).map(Self).map_err(|SpannedError { span, message }| {
            QueryError { text: text.to_owned(), span, message }
        })
    }

    /// Returns true if the filter itself tests the kind or the parent of transactions.
    pub fn names_kind(&self) -> bool {
        self.0.names(QueryField::Kind) || self.0.names(QueryField::Parent)
    }

    /// Returns true if `record` passes the filter.
    pub fn matches(&self, record: &Record<'_>) -> bool {
        self.0.holds(record)
    }
}
