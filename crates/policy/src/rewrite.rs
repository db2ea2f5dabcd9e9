//! The URL that an origin is asked for, where it is another than the client's.
//!
//! The key has the client's URL: what clients ask for is what is stored, purged and told. An origin
//! is never asked for a path that leads upwards, whatever a client has put into it.

use std::fmt;

use message::Request;

use crate::template::{
    Template, TemplateError, TemplatePiece, TemplateValues, Variable, VariableSet,
};

/// A change of the URL on its way to the origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rewrite {
    /// It becomes this; a text without a query keeps the client's.
    To(Template),
    /// The path loses a prefix, if it has it, and then gets another.
    Prefix {
        /// The prefix that goes; empty for none. It ends where a segment ends.
        strip: Box<str>,
        /// The prefix that comes; empty for none.
        add: Box<str>,
    },
}

/// Why a rewrite was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RewriteError {
    /// It does not begin with a path.
    Start,
    /// It has a byte that no URL has.
    Byte,
    /// A prefix that is no path, ends with a slash, or has a query.
    Prefix,
    /// A variable is unknown.
    Template(TemplateError),
}

impl fmt::Display for RewriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start => f.write_str("the new URL is a path: it begins with `/` or `$path`"),
            Self::Byte => f.write_str("a URL has no spaces, `#` or control characters"),
            Self::Prefix => f.write_str("a prefix is a path without a slash at its end: `/api`"),
            Self::Template(why) => why.fmt(f),
        }
    }
}

impl std::error::Error for RewriteError {}

impl Rewrite {
    /// Reads the URL that an origin is asked for.
    ///
    /// # Errors
    /// When it is no path, or has a variable that is not of the URL.
    pub fn parse(text: &str) -> Result<Self, RewriteError> {
        if !text.bytes().all(|b| b.is_ascii_graphic() && b != b'#') {
            return Err(RewriteError::Byte);
        }
        let template = Template::parse(text, VariableSet::Url).map_err(RewriteError::Template)?;
        match template.pieces().first() {
            Some(TemplatePiece::Text(text)) if text.starts_with('/') => {}
            Some(TemplatePiece::Variable(Variable::Path)) => {}
            _ => return Err(RewriteError::Start),
        }
        Ok(Self::To(template))
    }

    /// Reads a prefix of paths.
    ///
    /// # Errors
    /// When it is not a prefix of paths.
    pub fn prefix(text: &str) -> Result<Box<str>, RewriteError> {
        let is_path = text.starts_with('/') && text.len() > 1 && !text.ends_with('/');
        let fits = |b: u8| b.is_ascii_graphic() && !matches!(b, b'?' | b'#' | b'%' | b'\\');
        match is_path && text.bytes().all(fits) && !leads_upwards(text.as_bytes()) {
            true => Ok(text.into()),
            false => Err(RewriteError::Prefix),
        }
    }

    /// The highest number of a capture that it needs; 0 if it needs none.
    pub fn captures(&self) -> usize {
        match self {
            Self::To(template) => template.captures(),
            Self::Prefix { .. } => 0,
        }
    }

    /// The target that the origin is asked for; `None` if it would lead upwards.
    pub(crate) fn target(&self, request: &Request, captures: &[&[u8]]) -> Option<Vec<u8>> {
        let mut target = Vec::with_capacity(request.target.len() + 32);
        match self {
            Self::To(template) => {
                template.write(TemplateValues { request, client: None, captures }, &mut target);
                let has_query = template.pieces().iter().any(|piece| match piece {
                    TemplatePiece::Text(text) => text.contains('?'),
                    TemplatePiece::Variable(variable) => *variable == Variable::Query,
                });
                if !has_query {
                    // A capture is of a path, and has none.
                    Variable::Query
                        .write(TemplateValues { request, client: None, captures }, &mut target);
                }
            }
            Self::Prefix { strip, add } => {
                target.extend_from_slice(add.as_bytes());
                let rest = without_prefix(request.path(), strip.as_bytes());
                // One slash: `//name` could be taken for a host.
                let begin = rest.iter().position(|b| *b != b'/').unwrap_or(rest.len());
                target.push(b'/');
                target.extend_from_slice(&rest[begin..]);
                target.extend_from_slice(&request.target[request.path().len()..]);
            }
        }
        let end = memchr::memchr(b'?', &target).unwrap_or(target.len());
        let is_path = target.starts_with(b"/") && !target.starts_with(b"//");
        (is_path && !leads_upwards(&target[..end])).then_some(target)
    }
}

impl fmt::Display for Rewrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::To(template) => template.fmt(f),
            Self::Prefix { strip, add } if add.is_empty() => write!(f, "without {strip}"),
            Self::Prefix { strip, add } if strip.is_empty() => write!(f, "{add} before it"),
            Self::Prefix { strip, add } => write!(f, "{add} for {strip}"),
        }
    }
}

/// `path` without `prefix`, if that ends where a segment of the path does.
fn without_prefix<'p>(path: &'p [u8], prefix: &[u8]) -> &'p [u8] {
    match path.strip_prefix(prefix) {
        Some(rest) if rest.is_empty() || rest[0] == b'/' => rest,
        _ => path,
    }
}

