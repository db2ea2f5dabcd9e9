//! The cache: the shards of the index, its memory budget and the lookups. It must never serve a
//! banned object, use more than its budget, or hold a shard's lock for a time that grows with the
//! number of objects.

pub(crate) mod collapsing;

use std::sync::Arc;

use base::{Allowance, KeyBuf, MemoryBudget};
use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::bans::Bans;
use crate::ledger::{Charge, Ledger, Stats, count};
use crate::lower::{Lower, MemoryOnly};
use crate::object::Object;
use crate::record::LifetimeUpdate;
use crate::shard::{Effort, EvictionOutcome, KeyLocation, Position, RemovedObjects, Shard};
use crate::slot::{Marker, choose};
use crate::sync::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use crate::variant::SignatureFunction;

/// The fewest shards of the index: many more than cores, so that two cores rarely contend for one.
const SHARDS_MIN: usize = 64;
/// The most shards. More would not shorten any hold of a lock: no hold depends on the size of a
/// shard.
const SHARDS_MAX: usize = 1024;
/// Budget bytes for each shard. Each shard selects its own victims, and needs some twenty objects
/// to select well: with eight of them one hit in a hundred is lost, with two one in twenty (Zipf
/// 0.8, a third of one-hit wonders). This size holds sixteen objects of 512 KiB.
const SHARD_BYTES: u64 = 8 << 20;
/// Slots of the index that are emptied under one hold of the lock.
const CLEARED: usize = 128;
/// Evictions at once when the budget shrinks. The sweep evicts the rest.
const RESIZED: usize = 1 << 16;
/// The free reserve of the budget: one part in this many, and at most the bytes below.
const AHEAD_PARTS: u64 = 128;
const AHEAD_MAX: u64 = 64 << 20;
/// With less than one in this many parts of the budget free, the budget counts as full.
const ROOM_PARTS: u64 = 16;
/// Evictions ahead of need between two pauses.
const AHEAD_PIECE: u32 = 16;
/// Attempts to grow a shard that other threads fill again, before the caller gives up.
const GROWTHS_MAX: usize = 8;

/// The cache's settings. All may change while the cache runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The whole budget in bytes.
    pub budget_bytes: u64,
    /// The part of the budget that may be held for clients, in bytes.
    pub held_bytes_max: u64,
    /// Variants of one key. Beyond this number the oldest is evicted.
    pub max_variants: usize,
    /// The largest body that is stored, in bytes.
    pub object_bytes_max: u64,
    /// The most waiters for one fetch.
    pub waiters_max: usize,
    /// The window, in bytes, of a body that is not stored, unless the exchange sets a narrower one.
    pub window_bytes: u64,
    /// Milliseconds of hit-for-miss after a body of the key was too large to store.
    pub hit_for_miss_ms: u64,
    /// The most bans. Beyond this number the oldest bans are completed before another is added.
    pub bans_max: usize,
    /// Bytes for the index of the lower tier, beside the budget.
    pub index_bytes: u64,
}

/// The result of a lookup.
#[derive(Clone, Debug)]
pub enum CacheLookup {
    /// The best match, fresh or not. The caller judges its freshness.
    Object(Arc<Object>),
    /// No match, and the key's last response could not be stored.
    HitForMiss,
    /// No match.
    Nothing,
}

/// The memory tier, with or without a lower tier.
#[derive(Debug)]
pub struct Cache<L: Lower = MemoryOnly> {
    shards: Box<[PaddedShard<L>]>,
    ledger: Arc<Ledger>,
    /// The next shard to evict from.
    cursor: AtomicUsize,
    next_id: AtomicU32,
    /// The latest time that any caller has passed.
    seen_ms: AtomicU64,
    max_variants: AtomicUsize,
    object_bytes_max: AtomicU64,
    waiters_max: AtomicUsize,
    window_bytes: AtomicU64,
    hit_for_miss_ms: AtomicU64,
    bans_max: AtomicUsize,
    pub(crate) bans: Bans,
    pub(crate) lower: Arc<L>,
    /// Serialises the sweeps.
    pub(crate) sweeping: Mutex<()>,
}

