//! Liveness of a connection: the times by which its server must be heard. A server that says
//! nothing while requests wait is asked for a sign of life (PING); without one it counts as gone.

/// The silence after which a server that has answered a PING is asked once more. It is asked no
/// sooner until it has moved content: gRPC servers close connections whose PINGs come more often
/// than every 5 minutes.
const PATIENCE_MS: u64 = 310_000;
/// The time for which a server may keep the bytes of a connection's end waiting.
const CLOSING_MS: u64 = 5_000;
/// The silence of a server that makes a client's leaving suspicious.
pub(super) const SUSPICIOUS_MS: u64 = 1_000;

/// The times of a connection.
#[derive(Debug)]
pub(super) struct Liveness {
    began_ms: u64,
    /// The time in which the server must send its settings.
    greeting_ms: u64,
    /// The time that it may be silent while something is awaited.
    silence_ms: u64,
    /// The time at which it was last heard.
    heard_ms: u64,
    /// The time since which something is awaited of it.
    awaited_ms: u64,
    /// The time of the PING that it has not answered.
    asked_ms: Option<u64>,
    /// The time of the last PING.
    last_asked_ms: u64,
    /// It was asked, and has moved no content since.
    is_only_alive: bool,
    /// The beginning of the connection's end.
    closing_ms: Option<u64>,
}

/// The next step of a connection's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClockStep {
    /// Nothing before this time, if any.
    Wait(Option<u64>),
    /// To ask for a sign of life.
    Ask,
    /// The server has sent no settings in time.
    Unsettled(u64),
    /// The server has given no sign of life.
    Silent,
    /// The server does not take the bytes of the connection's end.
    Stuck,
}

impl Liveness {
    pub(super) fn new(greeting_ms: u64, silence_ms: u64, now_ms: u64) -> Self {
        Self {
            began_ms: now_ms,
            greeting_ms,
            silence_ms,
            heard_ms: now_ms,
            awaited_ms: now_ms,
            asked_ms: None,
            last_asked_ms: 0,
            is_only_alive: false,
            closing_ms: None,
        }
    }

    /// Records that the server was heard.
    pub(super) fn heard(&mut self, now_ms: u64) {
        self.heard_ms = now_ms;
        self.asked_ms = None;
    }

    /// Records that the server has moved content.
    pub(super) fn moved(&mut self) {
        self.is_only_alive = false;
    }

    /// Records that something is awaited of the server from now on.
    pub(super) fn awaits(&mut self, now_ms: u64) {
        self.awaited_ms = now_ms;
    }

    /// Records that a PING is sent.
    pub(super) fn asks(&mut self, now_ms: u64) {
        (self.asked_ms, self.last_asked_ms, self.is_only_alive) = (Some(now_ms), now_ms, true);
    }

    /// Records that the connection is to end.
    pub(super) fn closes(&mut self, now_ms: u64) {
        self.closing_ms.get_or_insert(now_ms);
    }

    /// Returns true if a sign of life is awaited: requests should take another connection.
    pub(super) fn is_doubtful(&self) -> bool {
        self.asked_ms.is_some()
    }

    /// Returns true if the server has said nothing since `since_ms`, and may be asked at `now_ms`:
    /// clients that leave cannot have it asked more often than it permits.
    pub(super) fn is_suspicious(&self, since_ms: u64, now_ms: u64) -> bool {
        let may_ask =
            !self.is_only_alive || now_ms >= self.last_asked_ms.saturating_add(PATIENCE_MS);
        self.heard_ms <= since_ms && self.asked_ms.is_none() && may_ask
    }

    /// The step that is due at `now_ms`.
    pub(super) fn step(&self, now_ms: u64, is_greeted: bool, has_streams: bool) -> ClockStep {
        let (due_ms, then) = if let Some(closing_ms) = self.closing_ms {
            (closing_ms.saturating_add(CLOSING_MS), ClockStep::Stuck)
        } else if !is_greeted {
            let due_ms = self.began_ms.saturating_add(self.greeting_ms);
            (due_ms, ClockStep::Unsettled(self.greeting_ms))
        } else if let Some(asked_ms) = self.asked_ms {
            (asked_ms.saturating_add(self.silence_ms), ClockStep::Silent)
        } else if has_streams {
            let most =
                if self.is_only_alive { PATIENCE_MS.max(self.silence_ms) } else { self.silence_ms };
            (self.heard_ms.max(self.awaited_ms).saturating_add(most), ClockStep::Ask)
        } else {
            return ClockStep::Wait(None);
        };
        if now_ms >= due_ms { then } else { ClockStep::Wait(Some(due_ms)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_server_is_asked_and_then_given_up() {
        let mut of = Liveness::new(100, 10, 1_000);
        assert_eq!(of.step(1_099, false, true), ClockStep::Wait(Some(1_100)));
        assert_eq!(of.step(1_100, false, true), ClockStep::Unsettled(100));
        of.heard(1_050);
        assert_eq!(of.step(9_000, true, false), ClockStep::Wait(None));
        of.awaits(9_000);
        assert_eq!(of.step(9_009, true, true), ClockStep::Wait(Some(9_010)));
        assert_eq!(of.step(9_010, true, true), ClockStep::Ask);
        of.asks(9_010);
        assert!(of.is_doubtful());
        assert_eq!(of.step(9_019, true, false), ClockStep::Wait(Some(9_020)));
        assert_eq!(of.step(9_020, true, false), ClockStep::Silent);
    }

    #[test]
    fn a_server_that_is_only_alive_is_asked_rarely() {
        let mut of = Liveness::new(100, 10, 0);
        of.asks(10);
        of.heard(11);
        assert!(!of.is_doubtful());
        assert_eq!(of.step(300_000, true, true), ClockStep::Wait(Some(11 + PATIENCE_MS)));
        // Clients that leave have it asked no sooner.
        assert!(!of.is_suspicious(20, 300_000) && of.is_suspicious(20, 10 + PATIENCE_MS));
        of.moved();
        assert!(of.is_suspicious(20, 300_000));
        assert_eq!(of.step(300_000, true, true), ClockStep::Ask);
    }

    #[test]
    fn an_end_that_is_not_taken_is_forced() {
        let mut of = Liveness::new(100, 10, 0);
        of.closes(50);
        of.closes(60);
        assert_eq!(of.step(5_049, true, false), ClockStep::Wait(Some(5_050)));
        assert_eq!(of.step(5_050, true, false), ClockStep::Stuck);
    }
}
