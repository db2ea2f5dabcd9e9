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
mod lex;
mod parse;
#[cfg(test)]
mod tests;

use std::fmt;
use std::net::IpAddr;
use std::ops::Range;

use ipnet::IpNet;
use regex::bytes::Regex;

use crate::format::Fields;
use crate::record::Record;

use field::QueryField;
pub use field::{ABOUT, About};
pub(crate) use field::{NamedField, Seen};

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

#[derive(Clone, Debug)]
enum Node {
    And(Vec<Self>),
    Or(Vec<Self>),
    Not(Box<Self>),
    Says(QueryField),
    Text(QueryField, TextTest),
    Number(QueryField, Op, i128),
    Client(bool, IpNet),
}

#[derive(Clone, Debug)]
enum TextTest {
    Is(bool, Vec<u8>),
    Matches(bool, Regex),
}

/// A comparison of two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Matches,
    MatchesNot,
}

impl Query {
    /// Reads a filter for records with `fields`.
    ///
    /// # Errors
    /// Returns the mistake in `text`, and its place.
    pub fn parse(text: &str, fields: &Fields) -> Result<Self, QueryError> {
        parse::query(text, fields).map(Self).map_err(|parse::Wrong { span, message }| QueryError {
            text: text.to_owned(),
            span,
            message,
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

impl Node {
    fn names(&self, wanted: QueryField) -> bool {
        match self {
            Self::And(nodes) | Self::Or(nodes) => nodes.iter().any(|node| node.names(wanted)),
            Self::Not(node) => node.names(wanted),
            Self::Says(field) | Self::Text(field, _) | Self::Number(field, ..) => *field == wanted,
            Self::Client(..) => wanted == QueryField::Client,
        }
    }

    fn holds(&self, record: &Record<'_>) -> bool {
        match self {
            Self::And(all) => all.iter().all(|node| node.holds(record)),
            Self::Or(any) => any.iter().any(|node| node.holds(record)),
            Self::Not(node) => !node.holds(record),
            Self::Says(field) => match field.of(record) {
                Seen::Nothing => false,
                Seen::Text(text) => !text.is_empty(),
                Seen::Number(number) => number != 0,
                Seen::Client(client) => client.is_some(),
            },
            Self::Text(field, test) => {
                let text = match field.of(record) {
                    Seen::Text(text) => text,
                    _ => b"",
                };
                match test {
                    test if *field == QueryField::Vcl => test.holds_for_lines(text),
                    // Words for how it was served are the only ones whose case says nothing.
                    TextTest::Is(wanted, word)
                        if matches!(field, QueryField::Served | QueryField::Kind) =>
                    {
                        text.eq_ignore_ascii_case(word) == *wanted
                    }
                    TextTest::Is(wanted, word) => (text == word) == *wanted,
                    TextTest::Matches(wanted, regex) => regex.is_match(text) == *wanted,
                }
            }
            Self::Number(field, op, value) => match field.of(record) {
                Seen::Number(number) => op.holds(number, *value),
                // What is not known is not equal to anything, and neither more nor less.
                _ => *op == Op::NotEqual,
            },
            Self::Client(wanted, net) => {
                let inside = |address: IpAddr| net.contains(&address);
                record.client.is_some_and(inside) == *wanted
            }
        }
    }
}

impl TextTest {
    /// Returns true if one line of `text` passes the test. A negated test must hold for all lines.
    fn holds_for_lines(&self, text: &[u8]) -> bool {
        let any = |is: &dyn Fn(&[u8]) -> bool| crate::steps::lines(text).any(is);
        match self {
            Self::Is(wanted, word) => any(&|line| line == word) == *wanted,
            Self::Matches(wanted, regex) => any(&|line| regex.is_match(line)) == *wanted,
        }
    }
}

impl Op {
    fn holds(self, own: i128, other: i128) -> bool {
        match self {
            Self::Equal => own == other,
            Self::NotEqual => own != other,
            Self::Less => own < other,
            Self::LessEqual => own <= other,
            Self::Greater => own > other,
            Self::GreaterEqual => own >= other,
            // The parser has no patterns for numbers.
            Self::Matches | Self::MatchesNot => false,
        }
    }
}
