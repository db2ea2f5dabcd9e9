//! Rates: how often something may happen, by the generic cell rate algorithm (GCRA), as nginx's
//! `limit_req`. The state of a client is one moment, until which its quota is used up. Each
//! admission moves it by one interval. The distance from now is the client's debt: with too much
//! debt a request waits or is rejected, and a rejection adds nothing.

mod clients;
mod concurrency;

use std::fmt;
use std::time::Duration;

pub use clients::RateTable;
pub use concurrency::{ConcurrencyLimiter, ConcurrencyPermit};

use crate::units::{self, DurationMs};

const NS_PER_MS: u64 = 1_000_000;

/// The ticks of the coarse clock: a request that is early by less is on time.
const TICK_NS: u64 = 10 * NS_PER_MS;

/// A number of requests in a period, at even distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RateQuota {
    /// The number; never 0 in a parsed quota.
    pub count: u32,
    /// The period in milliseconds; never 0 in a parsed quota.
    pub per_ms: u64,
}

/// A rate with a burst and a queue. All times are in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rate {
    /// The interval at an even pace.
    interval_ns: u64,
    /// The largest debt at which a request is admitted at once.
    burst_ns: u64,
    /// The largest debt at which a request may wait; at least `burst_ns`.
    queue_ns: u64,
}

/// The decision about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Admitted now.
    Now,
    /// Admitted after this time.
    Later(Duration),
    /// Rejected. At an even pace the next would be admitted after this time.
    Refused(Duration),
}

/// The requests that a client may still make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemainingQuota {
    /// Requests that would be admitted at once.
    pub at_once: u64,
    /// Further requests that would wait.
    pub waiting: u64,
}

impl RateQuota {
    /// Parses a quota such as `10/s`, `300/m`, `1000/h`.
    ///
    /// # Errors
    /// A number that is no integer above 0, or an unknown unit.
    pub fn parse(text: &str) -> Result<Self, units::Error> {
        let (count, unit) = text.split_once('/').ok_or(units::Error::Unit)?;
        let count = count.trim();
        if count.is_empty() || !count.bytes().all(|b| b.is_ascii_digit()) {
            return Err(units::Error::Number);
        }
        let count: u32 = count.parse().map_err(|_| units::Error::TooLarge)?;
        let per_ms = match unit.trim() {
            "s" => 1000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => return Err(units::Error::Unit),
        };
        if count == 0 {
            return Err(units::Error::Number);
        }
        Ok(Self { count, per_ms })
    }
}

impl fmt::Display for RateQuota {
    /// In the notation of [`RateQuota::parse`], if possible.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { count, per_ms } = *self;
        match per_ms {
            1000 => write!(f, "{count}/s"),
            60_000 => write!(f, "{count}/m"),
            3_600_000 => write!(f, "{count}/h"),
            other => write!(f, "{count} in {}", DurationMs(other)),
        }
    }
}

impl Rate {
    /// The rate of `pace`, with `burst` more at once, and `queue` more that wait.
    pub fn new(pace: RateQuota, burst: u32, queue: u32) -> Self {
        let RateQuota { count, per_ms } = pace;
        let interval_ns = (per_ms.saturating_mul(NS_PER_MS) / u64::from(count.max(1))).max(1);
        let burst_ns = interval_ns.saturating_mul(u64::from(burst));
        let queue_ns = burst_ns.saturating_add(interval_ns.saturating_mul(u64::from(queue)));
        Self { interval_ns, burst_ns, queue_ns }
    }

    /// This rate with waits of at most `wait_ms` milliseconds.
    #[must_use]
    pub fn with_wait_ms(self, wait_ms: u64) -> Self {
        let most = self.burst_ns.saturating_add(wait_ms.saturating_mul(NS_PER_MS));
        Self { queue_ns: self.queue_ns.min(most), ..self }
    }

    /// This rate without waits: what would wait is refused.
    #[must_use]
    pub fn without_queue(self) -> Self {
        Self { queue_ns: self.burst_ns, ..self }
    }

    /// Decides about a request at `now_ns` of a client whose debt ends at `owed_ns`, and returns
    /// the new end of its debt; unchanged after a rejection.
    pub fn admit(&self, owed_ns: u64, now_ns: u64) -> (Admission, u64) {
        let from_ns = owed_ns.max(now_ns);
        let debt_ns = from_ns - now_ns;
        let next_ns = from_ns.saturating_add(self.interval_ns);
        if debt_ns <= self.burst_ns.max(TICK_NS) {
            return (Admission::Now, next_ns);
        }
        if debt_ns <= self.queue_ns {
            return (Admission::Later(Duration::from_nanos(debt_ns - self.burst_ns)), next_ns);
        }
        let most_ns = self.queue_ns.max(TICK_NS);
        (Admission::Refused(Duration::from_nanos(debt_ns - most_ns)), owed_ns)
    }

    /// The requests that a client with debt until `owed_ns` may still make at `now_ns`.
    pub fn left(&self, owed_ns: u64, now_ns: u64) -> RemainingQuota {
        let debt_ns = owed_ns.saturating_sub(now_ns);
        let within = |most_ns: u64| match most_ns.checked_sub(debt_ns) {
            Some(room_ns) => room_ns / self.interval_ns + 1,
            None => 0,
        };
        let at_once = within(self.burst_ns.max(TICK_NS));
        RemainingQuota {
            at_once,
            waiting: within(self.queue_ns.max(TICK_NS)).saturating_sub(at_once),
        }
    }
}

