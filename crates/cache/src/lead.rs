//! A lead: the duty to finish or fail the fetch that a busy object stands for. A lead must never
//! end without an outcome for its waiters.

use std::sync::Arc;

use base::Account;
use bytes::Bytes;
use message::Trailers;
use message::store::Permit;

use crate::borrowed_body::BorrowedBody;
use crate::busy::{Busy, WaiterOutcome};
use crate::cache::Cache;
use crate::charged_bytes::{CHUNK_OVERHEAD, ChargedBytes, ChunkReservation};
use crate::content::{CompleteBody, ExternalBody};
use crate::fill::{Fill, WindowLimit};
use crate::forms::EncodedForms;
use crate::index_state::IndexState;
use crate::ledger::{Charge, count};
use crate::lower::{Lower, MemoryOnly};
use crate::object::Object;
use crate::object_writer::{BODY_BYTES, ObjectWriter, STATE_BYTES, StoreRefusal};
use crate::record::{NewObject, Record};
use crate::shard::{DisplacedResponses, LowerRemovals, RemovedObjects, ReplacedResponse};
use crate::size;
use crate::slot::Marker;
use crate::variant::Variant;

/// The largest body that is copied when a 304 gives it a new head. A larger body is shared, which
/// keeps the old head in memory.
const COPY_BYTES_MAX: u64 = 16 * 1024;

/// The body of a response that is served from the lower tier.
#[derive(Debug)]
pub enum LowerTierBody {
    /// All of the body, as it was read.
    Whole(Vec<Bytes>),
    /// A body that is read while it is sent.
    External(Arc<dyn ExternalBody>),
}

impl LowerTierBody {
    /// Bytes to reserve for the body, except those of its chunks.
    fn cost(&self) -> u64 {
        match self {
            Self::Whole(_) => CompleteBody::OTHER_BYTES,
            Self::External(body) => CompleteBody::elsewhere_bytes(&**body),
        }
    }

    fn pieces_cost(&self) -> u64 {
        match self {
            Self::Whole(pieces) => {
                pieces.iter().map(|it| size::class(it.len()) + CHUNK_OVERHEAD).sum()
            }
            Self::External(_) => 0,
        }
    }

    /// The complete body. Each chunk takes its part of `charge`.
    fn complete(self, mut charge: Charge) -> CompleteBody {
        let cost = self.pieces_cost();
        match self {
            Self::Whole(pieces) => {
                let charged = pieces.into_iter().map(|piece| {
                    let own = charge.split(size::class(piece.len()) + CHUNK_OVERHEAD);
                    ChargedBytes::into_bytes(piece, ChunkReservation::Stored(own))
                });
                CompleteBody::many(charged.collect(), cost)
            }
            Self::External(body) => CompleteBody::elsewhere(body),
        }
    }
}

/// The duty to fetch, and to give the waiters an outcome. Dropping it is [`Lead::fail`].
#[derive(Debug)]
#[must_use = "dropping a lead fails everybody who waits for it"]
pub struct Lead<L: Lower = MemoryOnly> {
    cache: Arc<Cache<L>>,
    busy: Arc<Busy>,
    owing: bool,
    /// The window of a body that is not stored. `None` for the configured window, on no client's
    /// account.
    window_limit: Option<WindowLimit>,
    /// The places of this key in the lower tier when the fetch began.
    cold: Box<[L::Place]>,
    /// The places among them that do not answer this fetch.
    kept_below: Vec<L::Place>,
    /// The stored response that the fetch renews.
    old: Option<Arc<Object>>,
    /// True if the fetch is outside the index.
    is_detached: bool,
}

impl<L: Lower> Lead<L> {
    pub(crate) fn new(cache: Arc<Cache<L>>, busy: Arc<Busy>, cold: Box<[L::Place]>) -> Self {
        Self {
            cache,
            busy,
            owing: true,
            window_limit: None,
            cold,
            kept_below: Vec::new(),
            old: None,
            is_detached: false,
        }
    }

    /// [`Lead::new`] for a fetch outside the index.
    pub(crate) fn detached(cache: Arc<Cache<L>>, busy: Arc<Busy>, cold: Box<[L::Place]>) -> Self {
        let mut lead = Self::new(cache, busy, cold);
        lead.is_detached = true;
        lead
    }

