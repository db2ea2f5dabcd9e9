//! A request's part in the fetch of its key, under both policies: it leads the fetch, waits for the
//! request that leads it, or fetches alone.
//!
//! A fetch ends by the time limits of its origin, and tells its waiters however it ends. So they
//! wait as long as it may take: whoever gave up earlier could only ask the same origin once more.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use base::Limit;
use cache::{BeginOptions, Object, Select, Ticket, Waited};

use crate::state::below::Below;
use crate::state::core::Core;
use crate::state::tier::{Begin, Lead};
use crate::state::trace::Trace;
use crate::tier::raise;
use crate::verdict::Again;

/// The store's answer to who fetches a key.
pub(crate) enum Began<L = Lead, T = Ticket> {
    /// This request does, and others wait for it.
    Lead(L),
    /// This request does, and nobody waits for it.
    Alone(L),
    /// The same as either, and the disk is to be read first.
    Below(Below<L>),
    /// Nobody needs to: it is there.
    Object(Arc<Object>),
    /// Another request does.
    Wait(T),
    /// Too many wait already.
    Full,
}

impl<L> Below<L> {
    /// The lead, whoever waits for it.
    pub(crate) fn into_lead(self) -> L {
        match self {
            Self::Lead(lead) | Self::Alone(lead) => lead,
        }
    }

    /// The role of whoever does not read the disk.
    pub(crate) fn role<E, T>(self) -> Role<E, L, T> {
        match self {
            Self::Lead(lead) => Role::Lead(lead),
            Self::Alone(lead) => Role::Alone(lead),
        }
    }
}

impl Below {
    /// Reads the disk. What it has is lent, or a lookup finds it.
    ///
    /// # Errors
    /// The duty is to fetch.
    pub(crate) async fn raise(
        self,
        core: &Rc<Core>,
        variant: &mut Select<'_>,
        again: Again<'_>,
    ) -> Result<Option<Arc<Object>>, Self> {
        match self {
            Self::Lead(lead) => raise(core, lead, variant, again).await.map_err(Self::Lead),
            Self::Alone(lead) => raise(core, lead, variant, again).await.map_err(Self::Alone),
        }
    }
}

impl From<Begin> for Began {
    fn from(begin: Begin) -> Self {
        match begin {
            Begin::Lead(lead) if !lead.cold().is_empty() => Self::Below(Below::Lead(lead)),
            Begin::Alone(lead) if !lead.cold().is_empty() => Self::Below(Below::Alone(lead)),
            Begin::Lead(lead) => Self::Lead(lead),
            Begin::Alone(lead) => Self::Alone(lead),
            Begin::Object(object) => Self::Object(object),
            Begin::Wait(ticket) => Self::Wait(ticket),
            Begin::Full => Self::Full,
        }
    }
}

/// A policy's verdict on an object that the store has all the same.
pub(crate) enum Verdict<E> {
    /// The request needs no part in a fetch.
    End(E),
    /// The fetch replaces it.
    Replace,
    /// It is not for this request, which fetches alone.
    Alone,
}

/// A request's role in a fetch.
pub(crate) enum Role<E, L = Lead, T = Ticket> {
    Lead(L),
    Alone(L),
    /// It reads the disk before anything else, and takes part again if that brings something up.
    Below(Below<L>),
    Wait(T),
    Full,
    /// None, as the policy has said.
    End(E),
}

/// A request that takes part in the fetches of its key until one gives what it can use.
pub(crate) struct FetchPart {
    coalesces: bool,
    /// An object that the request cannot use.
    rejected: Option<Arc<Object>>,
    /// Times that the request may still wait or find another object.
    rounds: u32,
    /// The disk has been read.
    has_read: bool,
    /// The disk has lent this.
    lent: Option<Arc<Object>>,
}

impl FetchPart {
    /// A request that waits for fetches of others up to `rounds` times if it `coalesces`, and
    /// cannot use `rejected`.
    pub(crate) fn new(coalesces: bool, rejected: Option<Arc<Object>>, rounds: u32) -> Self {
        Self { coalesces: coalesces && rounds > 0, rejected, rounds, has_read: false, lent: None }
    }

    /// As one that has read the disk, if `has_read`.
    pub(crate) fn having_read(self, has_read: bool) -> Self {
        Self { has_read, ..self }
    }

    /// Takes what the disk has lent for what the store has.
    pub(crate) fn take_lent(&mut self, lent: Option<Arc<Object>>) {
        self.lent = lent;
    }

    /// Returns true if the request still waits for others.
    pub(crate) fn coalesces(&self) -> bool {
        self.coalesces
    }

    /// Fetches without waiting from here on.
    pub(crate) fn go_alone(&mut self) {
        (self.coalesces, self.rejected) = (false, None);
    }

    /// Asks the store by `begin` until the request has its role. `judge` gives the verdict on an
    /// object, knowing from the flag whether the request still waits for others.
    pub(crate) fn take<E, L, T>(
        &mut self,
        begin: impl Fn(BeginOptions<'_>) -> Began<L, T>,
        mut judge: impl FnMut(&Arc<Object>, bool) -> Verdict<E>,
    ) -> Role<E, L, T> {
        loop {
            let (coalesce, rejected) = (self.coalesces, self.rejected.as_ref());
            let began = match self.lent.take() {
                Some(lent) => Began::Object(lent),
                None => begin(BeginOptions { coalesce, rejected }),
            };
            match began {
                Began::Lead(lead) => return Role::Lead(lead),
                Began::Alone(lead) => return Role::Alone(lead),
                Began::Below(below) if self.has_read => return below.role(),
                Began::Below(below) => {
                    self.has_read = true;
                    return Role::Below(below);
                }
                Began::Full => return Role::Full,
                Began::Wait(ticket) => {
                    self.end_round();
                    return Role::Wait(ticket);
                }
                Began::Object(object) => match judge(&object, coalesce) {
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

/// Waits for another request's fetch; with a `patience` at most that long, and the result is `None`
/// when that is over.
pub(crate) async fn for_fetch(
    core: &Core,
    trace: Option<&Trace>,
    ticket: Ticket,
    patience: Option<Duration>,
) -> Option<Waited> {
    if let Some(trace) = trace {
        trace.wait_us.set(trace.wait_us.get().or_else(|| Some(core.micros())));
    }
    let Some(patience) = patience else { return Some(ticket.await) };
    let waited = rt::time::timeout(patience, ticket).await.ok();
    if waited.is_none() {
        core.counters.limit(Limit::WaitTimeout);
        if let Some(trace) = trace {
            trace.limit.set(Some(Limit::WaitTimeout));
        }
    }
    waited
}
