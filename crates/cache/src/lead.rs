//! The duty to fetch.

use std::sync::Arc;

use crate::busy::{Busy, Waited};
use crate::cache::Cache;
use crate::content::{Complete, Elsewhere};
use crate::fill::{Fill, Passage};
use crate::filling::{Filling, NotKept};
use crate::ledger::{Charge, count};
use crate::object::{Making, Object};
use crate::pieces::Whole;
use crate::record::NewObject;
use crate::shard::Dead;
use crate::size;
use crate::variant::Variant;

/// Up to this size a body is copied when a 304 gives it a new head; a larger one is shared, which
/// keeps the old head in memory.
const COPY_BYTES_MAX: u64 = 16 * 1024;

/// Whoever holds it fetches, and owes those who wait an answer. Dropping it is [`Lead::fail`].
#[derive(Debug)]
#[must_use = "dropping a lead fails everybody who waits for it"]
pub struct Lead {
    cache: Arc<Cache>,
    busy: Arc<Busy>,
    owing: bool,
    /// The window of a body that is not kept; the configured one when it is not set.
    passage: Option<Passage>,
}

impl Lead {
    pub(crate) fn new(cache: Arc<Cache>, busy: Arc<Busy>) -> Self {
        Self { cache, busy, owing: true, passage: None }
    }

    /// Whether others wait for this fetch.
    pub fn is_watched(&self) -> bool {
        self.busy.is_watched()
    }

    /// Says what the body may hold if it turns out not to be kept, and for whom.
    pub fn passes_by(&mut self, passage: Passage) {
        self.passage = Some(passage);
    }

    /// Stores the response, whose body is now to be pushed, and gives it to those who wait.
    ///
    /// An invalidation since the fetch began keeps it out of the index, not from those who waited;
    /// they ask [`Cache::may_use`].
    /// A body that is declared too large, or a head for which there is no memory, makes it a window
    /// from the start: not stored, refused to those who wait, and the key is marked hit-for-miss.
    pub fn store(mut self, new: NewObject, vary: Option<Variant<'_>>) -> Filling {
        let config = self.cache.config();
        let passage = self.passage.take().unwrap_or_else(|| config.window_bytes.into());
        let bytes_max = config.object_bytes_max.min(config.budget_bytes);
        let fits = new.length.is_none_or(|length| length <= bytes_max);
        let cost = Object::cost(&new, &self.busy.key, vary);
        let charge = if fits { self.cache.reserve(cost + Filling::BYTES) } else { None };
        let Some(mut charge) = charge else {
            let fill = Arc::new(Fill::new(new.length, Some(passage), None));
            let object = self.make(&new, vary, None, Some(Arc::clone(&fill)));
            object.standing.set_broken();
            count(&self.cache.ledger().refused, 1);
            self.refuse_for(Some(None));
            count(&self.cache.ledger().too_large, u64::from(!fits));
            let why = if fits { NotKept::NoRoom } else { NotKept::TooLarge };
            return Filling::passing(Arc::clone(&self.cache), object, fill, self.busy.hash, why);
        };
        let fill_charge = charge.split(Filling::STATE_BYTES);
        let spare = charge.split(Complete::OTHER_BYTES);
        let fill = Arc::new(Fill::new(new.length, None, Some(fill_charge)));
        let object = self.make(&new, vary, Some(charge), Some(Arc::clone(&fill)));
        let refused = self.admit(&object, None).err();
        self.conclude(Waited::Ready(Arc::clone(&object)));
        let parts = (spare, passage);
        Filling::kept(Arc::clone(&self.cache), object, fill, self.busy.hash, refused, parts)
    }

    /// Stores the response, whose body is complete and not in memory, and gives it to those who
    /// wait. As [`Lead::store`], an invalidation keeps it out of the index, as want of memory does.
    pub fn store_elsewhere(
        mut self,
        new: NewObject,
        vary: Option<Variant<'_>>,
        body: Arc<dyn Elsewhere>,
    ) -> Arc<Object> {
        let charge =
            self.cache.reserve(Object::cost(&new, &self.busy.key, vary) + Complete::OTHER_BYTES);
        let reserved = charge.is_some();
        let object = self.make(&new, vary, charge, None);
        object.complete(Complete::elsewhere(body));
        if reserved {
            _ = self.admit(&object, None);
        } else {
            count(&self.cache.ledger().refused, 1);
            self.leave();
        }
        self.conclude(Waited::Ready(Arc::clone(&object)));
        object
    }

    /// The response is for the one who asked only; those who wait fetch for themselves. With a
    /// time, others do not wait for each other until then.
    pub fn refuse(mut self, hit_for_miss_until_ms: Option<u64>) {
        self.refuse_for(hit_for_miss_until_ms.map(Some));
    }

