//! Timing of a connection and its streams: limits for idle, stalled, slow and long transfers.

use std::rc::Rc;

use base::{Limit, Limits, Now};
use h2::{Code, ConnectionError, StreamHandle};
use message::grpc;

use super::{ConnectionEnding, H2};
use crate::core::CoreCtx;
use crate::exchange::BodyFault;
use crate::guard::ConnectionPhase;
use crate::rate::Bounds;

/// Milliseconds between two checks for stalled streams.
const TICK_MS: u64 = 1_000;

/// Streams, messages and pieces for which an idle connection keeps capacity.
const KEPT: usize = 8;

impl H2 {
    pub(super) fn phase(&self) -> ConnectionPhase {
        match self.engine.streams() {
            0 if !self.engine.is_greeted() => ConnectionPhase::New,
            0 if self.engine.is_idle() => ConnectionPhase::Idle,
            0 => ConnectionPhase::Head,
            _ => ConnectionPhase::Busy,
        }
    }

    /// Reports the connection's phase to the guard. Frames without a request (PING) do not restart
    /// its idle time.
    pub(super) fn enter_phase(&mut self, now_ms: u64) {
        if self.phase == ConnectionPhase::Busy || self.phase == ConnectionPhase::New {
            self.worked_ms = now_ms;
        }
        let now = self.phase();
        let before = std::mem::replace(&mut self.phase, now);
        if self.phase == ConnectionPhase::Idle && before != ConnectionPhase::Idle {
            self.give_back();
        }
        match self.phase {
            ConnectionPhase::Idle => {
                self.caller.guard.enter_since(ConnectionPhase::Idle, self.worked_ms);
            }
            phase => self.caller.guard.enter(phase, now_ms),
        }
        self.caller.guard.ticks(self.phase == ConnectionPhase::Busy);
    }

    /// Frees the capacity left over from many concurrent requests.
    fn give_back(&mut self) {
        self.engine.fit();
        self.mail.fit(KEPT);
        self.out.forget(KEPT);
        self.states.truncate(KEPT);
        self.states.shrink_to(KEPT);
        self.uploads.shrink_to(KEPT);
    }

    /// Checks for stalled streams, and for limits of the connection.
    pub(super) fn tick(&mut self, core: &Rc<CoreCtx>, now: Now) {
        let live = core.flow.live();
        let limits = &live.limits;
        let reached = self.caller.may_stay(limits, now.mono_ms).err();
        let leaves = core.draining.get() || reached.is_some();
        if leaves && self.engine.announce_end(&mut self.out.bytes) {
            self.ticked_ms = now.mono_ms;
            reached.into_iter().for_each(|limit| core.flow.counters.limit(limit));
        }
        let since_ms = now.mono_ms.saturating_sub(self.ticked_ms);
        if since_ms < TICK_MS {
            return;
        }
        self.ticked_ms = now.mono_ms;
        if self.engine.is_leaving() {
            // The time for acknowledging a graceful shutdown is over.
            self.engine.write_last_goaway(&mut self.out.bytes);
        }
        let ended = self.engine.nudge_ends(now.mono_ms, limits.linger_timeout, &mut self.out.bytes);
        (0..ended).for_each(|_| core.flow.counters.limit(Limit::LingerTimeout));
        for place in 0..self.states.len() {
            let at = StreamHandle { place, id: self.states[place].id };
            if at.id == 0 {
                continue;
            }
            if let Some(limit) = self.overdue(at, limits, now.mono_ms) {
                core.flow.counters.limit(limit);
                self.cut(core, at, Code::Cancel);
            } else if let Some(limit) = self.upload_overdue(at, limits, now.mono_ms) {
                core.flow.counters.limit(limit);
                self.refuse(core, at, BodyFault::slow(limit).page());
            }
        }
        self.sending.waits(self.engine.is_shut(), now.mono_ms);
        // Stalled streams were ended above, one by one.
        let bounds = Bounds::of_reply(limits, u64::MAX, Limit::H2StallTimeout);
        if let Some(limit) = self.sending.overdue(now.mono_ms, bounds) {
            core.flow.counters.limit(limit);
            self.caller.guard.expire(limit);
        }
    }

    /// The limit that the reply of a stream has exceeded.
    fn overdue(&self, at: StreamHandle, limits: &Limits, now_ms: u64) -> Option<Limit> {
        let state = &self.states[at.place];
        state.reply.as_ref()?;
        if now_ms.saturating_sub(state.begun_ms) > self.caller.guard.response_ms(limits) {
            return Some(Limit::ResponseTime);
        }
        state.sending.waits(self.engine.is_held_back(at), now_ms);
        let bounds = Bounds::of_reply(limits, limits.h2_stall_timeout, Limit::H2StallTimeout);
        // A stream held back by the connection's window is not at fault.
        let is_own = self.engine.is_shut_to(at);
        state.sending.overdue(now_ms, if is_own { bounds } else { bounds.without_rate() })
    }

    /// The limit that the request body of a stream has exceeded.
    fn upload_overdue(&self, at: StreamHandle, limits: &Limits, now_ms: u64) -> Option<Limit> {
        let state = &self.states[at.place];
        let upload = state.upload.as_ref()?;
        // Both sides of a gRPC call may pause while its response is under way; that one's bounds
        // hold for both.
        let is_dialogue = state.reply.is_some()
            && state.deferred.as_ref().is_some_and(|deferred| grpc::is_call(&deferred.request));
        // The client is not at fault if the reader is slow, or if other bodies fill the
        // connection's window.
        let is_excused = upload.waits || upload.is_whole() || self.engine.is_full() || is_dialogue;
        upload.coming.waits(!is_excused, now_ms);
        upload.coming.overdue(now_ms, Bounds::of_body(limits))
    }

    /// Ends the connection because of `limit`.
    pub(super) fn expired(&mut self, limit: Limit) -> ConnectionEnding {
        let makes_room = limit == Limit::ConnectionMemory;
        let in_order = makes_room || matches!(limit, Limit::IdleTimeout | Limit::DrainWait);
        let code = if in_order { Code::None } else { Code::EnhanceYourCalm };
        let fatal = ConnectionError { code, limit: Some(limit), reason: "a limit was exceeded" };
        if self.out.is_empty() {
            self.engine.end(&fatal, &mut self.out.bytes);
            let bytes = std::mem::take(&mut self.out.bytes);
            // Only what the socket takes without blocking.
            self.stream.write_now(&bytes);
        }
        if makes_room {
            return ConnectionEnding::Close;
        }
        if !in_order {
            return ConnectionEnding::Gone;
        }
        // A slow client may still be reading the end of its last reply.
        self.caller.guard.clear_expiry();
        ConnectionEnding::Linger
    }
}