/// A shard on two cache lines of its own, because processors fetch lines in pairs.
#[derive(Debug)]
#[repr(align(128))]
struct PaddedShard<L: Lower>(RwLock<Shard<L>>);

impl Cache {
    /// An empty cache without a lower tier.
    pub fn new(config: Config) -> Arc<Self> {
        Self::with_lower(Arc::new(MemoryOnly), config)
    }
}

impl<L: Lower> Cache<L> {
    /// An empty cache over a lower tier, which enters its responses by [`Cache::add_cold`]. The
    /// number of shards follows from the initial budget.
    pub fn with_lower(lower: Arc<L>, config: Config) -> Arc<Self> {
        let shards = usize::try_from(config.budget_bytes / SHARD_BYTES).unwrap_or(SHARDS_MAX);
        Self::with_shards(lower, config, shards.clamp(SHARDS_MIN, SHARDS_MAX).next_power_of_two())
    }

    /// An empty cache with this number of shards, a power of two.
    pub(crate) fn with_shards(lower: Arc<L>, config: Config, shards: usize) -> Arc<Self> {
        let memory = MemoryBudget::new(config.budget_bytes, config.held_bytes_max);
        let ledger = Arc::new(Ledger::new(memory, Allowance::new(config.index_bytes)));
        let shards =
            (0..shards).map(|_| PaddedShard(RwLock::new(Shard::new(&ledger, &lower)))).collect();
        let cache = Arc::new(Self {
            shards,
            ledger,
            cursor: AtomicUsize::new(0),
            next_id: AtomicU32::new(0),
            seen_ms: AtomicU64::new(0),
            max_variants: AtomicUsize::new(config.max_variants),
            object_bytes_max: AtomicU64::new(config.object_bytes_max),
            waiters_max: AtomicUsize::new(config.waiters_max),
            window_bytes: AtomicU64::new(config.window_bytes),
            hit_for_miss_ms: AtomicU64::new(config.hit_for_miss_ms),
            bans_max: AtomicUsize::new(config.bans_max),
            bans: Bans::after(lower.passed().unwrap_or(0)),
            lower,
            sweeping: Mutex::new(()),
        });
        let weak = Arc::downgrade(&cache);
        cache
            .memory()
            .make_room_by(move |bytes| weak.upgrade().is_some_and(|cache| cache.make_room(bytes)));
        cache
    }

    /// The lower tier.
    pub fn lower(&self) -> &Arc<L> {
        &self.lower
    }

    /// The memory budget, for bytes that are held beside the store.
    pub fn memory(&self) -> &Arc<MemoryBudget> {
        self.ledger.memory()
    }

    /// The bytes for the index of the lower tier: the cold entries here and the tier's own tables.
    /// Without room in it nothing is demoted.
    pub fn index(&self) -> &Arc<Allowance> {
        self.ledger.index()
    }

    /// Changes the settings. A smaller budget evicts at once what it can, and the rest as readers
    /// finish.
    pub fn set_config(&self, config: Config) {
        self.max_variants.store(config.max_variants, Ordering::Relaxed);
        self.object_bytes_max.store(config.object_bytes_max, Ordering::Relaxed);
        self.waiters_max.store(config.waiters_max, Ordering::Relaxed);
        self.window_bytes.store(config.window_bytes, Ordering::Relaxed);
        self.hit_for_miss_ms.store(config.hit_for_miss_ms, Ordering::Relaxed);
        self.bans_max.store(config.bans_max, Ordering::Relaxed);
        self.index().set_most(config.index_bytes);
        self.resize(config.budget_bytes, config.held_bytes_max);
    }

    /// Changes the budget and its part for clients, as [`Cache::set_config`] does.
    pub fn resize(&self, budget_bytes: u64, held_bytes_max: u64) {
        self.memory().set_budget(budget_bytes, held_bytes_max);
        for _ in 0..RESIZED {
            if !self.memory().is_over() || !self.evict(&mut Effort::new()) {
                return;
            }
        }
    }