/// Returns true if a segment of `path` is `.` or `..`, written with escapes or with parameters
/// perhaps. A client's path has lost such segments; one that is put together may have them.
fn leads_upwards(path: &[u8]) -> bool {
    let decoded = message::percent::decode(path);
    decoded.split(|b| matches!(b, b'/' | b'\\')).any(|segment| {
        let end = memchr::memchr(b';', segment).unwrap_or(segment.len());
        matches!(&segment[..end], b"." | b"..")
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn asked(rewrite: &Rewrite, target: &str, captures: &[&[u8]]) -> Option<String> {
        let mut request = Request::new();
        request.target.extend_from_slice(target.as_bytes());
        rewrite.target(&request, captures).map(|target| String::from_utf8(target).expect("text"))
    }

    #[test]
    fn a_url_becomes_what_is_written() {
        for (text, target, expected) in [
            ("/index.php?p=$1", "/user/7", "/index.php?p=one"),
            ("/index.php?p=$1&$args", "/user/7?a=b", "/index.php?p=one&a=b"),
            // A query of its own takes the place of the client's, and otherwise that stays.
            ("/index.php?p=$1", "/user/7?a=b", "/index.php?p=one"),
            ("/new/$1", "/user/7?a=b", "/new/one?a=b"),
            ("/new$path$query", "/user/7?a=b", "/new/user/7?a=b"),
            ("$path", "/user/7?a=b", "/user/7?a=b"),
        ] {
            let rewrite = Rewrite::parse(text).expect("a rewrite");
            assert_eq!(asked(&rewrite, target, &[b"one"]).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn prefixes_end_where_segments_do() {
        let prefix =
            |strip: &str, add: &str| Rewrite::Prefix { strip: strip.into(), add: add.into() };
        for (rewrite, target, expected) in [
            (prefix("/api", ""), "/api/a?b", "/a?b"),
            (prefix("/api", ""), "/api", "/"),
            (prefix("/api", ""), "/api?b", "/?b"),
            (prefix("/api", ""), "/apis/a", "/apis/a"),
            (prefix("/api", ""), "/api//a.test/b", "/a.test/b"),
            (prefix("/api", "/v2"), "/api/a", "/v2/a"),
            (prefix("", "/v2"), "/a", "/v2/a"),
        ] {
            assert_eq!(asked(&rewrite, target, &[]).as_deref(), Some(expected), "{target}");
        }
    }

    #[test]
    fn no_capture_leads_upwards_or_to_another_host() {
        let rewrite = Rewrite::parse("/files/$1").expect("a rewrite");
        for bad in ["../secret", "a/../../b", "%2e%2e/a", ".", "..;x/a", "..%5ca"] {
            assert_eq!(asked(&rewrite, "/x", &[bad.as_bytes()]), None, "{bad}");
        }
        assert!(asked(&rewrite, "/x", &[b"..a/b.."]).is_some());
        let root = Rewrite::parse("/$1").expect("a rewrite");
        assert_eq!(asked(&root, "/x", &[b"/evil.example/"]), None);
    }

    #[test]
    fn what_is_no_url_is_refused() {
        for (text, why) in [
            ("index.php", RewriteError::Start),
            ("$1", RewriteError::Start),
            ("", RewriteError::Start),
            ("http://a/", RewriteError::Start),
            ("/a b", RewriteError::Byte),
            ("/a#b", RewriteError::Byte),
        ] {
            assert_eq!(Rewrite::parse(text), Err(why), "{text}");
        }
        assert!(matches!(Rewrite::parse("/$client"), Err(RewriteError::Template(_))));
        for bad in ["", "/", "api", "/api/", "/a?b", "/a/../b", "/a b"] {
            assert_eq!(Rewrite::prefix(bad), Err(RewriteError::Prefix), "{bad}");
        }
        assert_eq!(Rewrite::prefix("/api/v1").as_deref(), Ok("/api/v1"));
    }

    proptest! {
        #[test]
        fn whatever_a_client_sends_the_target_is_a_path_below_the_root(
            path in "/[a./%25;e\\\\]{0,10}", capture in "[a./%25e;\\\\]{0,10}",
        ) {
            for rewrite in [
                Rewrite::parse("/f/$1").expect("a rewrite"),
                Rewrite::parse("$path").expect("a rewrite"),
                Rewrite::Prefix { strip: "/a".into(), add: "/b".into() },
            ] {
                let Some(target) = asked(&rewrite, &path, &[capture.as_bytes()]) else { continue };
                prop_assert!(target.starts_with('/') && !target.starts_with("//"));
                let mut normal = Vec::new();
                // What is left has no dots to resolve.
                if message::path::normal_form(target.as_bytes(), &mut normal) == Ok(true) {
                    let count = |path: &[u8]| {
                        let segments = path.split(|b| *b == b'/');
                        segments.filter(|segment| !segment.is_empty()).count()
                    };
                    prop_assert_eq!(count(&normal), count(target.as_bytes()));
                }
            }
        }
    }
}
