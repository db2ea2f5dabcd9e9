//! A core's fetches of slices: each slice once, a bounded number of them at the same time, from the
//! owner of the response or from its origin.

use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use base::{Counter, Limit};
use cache::{BeginOptions, Passage, Reader};
use message::store::Permit;
use origin::{Caller, Exchange, RequestBody};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::sync::oneshot;

use crate::carry::{End, carry};
use crate::interims::Announcer;
use crate::state::core::Core;
use crate::state::peers::Whose;
use crate::state::slices::{Desk, SliceOrder, SliceSet, SliceVerdict, new_slice};
use crate::state::tier::{Begin, Lead};
use crate::tier;
use crate::verdict::Again;

impl Desk {
    /// Where orders go to; the desk opens with the first set.
    pub(crate) fn orders(core: &Rc<Core>) -> UnboundedSender<SliceOrder> {
        let open = || {
            let (orders, taken) = mpsc::unbounded_channel();
            rt::spawn_local(run(Rc::downgrade(core), taken));
            orders
        };
        core.desk.orders.get_or_init(open).clone()
    }
}

/// Takes orders as long as there is the core.
async fn run(core: Weak<Core>, mut orders: UnboundedReceiver<SliceOrder>) {
    while let Some(order) = orders.recv().await {
        let Some(core) = core.upgrade() else { return };
        while core.desk.under_way.get() >= core.live().limits.slice_fetches.max(1) {
            core.counters.limit(Limit::SliceFetches);
            core.desk.freed.notified().await;
        }
        if !order.is_wanted() {
            continue;
        }
        core.desk.under_way.set(core.desk.under_way.get() + 1);
        let place = FetchPlace(core);
        rt::spawn_local(Box::pin(async move {
            fetch(&place.0, order).await;
        }));
    }
}

/// The place of one fetch among those under way.
struct FetchPlace(Rc<Core>);

impl Drop for FetchPlace {
    fn drop(&mut self) {
        let desk = &self.0.desk;
        desk.under_way.set(desk.under_way.get() - 1);
        desk.freed.notify_one();
    }
}

/// Fetches one slice.
async fn fetch(core: &Rc<Core>, order: SliceOrder) {
    let SliceOrder { set, slice, lead, mut reply, account } = order;
    let Some(mut lead) = raised(core, &set, slice, lead, &mut reply).await else { return };
    let Some((exchange, permit)) = ask(core, &set, slice).await else {
        core.counters.inc(Counter::SlicesFailed);
        return;
    };
    let account = account.unwrap_or_else(|| Arc::clone(&core.background));
    let passage = Passage { bytes: core.live().limits.window_bytes, account };
    lead.passes_by(passage);
    let range = set.range(slice);
    let new = new_slice(range.end - range.start, core.now().mono_ms);
    let filling = lead.store(permit, new, None);
    filling.object().set_sinks(set.sinks);
    // What is not kept moves no faster than its reader, who must be there before.
    let reader = filling.object().reader();
    match reply {
        Some(reply) => drop(reply.send(reader)),
        None => drop(reader),
    }
    let carried = carry(*exchange, filling, None, None, None).await;
    core.counters.inc(match carried.end {
        End::Whole => Counter::SlicesFetched,
        _ => Counter::SlicesFailed,
    });
    core.counters.add(Counter::SlicesJoined, set.joined.swap(0, Ordering::Relaxed));
}

/// Reads the disk, where that may have the slice. The duty to fetch it is left if it has not.
async fn raised(
    core: &Rc<Core>,
    set: &SliceSet,
    slice: u64,
    lead: Lead,
    reply: &mut Option<oneshot::Sender<Reader>>,
) -> Option<Lead> {
    if lead.cold().is_empty() {
        return Some(lead);
    }
    match tier::raise(core, lead, &mut |_, _| {}, Again::Program).await {
        Ok(Some(lent)) => {
            if let Some(reply) = reply.take() {
                drop(reply.send(lent.reader()));
            }
            return None;
        }
        Ok(None) => {}
        Err(lead) => return Some(lead),
    }
    let key = set.key(&core.shared.seed, slice);
    let options = BeginOptions::default();
    match core.shared.cache.begin(&key, &mut |_, _| {}, options, core.now().mono_ms) {
        Begin::Object(object) => {
            if let Some(reply) = reply.take() {
                drop(reply.send(object.reader()));
            }
            None
        }
        // There was no memory for it: as if it were not on disk.
        Begin::Lead(lead) | Begin::Alone(lead) => Some(lead),
        // Whoever waits looks again.
        Begin::Wait(_) | Begin::Full => None,
    }
}

/// Asks for a slice: the node that owns the response, if that is another one, then the origin.
/// `None` if the answer is not the slice, or may not be kept.
async fn ask(core: &Rc<Core>, set: &SliceSet, slice: u64) -> Option<(Box<Exchange>, Permit)> {
    let source = &set.source;
    let range = set.range(slice);
    let caller: &Caller = &source.caller;
    if let Some(asking) = &source.asking {
        let whose = Whose { key_hash: source.key_hash, caller };
        if let Some(exchange) = asking.ask_for(core, whose, &range, &set.edition).await {
            let permit = permitted(core, set, &exchange)?;
            core.counters.inc(Counter::SlicesOfNodes);
            return Some((exchange, permit));
        }
    }
    let mut request = source.request.clone();
    set.edition.ask(&range, &mut request);
    let none = &mut Announcer(None);
    let (origin, hash) = (&source.origin, source.key_hash);
    let pool = core.pool();
    let sent = pool.send(origin, &request, RequestBody::None, hash, caller, none).await;
    let exchange = Box::new(sent.ok()?);
    match set.edition.judge(&exchange.response, exchange.framing, &range) {
        SliceVerdict::Slice => {
            let permit = permitted(core, set, &exchange)?;
            return Some((exchange, permit));
        }
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
    None
}

/// The permission to keep the slice that `exchange` brings. Where the slice says something against
/// that, the response is not for all any more: its set ends.
fn permitted(core: &Core, set: &SliceSet, exchange: &Exchange) -> Option<Permit> {
    let permit = set.parts.next(&exchange.response.headers).ok();
    if permit.is_none() && set.end() {
        core.counters.inc(Counter::SliceSetsChanged);
    }
    permit
}
