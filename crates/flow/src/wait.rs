//! Wait for the fetch of a key, under both policies: a request leads the fetch, waits for the
//! request that leads it, or fetches alone.
//!
//! A fetch ends by the timeouts of its origin and wakes its waiters in any case, so they need no
//! timeout: a request that gave up earlier could only ask the slow origin again.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use base::Limit;
use cache::{BeginOptions, Object, Ticket, WaiterOutcome};
use message::Request;

use crate::key::select_by;
use crate::state::core::CoreState;
use crate::state::duty::{Duty, FetchPause};
use crate::state::tier::{Lead, MissStep};
use crate::state::trace::Trace;
use crate::tier::raise;
use crate::verdict::RevalidationJudge;

/// The store's answer to which request fetches a key.
pub(crate) enum FetchAssignment<L = Lead, T = Ticket> {
    /// This request.
    Fetch(Duty<L>),
    /// This request, after it has read the disk.
    Below(Duty<L>),
    /// None: the object is stored.
    Object(Arc<Object>),
    /// Another request, which this one waits for.
    Wait(T),
    /// Another request, and too many wait already.
    Full,
}

impl From<MissStep> for FetchAssignment {
    fn from(begin: MissStep) -> Self {
        let is_alone = matches!(begin, MissStep::Alone(_));
        match begin {
            MissStep::Lead(lead) | MissStep::Alone(lead) if lead.cold().is_empty() => {
                Self::Fetch(Duty { lead, is_alone })
            }
            MissStep::Lead(lead) | MissStep::Alone(lead) => Self::Below(Duty { lead, is_alone }),
            MissStep::Object(object) => Self::Object(object),
            MissStep::Wait(ticket) => Self::Wait(ticket),
            MissStep::Full => Self::Full,
        }
    }
}

/// A policy's verdict on an object that the store has after all.
pub(crate) enum Verdict<E> {
    /// The request needs no fetch.
    End(E),
    /// The fetch replaces the object.
    Replace,
    /// The object is not for this request, which fetches alone.
    Alone,
}

/// A request's role in a fetch.
pub(crate) enum Role<E, L = Lead, T = Ticket> {
    Fetch(Duty<L>),
    /// The request waits, then takes part again.
    Pause(FetchPause<L, T>),
    /// Too many requests wait.
    Full,
    /// None: the policy has ended the request.
    End(E),
}

/// A request's part in the fetches of its key, until one yields a response that it can use.
pub(crate) struct FetchPart {
    coalesces: bool,
    /// The object that the request cannot use.
    rejected: Option<Arc<Object>>,
    /// Times that the request may still wait or find another object.
    rounds: u32,
    /// The request has read the disk.
    has_read: bool,
    /// The response that the disk has lent.
    lent: Option<Arc<Object>>,
}

impl FetchPart {
    /// A request that waits for up to `rounds` fetches if it `coalesces`, and cannot use
    /// `rejected`.
    pub(crate) fn new(coalesces: bool, rejected: Option<Arc<Object>>, rounds: u32) -> Self {
        Self { coalesces: coalesces && rounds > 0, rejected, rounds, has_read: false, lent: None }
    }

    /// Sets if the disk has been read.
    pub(crate) fn having_read(self, has_read: bool) -> Self {
        Self { has_read, ..self }
    }

    /// Takes a response that the disk has lent as a find of the store.
    pub(crate) fn take_lent(&mut self, lent: Option<Arc<Object>>) {
        self.lent = lent;
    }

    /// Returns true if the request still waits for others.
    pub(crate) fn coalesces(&self) -> bool {
        self.coalesces
    }

    /// Stops waiting for others.
    pub(crate) fn go_alone(&mut self) {
        (self.coalesces, self.rejected) = (false, None);
    }