    /// Returns true if the index had no room for the fetch: it has no waiters, and its response is
    /// not stored. Responses of the lower tier can be served.
    pub fn is_detached(&self) -> bool {
        self.is_detached
    }

    /// Returns true if requests wait for this fetch.
    pub fn is_watched(&self) -> bool {
        self.busy.is_watched()
    }

    /// The key that is fetched.
    pub fn key(&self) -> &[u8] {
        &self.busy.key
    }

    /// The key's hash.
    pub fn hash(&self) -> u64 {
        self.busy.hash
    }

    /// Sets the window of a body that turns out not to be stored, and its client.
    pub fn set_window_limit(&mut self, window_limit: WindowLimit) {
        self.window_limit = Some(window_limit);
    }

    /// The places in the lower tier that may have the response, to be read before any origin is
    /// asked. Some may belong to other variants, or by a collision to another key.
    pub fn cold(&self) -> &[L::Place] {
        &self.cold
    }

    /// Keeps the response at `place` when the response of this fetch is stored, because it belongs
    /// to another variant or another key.
    pub fn spare(&mut self, place: L::Place) {
        self.kept_below.push(place);
    }

    /// Sets the stored response that the fetch renews. The new response replaces it, unless it
    /// confirms it ([`Lead::freshen`]) or does not concern it ([`Lead::refuse`], [`Lead::fail`]).
    pub fn renews(&mut self, old: &Arc<Object>) {
        self.old = Some(Arc::clone(old));
    }

    /// Stores the response, whose body is to be pushed now, and gives it to the waiters. This ends
    /// the lead.
    ///
    /// An invalidation since the fetch began keeps the response out of the index, but not from the
    /// waiters, which call [`Cache::may_use`]. A body that is declared too large, or a head without
    /// memory, makes a window from the start, which is not stored and not given to waiters. If the
    /// body is too large, the key is marked hit-for-miss.
    pub fn store(
        self,
        _permit: Permit,
        new: NewObject,
        vary: Option<Variant<'_>>,
    ) -> ObjectWriter<L> {
        self.put(new, vary)
    }

    /// Stores a mark instead of a response: without head and body, it directs requests until it
    /// ends.
    pub fn mark(self, mark: NewObject, vary: Option<Variant<'_>>) {
        debug_assert!(mark.flags.is_mark(), "{mark:?}");
        let (head, etag) = (Box::default(), None);
        let mark = NewObject { head, etag, last_modified: None, length: Some(0), ..mark };
        _ = self.put(mark, vary).finish();
    }

    fn put(self, new: NewObject, vary: Option<Variant<'_>>) -> ObjectWriter<L> {
        let cost = Object::cost(&new, &self.busy.key, vary);
        let (length, passed) = (new.length, self.busy.began);
        self.begin_body(cost, length, None, |lead| Record::new(&new, &lead.busy.key, vary, passed))
    }

    /// Stores a response with an external body, and gives it to the waiters. They get it even if it
    /// is not stored, for the returned reason.
    pub fn store_elsewhere(
        mut self,
        _permit: Permit,
        new: &NewObject,
        vary: Option<Variant<'_>>,
        body: Arc<dyn ExternalBody>,
    ) -> (Arc<Object>, Option<StoreRefusal>) {
        let record = Record::new(new, &self.busy.key, vary, self.busy.began);
        let (object, has_room) = self.elsewhere(record, body, None);
        let refused = if has_room {
            self.admit(&object, None).err()
        } else {
            self.remove_fetch(None, true);
            Some(StoreRefusal::NoRoom)
        };
        self.conclude(WaiterOutcome::Ready(Arc::clone(&object)));
        (object, refused)
    }

    /// [`Lead::store`] for a response from `place` in the lower tier, with a body of this length.
    /// It replaces the cold entry, unless the entry has been removed.
    ///
    /// # Errors
    /// The fetch continues: the record belongs to another key, or is banned.
    pub fn refill(
        self,
        _permit: Permit,
        place: L::Place,
        record: Record,
        length: u64,
    ) -> Result<ObjectWriter<L>, Self> {
        match self.may_raise(record) {
            Ok(record) => {
                let cost = Object::cost_of(&record);
                Ok(self.begin_body(cost, Some(length), Some(place), |_| record))
            }
            Err(()) => Err(self),
        }
    }

