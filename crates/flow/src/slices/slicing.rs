//! Slicing: cuts a response into slices while it arrives. It stays near the reading client, so it
//! neither fills the store with unwanted slices nor continues without readers.

use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use base::Counter;
use cache::{BeginOptions, Object, PushOutcome};
use message::{Framing, HeaderBlock, HeaderId, Method, Status};
use origin::{Exchange, Origin};

use crate::body_transfer::{TransferEnd, TransferOutcome};
use crate::fetch::{Fetch, InsertionPlan};
use crate::recode::BodyRecoding;
use crate::state::core::CoreState;
use crate::state::slices::{
    Extent, Shape, SliceFetcher, SliceOrigin, SliceSet, SliceableResponse, SlicingStep, new_slice,
};
use crate::state::tier::{Filling, Lead, MissStep};

/// A set, and the response that brings its first slices.
pub(crate) struct SliceStart {
    set: Arc<SliceSet>,
    /// The bytes of the whole in the response.
    range: Range<u64>,
    exchange: Box<Exchange>,
}

/// The shape of the stored body of `exchange`, and the part that it is; `None` if it is stored in
/// one piece. A requested part always has a shape.
pub(crate) fn shape_of(
    fetch: &Fetch,
    exchange: &Exchange,
    plan: &InsertionPlan,
) -> Option<(Shape, Extent)> {
    let shape = Shape::of(&fetch.live.limits)?;
    let length = fetch.edition.as_ref()?.length;
    if let Some(part) = &fetch.part {
        return Some((shape, part.clone()));
    }
    let is_fit = exchange.framing == Framing::Length(length)
        && plan.new.status == Status::OK
        && fetch.request.method == Method::Get
        && matches!(plan.recode, BodyRecoding::None)
        && !(plan.new.flags.esi || plan.new.flags.ssi)
        && !fetch.upload.is_some()
        && may_slice(fetch, fetch.asked.as_ref()?);
    is_fit.then_some((shape, Extent { range: 0..length, length }))
}

/// Returns true if the response to `fetch` may be stored in slices of `origin`. A request with
/// credentials must not be: all further slices would be fetched with them.
pub(crate) fn may_slice(fetch: &Fetch, origin: &Origin) -> bool {
    let unsliced = &fetch.core.shared.slices.unsliced;
    !fetch.request.headers.contains(HeaderId::Authorization)
        && !unsliced.has(origin.name(), fetch.now().mono_ms)
}

impl SliceStart {
    /// A set for the response to `fetch`; `None` if the response does not allow one.
    pub(crate) fn new(
        fetch: &mut Fetch,
        exchange: Box<Exchange>,
        shape: Shape,
        extent: Extent,
        plan: &InsertionPlan,
    ) -> Option<Self> {
        let edition = fetch.edition.take()?;
        let parts = plan.permit.parts(edition.against);
        let mut request = fetch.request.clone();
        request.headers.retain(|field| {
            !crate::origin_messages::CONDITIONS.contains(&field.id) && field.id != HeaderId::Cookie
        });
        request.headers.fit();
        let source = SliceOrigin {
            origin: Arc::clone(fetch.asked.as_ref()?),
            request,
            key_hash: fetch.key_hash,
            caller: origin::OriginRequestContext {
                read_at_most: 0,
                account: None,
                ..fetch.caller.clone()
            },
            owner_request: fetch.owner_request.take(),
        };
        let orders = SliceFetcher::orders(&fetch.core);
        let sliced = SliceableResponse { edition, source, parts };
        let set = SliceSet::new(&fetch.core.shared.slices, shape, sliced, plan.sinks, orders);
        Some(Self { set, range: extent.range, exchange })
    }

    /// The body that is stored.
    pub(crate) fn body(&self) -> Arc<dyn cache::ExternalBody> {
        Arc::clone(&self.set) as _
    }
}

/// Fills slices with the response of `object`, while it has readers.
pub(crate) async fn cut(
    core: &Rc<CoreState>,
    cut: SliceStart,
    object: Arc<Object>,
) -> TransferOutcome {
    let SliceStart { set, range, mut exchange } = cut;
    set.stands_for(&object);
    drop(object);
    core.counters.inc(Counter::SliceSets);
    // The client sets the pace from here, as long as it proceeds.
    exchange.lift_total();
    let (first, at, end) = (range.start, range.start, range.end);
    let head = exchange.response.headers.clone();
    let next = VecDeque::new();
    let mut cutter = Cutter { core, set: &set, head, first, at, end, now: None, next };
    let end = cutter.run(&mut exchange).await;
    cutter.leave(matches!(end, TransferEnd::Whole | TransferEnd::Left));
    core.counters.add(Counter::SlicesJoined, set.joined.swap(0, Ordering::Relaxed));
    TransferOutcome { end, bytes: cutter.at - first, stored: true, plain: None, limit: None }
}