    /// Asks the store through `begin` until the request has its role. `judge` gives the verdict on
    /// an object; its flag says if the request still waits for others.
    pub(crate) fn take<E, L, T>(
        &mut self,
        begin: impl Fn(BeginOptions<'_>) -> FetchAssignment<L, T>,
        mut judge: impl FnMut(&Arc<Object>, bool) -> Verdict<E>,
    ) -> Role<E, L, T> {
        loop {
            let (coalesce, rejected) = (self.coalesces, self.rejected.as_ref());
            let began = match self.lent.take() {
                Some(lent) => FetchAssignment::Object(lent),
                None => begin(BeginOptions { coalesce, rejected }),
            };
            match began {
                FetchAssignment::Below(duty) if !self.has_read => {
                    self.has_read = true;
                    return Role::Pause(FetchPause::Disk(duty));
                }
                FetchAssignment::Fetch(duty) | FetchAssignment::Below(duty) => {
                    return Role::Fetch(duty);
                }
                FetchAssignment::Full => return Role::Full,
                FetchAssignment::Wait(ticket) => {
                    self.end_round();
                    return Role::Pause(FetchPause::Fetch(ticket));
                }
                FetchAssignment::Object(object) => match judge(&object, coalesce) {
                    Verdict::End(end) => return Role::End(end),
                    Verdict::Alone => self.go_alone(),
                    Verdict::Replace => {
                        self.rejected = Some(object);
                        self.end_round();
                    }
                },
            }
        }
    }

    fn end_round(&mut self) {
        self.rounds = self.rounds.saturating_sub(1);
        if self.coalesces && self.rounds == 0 {
            self.go_alone();
        }
    }
}

/// The end of a pause.
pub(crate) enum PauseEnd {
    /// The disk has lent this response, or a lookup finds it.
    Read(Option<Arc<Object>>),
    /// The disk has no usable response, and the request fetches.
    Fetch(Duty),
    /// The outcome of the other request's fetch; `None` if it is late.
    Waited(Option<WaiterOutcome>),
}

/// The surroundings of a pause.
pub(crate) struct PauseContext<'a> {
    pub(crate) core: &'a Rc<CoreState>,
    pub(crate) request: &'a Request,
    /// The side that judges records of the disk.
    pub(crate) judge: RevalidationJudge<'a>,
    pub(crate) trace: Option<&'a Trace>,
    /// The longest wait for another request's fetch, if bounded.
    pub(crate) patience: Option<Duration>,
}

impl PauseContext<'_> {
    /// Waits until `pause` is over.
    pub(crate) async fn wait(&self, pause: FetchPause) -> PauseEnd {
        match pause {
            FetchPause::Disk(Duty { lead, is_alone }) => {
                let variant = &mut select_by(&self.request.headers);
                match raise(self.core, lead, variant, self.judge).await {
                    Ok(lent) => PauseEnd::Read(lent),
                    Err(lead) => PauseEnd::Fetch(Duty { lead, is_alone }),
                }
            }
            FetchPause::Fetch(ticket) => self.wait_for_fetch(ticket).await,
        }
    }

    async fn wait_for_fetch(&self, ticket: Ticket) -> PauseEnd {
        if let Some(trace) = self.trace {
            trace.wait_us.set(trace.wait_us.get().or_else(|| Some(self.core.micros())));
        }
        let Some(patience) = self.patience else { return PauseEnd::Waited(Some(ticket.await)) };
        let waited = rt::time::timeout(patience, ticket).await.ok();
        if waited.is_none() {
            self.core.counters.limit(Limit::WaitTimeout);
            if let Some(trace) = self.trace {
                trace.limit.set(Some(Limit::WaitTimeout));
            }
        }
        PauseEnd::Waited(waited)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The role of a request in words, after this answer of the store.
    fn role(
        part: &mut FetchPart,
        began: fn(coalesces: bool) -> FetchAssignment<(), ()>,
    ) -> &'static str {
        let begin = |options: BeginOptions<'_>| began(options.coalesce);
        match part.take(begin, |_, _| Verdict::<()>::Replace) {
            Role::Fetch(Duty { is_alone: true, .. }) => "alone",
            Role::Fetch(_) => "fetch",
            Role::Pause(FetchPause::Disk(_)) => "disk",
            Role::Pause(FetchPause::Fetch(())) => "wait",
            Role::Full | Role::End(()) => "none",
        }
    }

    #[test]
    fn the_disk_is_read_once() {
        let below = |_| FetchAssignment::Below(Duty { lead: (), is_alone: false });
        let mut part = FetchPart::new(true, None, 3);
        assert_eq!([role(&mut part, below), role(&mut part, below)], ["disk", "fetch"]);
        let mut part = FetchPart::new(true, None, 3).having_read(true);
        assert_eq!(role(&mut part, below), "fetch");
    }

    #[test]
    fn who_has_waited_often_enough_fetches_alone() {
        let began = |coalesces| match coalesces {
            true => FetchAssignment::Wait(()),
            false => FetchAssignment::Fetch(Duty { lead: (), is_alone: true }),
        };
        let mut part = FetchPart::new(true, None, 2);
        assert_eq!([(); 3].map(|()| role(&mut part, began)), ["wait", "wait", "alone"]);
        assert_eq!(role(&mut FetchPart::new(true, None, 0), began), "alone");
    }
}
