//! The parser of filters: tokens become a tree of nodes.

use std::net::IpAddr;
use std::ops::Range;

use ipnet::IpNet;
use regex::bytes::RegexBuilder;

use super::field::{QueryField, ValueType};
use super::lexer::{SpannedError, Token, tokens};
use super::node::{Node, Op, TextTest};
use crate::format::FieldPositions;

/// Deepest nesting of parentheses and `not`. No person writes more.
const DEPTH: usize = 64;

/// Memory limit of a compiled pattern, in bytes.
const PATTERN_BYTES: usize = 1 << 20;

pub(super) fn query(text: &str, fields: &FieldPositions) -> Result<Node, SpannedError> {
    let mut parser = Parser { tokens: tokens(text)?, at: 0, end: text.len(), fields };
    let node = parser.any(0)?;
    match parser.tokens.get(parser.at) {
        None => Ok(node),
        Some((Token::Close, span)) => Err(SpannedError {
            span: span.clone(),
            message: "this parenthesis was not opened".to_owned(),
        }),
        Some((_, span)) => {
            let message = "`and` or `or` belongs before this".to_owned();
            Err(SpannedError { span: span.clone(), message })
        }
    }
}

struct Parser<'a> {
    tokens: Vec<(Token, Range<usize>)>,
    at: usize,
    /// Length of the text.
    end: usize,
    fields: &'a FieldPositions,
}

impl Parser<'_> {
    fn next(&mut self) -> Option<(Token, Range<usize>)> {
        let token = self.tokens.get(self.at).cloned();
        self.at += usize::from(token.is_some());
        token
    }

    fn takes(&mut self, wanted: &Token) -> bool {
        let is = self.tokens.get(self.at).is_some_and(|(token, _)| token == wanted);
        self.at += usize::from(is);
        is
    }

    fn missing(&self, message: &str) -> SpannedError {
        SpannedError { span: self.end..self.end, message: message.to_owned() }
    }

    fn any(&mut self, depth: usize) -> Result<Node, SpannedError> {
        let mut nodes = vec![self.all(depth)?];
        while self.takes(&Token::Or) {
            nodes.push(self.all(depth)?);
        }
        Ok(one_or(nodes, Node::Or))
    }

    fn all(&mut self, depth: usize) -> Result<Node, SpannedError> {
        let mut nodes = vec![self.one(depth)?];
        while self.takes(&Token::And) {
            nodes.push(self.one(depth)?);
        }
        Ok(one_or(nodes, Node::And))
    }

    fn one(&mut self, depth: usize) -> Result<Node, SpannedError> {
        let Some((token, span)) = self.next() else {
            return Err(self.missing("a comparison is missing here, such as resp.status >= 500"));
        };
        let wrong = |message: String| Err(SpannedError { span: span.clone(), message });
        if depth >= DEPTH {
            return wrong("this is nested too deeply".to_owned());
        }
        match token {
            Token::Not => Ok(Node::Not(Box::new(self.one(depth + 1)?))),
            Token::Open => {
                let node = self.any(depth + 1)?;
                if self.takes(&Token::Close) {
                    return Ok(node);
                }
                wrong("this parenthesis is not closed".to_owned())
            }
            Token::Word(name) => match QueryField::named(&name, self.fields) {
                Ok((field, kind)) => self.comparison(field, kind),
                Err(message) => wrong(message),
            },
            Token::Text(_) => wrong("a field's name belongs here, without quotes".to_owned()),
            Token::Close | Token::And | Token::Or | Token::Op(_) => {
                wrong("a comparison is missing before this".to_owned())
            }
        }
    }

    fn comparison(&mut self, field: QueryField, kind: ValueType) -> Result<Node, SpannedError> {
        let Some((Token::Op(op), span)) = self.tokens.get(self.at).cloned() else {
            return Ok(Node::IsSet(field));
        };
        self.at += 1;
        let Some((value, place)) = self.next() else {
            return Err(self.missing("a value is missing here"));
        };
        let (Token::Text(value) | Token::Word(value)) = value else {
            return Err(SpannedError { span: place, message: "a value belongs here".to_owned() });
        };
        let patterns = matches!(op, Op::Matches | Op::MatchesNot);
        let ordered = !patterns && !matches!(op, Op::Equal | Op::NotEqual);
        let equal = op == Op::Equal || op == Op::Matches;
        let node = match kind {
            ValueType::Text if ordered => {
                let message = "texts are compared by ==, !=, ~ and !~".to_owned();
                return Err(SpannedError { span, message });
            }
            ValueType::Text if patterns => {
                pattern(&value).map(|regex| Node::Text(field, TextTest::Matches(equal, regex)))
            }
            ValueType::Text => field
                .check_word(&value)
                .map(|()| Node::Text(field, TextTest::Is(equal, value.into_bytes()))),
            ValueType::Client if ordered => {
                let message = "addresses are compared by == and !=".to_owned();
                return Err(SpannedError { span, message });
            }
            ValueType::Client => network(&value).map(|net| Node::Client(equal, net)),
            _ if patterns => {
                let message = "numbers are compared by ==, !=, <, <=, > and >=".to_owned();
                return Err(SpannedError { span, message });
            }
            _ => number(&value, kind).map(|value| Node::Number(field, op, value)),
        };
        node.map_err(|message| SpannedError { span: place, message })
    }
}