/// The moment `now_ms` of the monotonic clock, in nanoseconds.
pub fn moment_ns(now_ms: u64) -> u64 {
    now_ms.saturating_mul(NS_PER_MS)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A leaking bucket in whole nanoseconds, in nginx's form: its content and its time.
    struct Bucket {
        drops: u128,
        at_ns: u64,
    }

    impl Bucket {
        fn take(&mut self, rate: &Rate, now_ns: u64) -> Admission {
            let leaked = u128::from(now_ns - self.at_ns);
            self.drops = self.drops.saturating_sub(leaked);
            self.at_ns = now_ns;
            let (burst, queue) = (rate.burst_ns, rate.queue_ns.max(TICK_NS));
            let over = |most: u64| Duration::from_nanos((self.drops - u128::from(most)) as u64);
            let said = match self.drops {
                drops if drops <= u128::from(burst.max(TICK_NS)) => Admission::Now,
                drops if drops <= u128::from(queue) => Admission::Later(over(burst)),
                _ => return Admission::Refused(over(queue)),
            };
            self.drops += u128::from(rate.interval_ns);
            said
        }
    }

    fn rates() -> impl Strategy<Value = Rate> {
        let period = prop_oneof![Just(1000_u64), Just(60_000), Just(3_600_000)];
        (1_u32..5000, period, 0_u32..40, 0_u32..40).prop_map(|(count, per_ms, burst, queue)| {
            Rate::new(RateQuota { count, per_ms }, burst, queue)
        })
    }

    proptest! {
        #[test]
        fn it_decides_as_a_leaking_bucket(
            rate in rates(),
            steps_ms in prop::collection::vec(
                prop_oneof![Just(0_u64), 0..50_u64, 0..200_000_u64],
                1..300,
            ),
        ) {
            let mut bucket = Bucket { drops: 0, at_ns: 0 };
            let (mut owed_ns, mut now_ns) = (0, 0);
            for step in steps_ms {
                now_ns += step * NS_PER_MS;
                let left = rate.left(owed_ns, now_ns);
                let (said, next) = rate.admit(owed_ns, now_ns);
                prop_assert_eq!(said, bucket.take(&rate, now_ns));
                let foreseen = match said {
                    Admission::Now => left.at_once > 0,
                    Admission::Later(_) => left.at_once == 0 && left.waiting > 0,
                    Admission::Refused(_) => left.at_once == 0 && left.waiting == 0,
                };
                prop_assert!(foreseen, "{:?} of {:?}", said, left);
                prop_assert!(!matches!(said, Admission::Refused(_)) || next == owed_ns);
                owed_ns = next;
            }
        }

        #[test]
        fn waiting_requests_are_admitted_in_order_and_at_the_rate(
            rate in rates(),
            steps_ms in prop::collection::vec(0..30_u64, 1..300),
        ) {
            let (mut owed_ns, mut now_ns, mut last_ns) = (0, 0, 0);
            for step in steps_ms {
                now_ns += step * NS_PER_MS;
                let (said, next) = rate.admit(owed_ns, now_ns);
                if let Admission::Later(wait) = said {
                    let turn_ns = now_ns + wait.as_nanos() as u64;
                    prop_assert!(turn_ns > now_ns && turn_ns >= last_ns);
                    last_ns = turn_ns;
                }
                owed_ns = next;
            }
        }

        #[test]
        fn a_request_after_its_retry_time_is_admitted(rate in rates(), at_ms in 0..1000_u64) {
            let (mut owed_ns, now_ns) = (0, at_ms * NS_PER_MS);
            let wait = loop {
                match rate.admit(owed_ns, now_ns) {
                    (Admission::Refused(wait), _) => break wait,
                    (_, next) => owed_ns = next,
                }
            };
            let then = now_ns + wait.as_nanos() as u64;
            let early = rate.admit(owed_ns, then - 1).0;
            prop_assert!(matches!(early, Admission::Refused(_)));
            prop_assert!(!matches!(rate.admit(owed_ns, then).0, Admission::Refused(_)));
        }
    }

    #[test]
    fn a_burst_is_admitted_then_a_queue_waits_and_the_rest_is_refused() {
        let rate = Rate::new(RateQuota { count: 1, per_ms: 3_600_000 }, 2, 1);
        let mut owed_ns = 0;
        let mut come = |now_ns| {
            let (said, next) = rate.admit(owed_ns, now_ns);
            owed_ns = next;
            said
        };
        let hours = |hours: u64| Duration::from_secs(3600 * hours);
        assert_eq!([come(0), come(0), come(0)], [Admission::Now; 3]);
        assert_eq!(come(0), Admission::Later(hours(1)));
        assert_eq!(come(0), Admission::Refused(hours(1)));
        assert_eq!(come(moment_ns(3_600_000)), Admission::Later(hours(1)));
        assert_eq!(rate.with_wait_ms(1000).admit(moment_ns(10_800_000), 0).1, 10_800_000_000_000);
    }

    #[test]
    fn rates_are_read_as_they_are_shown() {
        for (text, count, per_ms) in
            [("10/s", 10, 1000), ("300/m", 300, 60_000), ("1/h", 1, 3_600_000)]
        {
            let pace = RateQuota { count, per_ms };
            assert_eq!(RateQuota::parse(text), Ok(pace));
            assert_eq!(pace.to_string(), text);
        }
        assert_eq!(RateQuota::parse(" 5 / s "), Ok(RateQuota { count: 5, per_ms: 1000 }));
        for bad in ["", "10", "/s", "0/s", "-1/s", "1.5/s", "10/d", "10/", "99999999999/s"] {
            assert!(RateQuota::parse(bad).is_err(), "{bad}");
        }
    }
}