    /// [`Lead::refill`] for a body that stays in the lower tier. The response is an object in the
    /// index, and is evicted without a write.
    ///
    /// # Errors
    /// As [`Lead::refill`].
    pub fn raise_head(
        mut self,
        _permit: Permit,
        place: L::Place,
        record: Record,
        body: Arc<dyn ExternalBody>,
        trailers: Option<Trailers>,
    ) -> Result<Arc<Object>, Self> {
        let Ok(record) = self.may_raise(record) else { return Err(self) };
        let (object, has_room) = self.elsewhere(record, body, trailers);
        if has_room {
            _ = self.admit(&object, Some(place));
        } else {
            self.leave();
        }
        self.conclude(WaiterOutcome::Ready(Arc::clone(&object)));
        Ok(object)
    }

    /// Returns true if the lower tier's response of this key should be promoted to memory: memory
    /// is not full, or the key was requested a short while ago. Otherwise remembers the key; the
    /// response should be served from below ([`Lead::serve_from_lower`]), so that it does not evict
    /// more popular objects.
    pub fn should_promote(&self) -> bool {
        if self.is_detached {
            return false;
        }
        let place = self.cache.place(self.busy.hash);
        self.cache.has_room() || self.cache.shard(place.shard).meet(place.h32)
    }

    /// Gives a response of the lower tier to this request and its waiters, and leaves it at
    /// `place`, out of memory. `None` if it has left the index meanwhile.
    ///
    /// # Errors
    /// As [`Lead::refill`], and without memory.
    pub fn serve_from_lower(
        mut self,
        _permit: Permit,
        place: L::Place,
        record: Record,
        body: LowerTierBody,
        trailers: Option<Trailers>,
    ) -> Result<Option<Arc<Object>>, Self> {
        let Ok(record) = self.may_raise(record) else { return Err(self) };
        let pieces_cost = body.pieces_cost();
        let behind_cost = trailers.as_ref().map_or(0, CompleteBody::trailed_bytes);
        let cost = Object::cost_of(&record) + body.cost() + behind_cost;
        let Some(mut charge) = self.cache.reserve(cost + pieces_cost) else { return Err(self) };
        let pieces_charge = charge.split(pieces_cost);
        let object = self.make(record, Some(charge), None);
        object.complete(behind(body.complete(pieces_charge), trailers));
        // Otherwise an invalidation has removed it, or a newer response has replaced it.
        let is_there = {
            let at = self.cache.place(self.busy.hash);
            let mut shard = self.cache.shard(at.shard);
            let is_there = shard.places(at.h32).any(|other| other == place);
            (shard.leave(at.h32, &self.busy) || self.is_detached) && is_there
        } && self.cache.may_use(&object);
        object.expire(self.busy.soft_until());
        // No lookup counts this hit.
        object.index_state.touch();
        self.conclude(WaiterOutcome::Ready(Arc::clone(&object)));
        Ok(is_there.then_some(object))
    }

    /// The object with an external body, and false if there is no memory for it.
    fn elsewhere(
        &self,
        record: Record,
        body: Arc<dyn ExternalBody>,
        trailers: Option<Trailers>,
    ) -> (Arc<Object>, bool) {
        let behind_cost = trailers.as_ref().map_or(0, CompleteBody::trailed_bytes);
        let body_cost = CompleteBody::elsewhere_bytes(&*body) + behind_cost;
        let cost = Object::cost_of(&record) + body_cost;
        let charge = self.cache.reserve(cost);
        let has_room = charge.is_some();
        count(&self.cache.ledger().refused, u64::from(!has_room));
        let object = self.make(record, charge, None);
        object.complete(behind(CompleteBody::elsewhere(body), trailers));
        (object, has_room)
    }

    /// The record, if it belongs to this key and is not banned.
    fn may_raise(&self, record: Record) -> Result<Record, ()> {
        let is_key = record.key() == &*self.busy.key;
        if is_key && self.cache.bans.may_raise(&record) { Ok(record) } else { Err(()) }
    }

