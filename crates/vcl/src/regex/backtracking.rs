//! PCRE2, with room of its own for each thread that matches.
//!
//! Its crate lends that room from one pool, which threads wait for each other at, and gives whoever
//! asks for groups new room each time.

use std::cell::{RefCell, RefMut};
use std::fmt;

use pcre2::Error;
use pcre2::bytes::{CaptureLocations, Regex, RegexBuilder};
use thread_local::ThreadLocal;

/// Bounds on the work of PCRE2 for one match: Varnish's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// `pcre2_match_limit`: calls of its internal matching function.
    pub matches: u32,
    /// `pcre2_depth_limit`: backtracking points within each other.
    pub depth: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { matches: 10_000, depth: 20 }
    }
}

/// The reason why a text is no pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError {
    /// The byte of the pattern where it goes wrong.
    pub at: usize,
    /// The fault, in words.
    pub message: String,
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.message, self.at)
    }
}

/// A pattern.
#[derive(Debug)]
pub(super) struct BacktrackingRegex {
    regex: Regex,
    /// Boxed: it has a place for every thread there may ever be.
    rooms: Box<ThreadLocal<RefCell<CaptureLocations>>>,
}

/// Room for one match and its groups.
pub(super) type CaptureBuffer<'r> = RefMut<'r, CaptureLocations>;

impl BacktrackingRegex {
    /// Compiles `pattern`, under a PCRE2 `option` such as `(*NOTEMPTY)` or none.
    pub(super) fn new(option: &str, pattern: &str, limits: Limits) -> Result<Self, PatternError> {
        let Limits { matches, depth } = limits;
        let head = format!("(*LIMIT_MATCH={matches})(*LIMIT_DEPTH={depth}){option}");
        let built = RegexBuilder::new().jit_if_available(true).build(&format!("{head}{pattern}"));
        let regex = built.map_err(|e| PatternError {
            at: e.offset().unwrap_or(0).saturating_sub(head.len()).min(pattern.len()),
            message: words(&e),
        })?;
        Ok(Self { regex, rooms: Box::default() })
    }

    /// Returns true if the pattern matches somewhere in `subject`.
    pub(super) fn is_match(&self, subject: &[u8]) -> Result<bool, Error> {
        self.find(&mut self.room(), subject, 0)
    }

    /// Returns true if there is a match at or after byte `at`. The match is then in `room`.
    pub(super) fn find(
        &self,
        room: &mut CaptureBuffer<'_>,
        subject: &[u8],
        at: usize,
    ) -> Result<bool, Error> {
        Ok(self.regex.captures_read_at(room, subject, at)?.is_some())
    }

    /// This thread's room. There is one: whoever has it gives it back before the next asks.
    pub(super) fn room(&self) -> CaptureBuffer<'_> {
        self.rooms.get_or(|| RefCell::new(self.regex.capture_locations())).borrow_mut()
    }
}

/// The words of PCRE2, without those that its crate puts before them.
pub(super) fn words(error: &Error) -> String {
    let text = error.to_string();
    text.rsplit_once(": ").map_or(text.as_str(), |(_, words)| words).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_match_with_one_pattern() {
        let pattern =
            BacktrackingRegex::new("", "(?=b)b+(c)?", Limits::default()).expect("a pattern");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    assert!(pattern.is_match(b"abbc").expect("no limit"));
                    assert!(!pattern.is_match(b"acc").expect("no limit"));
                    let mut room = pattern.room();
                    assert!(pattern.find(&mut room, b"abbc", 2).expect("no limit"));
                    assert_eq!((room.get(0), room.get(1)), (Some((2, 4)), Some((3, 4))));
                    assert!(pattern.find(&mut room, b"abbcb", 4).expect("no limit"));
                    assert_eq!((room.get(0), room.get(1)), (Some((4, 5)), None));
                });
            }
        });
    }
}
