//! Scripts in paths: an application server that finds `/a.php` runs it for `/a.php/b`, too, with
//! the rest as CGI's PATH_INFO (RFC 3875 4.1.5). Rules for the script's path must apply to such
//! paths, too.

use message::path;

use crate::pattern::PathPattern;

/// Suffixes of names that servers run as scripts: PHP's (Debian's Apache, LiteSpeed), ASP's and
/// ColdFusion's (IIS), JSP, and the usual ones of Apache's CGI handler.
const COMMON: [&str; 13] = [
    ".php", ".php3", ".php4", ".php5", ".php7", ".php8", ".phtml", ".phar", ".asp", ".aspx",
    ".cfm", ".jsp", ".cgi",
];

/// Suffixes of scripts, in lower case. They are compared without regard to case: a rule that
/// applies to one path too many withholds nothing that exists.
#[derive(Clone, Debug, Default)]
pub struct ScriptNames(Vec<Box<str>>);

impl ScriptNames {
    /// The suffixes `own`, and the usual ones if `and_usual`.
    pub fn new<'a>(own: impl IntoIterator<Item = &'a str>, and_usual: bool) -> Self {
        let usual = if and_usual { &COMMON[..] } else { &[] };
        let all = own.into_iter().chain(usual.iter().copied());
        Self(all.map(|end| end.to_ascii_lowercase().into()).collect())
    }

    /// Returns true if origins can interpret `path` in one way only: it is ordinary, and runs none
    /// of these scripts with a path info.
    #[inline(always)]
    pub(crate) fn leave_one_reading(&self, path: &[u8]) -> bool {
        // The suffixes have dots, and plain paths have dots in their last segment only.
        path::is_plain(path) || self.leave_one_reading_of_dotted(path)
    }

    #[inline(never)]
    fn leave_one_reading_of_dotted(&self, path: &[u8]) -> bool {
        path::is_ordinary(path) && self.of(path).next().is_none()
    }

    /// The paths of the scripts that `path`, a normal form, may run with a path info, the shortest
    /// first.
    pub(crate) fn of<'a>(&self, path: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        let ends = memchr::memchr_iter(b'/', path).map(|end| &path[..end]);
        ends.filter(|name| self.0.iter().any(|end| ends_with(name, end.as_bytes())))
    }

    /// Returns true if `pattern` itself covers a path info: it matches these paths and not others
    /// of the script.
    pub(crate) fn are_meant_by(&self, pattern: &PathPattern) -> bool {
        let text = pattern.as_str().to_ascii_lowercase();
        self.0.iter().any(|end| {
            let inner = end.strip_prefix('.').unwrap_or(end);
            text.match_indices(inner).any(|(at, _)| text[at + inner.len()..].starts_with('/'))
        })
    }
}

fn ends_with(name: &[u8], end: &[u8]) -> bool {
    let at = name.len().checked_sub(end.len());
    at.is_some_and(|at| name[at..].eq_ignore_ascii_case(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_found_in_every_place_of_a_path() {
        let names = ScriptNames::new([".inc"], true);
        for (path, scripts) in [
            ("/a.php", &[][..]),
            ("/a.php/", &["/a.php"][..]),
            ("/a.php/x.css", &["/a.php"]),
            ("/d/a.PHP/b.phtml/c", &["/d/a.PHP", "/d/a.PHP/b.phtml"]),
            ("/a.inc/x", &["/a.inc"]),
            ("/a.phpx/x", &[]),
            ("/.php/x", &["/.php"]),
            ("/v1.2/x", &[]),
            ("/php/x", &[]),
        ] {
            let found: Vec<_> = names.of(path.as_bytes()).collect();
            let wanted: Vec<_> = scripts.iter().map(|script| script.as_bytes()).collect();
            assert_eq!(found, wanted, "{path}");
            assert_eq!(names.leave_one_reading(path.as_bytes()), found.is_empty(), "{path}");
        }
        assert!(ScriptNames::new([], false).leave_one_reading(b"/a.php/x"));
    }

    #[test]
    fn a_pattern_speaks_of_what_follows_a_script_if_it_names_it() {
        let names = ScriptNames::new([], true);
        for (pattern, speaks) in [
            ("/index.php/open/*", true),
            ("~ ^/index\\.php/open/", true),
            ("*.php/*", true),
            ("/index.php", false),
            ("*.css", false),
            ("/php/x", true),
            ("/a/*", false),
        ] {
            let parsed = PathPattern::parse(pattern).expect("a pattern");
            assert_eq!(names.are_meant_by(&parsed), speaks, "{pattern}");
        }
    }
}
