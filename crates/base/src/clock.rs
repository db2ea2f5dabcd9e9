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
}

fn millis(id: ClockId) -> u64 {
    let t = clock_gettime(id);
    // Both clocks are past their epoch on every supported system.
    t.tv_sec.unsigned_abs() * 1000 + t.tv_nsec.unsigned_abs() / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

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
