//! The linear engine, with memory of its own for each thread that searches.
//!
//! The `regex` crate shares that memory between threads: all but the first to search pay for it,
//! and several at once wait for each other's cache lines (five times the time of a search, for two
//! of them). Cores must not.

use std::cell::RefCell;

use regex_automata::meta::{Cache, Config, Regex};
use regex_automata::util::{captures::Captures, syntax};
use regex_automata::{Input, Span};
use thread_local::ThreadLocal;

/// Most bytes of a compiled pattern, and of what a thread remembers of searches: those of the
/// `regex` crate.
const PROGRAM_BYTES: usize = 10 << 20;
const CACHE_BYTES: usize = 2 << 20;

/// A pattern.
#[derive(Debug)]
pub(super) struct Linear {
    regex: Regex,
    /// Boxed: it has a place for every thread there may ever be.
    caches: Box<ThreadLocal<RefCell<Cache>>>,
}

impl Linear {
    /// Compiles `pattern`; none when the engine cannot, or it would grow too large.
    pub(super) fn new(pattern: &str) -> Option<Self> {
        let config = Config::new()
            .utf8_empty(false)
            .nfa_size_limit(Some(PROGRAM_BYTES))
            .hybrid_cache_capacity(CACHE_BYTES);
        let bytes = syntax::Config::new().unicode(false).utf8(false);
        let regex = Regex::builder().configure(config).syntax(bytes).build(pattern).ok()?;
        Some(Self { regex, caches: Box::default() })
    }

    /// Whether it matches somewhere in `subject`.
    pub(super) fn is_match(&self, subject: &[u8]) -> bool {
        let input = Input::new(subject).earliest(true);
        self.with_cache(|cache| self.regex.search_half_with(cache, &input)).is_some()
    }

    /// The first match at or after byte `at`.
    pub(super) fn find(&self, subject: &[u8], at: usize) -> Option<Span> {
        let input = Input::new(subject).span(at..subject.len());
        self.with_cache(|cache| self.regex.search_with(cache, &input)).map(|found| found.span())
    }

    /// The same with the groups of the match, which is none if nothing is found.
    pub(super) fn groups(&self, subject: &[u8], at: usize, groups: &mut Captures) {
        let input = Input::new(subject).span(at..subject.len());
        self.with_cache(|cache| self.regex.search_captures_with(cache, &input, groups));
    }

    /// Room for groups.
    pub(super) fn room(&self) -> Captures {
        self.regex.create_captures()
    }

    fn with_cache<R>(&self, search: impl FnOnce(&mut Cache) -> R) -> R {
        let cache = self.caches.get_or(|| RefCell::new(self.regex.create_cache()));
        search(&mut cache.borrow_mut())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_search_with_one_pattern() {
        let pattern = Linear::new("b+(c)?").expect("a pattern");
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
        let pattern = Linear::new(r"\xff.").expect("a pattern");
        assert_eq!(pattern.find(b"a\xff\xfe", 0), Some(Span { start: 1, end: 3 }));
        assert!(Linear::new("(").is_none());
    }
}