    /// Stores a response with a body to be pushed, of this `length` if that is known. `record`
    /// makes the record, for `cost` bytes. `place` is its place in the lower tier.
    fn begin_body(
        mut self,
        cost: u64,
        length: Option<u64>,
        place: Option<L::Place>,
        record: impl FnOnce(&Self) -> Record,
    ) -> ObjectWriter<L> {
        let config = self.cache.config();
        let window_limit = self.window_limit.take().unwrap_or_else(|| WindowLimit {
            bytes: config.window_bytes,
            account: Account::open(self.cache.memory(), u64::MAX),
        });
        let bytes_max = config.object_bytes_max.min(config.budget_bytes);
        let fits = length.is_none_or(|length| length <= bytes_max);
        let charge = if fits { self.cache.reserve(cost + BODY_BYTES) } else { None };
        let Some(mut charge) = charge else {
            let fill = Arc::new(Fill::new(length, Some(window_limit), None));
            let object = self.make(record(&self), None, Some(Arc::clone(&fill)));
            object.index_state.set_broken();
            count(&self.cache.ledger().refused, 1);
            count(&self.cache.ledger().too_large, u64::from(!fits));
            let why = if fits { StoreRefusal::NoRoom } else { StoreRefusal::TooLarge };
            self.refuse_for(why.is_lasting().then_some(None), true);
            return ObjectWriter::passing(
                Arc::clone(&self.cache),
                object,
                fill,
                self.busy.hash,
                why,
            );
        };
        let fill_charge = charge.split(STATE_BYTES);
        let spare = charge.split(CompleteBody::OTHER_BYTES);
        let fill = Arc::new(Fill::new(length, None, Some(fill_charge)));
        let object = self.make(record(&self), Some(charge), Some(Arc::clone(&fill)));
        let refused = self.admit(&object, place).err();
        self.conclude(WaiterOutcome::Ready(Arc::clone(&object)));
        let (cache, hash) = (Arc::clone(&self.cache), self.busy.hash);
        ObjectWriter::kept(cache, object, fill, hash, refused, spare, window_limit)
    }

    /// Ends the fetch with a response for this request only, which does not concern stored ones.
    /// The waiters fetch alone. With a time, requests do not wait for each other until then.
    pub fn refuse(mut self, hit_for_miss_until_ms: Option<u64>) {
        self.refuse_for(hit_for_miss_until_ms.map(Some), false);
    }

    /// [`Lead::refuse`], and removes the response that the fetch was to renew, unless this fetch
    /// has been invalidated.
    pub fn supersede(mut self, hit_for_miss_until_ms: Option<u64>) {
        self.refuse_for(hit_for_miss_until_ms.map(Some), true);
    }

    /// [`Lead::refuse`] with a response after which the next one may be stored: requests wait for
    /// each other again.
    pub fn unmark(mut self) {
        let place = self.cache.place(self.busy.hash);
        self.cache.shard(place.shard).unmark(place.h32, &self.busy.key);
        self.refuse_for(None, false);
    }

    /// Gives the fetch up before anything was asked. The waiters begin again, and one of them
    /// leads.
    pub fn hand_back(mut self) {
        self.leave();
        self.conclude(WaiterOutcome::Again);
    }

    /// Ends a failed fetch, and passes the failure to the waiters.
    pub fn fail(mut self) {
        self.give_up();
    }

    /// Stores the body of `old` with the new head and lifetimes of a 304, in place of `old`, and
    /// gives it to the waiters.
    ///
    /// It stays out of the index if `old` has left the index, if this fetch was invalidated
    /// meanwhile, or if the body of `old` is incomplete. The waiters are refused then.
    pub fn freshen(
        mut self,
        _permit: Permit,
        old: &Arc<Object>,
        new: NewObject,
        vary: Option<Variant<'_>>,
    ) -> Arc<Object> {
        let (object, has_room) = self.with_head(old, &new, vary);
        let stored = if has_room {
            self.admit_as(&object, ReplacedResponse::Confirmed(old), None)
        } else {
            count(&self.cache.ledger().refused, 1);
            self.leave();
            Err(StoreRefusal::NoRoom)
        };
        // A waiter may have come after an invalidation that removed `old`, even if this fetch began
        // after that, too.
        let is_true = match stored {
            Ok(()) => true,
            Err(StoreRefusal::NoRoom) => old.is_live() && self.cache.may_use(old),
            Err(_) => false,
        };
        self.conclude(if is_true {
            WaiterOutcome::Ready(Arc::clone(&object))
        } else {
            WaiterOutcome::Refused
        });
        object
    }

