//! A shard of the index: keys and their entries, with the queues that select what is evicted
//! ([`eviction`]).
//!
//! A shard must never drop an object under its lock: removed objects are handed out, to be dropped
//! without it.

mod cold_entries;
mod eviction;
mod lower_removals;
mod pages;
mod queue;
mod table;
#[cfg(test)]
mod tests;
mod work;

pub(crate) use eviction::{Effort, EvictionOutcome};
pub(crate) use lower_removals::LowerRemovals;
pub(crate) use pages::ColdEntry;
pub(crate) use table::Position;
pub(crate) use work::Work;

use std::sync::Arc;

use base::KeyBuf;
use hashbrown::hash_table::OccupiedEntry;

use self::pages::Pages;
use self::queue::{Queue, Token};
use self::table::ShardTable;
use crate::bans::Bans;
use crate::borrowed_body::BorrowedBody;
use crate::busy::{Busy, NewFetch};
use crate::content::CompleteBody;
use crate::index_state::{LIVE, MAIN};
use crate::ledger::{Charge, Ledger, count, discount};
use crate::lower::Lower;
use crate::object::Object;
use crate::record::LifetimeUpdate;
use crate::slot::{IndexSlot, KeyEntries, Marker, is_same_variant};

/// Objects that have been removed from the index.
pub(crate) type RemovedObjects = Vec<Arc<Object>>;

/// The stored response that another one replaces, whatever it varies by.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ReplacedResponse<'a> {
    Nothing,
    /// A new response renews it.
    Renewed(&'a Arc<Object>),
    /// The new one shares its body, and is valid only while it is in the index.
    Confirmed(&'a Arc<Object>),
}

impl<'a> ReplacedResponse<'a> {
    fn object(self) -> Option<&'a Arc<Object>> {
        match self {
            Self::Nothing => None,
            Self::Renewed(object) | Self::Confirmed(object) => Some(object),
        }
    }

    pub(crate) fn confirmed(self) -> Option<&'a Arc<Object>> {
        match self {
            Self::Nothing | Self::Renewed(_) => None,
            Self::Confirmed(object) => Some(object),
        }
    }
}

/// The responses of a key that are removed when another enters the index.
#[derive(Debug)]
pub(crate) struct DisplacedResponses<'a, P> {
    /// The one in the index.
    pub(crate) before: ReplacedResponse<'a>,
    /// Those in the lower tier.
    pub(crate) leaving: LowerRemovals<'a, P>,
}

/// The location of a key: its shard, and the bits of its hash that distinguish the keys of a shard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyLocation {
    pub(crate) shard: usize,
    pub(crate) h32: u32,
}

impl KeyLocation {
    /// `shards` is a power of two.
    pub(crate) fn of(hash: u64, shards: usize) -> Self {
        Self { shard: hash as usize & (shards - 1), h32: (hash >> 32) as u32 }
    }
}

/// One shard of the index.
#[derive(Debug)]
pub(crate) struct Shard<L: Lower> {
    table: ShardTable,
    /// The cold entries, whose memory is beside the budget.
    cold: Pages<L::Place>,
    small: Queue,
    main: Queue,
    ghost: crate::ghost::Ghost,
    /// The charge for the table and the queues.
    charge: Charge,
    /// True while the table or a queue has grown and the former one may still take memory.
    is_growing: bool,
    pub(crate) work: Work,
    lower: Arc<L>,
}

impl<L: Lower> Shard<L> {
    pub(crate) fn new(ledger: &Arc<Ledger>, lower: &Arc<L>) -> Self {
        Self::with_layout(ledger, lower, 2)
    }

    fn with_layout(ledger: &Arc<Ledger>, lower: &Arc<L>, layout: u32) -> Self {
        Self {
            table: ShardTable::new(layout),
            cold: Pages::new(ledger.index()),
            small: Queue::default(),
            main: Queue::default(),
            ghost: crate::ghost::Ghost::default(),
            charge: Charge::empty(ledger),
            is_growing: false,
            work: Work::default(),
            lower: Arc::clone(lower),
        }
    }

    pub(crate) fn find(&self, h32: u32, key: &[u8]) -> Option<&IndexSlot> {
        self.table.find(h32, |slot| slot.is_of(h32, key))
    }

