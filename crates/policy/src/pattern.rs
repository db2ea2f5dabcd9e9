//! Patterns of paths and of names, as settings contain them.

use std::fmt;

use linear::{Options, Regex};
use message::header;
use smallvec::smallvec;

use crate::template::CapturedBytes;

/// The largest size of a compiled pattern in bytes.
const REGEX_BYTES: usize = 1 << 20;

/// The reason why a pattern is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatternError {
    /// A path pattern starts with neither `/`, `*` nor `~`.
    Start,
    /// The regular expression is malformed or too large, with the reason.
    Regex(String),
    /// A name pattern with a misplaced `*`.
    Star,
    /// A name that cannot occur: empty, or with an invalid byte.
    Name,
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start => {
                f.write_str("a path begins with `/`, a suffix with `*`, an expression with `~`")
            }
            Self::Regex(why) => f.write_str(why),
            Self::Star => f.write_str(
                "`*` may only stand at the end of a name, of a cookie's also at its start",
            ),
            Self::Name => f.write_str("a name that cannot occur"),
        }
    }
}

impl std::error::Error for PatternError {}

/// A pattern of paths: `/exact`, `/prefix/*`, `*.suffix`, a glob, or `~ regex` (`~* regex` without
/// regard to case, as in nginx).
///
/// In globs `*` and `?` stay within a segment, `**` crosses segments; a `*` at the start or end of
/// the pattern matches across segments, too. Matching is linear in the path's length for every
/// pattern.
#[derive(Clone, Debug)]
pub struct PathPattern {
    text: String,
    matcher: Search,
}

#[derive(Clone, Debug)]
enum Search {
    Exact,
    /// The length of the prefix within the text.
    Prefix(usize),
    /// The text from the second byte on.
    Suffix,
    Regex(Regex),
    /// The longest text between its stars, which is in every path that matches: to look for it
    /// takes less than a search.
    Glob(Box<[u8]>, Regex),
}

