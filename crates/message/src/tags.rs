//! Tags (surrogate keys) that a response carries, by which it is invalidated later.
//!
//! Every field is parsed by its own convention: the fields of Fastly, Cloudflare, Akamai, Varnish's
//! xkey, Magento, Drupal and FOSHttpCache separate tags by blanks, commas or both; Cache-Groups
//! (RFC 9875) is a list of structured strings.

use crate::header::{Field, HeaderBlock};
use crate::list;

/// Fields with tags separated by blanks and commas.
const PLAIN: [&[u8]; 9] = [
    b"surrogate-key",
    b"cache-tag",
    b"cache-tags",
    b"xkey",
    // xkey's former name.
    b"x-hashtwo",
    b"x-magento-tags",
    b"edge-cache-tag",
    b"x-cache-tags",
    b"purge-cache-tags",
];

/// The fields that Varnish's xkey reads.
const XKEY: [&[u8]; 2] = [b"xkey", b"x-hashtwo"];

/// RFC 9875 2.
const CACHE_GROUPS: &[u8] = b"cache-groups";

/// Returns true if a response's field called `name` carries tags.
pub fn is_tag_field(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(CACHE_GROUPS) || is_plain(name)
}

fn is_plain(name: &[u8]) -> bool {
    PLAIN.iter().any(|plain| name.eq_ignore_ascii_case(plain))
}

/// The fields of `headers` that carry tags.
pub fn fields(headers: &HeaderBlock) -> impl Iterator<Item = Field<'_>> {
    headers.iter().filter(|field| is_tag_field(field.name))
}

/// Passes every tag in `headers` to `each`.
pub fn of_response(headers: &HeaderBlock, mut each: impl FnMut(&[u8])) {
    for field in fields(headers) {
        if is_plain(field.name) {
            plain(field.value).for_each(&mut each);
        }
    }
    groups(headers.values_named(CACHE_GROUPS), each);
}

/// Passes every tag in the fields that Varnish's xkey reads to `each`; a repeated tag is passed
/// twice.
pub fn of_xkey(headers: &HeaderBlock, mut each: impl FnMut(&[u8])) {
    for name in XKEY {
        headers.values_named(name).flat_map(plain).for_each(&mut each);
    }
}

/// The tags of one value of any field but Cache-Groups.
pub fn plain(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|b| matches!(b, b' ' | b'\t' | b',')).filter(|tag| !tag.is_empty())
}

/// The groups of Cache-Groups or Cache-Group-Invalidation: strings of a list, whose parameters are
/// ignored. A member that is not a tag is skipped: the RFC would ignore the whole field, but then
/// its other groups could never be invalidated.
pub fn groups<'a>(lines: impl Iterator<Item = &'a [u8]>, mut each: impl FnMut(&[u8])) {
    let mut unescaped = Vec::new();
    for member in list::members(lines) {
        let Some(end) = end_of_string(member) else { continue };
        unescaped.clear();
        let mut escaped = false;
        for byte in &member[1..end] {
            escaped = *byte == b'\\' && !escaped;
            if !escaped {
                unescaped.push(*byte);
            }
        }
        each(&unescaped);
    }
}

