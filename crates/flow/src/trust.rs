//! Trust in what is stored, where other nodes may have invalidated it.
//!
//! A node that is out of touch with its cluster uses nothing of what it stores unless the origin
//! has confirmed it; one that has missed something does so for what it stored before. Both are
//! times that a hit compares, so that a process that was stopped knows it when it goes on.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64, Ordering};

/// Readiness for clients, as health checks answer it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Readiness {
    /// Ready.
    #[default]
    Ready,
    /// Nothing stored is trusted, and the operator wants no clients then.
    OutOfTouch,
    /// The operator wants no more clients here.
    Draining,
    /// The operator has had the node leave its cluster.
    Left,
    /// It does not know yet what it is to serve.
    Unprepared,
    /// The daemon ends.
    Stopping,
    /// The operator wants no clients while there is a site that nothing can be served for.
    Unserved,
}

impl Readiness {
    /// Returns true if it is ready.
    pub fn is_ready(self) -> bool {
        self == Self::Ready
    }

    /// The reason for which it is not ready; empty if it is.
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

/// Trust in what is stored. Without a cluster it has no end.
#[derive(Debug)]
pub struct Trust {
    /// Since this moment of the monotonic clock everything is validated before it is used.
    until_ms: AtomicU64,
    /// The moment of the last doubt: a response that was fresh no longer than that is validated
    /// before it is used.
    doubted_ms: AtomicI64,
    /// Without trust the node is not ready.
    is_told: AtomicBool,
    /// Readiness while what is stored is trusted.
    wanted: AtomicU8,
    /// It is not known yet what is to be served.
    is_unprepared: AtomicBool,
    /// The daemon ends.
    is_stopping: AtomicBool,
    /// There is a site that nothing can be served for, and health checks are to tell.
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
    /// Lets what is stored be used until `mono_ms` of the monotonic clock.
    pub fn set_until(&self, mono_ms: u64) {
        self.until_ms.store(mono_ms, Ordering::Release);
    }

    /// Has what was stored before `mono_ms` validated before it is used. Soft invalidation has
    /// ended its freshness at that moment.
    pub fn doubt(&self, mono_ms: u64) {
        self.doubted_ms.fetch_max(i64::try_from(mono_ms).unwrap_or(i64::MAX), Ordering::AcqRel);
    }

    /// The moment before which nothing is trusted, of the monotonic clock; `None` for none.
    pub fn doubted_ms(&self) -> Option<i64> {
        Some(self.doubted_ms.load(Ordering::Acquire)).filter(|ms| *ms > i64::MIN)
    }

    /// Takes up what a former process doubted: before the clock's zero, perhaps.
    pub fn set_doubted(&self, mono_ms: i64) {
        self.doubted_ms.fetch_max(mono_ms, Ordering::AcqRel);
    }

    /// Has health checks fail while nothing is trusted.
    pub fn tell_health_checks(&self, is_told: bool) {
        self.is_told.store(is_told, Ordering::Relaxed);
    }

    /// Returns true if what is stored may be used by itself, unless it is doubted.
    #[inline]
    pub fn holds(&self, now_ms: u64) -> bool {
        now_ms < self.until_ms.load(Ordering::Acquire)
    }

    /// Returns true if a response that was fresh until `fresh_until_ms` is to be validated first.
    #[inline]
    pub(crate) fn wants_validation(&self, fresh_until_ms: i64, now_ms: u64) -> bool {
        !self.holds(now_ms) || fresh_until_ms <= self.doubted_ms.load(Ordering::Acquire)
    }

    /// Has health checks answer as the operator wants it, trust or no trust.
    pub fn want(&self, readiness: Readiness) {
        self.wanted.store(readiness as u8, Ordering::Relaxed);
    }

    /// Has health checks fail until it is known what is to be served.
    pub fn set_unprepared(&self, is_unprepared: bool) {
        self.is_unprepared.store(is_unprepared, Ordering::Relaxed);
    }

    /// Has health checks fail from now on: the daemon ends.
    pub fn set_stopping(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
    }

    /// Has health checks fail while there is a site that nothing can be served for.
    pub fn set_unserved(&self, is_unserved: bool) {
        self.is_unserved.store(is_unserved, Ordering::Relaxed);
    }

    /// Readiness for clients: the first of the reasons against it.
    pub fn readiness(&self, now_ms: u64) -> Readiness {
        self.reasons(now_ms).next().unwrap_or(Readiness::Ready)
    }

    /// Everything for which it is not ready, what the operator wants before what is so by itself.
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
    fn every_reason_is_told_and_the_first_one_counts() {
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