impl PathPattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// If its start or its regular expression is invalid.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let matcher = match text.as_bytes() {
            [b'~', b'*', ..] => Search::Regex(regex(text[2..].trim(), true)?),
            [b'~', ..] => Search::Regex(regex(text[1..].trim(), false)?),
            [b'/' | b'*', ..] => plain(text)?,
            _ => return Err(PatternError::Start),
        };
        Ok(Self { text: text.to_owned(), matcher })
    }

    /// Returns true if `path` matches.
    pub fn matches(&self, path: &[u8]) -> bool {
        let text = self.text.as_bytes();
        match &self.matcher {
            Search::Exact => path == text,
            Search::Prefix(len) => path.starts_with(&text[..*len]),
            Search::Suffix => path.ends_with(&text[1..]),
            Search::Regex(regex) => regex.is_match(path),
            Search::Glob(part, regex) => {
                memchr::memmem::find(path, part).is_some() && regex.is_match(path)
            }
        }
    }

    /// The parts of `path` that the pattern's stars or groups stand for, in their order; a group
    /// that has no part in the match is empty. `None` if the path does not match.
    pub fn captures<'a>(&self, path: &'a [u8]) -> Option<CapturedBytes<'a>> {
        let text = self.text.as_bytes();
        match &self.matcher {
            Search::Exact => (path == text).then(CapturedBytes::new),
            Search::Prefix(len) => path.strip_prefix(&text[..*len]).map(|rest| smallvec![rest]),
            Search::Suffix => path.strip_suffix(&text[1..]).map(|rest| smallvec![rest]),
            Search::Regex(regex) | Search::Glob(_, regex) => {
                let mut groups = regex.room();
                regex.groups(path, 0, &mut groups);
                groups.get_group(0)?;
                let group = |at| groups.get_group(at).map_or(&b""[..], |g| &path[g.start..g.end]);
                Some((1..groups.group_len()).map(group).collect())
            }
        }
    }

    /// The number of its stars or groups.
    pub fn groups(&self) -> usize {
        match &self.matcher {
            Search::Exact => 0,
            Search::Prefix(_) | Search::Suffix => 1,
            Search::Regex(regex) | Search::Glob(_, regex) => {
                regex.room().group_info().all_group_len() - 1
            }
        }
    }

    /// Returns true if `self` certainly matches every path that `other` matches. Returns false in
    /// doubt (two regular expressions).
    pub fn covers(&self, other: &Self) -> bool {
        let begins = |prefix: &[u8]| other.literal_start().starts_with(prefix);
        match &self.matcher {
            Search::Prefix(len) => begins(&self.text.as_bytes()[..*len]),
            _ if matches!(other.matcher, Search::Exact) => self.matches(other.text.as_bytes()),
            _ => self.text == other.text,
        }
    }

    /// Texts at the start: each matching path begins with one of them. `None` if they are not
    /// known.
    pub(crate) fn starts(&self) -> Option<Vec<Vec<u8>>> {
        let text = self.text.as_bytes();
        match &self.matcher {
            Search::Exact => Some(vec![text.to_vec()]),
            Search::Prefix(len) => Some(vec![text[..*len].to_vec()]),
            Search::Suffix => None,
            Search::Regex(regex) | Search::Glob(_, regex) => regex.starts(),
        }
    }

    /// Texts at the end: each matching path ends with one of them. `None` if they are not known.
    pub(crate) fn ends(&self) -> Option<Vec<Vec<u8>>> {
        let text = self.text.as_bytes();
        match &self.matcher {
            Search::Exact => Some(vec![text.to_vec()]),
            Search::Prefix(_) => None,
            Search::Suffix => Some(vec![text[1..].to_vec()]),
            Search::Regex(regex) | Search::Glob(_, regex) => regex.ends(),
        }
    }

    /// The prefix of every matching path.
    fn literal_start(&self) -> &[u8] {
        let text = self.text.as_bytes();
        match &self.matcher {
            Search::Exact => text,
            Search::Prefix(len) => &text[..*len],
            Search::Glob(..) if text[0] == b'/' => {
                let wild = text.iter().position(|b| matches!(b, b'*' | b'?'));
                &text[..wild.unwrap_or(text.len())]
            }
            Search::Suffix | Search::Regex(_) | Search::Glob(..) => b"",
        }
    }

    /// The prefix, if the pattern is nothing else: the `/static/` of `/static/*`.
    pub fn prefix(&self) -> Option<&str> {
        match self.matcher {
            Search::Prefix(len) => self.text.get(..len),
            Search::Exact | Search::Suffix | Search::Regex(_) | Search::Glob(..) => None,
        }
    }

    /// The pattern as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn plain(text: &str) -> Result<Search, PatternError> {
    let wild = |s: &str| s.contains(['*', '?']);
    if !wild(text) {
        return Ok(Search::Exact);
    }
    if let Some(prefix) = text.strip_suffix("**").or_else(|| text.strip_suffix('*'))
        && !wild(prefix)
    {
        return Ok(Search::Prefix(prefix.len()));
    }
    if let Some(suffix) = text.strip_prefix('*')
        && !wild(suffix)
    {
        return Ok(Search::Suffix);
    }
    let longest = text.split(['*', '?']).max_by_key(|part| part.len()).unwrap_or_default();
    Ok(Search::Glob(longest.as_bytes().into(), regex(&glob(text), false)?))
}

/// The regular expression of a glob: the regex engine is linear, which a matcher with two kinds of
/// star would not be by itself.
fn glob(text: &str) -> String {
    let mut expression = String::from("^");
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let at_edge = rest.len() == text.len() || rest.len() == 1;
        if let Some(after) = rest.strip_prefix("**") {
            expression.push_str("(.*)");
            rest = after;
            continue;
        }
        match c {
            '*' if at_edge => expression.push_str("(.*)"),
            '*' => expression.push_str("([^/]*)"),
            '?' => expression.push_str("[^/]"),
            c => expression.push_str(&linear::escape(c.encode_utf8(&mut [0; 4]))),
        }
        rest = &rest[c.len_utf8()..];
    }
    expression.push('$');
    expression
}

pub(crate) fn regex(expression: &str, ignore_case: bool) -> Result<Regex, PatternError> {
    // Bytes, not characters, and `.` matches any of them: a path with an invalid byte must not
    // evade a rule.
    let options =
        Options { ignore_case, dot_is_any: true, program_bytes: REGEX_BYTES, ..Options::default() };
    Regex::new(expression, options).map_err(|error| PatternError::Regex(error.to_string()))
}