    /// Ends a fetch whose 304 has a head for this request only. Returns a response that is in no
    /// index. `old` leaves the index if `ends`. The waiters fetch alone; with a time, requests do
    /// not wait for each other until then.
    pub fn confirm_for_one(
        mut self,
        old: &Arc<Object>,
        new: &NewObject,
        ends: bool,
        hit_for_miss_until_ms: Option<u64>,
    ) -> Arc<Object> {
        self.old = Some(Arc::clone(old));
        let (object, _) = self.with_head(old, new, None);
        self.refuse_for(hit_for_miss_until_ms.map(Some), ends);
        object
    }

    /// The body of `old` with a new head and new lifetimes, and false if there is no memory for it.
    fn with_head(
        &self,
        old: &Arc<Object>,
        new: &NewObject,
        vary: Option<Variant<'_>>,
    ) -> (Arc<Object>, bool) {
        let cost = Object::cost(new, &self.busy.key, vary);
        // Existing forms and trailers stay with the body.
        let stays = old.forms().is_some_and(EncodedForms::is_begun) || old.trailers().is_some();
        let copied = match old.whole() {
            Some(_) if !stays && let Some(body) = old.body_in_common() => {
                let charge = self.cache.reserve(cost + CompleteBody::OTHER_BYTES);
                charge.map(|charge| (charge, body))
            }
            Some(BorrowedBody::One(bytes)) if bytes.len() as u64 <= COPY_BYTES_MAX && !stays => {
                let copy = size::class(bytes.len());
                match new.flags.may_have_forms() {
                    false => (self.cache.reserve(cost + copy))
                        .map(|charge| (charge, CompleteBody::One(bytes.into()))),
                    true => (self.cache.reserve(cost + copy + CompleteBody::OTHER_BYTES))
                        .map(|charge| (charge, CompleteBody::formed(bytes.into()))),
                }
            }
            _ => None,
        };
        let (charge, body) = match copied {
            Some((charge, body)) => (Some(charge), body),
            None => (
                self.cache.reserve(cost + CompleteBody::OTHER_BYTES),
                CompleteBody::shared(old.body_keeper()),
            ),
        };
        let has_room = charge.is_some();
        let record = Record::new(new, &self.busy.key, vary, self.busy.began);
        let object = self.make(record, charge, None);
        object.complete(body);
        if let Some(plain) = old.plain_length() {
            object.note_plain_length(plain);
        }
        (object, has_room)
    }

    /// Replaces `old` by `new` with this complete body, which has `plain` bytes without its coding:
    /// the same response in another form. `old` has no trailers. Returns false if `old` has left
    /// the index, if this fetch was invalidated meanwhile, or without memory.
    pub fn replace_form(
        mut self,
        old: &Arc<Object>,
        new: &NewObject,
        body: Vec<u8>,
        plain: u64,
    ) -> bool {
        let (body, vary) = (body.into_boxed_slice(), old.vary());
        let cost = Object::cost(new, &self.busy.key, vary);
        let charge = self.cache.reserve(cost + size::class(body.len()) + CompleteBody::OTHER_BYTES);
        let Some(charge) = charge else {
            self.leave();
            self.conclude(WaiterOutcome::Refused);
            return false;
        };
        let record = Record::new(new, &self.busy.key, vary, self.busy.began);
        let object = self.make(record, Some(charge), None);
        object.complete(CompleteBody::formed(body));
        object.note_plain_length(plain);
        object.set_sinks(old.sinks());
        object.count_on(old);
        let is_put = self.admit_as(&object, ReplacedResponse::Confirmed(old), None).is_ok();
        self.conclude(if is_put { WaiterOutcome::Ready(object) } else { WaiterOutcome::Refused });
        is_put
    }

    /// The object. Without a charge it returns no bytes and must not enter the index.
    fn make(&self, record: Record, charge: Option<Charge>, fill: Option<Arc<Fill>>) -> Arc<Object> {
        let index_state = IndexState::new(self.cache.next_id(), charge.map(Charge::into_ledger));
        Arc::new(Object::new(record, index_state, fill))
    }

