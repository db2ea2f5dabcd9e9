//! Attribute values of tags: XML's character classes and references. Unknown references are never
//! decoded.

/// References that XML defines without a document type. Others stay as they are.
const REFERENCES: [(&[u8], u8); 5] =
    [(b"&lt;", b'<'), (b"&gt;", b'>'), (b"&amp;", b'&'), (b"&apos;", b'\''), (b"&quot;", b'"')];

/// The value with its references decoded; unknown ones stay as they are.
pub(crate) fn decoded(value: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.len());
    let mut rest = value;
    while let Some(at) = memchr::memchr(b'&', rest) {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        let found = REFERENCES.iter().find(|(name, _)| rest.starts_with(name));
        let (byte, length) = found.map_or((b'&', 1), |(name, byte)| (*byte, name.len()));
        out.push(byte);
        rest = &rest[length..];
    }
    out.extend_from_slice(rest);
    out
}

/// Returns true if a name in XML may begin with `byte`. Bytes beyond ASCII are read as Latin-1.
pub(crate) const fn begins_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic()
        || matches!(byte, b'_' | b':' | 0xc0..=0xd6 | 0xd8..=0xf6 | 0xf8..=0xff)
}

/// Returns true if a name in XML may contain `byte`.
pub(crate) const fn is_name(byte: u8) -> bool {
    begins_name(byte) || byte.is_ascii_digit() || matches!(byte, b'-' | b'.' | 0xb7)
}

/// Returns true if `byte` is white space in XML.
pub(crate) const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_references_are_decoded_once() {
        let value = b"&lt;&gt;&amp;&apos;&quot;&amp;lt;&#38;&nbsp;&amp&";
        assert_eq!(decoded(value), b"<>&'\"&lt;&#38;&nbsp;&amp&");
        assert_eq!(decoded(b""), b"");
    }
}