/// A pattern of texts, such as a field's values: the whole text, with `*` for anything in it, or
/// `~ regex` (`~* regex` without regard to case).
#[derive(Clone, Debug)]
pub struct TextPattern {
    text: String,
    search: TextSearch,
}

#[derive(Clone, Debug)]
enum TextSearch {
    Whole,
    /// All but the star at the end.
    Prefix,
    /// All but the star at the start.
    Suffix,
    Regex(Regex),
}

impl TextPattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// When its regular expression is refused.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let stars = text.bytes().filter(|b| *b == b'*').count();
        let search = match text.as_bytes() {
            [b'~', b'*', ..] => TextSearch::Regex(regex(text[2..].trim(), true)?),
            [b'~', ..] => TextSearch::Regex(regex(text[1..].trim(), false)?),
            _ if stars == 0 => TextSearch::Whole,
            [.., b'*'] if stars == 1 => TextSearch::Prefix,
            [b'*', ..] if stars == 1 => TextSearch::Suffix,
            _ => {
                let parts: Vec<String> = text.split('*').map(linear::escape).collect();
                TextSearch::Regex(regex(&format!("^{}$", parts.join(".*")), false)?)
            }
        };
        Ok(Self { text: text.to_owned(), search })
    }

    /// Returns true if `value` matches.
    pub fn matches(&self, value: &[u8]) -> bool {
        let text = self.text.as_bytes();
        match &self.search {
            TextSearch::Whole => value == text,
            TextSearch::Prefix => value.starts_with(&text[..text.len() - 1]),
            TextSearch::Suffix => value.ends_with(&text[1..]),
            TextSearch::Regex(regex) => regex.is_match(value),
        }
    }
}

impl fmt::Display for TextPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A name (of a cookie or query parameter) or a part of names: `sid`, `wordpress_logged_in*`, for
/// cookies also `*_session` and `*Token*`. Case-sensitive, as both kinds of name are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NamePattern {
    text: String,
}

impl NamePattern {
    /// Parses a pattern of cookie names, which are tokens (RFC 6265 4.1.1; brackets are permitted,
    /// since PHP uses them).
    ///
    /// # Errors
    /// If no cookie can have the name, or `*` is neither at its start nor at its end.
    pub fn cookie(text: &str) -> Result<Self, PatternError> {
        let allowed = |b| header::is_token_byte(b) || matches!(b, b'[' | b']');
        let name = text.strip_prefix('*').unwrap_or(text);
        Self::parse(text, name, allowed)
    }

    /// Parses a pattern of query parameter names, as written in the target.
    ///
    /// # Errors
    /// If no parameter can have the name, or `*` is not at the end.
    pub fn query(text: &str) -> Result<Self, PatternError> {
        Self::parse(text, text, |b| b.is_ascii_graphic() && !matches!(b, b'&' | b'=' | b'#'))
    }

    fn parse(text: &str, name: &str, allowed: impl Fn(u8) -> bool) -> Result<Self, PatternError> {
        let name = name.strip_suffix('*').unwrap_or(name);
        if name.contains('*') {
            return Err(PatternError::Star);
        }
        if text.is_empty() || !name.bytes().all(allowed) {
            return Err(PatternError::Name);
        }
        Ok(Self { text: text.to_owned() })
    }

    /// The parts: true for a star at the start, the text between the stars, and true for a star at
    /// the end. A single star counts as one at the end.
    fn parts(&self) -> (bool, &[u8], bool) {
        match self.text.as_bytes() {
            [b'*', middle @ .., b'*'] => (true, middle, true),
            [start @ .., b'*'] => (false, start, true),
            [b'*', end @ ..] => (true, end, false),
            whole => (false, whole, false),
        }
    }

    /// Returns true if `name` matches.
    pub fn matches(&self, name: &[u8]) -> bool {
        match self.parts() {
            (false, whole, false) => name == whole,
            (false, start, true) => name.starts_with(start),
            (true, end, false) => name.ends_with(end),
            (true, middle, true) => memchr::memmem::find(name, middle).is_some(),
        }
    }

