//! Text with nginx's variables, and the encodings of a value in a page. Variables are never
//! expanded here.

use message::percent;

/// Text with variables, `$name` and `${name}`. A backslash escapes `$`, `\\` and quotes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SsiText(pub(crate) Vec<SsiTextPart>);

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SsiTextPart {
    Literal(Vec<u8>),
    /// A variable, its name in lower case.
    Variable(Vec<u8>),
}

impl SsiText {
    /// Parses text; `None` if a `$` has no name.
    pub(crate) fn read(text: &[u8]) -> Option<Self> {
        let mut pieces = Vec::new();
        let mut literal = Vec::new();
        let mut rest = text;
        while let Some(at) = memchr::memchr2(b'$', b'\\', rest) {
            literal.extend_from_slice(&rest[..at]);
            let is_escape = rest[at] == b'\\';
            rest = &rest[at + 1..];
            if is_escape {
                match rest.first() {
                    Some(b'$' | b'\\' | b'"' | b'\'') => {
                        literal.push(rest[0]);
                        rest = &rest[1..];
                    }
                    _ => literal.push(b'\\'),
                }
                continue;
            }
            let is_braced = rest.first() == Some(&b'{');
            rest = &rest[usize::from(is_braced)..];
            let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
            let end = rest.iter().position(|byte| !is_name(byte)).unwrap_or(rest.len());
            if end == 0 || is_braced && rest.get(end) != Some(&b'}') {
                return None;
            }
            if !literal.is_empty() {
                pieces.push(SsiTextPart::Literal(std::mem::take(&mut literal)));
            }
            pieces.push(SsiTextPart::Variable(rest[..end].to_ascii_lowercase()));
            rest = &rest[end + usize::from(is_braced)..];
        }
        literal.extend_from_slice(rest);
        if !literal.is_empty() {
            pieces.push(SsiTextPart::Literal(literal));
        }
        Some(Self(pieces))
    }

    /// The text, if it has no variable.
    pub(crate) fn literal(&self) -> Option<&[u8]> {
        match &self.0[..] {
            [] => Some(b""),
            [SsiTextPart::Literal(text)] => Some(text),
            _ => None,
        }
    }

    pub(crate) fn memory(&self) -> usize {
        let pieces = self.0.iter().map(|piece| match piece {
            SsiTextPart::Literal(bytes) | SsiTextPart::Variable(bytes) => bytes.capacity(),
        });
        self.0.capacity() * size_of::<SsiTextPart>() + pieces.sum::<usize>()
    }
}

/// Encoding of a variable's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Plain,
    Url,
    Entity,
}

/// A value in an encoding.
pub(crate) fn encoded(value: &[u8], encoding: Encoding) -> Vec<u8> {
    if encoding == Encoding::Url {
        return percent::encode(value, is_escaped);
    }
    let mut out = Vec::with_capacity(value.len());
    for byte in value {
        match (encoding, byte) {
            (Encoding::Entity, b'<') => out.extend_from_slice(b"&lt;"),
            (Encoding::Entity, b'>') => out.extend_from_slice(b"&gt;"),
            (Encoding::Entity, b'&') => out.extend_from_slice(b"&amp;"),
            (Encoding::Entity, b'"') => out.extend_from_slice(b"&quot;"),
            _ => out.push(*byte),
        }
    }
    out
}

/// Returns true for bytes that nginx escapes in a component of an address.
fn is_escaped(byte: u8) -> bool {
    !byte.is_ascii_alphanumeric() && !b"-._~!$&()*+,/:;=?@[]".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_with_its_variables() {
        let shown = |text: &str| {
            let one = |piece: SsiTextPart| match piece {
                SsiTextPart::Literal(bytes) => String::from_utf8(bytes).expect("text"),
                SsiTextPart::Variable(name) => {
                    format!("<{}>", String::from_utf8(name).expect("text"))
                }
            };
            SsiText::read(text.as_bytes())
                .map(|text| text.0.into_iter().map(one).collect::<String>())
        };
        for (text, pieces) in [
            ("", Some("")),
            ("a", Some("a")),
            ("$a", Some("<a>")),
            ("x$A_1-${b}c$d", Some("x<a_1>-<b>c<d>")),
            (r"\$a\\\x\", Some(r"$a\\x\")),
            ("$", None),
            ("$$a", None),
            ("${a", None),
            ("${}", None),
            ("a$ b", None),
        ] {
            assert_eq!(shown(text).as_deref(), pieces, "{text}");
        }
    }
}
