//! Health of a server: passive ejection after failures, and the window of active probes.
//!
//! Only atomics, shared by all cores; callers pass the time. Reading the state of a healthy server
//! must never write to shared memory.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::config::EjectConfig;

/// Passive ejection of one server: ejected after consecutive failures, half-open after a time.
#[derive(Debug, Default)]
pub(crate) struct Ejection {
    failures: AtomicU32,
    /// End of the ejection in monotonic milliseconds; 0 if not ejected.
    until_ms: AtomicU64,
    /// Monotonic milliseconds of the first of the consecutive failures.
    since_ms: AtomicU64,
}

/// The state of a server by its failed requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EjectionState {
    /// In use.
    Open,
    /// The ejection is over: one request may try the server, see [`Ejection::claim_trial`].
    HalfOpen,
    /// Ejected: the server gets no requests.
    Ejected,
}

impl Ejection {
    pub(crate) fn standing(&self, now_ms: u64) -> EjectionState {
        match self.until_ms.load(Ordering::Relaxed) {
            0 => EjectionState::Open,
            until if until <= now_ms => EjectionState::HalfOpen,
            _ => EjectionState::Ejected,
        }
    }

    /// Claims the one trial of a half-open server. Other requests see it ejected for another
    /// period, so a trial without a result (its client left) only delays the next one.
    pub(crate) fn claim_trial(&self, config: EjectConfig, now_ms: u64) -> bool {
        let until = self.until_ms.load(Ordering::Relaxed);
        let due = until != 0 && until <= now_ms;
        due && self
            .until_ms
            .compare_exchange(until, next(config, now_ms), Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    }

    /// Records a response; true if it ended an ejection.
    pub(crate) fn succeeded(&self) -> bool {
        // The usual case only reads.
        if self.failures.load(Ordering::Relaxed) != 0 {
            self.failures.store(0, Ordering::Relaxed);
        }
        self.until_ms.load(Ordering::Relaxed) != 0 && self.until_ms.swap(0, Ordering::Relaxed) != 0
    }

    /// Records a failure; true if it ejected a server that was in use.
    pub(crate) fn failed(&self, config: EjectConfig, now_ms: u64) -> bool {
        let before = self
            .failures
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| Some(n.saturating_add(1)))
            .unwrap_or_else(|unchanged| unchanged);
        if before == 0 {
            self.since_ms.store(now_ms, Ordering::Relaxed);
        }
        if config.failures == 0 || before.saturating_add(1) < config.failures {
            return false;
        }
        self.until_ms.swap(next(config, now_ms), Ordering::Relaxed) == 0
    }

    /// Failures since the last response.
    pub(crate) fn failures(&self) -> u32 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Monotonic milliseconds of the first failure since the last response, if an ejection is not
    /// over: a trial must still succeed.
    pub(crate) fn since_ms(&self) -> Option<u64> {
        let is_over = self.until_ms.load(Ordering::Relaxed) == 0;
        (!is_over).then(|| self.since_ms.load(Ordering::Relaxed))
    }

    /// Milliseconds left of the ejection.
    pub(crate) fn left_ms(&self, now_ms: u64) -> u64 {
        self.until_ms.load(Ordering::Relaxed).saturating_sub(now_ms)
    }
}

/// Zero means "not ejected", so an ejection never ends there.
fn next(config: EjectConfig, now_ms: u64) -> u64 {
    now_ms.saturating_add(config.for_ms).max(1)
}

/// An operator's override of a server's health, which precedes probes and failures. A change of the
/// origin's settings resets it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum HealthOverride {
    /// No override: probes and failures decide.
    #[default]
    Auto,
    /// The server gets requests, whatever probes report (Varnish: `backend.set_health healthy`).
    Up,
    /// The server gets no new requests; those in progress or in its queue are finished.
    Drain,
    /// The server is broken and gets no new requests (Varnish: `backend.set_health sick`).
    Down,
}

impl HealthOverride {
    /// All overrides, each with its name.
    pub const WORDS: [(&'static str, Self); 4] =
        [("auto", Self::Auto), ("up", Self::Up), ("drain", Self::Drain), ("down", Self::Down)];

    /// The name of the override.
    pub fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, order)| *order == self).map_or("auto", |(word, _)| word)
    }

    pub(crate) fn of(number: u8) -> Self {
        let found = Self::WORDS.iter().find(|(_, order)| *order as u8 == number);
        found.map_or(Self::Auto, |(_, order)| *order)
    }
}

/// The verdict of the probes on a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeVerdict {
    /// The server is not probed, or no probe has ended yet: it gets requests.
    Unknown,
    /// Enough of the latest probes were good.
    Healthy,
    /// Too few of the latest probes were good.
    Sick,
}

