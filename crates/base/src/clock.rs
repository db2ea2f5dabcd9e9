//! Time as a value: one reading of both clocks, passed down instead of asked for.

use rustix::time::{ClockId, clock_gettime};

/// One reading of the monotonic and the wall clock, in milliseconds.
///
/// Lifetimes and ages are computed with `mono_ms`, which never jumps; `unix_ms` is only for dates
/// on the wire. A wall clock set back or forward therefore never expires the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Milliseconds of the monotonic clock (its zero is arbitrary but never after process start).
    pub mono_ms: u64,
    /// Milliseconds since 1970-01-01 UTC.
    pub unix_ms: u64,
}

impl Now {
    /// Whole seconds since 1970-01-01 UTC.
    pub fn unix_secs(self) -> u64 {
        self.unix_ms / 1000
    }

    /// The wall clock's time when the monotonic one shows `mono_ms`, as far as both run alike: a
    /// time that another process understands. Both are in milliseconds, and may lie before either
    /// clock's zero.
    pub fn unix_at(self, mono_ms: i64) -> i64 {
        signed(self.unix_ms).saturating_add(mono_ms.saturating_sub(signed(self.mono_ms)))
    }

    /// The monotonic clock's time when the wall clock shows `unix_ms`: the reverse of
    /// [`Now::unix_at`], here or in another process.
    pub fn mono_at(self, unix_ms: i64) -> i64 {
        signed(self.mono_ms).saturating_add(unix_ms.saturating_sub(signed(self.unix_ms)))
    }
}

fn signed(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

/// The operating system's clocks at tick resolution (1 to 10 ms), read without a system call.
#[derive(Clone, Copy, Debug, Default)]
pub struct System;

impl System {
    /// Reads both clocks.
    pub fn now(self) -> Now {
        Now { mono_ms: millis(ClockId::MonotonicCoarse), unix_ms: millis(ClockId::RealtimeCoarse) }
    }

    /// Microseconds of the monotonic clock, for measuring: some 20 ns a look where the coarse clock
    /// costs 5. The same on every core.
    pub fn micros(self) -> u64 {
        let t = clock_gettime(ClockId::Monotonic);
        t.tv_sec.unsigned_abs() * 1_000_000 + t.tv_nsec.unsigned_abs() / 1000
    }

    /// Microseconds of processor time that this thread has had, for measuring work that others may
    /// interrupt.
    pub fn thread_micros(self) -> u64 {
        let t = clock_gettime(ClockId::ThreadCPUTime);
        t.tv_sec.unsigned_abs() * 1_000_000 + t.tv_nsec.unsigned_abs() / 1000
    }
}

fn millis(id: ClockId) -> u64 {
    let t = clock_gettime(id);
    // Both clocks are past their epoch on every supported system.
    t.tv_sec.unsigned_abs() * 1000 + t.tv_nsec.unsigned_abs() / 1_000_000
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A day in 1970 to one in 2242, and a machine that has run for up to 27 years.
    fn readings() -> impl Strategy<Value = Now> {
        (0..1_u64 << 40, 0..1_u64 << 43).prop_map(|(mono_ms, unix_ms)| Now { mono_ms, unix_ms })
    }

    proptest! {
        #[test]
        fn a_time_that_went_by_the_wall_clock_is_as_old_in_another_process(
            (before, after) in (readings(), readings()),
            age_ms in -(1_i64 << 40)..1 << 40,
        ) {
            let born_ms = before.mono_ms as i64 - age_ms;
            prop_assert_eq!(before.mono_at(before.unix_at(born_ms)), born_ms);
            let stopped_ms = after.unix_ms as i64 - before.unix_ms as i64;
            let born_there_ms = after.mono_at(before.unix_at(born_ms));
            prop_assert_eq!(after.mono_ms as i64 - born_there_ms, age_ms + stopped_ms);
        }

        #[test]
        fn no_time_is_too_far_away(now in readings(), ms in any::<i64>()) {
            let (sooner, later) = (now.unix_at(ms.saturating_sub(1)), now.unix_at(ms));
            prop_assert!(sooner <= later && now.mono_at(sooner) <= now.mono_at(later));
        }
    }

    #[test]
    fn both_clocks_run() {
        let first = System.now();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(2);
        while System.now().mono_ms == first.mono_ms {
            assert!(std::time::Instant::now() < deadline, "the monotonic clock stands still");
        }
        assert!(first.unix_secs() > 1_700_000_000);
    }
}
