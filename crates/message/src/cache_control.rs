//! Cache-Control of requests and responses (RFC 9111 5.2, RFC 5861, RFC 8246).
//!
//! Parses only; `store` decides what follows from the directives. Must never allocate.

use crate::header::is_token;
use crate::list::{members, unquote};

/// Largest delta-seconds; larger values are clamped to it (RFC 9111 1.2.2).
pub const MAX_DELTA_SECS: u32 = 1 << 31;

/// The scope of `no-cache` or `private`, ordered: a later one forbids more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum DirectiveScope {
    /// The directive is absent.
    #[default]
    Absent,
    /// The directive applies to the fields that it names ([`named_fields`]).
    Fields,
    /// The directive applies to the whole response.
    Whole,
}

/// The known directives; all others are ignored (RFC 9111 5.2.3).
///
/// Times are seconds. If a directive is repeated, the first counts. A missing or non-numeric
/// argument is read as 0, which is the conservative value of each directive: expired, no stale use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheControl {
    /// max-age
    pub max_age: Option<u32>,
    /// s-maxage
    pub s_maxage: Option<u32>,
    /// min-fresh (requests)
    pub min_fresh: Option<u32>,
    /// max-stale (requests); without an argument [`MAX_DELTA_SECS`]
    pub max_stale: Option<u32>,
    /// stale-while-revalidate
    pub stale_while_revalidate: Option<u32>,
    /// stale-if-error
    pub stale_if_error: Option<u32>,
    /// no-cache
    pub no_cache: DirectiveScope,
    /// private
    pub private: DirectiveScope,
    /// no-store
    pub no_store: bool,
    /// public
    pub public: bool,
    /// must-revalidate
    pub must_revalidate: bool,
    /// proxy-revalidate
    pub proxy_revalidate: bool,
    /// must-understand
    pub must_understand: bool,
    /// no-transform
    pub no_transform: bool,
    /// immutable
    pub immutable: bool,
    /// only-if-cached (requests)
    pub only_if_cached: bool,
}

impl CacheControl {
    /// Parses all lines of a Cache-Control field.
    pub fn parse<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut control = Self::default();
        for member in members(values) {
            let (name, argument) = split_directive(member);
            control.directive(name, argument);
        }
        control
    }

    /// Returns true if a shared cache may never use the response stale (RFC 9111 4.2.4). s-maxage
    /// also forbids it (5.2.2.10), but is not tested here, since few sites that send it mean that.
    pub fn forbids_stale(&self) -> bool {
        self.must_revalidate || self.proxy_revalidate || self.no_cache == DirectiveScope::Whole
    }

    /// Applies one directive; its name is compared without regard to case.
    fn directive(&mut self, name: &[u8], argument: Option<&[u8]>) {
        let is = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
        if is("max-age") {
            first(&mut self.max_age, argument);
        } else if is("s-maxage") {
            first(&mut self.s_maxage, argument);
        } else if is("stale-while-revalidate") {
            first(&mut self.stale_while_revalidate, argument);
        } else if is("stale-if-error") {
            first(&mut self.stale_if_error, argument);
        } else if is("min-fresh") {
            first(&mut self.min_fresh, argument);
        } else if is("max-stale") {
            match argument {
                Some(_) => first(&mut self.max_stale, argument),
                None => self.max_stale = self.max_stale.or(Some(MAX_DELTA_SECS)),
            }
        } else if is("no-cache") {
            self.no_cache = self.no_cache.max(scope(argument));
        } else if is("private") {
            self.private = self.private.max(scope(argument));
        } else if let Some(flag) = self.flag(name) {
            *flag = true;
        }
    }

    /// The flag of the directive called `name`, if it needs no argument.
    pub(crate) fn flag(&mut self, name: &[u8]) -> Option<&mut bool> {
        let is = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
        Some(match () {
            () if is("no-store") => &mut self.no_store,
            () if is("public") => &mut self.public,
            () if is("must-revalidate") => &mut self.must_revalidate,
            () if is("proxy-revalidate") => &mut self.proxy_revalidate,
            () if is("must-understand") => &mut self.must_understand,
            () if is("no-transform") => &mut self.no_transform,
            () if is("immutable") => &mut self.immutable,
            () if is("only-if-cached") => &mut self.only_if_cached,
            () => return None,
        })
    }
}

/// Fields named by `no-cache="..."` and `private="..."`, which are not stored with the response
/// (RFC 9111 3.1).
pub fn named_fields<'a>(
    values: impl IntoIterator<Item = &'a [u8]>,
) -> impl Iterator<Item = &'a [u8]> {
    members(values)
        .filter_map(|member| {
            let (name, argument) = split_directive(member);
            let names_fields =
                name.eq_ignore_ascii_case(b"no-cache") || name.eq_ignore_ascii_case(b"private");
            argument.filter(|_| names_fields)
        })
        .flat_map(|argument| members([plain(argument)]))
}

