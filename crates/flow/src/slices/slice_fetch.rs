//! Slice fetch: a core fetches each slice once, a bounded number at a time, from the disk, the
//! response's owner or its origin.

use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use base::{Counter, Limit};
use cache::{BeginOptions, Object, WindowLimit};
use message::store::Permit;
use origin::{Exchange, RequestBody};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

use crate::body_transfer::{TransferEnd, carry};
use crate::interims::Announcer;
use crate::sources::{self, Search, Source, SourceAnswer};
use crate::state::core::CoreState;
use crate::state::peers::FetchIdentity;
use crate::state::slices::{SliceFetcher, SliceOrder, SliceSet, SliceVerdict, new_slice};
use crate::state::tier::{Lead, MissStep};
use crate::tier;
use crate::verdict::RevalidationJudge;

impl SliceFetcher {
    /// The sender of orders to this core's [`SliceFetcher`]; the first call starts its task.
    pub(crate) fn orders(core: &Rc<CoreState>) -> UnboundedSender<SliceOrder> {
        let open = || {
            let (orders, taken) = mpsc::unbounded_channel();
            rt::spawn_local(run(Rc::downgrade(core), taken));
            orders
        };
        core.slice_fetcher.orders.get_or_init(open).clone()
    }
}

/// Takes orders while the core exists.
async fn run(core: Weak<CoreState>, mut orders: UnboundedReceiver<SliceOrder>) {
    while let Some(order) = orders.recv().await {
        let Some(core) = core.upgrade() else { return };
        while core.slice_fetcher.under_way.get() >= core.live().limits.slice_fetches.max(1) {
            core.counters.limit(Limit::SliceFetches);
            core.slice_fetcher.freed.notified().await;
        }
        if !order.is_wanted() {
            continue;
        }
        core.slice_fetcher.under_way.set(core.slice_fetcher.under_way.get() + 1);
        let place = SliceFetchPermit(core);
        rt::spawn_local(Box::pin(async move {
            fetch(&place.0, order).await;
        }));
    }
}

/// The permit of one slice fetch.
struct SliceFetchPermit(Rc<CoreState>);

impl Drop for SliceFetchPermit {
    fn drop(&mut self) {
        let slice_fetcher = &self.0.slice_fetcher;
        slice_fetcher.under_way.set(slice_fetcher.under_way.get() - 1);
        slice_fetcher.freed.notify_one();
    }
}

/// Fetches one slice.
async fn fetch(core: &Rc<CoreState>, order: SliceOrder) {
    let SliceOrder { set, slice, lead, reply, account } = order;
    let mut wanted = WantedSlice { core, set: &set, slice, lead: Some(lead) };
    let found = sources::find(&mut wanted, Source::Disk).await;
    let (exchange, permit, mut lead) = match (found, wanted.lead) {
        (Some(SliceSearchResult::Sent(exchange, permit)), Some(lead)) => (exchange, permit, lead),
        (Some(SliceSearchResult::Stored(slice)), _) => {
            drop(reply.map(|reply| reply.send(slice.reader())));
            return;
        }
        (Some(_), _) => return core.counters.inc(Counter::SlicesFailed),
        // Waiters look up again.
        (None, _) => return,
    };
    let account = account.unwrap_or_else(|| Arc::clone(&core.background));
    let passage = WindowLimit { bytes: core.live().limits.window_bytes, account };
    lead.set_window_limit(passage);
    let range = set.range(slice);
    let new = new_slice(range.end - range.start, core.now().mono_ms);
    let filling = lead.store(permit, new, None);
    filling.object().set_sinks(set.sinks);
    // An unkept slice moves at its reader's pace, so the reader must exist before it moves.
    let reader = filling.object().reader();
    match reply {
        Some(reply) => drop(reply.send(reader)),
        None => drop(reader),
    }
    let carried = carry(*exchange, filling, None, None, None, None).await;
    core.counters.inc(match carried.end {
        TransferEnd::Whole => Counter::SlicesFetched,
        _ => Counter::SlicesFailed,
    });
    core.counters.add(Counter::SlicesJoined, set.joined.swap(0, Ordering::Relaxed));
}

/// A slice to be fetched.
struct WantedSlice<'a> {
    core: &'a Rc<CoreState>,
    set: &'a SliceSet,
    slice: u64,
    /// The duty to fetch the slice.
    lead: Option<Lead>,
}