    /// The settings in force.
    pub fn config(&self) -> Config {
        Config {
            budget_bytes: self.memory().budget(),
            held_bytes_max: self.memory().held_max(),
            max_variants: self.max_variants.load(Ordering::Relaxed),
            object_bytes_max: self.object_bytes_max.load(Ordering::Relaxed),
            waiters_max: self.waiters_max.load(Ordering::Relaxed),
            window_bytes: self.window_bytes.load(Ordering::Relaxed),
            hit_for_miss_ms: self.hit_for_miss_ms.load(Ordering::Relaxed),
            bans_max: self.bans_max.load(Ordering::Relaxed),
            index_bytes: self.index().most(),
        }
    }

    /// The cache's counters.
    pub fn stats(&self) -> Stats {
        self.ledger.stats()
    }

    /// Keys under which a response is stored or being fetched. Every response in the lower tier
    /// counts as one.
    pub fn keys(&self) -> u64 {
        self.shards.iter().map(|shard| shard.0.read().keys() as u64).sum()
    }

    /// The hit path: returns the stored response that answers the request best, fresh or not.
    ///
    /// `variant` is called only for keys whose responses carry Vary, once for each distinct list of
    /// names, under the shard's shared lock.
    pub fn lookup(
        &self,
        key: &KeyBuf,
        variant: &mut SignatureFunction<'_>,
        now_ms: u64,
    ) -> CacheLookup {
        let place = self.place(key.hash());
        let object = {
            let shard = self.shards[place.shard].0.read();
            let Some(slot) = shard.find(place.h32, key.bytes()) else {
                return CacheLookup::Nothing;
            };
            match choose(slot.variants(), variant, |_, _| {}) {
                Some(at) => Arc::clone(&slot.variants()[at]),
                // After a newer ban, the miss path decides.
                None if slot.is_hit_for_miss(now_ms, self.bans.newest()) => {
                    return CacheLookup::HitForMiss;
                }
                None => return CacheLookup::Nothing,
            }
        };
        if !self.take(place, &object) {
            return self.lookup(key, variant, now_ms);
        }
        CacheLookup::Object(object)
    }

    /// Returns the object of a key with the latest `born_ms`, whatever it varies on. Counts as a
    /// hit, as [`Cache::lookup`] does.
    pub fn newest(&self, key: &KeyBuf) -> Option<Arc<Object>> {
        let place = self.place(key.hash());
        loop {
            let object = {
                let shard = self.shards[place.shard].0.read();
                let variants = shard.find(place.h32, key.bytes())?.variants();
                Arc::clone(variants.iter().max_by_key(|object| object.born_ms())?)
            };
            if self.take(place, &object) {
                return Some(object);
            }
        }
    }

    /// Counts a hit. Removes the object instead, and returns false, if it has been banned.
    fn take(&self, place: KeyLocation, object: &Arc<Object>) -> bool {
        let stays = object.passed() == self.bans.newest() || self.weigh(place, object);
        if stays {
            object.index_state.touch();
        }
        stays
    }

    /// Removes all variants of a key (methods that are not safe, purge) and returns their number.
    /// Fetches under way for the key do not become visible.
    pub fn invalidate(&self, key: &KeyBuf) -> usize {
        let place = self.place(key.hash());
        let (slot, cold) = self.shard(place.shard).invalidate(place.h32, key.bytes());
        let objects = cold + slot.as_ref().map_or(0, |slot| slot.variants().len());
        count(&self.ledger.invalidated, objects as u64);
        objects
    }

    /// Removes the objects of a key that no request will ask for again. It is not an invalidation.
    pub fn forget(&self, key: &KeyBuf) {
        let place = self.place(key.hash());
        let gone = self.shard(place.shard).invalidate(place.h32, key.bytes());
        drop(gone);
    }

    /// Removes `object`, whose key has this hash, from the index, with all objects that share its
    /// body: the body can no longer be read.
    pub fn withdraw(&self, hash: u64, object: &Arc<Object>) {
        let place = self.place(hash);
        let mut dead = RemovedObjects::new();
        self.shard(place.shard).withdraw(place.h32, object, None, &mut dead);
        drop(dead);
    }