    fn find_mut(&mut self, h32: u32, key: &[u8]) -> Option<&mut IndexSlot> {
        self.table.find_mut(h32, |slot| slot.is_of(h32, key))
    }

    fn occupied(&mut self, h32: u32, key: &[u8]) -> Option<OccupiedEntry<'_, IndexSlot>> {
        self.table.find_entry(h32, |slot| slot.is_of(h32, key))
    }

    // Memory.

    /// Bytes to reserve for one more key or object; zero if it fits now.
    pub(crate) fn growth(&self) -> u64 {
        self.table.growth() + self.small.growth() + self.main.growth()
    }

    fn memory(&self) -> u64 {
        self.table.memory() + self.small.memory() + self.main.memory()
    }

    /// Grows what is full, as far as `charge` permits, and returns the rest of it.
    pub(crate) fn grow(&mut self, charge: Charge) {
        let mut spare = charge.bytes();
        self.charge.join(charge);
        let mut afford = |bytes: u64| {
            let affordable = bytes > 0 && bytes <= spare;
            spare -= if affordable { bytes } else { 0 };
            affordable
        };
        if afford(self.table.growth()) {
            self.work.add(self.table.grow());
        }
        for queue in [&mut self.small, &mut self.main] {
            if afford(queue.growth()) {
                self.work.add(queue.grow());
            }
        }
        debug_assert!(self.memory() <= self.charge.bytes(), "the index grew beyond its charge");
        self.is_growing = true;
        self.give_back();
    }

    /// Returns the memory of a former table or queue once it is empty.
    fn give_back(&mut self) {
        if self.is_growing {
            self.is_growing =
                self.table.is_moving() || self.small.is_moving() || self.main.is_moving();
            self.charge.shrink_to(self.memory());
        }
    }

    /// Makes room for one more key or object without eviction. Returns false if the budget has
    /// none.
    fn try_room(&mut self) -> bool {
        let growth = self.growth();
        if growth > 0 {
            match Charge::try_new(self.charge.ledger(), growth) {
                Some(charge) => self.grow(charge),
                None => return false,
            }
        }
        self.growth() == 0
    }

    // Fetches.

    /// Enters a fetch for `key`. The shard has room, and `charge` covers a [`Busy`] and a
    /// [`KeyEntries`]. `None` if the key's list of fetches would exceed the budget.
    pub(crate) fn enlist(
        &mut self,
        h32: u32,
        key: &KeyBuf,
        fetch: NewFetch,
        mut charge: Charge,
        now_ms: u64,
    ) -> Option<Arc<Busy>> {
        let (hash, key) = (key.hash(), key.bytes());
        let busy_charge = charge.split(Busy::BYTES);
        let is_key = |slot: &IndexSlot| slot.is_of(h32, key);
        let Some(mut entry) = self.table.find_entry(h32, is_key) else {
            let mut more =
                KeyEntries::new(Arc::from(key), charge.split(KeyEntries::cost(key.len())));
            let busy = Busy::new(Arc::clone(&more.key), hash, fetch, Some(busy_charge));
            let busy = Arc::new(busy);
            // A new list has room for two.
            more.leads.push(Arc::clone(&busy));
            self.work.add(self.table.insert(IndexSlot::Many(h32, Box::new(more))));
            self.give_back();
            return Some(busy);
        };
        let more = widen(entry.get_mut(), charge)?;
        if more.marker.is_some_and(|marker| marker.until_ms <= now_ms) {
            more.marker = None;
            self.small.weigh_less(KeyEntries::cost(key.len()));
            discount(&self.charge.ledger().markers, 1);
        }
        if !more.lead_room() {
            settle(entry);
            return None;
        }
        let busy = Arc::new(Busy::new(Arc::clone(&more.key), hash, fetch, Some(busy_charge)));
        more.leads.push(Arc::clone(&busy));
        Some(busy)
    }

    /// Removes a fetch. Returns false if an invalidation has removed it before.
    pub(crate) fn leave(&mut self, h32: u32, busy: &Arc<Busy>) -> bool {
        let Some(mut entry) = self.occupied(h32, &busy.key) else { return false };
        let left = remove_fetch(entry.get_mut(), busy);
        if left {
            settle(entry);
        }
        left
    }

    /// Replaces a fetch by a hit-for-miss marker. Returns false, without effect, if an invalidation
    /// has removed the fetch.
    pub(crate) fn leave_marked(&mut self, h32: u32, busy: &Arc<Busy>, marker: Marker) -> bool {
        let Some(slot) = self.find_mut(h32, &busy.key) else { return false };
        let left = remove_fetch(slot, busy);
        if left {
            self.mark(h32, &busy.key, marker);
            if let Some(entry) = self.occupied(h32, &busy.key) {
                settle(entry);
            }
        }
        left
    }

    /// Removes the marker of a key if a later ban may match the key.
    pub(crate) fn test_marker(&mut self, h32: u32, key: &[u8], bans: &Bans) {
        let newest = bans.newest();
        let Some(IndexSlot::Many(_, more)) = self.find_mut(h32, key) else { return };
        let Some(marker) = &mut more.marker else { return };
        if marker.passed >= newest {
            return;
        }
        if bans.exempts_key(key, marker.passed) {
            marker.passed = newest;
        } else {
            self.unmark(h32, key);
        }
    }

    /// Removes the marker of a key, if any.
    pub(crate) fn unmark(&mut self, h32: u32, key: &[u8]) {
        let Some(mut entry) = self.occupied(h32, key) else { return };
        let IndexSlot::Many(_, more) = entry.get_mut() else { return };
        if more.marker.take().is_some() {
            settle(entry);
            self.unmarked(key.len());
        }
    }

    /// Marks a key that has a [`KeyEntries`], if there is memory for the marker's token. An
    /// existing marker stays unchanged: another response that is not stored does not prolong it.
    fn mark(&mut self, h32: u32, key: &[u8], marker: Marker) {
        if !self.try_room() {
            return;
        }
        let Some(IndexSlot::Many(_, more)) = self.find_mut(h32, key) else { return };
        if more.marker.is_some() {
            return;
        }
        more.marker = Some(marker);
        self.work.add(self.small.push(Token { h32, id: marker.id }));
        self.small.weigh_more(KeyEntries::cost(key.len()));
        self.give_back();
        count(&self.charge.ledger().markers, 1);
    }

    /// Notes that a marker has left the table; its token is dead.
    fn unmarked(&mut self, key_len: usize) {
        self.small.weigh_less(KeyEntries::cost(key_len));
        discount(&self.charge.ledger().markers, 1);
    }

    // Objects.

    /// Puts the response of the fetch `busy` into the index. It replaces `gone` and what answers
    /// the same requests, and the key keeps at most `variants_max`. Returns false if the fetch has
    /// been invalidated. The shard has room.
    pub(crate) fn admit(
        &mut self,
        h32: u32,
        busy: &Arc<Busy>,
        object: &Arc<Object>,
        gone: DisplacedResponses<'_, L::Place>,
        variants_max: usize,
        dead: &mut RemovedObjects,
    ) -> bool {
        let DisplacedResponses { before, leaving } = gone;
        let first = dead.len();
        let Some(slot) = self.find_mut(h32, &busy.key) else { return false };
        if !remove_fetch(slot, busy) {
            return false;
        }
        if object.is_broken() || before.confirmed().is_some_and(|old| !old.is_live()) {
            // While the origin confirmed it, the body was aborted or the response left the index. A
            // response outside the index misses the invalidations of its key, so it must not come
            // back.
            if let Some(entry) = self.occupied(h32, &busy.key) {
                settle(entry);
            }
            return false;
        }
        // A fetch under way has made it so.
        let IndexSlot::Many(_, more) = slot else { return false };
        more.variants.retain(|old| {
            let stays = !is_same_variant(old, object)
                && !before.object().is_some_and(|before| Arc::ptr_eq(old, before));
            if !stays {
                dead.push(Arc::clone(old));
            }
            stays
        });
        let superseded = dead.len();
        // Before the new object enters: the tier might take the older object's copy for its copy.
        self.forget_for(h32, object, leaving, &dead[first..]);
        let Some(IndexSlot::Many(_, more)) = self.find_mut(h32, &busy.key) else { return false };
        while more.variants.len() >= variants_max.max(1)
            || !(more.variants.is_empty() || more.variant_room())
        {
            dead.push(more.variants.remove(0));
        }
        more.variants.push(Arc::clone(object));
        let unmarked = more.marker.take().is_some();
        object.expire(busy.soft_until());
        let over = (dead.len() - superseded) as u64;
        count(&self.charge.ledger().evictions, over);
        count(&self.charge.ledger().variants_over, over);
        if unmarked {
            self.unmarked(busy.key.len());
        }
        dead[superseded..].iter().for_each(|old| self.forget_copy(h32, old));
        self.note_removed(&dead[first..]);
        self.queue(h32, object);
        if let Some(entry) = self.occupied(h32, &busy.key) {
            settle(entry);
        }
        self.sift();
        true
    }

    /// Sets the complete body of `object`, and updates its weight in the queues.
    pub(crate) fn complete(&mut self, h32: u32, object: &Object, body: CompleteBody) {
        object.complete(body);
        self.reweigh(h32, object);
    }

    /// Bodies of `length` bytes that other variants of the key have, and that `object` could have,
    /// too; each once.
    pub(crate) fn common_bodies(
        &self,
        h32: u32,
        object: &Object,
        length: u64,
    ) -> Vec<CompleteBody> {
        let mut bodies: Vec<CompleteBody> = Vec::new();
        let slot = self.find(h32, object.key());
        for variant in slot.map_or(&[][..], IndexSlot::variants) {
            let Some(BorrowedBody::One(bytes)) = variant.whole() else { continue };
            let is_known = bodies.iter().any(|known| known.is_at(bytes));
            if bytes.len() as u64 == length && !is_known {
                bodies.extend(variant.body_in_common());
            }
        }
        bodies
    }

    /// Updates the weight of `object`, and of all objects that share its body, in the queues.
    pub(crate) fn reweigh(&mut self, h32: u32, object: &Object) {
        let Some(slot) = self.find(h32, object.key()) else { return };
        let (mut small, mut main) = (0, 0);
        let is_its = |variant: &&Arc<Object>| variant.shares_body(object);
        for variant in slot.variants().iter().filter(is_its) {
            let before = variant.index_state.weight() as i64;
            variant.index_state.set_weight(variant.memory());
            let more = variant.index_state.weight() as i64 - before;
            *if variant.index_state.place() & MAIN == 0 { &mut small } else { &mut main } += more;
        }
        self.small.bytes = self.small.bytes.saturating_add_signed(small);
        self.main.bytes = self.main.bytes.saturating_add_signed(main);
    }

    /// Removes all objects with the incomplete body of `object`. A marker may replace them.
    pub(crate) fn withdraw(
        &mut self,
        h32: u32,
        object: &Object,
        marker: Option<Marker>,
        dead: &mut RemovedObjects,
    ) {
        object.index_state.set_broken();
        let first = dead.len();
        let ledger = Arc::clone(self.charge.ledger());
        let Some(mut entry) = self.occupied(h32, object.key()) else { return };
        let is_its = |variant: &Arc<Object>| variant.delivers_of(object);
        if !entry.get().variants().iter().any(is_its) {
            return;
        }
        let cost = KeyEntries::cost(object.key().len());
        let more = match Charge::try_new(&ledger, cost) {
            Some(charge) if marker.is_some() => widen(entry.get_mut(), charge),
            _ => match entry.get_mut() {
                IndexSlot::Many(_, more) => Some(&mut **more),
                IndexSlot::One(..) => None,
            },
        };
        match more {
            Some(more) => {
                more.variants.retain(|variant| {
                    let leaves = is_its(variant);
                    if leaves {
                        dead.push(Arc::clone(variant));
                    }
                    !leaves
                });
                if let Some(marker) = marker {
                    self.mark(h32, object.key(), marker);
                }
                if let Some(entry) = self.occupied(h32, object.key()) {
                    settle(entry);
                }
            }
            None => dead.extend(entry.remove().0.variants().iter().cloned()),
        }
        self.note_removed(&dead[first..]);
        self.sift();
    }

    /// Removes all entries of a key. Its fetches under way will not become visible. The number
    /// counts responses in the lower tier.
    pub(crate) fn invalidate(&mut self, h32: u32, key: &[u8]) -> (Option<IndexSlot>, usize) {
        let cold = self.forget_cold(h32, LowerRemovals::All);
        let Some(entry) = self.occupied(h32, key) else { return (None, cold) };
        let (slot, _) = entry.remove();
        if let IndexSlot::Many(_, more) = &slot
            && more.marker.is_some()
        {
            self.unmarked(key.len());
        }
        self.note_removed(slot.variants());
        self.sift();
        (Some(slot), cold)
    }

    /// Removes `object`. Returns false if it has been removed already. Fetches of its key continue.
    pub(crate) fn expel(
        &mut self,
        h32: u32,
        object: &Arc<Object>,
        dead: &mut RemovedObjects,
    ) -> bool {
        let Some(mut entry) = self.occupied(h32, object.key()) else { return false };
        let at = entry.get().variants().iter().position(|there| Arc::ptr_eq(there, object));
        let Some(at) = at else { return false };
        match entry.get_mut() {
            IndexSlot::One(..) => drop(entry.remove()),
            IndexSlot::Many(_, more) => {
                more.variants.remove(at);
                settle(entry);
            }
        }
        self.forget_copy(h32, object);
        self.note_removed(std::slice::from_ref(object));
        dead.push(Arc::clone(object));
        self.sift();
        true
    }

    /// Collects objects that have not passed the bans up to `target`, as [`Shard::collect`] does.
    pub(crate) fn untested(
        &self,
        target: u32,
        cursor: &mut Position,
        places: usize,
        found: &mut Vec<(u32, Arc<Object>)>,
    ) -> bool {
        self.collect(cursor, places, found, &|_, object| object.passed() < target)
    }

    /// Collects, from the next `places` slots, the objects for which `is_meant` returns true.
    /// Returns false at the end of the table.
    pub(crate) fn collect(
        &self,
        cursor: &mut Position,
        places: usize,
        found: &mut Vec<(u32, Arc<Object>)>,
        is_meant: &dyn Fn(&IndexSlot, &Object) -> bool,
    ) -> bool {
        self.table.walk(cursor, places, |slot| {
            let meant = slot.variants().iter().filter(|object| is_meant(slot, object));
            found.extend(meant.map(|object| (slot.h32(), Arc::clone(object))));
        })
    }

    /// Passes, of the next `places` slots, the entries of those that have not exactly one response
    /// to `each`. Returns false at the end of the table.
    pub(crate) fn walk_entries(
        &self,
        cursor: &mut Position,
        places: usize,
        each: &mut dyn FnMut(&KeyEntries),
    ) -> bool {
        self.table.walk(cursor, places, |slot| {
            if let IndexSlot::Many(_, entries) = slot {
                each(entries);
            }
        })
    }

    /// Ends the freshness of all objects of a key, and of the responses of its fetches under way.
    /// Responses in the lower tier are removed.
    pub(crate) fn expire(&mut self, h32: u32, key: &[u8], now_ms: i64) -> usize {
        self.unmark(h32, key);
        let cold = self.forget_cold(h32, LowerRemovals::All);
        let Some(slot) = self.find(h32, key) else { return cold };
        for object in slot.variants() {
            object.expire(now_ms);
        }
        if let IndexSlot::Many(_, more) = slot {
            more.leads.iter().for_each(|busy| busy.expire(now_ms));
        }
        slot.variants().len() + cold
    }

    /// Sets the times of all objects of a key and returns their number. Responses in the lower tier
    /// are removed.
    pub(crate) fn retime(&mut self, h32: u32, key: &[u8], times: &LifetimeUpdate) -> usize {
        let cold = self.forget_cold(h32, LowerRemovals::All);
        let Some(slot) = self.find(h32, key) else { return cold };
        slot.variants().iter().for_each(|object| object.retime(times));
        slot.variants().len() + cold
    }

    /// Removes the entries of the next `places` slots and their copies in the lower tier, as
    /// [`Shard::invalidate`] does for each key. Adds what is to be dropped to `gone`. Returns false
    /// at the end of the table.
    pub(crate) fn clear(
        &mut self,
        cursor: &mut Position,
        places: usize,
        gone: &mut Vec<IndexSlot>,
    ) -> bool {
        let first = gone.len();
        let more = self.table.drain(cursor, places, |slot| gone.push(slot));
        for slot in &gone[first..] {
            slot.variants().iter().for_each(|variant| self.forget_copy(slot.h32(), variant));
            if let IndexSlot::Many(_, more) = slot
                && more.marker.is_some()
            {
                self.unmarked(more.key.len());
            }
            self.note_removed(slot.variants());
            self.sift();
        }
        more
    }

    /// Replaces an empty shard by a new one. The memory of the old one is returned when it is
    /// dropped. `None` while the shard is not empty.
    pub(crate) fn renew(&mut self) -> Option<Self> {
        if self.table.len() + self.cold.len() > 0 {
            return None;
        }
        let ledger = Arc::clone(self.charge.ledger());
        let new = Self::with_layout(&ledger, &self.lower, self.table.next_layout());
        Some(std::mem::replace(self, new))
    }

    // Queues.

    /// Enters an object of the table into its first queue. The queues have room.
    fn queue(&mut self, h32: u32, object: &Object) {
        let returned = self.ghost.take(h32, self.main.live);
        if let Some(distance) = returned {
            self.charge.ledger().count_returned(distance);
        }
        count(&self.charge.ledger().objects, 1);
        object.index_state.set_weight(object.memory());
        self.push(h32, object, returned.is_some());
        self.give_back();
    }

    /// Returns true if the key was seen or evicted lately: among as many keys as are in memory.
    pub(crate) fn meet(&mut self, h32: u32) -> bool {
        let ledger = Arc::clone(self.charge.ledger());
        self.ghost.contains_or_insert(h32, self.live(), &ledger)
    }

    fn push(&mut self, h32: u32, object: &Object, main: bool) {
        object.index_state.set_place(LIVE | if main { MAIN } else { 0 });
        let queue = if main { &mut self.main } else { &mut self.small };
        self.work.add(queue.push(Token { h32, id: object.index_state.id }));
        queue.weigh_more(object.index_state.weight());
    }

    /// Subtracts `object` from its queue's sums; its token stays.
    fn unpush(&mut self, object: &Object) {
        let main = object.index_state.place() & MAIN != 0;
        let queue = if main { &mut self.main } else { &mut self.small };
        queue.weigh_less(object.index_state.weight());
    }

    /// Notes that these objects have left the table; their tokens are dead.
    fn note_removed(&mut self, objects: &[Arc<Object>]) {
        for object in objects {
            self.unpush(object);
            object.index_state.set_out();
        }
        self.work.add(objects.len());
        discount(&self.charge.ledger().objects, objects.len() as u64);
    }

    /// Removes some dead tokens, if they outnumber the live ones.
    fn sift(&mut self) {
        let table = &self.table;
        let lives = |token: Token| {
            let is_it = |slot: &IndexSlot| slot.h32() == token.h32 && slot.has_token(token.id);
            table.find(token.h32, is_it).is_some()
        };
        let looked_at = self.small.sift(lives) + self.main.sift(lives);
        self.work.add(looked_at);
    }

    /// Keys here, and responses in the lower tier.
    pub(crate) fn keys(&self) -> usize {
        self.table.len() + self.cold.len()
    }

    /// Objects and markers here.
    pub(crate) fn live(&self) -> usize {
        self.small.live + self.main.live
    }
}

