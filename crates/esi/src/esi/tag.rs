//! Tag of ESI with its attributes. Its names and values are slices of the page, and never copied.

use crate::attribute::decoded;

/// A tag, from `<esi:` or `</esi:` to its `>`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tag<'t> {
    pub(super) name: &'t [u8],
    pub(super) is_end: bool,
    /// True if the tag ends with `/>`.
    pub(super) is_empty: bool,
    attributes: &'t [u8],
}

impl<'t> Tag<'t> {
    /// Parses a tag.
    pub(super) fn read(bytes: &'t [u8]) -> Self {
        let is_end = bytes.starts_with(b"</");
        let skipped = if is_end { b"</esi:".len() } else { b"<esi:".len() };
        let inner = bytes.get(skipped..bytes.len().saturating_sub(1)).unwrap_or_default();
        let (inner, is_empty) = match inner.strip_suffix(b"/") {
            Some(inner) => (inner, true),
            None => (inner, false),
        };
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
        let end = inner.iter().position(|byte| !is_name(byte)).unwrap_or(inner.len());
        let (name, attributes) = inner.split_at(end);
        Self { name, is_end, is_empty, attributes }
    }

    /// Decoded value of the first attribute `name`.
    pub(super) fn attribute(&self, name: &[u8]) -> Option<Vec<u8>> {
        let found = Attributes(self.attributes).find(|(own, _)| *own == name);
        found.map(|(_, value)| decoded(value))
    }
}

/// Names and values of attributes; a missing value is empty.
struct Attributes<'t>(&'t [u8]);

impl<'t> Iterator for Attributes<'t> {
    type Item = (&'t [u8], &'t [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let text = self.0.trim_ascii_start();
        if text.is_empty() {
            return None;
        }
        let is_end = |byte: &u8| *byte == b'=' || byte.is_ascii_whitespace();
        let end = text.iter().position(is_end).unwrap_or(text.len());
        let (name, rest) = text.split_at(end);
        let Some(rest) = rest.trim_ascii_start().strip_prefix(b"=") else {
            self.0 = rest;
            return Some((name, b""));
        };
        let rest = rest.trim_ascii_start();
        let (value, rest) = match rest {
            [quote @ (b'"' | b'\''), inner @ ..] => {
                let end = memchr::memchr(*quote, inner).unwrap_or(inner.len());
                (&inner[..end], inner.get(end + 1..).unwrap_or_default())
            }
            _ => {
                let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
                rest.split_at(end)
            }
        };
        self.0 = rest;
        Some((name, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_read_in_any_quotes() {
        let tag = Tag::read(b"<esi:include a=\"1 '2\" b='3 \"4'\n c = 5 d e=&amp;x/ f=\"\"/>");
        assert_eq!((tag.name, tag.is_end, tag.is_empty), (&b"include"[..], false, true));
        for (name, value) in
            [("a", "1 '2"), ("b", "3 \"4"), ("c", "5"), ("d", ""), ("e", "&x/"), ("f", "")]
        {
            let found = tag.attribute(name.as_bytes());
            assert_eq!(found.as_deref(), Some(value.as_bytes()), "{name}");
        }
        assert_eq!(tag.attribute(b"g"), None);
        let tag = Tag::read(b"</esi:vars>");
        assert_eq!((tag.name, tag.is_end, tag.is_empty), (&b"vars"[..], true, false));
        assert_eq!(Tag::read(b"<esi:>").name, b"");
    }
}
