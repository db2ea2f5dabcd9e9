//! The schedule: when a certificate is renewed, and when a failed order is repeated. Arithmetic
//! only.

/// A period in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnixPeriod {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// The time to renew a certificate with this `validity`, in seconds since 1970.
///
/// It is after two thirds of the lifetime, as Let's Encrypt recommends, plus or minus up to a
/// thirtieth by `random`, so that renewals are spread. In a `suggested` window (RFC 9773 4.2) it is
/// a random moment, but with at least a sixth of the lifetime left for failures.
pub(crate) fn renewal(validity: UnixPeriod, suggested: Option<UnixPeriod>, random: u64) -> u64 {
    let lifetime = validity.end.saturating_sub(validity.start);
    match suggested {
        None => {
            let earliest = validity.start + lifetime / 3 * 2 - lifetime / 30;
            earliest + random % (lifetime / 15 + 1)
        }
        Some(window) => {
            let chosen = window.start + random % (window.end.saturating_sub(window.start) + 1);
            chosen.min(validity.end - lifetime / 6)
        }
    }
}

/// The time to wait after `failures` failed orders in a row for a name, at least one.
///
/// `first_ms` doubles with each failure, up to `most_ms`. `random` adds up to a tenth, so that
/// names that failed together are spread. The time is at least `asked_ms`, which the authority
/// asked for.
pub(crate) fn retry_ms(
    failures: u32,
    first_ms: u64,
    most_ms: u64,
    asked_ms: u64,
    random: u64,
) -> u64 {
    let doublings = failures.saturating_sub(1).min(32);
    let wait = first_ms.saturating_mul(1 << doublings).min(most_ms.max(first_ms));
    let jitter = random % (wait / 10 + 1);
    wait.saturating_add(jitter).max(asked_ms)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DAY: u64 = 86_400;

    #[test]
    fn a_certificate_of_ninety_days_is_renewed_around_its_sixtieth() {
        let validity = UnixPeriod { start: 1000 * DAY, end: 1090 * DAY };
        assert_eq!(renewal(validity, None, 0), 1057 * DAY);
        assert_eq!(renewal(validity, None, 6 * DAY), 1063 * DAY);
    }

    #[test]
    fn the_authority_chooses_the_window_and_never_the_end() {
        let validity = UnixPeriod { start: 1000 * DAY, end: 1090 * DAY };
        let early = UnixPeriod { start: 1001 * DAY, end: 1002 * DAY };
        assert_eq!(renewal(validity, Some(early), 5), 1001 * DAY + 5);
        let late = UnixPeriod { start: 1089 * DAY, end: 1090 * DAY };
        assert_eq!(renewal(validity, Some(late), 5), 1075 * DAY);
        let upside_down = UnixPeriod { start: 1050 * DAY, end: 1001 * DAY };
        assert_eq!(renewal(validity, Some(upside_down), 5), 1050 * DAY);
    }

    #[test]
    fn waits_double_up_to_the_most_and_the_authority_may_want_more() {
        let waits: Vec<_> = (1..=8).map(|n| retry_ms(n, 60, 1_000, 0, 0)).collect();
        assert_eq!(waits, [60, 120, 240, 480, 960, 1_000, 1_000, 1_000]);
        assert_eq!(retry_ms(1, 60, 1_000, 5_000, 3), 5_000);
        assert_eq!(retry_ms(1, 60, 1_000, 0, 3), 63);
    }

    proptest! {
        #[test]
        fn renewal_comes_within_the_lifetime(
            start in 0_u64..1 << 40,
            lifetime in 0_u64..1 << 32,
            random: u64,
            window in proptest::option::of((0_u64..1 << 41, 0_u64..1 << 41)),
        ) {
            let validity = UnixPeriod { start, end: start + lifetime };
            let suggested = window.map(|(start, end)| UnixPeriod { start, end });
            let at = renewal(validity, suggested, random);
            prop_assert!(at <= validity.end);
            if suggested.is_none() {
                prop_assert!(at >= start + lifetime / 2);
            }
        }

        #[test]
        fn waits_never_shrink_below_what_was_asked_or_overflow(
            failures: u32,
            first: u64,
            most: u64,
            asked: u64,
            random: u64,
        ) {
            let wait = retry_ms(failures, first, most, asked, random);
            prop_assert!(wait >= asked && wait >= first.min(most));
        }
    }
}