/// Gives a key with one response a [`KeyEntries`], which `charge` covers.
fn widen(slot: &mut IndexSlot, charge: Charge) -> Option<&mut KeyEntries> {
    if let IndexSlot::One(h32, object) = slot {
        let mut more = KeyEntries::new(Arc::from(object.key()), charge);
        more.variants.push(Arc::clone(object));
        *slot = IndexSlot::Many(*h32, Box::new(more));
    }
    match slot {
        IndexSlot::Many(_, more) => Some(more),
        IndexSlot::One(..) => None,
    }
}

/// Removes a fetch from its key's list. Returns false if it is absent.
fn remove_fetch(slot: &mut IndexSlot, busy: &Arc<Busy>) -> bool {
    let IndexSlot::Many(_, more) = slot else { return false };
    let at = more.leads.iter().position(|lead| Arc::ptr_eq(lead, busy));
    at.map(|at| more.leads.swap_remove(at)).is_some()
}

/// Removes a key without entries, and gives a key with just one response its short form.
fn settle(mut entry: OccupiedEntry<'_, IndexSlot>) {
    let IndexSlot::Many(h32, more) = entry.get_mut() else { return };
    if !more.leads.is_empty() || more.marker.is_some() {
        return;
    }
    match more.variants.len() {
        0 => drop(entry.remove()),
        1 => {
            if let Some(object) = more.variants.pop() {
                *entry.get_mut() = IndexSlot::One(*h32, object);
            }
        }
        _ => {}
    }
}
