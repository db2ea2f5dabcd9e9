//! Words of a CLI line, split as Varnish does: blanks separate, quotes enclose, backslashes escape.
//! It never interprets the words.

use std::fmt;

/// Error of a line that cannot be split into words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyntaxError {
    /// A quote is not closed.
    Quote,
    /// A quote stands inside a word that does not begin with a quote.
    QuoteWithin,
    /// Unknown escape sequence.
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

/// Splits `line` into words. A closing quote ends a word, with or without a blank behind it.
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

/// Reads the first word of `rest`, and returns it with the bytes behind it.
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

/// The byte of an escape sequence, and the length of the sequence behind the backslash: `\x` with
/// two digits, or one to three octal digits. Varnish drops the high bit of `\400`; here `\400` is
/// an error.
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
