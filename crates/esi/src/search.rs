//! Search for the next place of a page where an instruction may begin. Its time is linear in the
//! page.

use memchr::memmem;

/// Bytes at the end of a piece that may be an incomplete mark.
const TAIL: usize = 9;

/// Cached positions of the next tag and section in one piece.
#[derive(Debug, Default)]
pub(crate) struct InstructionSearch {
    tag: Option<usize>,
    section: Option<usize>,
}

/// Varnish's reading of a position: in text, or in a foreign tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MarkupContext {
    Text,
    /// In a tag that is not ESI's.
    Other,
}

impl InstructionSearch {
    /// The position from which to read byte by byte, and its context. It is the next beginning of
    /// an instruction, comment or section, or the end of the piece; text and foreign tags are
    /// skipped.
    ///
    /// A `>` always returns to text. So the bytes behind the last one decide the context.
    pub(crate) fn next(&mut self, bytes: &[u8], from: usize) -> Option<(usize, MarkupContext)> {
        let tail = bytes.len().saturating_sub(TAIL);
        let tag = cached(&mut self.tag, from, || tag(bytes, from));
        let section = cached(&mut self.section, from, || section(bytes, from));
        let at = tag.min(section).min(tail);
        if at <= from {
            return None;
        }
        let begin = memchr::memrchr(b'>', &bytes[from..at]).map_or(from, |end| from + end + 1);
        let is_text = memchr::memchr(b'<', &bytes[begin..at]).is_none();
        Some((at, if is_text { MarkupContext::Text } else { MarkupContext::Other }))
    }
}

fn cached(place: &mut Option<usize>, from: usize, find: impl FnOnce() -> usize) -> usize {
    match place {
        Some(at) if *at >= from => *at,
        _ => *place.insert(find()),
    }
}

/// The next `<esi:` or `</esi:`.
fn tag(bytes: &[u8], from: usize) -> usize {
    let found = memmem::find_iter(&bytes[from..], b"esi:").find_map(|at| {
        let before = &bytes[from..from + at];
        let length = [&b"<"[..], b"</"].into_iter().find(|mark| before.ends_with(mark))?.len();
        Some(from + at - length)
    });
    found.unwrap_or(bytes.len())
}

/// The next `<!-` or `<![`.
fn section(bytes: &[u8], from: usize) -> usize {
    let found = memmem::find_iter(&bytes[from..], b"<!").find_map(|at| {
        let at = from + at;
        bytes.get(at + 2).is_none_or(|byte| b"-[".contains(byte)).then_some(at)
    });
    found.unwrap_or(bytes.len())
}

/// The next position where one of ESI's marks may begin, inside a tag or outside.
pub(crate) fn esi(bytes: &[u8]) -> usize {
    let found = memmem::find_iter(bytes, b"esi").find_map(|at| {
        let before = &bytes[..at];
        let marks = [&b"<"[..], b"</", b"<!--"];
        Some(at - marks.into_iter().find(|mark| before.ends_with(mark))?.len())
    });
    found.unwrap_or_else(|| tail(bytes))
}

/// The next position where SSI's mark may begin.
pub(crate) fn ssi(bytes: &[u8]) -> usize {
    memmem::find(bytes, b"<!--#").unwrap_or_else(|| tail(bytes))
}

/// The first `<` at the end of a piece, whose mark may continue in the next piece.
fn tail(bytes: &[u8]) -> usize {
    let begin = bytes.len().saturating_sub(TAIL);
    memchr::memchr(b'<', &bytes[begin..]).map_or(bytes.len(), |at| begin + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_at_a_place_is_known_from_what_is_after_the_last_tag() {
        let after = "              ";
        for (before, place) in [
            ("text ", MarkupContext::Text),
            ("<p> text", MarkupContext::Text),
            ("<p>a > b", MarkupContext::Text),
            ("<a href='", MarkupContext::Other),
            ("a < b", MarkupContext::Other),
            ("<p>a <b <c", MarkupContext::Other),
        ] {
            for mark in ["<esi:x", "</esi:x", "<!--", "<![CDATA["] {
                let page = [before, mark, after].concat();
                let found = InstructionSearch::default().next(page.as_bytes(), 0);
                assert_eq!(found, Some((before.len(), place)), "{page}");
            }
        }
    }

    #[test]
    fn marks_are_found_and_what_may_go_on_is_left() {
        for (page, at) in [
            ("design <esi:x", 7),
            ("</esi:x", 0),
            ("a<!--esi", 1),
            ("a <e", 2),
            ("a <!--e<", 2),
            ("besides", 7),
            ("", 0),
        ] {
            assert_eq!(esi(page.as_bytes()), at, "{page}");
        }
        assert_eq!(ssi(b"a<!-- b --><!--# c"), 11);
        assert_eq!(ssi(b"a<!-- b --> <!--"), 12);
    }
}