fn one_or(mut nodes: Vec<Node>, join: fn(Vec<Node>) -> Node) -> Node {
    match nodes.len() {
        1 => nodes.remove(0),
        _ => join(nodes),
    }
}

fn pattern(text: &str) -> Result<regex::bytes::Regex, String> {
    let built = RegexBuilder::new(text).size_limit(PATTERN_BYTES).build();
    built.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => "this pattern is too large".to_owned(),
        error => {
            let text = error.to_string();
            let why = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
            format!("not a pattern: {why}")
        }
    })
}

fn network(text: &str) -> Result<IpNet, String> {
    let address = text.parse::<IpAddr>().map(IpNet::from);
    address
        .or_else(|_| text.parse())
        .map_err(|_| "an address belongs here, or a network such as 10.0.0.0/8".to_owned())
}

/// Parses a number in the field's unit.
fn number(text: &str, kind: ValueType) -> Result<i128, String> {
    let units: &[(&str, i128)] = match kind {
        ValueType::Hex => {
            let why = "a number in hexadecimal digits belongs here, such as 1f";
            return u64::from_str_radix(text, 16).map(i128::from).map_err(|_| why.to_owned());
        }
        ValueType::Time => {
            &[("us", 1), ("ms", 1000), ("s", 1_000_000), ("m", 60_000_000), ("h", 3_600_000_000)]
        }
        ValueType::Seconds => &[("s", 1), ("m", 60), ("h", 3600), ("d", 86_400)],
        ValueType::Bytes => &[
            ("KiB", 1 << 10),
            ("MiB", 1 << 20),
            ("GiB", 1 << 30),
            ("KB", 1000),
            ("MB", 1_000_000),
            ("GB", 1_000_000_000),
            ("B", 1),
            ("", 1),
        ],
        _ => &[("", 1)],
    };
    let digits = text.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | '-'));
    let (digits, unit) = text.split_at(digits.unwrap_or(text.len()));
    let Some((_, factor)) = units.iter().find(|(name, _)| *name == unit) else {
        return Err(match kind {
            ValueType::Time => "a time belongs here, with its unit: 500us, 250ms, 1.5s",
            ValueType::Seconds => "a time belongs here, with its unit: 30s, 10m, 1h, 7d",
            ValueType::Bytes => "a size belongs here: 500, 64KiB, 1MB",
            _ => "a number belongs here",
        }
        .to_owned());
    };
    scaled(digits, *factor).ok_or_else(|| format!("`{digits}` is not a number that fits here"))
}

/// Multiplies `digits` by `factor`, rounding down.
fn scaled(digits: &str, factor: i128) -> Option<i128> {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.len() > 18 || fraction.len() > 9 || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let negative = whole.starts_with('-');
    let whole: i128 = whole.parse().ok()?;
    let unsigned = fraction.bytes().all(|b| b.is_ascii_digit());
    let part = match fraction {
        "" => 0,
        _ if !unsigned => return None,
        digits => digits.parse::<i128>().ok()? * factor / 10_i128.pow(digits.len() as u32),
    };
    Some(whole * factor + if negative { -part } else { part })
}
