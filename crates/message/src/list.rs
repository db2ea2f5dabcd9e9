//! Lists of comma-separated members over several field lines (RFC 9110 5.6.1), with quoted strings
//! (5.6.4).
//!
//! Must never copy: members are slices of their lines.

/// Members of a list field, without surrounding white space; empty members are skipped. A comma
/// inside a quoted string does not end a member; an unterminated quoted string ends with its line.
#[derive(Clone, Debug)]
pub struct Members<'a, I> {
    lines: I,
    rest: &'a [u8],
}

/// The members of the list in `lines`.
pub fn members<'a, I>(lines: I) -> Members<'a, I::IntoIter>
where
    I: IntoIterator<Item = &'a [u8]>,
{
    Members { lines: lines.into_iter(), rest: b"" }
}

impl<'a, I: Iterator<Item = &'a [u8]>> Iterator for Members<'a, I> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        loop {
            if self.rest.is_empty() {
                self.rest = self.lines.next()?;
            }
            let (member, rest) = split_member(self.rest);
            self.rest = rest;
            let member = trim(member);
            if !member.is_empty() {
                return Some(member);
            }
        }
    }
}

/// Splits at the first comma outside a quoted string.
fn split_member(line: &[u8]) -> (&[u8], &[u8]) {
    let (mut quoted, mut escaped) = (false, false);
    for (at, byte) in line.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = quoted,
            b'"' => quoted = !quoted,
            b',' if !quoted => return (&line[..at], &line[at + 1..]),
            _ => {}
        }
    }
    (line, b"")
}

/// `text` without spaces and tabs at its ends (OWS, RFC 9110 5.6.3).
pub fn trim(text: &[u8]) -> &[u8] {
    let is_text = |b: &u8| !matches!(b, b' ' | b'\t');
    let Some(start) = text.iter().position(is_text) else { return b"" };
    let end = text.iter().rposition(is_text).map_or(start, |last| last + 1);
    &text[start..end]
}

/// The content of a quoted string, with its escapes; `None` if `text` is not one.
pub fn unquote(text: &[u8]) -> Option<&[u8]> {
    let inside = text.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    let mut escaped = false;
    for byte in inside {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return None,
            _ => {}
        }
    }
    (!escaped).then_some(inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all<'a>(lines: &[&'a str]) -> Vec<&'a str> {
        let members = members(lines.iter().map(|l| l.as_bytes()));
        members.map(|m| std::str::from_utf8(m).expect("made of strings")).collect()
    }

    #[test]
    fn members_are_found_across_lines() {
        assert_eq!(all(&["a , b", "", " c\t", ",, ,d,"]), ["a", "b", "c", "d"]);
        assert_eq!(all(&[]), Vec::<&str>::new());
        assert_eq!(all(&[",", ""]), Vec::<&str>::new());
    }

    #[test]
    fn commas_in_quoted_strings_do_not_separate() {
        assert_eq!(all(&[r#"a="1, 2", b="\", c", d"#]), [r#"a="1, 2""#, r#"b="\", c""#, "d"]);
        assert_eq!(all(&[r#"a="open, b"#, "c"]), [r#"a="open, b"#, "c"]);
    }

    #[test]
    fn only_a_whole_quoted_string_is_unquoted() {
        assert_eq!(unquote(br#""a, b""#), Some(&b"a, b"[..]));
        assert_eq!(unquote(br#""""#), Some(&b""[..]));
        for text in [r#"""#, r#""a"#, r#""a"b""#, r#""a\""#, "a", ""] {
            assert_eq!(unquote(text.as_bytes()), None, "{text}");
        }
    }
}
