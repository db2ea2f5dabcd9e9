//! Rate of a transfer: how long it has stalled, and how far it is behind the least permitted rate.
//!
//! Time counts only while the transfer waits for the client, so slow origins and other streams
//! never count against it. Faster bytes give no credit: a client that took megabytes may not hold
//! an origin's connection for hours afterwards.

use std::cell::Cell;

use base::{Limit, Limits};

/// Longest interval between two checks that counts against the client: it is not charged for a
/// suspended machine.
const LOOK_MS: u64 = 5_000;

/// Bytes by which a transfer is behind the least rate.
#[derive(Clone, Copy, Debug, Default)]
struct RateDeficit(u64);

impl RateDeficit {
    /// Subtracts bytes that have moved.
    fn moved(&mut self, bytes: u64) {
        self.0 = self.0.saturating_sub(bytes);
    }

    /// Adds `ms` of waiting for the client. True if the transfer has been below `rate`, in bytes
    /// per second, for longer than `leeway_ms`; never without a rate.
    fn waited(&mut self, ms: u64, rate: u64, leeway_ms: u64) -> bool {
        self.0 = self.0.saturating_add(rate.saturating_mul(ms.min(LOOK_MS)) / 1000);
        rate > 0 && self.0 > rate.saturating_mul(leeway_ms) / 1000
    }
}

/// Bounds of a transfer: the time that it may stall, the rate required after the leeway, and the
/// limits behind both.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    stall_ms: u64,
    stall: Limit,
    rate: u64,
    slow: Limit,
    leeway_ms: u64,
}

impl Bounds {
    /// Bounds of a request body.
    pub(crate) fn of_body(limits: &Limits) -> Self {
        let (stall_ms, stall) = (limits.body_timeout, Limit::BodyTimeout);
        let (rate, leeway_ms) = (limits.body_min_rate, limits.body_rate_leeway);
        Self { stall_ms, stall, rate, slow: Limit::BodyMinRate, leeway_ms }
    }

    /// Bounds of a reply that may stall for `stall_ms` by the limit `stall`.
    pub(crate) fn of_reply(limits: &Limits, stall_ms: u64, stall: Limit) -> Self {
        let (rate, leeway_ms) = (limits.send_min_rate, limits.send_rate_leeway);
        Self { stall_ms, stall, rate, slow: Limit::SendMinRate, leeway_ms }
    }

    /// Removes the least rate.
    pub(crate) fn without_rate(self) -> Self {
        Self { rate: 0, ..self }
    }
}

/// Progress of a transfer in one direction.
#[derive(Debug, Default)]
pub(crate) struct Transfer {
    active: Cell<bool>,
    moved_ms: Cell<u64>,
    /// The time of the last check or progress.
    looked_ms: Cell<u64>,
    behind: Cell<RateDeficit>,
}

impl Transfer {
    /// Restarts the transfer.
    pub(crate) fn start(&self, now_ms: u64) {
        self.behind.take();
        self.pause();
        self.waits(true, now_ms);
    }

    /// Notes whether the transfer waits for the client.
    pub(crate) fn waits(&self, for_client: bool, now_ms: u64) {
        if self.active.replace(for_client) != for_client {
            self.moved_ms.set(now_ms);
            self.looked_ms.set(now_ms);
        }
    }

    /// Notes that the transfer no longer waits for the client.
    pub(crate) fn pause(&self) {
        self.active.set(false);
    }

    pub(crate) fn is_active(&self) -> bool {
        self.active.get()
    }

    pub(crate) fn moved(&self, bytes: usize, now_ms: u64) {
        let mut behind = self.behind.get();
        behind.moved(bytes as u64);
        self.behind.set(behind);
        self.moved_ms.set(now_ms);
    }

    /// The time at which bytes last moved.
    pub(crate) fn moved_ms(&self) -> u64 {
        self.moved_ms.get()
    }

    /// The limit that the transfer exceeds.
    pub(crate) fn overdue(&self, now_ms: u64, bounds: Bounds) -> Option<Limit> {
        let Bounds { stall_ms, stall, rate, slow, leeway_ms } = bounds;
        if !self.active.get() {
            return None;
        }
        if now_ms.saturating_sub(self.moved_ms.get()) > stall_ms {
            return Some(stall);
        }
        let waited_ms = now_ms.saturating_sub(self.looked_ms.replace(now_ms));
        let mut behind = self.behind.get();
        let is_slow = behind.waited(waited_ms, rate, leeway_ms);
        self.behind.set(behind);
        is_slow.then_some(slow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds, of an hour, after which a client that moves `bytes` every second is too slow.
    fn ends(bytes: u64) -> Option<u64> {
        let mut behind = RateDeficit::default();
        (1..=3600).find(|_| {
            behind.moved(bytes);
            behind.waited(1_000, 1024, 60_000)
        })
    }

    #[test]
    fn slower_than_the_rate_is_allowed_for_the_leeway() {
        assert_eq!(ends(0), Some(61));
        assert_eq!(ends(1), Some(61));
        assert_eq!(ends(512), Some(120));
        assert_eq!(ends(1024), None);
    }

    #[test]
    fn what_was_taken_faster_is_no_credit() {
        let mut behind = RateDeficit::default();
        behind.moved(1 << 30);
        let ended = (1..).find(|_| behind.waited(1_000, 1024, 60_000));
        assert_eq!(ended, Some(61));
    }

    #[test]
    fn without_a_rate_nothing_is_too_slow_and_a_machine_that_stood_still_is_not_held_against_it() {
        let mut behind = RateDeficit::default();
        assert!(!behind.waited(u64::MAX, 0, 0));
        assert!(!behind.waited(3_600_000, 1024, 10_000));
        assert!(!behind.waited(1_000, 0, 0), "nor one that was slow while there was a rate");
    }

    #[test]
    fn time_counts_only_while_the_client_is_waited_for() {
        let limits = Limits::default();
        let (transfer, bounds) = (Transfer::default(), Bounds::of_body(&limits));
        assert_eq!(transfer.overdue(u64::MAX, bounds), None, "it has not begun");
        transfer.start(0);
        assert_eq!(transfer.overdue(limits.body_timeout, bounds), None);
        transfer.waits(false, limits.body_timeout);
        let later = 10 * limits.body_timeout;
        assert_eq!(transfer.overdue(later, bounds), None);
        transfer.waits(true, later);
        assert_eq!(transfer.overdue(later + limits.body_timeout, bounds), None);
        let late = transfer.overdue(later + limits.body_timeout + 1, bounds);
        assert_eq!(late, Some(Limit::BodyTimeout));
    }
}
