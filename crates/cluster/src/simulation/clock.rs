//! The stream's clock, with the times at which entries are stored.

use fastrand::Rng;

/// The time of the first moment, in nanoseconds since 1970.
const BEGIN_NS: u64 = 1_764_288_000_000_000_000;
/// The largest difference between two servers' clocks, in nanoseconds: half a minute.
const APART_NS: u64 = 30_000_000_000;

/// The clock of the leading server. It has a random generator of its own, so that reading the time
/// changes nothing else in a run.
#[derive(Debug)]
pub(super) struct Clock {
    rng: Rng,
    ahead_ns: u64,
}

impl Clock {
    pub(super) fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(!seed);
        let ahead_ns = rng.u64(..APART_NS);
        Self { rng, ahead_ns }
    }

    /// Another server leads, with a clock of its own: time may go back.
    pub(super) fn is_anothers(&mut self) {
        self.ahead_ns = self.rng.u64(..APART_NS);
    }

    /// The time of an entry that is stored now.
    pub(super) fn stored_ns(&mut self, now_ms: u64) -> u64 {
        BEGIN_NS + self.ahead_ns + now_ms * 1_000_000 + self.rng.u64(..1_000_000)
    }
}