    /// Puts the object into the index, in place of the one that the fetch renews, unless an
    /// invalidation or lack of memory forbids it. A response `from` the lower tier renews nothing.
    fn admit(&self, object: &Arc<Object>, from: Option<L::Place>) -> Result<(), StoreRefusal> {
        let old = self.old.as_ref().filter(|_| from.is_none());
        self.admit_as(
            object,
            old.map_or(ReplacedResponse::Nothing, ReplacedResponse::Renewed),
            from,
        )
    }

    fn admit_as(
        &self,
        object: &Arc<Object>,
        before: ReplacedResponse<'_>,
        from: Option<L::Place>,
    ) -> Result<(), StoreRefusal> {
        let place = self.cache.place(self.busy.hash);
        let variants_max = self.cache.config().max_variants;
        let mut dead = RemovedObjects::new();
        let stored = loop {
            let both = [Some(object), before.confirmed()];
            if !both.into_iter().flatten().all(|it| self.cache.may_use(it)) {
                self.leave();
                break Err(StoreRefusal::Invalidated);
            }
            let Some(mut shard) = self.cache.room(place.shard) else {
                count(&self.cache.ledger().refused, 1);
                self.remove_fetch(None, before.confirmed().is_none());
                break Err(StoreRefusal::NoRoom);
            };
            // A sweep may have passed since: an object that enters behind it must be tested.
            if object.passed() != self.cache.bans.newest() {
                continue;
            }
            let (h32, busy) = (place.h32, &self.busy);
            if from.is_some_and(|from| !shard.places(h32).any(|place| place == from)) {
                // A newer response has replaced it, or it was invalidated.
                shard.leave(h32, busy);
                break Err(StoreRefusal::Invalidated);
            }
            // Other entries beside a promoted response belong to other variants.
            let leaving =
                from.map_or(LowerRemovals::AllBut(&self.kept_below), LowerRemovals::Raised);
            let gone = DisplacedResponses { before, leaving };
            let admitted = shard.admit(h32, busy, object, gone, variants_max, &mut dead);
            break admitted.then_some(()).ok_or(StoreRefusal::Invalidated);
        };
        count(&self.cache.ledger().stores, u64::from(stored.is_ok()));
        stored
    }

    fn leave(&self) {
        self.remove_fetch(None, false);
    }

    /// Removes the fetch from the index and leaves the marker, if any. If `ends`, the object that
    /// the fetch was to renew leaves the index too, unless the fetch was invalidated.
    fn remove_fetch(&self, marker: Option<Marker>, ends: bool) {
        let place = self.cache.place(self.busy.hash);
        let mut dead = RemovedObjects::new();
        let mut shard = self.cache.shard(place.shard);
        let left = match marker {
            Some(marker) => shard.leave_marked(place.h32, &self.busy, marker),
            None => shard.leave(place.h32, &self.busy),
        };
        if let Some(old) = self.old.as_ref().filter(|_| left && ends)
            && !shard.expel(place.h32, old, &mut dead)
        {
            // It has been demoted meanwhile, or was served from the lower tier.
            shard.forget_cold(place.h32, LowerRemovals::AllBut(&self.kept_below));
        }
        drop(shard);
    }

    /// Refuses the waiters, with a marker for the given or the configured time if `marked`. If
    /// `ends`, the object that the fetch was to renew leaves the index.
    fn refuse_for(&mut self, marked: Option<Option<u64>>, ends: bool) {
        let marker = marked.map(|until_ms| self.cache.marker(until_ms, self.busy.began));
        self.remove_fetch(marker, ends);
        self.conclude(WaiterOutcome::Refused);
    }

    fn give_up(&mut self) {
        if self.owing {
            self.leave();
            self.conclude(WaiterOutcome::Failed);
        }
    }

    fn conclude(&mut self, outcome: WaiterOutcome) {
        // Also for an object that is not stored: a request that waits since a soft purge must get
        // it stale.
        if let WaiterOutcome::Ready(object) = &outcome {
            object.expire(self.busy.soft_until());
        }
        self.owing = false;
        self.busy.conclude(outcome);
    }
}

/// The body, followed by its trailers, if it has any.
fn behind(body: CompleteBody, trailers: Option<Trailers>) -> CompleteBody {
    match trailers {
        Some(trailers) => body.trailed(trailers),
        None => body,
    }
}

impl<L: Lower> Drop for Lead<L> {
    fn drop(&mut self) {
        self.give_up();
    }
}
