//! Notes about a request on its way, for its record in the log.
//!
//! A hit notes three numbers and allocates nothing. The rest is of requests that wait, and is kept
//! in cells: the fetch, a task of its own, notes here too.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use base::Limit;
use base::rate::ConcurrencyPermit;
use message::trace_context::TraceContext;
use observe::heads::Heads;
use origin::Exchange;
use vcl::backend::Leaf;

use crate::state::gate::User;
use crate::state::live_configuration::LiveConfiguration;
use crate::state::site::Site;
use crate::unstored_reason::UnstoredReason;

/// Notes on how a reply came about. No part of them is sent.
#[derive(Debug, Default)]
pub struct ReplyNotes {
    /// The site, and the rule that decided.
    pub decided: DecidingRule,
    /// Hash of the cache key; 0 when none was made.
    pub key: u64,
    /// The failure, if there was one. It is boxed, since replies are moved about and most go well.
    pub trouble: Option<Box<FailureNote>>,
    /// The actions of a program. They are boxed, so that the replies of other sites are no larger.
    pub told: Option<Box<vcl::trace::ProgramTrace>>,
    /// The way of a request that waited.
    pub trace: Option<Rc<Trace>>,
    /// Notes of the site's guards.
    pub(crate) guarded: GuardNotes,
}

/// Notes of a site's guards about a request. They are short, since replies are moved about.
#[derive(Debug, Default)]
pub(crate) enum GuardNotes {
    #[default]
    Free,
    /// A gate knows the user.
    User(Arc<User>),
    /// The request counts as under way until this ends.
    Stay(ConcurrencyPermit),
    Both(Box<(Arc<User>, ConcurrencyPermit)>),
}

impl GuardNotes {
    /// Takes note of a user.
    pub(crate) fn note_user(&mut self, user: Arc<User>) {
        *self = match std::mem::take(self) {
            Self::Free | Self::User(_) => Self::User(user),
            Self::Stay(stay) => Self::Both(Box::new((user, stay))),
            Self::Both(both) => Self::Both(Box::new((user, both.1))),
        };
    }

    /// Has the request count as under way.
    pub(crate) fn note_stay(&mut self, stay: ConcurrencyPermit) {
        *self = match std::mem::take(self) {
            Self::Free => Self::Stay(stay),
            Self::User(user) => Self::Both(Box::new((user, stay))),
            Self::Stay(other) => Self::Stay(stay.with(Some(other))),
            Self::Both(both) => Self::Both(Box::new((both.0, stay.with(Some(both.1))))),
        };
    }

    /// The user, if a gate knows one.
    pub(crate) fn user(&self) -> Option<&str> {
        match self {
            Self::User(user) => Some(&user.0),
            Self::Both(both) => Some(&both.0.0),
            Self::Free | Self::Stay(_) => None,
        }
    }

    /// Returns true if the request counts as under way.
    pub(crate) fn is_counted(&self) -> bool {
        matches!(self, Self::Stay(_) | Self::Both(_))
    }
}

impl ReplyNotes {
    /// The site that was asked; `None` where no site has the host.
    pub fn site<'a>(&self, live: &'a LiveConfiguration) -> Option<&'a Arc<Site>> {
        live.sites.listed.get(self.decided.site as usize)
    }

    /// The number of its record, where another's names it.
    pub(crate) fn number(&self) -> Option<u64> {
        self.trace.as_ref().map(|trace| trace.number.get()).filter(|number| *number != 0)
    }

    /// The name of the rule that decided.
    pub fn rule_name<'a>(&self, live: &'a LiveConfiguration) -> Option<&'a str> {
        self.site(live).map(|site| site.policy.rule_name(self.decided.rule))
    }
}

/// The site and the rule that decided, in numbers: a hit notes them and looks no name up.
#[derive(Clone, Copy, Debug)]
pub struct DecidingRule {
    /// The site's index in [`SiteTable::listed`](crate::SiteTable::listed); one that is not there
    /// when no site has the host.
    pub(crate) site: u32,
    /// The rule, as the site's policy numbers them.
    pub(crate) rule: u32,
}

