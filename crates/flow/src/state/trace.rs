//! Trace: notes on a request's course, for its record in the log.
//!
//! A hit notes three numbers and allocates nothing. The other notes are for waiting requests and
//! live in cells, as the fetch task writes them too.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use base::Limit;
use base::rate::ConcurrencyPermit;
use message::trace_context::TraceContext;
use observe::heads::Heads;
use origin::Exchange;
use vcl::backend::Leaf;

use crate::state::evidence::NotedEvidence;
use crate::state::gate::User;
use crate::state::live_configuration::LiveConfiguration;
use crate::state::site::Site;
use crate::unstored_reason::UnstoredReason;

/// Notes on a reply's course. None of them is sent.
#[derive(Debug, Default)]
pub struct ReplyNotes {
    /// The site and the deciding rule.
    pub decided: DecidingRule,
    /// Hash of the cache key; 0 without a key.
    pub key: u64,
    /// The failure, if there was one. Boxed, as replies are moved and most succeed.
    pub failure: Option<Box<FailureNote>>,
    /// The program's actions. Boxed, so that other sites' replies stay small.
    pub program_trace: Option<Box<vcl::trace::ProgramTrace>>,
    /// The trace of a request that waited.
    pub trace: Option<Rc<Trace>>,
    /// Notes of the site's authentication and limits.
    pub(crate) guarded: GuardNotes,
}

/// Notes of a site's authentication and limits. Small, as replies are moved.
#[derive(Debug, Default)]
pub(crate) enum GuardNotes {
    #[default]
    Free,
    /// The authenticated user.
    User(Arc<User>),
    /// The permit by which the request counts as in progress.
    InProgress(ConcurrencyPermit),
    Both(Box<(Arc<User>, ConcurrencyPermit)>),
}

impl GuardNotes {
    /// Takes note of a user.
    pub(crate) fn note_user(&mut self, user: Arc<User>) {
        *self = match std::mem::take(self) {
            Self::Free | Self::User(_) => Self::User(user),
            Self::InProgress(permit) => Self::Both(Box::new((user, permit))),
            Self::Both(both) => Self::Both(Box::new((user, both.1))),
        };
    }

    /// Keeps the request counted as in progress.
    pub(crate) fn note_permit(&mut self, permit: ConcurrencyPermit) {
        *self = match std::mem::take(self) {
            Self::Free => Self::InProgress(permit),
            Self::User(user) => Self::Both(Box::new((user, permit))),
            Self::InProgress(other) => Self::InProgress(permit.with(Some(other))),
            Self::Both(both) => Self::Both(Box::new((both.0, permit.with(Some(both.1))))),
        };
    }

    /// The authenticated user, if there is one.
    pub(crate) fn user(&self) -> Option<&str> {
        match self {
            Self::User(user) => Some(&user.0),
            Self::Both(both) => Some(&both.0.0),
            Self::Free | Self::InProgress(_) => None,
        }
    }

    /// Returns true if the request counts as in progress.
    pub(crate) fn is_counted(&self) -> bool {
        matches!(self, Self::InProgress(_) | Self::Both(_))
    }
}

impl ReplyNotes {
    /// The site of the request; `None` if no site has the host.
    pub fn site<'a>(&self, live: &'a LiveConfiguration) -> Option<&'a Arc<Site>> {
        live.sites.listed.get(self.decided.site as usize)
    }

    /// The number of the record, if another record names it.
    pub(crate) fn number(&self) -> Option<u64> {
        self.trace.as_ref().map(|trace| trace.number.get()).filter(|number| *number != 0)
    }

    /// The name of the deciding rule.
    pub fn rule_name<'a>(&self, live: &'a LiveConfiguration) -> Option<&'a str> {
        self.site(live).map(|site| site.policy.rule_name(self.decided.rule))
    }
}

/// The site and the deciding rule as numbers: a hit stores them and looks up no name.
#[derive(Clone, Copy, Debug)]
pub struct DecidingRule {
    /// The site's index in [`SiteTable::listed`](crate::SiteTable::listed); out of range if no site
    /// has the host.
    pub(crate) site: u32,
    /// The rule, by the policy's numbering.
    pub(crate) rule: u32,
    /// The route, by the policy's numbering; 0 for the site's own settings.
    pub(crate) route: u32,
}

