//! A busy object: the entry of a key whose response is being fetched, with the requests that wait
//! for it. A waiter is a hint, never a promise: each woken request compares the stored response in
//! full.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use base::HashSeed;
use smallvec::SmallVec;

use crate::ledger::Charge;
use crate::object::Object;
use crate::size;
use crate::slots::Slots;
use crate::sync::{AtomicI64, Mutex, Ordering};
use crate::variant::VarySpec;

/// The outcome of the fetch that a waiter waited for.
#[derive(Clone, Debug)]
pub enum WaiterOutcome {
    /// The fetch stored this response, whose body may still be arriving. The caller decides whether
    /// it answers this request too (Vary, freshness, privacy), and begins again if not.
    Ready(Arc<Object>),
    /// The response is private to the lead's request: each waiter fetches alone now.
    Refused,
    /// The fetch failed without a response.
    Failed,
    /// The lead gave the fetch up before it asked anything: each waiter begins again.
    Again,
}

/// Hashes of Vary names, and of the request's signature for them, known when the fetch began.
///
/// A hint as to which fetch to wait for: a woken request compares in full.
#[derive(Debug, Default)]
pub(crate) struct VaryHashes(SmallVec<[(u64, u64); SPECS]>);

/// Distinct lists of names that are kept. A key rarely has more than one.
const SPECS: usize = 2;

impl VaryHashes {
    pub(crate) fn note(&mut self, spec: &VarySpec, signature: &[u8]) {
        // A fixed seed suffices: a collision only makes its own author wait once in vain.
        let seed = HashSeed::from_u64(0);
        if self.0.len() < SPECS {
            self.0.push((seed.hash(spec), seed.hash(signature)));
        }
    }

    /// Returns true if both may select one variant: no names known to both tell them apart.
    fn may_equal(&self, other: &Self) -> bool {
        self.0
            .iter()
            .all(|(spec, signature)| other.0.iter().all(|(s, g)| s != spec || g == signature))
    }
}

/// The facts known when a fetch begins.
#[derive(Debug, Default)]
pub(crate) struct NewFetch {
    pub(crate) shape: VaryHashes,
    /// True if other requests may wait for the fetch.
    pub(crate) shared: bool,
    /// The newest ban when the fetch begins.
    pub(crate) began: u32,
}

/// A fetch in flight.
#[derive(Debug)]
pub(crate) struct Busy {
    pub(crate) key: Arc<[u8]>,
    pub(crate) hash: u64,
    shape: VaryHashes,
    /// True if other requests may wait for the fetch.
    shared: bool,
    /// The newest ban when the fetch began.
    pub(crate) began: u32,
    /// The time of a soft purge since the fetch began: the fetched response is stale from then on.
    soft_until: AtomicI64,
    state: Mutex<WaiterList>,
    _charge: Option<Charge>,
}

#[derive(Debug, Default)]
struct WaiterList {
    outcome: Option<WaiterOutcome>,
    waiting: Slots<Option<Waker>>,
}

/// Bytes reserved for one waiter: its entry in a list that doubles, and in the list of free
/// entries.
pub(crate) const TICKET_BYTES: u64 = 2 * (size_of::<Option<Option<Waker>>>() as u64 + 4) + 8;

impl Busy {
    /// Bytes to reserve for one busy object.
    pub(crate) const BYTES: u64 = size::arc::<Self>();

    pub(crate) fn new(key: Arc<[u8]>, hash: u64, fetch: NewFetch, charge: Option<Charge>) -> Self {
        let NewFetch { shape, shared, began } = fetch;
        Self {
            key,
            hash,
            shape,
            shared,
            began,
            soft_until: AtomicI64::new(i64::MAX),
            state: Mutex::new(WaiterList::default()),
            _charge: charge,
        }
    }

    /// Returns true if a request with these hashes should wait for this fetch.
    pub(crate) fn is_for(&self, shape: &VaryHashes) -> bool {
        self.shared && self.shape.may_equal(shape)
    }

    /// A ticket, unless `waiters_max` requests wait already.
    pub(crate) fn join(
        self: &Arc<Self>,
        waiters_max: usize,
        charge: Option<Charge>,
    ) -> Option<Ticket> {
        let place = {
            let mut state = self.state.lock();
            if state.waiting.len() >= waiters_max {
                return None;
            }
            state.waiting.insert(None)
        };
        Some(Ticket { busy: Arc::clone(self), place, _charge: charge })
    }

    /// Returns true if a request waits.
    pub(crate) fn is_watched(&self) -> bool {
        !self.state.lock().waiting.is_empty()
    }

    /// Wakes all waiters with the outcome. The lead calls this once.
    pub(crate) fn conclude(&self, outcome: WaiterOutcome) {
        let mut waiting = {
            let mut state = self.state.lock();
            state.outcome = Some(outcome);
            std::mem::take(&mut state.waiting)
        };
        waiting.iter_mut().filter_map(Option::take).for_each(Waker::wake);
    }

    /// Makes the response that is stored from this fetch stale from `now_ms` on.
    pub(crate) fn expire(&self, now_ms: i64) {
        self.soft_until.fetch_min(now_ms, Ordering::Relaxed);
    }

    pub(crate) fn soft_until(&self) -> i64 {
        self.soft_until.load(Ordering::Relaxed)
    }
}

/// A waiter's place at one fetch. Awaiting the ticket gives the outcome, on any thread. A dropped
/// ticket gives its place back.
#[derive(Debug)]
#[must_use = "a ticket does nothing unless awaited"]
pub struct Ticket {
    busy: Arc<Busy>,
    place: u32,
    _charge: Option<Charge>,
}

impl Future for Ticket {
    type Output = WaiterOutcome;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<WaiterOutcome> {
        let mut state = self.busy.state.lock();
        if let Some(outcome) = &state.outcome {
            return Poll::Ready(outcome.clone());
        }
        if let Some(place) = state.waiting.get_mut(self.place) {
            match place {
                Some(waker) => waker.clone_from(cx.waker()),
                None => *place = Some(cx.waker().clone()),
            }
        }
        Poll::Pending
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let waker = {
            let mut state = self.busy.state.lock();
            // After the conclusion the list is a new, empty list.
            state.waiting.remove(self.place)
        };
        drop(waker);
    }
}
