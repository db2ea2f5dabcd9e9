//! Regular expressions over bytes: searches take time linear in the subject, and each thread has
//! its own search memory, so that cores never wait for each other.
//!
//! The `regex` crate has this engine, but threads share its search memory and contend for cache
//! lines: two searches at once took five times as long. Searches on a request's path use this
//! crate.
//!
//! Patterns follow `regex::bytes`: a byte is a character unless [`Options::unicode`] is set. PCRE's
//! comments `(?#...)` and atomic groups `(?>...)` with one way to match are accepted as well.
//!
//! Begin with [`Regex`] for one pattern and [`RegexSet`] for several.

mod edges;
mod pcre_syntax;
mod set;

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use edges::Edge;
use regex_automata::Input;
use regex_automata::meta::{BuildError, Cache, Config, Regex as Engine};
use regex_automata::util::syntax;
use thread_local::ThreadLocal;

pub use regex_automata::Span;
pub use regex_automata::util::captures::Captures;
pub use regex_syntax::escape;
pub use set::RegexSet;

/// Most bytes of search memory for each thread and pattern: the default of the `regex` crate.
const CACHE_BYTES: usize = 2 << 20;

/// Options of a pattern.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Letters match in either case.
    pub ignore_case: bool,
    /// `.` also matches a newline.
    pub dot_is_any: bool,
    /// A character is a Unicode character in UTF-8, not a byte.
    pub unicode: bool,
    /// Most bytes that the compiled pattern may take.
    pub program_bytes: usize,
}

impl Default for Options {
    /// The defaults of the `regex` crate, with bytes as characters.
    fn default() -> Self {
        Self { ignore_case: false, dot_is_any: false, unicode: false, program_bytes: 10 << 20 }
    }
}

/// Error of a pattern that cannot be compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The compiled pattern would exceed this limit in bytes.
    TooLarge(usize),
    /// The pattern is malformed; the text is the reason, in one line.
    Syntax(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge(bytes) => {
                write!(f, "Compiled regex exceeds size limit of {bytes} bytes.")
            }
            Self::Syntax(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Error {}

impl From<BuildError> for Error {
    fn from(error: BuildError) -> Self {
        if let Some(bytes) = error.size_limit() {
            return Self::TooLarge(bytes);
        }
        let text = match error.syntax_error() {
            Some(syntax) => syntax.to_string(),
            None => error.to_string(),
        };
        // The last line is the reason; the lines before it mark the position.
        let last = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
        Self::Syntax(last.strip_prefix("error: ").unwrap_or(last).to_owned())
    }
}

/// A compiled pattern. Clones share the pattern and its search memory.
#[derive(Clone)]
pub struct Regex(Arc<SharedRegex>);

struct SharedRegex {
    pattern: Box<str>,
    options: Options,
    engine: Engine,
    /// Search memory, one entry for each thread.
    caches: ThreadLocal<RefCell<Cache>>,
}

impl fmt::Debug for Regex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Regex").field(&self.as_str()).finish()
    }
}

impl Regex {
    /// Compiles `pattern`.
    ///
    /// # Errors
    /// If the pattern is malformed or too large. Look-around and back-references count as
    /// malformed.
    pub fn new(pattern: &str, options: Options) -> Result<Self, Error> {
        let engine = Engine::builder()
            .configure(config(options))
            .syntax(syntax(options))
            .build(&pcre_syntax::plain(pattern))?;
        let caches = ThreadLocal::new();
        Ok(Self(Arc::new(SharedRegex { pattern: pattern.into(), options, engine, caches })))
    }

    /// The pattern as written.
    pub fn as_str(&self) -> &str {
        &self.0.pattern
    }

    /// Texts at the start: each subject that the pattern matches begins with one of them. `None` if
    /// they are not known.
    pub fn starts(&self) -> Option<Vec<Vec<u8>>> {
        edges::texts_at(Edge::Start, &self.0.pattern, self.0.options)
    }

    /// Texts at the end: each subject that the pattern matches ends with one of them. `None` if
    /// they are not known.
    pub fn ends(&self) -> Option<Vec<Vec<u8>>> {
        edges::texts_at(Edge::End, &self.0.pattern, self.0.options)
    }

    /// Returns true if the pattern matches anywhere in `subject`.
    pub fn is_match(&self, subject: &[u8]) -> bool {
        let input = Input::new(subject).earliest(true);
        self.with_cache(|engine, cache| engine.search_half_with(cache, &input)).is_some()
    }

    /// The first match at or after byte `at`, which is at most the length of `subject`.
    pub fn find(&self, subject: &[u8], at: usize) -> Option<Span> {
        let input = Input::new(subject).span(at..subject.len());
        self.with_cache(|engine, cache| engine.search_with(cache, &input)).map(|found| found.span())
    }

    /// Writes the groups of the first match at or after byte `at` into `groups`; without a match,
    /// `groups` becomes empty.
    pub fn groups(&self, subject: &[u8], at: usize, groups: &mut Captures) {
        let input = Input::new(subject).span(at..subject.len());
        self.with_cache(|engine, cache| engine.search_captures_with(cache, &input, groups));
    }

    /// Bytes of the compiled pattern.
    pub fn bytes(&self) -> usize {
        self.0.engine.memory_usage()
    }

