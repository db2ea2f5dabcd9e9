//! PCRE syntax that can be removed without a change of meaning: comments, and atomic groups with
//! only one way to match. An atomic group never gives back what it has matched; so it equals a
//! plain group if it can match in only one length at each place, or if nothing follows it. Other
//! groups are never touched.

use std::borrow::Cow;

use regex_syntax::ParserBuilder;
use regex_syntax::hir::Hir;
use regex_syntax::hir::literal::Extractor;

/// Most alternatives of a group that are compared one by one.
const TEXTS: usize = 250;

/// `pattern` without comments and needless atomic groups. The engine rejects what remains.
pub(crate) fn plain(pattern: &str) -> Cow<'_, str> {
    let is_more = pattern.contains("(?#") || pattern.contains("(?>");
    // With the flag `x`, other text is a comment too.
    if !is_more || has_verbose_flag(pattern) {
        return Cow::Borrowed(pattern);
    }
    let Some(mut pattern) = without_comments(pattern) else { return Cow::Borrowed(pattern) };
    // Inner groups come first: when a group is examined, its content is already plain.
    for (start, end) in atomic_groups(&pattern).into_iter().rev() {
        let is_last = pattern[end + 1..].bytes().all(|byte| byte == b')');
        if is_last || has_one_end(&pattern[start + 3..end]) {
            pattern.replace_range(start + 2..start + 3, ":");
        }
    }
    Cow::Owned(pattern)
}

fn has_verbose_flag(pattern: &str) -> bool {
    pattern.split("(?").skip(1).any(|rest| {
        let mut flags = rest.bytes().take_while(|b| b.is_ascii_alphabetic() || *b == b'-');
        flags.any(|flag| flag == b'x')
    })
}

/// Bytes outside of character classes, with their offsets. An escape or a class counts as its first
/// byte.
fn outside(pattern: &str) -> impl Iterator<Item = (usize, u8)> {
    let bytes = pattern.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        let here = at;
        let byte = *bytes.get(here)?;
        at = match byte {
            b'\\' => here + 2,
            b'[' => class_end(bytes, here) + 1,
            _ => here + 1,
        };
        Some((here, byte))
    })
}

/// The end of the class that begins at `at`, or the end of the pattern.
fn class_end(bytes: &[u8], at: usize) -> usize {
    let mut end = at + 1;
    if bytes.get(end) == Some(&b'^') {
        end += 1;
    }
    // A bracket directly behind the opening one is a member.
    if bytes.get(end) == Some(&b']') {
        end += 1;
    }
    while let Some(byte) = bytes.get(end) {
        match byte {
            b']' => return end,
            b'\\' => end += 1,
            b'[' if bytes.get(end + 1) == Some(&b':') => {
                let name = bytes[end + 2..].windows(2).position(|two| two == b":]");
                end += name.map_or(0, |len| len + 3);
            }
            _ => {}
        }
        end += 1;
    }
    end
}

/// The pattern with `(?:)` in place of comments; `None` if a comment precedes a quantifier or is
/// not closed.
fn without_comments(pattern: &str) -> Option<String> {
    let mut text = pattern.to_owned();
    loop {
        let begins =
            |(at, byte): (usize, u8)| (byte == b'(' && text[at..].starts_with("(?#")).then_some(at);
        let Some(start) = outside(&text).find_map(begins) else { return Some(text) };
        let end = start + text[start..].find(')')?;
        if text[end + 1..].starts_with(['*', '+', '?', '{']) {
            return None;
        }
        text.replace_range(start..=end, "(?:)");
    }
}

/// Begin and end of each atomic group, in the order of their beginnings.
fn atomic_groups(pattern: &str) -> Vec<(usize, usize)> {
    let mut open = Vec::new();
    let mut found = Vec::new();
    for (at, byte) in outside(pattern) {
        match byte {
            b'(' => open.push(at),
            b')' => {
                let start = open.pop();
                found.extend(start.filter(|s| pattern[*s..].starts_with("(?>")).map(|s| (s, at)));
            }
            _ => {}
        }
    }
    found.sort_unstable();
    found
}

/// Returns true if all matches of `text` at one place have the same length, in either case.
fn has_one_end(text: &str) -> bool {
    [false, true].into_iter().all(|ignore_case| {
        let mut parser = ParserBuilder::new();
        parser.unicode(false).utf8(false).case_insensitive(ignore_case);
        parser.build().parse(text).is_ok_and(|hir| ends_at_one(&hir))
    })
}

fn ends_at_one(hir: &Hir) -> bool {
    let properties = hir.properties();
    if properties.minimum_len().is_some() && properties.minimum_len() == properties.maximum_len() {
        return true;
    }
    let texts = Extractor::new().limit_total(TEXTS).extract(hir);
    let (true, Some(texts)) = (texts.is_exact(), texts.literals()) else { return false };
    // No alternative is a prefix of another.
    let mut texts: Vec<&[u8]> = texts.iter().map(|text| text.as_bytes()).collect();
    texts.sort_unstable();
    texts.dedup();
    texts.windows(2).all(|two| !two[1].starts_with(two[0]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_is_nothing() {
        for (written, meant) in [
            ("a(?#b)c", "a(?:)c"),
            ("(?#a)(?#b(c)", "(?:)(?:)"),
            (r"\(?#a)", r"\(?#a)"),
            ("[(?#]a)", "[(?#]a)"),
            ("[](?#a)]", "[](?#a)]"),
            ("[[:alpha:](?#a]", "[[:alpha:](?#a]"),
            // Engines disagree on the quantified element; the second comment is not closed.
            ("a(?#b)+", "a(?#b)+"),
            ("a(?#b", "a(?#b"),
            ("(?x)a # (?#b)", "(?x)a # (?#b)"),
        ] {
            assert_eq!(plain(written), meant);
        }
    }

    #[test]
    fn an_atomic_group_with_one_way_to_match_is_a_group() {
        for (written, meant) in [
            ("(?>a)b", "(?:a)b"),
            ("(?>abc|[a-z]\\d.)+$", "(?:abc|[a-z]\\d.)+$"),
            (r"\.(?>png|jpe?g)(\?|$)", r"\.(?:png|jpe?g)(\?|$)"),
            ("(?>(?>a)b|c)d", "(?:(?:a)b|c)d"),
            ("^/a(?>b+|c)", "^/a(?:b+|c)"),
            ("(x(?>b*))", "(x(?:b*))"),
            ("(?>a(?#one))b", "(?:a(?:))b"),
            (r"\(?>a)", r"\(?>a)"),
            // The group can match in several lengths, and more follows.
            ("(?>a+)b", "(?>a+)b"),
            ("(?>a|ab)c", "(?>a|ab)c"),
            ("(?>ab|a)c", "(?>ab|a)c"),
            ("(?i)(?>a|AB)c", "(?i)(?>a|AB)c"),
            ("(?>a?)$", "(?>a?)$"),
            ("(?>(?>a+)b)c", "(?>(?>a+)b)c"),
            ("(?>a+)+", "(?>a+)+"),
        ] {
            assert_eq!(plain(written), meant);
        }
    }
}