    /// Makes all variants of a key stale at `now_ms`, and responses that are being fetched for it.
    /// Returns the number of stored ones. Variants in memory keep their grace; others are removed.
    pub fn soft_invalidate(&self, key: &KeyBuf, now_ms: u64) -> usize {
        let place = self.place(key.hash());
        let now_ms = i64::try_from(now_ms).unwrap_or(i64::MAX);
        // Exclusive: no object enters the index while freshness ends.
        let mut shard = self.shard(place.shard);
        shard.expire(place.h32, key.bytes(), now_ms)
    }

    /// Gives all variants of a key new lifetimes, and returns the number of stored ones. Variants
    /// outside memory are removed.
    pub fn retime(&self, key: &KeyBuf, times: &LifetimeUpdate) -> usize {
        let place = self.place(key.hash());
        // Exclusive: no object enters the index meanwhile.
        let mut shard = self.shard(place.shard);
        shard.retime(place.h32, key.bytes(), times)
    }

    /// Enters a response that the lower tier has at `place`, under a key of this hash. Returns
    /// false if the index is full or `is_wanted` returns false, which is called under the lock
    /// under which [`Lower::discard_hash`] is called. For a tier with responses from before this
    /// cache.
    pub fn add_cold(
        &self,
        hash: u64,
        place: L::Place,
        is_wanted: impl FnOnce(u32) -> bool,
    ) -> bool {
        let at = self.place(hash);
        let mut shard = self.shard(at.shard);
        is_wanted(at.h32) && shard.add_cold(at.h32, place)
    }

    /// Moves a cold entry from `old` to `new`. Returns false if the entry has been removed.
    pub fn move_cold(&self, hash: u64, old: L::Place, new: L::Place) -> bool {
        let at = self.place(hash);
        self.shard(at.shard).move_cold(at.h32, old, new)
    }

    /// Removes all cold entries for whose place `is_gone` returns true. Calls `pause` every few
    /// microseconds, without a lock.
    pub fn drop_cold_where(&self, is_gone: &dyn Fn(L::Place) -> bool, pause: &mut dyn FnMut()) {
        for at in 0..self.shards() {
            let mut cursor = 0;
            while self.shard(at).drop_cold_where(&mut cursor, CLEARED, is_gone) {
                pause();
            }
        }
    }

    /// Removes the cold entry of a response that the lower tier has lost. Returns false if the
    /// entry has already been removed.
    pub fn drop_cold(&self, hash: u64, place: L::Place) -> bool {
        let at = self.place(hash);
        self.shard(at.shard).drop_cold(at.h32, place)
    }

    /// Removes everything, and returns the number of responses. Fetches under way do not become
    /// visible. Meanwhile other threads may use what is not removed yet, and store the responses of
    /// later fetches.
    pub fn clear(&self) -> usize {
        let mut all = 0;
        for at in 0..self.shards() {
            let mut cursor = Position::default();
            let mut more = true;
            while more {
                let mut gone = Vec::new();
                more = self.shard(at).clear(&mut cursor, CLEARED, &mut gone);
                all += gone.iter().map(|slot| slot.variants().len()).sum::<usize>();
            }
            let mut cursor = 0;
            while self.shard(at).clear_cold(&mut cursor, CLEARED, &mut all) {}
            let old = self.shard(at).renew();
            drop(old);
        }
        count(&self.ledger.invalidated, all as u64);
        all
    }

    // The ledger, for the rest of the crate.

    pub(crate) fn ledger(&self) -> &Arc<Ledger> {
        &self.ledger
    }

    /// Reserves `bytes`. Evicts for them within the limit of one call's effort.
    pub(crate) fn reserve(&self, bytes: u64) -> Option<Charge> {
        let mut effort = Effort::new();
        loop {
            if let Some(charge) = Charge::try_new(&self.ledger, bytes) {
                return Some(charge);
            }
            if bytes > self.memory().budget() || !self.evict(&mut effort) {
                return None;
            }
        }
    }

    /// Evicts until `bytes` can be held for a client. Returns false if eviction frees no more.
    fn make_room(&self, bytes: u64) -> bool {
        let mut effort = Effort::new();
        while self.evict(&mut effort) {
            if self.memory().try_store(bytes) {
                return true;
            }
        }
        false
    }

    /// Returns true if memory is not full: more is free than eviction keeps free.
    pub fn has_room(&self) -> bool {
        self.memory().left_to_store() > self.memory().budget() / ROOM_PARTS
    }

