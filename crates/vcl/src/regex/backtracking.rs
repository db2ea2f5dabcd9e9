//! PCRE2 with a match buffer of its own for each thread: its crate uses one pool, on which threads
//! wait for each other. A match never exceeds its limits.

use std::cell::{RefCell, RefMut};
use std::fmt;

use pcre2::Error;
use pcre2::bytes::{CaptureLocations, Regex, RegexBuilder};
use thread_local::ThreadLocal;

/// Limits of one match: Varnish's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// `pcre2_match_limit`: calls of PCRE2's internal match function.
    pub matches: u32,
    /// `pcre2_depth_limit`: nested backtracking points.
    pub depth: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { matches: 10_000, depth: 20 }
    }
}

/// Error of a malformed pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError {
    /// Byte offset of the fault.
    pub at: usize,
    /// The fault as text.
    pub message: String,
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.message, self.at)
    }
}

/// A compiled pattern.
#[derive(Debug)]
pub(super) struct BacktrackingRegex {
    regex: Regex,
    /// Boxed: it has an entry for each thread.
    rooms: Box<ThreadLocal<RefCell<CaptureLocations>>>,
}

/// Buffer for one match with its groups.
pub(super) type CaptureBuffer<'r> = RefMut<'r, CaptureLocations>;

impl BacktrackingRegex {
    /// Compiles `pattern` under a PCRE2 `option` such as `(*NOTEMPTY)`, or none.
    pub(super) fn new(option: &str, pattern: &str, limits: Limits) -> Result<Self, PatternError> {
        let Limits { matches, depth } = limits;
        let head = format!("(*LIMIT_MATCH={matches})(*LIMIT_DEPTH={depth}){option}");
        let built = RegexBuilder::new().jit_if_available(true).build(&format!("{head}{pattern}"));
        let regex = built.map_err(|e| PatternError {
            at: e.offset().unwrap_or(0).saturating_sub(head.len()).min(pattern.len()),
            message: message(&e),
        })?;
        Ok(Self { regex, rooms: Box::default() })
    }

    /// Returns true if the pattern matches anywhere in `subject`.
    pub(super) fn is_match(&self, subject: &[u8]) -> Result<bool, Error> {
        self.find(&mut self.room(), subject, 0)
    }

    /// Returns true if there is a match at or after byte `at`; the match is then in `room`.
    pub(super) fn find(
        &self,
        room: &mut CaptureBuffer<'_>,
        subject: &[u8],
        at: usize,
    ) -> Result<bool, Error> {
        Ok(self.regex.captures_read_at(room, subject, at)?.is_some())
    }

    /// The buffer of this thread, which must be returned before the next call.
    pub(super) fn room(&self) -> CaptureBuffer<'_> {
        self.rooms.get_or(|| RefCell::new(self.regex.capture_locations())).borrow_mut()
    }
}

/// PCRE2's message, without its crate's prefix.
pub(super) fn message(error: &Error) -> String {
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