fn split_directive(member: &[u8]) -> (&[u8], Option<&[u8]>) {
    match member.iter().position(|b| *b == b'=') {
        Some(at) => (&member[..at], Some(&member[at + 1..])),
        None => (member, None),
    }
}

/// An argument without quotes: token and quoted form are equivalent (RFC 9111 5.2).
fn plain(argument: &[u8]) -> &[u8] {
    unquote(argument).unwrap_or(argument)
}

fn first(slot: &mut Option<u32>, argument: Option<&[u8]>) {
    if slot.is_none() {
        *slot = Some(argument.and_then(|a| delta_secs(plain(a))).unwrap_or(0));
    }
}

/// Digits as seconds, [`MAX_DELTA_SECS`] at most; `None` for anything else.
pub fn delta_secs(text: &[u8]) -> Option<u32> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0, |sum: u32, b| {
        let digit = b.is_ascii_digit().then(|| u32::from(b - b'0'))?;
        Some(sum.saturating_mul(10).saturating_add(digit).min(MAX_DELTA_SECS))
    })
}

/// A list of field names restricts the directive to them; any other argument counts as none.
fn scope(argument: Option<&[u8]>) -> DirectiveScope {
    let Some(argument) = argument else { return DirectiveScope::Whole };
    let mut names = members([plain(argument)]).peekable();
    if names.peek().is_some() && names.all(is_token) {
        DirectiveScope::Fields
    } else {
        DirectiveScope::Whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(lines: &[&str]) -> CacheControl {
        CacheControl::parse(lines.iter().map(|l| l.as_bytes()))
    }

    #[test]
    fn directives_are_read_in_any_case_and_form() {
        let control = parse(&["MaX-aGe=003600, foobar", r#"S-MAXAGE="5", No-StOrE, immutable"#]);
        assert_eq!((control.max_age, control.s_maxage), (Some(3600), Some(5)));
        assert!(control.no_store && control.immutable && !control.public);
    }

    #[test]
    fn the_first_of_two_counts() {
        assert_eq!(parse(&["max-age=1, max-age=1800"]).max_age, Some(1));
        assert_eq!(parse(&["max-age=1800", "max-age=1"]).max_age, Some(1800));
        assert_eq!(parse(&["max-age=x, max-age=1"]).max_age, Some(0));
    }

    #[test]
    fn a_lifetime_that_is_no_number_is_over() {
        for text in
            ["max-age", "max-age=", "max-age=-1", "max-age=1.5", "max-age='1'", "max-age= 1"]
        {
            assert_eq!(parse(&[text]).max_age, Some(0), "{text}");
        }
        assert_eq!(parse(&[r#"max-age="1"#]).max_age, Some(0));
        assert_eq!(parse(&["max-age =1"]).max_age, None);
    }

    #[test]
    fn large_numbers_stop_at_two_to_the_31st() {
        for text in ["2147483648", "2147483649", "99999999999", "99999999999999999999999999"] {
            assert_eq!(parse(&[&format!("max-age={text}")]).max_age, Some(1 << 31), "{text}");
        }
        assert_eq!(parse(&["max-age=2147483647"]).max_age, Some((1 << 31) - 1));
    }

    #[test]
    fn directives_in_quoted_strings_are_none() {
        let control = parse(&[r#"extension="max-age=3600, no-store", max-age=1"#]);
        assert_eq!((control.max_age, control.no_store), (Some(1), false));
    }

    #[test]
    fn field_names_narrow_no_cache_and_private() {
        assert_eq!(parse(&[r#"no-cache="a, b""#]).no_cache, DirectiveScope::Fields);
        assert_eq!(parse(&["private=a"]).private, DirectiveScope::Fields);
        for text in ["no-cache", r#"no-cache="""#, r#"no-cache="a b""#, r#"no-cache="a, no-cache"#]
        {
            assert_eq!(parse(&[text]).no_cache, DirectiveScope::Whole, "{text}");
        }
        assert_eq!(parse(&[r#"no-cache="a", no-cache"#]).no_cache, DirectiveScope::Whole);
        let lines = [&br#"no-cache="a, b", max-age="c""#[..], b"private=d, no-cache"];
        let named: Vec<_> = named_fields(lines).collect();
        assert_eq!(named, [&b"a"[..], b"b", b"d"]);
    }

    #[test]
    fn request_directives_are_read() {
        let control = parse(&["max-stale, min-fresh=5, only-if-cached"]);
        assert_eq!((control.max_stale, control.min_fresh), (Some(MAX_DELTA_SECS), Some(5)));
        assert!(control.only_if_cached);
        assert_eq!(parse(&["max-stale=7"]).max_stale, Some(7));
    }
}
