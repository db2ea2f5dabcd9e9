//! The search for the next place of a page where an instruction may begin.

use memchr::memmem;

/// Bytes at the end of a piece that may be the beginning of any mark.
const TAIL: usize = 9;

/// Places in one piece of a page, each searched for once.
#[derive(Debug, Default)]
pub(crate) struct InstructionSearch {
    tag: Option<usize>,
    section: Option<usize>,
}

/// State of Varnish's reading at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MarkupContext {
    Text,
    /// In a tag of others.
    Other,
}

impl InstructionSearch {
    /// Where to read on, byte by byte, from a place in text, and what stands there: the next
    /// beginning of an instruction, a comment or a section, or the end of the piece. What is before
    /// is text and tags of others.
    ///
    /// After a `>` there is always text, be it in a tag or not: so only what follows the last one
    /// tells what the place is in.
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

/// The next place where one of ESI's marks may begin, be it in a tag or not.
pub(crate) fn esi(bytes: &[u8]) -> usize {
    let found = memmem::find_iter(bytes, b"esi").find_map(|at| {
        let before = &bytes[..at];
        let marks = [&b"<"[..], b"</", b"<!--"];
        Some(at - marks.into_iter().find(|mark| before.ends_with(mark))?.len())
    });
    found.unwrap_or_else(|| tail(bytes))
}

/// The next place where SSI's mark may begin.
pub(crate) fn ssi(bytes: &[u8]) -> usize {
    memmem::find(bytes, b"<!--#").unwrap_or_else(|| tail(bytes))
}

/// The first `<` at the end of a piece: its mark may go on in the next.
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
