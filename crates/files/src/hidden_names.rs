//! Hidden names, which must never be served: sources of scripts, leftovers of editors and backups,
//! names that begin with a dot.

use std::fmt;

/// Scripts, whose source a file server would reveal, and their copies by editors and backups.
pub const SOURCES: &[&str] = &[
    "*.php",
    "*.php?",
    "*.php.*",
    "*.phtml",
    "*.phar",
    "*.pht",
    "*.inc",
    "*~",
    "#*#",
    "*.bak",
    "*.old",
    "*.orig",
    "*.rej",
    "*.save",
    "*.sw?",
    "*.sql",
    "*.sql.*",
    "*.sqlite",
    "*.sqlite3",
    "*.pem",
];

/// Other files in an application's directory that are for the application only.
pub const APPLICATION: &[&str] = &[
    "*.cgi",
    "*.conf",
    "*.config",
    "*.dump",
    "*.engine",
    "*.env",
    "*.erb",
    "*.ini",
    "*.install",
    "*.lock",
    "*.log",
    "*.make",
    "*.module",
    "*.pl",
    "*.po",
    "*.profile",
    "*.py",
    "*.rb",
    "*.sh",
    "*.theme",
    "*.tpl",
    "*.twig",
    "*.yaml",
    "*.yml",
    "artisan",
    "auth.json",
    "composer.json",
    "dockerfile",
    "gemfile",
    "makefile",
    "node_modules",
    "package-lock.json",
    "package.json",
];

/// Patterns of names. A name is one segment of a path; `*` stands for any bytes, `?` for one, and
/// case is ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HiddenNames(Vec<Box<[u8]>>);

/// Error for an invalid pattern: it is empty, or has a slash or a control character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HiddenError;

impl fmt::Display for HiddenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a pattern of one name, such as \"*.bak\", without slashes")
    }
}

impl std::error::Error for HiddenError {}

impl HiddenNames {
    /// These patterns, which must be valid.
    pub fn of(lists: &[&[&str]]) -> Self {
        Self(lists.iter().copied().flatten().map(|text| text.as_bytes().into()).collect())
    }

    /// Adds a pattern.
    ///
    /// # Errors
    /// If it cannot match a name.
    pub fn add(&mut self, text: &str) -> Result<(), HiddenError> {
        if text.is_empty() || text.contains(|c: char| c == '/' || c.is_control()) {
            return Err(HiddenError);
        }
        self.0.push(text.to_ascii_lowercase().into_bytes().into());
        Ok(())
    }

    /// Returns true if a segment of `path` is hidden, by a pattern or because it begins with a dot.
    pub fn hides(&self, path: &[u8]) -> bool {
        is_dotted(path)
            || path
                .split(|b| *b == b'/')
                .any(|name| !name.is_empty() && self.0.iter().any(|p| matches(p, name)))
    }
}

/// Returns true if a segment of `path` begins with a dot, except `/.well-known/` (RFC 8615):
/// `/.git`, `/.env`.
pub fn is_dotted(path: &[u8]) -> bool {
    let rest = path.strip_prefix(b"/.well-known").filter(|rest| rest.starts_with(b"/"));
    memchr::memmem::find(rest.unwrap_or(path), b"/.").is_some()
}

/// Returns true if `name` matches `pattern`, without regard to case. The cost is at most the
/// product of both lengths.
pub(crate) fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    // The position to continue from if the rest behind the last star does not match.
    let mut retry: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                retry = Some((p + 1, n));
                p += 1;
            }
            Some(wanted) if *wanted == b'?' || wanted.eq_ignore_ascii_case(&name[n]) => {
                p += 1;
                n += 1;
            }
            _ => match retry {
                Some((after, at)) => {
                    retry = Some((after, at + 1));
                    (p, n) = (after, at + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|b| *b == b'*')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sources_and_leftovers_are_hidden() {
        let hidden = HiddenNames::of(&[SOURCES, APPLICATION]);
        for path in [
            "/index.php",
            "/INDEX.PHP",
            "/a.php5",
            "/a.phps",
            "/a.php~",
            "/a.php.bak",
            "/a.php.swp",
            "/.a.php.swp",
            "/wp-config.php.save",
            "/a.phtml",
            "/a.phar",
            "/a.inc",
            "/dump.sql",
            "/dump.sql.gz",
            "/a/b.orig",
            "/#a#",
            "/a~",
            "/.htaccess",
            "/.git/config",
            "/a/.env",
            "/composer.json",
            "/composer.lock",
            "/web.config",
            "/debug.log",
            "/node_modules/x.js",
            "/.well-known",
            "/.well-known/.x",
            "/a.php/x.css",
            "/.user.ini",
            "/Dockerfile",
            "/x.module",
            "/x.SQL",
        ] {
            assert!(hidden.hides(path.as_bytes()), "{path}");
        }
    }

    #[test]
    fn what_visitors_are_to_see_is_not_hidden() {
        let hidden = HiddenNames::of(&[SOURCES, APPLICATION]);
        for path in [
            "/",
            "/style.css",
            "/app.min.js",
            "/app.js.map",
            "/a.b.c.png",
            "/robots.txt",
            "/LICENSE",
            "/.well-known/acme-challenge/x",
            "/sitemap.xml",
            "/manifest.json",
            "/php.png",
            "/a/phpinfo.html",
            "/x.json",
            "/fonts/x.woff2",
            "/a..b.css",
            "/x.svg",
            "/readme.md",
            "/x.config.js",
        ] {
            assert!(!hidden.hides(path.as_bytes()), "{path}");
        }
    }

    #[test]
    fn patterns_that_match_no_name_are_refused() {
        let mut hidden = HiddenNames::default();
        for text in ["", "a/b", "a\n"] {
            assert_eq!(hidden.add(text), Err(HiddenError), "{text:?}");
        }
        assert_eq!(hidden.add("*.Secret"), Ok(()));
        assert!(hidden.hides(b"/a.SECRET") && !hidden.hides(b"/a.secrets"));
    }

    /// A simple matcher, which takes exponential time.
    fn model(pattern: &[u8], name: &[u8]) -> bool {
        match (pattern, name) {
            ([], []) => true,
            ([b'*', rest @ ..], _) => (0..=name.len()).any(|at| model(rest, &name[at..])),
            ([b'?', rest @ ..], [_, after @ ..]) => model(rest, after),
            ([p, rest @ ..], [n, after @ ..]) => p == n && model(rest, after),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn matching_agrees_with_the_model(pattern in "[ab*?]{0,7}", name in "[ab]{0,9}") {
            let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
            prop_assert_eq!(matches(pattern, name), model(pattern, name));
        }
    }
}
