//! The lexer of filters: text becomes tokens with their spans.

use std::ops::Range;

use super::node::Op;

/// A mistake in a filter, and its span.
#[derive(Debug)]
pub(super) struct SpannedError {
    pub(super) span: Range<usize>,
    pub(super) message: String,
}

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Open,
    Close,
    And,
    Or,
    Not,
    Op(Op),
    /// A text in quotes.
    Text(String),
    /// A field's name, a number with its unit, an address, or a text without quotes.
    Word(String),
}

/// Splits `text` into tokens, each with its span.
pub(super) fn tokens(text: &str) -> Result<Vec<(Token, Range<usize>)>, SpannedError> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        if c.is_whitespace() {
            at += c.len_utf8();
            continue;
        }
        let (token, length) = one(&text[at..]).map_err(|(range, message)| SpannedError {
            span: at + range.start..at + range.end,
            message,
        })?;
        found.push((token, at..at + length));
        at += length;
    }
    Ok(found)
}

type Mistake = (Range<usize>, String);

/// The token at the beginning of `rest`, which is not empty, and its length.
fn one(rest: &str) -> Result<(Token, usize), Mistake> {
    const SIGNS: &[(&str, Token)] = &[
        ("==", Token::Op(Op::Equal)),
        ("!=", Token::Op(Op::NotEqual)),
        ("!~", Token::Op(Op::MatchesNot)),
        ("<=", Token::Op(Op::LessEqual)),
        (">=", Token::Op(Op::GreaterEqual)),
        ("&&", Token::And),
        ("||", Token::Or),
        ("~", Token::Op(Op::Matches)),
        ("<", Token::Op(Op::Less)),
        (">", Token::Op(Op::Greater)),
        ("!", Token::Not),
        ("(", Token::Open),
        (")", Token::Close),
    ];
    if let Some((sign, token)) = SIGNS.iter().find(|(sign, _)| rest.starts_with(sign)) {
        return Ok((token.clone(), sign.len()));
    }
    if rest.starts_with(['"', '\'']) {
        return quoted(rest);
    }
    if rest.starts_with('=') {
        return Err((0..1, "equality is written `==`".to_owned()));
    }
    let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
    if length == 0 {
        let c = rest.chars().next().unwrap_or_default();
        return Err((0..c.len_utf8(), "this text needs quotes".to_owned()));
    }
    let word = &rest[..length];
    let token = match word {
        "and" | "AND" => Token::And,
        "or" | "OR" => Token::Or,
        "not" | "NOT" => Token::Not,
        word => Token::Word(word.to_owned()),
    };
    Ok((token, length))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | ':' | '%' | '*' | '+' | '?')
}

/// A text in quotes. A backslash escapes a quote and itself; before other letters it is literal,
/// because patterns contain many.
fn quoted(rest: &str) -> Result<(Token, usize), Mistake> {
    let mut chars = rest.char_indices();
    let (_, quote) = chars.next().unwrap_or_default();
    let mut text = String::new();
    while let Some((at, c)) = chars.next() {
        if c == quote {
            return Ok((Token::Text(text), at + 1));
        }
        text.push(c);
        if c == '\\'
            && let Some((_, next)) = chars.next()
        {
            if next == quote {
                text.pop();
            }
            text.push(next);
        }
    }
    Err((0..rest.len(), "this text has no end: a quote is missing".to_owned()))
}