/// A response that is being cut into slices.
struct Cutter<'a> {
    core: &'a Rc<CoreState>,
    set: &'a Arc<SliceSet>,
    /// The head of the response.
    head: HeaderBlock,
    /// The offset of the first byte.
    first: u64,
    /// The offset of the next byte.
    at: u64,
    /// The offset behind the last byte.
    end: u64,
    /// The slice being filled, unless another fetch fills it.
    now: Option<Filling>,
    /// The next slices, and the duty to fill each, so that their readers wait for this response.
    next: VecDeque<(u64, Option<Lead>)>,
}

impl Cutter<'_> {
    async fn run(&mut self, exchange: &mut Exchange) -> TransferEnd {
        loop {
            let slice = self.set.slice_at(self.at);
            let range = self.set.range(slice);
            let is_over = self.at == self.end;
            if self.at == range.start && !is_over && !self.may_go_on(slice).await {
                return TransferEnd::Left;
            }
            let left = if is_over { 1 } else { range.end - self.at };
            exchange.read_at_most(usize::try_from(left).unwrap_or(usize::MAX));
            let mut must_wait = false;
            let mut is_too_long = false;
            let take = &mut |data: &[u8]| {
                is_too_long |= self.at + data.len() as u64 > self.end;
                if !is_too_long {
                    must_wait |= self.push(data);
                }
            };
            match exchange.next(take).await {
                _ if is_too_long => return TransferEnd::Cut(None),
                // A slice that is not kept moves at the pace of its readers.
                Ok(true) if must_wait => {
                    if let Some(filling) = &mut self.now
                        && filling.room().await.is_err()
                    {
                        self.now = None;
                    }
                }
                Ok(true) => {}
                Ok(false) if self.at == self.end => return TransferEnd::Whole,
                Ok(false) => return TransferEnd::Cut(None),
                Err(error) => return TransferEnd::Cut(Some(error)),
            }
        }
    }

    /// Waits until a reader comes near `slice`; false if none will.
    async fn may_go_on(&mut self, slice: u64) -> bool {
        // Taken before a reader arrives, so that the reader waits for it instead of fetching.
        self.take_on(slice);
        if self.at == self.first {
            return true;
        }
        loop {
            match self.set.pace(slice) {
                _ if self.set.has_ended() => return false,
                SlicingStep::GoOn => return true,
                SlicingStep::Wait => self.set.moved.notified().await,
                SlicingStep::End => return false,
            }
        }
    }

    /// Takes the duty to fill `slice` and the next ones, unless other fetches have it.
    fn take_on(&mut self, slice: u64) {
        let shared = &self.core.shared;
        let last = (slice + self.set.shape.ahead).min(self.set.count() - 1);
        let from = self.next.back().map_or(slice, |(slice, _)| slice + 1);
        for slice in from..=last {
            let key = self.set.key(&shared.seed, slice);
            let now_ms = self.core.now().mono_ms;
            let begun = shared.cache.begin(&key, &mut |_, _| {}, BeginOptions::default(), now_ms);
            let lead = if let MissStep::Lead(lead) = begun { Some(lead) } else { None };
            self.next.push_back((slice, lead));
        }
    }

    /// Takes bytes of the response; true if it must wait for readers.
    fn push(&mut self, mut data: &[u8]) -> bool {
        let mut must_wait = false;
        while !data.is_empty() {
            let slice = self.set.slice_at(self.at);
            let range = self.set.range(slice);
            if self.at == range.start {
                self.begin(slice);
            }
            let most = usize::try_from(range.end - self.at).unwrap_or(usize::MAX);
            let (mine, rest) = data.split_at(data.len().min(most));
            if let Some(filling) = &mut self.now {
                match filling.push(mine) {
                    PushOutcome::Ok => {}
                    PushOutcome::Wait => must_wait = true,
                    PushOutcome::Abandoned | PushOutcome::Overrun => self.now = None,
                }
            }
            self.at += mine.len() as u64;
            if self.at == range.end
                && let Some(filling) = self.now.take()
                && filling.finish()
            {
                self.core.counters.inc(Counter::SlicesCut);
            }
            data = rest;
        }
        must_wait
    }

    /// Starts to fill `slice`, unless another fetch does.
    fn begin(&mut self, slice: u64) {
        self.now = None;
        self.take_on(slice);
        let Some((_, Some(lead))) = self.next.pop_front() else { return };
        let Ok(permit) = self.set.parts.next(&self.head) else { return lead.refuse(None) };
        let range = self.set.range(slice);
        let new = new_slice(range.end - range.start, self.core.now().mono_ms);
        let filling = lead.store(permit, new, None);
        filling.object().set_sinks(self.set.sinks);
        // Without memory for the slice, its readers fetch for themselves at their own pace.
        self.now = (!filling.is_window()).then_some(filling);
    }

    /// Ends. Waiters of slices that will not arrive look up again.
    fn leave(&mut self, is_well: bool) {
        for (_, lead) in self.next.drain(..) {
            if let Some(lead) = lead {
                lead.refuse(None);
            }
        }
        if self.now.take().is_some() && !is_well {
            self.core.counters.inc(Counter::SlicesFailed);
        }
    }
}
