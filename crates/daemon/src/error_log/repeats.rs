//! Repeats: limits the rate of equal lines and of lines of one kind. Suppressed lines are counted,
//! and reported when their second is over. Pure: the caller passes the time.

use std::collections::HashMap;
use std::hash::Hash;

use base::logging::Priority;
use base::{HashSeed, Limit};

/// The interval of counting.
const SECOND_MS: u64 = 1000;

/// Different lines that are counted apart; beyond it only kinds are counted.
const LINES_MAX: usize = 1000;

/// Characters that are shown of a suppressed line.
const SHOWN: usize = 200;

/// Most lines in a second; 0 means no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rates {
    /// Most equal lines.
    pub(super) equal: u64,
    /// Most lines of one kind.
    pub(super) kind: u64,
}

/// The verdict on a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineVerdict {
    /// The line is written.
    Written,
    /// The line is suppressed by this limit; true for the first one of its second.
    LeftOut(Limit, bool),
}

/// The place in the source that logs a line: file and line.
pub(super) type LineKind = (&'static str, u32);

/// Lines of the current second.
#[derive(Debug)]
pub(super) struct Repeats {
    seed: HashSeed,
    /// Counts by the hashes of the texts.
    equal: HashMap<u64, Second>,
    kinds: HashMap<LineKind, Second>,
    /// The time of the last check for seconds that are over.
    looked_ms: u64,
    /// Notes about seconds that are over.
    notes: Vec<(Priority, String)>,
}

#[derive(Debug)]
struct Second {
    since_ms: u64,
    written: u64,
    left_out: u64,
    /// The first suppressed line.
    line: Option<(Priority, String)>,
}

impl Second {
    fn begin(now_ms: u64) -> Self {
        Self { since_ms: now_ms, written: 0, left_out: 0, line: None }
    }

    fn is_over(&self, now_ms: u64) -> bool {
        now_ms.saturating_sub(self.since_ms) >= SECOND_MS
    }

    fn leave_out(&mut self, priority: Priority, text: &str) -> bool {
        self.left_out += 1;
        let line = || (priority, text.chars().take(SHOWN).collect());
        self.line.get_or_insert_with(line);
        self.left_out == 1
    }

    /// The note about suppressed lines, if there are any.
    fn note(self, limit: Limit) -> Option<(Priority, String)> {
        let (priority, line) = self.line?;
        let (count, name) = (self.left_out, limit.name());
        let text = match limit {
            Limit::ErrorLogRepeats => {
                format!("larder: suppressed {count} times (limit: {name}): {line}")
            }
            _ => format!("larder: suppressed {count} lines such as (limit: {name}): {line}"),
        };
        Some((priority, text))
    }
}

impl Default for Repeats {
    fn default() -> Self {
        Self {
            seed: HashSeed::random(),
            equal: HashMap::new(),
            kinds: HashMap::new(),
            looked_ms: 0,
            notes: Vec::new(),
        }
    }
}

impl Repeats {
    /// Counts a line of the kind `kind`.
    pub(super) fn count_line(
        &mut self,
        now_ms: u64,
        rates: Rates,
        kind: LineKind,
        priority: Priority,
        text: &str,
    ) -> LineVerdict {
        let key = self.seed.hash(text.as_bytes());
        renew(&mut self.equal, key, now_ms, Limit::ErrorLogRepeats, &mut self.notes);
        renew(&mut self.kinds, kind, now_ms, Limit::ErrorLogLines, &mut self.notes);
        let is_full = self.equal.len() >= LINES_MAX;
        if is_full && now_ms.saturating_sub(self.looked_ms) >= SECOND_MS {
            self.end_seconds(now_ms);
        }
        if self.equal.len() < LINES_MAX || self.equal.contains_key(&key) {
            let equal = self.equal.entry(key).or_insert_with(|| Second::begin(now_ms));
            if rates.equal > 0 && equal.written >= rates.equal {
                let first = equal.leave_out(priority, text);
                return LineVerdict::LeftOut(Limit::ErrorLogRepeats, first);
            }
            equal.written += 1;
        }
        let of_kind = self.kinds.entry(kind).or_insert_with(|| Second::begin(now_ms));
        if rates.kind > 0 && of_kind.written >= rates.kind {
            let first = of_kind.leave_out(priority, text);
            return LineVerdict::LeftOut(Limit::ErrorLogLines, first);
        }
        of_kind.written += 1;
        LineVerdict::Written
    }

    /// Returns true if there is something to report later.
    pub(super) fn is_waiting(&self) -> bool {
        let waits = |second: &Second| second.left_out > 0;
        !self.notes.is_empty() || self.equal.values().chain(self.kinds.values()).any(waits)
    }

    /// Takes the notes about seconds that are over at `now_ms`.
    pub(super) fn notes(&mut self, now_ms: u64) -> Vec<(Priority, String)> {
        self.end_seconds(now_ms);
        std::mem::take(&mut self.notes)
    }

    fn end_seconds(&mut self, now_ms: u64) {
        self.looked_ms = now_ms;
        let equal = self.equal.extract_if(|_, second| second.is_over(now_ms));
        self.notes.extend(equal.filter_map(|(_, second)| second.note(Limit::ErrorLogRepeats)));
        let kinds = self.kinds.extract_if(|_, second| second.is_over(now_ms));
        self.notes.extend(kinds.filter_map(|(_, second)| second.note(Limit::ErrorLogLines)));
    }
}

/// Ends the second of `key` if it is over.
fn renew<K: Eq + Hash>(
    seconds: &mut HashMap<K, Second>,
    key: K,
    now_ms: u64,
    limit: Limit,
    notes: &mut Vec<(Priority, String)>,
) {
    if seconds.get(&key).is_some_and(|second| second.is_over(now_ms)) {
        notes.extend(seconds.remove(&key).and_then(|second| second.note(limit)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATES: Rates = Rates { equal: 2, kind: 3 };

    fn count_text(repeats: &mut Repeats, now_ms: u64, line: u32, text: &str) -> LineVerdict {
        repeats.count_line(now_ms, RATES, ("a.rs", line), Priority::Warn, text)
    }

    #[test]
    fn equal_lines_beyond_the_rate_are_left_out_and_reported() {
        let mut repeats = Repeats::default();
        let limit = Limit::ErrorLogRepeats;
        let verdict: Vec<_> = (0..4).map(|at| count_text(&mut repeats, at, 1, "gone")).collect();
        let left = |first| LineVerdict::LeftOut(limit, first);
        assert_eq!(verdict, [LineVerdict::Written, LineVerdict::Written, left(true), left(false)]);
        assert_eq!(count_text(&mut repeats, 5, 1, "another"), LineVerdict::Written);
        assert!(repeats.is_waiting());
        assert_eq!(repeats.notes(999), []);
        let note = "larder: suppressed 2 times (limit: error_log_repeats): gone".to_owned();
        assert_eq!(repeats.notes(1000), [(Priority::Warn, note)]);
        assert!(!repeats.is_waiting());
        assert_eq!(count_text(&mut repeats, 1001, 1, "gone"), LineVerdict::Written);
    }

    #[test]
    fn a_kind_has_its_own_rate_and_no_other_kind_suffers() {
        let mut repeats = Repeats::default();
        for text in ["a", "b", "c"] {
            assert_eq!(count_text(&mut repeats, 0, 1, text), LineVerdict::Written);
        }
        let left = LineVerdict::LeftOut(Limit::ErrorLogLines, true);
        assert_eq!(count_text(&mut repeats, 0, 1, "d"), left);
        assert_eq!(count_text(&mut repeats, 0, 2, "z"), LineVerdict::Written);
        // The next line of its kind ends the second, too.
        assert_eq!(count_text(&mut repeats, 1000, 1, "e"), LineVerdict::Written);
        let note = "larder: suppressed 1 lines such as (limit: error_log_lines): d".to_owned();
        assert_eq!(repeats.notes(1000), [(Priority::Warn, note)]);
    }

    #[test]
    fn no_limit_leaves_nothing_out() {
        let mut repeats = Repeats::default();
        let rates = Rates { equal: 0, kind: 0 };
        for _ in 0..5000 {
            let verdict = repeats.count_line(0, rates, ("a.rs", 1), Priority::Error, "x");
            assert_eq!(verdict, LineVerdict::Written);
        }
    }

    proptest::proptest! {
        #[test]
        fn every_line_is_written_or_counted_and_the_rates_hold(
            lines in proptest::collection::vec((0_u64..700, 0_u32..3, 0_u8..4), 0..200),
        ) {
            let (mut repeats, mut now_ms, mut written) = (Repeats::default(), 0, 0);
            let mut told = 0;
            let count = |notes: Vec<(Priority, String)>| -> usize {
                let number = |(_, text): &(Priority, String)| {
                    text.split(' ').nth(2).and_then(|n| n.parse::<usize>().ok()).expect("a count")
                };
                notes.iter().map(number).sum()
            };
            let mut second: HashMap<u8, Vec<u64>> = HashMap::new();
            for (later, kind, text) in &lines {
                now_ms += later;
                let verdict = count_text(&mut repeats, now_ms, *kind, &text.to_string());
                if verdict == LineVerdict::Written {
                    written += 1;
                    let times = second.entry(*text).or_default();
                    times.push(now_ms);
                    // Two adjacent seconds may have twice the rate between them.
                    let near = times.iter().filter(|at| now_ms - **at < SECOND_MS).count();
                    proptest::prop_assert!(near as u64 <= 2 * RATES.equal);
                }
                told += count(repeats.notes(now_ms));
            }
            told += count(repeats.notes(now_ms + SECOND_MS));
            proptest::prop_assert_eq!(written + told, lines.len());
            proptest::prop_assert!(!repeats.is_waiting());
        }

        #[test]
        fn it_never_knows_more_lines_than_its_bound(texts: Vec<u16>) {
            let mut repeats = Repeats::default();
            let rates = Rates { equal: 1, kind: 0 };
            for n in 0..3 * LINES_MAX {
                repeats.count_line(0, rates, ("a.rs", 1), Priority::Warn, &n.to_string());
            }
            for text in texts {
                repeats.count_line(0, rates, ("a.rs", 1), Priority::Warn, &text.to_string());
            }
            proptest::prop_assert_eq!(repeats.equal.len(), LINES_MAX);
        }
    }
}
