//! Set of patterns that one search tests together: it gives the patterns that match, never the
//! positions of the matches.

use std::cell::RefCell;
use std::fmt;

use regex_automata::meta::{Cache, Regex as Engine};
use regex_automata::{Input, MatchKind, PatternSet};
use thread_local::ThreadLocal;

use crate::{Error, Options, config, syntax};

/// Patterns, numbered from 0 in the order in which they were given.
pub struct RegexSet {
    engine: Engine,
    caches: ThreadLocal<RefCell<Cache>>,
}

impl fmt::Debug for RegexSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Set").field("patterns", &self.len()).finish_non_exhaustive()
    }
}

impl RegexSet {
    /// Compiles `patterns`.
    ///
    /// # Errors
    /// If a pattern is malformed, or all patterns together are too large.
    pub fn new(patterns: &[impl AsRef<str>], options: Options) -> Result<Self, Error> {
        let config = config(options).match_kind(MatchKind::All);
        let engine =
            Engine::builder().configure(config).syntax(syntax(options)).build_many(patterns)?;
        Ok(Self { engine, caches: ThreadLocal::new() })
    }

    /// Number of patterns.
    pub fn len(&self) -> usize {
        self.engine.pattern_len()
    }

    /// Returns true if the set has no pattern.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Numbers of the patterns that match anywhere in `subject`, ascending.
    pub fn matches(&self, subject: &[u8]) -> Vec<usize> {
        let mut found = PatternSet::new(self.len());
        let cache = self.caches.get_or(|| RefCell::new(self.engine.create_cache()));
        let input = Input::new(subject);
        self.engine.which_overlapping_matches_with(&mut cache.borrow_mut(), &input, &mut found);
        found.iter().map(|id| id.as_usize()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_match_are_found_at_once() {
        let set =
            RegexSet::new(&["foo", "bar", "^b(a)z$", ""], Options::default()).expect("patterns");
        assert_eq!(set.matches(b"xfoobar"), [0, 1, 3]);
        assert_eq!(set.matches(b"baz"), [2, 3]);
        assert_eq!(set.matches(b""), [3]);
        assert_eq!((set.len(), set.is_empty()), (4, false));
    }

    #[test]
    fn patterns_are_refused_together() {
        let options = Options { program_bytes: 1 << 12, ..Options::default() };
        assert!(matches!(RegexSet::new(&["a", "("], options), Err(Error::Syntax(_))));
        assert!(matches!(RegexSet::new(&["a", "b{900}"], options), Err(Error::TooLarge(_))));
        assert!(RegexSet::new(&[""; 0], options).is_ok_and(|set| set.is_empty()));
    }
}