/// The result of a search for a slice.
enum SliceSearchResult {
    /// It is stored.
    Stored(Arc<Object>),
    /// The slice arrives, and may be kept.
    Sent(Box<Exchange>, Permit),
    /// The response is not the slice, or may not be kept.
    Nothing,
}

impl Search for WantedSlice<'_> {
    type Found = SliceSearchResult;

    async fn ask(&mut self, source: Source) -> SourceAnswer<SliceSearchResult> {
        match source {
            Source::Disk => self.read().await,
            Source::Owner => self.ask_owner().await,
            Source::Origin => SourceAnswer::Has(self.ask_origin().await),
            // Only the owner and the origin have this version.
            Source::Policy | Source::File | Source::Siblings => SourceAnswer::HasNot,
        }
    }
}

impl WantedSlice<'_> {
    /// Reads the disk, if it may have the slice.
    async fn read(&mut self) -> SourceAnswer<SliceSearchResult> {
        if let Some(lead) = self.lead.take_if(|lead| !lead.cold().is_empty()) {
            match tier::raise(self.core, lead, &mut |_, _| {}, RevalidationJudge::Program).await {
                Ok(Some(lent)) => return SourceAnswer::Has(SliceSearchResult::Stored(lent)),
                Ok(None) => return self.look_again(),
                Err(lead) => self.lead = Some(lead),
            }
        }
        SourceAnswer::HasNot
    }

    /// Looks up the slice that was promoted.
    fn look_again(&mut self) -> SourceAnswer<SliceSearchResult> {
        let (shared, options) = (&self.core.shared, BeginOptions::default());
        let key = self.set.key(&shared.seed, self.slice);
        match shared.cache.begin(&key, &mut |_, _| {}, options, self.core.now().mono_ms) {
            MissStep::Object(object) => SourceAnswer::Has(SliceSearchResult::Stored(object)),
            // Without memory for it, the slice counts as absent from the disk.
            MissStep::Lead(lead) | MissStep::Alone(lead) => {
                self.lead = Some(lead);
                SourceAnswer::HasNot
            }
            MissStep::Wait(_) | MissStep::Full => SourceAnswer::Waits,
        }
    }

    /// Asks the node that owns the response, unless it is this one.
    async fn ask_owner(&self) -> SourceAnswer<SliceSearchResult> {
        let (range, source) = (self.set.range(self.slice), &self.set.source);
        let identity = FetchIdentity { key_hash: source.key_hash, caller: &source.caller };
        if let Some(owner_request) = &source.owner_request
            && let Some(exchange) =
                owner_request.ask_for(self.core, identity, &range, &self.set.edition).await
        {
            let came = self.permitted(exchange);
            if matches!(came, SliceSearchResult::Sent(..)) {
                self.core.counters.inc(Counter::SlicesOfNodes);
            }
            return SourceAnswer::Has(came);
        }
        SourceAnswer::HasNot
    }

    async fn ask_origin(&self) -> SliceSearchResult {
        let Self { core, set, slice, .. } = *self;
        let (range, source) = (set.range(slice), &set.source);
        let mut request = source.request.clone();
        set.edition.ask(&range, &mut request);
        let (origin, hash, caller) = (&source.origin, source.key_hash, &source.caller);
        let (none, nothing, pool) = (&mut Announcer(None), RequestBody::None, core.pool());
        let Ok(exchange) = pool.send(origin, &request, nothing, hash, caller, none).await else {
            return SliceSearchResult::Nothing;
        };
        match set.edition.judge(&exchange.response, exchange.framing, &range) {
            SliceVerdict::Slice => return self.permitted(Box::new(exchange)),
            SliceVerdict::Nothing => {}
            SliceVerdict::Changed => {
                if set.end() {
                    core.counters.inc(Counter::SliceSetsChanged);
                }
            }
            SliceVerdict::NoRange => {
                core.shared.slices.unsliced.note(origin.name(), core.rangeless_term());
                if set.end() {
                    core.counters.inc(Counter::SliceSetsRefused);
                }
            }
        }
        SliceSearchResult::Nothing
    }

    /// The slice in `exchange`, with the permit to keep it. If the response forbids that now, its
    /// set ends.
    fn permitted(&self, exchange: Box<Exchange>) -> SliceSearchResult {
        match self.set.parts.next(&exchange.response.headers) {
            Ok(permit) => return SliceSearchResult::Sent(exchange, permit),
            Err(_) if self.set.end() => self.core.counters.inc(Counter::SliceSetsChanged),
            Err(_) => {}
        }
        SliceSearchResult::Nothing
    }
}