impl DecidingRule {
    /// The site's index in [`SiteTable::listed`](crate::SiteTable::listed); out of range without a
    /// site.
    pub fn site(self) -> usize {
        self.site as usize
    }
}

impl Default for DecidingRule {
    fn default() -> Self {
        Self { site: u32::MAX, rule: 0, route: 0 }
    }
}

/// A failure.
#[derive(Debug)]
pub struct FailureNote {
    /// The description.
    pub error: Box<str>,
    /// The limit that was reached, if it was one.
    pub limit: Option<Limit>,
}

/// The course of a waiting request. Times are microseconds of the monotonic clock.
#[derive(Debug, Default)]
pub struct Trace {
    /// Hash of the cache key.
    pub(crate) key: Cell<u64>,
    /// The start of the wait for another request's fetch.
    pub(crate) wait_us: Cell<Option<u64>>,
    /// The start of its own fetch.
    pub(crate) fetch_us: Cell<Option<u64>>,
    /// The arrival of the origin's head.
    pub(crate) head_us: Cell<Option<u64>>,
    /// The origin that was asked, as an index into its site's list.
    pub(crate) origin: Cell<Option<u32>>,
    /// The last backend that a program selected.
    pub(crate) backend: RefCell<Option<Arc<Leaf>>>,
    /// The server that responded.
    pub(crate) server: RefCell<Option<Arc<str>>>,
    /// The number of times that the request was sent.
    pub(crate) tries: Cell<u32>,
    /// The request was sent on a reused connection.
    pub(crate) reused: Cell<bool>,
    /// The last trace context that the origin was sent.
    pub(crate) sent: Cell<Option<TraceContext>>,
    /// The token of the reason for not storing the response; empty if it is stored, or was not
    /// fetched.
    pub(crate) not_stored: Cell<&'static str>,
    /// The field that is the evidence, if there is one.
    pub(crate) evidence: RefCell<Option<Arc<str>>>,
    /// A limit that was reached without failing the request.
    pub(crate) limit: Cell<Option<Limit>>,
    /// The number of the record, if another record names it; 0 otherwise.
    pub(crate) number: Cell<u64>,
    /// The status of the origin's last response; 0 without one.
    pub(crate) origin_status: Cell<u16>,
    /// The status of a substitute answer; 0 without one.
    pub(crate) made_status: Cell<u16>,
    /// The whole response was stored.
    pub(crate) stored: Cell<bool>,
    /// Bytes of body that arrived for the store.
    pub(crate) body_bytes: Cell<u64>,
    /// The failure of the fetch, if it failed.
    pub(crate) failure: RefCell<Option<FailureNote>>,
    /// Heads of the exchange with the origin, while a reader requests them.
    pub(crate) heads: RefCell<Option<Box<Heads>>>,
    /// Evidence of the last response of the origin, if records keep it.
    pub(crate) fetched: RefCell<Option<Box<NotedEvidence>>>,
}

impl Trace {
    /// Returns true if the request waited for another request's fetch.
    pub fn has_waited(&self) -> bool {
        self.wait_us.get().is_some()
    }

    /// Notes the reason for which a response is not stored.
    pub(crate) fn note_why(&self, why: UnstoredReason) {
        self.not_stored.set(why.as_str());
    }

    /// Notes the start of a try.
    pub(crate) fn note_begun(&self, now_us: u64) {
        self.fetch_us.set(self.fetch_us.get().or(Some(now_us)));
    }

    /// Notes the head of the origin's response.
    pub(crate) fn note_answered(&self, exchange: &Exchange, now_us: u64) {
        self.head_us.set(Some(now_us));
        self.origin_status.set(exchange.response.status.code());
        *self.server.borrow_mut() = Some(Arc::clone(&exchange.server_name));
        self.reused.set(exchange.reused);
        self.tries.set(self.tries.get() + exchange.tries);
    }

    /// The trace of a request whose record has this number.
    pub(crate) fn numbered(number: u64) -> Rc<Self> {
        Rc::new(Self { number: Cell::new(number), ..Self::default() })
    }

    /// The status of the fetch: that of the origin, or of the substitute answer.
    pub(crate) fn status(&self) -> u16 {
        match self.made_status.get() {
            0 => self.origin_status.get(),
            made => made,
        }
    }
}