    /// As [`Lead::refuse`] without a time; `old`, in whose place the response stands, leaves the
    /// index with it. It stays when this fetch was invalidated.
    pub fn supersede(mut self, old: &Arc<Object>) {
        let place = self.cache.place(self.busy.hash);
        let mut dead = Dead::new();
        let mut shard = self.cache.shard(place.shard);
        if shard.leave(place.h32, &self.busy) {
            shard.expel(place.h32, old, &mut dead);
        }
        drop(shard);
        self.conclude(Waited::Refused);
    }

    /// The fetch failed; those who wait are told so.
    pub fn fail(mut self) {
        self.give_up();
    }

    /// The origin confirmed `old` (304): its body with a new head and new numbers takes its place
    /// in the index, in one step, and is given to those who wait.
    ///
    /// It stays out of the index when `old` has left that or this fetch was invalidated meanwhile,
    /// or when `old`'s body is still coming and was aborted. Those who wait are refused then.
    pub fn freshen(
        mut self,
        old: &Arc<Object>,
        new: NewObject,
        vary: Option<Variant<'_>>,
    ) -> Arc<Object> {
        let cost = Object::cost(&new, &self.busy.key, vary);
        let copied = match old.whole() {
            Some(Whole::One(bytes)) if bytes.len() as u64 <= COPY_BYTES_MAX => self
                .cache
                .reserve(cost + size::class(bytes.len()))
                .map(|charge| (charge, Complete::One(bytes.into()))),
            _ => None,
        };
        let (charge, body) = match copied {
            Some((charge, body)) => (Some(charge), body),
            None => (
                self.cache.reserve(cost + Complete::OTHER_BYTES),
                Complete::shared(old.body_keeper()),
            ),
        };
        let reserved = charge.is_some();
        let object = self.make(&new, vary, charge, None);
        object.complete(body);
        let stored = if reserved {
            self.admit(&object, Some(old))
        } else {
            count(&self.cache.ledger().refused, 1);
            self.leave();
            Err(NotKept::NoRoom)
        };
        // Who waits may have come after an invalidation that took `old` away, even when this fetch
        // began after it, too.
        let is_true = match stored {
            Ok(()) => true,
            Err(NotKept::NoRoom) => old.is_live() && self.cache.may_use(old),
            Err(_) => false,
        };
        self.conclude(if is_true { Waited::Ready(Arc::clone(&object)) } else { Waited::Refused });
        object
    }

    /// The object; without a charge it gives nothing back, and must not come into the index.
    fn make(
        &self,
        new: &NewObject,
        vary: Option<Variant<'_>>,
        charge: Option<Charge>,
        fill: Option<Arc<Fill>>,
    ) -> Arc<Object> {
        Arc::new(Object::new(
            new,
            Making {
                key: &self.busy.key,
                vary,
                id: self.cache.next_id(),
                ledger: charge.map(Charge::into_ledger),
                fill,
                passed: self.busy.began,
            },
        ))
    }

    /// Puts the object into the index, unless an invalidation or want of memory forbids it.
    fn admit(&self, object: &Arc<Object>, replaced: Option<&Arc<Object>>) -> Result<(), NotKept> {
        let place = self.cache.place(self.busy.hash);
        let variants_max = self.cache.config().max_variants;
        let mut dead = Dead::new();
        let stored = loop {
            if ![Some(object), replaced].into_iter().flatten().all(|it| self.cache.may_use(it)) {
                self.leave();
                break Err(NotKept::Invalidated);
            }
            let Some(mut shard) = self.cache.room(place.shard) else {
                count(&self.cache.ledger().refused, 1);
                self.leave();
                break Err(NotKept::NoRoom);
            };
            // A sweep may have been here since: it must not miss what comes in behind it.
            if object.passed() == self.cache.bans.newest() {
                let (h32, busy) = (place.h32, &self.busy);
                break shard
                    .admit(h32, busy, object, replaced, variants_max, &mut dead)
                    .then_some(())
                    .ok_or(NotKept::Invalidated);
            }
        };
        count(&self.cache.ledger().stores, u64::from(stored.is_ok()));
        stored
    }

    fn leave(&self) {
        let place = self.cache.place(self.busy.hash);
        self.cache.shard(place.shard).leave(place.h32, &self.busy);
    }

    /// Refuses, with a marker for the given or for the configured time if there is to be one.
    fn refuse_for(&mut self, marked: Option<Option<u64>>) {
        match marked {
            Some(until_ms) => {
                let marker = self.cache.marker(until_ms);
                let place = self.cache.place(self.busy.hash);
                self.cache.shard(place.shard).leave_marked(place.h32, &self.busy, marker);
            }
            None => self.leave(),
        }
        self.conclude(Waited::Refused);
    }

    fn give_up(&mut self) {
        if self.owing {
            self.leave();
            self.conclude(Waited::Failed);
        }
    }

    fn conclude(&mut self, outcome: Waited) {
        self.owing = false;
        self.busy.conclude(outcome);
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        self.give_up();
    }
}
