//! Nodes of a parsed filter, and their evaluation.

use std::net::IpAddr;

use ipnet::IpNet;
use regex::bytes::Regex;

use super::field::{QueryField, RecordValue};
use crate::record::Record;

/// A filter or a part of it.
#[derive(Clone, Debug)]
pub(super) enum Node {
    And(Vec<Self>),
    Or(Vec<Self>),
    Not(Box<Self>),
    IsSet(QueryField),
    Text(QueryField, TextTest),
    Number(QueryField, Op, i128),
    Client(bool, IpNet),
}

/// A test of a text.
#[derive(Clone, Debug)]
pub(super) enum TextTest {
    Is(bool, Vec<u8>),
    Matches(bool, Regex),
}

/// A comparison of two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Matches,
    MatchesNot,
}

impl Node {
    /// Returns true if the node tests this field.
    pub(super) fn names(&self, wanted: QueryField) -> bool {
        match self {
            Self::And(nodes) | Self::Or(nodes) => nodes.iter().any(|node| node.names(wanted)),
            Self::Not(node) => node.names(wanted),
            Self::IsSet(field) | Self::Text(field, _) | Self::Number(field, ..) => *field == wanted,
            Self::Client(..) => wanted == QueryField::Client,
        }
    }

    /// Returns true if `record` matches the node.
    pub(super) fn holds(&self, record: &Record<'_>) -> bool {
        match self {
            Self::And(all) => all.iter().all(|node| node.holds(record)),
            Self::Or(any) => any.iter().any(|node| node.holds(record)),
            Self::Not(node) => !node.holds(record),
            Self::IsSet(field) => match field.of(record) {
                RecordValue::Nothing => false,
                RecordValue::Text(text) => !text.is_empty(),
                RecordValue::Number(number) => number != 0,
                RecordValue::Client(client) => client.is_some(),
            },
            Self::Text(field, test) => {
                let text = match field.of(record) {
                    RecordValue::Text(text) => text,
                    _ => b"",
                };
                match test {
                    test if *field == QueryField::Vcl => test.holds_for_lines(text),
                    // Cache results are the only values that ignore case.
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
                RecordValue::Number(number) => op.holds(number, *value),
                // An unknown value equals nothing, and is neither less nor more.
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
    /// Returns true if a line of `text` passes the test. A negated test must hold for all lines.
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
            // The parser rejects patterns for numbers.
            Self::Matches | Self::MatchesNot => false,
        }
    }
}
