//! A page and its fragments, as far as they know of each other.

use std::cell::{Cell, OnceCell};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use base::{Account, Counters, Limit};
use esi::OnError;
use message::Request;
use policy::ConnectionPeer;
use vcl::params::Param;

use super::instructions::{Dialect, Instructions};
use super::places::FragmentPermits;
use crate::state::live_configuration::LiveRef;
use crate::state::site::Site;
use crate::state::site_context::SiteContext;
use crate::state::trace::{FailureNote, Trace};
use crate::state::vcl::VclConnection;

/// A page that is to be put together.
pub(crate) struct ComposedPage {
    pub(crate) dialect: Dialect,
    pub(crate) live: LiveRef,
    pub(crate) site: Arc<Site>,
    /// The request that the page answers, as its client or the page above sent it.
    pub(crate) request: Request,
    /// The cookies that policy has left of the request's, where that has them all for fragments.
    pub(crate) cookies_left: Option<Box<[u8]>>,
    /// The surroundings of its fragments.
    pub(crate) within: Rc<FragmentContext>,
    /// The number of the request in its program; 0 without one.
    pub(crate) xid: u64,
    /// Its instructions, if a program has had them read.
    pub(crate) instructions: Option<Arc<Instructions>>,
    /// Where it is noted what has gone wrong.
    pub(crate) trace: Rc<Trace>,
    /// It is sent in gzip.
    pub(crate) gzip: bool,
    /// Under a program it is one for clients with gzip, whoever asks for it: so are its fragments.
    pub(crate) folded: bool,
    /// It is sent as it is, whatever instructions it has.
    pub(crate) verbatim: bool,
    /// The part that the requests for its fragments have in common, once one is made.
    pub(crate) pattern: OnceCell<Request>,
    /// Memory for the next of them.
    pub(crate) spare: Cell<Option<Box<Request>>>,
}

/// The surroundings of a fragment.
#[derive(Debug)]
pub(crate) struct FragmentContext {
    /// 1 for a fragment of the page that a client asked for.
    pub(crate) level: u32,
    pub(crate) top: Rc<TopPage>,
}

/// The page that a client asked for, and what all its fragments share.
pub(crate) struct TopPage {
    /// Its request, as the policy left it.
    pub(crate) request: Request,
    pub(crate) peer: ConnectionPeer,
    /// The client's connection, as programs see it.
    pub(crate) line: Option<VclConnection>,
    /// The account of what is held for the client.
    pub(crate) account: Arc<Account>,
    /// The client has a certificate: what it gets is for it alone.
    pub(crate) personal: bool,
    /// Places of those fragments that may be under way together.
    pub(crate) places: Rc<FragmentPermits>,
    /// Fragments so far, those of fragments included.
    begun: Cell<u64>,
    /// Bytes so far.
    bytes: Cell<u64>,
}

impl fmt::Debug for ComposedPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Composed").field("dialect", &self.dialect).finish_non_exhaustive()
    }
}

impl fmt::Debug for TopPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Top").field("begun", &self.begun).finish_non_exhaustive()
    }
}

impl TopPage {
    /// The page that `request` asks for on behalf of `peer`, over `line`.
    pub(crate) fn new(
        live: &LiveRef,
        request: Request,
        peer: ConnectionPeer,
        line: Option<VclConnection>,
        account: &Arc<Account>,
    ) -> Self {
        // A page of a program has a line.
        let wished = line.as_ref().map(|_| live.vcl.params.number(Param::EsiParallel));
        let wished = wished.filter(|most| *most > 0);
        Self {
            request,
            peer,
            line,
            account: Arc::clone(account),
            personal: false,
            places: FragmentPermits::new(&live.limits, wished),
            begun: Cell::new(0),
            bytes: Cell::new(0),
        }
    }
}

impl ComposedPage {
    /// The page that answers `request`, itself a fragment where it is `within` another.
    pub(crate) fn new(
        dialect: Dialect,
        SiteContext { live, site }: SiteContext<'_>,
        request: Request,
        within: Option<&Rc<FragmentContext>>,
        top: impl FnOnce() -> TopPage,
    ) -> Self {
        let (level, top) = match within {
            Some(within) => (within.level + 1, Rc::clone(&within.top)),
            None => (1, Rc::new(top())),
        };
        let (live, site) = (Rc::clone(live), Arc::clone(site));
        let within = Rc::new(FragmentContext { level, top });
        Self {
            dialect,
            live,
            site,
            request,
            cookies_left: None,
            within,
            xid: 0,
            instructions: None,
            trace: Rc::default(),
            gzip: false,
            folded: false,
            verbatim: false,
            pattern: OnceCell::new(),
            spare: Cell::default(),
        }
    }

    /// Returns true if the page cannot go on without a fragment of this wish that failed and has
    /// nothing in its place.
    pub(crate) fn breaks(&self, onerror: OnError) -> bool {
        match self.dialect {
            Dialect::Varnish => onerror == OnError::Fail,
            Dialect::Esi | Dialect::Ssi => self.site.includes.breaks,
        }
    }

    /// Returns true if the page goes on when a fragment of this wish breaks off: Varnish does that.
    pub(crate) fn goes_on(&self, onerror: OnError) -> bool {
        self.dialect == Dialect::Varnish && onerror != OnError::Fail
    }

    /// The number of the transaction that the page answers, for the records of its fragments: the
    /// `next` one, if it has none yet.
    pub(crate) fn number(&self, next: impl FnOnce() -> u64) -> u64 {
        if self.xid != 0 {
            return self.xid;
        }
        if self.trace.number.get() == 0 {
            self.trace.number.set(next());
        }
        self.trace.number.get()
    }

    /// Takes note of one more fragment.
    ///
    /// # Errors
    /// The limit that forbids it.
    pub(crate) fn count(&self, counters: &Counters) -> Result<(), Limit> {
        let FragmentContext { level, top } = &*self.within;
        top.begun.set(top.begun.get() + 1);
        let deepest = match self.dialect {
            Dialect::Varnish => self.live.vcl.params.number(Param::MaxEsiDepth),
            Dialect::Esi | Dialect::Ssi => self.live.limits.esi_depth,
        };
        let limit = match u64::from(*level) > deepest {
            true => Limit::EsiDepth,
            false if top.begun.get() > self.live.limits.esi_includes => Limit::EsiIncludes,
            false => return Ok(()),
        };
        counters.limit(limit);
        Err(limit)
    }

    /// Takes note that the page ends before it is whole, and by which limit.
    pub(crate) fn note_ended(&self, limit: Limit) {
        let error = format!("the page ended before it was whole (limit: {})", limit.name()).into();
        let limit = Some(limit);
        self.trace.trouble.borrow_mut().get_or_insert(FailureNote { error, limit });
    }

    /// Takes note of `bytes` more; false when the page becomes too large by them.
    pub(crate) fn weigh(&self, counters: &Counters, bytes: u64) -> bool {
        let sum = &self.within.top.bytes;
        sum.set(sum.get().saturating_add(bytes));
        let fits = sum.get() <= self.live.limits.esi_bytes;
        if !fits {
            counters.limit(Limit::EsiBytes);
        }
        fits
    }
}
