//! Request collapsing: decides which request fetches a key, and which requests wait for that fetch.
//! A key must never have two lead fetches for one variant.

use std::sync::Arc;

use base::KeyBuf;

use super::{Cache, CacheLookup};
use crate::busy::{Busy, NewFetch, TICKET_BYTES, Ticket, VaryHashes};
use crate::lead::Lead;
use crate::lower::{Lower, MemoryOnly};
use crate::object::Object;
use crate::slot::{IndexSlot, KeyEntries, choose};
use crate::sync::Ordering;
use crate::variant::SignatureFunction;

/// Options for a miss.
#[derive(Clone, Copy, Debug)]
pub struct BeginOptions<'a> {
    /// True to wait for another request's fetch, and to let other requests wait for this one.
    pub coalesce: bool,
    /// A stored response that the caller has found and may not use. It is not returned again.
    pub rejected: Option<&'a Arc<Object>>,
}

impl Default for BeginOptions<'_> {
    fn default() -> Self {
        Self { coalesce: true, rejected: None }
    }
}

/// The next action of a request without a usable stored response.
#[derive(Debug)]
pub enum FetchDecision<L: Lower = MemoryOnly> {
    /// Fetch. Other requests may wait for it.
    Lead(Lead<L>),
    /// Wait for another request's fetch.
    Wait(Ticket),
    /// Examine this response, which has been stored meanwhile.
    Object(Arc<Object>),
    /// Fetch without waiters: a hit-for-miss marker is in force, collapsing is off, or memory is
    /// short. The response may still be stored.
    Alone(Lead<L>),
    /// Give up: too many requests wait already.
    Full,
}

impl<L: Lower> Cache<L> {
    /// The miss path: decides which request fetches. `variant` as for [`Cache::lookup`], under the
    /// shard's exclusive lock.
    pub fn begin(
        self: &Arc<Self>,
        key: &KeyBuf,
        variant: &mut SignatureFunction<'_>,
        options: BeginOptions<'_>,
        now_ms: u64,
    ) -> FetchDecision<L> {
        self.seen_ms.fetch_max(now_ms, Ordering::Relaxed);
        loop {
            match self.try_begin(key, variant, options, now_ms) {
                Ok(begin) => return begin,
                // Tested without the lock. A banned object has been removed now.
                Err(object) => _ = self.weigh(self.place(key.hash()), &object),
            }
        }
    }

    /// [`Cache::begin`], unless a stored response must be tested against new bans first.
    fn try_begin(
        self: &Arc<Self>,
        key: &KeyBuf,
        variant: &mut SignatureFunction<'_>,
        options: BeginOptions<'_>,
        now_ms: u64,
    ) -> Result<FetchDecision<L>, Arc<Object>> {
        let place = self.place(key.hash());
        let is_rejected =
            |object: &Arc<Object>| options.rejected.is_some_and(|old| Arc::ptr_eq(old, object));
        let charge = self.reserve(Busy::BYTES + KeyEntries::cost(key.bytes().len()));
        let room = charge.and_then(|charge| Some((charge, self.room(place.shard)?)));
        let Some((mut charge, mut shard)) = room else {
            return Ok(match self.lookup(key, variant, now_ms) {
                CacheLookup::Object(object) if !is_rejected(&object) => {
                    FetchDecision::Object(object)
                }
                _ => FetchDecision::Alone(self.detached(key)),
            });
        };
        let began = self.bans.newest();
        let mut shape = VaryHashes::default();
        let mut shared = options.coalesce;
        shard.test_marker(place.h32, key.bytes(), &self.bans);
        if let Some(slot) = shard.find(place.h32, key.bytes()) {
            let best = choose(slot.variants(), variant, |spec, sig| shape.note(spec, sig));
            if let Some(object) = best.map(|at| &slot.variants()[at]).filter(|o| !is_rejected(o)) {
                let object = Arc::clone(object);
                return if object.passed() == began {
                    Ok(FetchDecision::Object(object))
                } else {
                    Err(object)
                };
            }
            shared &= !slot.is_hit_for_miss(now_ms, began);
            if shared && let Some(busy) = fetch_for(slot, &shape) {
                charge.shrink_to(TICKET_BYTES);
                let waiters_max = self.waiters_max.load(Ordering::Relaxed);
                let ticket = busy.join(waiters_max, Some(charge));
                return Ok(ticket.map_or(FetchDecision::Full, FetchDecision::Wait));
            }
        }
        let fetch = NewFetch { shape, shared, began };
        let busy = shard.enlist(place.h32, key, fetch, charge, now_ms);
        let cold = shard.cold(place.h32);
        Ok(match busy {
            Some(busy) if shared => FetchDecision::Lead(Lead::new(Arc::clone(self), busy, cold)),
            Some(busy) => FetchDecision::Alone(Lead::new(Arc::clone(self), busy, cold)),
            None => {
                drop(shard);
                FetchDecision::Alone(self.detached(key))
            }
        })
    }

    /// Begins a fetch that will replace `old`, which lookups find meanwhile. `None` if `old` has
    /// left the index, if a fetch of this variant is under way, or without memory.
    pub fn begin_refresh(self: &Arc<Self>, key: &KeyBuf, old: &Arc<Object>) -> Option<Lead<L>> {
        let place = self.place(key.hash());
        let charge = self.reserve(Busy::BYTES + KeyEntries::cost(key.bytes().len()))?;
        let mut shard = self.room(place.shard)?;
        let slot = shard.find(place.h32, key.bytes())?;
        let mut shape = VaryHashes::default();
        if let Some(vary) = old.vary() {
            shape.note(vary.spec, vary.signature);
        }
        let is_there = slot.variants().iter().any(|object| Arc::ptr_eq(object, old));
        if !is_there || fetch_for(slot, &shape).is_some() {
            return None;
        }
        let now_ms = self.seen_ms.load(Ordering::Relaxed);
        let fetch = NewFetch { shape, shared: true, began: self.bans.newest() };
        let busy = shard.enlist(place.h32, key, fetch, charge, now_ms)?;
        drop(shard);
        Some(Lead::new(Arc::clone(self), busy, Box::default()))
    }

    /// A fetch outside the index: it has no waiters and stores nothing.
    fn detached(self: &Arc<Self>, key: &KeyBuf) -> Lead<L> {
        let key_bytes = Arc::from(key.bytes());
        let place = self.place(key.hash());
        let cold = self.shared_shard(place.shard).cold(place.h32);
        let fetch = NewFetch { began: self.bans.newest(), ..NewFetch::default() };
        let busy = Busy::new(key_bytes, key.hash(), fetch, None);
        Lead::detached(Arc::clone(self), Arc::new(busy), cold)
    }
}

pub(crate) fn fetch_for<'a>(slot: &'a IndexSlot, shape: &VaryHashes) -> Option<&'a Arc<Busy>> {
    match slot {
        IndexSlot::One(..) => None,
        IndexSlot::Many(_, more) => more.leads.iter().find(|busy| busy.is_for(shape)),
    }
}
