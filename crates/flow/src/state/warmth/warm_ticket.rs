//! Warm ticket: a task while it is carried out. Its end is counted in every case, even if a panic
//! ends it.

use std::rc::Rc;
use std::sync::Arc;

use super::{SharedWarmth, WarmOutcome, WarmPermit, WarmTask};
use crate::state::trace::Trace;

/// Statuses with which an origin says that it is asked too much: 429 and those of failures.
const TOO_MANY: u16 = 429;
const FAILURES: std::ops::Range<u16> = 500..600;
/// 304: the origin has confirmed what is stored.
const CONFIRMED: u16 = 304;

/// The reply to the fetch of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WarmReply {
    /// A whole response, which is stored.
    Stored,
    /// The origin has failed.
    Failed,
    /// Another one.
    Other,
}

/// A task that is carried out.
#[derive(Debug)]
pub(crate) struct WarmTicket {
    warmth: Arc<SharedWarmth>,
    task: WarmTask,
    permit: Option<WarmPermit>,
    /// The trace of its fetch.
    trace: Option<Rc<Trace>>,
    /// The result, if the fetch had a reply.
    reply: Option<WarmReply>,
    outcome: WarmOutcome,
    /// The task waits again.
    returns: bool,
}

impl WarmTicket {
    /// A task that has not asked its origin yet.
    pub(crate) fn new(warmth: &Arc<SharedWarmth>, task: WarmTask) -> Self {
        Self {
            warmth: Arc::clone(warmth),
            task,
            permit: None,
            trace: None,
            reply: None,
            outcome: WarmOutcome::Dropped,
            returns: false,
        }
    }

    pub(crate) fn task(&self) -> &WarmTask {
        &self.task
    }

    /// Takes the permit to ask the origin.
    pub(crate) fn enter(&mut self, permit: WarmPermit) {
        self.permit = Some(permit);
    }

    /// Ends the task, whose origin was not asked.
    pub(crate) fn end(mut self, outcome: WarmOutcome) {
        self.outcome = outcome;
    }

    /// Lets the task wait again, in this round: all of earlier rounds come before it.
    pub(crate) fn wait_again(mut self, round: u32) {
        self.task.round = round;
        self.returns = true;
    }

    /// Notes the trace of the fetch, by which the end will be judged.
    pub(crate) fn follow(&mut self, trace: &Rc<Trace>) {
        self.trace = Some(Rc::clone(trace));
    }

    /// Notes the reply to the fetch.
    pub(crate) fn note_reply(&mut self, reply: WarmReply) {
        self.reply = Some(reply);
    }

    /// The outcome of the fetch with this trace, which the lane learns from.
    fn judge(&self, trace: &Trace) -> WarmOutcome {
        let now_ms = rt::now().mono_ms;
        let status = trace.origin_status.get();
        let failed = FAILURES.contains(&status) || status == TOO_MANY;
        let is_silent = status == 0 && trace.failure.borrow().is_some();
        if failed || is_silent || self.reply == Some(WarmReply::Failed) {
            if let Some(permit) = &self.permit {
                permit.note_failure(now_ms);
            }
            return WarmOutcome::Failed;
        }
        if let (Some(permit), Some(begun), Some(head)) =
            (&self.permit, trace.fetch_us.get(), trace.head_us.get())
        {
            permit.note_answer(head.saturating_sub(begun));
        }
        let is_stored = self.reply == Some(WarmReply::Stored);
        match is_stored || trace.stored.get() || status == CONFIRMED {
            true => WarmOutcome::Fetched,
            // Another request has fetched it, or the disk had it.
            false if status == 0 => WarmOutcome::Fresh,
            false => WarmOutcome::Unstored,
        }
    }
}

impl Drop for WarmTicket {
    fn drop(&mut self) {
        if self.returns {
            return self.warmth.put_back(self.task.clone(), rt::now().mono_ms);
        }
        let outcome = match &self.trace {
            Some(trace) => self.judge(trace),
            // An answer of a failing origin may leave a mark that the page is not stored.
            None if self.outcome == WarmOutcome::Unstored && self.task.failures > 0 => {
                self.task.failures = u8::MAX;
                WarmOutcome::Failed
            }
            None => self.outcome,
        };
        let now_ms = rt::now().mono_ms;
        // The place in the lane is free before the task may come again.
        self.permit = None;
        match outcome {
            WarmOutcome::Failed => self.warmth.try_again(self.task.clone(), now_ms),
            outcome => self.warmth.note(&self.task.campaign, outcome, now_ms),
        }
    }
}