/// The position of the second quote of the string at the start of `member`.
fn end_of_string(member: &[u8]) -> Option<usize> {
    let (b'"', rest) = member.split_first()? else { return None };
    let mut escaped = false;
    for (at, byte) in rest.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// The tags that a pattern names, in the forms that plugins send for Varnish's `~`: literal
/// alternatives in any number of groups, each with optional expressions for the border of a tag
/// (`(^|,)a(,|$)`, `(^| )`, `^`, `$`, `(,.+)?$`). `None` for any other expression; and, if
/// `anchored`, for one without borders, which would also match parts of tags.
pub fn of_pattern(pattern: &str, anchored: bool) -> Option<Vec<String>> {
    let mut rest = pattern.to_owned();
    let mut borders = 0;
    for border in BORDERS {
        borders += rest.matches(border).count();
        rest = rest.replace(border, "");
    }
    if anchored && borders < 2 {
        return None;
    }
    let mut tags = Vec::new();
    let mut literal = Literal::default();
    let mut depth = 0_u32;
    let mut chars = rest.chars();
    while let Some(c) = chars.next() {
        match c {
            '(' => {
                literal.open()?;
                depth += 1;
            }
            ')' => {
                depth = depth.checked_sub(1)?;
                literal.close();
            }
            '|' => tags.extend(literal.end()),
            '\\' => literal.push(chars.next().filter(|c| !c.is_ascii_alphanumeric())?)?,
            '.' | '*' | '+' | '?' | '[' | ']' | '{' | '}' | '^' | '$' | ',' => return None,
            c if c.is_whitespace() => return None,
            c => literal.push(c)?,
        }
    }
    tags.extend(literal.end());
    (depth == 0 && !tags.is_empty()).then_some(tags)
}

/// Expressions for the border of a tag; longer ones first.
const BORDERS: [&str; 15] = [
    "(,.+)?$", "(^|\\,)", "($|\\,)", "(^|,)", "(,|$)", "(^| )", "( |$)", "(^|\\s)", "(\\s|$)",
    "(^|[ ,])", "([ ,]|$)", "(?:^|,)", "(?:,|$)", "^", "$",
];

/// One alternative: a literal, with optional groups around the whole of it.
#[derive(Default)]
struct Literal {
    text: String,
    closed: bool,
}

impl Literal {
    /// A group may begin only at the start.
    fn open(&self) -> Option<()> {
        (self.text.is_empty() && !self.closed).then_some(())
    }

    fn close(&mut self) {
        self.closed = true;
    }

    fn push(&mut self, c: char) -> Option<()> {
        if self.closed {
            return None;
        }
        self.text.push(c);
        Some(())
    }

    fn end(&mut self) -> Option<String> {
        self.closed = false;
        Some(std::mem::take(&mut self.text)).filter(|text| !text.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(lines: &[(&str, &str)]) -> Vec<String> {
        let mut headers = HeaderBlock::new();
        for (name, value) in lines {
            headers.push_named(name.as_bytes(), value.as_bytes());
        }
        let mut all = Vec::new();
        of_response(&headers, |tag| all.push(String::from_utf8_lossy(tag).into_owned()));
        all
    }

    #[test]
    fn every_field_is_read_by_its_custom() {
        for (name, value, expected) in [
            ("Surrogate-Key", "post-1 home  feed", &["post-1", "home", "feed"][..]),
            ("Cache-Tag", "a,b, c", &["a", "b", "c"]),
            ("xkey", "a b,c", &["a", "b", "c"]),
            ("X-Magento-Tags", "cat_p_1,cms_b_2", &["cat_p_1", "cms_b_2"]),
            ("Edge-Cache-Tag", "a;x, b", &["a;x", "b"]),
            ("Purge-Cache-Tags", "node:1 node_list", &["node:1", "node_list"]),
            ("CACHE-TAGS", " ,, ", &[]),
            (
                "Cache-Groups",
                "\"a b\", \"c\\\"d\\\\\";p=\"x,y\", tok, \"\"",
                &["a b", "c\"d\\", ""],
            ),
            ("Cache-Control", "a", &[]),
        ] {
            assert_eq!(tags(&[(name, value)]), expected, "{name}");
        }
        assert_eq!(tags(&[("xkey", "a"), ("X-Cache-Tags", "b"), ("xkey", "c")]), ["a", "b", "c"]);
    }

    #[test]
    fn patterns_of_plugins_name_tags() {
        for (pattern, expected) in [
            ("((^|,)cat_p_1(,|$))|((^|,)cat_p_2(,|$))", &["cat_p_1", "cat_p_2"][..]),
            ("(^|,)(post\\-1|home)(,|$)", &["post-1", "home"]),
            ("(a|b)(,.+)?$", &["a", "b"]),
            ("(^|\\s)node:1(\\s|$)", &["node:1"]),
            ("node:1|node:2", &["node:1", "node:2"]),
            ("^a$", &["a"]),
            ("(?:^|,)a(?:,|$)", &["a"]),
        ] {
            let found = of_pattern(pattern, false).expect(pattern);
            assert_eq!(found, expected, "{pattern}");
        }
        for pattern in
            [".*", "a.*", "", "|", "(a", "a)", "(a)b", "a(b)", "[a]", "a{2}", "\\w", "a,b"]
        {
            assert_eq!(of_pattern(pattern, false), None, "{pattern}");
        }
        assert_eq!(of_pattern("a|b", true), None);
        assert!(of_pattern("(^|,)(a|b)(,|$)", true).is_some());
    }
}
