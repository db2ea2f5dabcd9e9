//! Freshness of a stored response (RFC 9111 4.2), on the monotonic clock.
//!
//! All arithmetic saturates: no lifetime, window or clock value may wrap.

use crate::store::StorePlan;

/// The permitted use of a stored response at a given time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Within its lifetime: served as it is.
    Fresh,
    /// Past its lifetime, within its grace: served while it is revalidated in the background.
    Grace,
    /// Must be validated or fetched before it is served.
    Stale,
}

/// A stored response's times, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freshness {
    /// The monotonic time at which its age was 0; negative for a response that was old when it
    /// arrived.
    pub born_ms: i64,
    /// Freshness lifetime, from age 0.
    pub lifetime_ms: u64,
    /// The time after its lifetime in which it is in grace.
    pub grace_ms: u64,
    /// The time after its lifetime in which it replaces an error of the origin.
    pub stale_if_error_ms: u64,
    /// The time after its lifetime in which it is used while the origin is unreachable.
    pub stale_if_unreachable_ms: u64,
    /// Every use must validate first, fresh or not.
    pub must_validate: bool,
}

impl Freshness {
    /// The freshness of a response with the plan `plan` whose head arrived at `arrived_mono_ms`.
    pub fn new(plan: &StorePlan, arrived_mono_ms: u64) -> Self {
        Self {
            born_ms: signed(arrived_mono_ms).saturating_sub(signed(plan.age_ms)),
            lifetime_ms: plan.lifetime_ms,
            grace_ms: plan.grace_ms,
            stale_if_error_ms: plan.stale_if_error_ms,
            stale_if_unreachable_ms: plan.stale_if_unreachable_ms,
            must_validate: plan.must_validate,
        }
    }

    /// Current age (RFC 9111 4.2.3); never below 0.
    pub fn age_ms(&self, now_mono_ms: u64) -> u64 {
        u64::try_from(signed(now_mono_ms).saturating_sub(self.born_ms)).unwrap_or(0)
    }

    /// The remaining lifetime; negative after its end.
    pub fn ttl_ms(&self, now_mono_ms: u64) -> i64 {
        signed(self.lifetime_ms).saturating_sub(signed(self.age_ms(now_mono_ms)))
    }

    /// The permitted use now.
    pub fn state(&self, now_mono_ms: u64) -> State {
        let age_ms = self.age_ms(now_mono_ms);
        if self.must_validate {
            State::Stale
        } else if age_ms < self.lifetime_ms {
            State::Fresh
        } else if age_ms < self.lifetime_ms.saturating_add(self.grace_ms) {
            State::Grace
        } else {
            State::Stale
        }
    }

    /// Returns true if the response may replace the origin's 500, 502, 503 or 504 (RFC 5861 4).
    pub fn may_serve_on_error(&self, now_mono_ms: u64) -> bool {
        self.may_serve(now_mono_ms, self.stale_if_error_ms)
    }

    /// Returns true if the response may be served while the origin refuses, drops or does not
    /// answer (RFC 9111 4.2.4).
    pub fn may_serve_unreachable(&self, now_mono_ms: u64) -> bool {
        self.may_serve(now_mono_ms, self.stale_if_unreachable_ms)
    }

    /// Grace permits any stale use, so a shorter window does not cut it.
    fn may_serve(&self, now_mono_ms: u64, window_ms: u64) -> bool {
        let last_ms = self.lifetime_ms.saturating_add(window_ms.max(self.grace_ms));
        !self.must_validate && self.age_ms(now_mono_ms) < last_ms
    }
}

fn signed(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOUR: Freshness = Freshness {
        born_ms: 1000,
        lifetime_ms: 60_000,
        grace_ms: 10_000,
        stale_if_error_ms: 30_000,
        stale_if_unreachable_ms: 90_000,
        must_validate: false,
    };

    #[test]
    fn a_response_passes_from_fresh_to_grace_to_stale() {
        assert_eq!(HOUR.age_ms(0), 0);
        assert_eq!((HOUR.state(60_999), HOUR.ttl_ms(60_999)), (State::Fresh, 1));
        assert_eq!((HOUR.state(61_000), HOUR.ttl_ms(61_000)), (State::Grace, 0));
        assert_eq!((HOUR.state(71_000), HOUR.ttl_ms(71_000)), (State::Stale, -10_000));
    }

    #[test]
    fn each_kind_of_trouble_has_its_window() {
        assert!(HOUR.may_serve_on_error(90_999) && !HOUR.may_serve_on_error(91_000));
        assert!(HOUR.may_serve_unreachable(150_999) && !HOUR.may_serve_unreachable(151_000));
        let only_grace = Freshness { stale_if_error_ms: 0, ..HOUR };
        assert!(only_grace.may_serve_on_error(70_999) && !only_grace.may_serve_on_error(71_000));
    }

    #[test]
    fn what_must_be_validated_is_never_served_unasked() {
        let strict = Freshness { must_validate: true, ..HOUR };
        assert_eq!(strict.state(1000), State::Stale);
        assert!(!strict.may_serve_on_error(1000) && !strict.may_serve_unreachable(1000));
    }

    /// A model of the rules in numbers that cannot overflow.
    fn model(f: &Freshness, now: u64) -> (u128, i128, State, bool, bool) {
        let age = (i128::from(now) - i128::from(f.born_ms)).max(0) as u128;
        let (lifetime, grace) = (u128::from(f.lifetime_ms), u128::from(f.grace_ms));
        let state = if f.must_validate {
            State::Stale
        } else if age < lifetime {
            State::Fresh
        } else if age < lifetime + grace {
            State::Grace
        } else {
            State::Stale
        };
        let serves =
            |window: u64| !f.must_validate && age < lifetime + grace.max(u128::from(window));
        let (error, unreachable) = (serves(f.stale_if_error_ms), serves(f.stale_if_unreachable_ms));
        (age, lifetime as i128 - age as i128, state, error, unreachable)
    }

    fn ms() -> impl Strategy<Value = u64> {
        prop_oneof![0..100_000_u64, 0..=1_u64 << 42]
    }

    proptest! {
        #[test]
        fn it_agrees_with_the_model(
            born in -(1_i64 << 42)..1 << 42,
            times in [ms(), ms(), ms(), ms()],
            must_validate: bool,
            now in ms(),
        ) {
            let f = Freshness {
                born_ms: born,
                lifetime_ms: times[0],
                grace_ms: times[1],
                stale_if_error_ms: times[2],
                stale_if_unreachable_ms: times[3],
                must_validate,
            };
            let (age, ttl, state, error, unreachable) = model(&f, now);
            prop_assert_eq!(u128::from(f.age_ms(now)), age);
            prop_assert_eq!(i128::from(f.ttl_ms(now)), ttl);
            prop_assert_eq!(f.state(now), state);
            prop_assert_eq!(f.may_serve_on_error(now), error);
            prop_assert_eq!(f.may_serve_unreachable(now), unreachable);
        }

        #[test]
        fn extremes_saturate(born: i64, times: [u64; 4], now: u64) {
            let f = Freshness {
                born_ms: born,
                lifetime_ms: times[0],
                grace_ms: times[1],
                stale_if_error_ms: times[2],
                stale_if_unreachable_ms: times[3],
                must_validate: false,
            };
            let fresh = f.state(now) == State::Fresh;
            prop_assert_eq!(fresh, f.age_ms(now) < times[0]);
            prop_assert!(!fresh || (f.may_serve_on_error(now) && f.may_serve_unreachable(now)));
            prop_assert!(f.ttl_ms(now) > 0 || !fresh || times[0] > i64::MAX as u64);
        }
    }
}
