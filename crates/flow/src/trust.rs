//! Trust in stored responses, which other nodes may have invalidated.
//!
//! A node that is disconnected from its cluster revalidates each response before use; one that has
//! missed an invalidation revalidates what it stored before. A hit compares times, so a process
//! that was suspended notices when it resumes.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64, Ordering};

/// Readiness for clients, as health checks report it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Readiness {
    /// Ready.
    #[default]
    Ready,
    /// Stored responses are not trusted, and the operator wants no clients then.
    OutOfTouch,
    /// The operator drains the node.
    Draining,
    /// The operator has removed the node from its cluster.
    Left,
    /// The node does not have its shared configuration yet.
    Unprepared,
    /// The daemon shuts down.
    Stopping,
    /// A site cannot be served, and the operator wants no clients then.
    Unserved,
}

impl Readiness {
    /// Returns true if the node is ready.
    pub fn is_ready(self) -> bool {
        self == Self::Ready
    }

    /// The reason for not being ready; empty if ready.
    pub fn why(self) -> &'static str {
        match self {
            Self::Ready => "",
            Self::OutOfTouch => "out of touch with the cluster\n",
            Self::Draining => "draining\n",
            Self::Left => "it has left the cluster\n",
            Self::Unprepared => "it waits for the configuration that all nodes share\n",
            Self::Stopping => "stopping\n",
            Self::Unserved => "the origins of a site are down, and nothing of it is stored\n",
        }
    }
}

/// Trust in stored responses. Without a cluster it never ends.
#[derive(Debug)]
pub struct Trust {
    /// Monotonic milliseconds from which each response is revalidated before use.
    until_ms: AtomicU64,
    /// The last doubt: responses that were fresh no longer than this are revalidated before use.
    doubted_ms: AtomicI64,
    /// Health checks fail while trust is missing.
    is_told: AtomicBool,
    /// The operator's wish for readiness.
    wanted: AtomicU8,
    /// The shared configuration is not known yet.
    is_unprepared: AtomicBool,
    /// The daemon shuts down.
    is_stopping: AtomicBool,
    /// A site cannot be served, and health checks report it.
    is_unserved: AtomicBool,
}

impl Default for Trust {
    fn default() -> Self {
        Self {
            until_ms: AtomicU64::new(u64::MAX),
            doubted_ms: AtomicI64::new(i64::MIN),
            is_told: AtomicBool::new(false),
            wanted: AtomicU8::new(Readiness::Ready as u8),
            is_unprepared: AtomicBool::new(false),
            is_stopping: AtomicBool::new(false),
            is_unserved: AtomicBool::new(false),
        }
    }
}

impl Trust {
    /// Permits the use of stored responses until `mono_ms` of the monotonic clock.
    pub fn set_until(&self, mono_ms: u64) {
        self.until_ms.store(mono_ms, Ordering::Release);
    }

    /// Revalidates what was stored before `mono_ms` before use. A soft invalidation has ended its
    /// freshness at that moment.
    pub fn doubt(&self, mono_ms: u64) {
        self.doubted_ms.fetch_max(i64::try_from(mono_ms).unwrap_or(i64::MAX), Ordering::AcqRel);
    }

    /// The moment before which stored responses are doubted, in monotonic milliseconds; `None`
    /// without doubt.
    pub fn doubted_ms(&self) -> Option<i64> {
        Some(self.doubted_ms.load(Ordering::Acquire)).filter(|ms| *ms > i64::MIN)
    }

    /// Takes over the doubt of a former process, which may lie before the clock's zero.
    pub fn set_doubted(&self, mono_ms: i64) {
        self.doubted_ms.fetch_max(mono_ms, Ordering::AcqRel);
    }

    /// Makes health checks fail while trust is missing.
    pub fn tell_health_checks(&self, is_told: bool) {
        self.is_told.store(is_told, Ordering::Relaxed);
    }

    /// Returns true if stored responses may be used without the origin, apart from doubts.
    #[inline]
    pub fn holds(&self, now_ms: u64) -> bool {
        now_ms < self.until_ms.load(Ordering::Acquire)
    }