impl DecidingRule {
    /// The site's index in [`SiteTable::listed`](crate::SiteTable::listed), if it has one.
    pub fn site(self) -> usize {
        self.site as usize
    }
}

impl Default for DecidingRule {
    fn default() -> Self {
        Self { site: u32::MAX, rule: 0 }
    }
}

/// A failure.
#[derive(Debug)]
pub struct FailureNote {
    /// In words.
    pub error: Box<str>,
    /// The limit that was reached, if it was one.
    pub limit: Option<Limit>,
}

/// The way of a request that waits. Moments are microseconds of the monotonic clock.
#[derive(Debug, Default)]
pub struct Trace {
    /// Hash of the cache key.
    pub(crate) key: Cell<u64>,
    /// When it began to wait for another request's fetch.
    pub(crate) wait_us: Cell<Option<u64>>,
    /// When its own fetch began.
    pub(crate) fetch_us: Cell<Option<u64>>,
    /// When the head of the origin's answer was there.
    pub(crate) head_us: Cell<Option<u64>>,
    /// The origin that was asked, as an index into its site's list.
    pub(crate) origin: Cell<Option<u32>>,
    /// The backend that a program has chosen, the last time it was asked.
    pub(crate) backend: RefCell<Option<Arc<Leaf>>>,
    /// The server that answered.
    pub(crate) server: RefCell<Option<Arc<str>>>,
    /// The number of times that the request was sent.
    pub(crate) tries: Cell<u32>,
    /// The request was sent over a kept connection.
    pub(crate) reused: Cell<bool>,
    /// The trace context that the origin was sent, the last time it was asked.
    pub(crate) sent: Cell<Option<TraceContext>>,
    /// Why the answer is not stored; empty when it is, or was not fetched.
    pub(crate) not_stored: Cell<&'static str>,
    /// The field that says so, if one does.
    pub(crate) evidence: RefCell<Option<Arc<str>>>,
    /// A limit that was reached on the way, and that was got over.
    pub(crate) limit: Cell<Option<Limit>>,
    /// The number of its record, if another names it; 0 otherwise.
    pub(crate) number: Cell<u64>,
    /// The status of the origin's answer, the last time it was asked; 0 without one.
    pub(crate) origin_status: Cell<u16>,
    /// The status of an answer in its stead; 0 without one.
    pub(crate) made_status: Cell<u16>,
    /// The answer was stored, all of it.
    pub(crate) stored: Cell<bool>,
    /// Bytes of body that came for the store.
    pub(crate) body_bytes: Cell<u64>,
    /// The failure of the fetch, if it failed.
    pub(crate) trouble: RefCell<Option<FailureNote>>,
    /// Heads of the exchange with the origin, while a reader asks for them.
    pub(crate) heads: RefCell<Option<Box<Heads>>>,
}

impl Trace {
    /// Returns true if the request waited for another request's fetch.
    pub fn has_waited(&self) -> bool {
        self.wait_us.get().is_some()
    }

    /// Notes why an answer is not stored.
    pub(crate) fn note_why(&self, why: UnstoredReason) {
        self.not_stored.set(why.as_str());
    }

    /// Notes that an origin is asked.
    pub(crate) fn note_begun(&self, now_us: u64) {
        self.fetch_us.set(self.fetch_us.get().or(Some(now_us)));
    }

    /// Notes the head of its answer.
    pub(crate) fn note_answered(&self, exchange: &Exchange, now_us: u64) {
        self.head_us.set(Some(now_us));
        self.origin_status.set(exchange.response.status.code());
        *self.server.borrow_mut() = Some(Arc::clone(&exchange.server_name));
        self.reused.set(exchange.reused);
        self.tries.set(self.tries.get() + exchange.tries);
    }

    /// Of the request whose record has this number.
    pub(crate) fn numbered(number: u64) -> Rc<Self> {
        Rc::new(Self { number: Cell::new(number), ..Self::default() })
    }

    /// The status that the fetch came to: the origin's, or that of the answer in its stead.
    pub(crate) fn status(&self) -> u16 {
        match self.made_status.get() {
            0 => self.origin_status.get(),
            made => made,
        }
    }
}
