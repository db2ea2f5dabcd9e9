//! Words of forecasts: durations and reasons as text.

use crate::unstored_reason::UnstoredReason;

/// A duration for people: short ones in milliseconds, round ones also in the larger unit.
pub(crate) fn duration(ms: u64) -> String {
    if ms < 1000 && ms > 0 {
        return format!("{ms} ms");
    }
    let secs = ms / 1000;
    let units = [(86_400, 172_800, "d"), (3600, 7200, "h"), (60, 120, "min")];
    let round = |(unit, least, _): &(u64, u64, &str)| secs >= *least && secs.is_multiple_of(*unit);
    match units.iter().find(|unit| round(unit)) {
        Some((unit, _, name)) => format!("{secs} s ({} {name})", secs / unit),
        None => format!("{secs} s"),
    }
}

/// The sentence for a record's token of an unstored response, and the rule or setting behind it.
/// `None` for an unknown token.
pub fn not_stored(token: &str) -> Option<(&'static str, &'static str)> {
    let (_, sentence, rule) = UnstoredReason::of(token)?.description();
    Some((sentence, rule))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_exact_and_readable() {
        for (ms, text) in [
            (0, "0 s"),
            (999, "999 ms"),
            (1_000, "1 s"),
            (119_999, "119 s"),
            (300_000, "300 s (5 min)"),
            (301_000, "301 s"),
            (86_400_000, "86400 s (24 h)"),
            (604_800_000, "604800 s (7 d)"),
        ] {
            assert_eq!(duration(ms), text);
        }
    }

    #[test]
    fn a_token_has_a_sentence_and_a_rule() {
        let (sentence, rule) = not_stored("set-cookie").expect("known");
        assert!(sentence.contains("cookie") && rule.contains("drop_set_cookie"));
        assert_eq!(not_stored("pass").map(|(_, rule)| rule), Some("its rule"));
        assert_eq!(not_stored("whatever"), None);
    }
}