    /// Returns true if `self` matches every name that `other` matches.
    pub fn covers(&self, other: &Self) -> bool {
        let (open_start, text, open_end) = other.parts();
        match self.parts() {
            (false, whole, false) => !open_start && !open_end && text == whole,
            (false, start, true) => start.is_empty() || (!open_start && text.starts_with(start)),
            (true, end, false) => !open_end && text.ends_with(end),
            (true, middle, true) => memchr::memmem::find(text, middle).is_some(),
        }
    }

    /// The pattern as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn path(text: &str) -> PathPattern {
        PathPattern::parse(text).expect("a pattern")
    }

    #[test]
    fn path_patterns_match_as_documented() {
        for (pattern, yes, no) in [
            ("/shop", &["/shop"][..], &["/shop/", "/shopping", "/"][..]),
            ("/shop/*", &["/shop/", "/shop/a/b"], &["/shop", "/x/shop/"]),
            ("/slow*", &["/slow", "/slower/x"], &["/slo"]),
            ("*", &["/", "/a/b"], &[]),
            ("*.php", &["/index.php", "/a/b.php"], &["/index.php/x", "/index.phpx"]),
            ("/a/*/c", &["/a/b/c", "/a//c"], &["/a/b/b/c", "/a/b/c/"]),
            ("/a/**/c", &["/a/b/c", "/a/b/b/c"], &["/a/c", "/a/b/cc"]),
            ("/a/*/c/*", &["/a/b/c/d/e"], &["/a/b/b/c/d"]),
            ("/a?c", &["/abc"], &["/a/c", "/abbc"]),
            ("/a.(b)?", &["/a.(b)x"], &["/axb", "/a.(b)"]),
            ("~ ^/user/[0-9]+$", &["/user/7"], &["/user/x", "/USER/7"]),
            ("~* ^/user/[0-9]+$", &["/User/7"], &["/user/x"]),
        ] {
            let compiled = path(pattern);
            assert!(yes.iter().all(|p| compiled.matches(p.as_bytes())), "{pattern}");
            assert!(!no.iter().any(|p| compiled.matches(p.as_bytes())), "{pattern}");
        }
    }

    #[test]
    fn stars_and_groups_stand_for_parts_of_a_path() {
        for (pattern, path_text, captures) in [
            ("/old/*", "/old/a/b", Some(&["a/b"][..])),
            ("/old/*", "/new/a", None),
            ("*.html", "/a/b.html", Some(&["/a/b"])),
            ("/a/*/c/**/e?", "/a/b/c/d/d/ef", Some(&["b", "d/d"])),
            ("~ ^/user/([0-9]+)(/x)?", "/user/7", Some(&["7", ""])),
            ("~ ^/user/[0-9]+", "/user/7", Some(&[])),
            ("/exact", "/exact", Some(&[])),
        ] {
            let compiled = path(pattern);
            let found = compiled.captures(path_text.as_bytes());
            let expected = captures.map(|all| all.iter().map(|c| c.as_bytes()).collect());
            assert_eq!(found, expected, "{pattern}");
            if let Some(captures) = captures {
                assert_eq!(compiled.groups(), captures.len(), "{pattern}");
            }
        }
    }

    #[test]
    fn no_byte_slips_past_a_dot_or_a_star() {
        for pattern in ["~ ^/a.b$", "/x/../*/?a**b"] {
            let pattern = path(pattern);
            assert!(pattern.matches(b"/a\xffb") || pattern.matches(b"/x/../\xff\n/\xffa\n\xffb"));
        }
    }

    #[test]
    fn what_is_no_path_pattern_is_refused() {
        assert_eq!(PathPattern::parse("shop").err(), Some(PatternError::Start));
        assert_eq!(PathPattern::parse("").err(), Some(PatternError::Start));
        let Err(PatternError::Regex(why)) = PathPattern::parse("~ ^/(a") else { panic!("refused") };
        assert_eq!(why, "unclosed group");
        assert!(PathPattern::parse("~ (((a{100}){100}){100})").is_err());
    }

    #[test]
    fn a_wider_pattern_covers_a_narrower_one() {
        for (wide, narrow, covers) in [
            ("/shop/*", "/shop/cart/*", true),
            ("/shop/*", "/shop/cart", true),
            ("*", "~ ^/x", true),
            ("*.php", "/index.php", true),
            ("/shop/*", "/shop/*/x?", true),
            ("~ ^/a", "/abc", true),
            ("~ ^/a", "~ ^/a", true),
            ("/shop/cart", "/shop/*", false),
            ("/shop/*", "/shop", false),
            ("/shop/*", "*.php", false),
            ("~ ^/a", "/a*", false),
        ] {
            assert_eq!(path(wide).covers(&path(narrow)), covers, "{wide} over {narrow}");
        }
    }

    #[test]
    fn text_patterns_match_as_documented() {
        for (pattern, yes, no) in [
            ("v2", &["v2"][..], &["v2.1", "V2", ""][..]),
            ("v2*", &["v2", "v2.1"], &["v1", "xv2"]),
            ("*bot", &["bot", "a bot"], &["bots"]),
            ("*b*t*", &["a bot", "bt"], &["tb"]),
            ("a*c", &["ac", "a\nc"], &["ab", "xac"]),
            ("a.*", &["a."], &["ab"]),
            ("*", &["", "anything"], &[]),
            ("~ ^v[23]$", &["v2"], &["v4", "V2"]),
            ("~* ^v[23]$", &["V2"], &["v4"]),
        ] {
            let compiled = TextPattern::parse(pattern).expect("a pattern");
            assert!(yes.iter().all(|text| compiled.matches(text.as_bytes())), "{pattern}");
            assert!(!no.iter().any(|text| compiled.matches(text.as_bytes())), "{pattern}");
        }
        assert!(matches!(TextPattern::parse("~ ("), Err(PatternError::Regex(_))));
    }

    #[test]
    fn name_patterns_match_exactly_or_by_prefix() {
        let name = |t| NamePattern::cookie(t).expect("a pattern");
        assert!(name("sid").matches(b"sid") && !name("sid").matches(b"sid2"));
        assert!(name("wp-*").matches(b"wp-") && name("wp-*").matches(b"wp-x"));
        assert!(!name("wp-*").matches(b"WP-x") && name("*").matches(b"anything"));
        assert!(
            name("*_session").matches(b"my_wiki_session") && !name("*_session").matches(b"session")
        );
        assert!(name("*UserID*").matches(b"wikiUserID2") && !name("*UserID*").matches(b"wikiUser"));
        assert_eq!(NamePattern::cookie("a*b"), Err(PatternError::Star));
        for bad in ["", "a;b", "a=b", "a b"] {
            assert_eq!(NamePattern::cookie(bad), Err(PatternError::Name), "{bad}");
        }
        assert_eq!(NamePattern::query("a&b"), Err(PatternError::Name));
        assert_eq!(NamePattern::query("*a"), Err(PatternError::Star));
        assert!(NamePattern::query("items[]").is_ok());
    }

    proptest! {
        #[test]
        fn a_name_pattern_covers_only_what_it_matches(
            wide in "[*]?[ab]{0,2}[*]?", narrow in "[*]?[ab]{0,3}[*]?", probe in "[ab]{0,5}",
        ) {
            let (Ok(wide), Ok(narrow)) = (NamePattern::cookie(&wide), NamePattern::cookie(&narrow))
            else { return Ok(()) };
            if wide.covers(&narrow) && narrow.matches(probe.as_bytes()) {
                prop_assert!(wide.matches(probe.as_bytes()));
            }
            prop_assert!(wide.covers(&wide));
        }

        #[test]
        fn any_text_is_read_or_refused(
            text in "\\PC{0,20}",
            path in prop::collection::vec(any::<u8>(), 0..20),
        ) {
            if let Ok(pattern) = PathPattern::parse(&text) {
                pattern.matches(&path);
                prop_assert!(pattern.covers(&pattern));
            }
            let _ = NamePattern::cookie(&text);
            let _ = NamePattern::query(&text);
        }

        #[test]
        fn what_covers_matches_whatever_the_covered_does(
            wide in "/[ab*?/]{0,4}", narrow in "/[ab*?/]{0,5}", probe in "/[ab/]{0,6}",
        ) {
            let (wide, narrow) = (path(&wide), path(&narrow));
            if wide.covers(&narrow) && narrow.matches(probe.as_bytes()) {
                prop_assert!(wide.matches(probe.as_bytes()));
            }
        }
    }
}
