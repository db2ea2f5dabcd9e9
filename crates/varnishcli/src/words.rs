//! A line cut into words, as Varnish cuts it: blanks part them, quotes keep blanks, backslashes
//! stand for what cannot be written otherwise.

use std::fmt;

/// Why a line has no words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyntaxError {
    /// A quote that nothing ends.
    Quote,
    /// A quote within a word that does not begin with one.
    QuoteWithin,
    /// A backslash before something that it does not go with.
    Backslash,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Quote => "Missing '\"'",
            Self::QuoteWithin => "Invalid '\"'",
            Self::Backslash => "Invalid backslash sequence",
        })
    }
}

impl std::error::Error for SyntaxError {}

/// C's `isspace`.
pub(crate) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// Cuts `line` into words. After a closing quote the next word begins, with or without a blank.
pub(crate) fn split(line: &[u8]) -> Result<Vec<Vec<u8>>, SyntaxError> {
    let mut words = Vec::new();
    let mut rest = line;
    loop {
        let blanks = rest.iter().take_while(|byte| is_blank(**byte)).count();
        rest = &rest[blanks..];
        if rest.is_empty() {
            return Ok(words);
        }
        let (word, after) = match rest {
            [b'"', quoted @ ..] => one(quoted, true)?,
            plain => one(plain, false)?,
        };
        words.push(word);
        rest = after;
    }
}

/// The word that `rest` begins with, and what follows it.
fn one(mut rest: &[u8], quoted: bool) -> Result<(Vec<u8>, &[u8]), SyntaxError> {
    let mut word = Vec::new();
    loop {
        match rest {
            [] if quoted => return Err(SyntaxError::Quote),
            [] => return Ok((word, rest)),
            [b'"', after @ ..] if quoted => return Ok((word, after)),
            [b'"', ..] => return Err(SyntaxError::QuoteWithin),
            [b'\\', after @ ..] => {
                let (byte, len) = escape(after).ok_or(SyntaxError::Backslash)?;
                word.push(byte);
                rest = &after[len..];
            }
            [byte, after @ ..] if !quoted && is_blank(*byte) => return Ok((word, after)),
            [byte, after @ ..] => {
                word.push(*byte);
                rest = after;
            }
        }
    }
}

/// The byte that an escape stands for, and how many bytes follow the backslash. One to three octal
/// digits are a byte. Varnish drops the bits of `\400` beyond a byte; here `\400` is no escape.
fn escape(after: &[u8]) -> Option<(u8, usize)> {
    let number = |digits: &[u8], radix| {
        let text = std::str::from_utf8(digits).ok()?;
        let all = digits.iter().all(|digit| char::from(*digit).is_digit(radix));
        u8::from_str_radix(text, radix).ok().filter(|_| all)
    };
    match after {
        [b'n', ..] => Some((b'\n', 1)),
        [b'r', ..] => Some((b'\r', 1)),
        [b't', ..] => Some((b'\t', 1)),
        [byte @ (b'"' | b'\\'), ..] => Some((*byte, 1)),
        [b'x', high, low, ..] => Some((number(&[*high, *low], 16)?, 3)),
        [b'0'..=b'7', ..] => {
            let octal = |byte: &&u8| matches!(byte, b'0'..=b'7');
            let len = after.iter().take(3).take_while(octal).count();
            Some((number(&after[..len], 8)?, len))
        }
        _ => None,
    }
}
