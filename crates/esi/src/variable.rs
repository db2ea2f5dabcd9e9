//! Variable of ESI, and text with variables in it. Values are never looked up here.

/// `$(NAME{key}|default)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    pub(crate) name: Box<[u8]>,
    pub(crate) key: Option<Box<[u8]>>,
    pub(crate) default: Option<Box<[u8]>>,
}

impl Variable {
    /// Parses the text between `$(` and `)`. A default may be quoted.
    pub(crate) fn read(text: &[u8]) -> Option<Self> {
        let (head, default) = match memchr::memchr(b'|', text) {
            Some(bar) if memchr::memchr(b'{', text).is_none_or(|brace| bar < brace) => {
                (&text[..bar], Some(&text[bar + 1..]))
            }
            _ => match memchr::memchr(b'}', text) {
                Some(end) => match &text[end + 1..] {
                    [] => (text, None),
                    [b'|', default @ ..] => (&text[..=end], Some(default)),
                    _ => return None,
                },
                None => (text, None),
            },
        };
        let (name, key) = match memchr::memchr(b'{', head) {
            Some(brace) => (&head[..brace], Some(head[brace + 1..].strip_suffix(b"}")?)),
            None => (head, None),
        };
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        if name.is_empty() || !name.iter().all(is_name) {
            return None;
        }
        let default = default.map(|text| unquoted(text).into());
        Some(Self { name: name.into(), key: key.map(Into::into), default })
    }

    pub(crate) fn memory(&self) -> usize {
        let length = |bytes: &Option<Box<[u8]>>| bytes.as_ref().map_or(0, |bytes| bytes.len());
        self.name.len() + length(&self.key) + length(&self.default)
    }
}

fn unquoted(text: &[u8]) -> &[u8] {
    let inner = text.strip_prefix(b"'").and_then(|text| text.strip_suffix(b"'"));
    inner.unwrap_or(text)
}

/// Offset behind the variable at the beginning of `text`. A quoted default may contain `)`.
pub(crate) fn end(text: &[u8]) -> Option<usize> {
    let mut ending = VariableEndScan::default();
    for (byte, at) in text.strip_prefix(b"$(")?.iter().zip(3..) {
        match ending.step(*byte) {
            ScanProgress::More => {}
            ScanProgress::End => return Some(at),
            ScanProgress::Never => return None,
        }
    }
    None
}

/// Scan for the `)` that ends a variable. It stops at the next `$` or `<`, so that variables
/// without an end never cost more than linear time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct VariableEndScan {
    is_quoted: bool,
    is_after_bar: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScanProgress {
    More,
    End,
    Never,
}

impl VariableEndScan {
    pub(crate) const fn step(&mut self, byte: u8) -> ScanProgress {
        match byte {
            b'\'' if self.is_quoted => self.is_quoted = false,
            b'\'' if self.is_after_bar => self.is_quoted = true,
            b')' if !self.is_quoted => return ScanProgress::End,
            b'$' | b'<' if !self.is_quoted => return ScanProgress::Never,
            _ => {}
        }
        self.is_after_bar = byte == b'|';
        ScanProgress::More
    }
}

/// Text with variables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template(pub(crate) Vec<TemplatePart>);

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TemplatePart {
    Literal(Box<[u8]>),
    Variable(Variable),
}

impl Template {
    /// Parses text. A malformed variable stays text.
    pub(crate) fn read(text: &[u8]) -> Self {
        let mut parts = Vec::new();
        let mut literal = Vec::new();
        let mut rest = text;
        while let Some(at) = memchr::memchr(b'$', rest) {
            literal.extend_from_slice(&rest[..at]);
            rest = &rest[at..];
            let found =
                end(rest).and_then(|length| Some((Variable::read(&rest[2..length - 1])?, length)));
            match found {
                Some((variable, length)) => {
                    if !literal.is_empty() {
                        parts.push(TemplatePart::Literal(std::mem::take(&mut literal).into()));
                    }
                    parts.push(TemplatePart::Variable(variable));
                    rest = &rest[length..];
                }
                None => {
                    literal.push(b'$');
                    rest = &rest[1..];
                }
            }
        }
        literal.extend_from_slice(rest);
        if !literal.is_empty() {
            parts.push(TemplatePart::Literal(literal.into()));
        }
        Self(parts)
    }

    /// The text, if it has no variable.
    pub(crate) fn literal(&self) -> Option<&[u8]> {
        match &self.0[..] {
            [] => Some(b""),
            [TemplatePart::Literal(text)] => Some(text),
            _ => None,
        }
    }

    pub(crate) fn memory(&self) -> usize {
        let parts = self.0.iter().map(|part| match part {
            TemplatePart::Literal(text) => text.len(),
            TemplatePart::Variable(variable) => variable.memory(),
        });
        self.0.capacity() * size_of::<TemplatePart>() + parts.sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let text_of = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let part = |part: &TemplatePart| match part {
            TemplatePart::Literal(text) => format!("[{}]", text_of(text)),
            TemplatePart::Variable(Variable { name, key, default }) => {
                let key = key.as_ref().map_or(String::new(), |key| format!(".{}", text_of(key)));
                let default =
                    default.as_ref().map_or(String::new(), |d| format!("?{}", text_of(d)));
                format!("<{}{key}{default}>", text_of(name))
            }
        };
        Template::read(text.as_bytes()).0.iter().map(part).collect()
    }

    #[test]
    fn text_is_read_with_its_variables() {
        for (text, parts) in [
            ("", ""),
            ("a", "[a]"),
            ("$(A)", "<A>"),
            ("a$(A)b$(B)", "[a]<A>[b]<B>"),
            ("$(A{k})$(A{k}|d)$(A|d)$(A|)", "<A.k><A.k?d><A?d><A?>"),
            ("$(A{a|b}|c)", "<A.a|b?c>"),
            ("$(A|'b) c')", "<A?b) c>"),
            ("$(A|b'c)", "<A?b'c>"),
            ("$", "[$]"),
            ("$(", "[$(]"),
            ("$(A", "[$(A]"),
            ("$(A$(B)", "[$(A]<B>"),
            ("$()$(-)$(A{)$(A}b)", "[$()$(-)$(A{)$(A}b)]"),
            ("$$(A)", "[$]<A>"),
            ("$(A{b}c)", "[$(A{b}c)]"),
        ] {
            assert_eq!(shown(text), parts, "{text}");
        }
    }
}
