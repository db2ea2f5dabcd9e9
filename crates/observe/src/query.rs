//! Queries: filters of records.
//!
//! A query compares fields of a record with values, and joins comparisons by `and`, `or`, `not` and
//! parentheses.
//!
//! ```text
//! resp.status >= 500 and req.url ~ "^/api"
//! time.total > 250ms and not served == hit
//! client.ip == 10.0.0.0/8 or req.http.user-agent ~ "(?i)bot"
//! ```
//!
//! A field that stands alone is true unless it is empty: `error`, `not limit`.

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

/// A parsed filter.
#[derive(Clone, Debug)]
pub struct Query(Node);

/// A mistake in a filter, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryError {
    /// The filter's text.
    pub text: String,
    /// The wrong part, in bytes.
    pub span: Range<usize>,
    /// The message.
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
    /// Parses a filter for records with `fields`.
    ///
    /// # Errors
    /// The mistake in `text`, and its place.
    pub fn parse(text: &str, fields: &FieldPositions) -> Result<Self, QueryError> {
        filter_parser::query(text, fields).map(Self).map_err(|SpannedError { span, message }| {
            QueryError { text: text.to_owned(), span, message }
        })
    }

    /// Returns true if the filter tests the kind or the parent of transactions.
    pub fn names_kind(&self) -> bool {
        self.0.names(QueryField::Kind) || self.0.names(QueryField::Parent)
    }

    /// Returns true if `record` matches the filter.
    pub fn matches(&self, record: &Record<'_>) -> bool {
        self.0.holds(record)
    }
}
