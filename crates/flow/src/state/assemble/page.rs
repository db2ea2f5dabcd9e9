//! Composed page: a page with fragments, and the context that its fragments share.

use std::cell::{Cell, OnceCell};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use base::{Account, Counters, Limit};
use esi::OnError;
use message::Request;
use policy::{ConnectionPeer, Routes};
use vcl::params::Param;

use super::instructions::{Dialect, Instructions};
use super::permits::FragmentPermits;
use crate::state::live_configuration::LiveRef;
use crate::state::site::Site;
use crate::state::site_context::SiteContext;
use crate::state::trace::{FailureNote, Trace};
use crate::state::vcl::VclConnection;

/// A page to be assembled.
pub(crate) struct ComposedPage {
    pub(crate) dialect: Dialect,
    pub(crate) live: LiveRef,
    pub(crate) site: Arc<Site>,
    /// The request for the page, from its client or the enclosing page.
    pub(crate) request: Request,
    /// The routes of the request, by its site's policy.
    pub(crate) routes: Routes,
    /// The request's cookies after the policy's changes, if fragments get the original ones.
    pub(crate) cookies_left: Option<Box<[u8]>>,
    /// The context of its fragments.
    pub(crate) context: Rc<FragmentContext>,
    /// The request's number in its program; 0 without a program.
    pub(crate) xid: u64,
    /// The instructions, if a program had them parsed.
    pub(crate) instructions: Option<Arc<Instructions>>,
    /// The trace that failures are noted in.
    pub(crate) trace: Rc<Trace>,
    /// The page is sent in gzip.
    pub(crate) gzip: bool,
    /// Under a program: the page and its fragments are for clients with gzip, whatever this client
    /// accepts.
    pub(crate) gzipped: bool,
    /// The page is sent unchanged, despite its instructions.
    pub(crate) verbatim: bool,
    /// The common part of its fragments' requests, once one is made.
    pub(crate) pattern: OnceCell<Request>,
    /// Spare memory for the next request.
    pub(crate) spare: Cell<Option<Box<Request>>>,
}

/// The context of a fragment.
#[derive(Debug)]
pub(crate) struct FragmentContext {
    /// The depth: 1 for a fragment of the page that a client requested.
    pub(crate) level: u32,
    pub(crate) top: Rc<TopPage>,
}

/// The page that a client requested, and the shared state of all its fragments.
pub(crate) struct TopPage {
    /// The request after the policy's changes.
    pub(crate) request: Request,
    pub(crate) peer: ConnectionPeer,
    /// The client's connection, as programs see it.
    pub(crate) vcl_connection: Option<VclConnection>,
    /// The account of memory reserved for the client.
    pub(crate) account: Arc<Account>,
    /// The client has a certificate, so its responses are personal.
    pub(crate) personal: bool,
    /// The permits of fragments in progress.
    pub(crate) permits: Rc<FragmentPermits>,
    /// Fragments so far, nested ones included.
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
    /// The page that `request` of `peer` asks for, over `vcl_connection`.
    pub(crate) fn new(
        live: &LiveRef,
        request: Request,
        peer: ConnectionPeer,
        vcl_connection: Option<VclConnection>,
        account: &Arc<Account>,
    ) -> Self {
        // Pages of programs have a connection.
        let wished = vcl_connection.as_ref().map(|_| live.vcl.params.number(Param::EsiParallel));
        let wished = wished.filter(|most| *most > 0);
        Self {
            request,
            peer,
            vcl_connection,
            account: Arc::clone(account),
            personal: false,
            permits: FragmentPermits::new(&live.limits, wished),
            begun: Cell::new(0),
            bytes: Cell::new(0),
        }
    }
}

impl ComposedPage {
    /// The page that answers `request`, itself a fragment if it has the `context` of another.
    pub(crate) fn new(
        dialect: Dialect,
        SiteContext { live, site }: SiteContext<'_>,
        request: Request,
        context: Option<&Rc<FragmentContext>>,
        top: impl FnOnce() -> TopPage,
    ) -> Self {
        let (level, top) = match context {
            Some(context) => (context.level + 1, Rc::clone(&context.top)),
            None => (1, Rc::new(top())),
        };
        let (live, site) = (Rc::clone(live), Arc::clone(site));
        let context = Rc::new(FragmentContext { level, top });
        Self {
            dialect,
            live,
            site,
            request,
            routes: Routes::default(),
            cookies_left: None,
            context,
            xid: 0,
            instructions: None,
            trace: Rc::default(),
            gzip: false,
            gzipped: false,
            verbatim: false,
            pattern: OnceCell::new(),
            spare: Cell::default(),
        }
    }

    /// Returns true if the page breaks off after a failed fragment with this `onerror` and no
    /// substitute.
    pub(crate) fn breaks(&self, onerror: OnError) -> bool {
        match self.dialect {
            Dialect::Varnish => onerror == OnError::Fail,
            Dialect::Esi | Dialect::Ssi => self.site.includes.breaks,
        }
    }

    /// Returns true if the page continues after a fragment with this `onerror` breaks off, as in
    /// Varnish.
    pub(crate) fn goes_on(&self, onerror: OnError) -> bool {
        self.dialect == Dialect::Varnish && onerror != OnError::Fail
    }

    /// The transaction number of the page, for the records of its fragments; taken from `next` at
    /// first use.
    pub(crate) fn number(&self, next: impl FnOnce() -> u64) -> u64 {
        if self.xid != 0 {
            return self.xid;
        }
        if self.trace.number.get() == 0 {
            self.trace.number.set(next());
        }
        self.trace.number.get()
    }

    /// Counts a fragment.
    ///
    /// # Errors
    /// The limit that forbids it.
    pub(crate) fn count(&self, counters: &Counters) -> Result<(), Limit> {
        let FragmentContext { level, top } = &*self.context;
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

    /// Notes that the page ends incomplete because of `limit`.
    pub(crate) fn note_ended(&self, limit: Limit) {
        let error = format!("the page ended before it was whole (limit: {})", limit.name()).into();
        let limit = Some(limit);
        self.trace.failure.borrow_mut().get_or_insert(FailureNote { error, limit });
    }

    /// Counts `bytes`; false if the page becomes too large.
    pub(crate) fn weigh(&self, counters: &Counters, bytes: u64) -> bool {
        let sum = &self.context.top.bytes;
        sum.set(sum.get().saturating_add(bytes));
        let fits = sum.get() <= self.live.limits.esi_bytes;
        if !fits {
            counters.limit(Limit::EsiBytes);
        }
        fits
    }
}
