//! Words of a ban expression, split in Varnish's two ways: as on the command line (blanks separate,
//! quotes enclose, backslashes escape), or as in VCL (blanks only, `ARGV_NOESC`). It never
//! interprets the words.

use crate::error::{Error, ErrorKind};

/// A word with its byte offset in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExpressionWord {
    pub(crate) at: usize,
    pub(crate) text: String,
}

/// Splits `text` as Varnish's command line does.
pub(crate) fn split(text: &str) -> Result<Vec<ExpressionWord>, Error> {
    let bytes = text.as_bytes();
    let mut words = Vec::new();
    let mut at = 0;
    loop {
        while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
            at += 1;
        }
        if at >= bytes.len() {
            return Ok(words);
        }
        let (word, end) = one(bytes, at)?;
        words.push(ExpressionWord { at, text: word });
        at = end;
    }
}

/// Splits `text` at blanks. Quotes and backslashes are ordinary bytes.
pub(crate) fn blanks(text: &str) -> Vec<ExpressionWord> {
    // C's `isspace`.
    let is_blank = |c: char| matches!(c, ' ' | '\t'..='\r');
    let words = text.split(is_blank).filter(|word| !word.is_empty());
    // Each word is a slice of `text`, so its address gives its offset.
    let at = |word: &str| word.as_ptr().addr() - text.as_ptr().addr();
    words.map(|word| ExpressionWord { at: at(word), text: word.to_owned() }).collect()
}

/// Reads the word at `start`, and returns it with the offset behind it.
fn one(bytes: &[u8], start: usize) -> Result<(String, usize), Error> {
    let quoted = bytes[start] == b'"';
    let mut at = start + usize::from(quoted);
    let mut word = Vec::new();
    loop {
        match bytes.get(at) {
            None if quoted => return Err(Error { at: start, kind: ErrorKind::Quote }),
            None => break,
            Some(b'"') if quoted => {
                at += 1;
                if bytes.get(at).is_some_and(|b| !b.is_ascii_whitespace()) {
                    return Err(Error { at, kind: ErrorKind::Quote });
                }
                break;
            }
            Some(b) if !quoted && b.is_ascii_whitespace() => break,
            Some(b'\\') => {
                let (byte, len) =
                    escape(&bytes[at + 1..]).ok_or(Error { at, kind: ErrorKind::Escape })?;
                word.push(byte);
                at += 1 + len;
            }
            Some(b) => {
                word.push(*b);
                at += 1;
            }
        }
    }
    // Escapes can produce bytes that are not UTF-8; no field that is compared holds such bytes.
    let word = String::from_utf8(word).map_err(|_| Error { at: start, kind: ErrorKind::Escape })?;
    Ok((word, at))
}

/// The byte of an escape sequence, and the length of the sequence behind the backslash.
fn escape(after: &[u8]) -> Option<(u8, usize)> {
    let digits = |digits: &[u8], radix| {
        let all = digits.iter().all(|b| char::from(*b).is_digit(radix));
        let text = std::str::from_utf8(digits).ok().filter(|_| all)?;
        u8::from_str_radix(text, radix).ok()
    };
    match after {
        [b'n', ..] => Some((b'\n', 1)),
        [b'r', ..] => Some((b'\r', 1)),
        [b't', ..] => Some((b'\t', 1)),
        [b @ (b'"' | b'\\'), ..] => Some((*b, 1)),
        [b'x', high, low, ..] => Some((digits(&[*high, *low], 16)?, 3)),
        [a @ b'0'..=b'3', b, c, ..] => Some((digits(&[*a, *b, *c], 8)?, 3)),
        _ => None,
    }
}

/// `text` as one word of a command line, quoted where necessary.
pub(crate) fn quote(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_graphic() && !matches!(b, b'"' | b'\\') || b >= 0x80;
    if !text.is_empty() && text.bytes().all(plain) {
        return text.to_owned();
    }
    let mut word = String::with_capacity(text.len() + 2);
    word.push('"');
    for c in text.chars() {
        match c {
            '"' => word.push_str("\\\""),
            '\\' => word.push_str("\\\\"),
            '\n' => word.push_str("\\n"),
            c if c.is_ascii_control() => word.push_str(&format!("\\x{:02x}", u32::from(c))),
            c => word.push(c),
        }
    }
    word.push('"');
    word
}