    /// Evicts ahead of need: keeps a small part of the budget free, so that requests rarely have to
    /// evict. Calls `pause` every few microseconds, without a lock. For a background thread, about
    /// once a second.
    pub fn make_room_ahead(&self, pause: &mut dyn FnMut()) {
        let wanted = (self.memory().budget() / AHEAD_PARTS).min(AHEAD_MAX);
        // Only once half of the reserve is used.
        if self.memory().left_to_store() >= wanted / 2 {
            return;
        }
        let mut pieces = 0_u32;
        while self.memory().left_to_store() < wanted && self.evict(&mut Effort::new()) {
            pieces += 1;
            if pieces.is_multiple_of(AHEAD_PIECE) {
                pause();
            }
        }
    }

    /// Visits shards in turn until an object is evicted. Returns false if none is, or the effort is
    /// spent.
    ///
    /// The first round passes over shards below their share: keys fall on shards by chance, and if
    /// all shards gave alike, their sizes would drift apart without bound.
    fn evict(&self, effort: &mut Effort) -> bool {
        let shards = self.shards();
        let mut idle = 0;
        let mut passed = 0;
        // Two rounds without an eviction end the search.
        while idle < 2 * shards && !effort.is_spent() {
            effort.spend(1);
            let at = self.cursor.fetch_add(1, Ordering::Relaxed) & (shards - 1);
            let mut dead = RemovedObjects::new();
            let outcome = {
                let mut shard = self.shard(at);
                if passed < shards && ((shard.live() * shards) as u64) < self.ledger.entries() {
                    passed += 1;
                    continue;
                }
                shard.evict(effort, &mut dead)
            };
            drop(dead);
            match outcome {
                EvictionOutcome::Evicted => return true,
                EvictionOutcome::Progress => idle = 0,
                EvictionOutcome::Nothing => idle += 1,
            }
        }
        false
    }

    /// The shard, locked, with room for one more key or object. `None` without memory for it.
    pub(crate) fn room(&self, at: usize) -> Option<RwLockWriteGuard<'_, Shard<L>>> {
        for _ in 0..GROWTHS_MAX {
            let shard = self.shard(at);
            let growth = shard.growth();
            if growth == 0 {
                return Some(shard);
            }
            // Eviction takes other shards' locks, and perhaps this one.
            drop(shard);
            let charge = self.reserve(growth)?;
            self.shard(at).grow(charge);
        }
        None
    }

    pub(crate) fn shards(&self) -> usize {
        self.shards.len()
    }

    pub(crate) fn shard(&self, at: usize) -> RwLockWriteGuard<'_, Shard<L>> {
        let shard = self.shards[at].0.write();
        shard.work.begin();
        shard
    }

    pub(crate) fn shared_shard(&self, at: usize) -> RwLockReadGuard<'_, Shard<L>> {
        self.shards[at].0.read()
    }

    pub(crate) fn place(&self, hash: u64) -> KeyLocation {
        KeyLocation::of(hash, self.shards())
    }

    pub(crate) fn next_id(&self) -> u32 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// A hit-for-miss marker until `until_ms`, or for the configured time, after a fetch that began
    /// when ban `passed` was the newest.
    pub(crate) fn marker(&self, until_ms: Option<u64>, passed: u32) -> Marker {
        let now_ms = self.seen_ms.load(Ordering::Relaxed);
        let usual_ms = now_ms.saturating_add(self.hit_for_miss_ms.load(Ordering::Relaxed));
        Marker { until_ms: until_ms.unwrap_or(usual_ms), passed, id: self.next_id() }
    }
}

#[cfg(test)]
impl<L: Lower> Cache<L> {
    /// Asserts the consistency of every shard.
    pub(crate) fn check(&self) {
        let objects: usize = self.shards.iter().map(|shard| shard.0.read().check()).sum();
        assert_eq!(objects as u64, self.stats().objects);
    }

    /// The most entries moved, judged or removed so far under one hold of a shard's lock.
    pub(crate) fn most_work(&self) -> usize {
        self.shards.iter().map(|shard| shard.0.read().work.most()).max().unwrap_or(0)
    }
}
