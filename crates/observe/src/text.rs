//! Text from the network, escaped for logs and terminals.

use std::fmt;

/// Displays bytes as harmless text: invalid UTF-8, control characters and those that change the
/// direction of writing become `\xHH` or `\u{...}`.
#[derive(Clone, Copy, Debug)]
pub struct Printable<'a>(pub &'a [u8]);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write as _;
        for chunk in self.0.utf8_chunks() {
            for c in chunk.valid().chars() {
                match c {
                    c if u32::from(c) < 0x80 && c.is_control() => {
                        write!(f, "\\x{:02X}", u32::from(c))?;
                    }
                    c if acts(c) => write!(f, "\\u{{{:x}}}", u32::from(c))?,
                    c => f.write_char(c)?,
                }
            }
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02X}")?;
            }
        }
        Ok(())
    }
}

/// Returns true if a character controls the display.
fn acts(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
        )
}

/// Writes text for a quoted field as nginx does: quotes, backslashes and everything but printable
/// ASCII become `\xHH`.
pub fn quote(out: &mut Vec<u8>, text: &[u8]) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for &b in text {
        if !(0x20..0x7f).contains(&b) || b == b'"' || b == b'\\' {
            let [high, low] = [b >> 4, b & 15].map(|digit| HEX[usize::from(digit)]);
            out.extend_from_slice(&[b'\\', b'x', high, low]);
        } else {
            out.push(b);
        }
    }
}

/// Writes text for inside a JSON string; invalid UTF-8 becomes U+FFFD.
pub fn json_text(out: &mut Vec<u8>, text: &[u8]) {
    for c in String::from_utf8_lossy(text).chars() {
        match c {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            c if c.is_control() || acts(c) => {
                out.extend_from_slice(format!("\\u{:04x}", u32::from(c)).as_bytes());
            }
            c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn nothing_shown_acts(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let shown = Printable(&bytes).to_string();
            prop_assert!(!shown.chars().any(acts), "{:?}", shown);
        }

        #[test]
        fn json_reads_back(text in ".*") {
            let mut out = vec![b'"'];
            json_text(&mut out, text.as_bytes());
            out.push(b'"');
            let read: String = serde_json::from_slice(&out).expect("JSON");
            prop_assert_eq!(read, text);
        }
    }

    #[test]
    fn a_terminal_is_not_talked_to() {
        let shown = |text: &[u8]| Printable(text).to_string();
        assert_eq!(shown(b"/a\x1b[2J\xff"), "/a\\x1B[2J\\xFF");
        assert_eq!(shown("/\u{202e}gpj.exe".as_bytes()), "/\\u{202e}gpj.exe");
        assert_eq!(shown("/käse".as_bytes()), "/käse");
        let mut out = Vec::new();
        quote(&mut out, b"a\"b\\c\x1f\xc3");
        assert_eq!(out, br"a\x22b\x5Cc\x1F\xC3");
    }
}
