//! The clock: one reading of both clocks, passed down as a value. Code below the outer layers must
//! never read a clock itself.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use parking_lot::Mutex;
use rustix::time::{ClockId, clock_gettime};

/// A reading of the monotonic clock and the wall clock, in milliseconds.
///
/// Lifetimes, ages and leases use `mono_ms`, which never goes back; `unix_ms` is only for dates on
/// the wire. So a wall clock that is set back makes nothing younger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Elapsed milliseconds, from a zero before the start of the process: those of the monotonic
    /// clock, and those for which the machine was suspended.
    pub mono_ms: u64,
    /// Milliseconds since 1970-01-01 UTC.
    pub unix_ms: u64,
}

impl Now {
    /// Whole seconds since 1970-01-01 UTC.
    pub fn unix_secs(self) -> u64 {
        self.unix_ms / 1000
    }

    /// The wall clock's time at `mono_ms` of the monotonic clock, for use in another process. Both
    /// may be negative.
    pub fn unix_at(self, mono_ms: i64) -> i64 {
        signed(self.unix_ms).saturating_add(mono_ms.saturating_sub(signed(self.mono_ms)))
    }

    /// The monotonic clock's time at `unix_ms` of the wall clock: the reverse of [`Now::unix_at`],
    /// here or in another process.
    pub fn mono_at(self, unix_ms: i64) -> i64 {
        signed(self.mono_ms).saturating_add(unix_ms.saturating_sub(signed(self.unix_ms)))
    }
}

fn signed(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

/// The operating system's clocks at tick resolution (1 to 10 ms), read without a system call.
///
/// The monotonic clock stops while a machine is suspended, and both clocks stop while a hypervisor
/// pauses it; the wall clock is then corrected. So a step of the wall clock ahead of the monotonic
/// one counts as elapsed time: stored objects age by it, and a lease ends. A clock set forward by
/// an administrator looks equal and has the same effect.
#[derive(Clone, Copy, Debug, Default)]
pub struct System;

impl System {
    /// Reads both clocks.
    #[inline]
    pub fn now(self) -> Now {
        let (mono_ms, unix_ms) =
            (millis(ClockId::MonotonicCoarse), millis(ClockId::RealtimeCoarse));
        let ahead_ms = signed(unix_ms).wrapping_sub(signed(mono_ms));
        if ahead_ms.abs_diff(STILL.ahead_ms.load(Ordering::Relaxed)) > DRIFT_MS {
            STILL.look();
        }
        Now { mono_ms: mono_ms + STILL.missed_ms.load(Ordering::Relaxed), unix_ms }
    }

    /// Microseconds of the monotonic clock, for measurements: 20 ns a reading, where the coarse
    /// clock takes 5. All cores agree.
    pub fn micros(self) -> u64 {
        let t = clock_gettime(ClockId::Monotonic);
        t.tv_sec.unsigned_abs() * 1_000_000 + t.tv_nsec.unsigned_abs() / 1000
    }

    /// Microseconds of processor time of this thread, for measuring work that may be interrupted.
    pub fn thread_micros(self) -> u64 {
        let t = clock_gettime(ClockId::ThreadCPUTime);
        t.tv_sec.unsigned_abs() * 1_000_000 + t.tv_nsec.unsigned_abs() / 1000
    }
}

/// A difference between the clocks that is examined: larger than ticks and the delay between two
/// readings.
const DRIFT_MS: u64 = 100;
/// The shortest step of the wall clock that counts as suspension. NTP slews smaller corrections.
const STILL_MS: i64 = 1_000;
/// The longest time between the readings of a valid pair.
const APART_MS: u64 = 10;
/// Attempts to read such a pair.
const ATTEMPTS: u32 = 8;

/// The time of suspensions.
static STILL: SuspendDetector = SuspendDetector::new();

/// Detects suspensions by steps of the wall clock.
struct SuspendDetector {
    /// The lead of the wall clock over the monotonic one at the last comparison, in milliseconds.
    ahead_ms: AtomicI64,
    /// The total time of suspensions in milliseconds.
    missed_ms: AtomicU64,
    looks: Mutex<()>,
}

impl SuspendDetector {
    const fn new() -> Self {
        Self {
            ahead_ms: AtomicI64::new(i64::MIN),
            missed_ms: AtomicU64::new(0),
            looks: Mutex::new(()),
        }
    }

    /// Compares both clocks by readings that are close together: the thread may have been preempted
    /// between the former two.
    #[cold]
    fn look(&self) {
        // Another thread compares already, with an equal result.
        let Some(_looking) = self.looks.try_lock() else { return };
        for _ in 0..ATTEMPTS {
            let before_ms = millis(ClockId::Monotonic);
            let unix_ms = millis(ClockId::Realtime);
            let after_ms = millis(ClockId::Monotonic);
            if after_ms - before_ms <= APART_MS {
                self.found(signed(unix_ms).wrapping_sub(signed(before_ms)));
                return;
            }
        }
    }

    /// Takes the lead of the wall clock.
    fn found(&self, ahead_ms: i64) {
        let before_ms = self.ahead_ms.swap(ahead_ms, Ordering::Relaxed);
        if before_ms == i64::MIN {
            return;
        }
        let step_ms = ahead_ms.saturating_sub(before_ms);
        if step_ms >= STILL_MS {
            self.missed_ms.fetch_add(step_ms.unsigned_abs(), Ordering::Relaxed);
        }
    }
}

fn millis(id: ClockId) -> u64 {
    let t = clock_gettime(id);
    // Both clocks are after their epoch on every supported system.
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
    fn time_for_which_the_machine_stood_still_has_passed() {
        let still = SuspendDetector::new();
        for (ahead_ms, missed_ms, why) in [
            (5_000, 0, "the first reading says nothing"),
            (5_090, 0, "slewed"),
            (205_090, 200_000, "suspended"),
            (204_000, 200_000, "a clock set back makes nothing younger"),
            (204_999, 200_000, "too short"),
            (206_000, 201_001, "paused"),
        ] {
            still.found(ahead_ms);
            assert_eq!(still.missed_ms.load(Ordering::Relaxed), missed_ms, "{why}");
        }
    }

    proptest! {
        #[test]
        fn elapsed_time_never_goes_back(
            leads in prop::collection::vec(-1_i64 << 50..1 << 50, 1..20),
        ) {
            let still = SuspendDetector::new();
            let mut before = 0;
            for ahead_ms in leads {
                still.found(ahead_ms);
                let missed_ms = still.missed_ms.load(Ordering::Relaxed);
                prop_assert!(missed_ms >= before);
                before = missed_ms;
            }
        }
    }

    #[test]
    fn threads_that_are_put_aside_between_two_readings_miss_nothing() {
        _ = System.now();
        let still = STILL.missed_ms.load(Ordering::Relaxed);
        STILL.look();
        STILL.look();
        assert_eq!(STILL.missed_ms.load(Ordering::Relaxed), still);
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