/// The results of the latest 64 probes, one bit each, the latest lowest.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProbeHistory {
    /// Good probes, including those assumed before the first one.
    pub good: u64,
    /// Probes that connected over IPv4.
    pub ipv4: u64,
    /// Probes that connected over IPv6.
    pub ipv6: u64,
    /// Probes that connected to a unix socket.
    pub unix: u64,
    /// Probes that sent their request.
    pub sent: u64,
    /// Probes that failed to send it.
    pub unsent: u64,
    /// Probes that received a response.
    pub received: u64,
    /// Probes that failed to receive one: the connection failed, or the timeout expired. A
    /// connection closed without a byte sets neither bit.
    pub failed: u64,
    /// The average duration of the latest good probes, in seconds.
    pub average: f64,
    /// The number of probes in that average, at most four.
    pub counted: u32,
}

/// The result of one probe.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProbeResult {
    pub(crate) good: bool,
    /// The family of the connected address; `None` without a connection.
    pub(crate) connected: Option<Family>,
    pub(crate) sent: bool,
    pub(crate) unsent: bool,
    pub(crate) received: bool,
    pub(crate) failed: bool,
    pub(crate) seconds: f64,
}

/// Kinds of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    V4,
    V6,
    Unix,
}

impl ProbeHistory {
    /// The most good probes in the average (Varnish's `AVG_RATE`).
    const COUNTED: u32 = 4;

    fn add(&mut self, seen: ProbeResult) {
        let is = |family| seen.connected == Some(family);
        let push = |bits: &mut u64, set: bool| *bits = *bits << 1 | u64::from(set);
        push(&mut self.good, seen.good);
        push(&mut self.ipv4, is(Family::V4));
        push(&mut self.ipv6, is(Family::V6));
        push(&mut self.unix, is(Family::Unix));
        push(&mut self.sent, seen.sent);
        push(&mut self.unsent, seen.unsent);
        push(&mut self.received, seen.received);
        push(&mut self.failed, seen.failed);
        if seen.good {
            self.counted = (self.counted + 1).min(Self::COUNTED);
            self.average += (seen.seconds - self.average) / f64::from(self.counted);
        }
    }
}

/// The latest probes of one server. One task writes it, every core reads it.
#[derive(Debug)]
pub(crate) struct ProbeWindow {
    /// One bit a probe, the latest lowest; set for good ones.
    bits: AtomicU64,
    state: AtomicU32,
    history: Mutex<ProbeHistory>,
}

const UNKNOWN: u32 = 0;
const HEALTHY: u32 = 1;
const SICK: u32 = 2;

impl ProbeWindow {
    /// A window one good probe short of healthy, as in Varnish without `.initial`: the first probe
    /// decides. With `initial`, that number of good probes is assumed until then.
    pub(crate) fn new(threshold: u32, initial: Option<u32>) -> Self {
        let threshold = threshold.clamp(1, u64::BITS);
        let good = initial.unwrap_or(threshold - 1).min(threshold);
        let bits = u64::MAX.checked_shr(u64::BITS - good).unwrap_or(0);
        let state = match initial {
            None => UNKNOWN,
            Some(_) if good >= threshold => HEALTHY,
            Some(_) => SICK,
        };
        let history = ProbeHistory { good: bits, ..ProbeHistory::default() };
        Self {
            bits: AtomicU64::new(bits),
            state: AtomicU32::new(state),
            history: Mutex::new(history),
        }
    }

    /// The progress of the latest probes.
    pub(crate) fn history(&self) -> ProbeHistory {
        *self.history.lock()
    }

    pub(crate) fn state(&self) -> ProbeVerdict {
        match self.state.load(Ordering::Relaxed) {
            HEALTHY => ProbeVerdict::Healthy,
            SICK => ProbeVerdict::Sick,
            _ => ProbeVerdict::Unknown,
        }
    }

    /// The probes as bits, the latest lowest.
    pub(crate) fn bits(&self) -> u64 {
        self.bits.load(Ordering::Relaxed)
    }

    /// Records one probe; true if it has made the server healthy or sick.
    pub(crate) fn note(&self, seen: ProbeResult, window: u32, threshold: u32) -> bool {
        self.history.lock().add(seen);
        let before = self.state();
        self.record(seen.good, window, threshold);
        before != self.state()
    }