    /// Returns true if a response that was fresh until `fresh_until_ms` must be revalidated.
    #[inline]
    pub(crate) fn wants_validation(&self, fresh_until_ms: i64, now_ms: u64) -> bool {
        !self.holds(now_ms) || fresh_until_ms <= self.doubted_ms.load(Ordering::Acquire)
    }

    /// Sets the operator's wish for readiness, independent of trust.
    pub fn want(&self, readiness: Readiness) {
        self.wanted.store(readiness as u8, Ordering::Relaxed);
    }

    /// Makes health checks fail until the shared configuration is known.
    pub fn set_unprepared(&self, is_unprepared: bool) {
        self.is_unprepared.store(is_unprepared, Ordering::Relaxed);
    }

    /// Makes health checks fail from now on: the daemon shuts down.
    pub fn set_stopping(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
    }

    /// Makes health checks fail while a site cannot be served.
    pub fn set_unserved(&self, is_unserved: bool) {
        self.is_unserved.store(is_unserved, Ordering::Relaxed);
    }

    /// The first reason against readiness, or readiness.
    pub fn readiness(&self, now_ms: u64) -> Readiness {
        self.reasons(now_ms).next().unwrap_or(Readiness::Ready)
    }

    /// All reasons against readiness: the operator's orders first.
    pub fn reasons(&self, now_ms: u64) -> impl Iterator<Item = Readiness> {
        let wanted = self.wanted.load(Ordering::Relaxed);
        let is = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        [
            (Readiness::Stopping, is(&self.is_stopping)),
            (Readiness::Draining, wanted == Readiness::Draining as u8),
            (Readiness::Left, wanted == Readiness::Left as u8),
            (Readiness::Unprepared, is(&self.is_unprepared)),
            (Readiness::OutOfTouch, !self.holds(now_ms) && is(&self.is_told)),
            (Readiness::Unserved, is(&self.is_unserved)),
        ]
        .into_iter()
        .filter_map(|(reason, holds)| holds.then_some(reason))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trust_ends_by_itself_and_doubt_only_grows() {
        let trust = Trust::default();
        let readiness = |now_ms| trust.readiness(now_ms);
        assert!(!trust.wants_validation(0, u64::MAX - 1) && readiness(5).is_ready());
        trust.set_until(10);
        assert!(!trust.wants_validation(100, 9) && trust.wants_validation(100, 10));
        assert!(readiness(10).is_ready());
        trust.tell_health_checks(true);
        assert_eq!((readiness(9), readiness(10)), (Readiness::Ready, Readiness::OutOfTouch));
        for wanted in [Readiness::Draining, Readiness::Left] {
            trust.want(wanted);
            assert_eq!((readiness(9), readiness(10)), (wanted, wanted));
        }
        trust.want(Readiness::Ready);
        assert!(readiness(9).is_ready() && !readiness(10).is_ready());
        trust.set_until(1_000);
        trust.set_unprepared(true);
        assert_eq!(readiness(9), Readiness::Unprepared);
        trust.set_unprepared(false);
        assert!(readiness(9).is_ready());
        trust.doubt(50);
        trust.doubt(20);
        assert!(trust.wants_validation(50, 60) && !trust.wants_validation(51, 60));
        assert_eq!(trust.doubted_ms(), Some(50));
    }

    #[test]
    fn each_reason_is_reported_and_the_first_one_counts() {
        let trust = Trust::default();
        let reasons = || trust.reasons(5).collect::<Vec<_>>();
        assert_eq!(reasons(), []);
        trust.set_unserved(true);
        trust.tell_health_checks(true);
        trust.set_until(5);
        assert_eq!(reasons(), [Readiness::OutOfTouch, Readiness::Unserved]);
        trust.want(Readiness::Draining);
        trust.set_stopping();
        assert_eq!(trust.readiness(5), Readiness::Stopping);
        trust.set_unserved(false);
        trust.set_until(6);
        assert_eq!(reasons(), [Readiness::Stopping, Readiness::Draining]);
        assert!(reasons().iter().all(|reason| reason.why().ends_with('\n')));
    }
}