    /// Empty capture groups for [`Regex::groups`].
    pub fn room(&self) -> Captures {
        self.0.engine.create_captures()
    }

    fn with_cache<R>(&self, search: impl FnOnce(&Engine, &mut Cache) -> R) -> R {
        let SharedRegex { engine, caches, .. } = &*self.0;
        let cache = caches.get_or(|| RefCell::new(engine.create_cache()));
        search(engine, &mut cache.borrow_mut())
    }
}

fn config(options: Options) -> Config {
    Config::new()
        .utf8_empty(false)
        .nfa_size_limit(Some(options.program_bytes))
        // With a whole automaton, regex-automata 0.4.14 to 0.4.18 let `(?i)ba.*a` match `bab`.
        .dfa(false)
        .hybrid_cache_capacity(CACHE_BYTES)
}

fn syntax(options: Options) -> syntax::Config {
    syntax::Config::new()
        .unicode(options.unicode)
        .utf8(false)
        .case_insensitive(options.ignore_case)
        .dot_matches_new_line(options.dot_is_any)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_letter_is_not_taken_twice() {
        let options = Options { ignore_case: true, ..Options::default() };
        for pattern in ["ba.*a", "(ba).*a", "ba.*?a", "b[a].*a$"] {
            let pattern = Regex::new(pattern, options).expect("a pattern");
            assert!(!pattern.is_match(b"bab") && pattern.is_match(b"BAbA"), "{pattern:?}");
        }
    }

    proptest! {
        #[test]
        fn a_pattern_matches_as_in_another_engine(
            pattern in "(a|b|[ab]|[.]|[.][*]|[(]a[|]b[)]|b[+]|a[?]|x){1,6}",
            subject in "[abx]{0,8}",
            ignore_case: bool,
        ) {
            let own = Regex::new(&pattern, Options { ignore_case, ..Options::default() });
            let mut other = regex::bytes::RegexBuilder::new(&pattern);
            let other = other.unicode(false).case_insensitive(ignore_case).build();
            let (own, other) = (own.expect("a pattern"), other.expect("a pattern"));
            prop_assert_eq!(own.is_match(subject.as_bytes()), other.is_match(subject.as_bytes()));
        }
    }

    #[test]
    fn threads_search_with_one_pattern() {
        let pattern = Regex::new("b+(c)?", Options::default()).expect("a pattern");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    assert!(pattern.is_match(b"abbc"));
                    assert!(!pattern.is_match(b"acc"));
                    assert_eq!(pattern.find(b"abbcb", 4), Some(Span { start: 4, end: 5 }));
                    let mut groups = pattern.room();
                    pattern.groups(b"abbc", 0, &mut groups);
                    assert_eq!(groups.get_group(1), Some(Span { start: 3, end: 4 }));
                    pattern.groups(b"a", 0, &mut groups);
                    assert_eq!(groups.get_group(0), None);
                });
            }
        });
    }

    #[test]
    fn bytes_that_are_no_text_are_bytes() {
        let pattern = Regex::new(r"\xff.", Options::default()).expect("a pattern");
        assert_eq!(pattern.find(b"a\xff\xfe", 0), Some(Span { start: 1, end: 3 }));
    }

    #[test]
    fn options_say_how_a_pattern_is_read() {
        let options = Options::default();
        let is_match = |options| Regex::new("^A.$", options).expect("a pattern").is_match(b"a\n");
        assert!(!is_match(options));
        assert!(!is_match(Options { ignore_case: true, ..options }));
        assert!(is_match(Options { ignore_case: true, dot_is_any: true, ..options }));
    }

    #[test]
    fn characters_are_unicode_where_it_is_asked_for() {
        let found = |unicode| {
            let options = Options { unicode, ignore_case: true, ..Options::default() };
            Regex::new("x.$", options).expect("a pattern").is_match("Xé".as_bytes())
        };
        assert!(found(true) && !found(false));
    }

    #[test]
    fn more_to_search_for_takes_more_bytes() {
        let bytes = |pattern| Regex::new(pattern, Options::default()).expect("a pattern").bytes();
        assert!(bytes("simple") < bytes("[a-z]{1,128}complex"));
    }

    #[test]
    fn errors_are_reported_in_one_line() {
        let error = |pattern: &str, program_bytes| {
            let options = Options { program_bytes, ..Options::default() };
            Regex::new(pattern, options).expect_err("no pattern")
        };
        assert_eq!(error("a\n(", 1 << 20), Error::Syntax("unclosed group".to_owned()));
        assert_eq!(error("a{1000}", 1 << 10), Error::TooLarge(1 << 10));
        let said = Regex::new(r"(a)\1", Options::default()).expect_err("no pattern").to_string();
        assert_eq!(said, "backreferences are not supported");
    }

    #[test]
    fn a_copy_is_the_same_pattern() {
        let pattern = Regex::new("^/a.b$", Options::default()).expect("a pattern");
        let copy = pattern.clone();
        assert!(pattern.is_match(b"/axb") && copy.is_match(b"/axb"));
        assert_eq!(format!("{copy:?} {}", copy.as_str()), r#"Regex("^/a.b$") ^/a.b$"#);
        assert!(
            Regex::new(&escape("/a.b"), Options::default()).is_ok_and(|p| !p.is_match(b"/axb"))
        );
    }
}