    /// Counts one probe.
    pub(crate) fn record(&self, good: bool, window: u32, threshold: u32) {
        let bits = self.bits() << 1 | u64::from(good);
        let seen = bits & (u64::MAX >> (u64::BITS - window.clamp(1, u64::BITS)));
        let healthy = seen.count_ones() >= threshold.clamp(1, u64::BITS);
        self.bits.store(seen, Ordering::Relaxed);
        self.state.store(if healthy { HEALTHY } else { SICK }, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(failures: u32) -> EjectConfig {
        EjectConfig { failures, for_ms: 1_000, ..EjectConfig::default() }
    }

    fn ejected_at(now_ms: u64) -> Ejection {
        let ejection = Ejection::default();
        assert!(!ejection.failed(config(3), now_ms));
        assert!(!ejection.failed(config(3), now_ms));
        assert!(ejection.failed(config(3), now_ms));
        ejection
    }

    #[test]
    fn failures_in_a_row_eject() {
        let ejection = ejected_at(50);
        assert_eq!(ejection.standing(50), EjectionState::Ejected);
        assert_eq!(ejection.standing(1_049), EjectionState::Ejected);
        assert_eq!(ejection.standing(1_050), EjectionState::HalfOpen);
    }

    #[test]
    fn an_answer_between_failures_starts_the_count_again() {
        let ejection = Ejection::default();
        for _ in 0..10 {
            ejection.failed(config(3), 0);
            ejection.failed(config(3), 0);
            ejection.succeeded();
        }
        assert_eq!(ejection.standing(0), EjectionState::Open);
        assert_eq!(ejection.failures(), 0);
    }

    #[test]
    fn a_half_open_server_gets_one_trial() {
        let ejection = ejected_at(0);
        assert!(!ejection.claim_trial(config(3), 999));
        assert!(ejection.claim_trial(config(3), 1_000));
        assert!(!ejection.claim_trial(config(3), 1_000));
        assert_eq!(ejection.standing(1_500), EjectionState::Ejected);
        ejection.succeeded();
        assert_eq!(ejection.standing(1_500), EjectionState::Open);
    }

    #[test]
    fn a_failed_trial_ejects_again() {
        let ejection = ejected_at(0);
        assert!(ejection.claim_trial(config(3), 1_000));
        assert!(!ejection.failed(config(3), 1_200), "it was ejected already");
        assert_eq!(ejection.left_ms(1_200), 1_000);
    }

    #[test]
    fn ejection_can_be_switched_off() {
        let ejection = Ejection::default();
        for _ in 0..100 {
            assert!(!ejection.failed(config(0), 0));
        }
        assert_eq!(ejection.standing(0), EjectionState::Open);
    }

    #[test]
    fn the_first_probe_decides() {
        let window = ProbeWindow::new(3, None);
        assert_eq!(window.state(), ProbeVerdict::Unknown);
        window.record(true, 8, 3);
        assert_eq!(window.state(), ProbeVerdict::Healthy);
        let window = ProbeWindow::new(3, None);
        window.record(false, 8, 3);
        assert_eq!(window.state(), ProbeVerdict::Sick);
    }

    #[test]
    fn a_server_falls_sick_when_too_few_of_the_window_are_good() {
        let window = ProbeWindow::new(3, None);
        for _ in 0..8 {
            window.record(true, 8, 3);
        }
        for bad in 1..=6 {
            window.record(false, 8, 3);
            let expected = if bad <= 5 { ProbeVerdict::Healthy } else { ProbeVerdict::Sick };
            assert_eq!(window.state(), expected, "after {bad} bad probes");
        }
        for good in 1..=3 {
            window.record(true, 8, 3);
            let expected = if good < 3 { ProbeVerdict::Sick } else { ProbeVerdict::Healthy };
            assert_eq!(window.state(), expected, "after {good} good probes");
        }
    }

    #[test]
    fn the_widest_window_is_64_probes() {
        let window = ProbeWindow::new(64, None);
        window.record(true, 64, 64);
        assert_eq!(window.state(), ProbeVerdict::Healthy);
        window.record(false, 64, 64);
        assert_eq!(window.state(), ProbeVerdict::Sick);
    }

    #[test]
    fn what_is_assumed_decides_until_the_first_probe_has_ended() {
        let state = |initial| ProbeWindow::new(3, Some(initial)).state();
        assert_eq!(
            [state(0), state(2), state(3)],
            [ProbeVerdict::Sick, ProbeVerdict::Sick, ProbeVerdict::Healthy]
        );
        // No more good probes are assumed than needed.
        assert_eq!(ProbeWindow::new(3, Some(64)).bits().count_ones(), 3);
        assert_eq!(ProbeWindow::new(64, Some(64)).bits(), u64::MAX);
    }

    #[test]
    fn the_history_tells_how_far_probes_came() {
        let window = ProbeWindow::new(1, Some(0));
        let seen = ProbeResult {
            connected: Some(Family::V4),
            sent: true,
            failed: true,
            ..ProbeResult::default()
        };
        assert!(!window.note(seen, 8, 1), "it was sick before");
        let good = ProbeResult { good: true, received: true, failed: false, seconds: 0.5, ..seen };
        assert!(window.note(good, 8, 1));
        assert!(!window.note(ProbeResult { seconds: 1.0, ..good }, 8, 1));
        let history = window.history();
        assert_eq!((history.good, history.ipv4, history.ipv6), (0b11, 0b111, 0));
        assert_eq!((history.sent, history.received, history.failed), (0b111, 0b11, 0b100));
        assert!((history.average - 0.75).abs() < 1e-9);
    }
}
