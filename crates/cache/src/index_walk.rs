//! Index walks: incremental passes over everything stored.
//!
//! A walk removes expired objects before eviction does, so that their memory is free and the number
//! of objects is honest. Another copies valuable objects to the lower tier, so that they survive a
//! restart. A walk never holds a shard's lock for longer than one batch.

use std::cell::Cell;
use std::sync::Arc;

use crate::cache::Cache;
use crate::ledger::count;
use crate::lower::Lower;
use crate::object::Object;
use crate::shard::{Position, RemovedObjects};

/// Slots that are visited under one hold of the lock: some microseconds.
const BATCH: usize = 128;

/// The position of a walk. The next call continues from there.
#[derive(Clone, Copy, Debug, Default)]
pub struct IndexWalk {
    shard: usize,
    cursor: Position,
}

impl<L: Lower> Cache<L> {
    /// Continues `walk` for about `places` slots, at most once around, and removes the objects for
    /// which `is_over` returns true, except those that a fetch is renewing. `is_over` must not call
    /// the cache. `pause` is called every few microseconds, without a lock.
    pub fn drop_expired(
        &self,
        walk: &mut IndexWalk,
        places: usize,
        is_over: &dyn Fn(&Object) -> bool,
        pause: &mut dyn FnMut(),
    ) {
        self.go_on(walk, places, &|walk| self.drop_batch(walk, is_over), pause);
    }

    /// Continues `walk` in the same manner, and copies to the lower tier the objects for which
    /// `is_meant` returns true. Returns the number of copies that the tier accepted. `is_meant`
    /// must not call the cache.
    pub fn copy_down(
        &self,
        walk: &mut IndexWalk,
        places: usize,
        is_meant: &dyn Fn(&Object) -> bool,
        pause: &mut dyn FnMut(),
    ) -> usize {
        let copied = Cell::new(0);
        let batch = |walk: &mut IndexWalk| {
            let (made, more) = self.copy_batch(walk, is_meant);
            copied.set(copied.get() + made);
            more
        };
        self.go_on(walk, places, &batch, pause);
        copied.get()
    }

    /// Copies `object`, whose key has this hash, to the lower tier. Returns false if the tier has
    /// no copy afterwards.
    pub fn copy(&self, hash: u64, object: &Arc<Object>) -> bool {
        let place = self.place(hash);
        self.shard(place.shard).copy_down(place.h32, object)
    }

    /// Continues `walk` in batches. `batch` runs one, and returns true if its shard has more slots.
    fn go_on(
        &self,
        walk: &mut IndexWalk,
        places: usize,
        batch: &dyn Fn(&mut IndexWalk) -> bool,
        pause: &mut dyn FnMut(),
    ) {
        let mut left = places;
        for _ in 0..self.shards() {
            loop {
                let more = batch(walk);
                pause();
                left = left.saturating_sub(BATCH);
                if !more || left == 0 {
                    break;
                }
            }
            if left == 0 {
                return;
            }
            *walk =
                IndexWalk { shard: (walk.shard + 1) % self.shards(), cursor: Position::default() };
        }
    }

    /// Copies the next slots of the walk's shard. Returns the number of copies, and true if the
    /// shard has more slots.
    fn copy_batch(
        &self,
        walk: &mut IndexWalk,
        is_meant: &dyn Fn(&Object) -> bool,
    ) -> (usize, bool) {
        let mut found = Vec::new();
        let shard = self.shared_shard(walk.shard);
        let more = shard.collect(&mut walk.cursor, BATCH, &mut found, &|_, object| {
            !object.is_filling() && is_meant(object)
        });
        found.retain(|(h32, object)| shard.copy_of(*h32, object).is_none());
        drop(shard);
        if found.is_empty() {
            return (0, more);
        }
        let mut shard = self.shard(walk.shard);
        let made = found.iter().filter(|(h32, object)| shard.copy_down(*h32, object)).count();
        drop(shard);
        (made, more)
    }

    /// Removes expired objects from the next slots of the walk's shard. Returns true if the shard
    /// has more slots.
    fn drop_batch(&self, walk: &mut IndexWalk, is_over: &dyn Fn(&Object) -> bool) -> bool {
        let mut found = Vec::new();
        let shard = self.shared_shard(walk.shard);
        let more = shard.collect(&mut walk.cursor, BATCH, &mut found, &|slot, object| {
            !slot.is_fetched() && is_over(object)
        });
        drop(shard);
        if found.is_empty() {
            return more;
        }
        let mut dead = RemovedObjects::new();
        let mut shard = self.shard(walk.shard);
        for (h32, object) in found {
            // The object may have been revalidated meanwhile.
            let stays = shard.find(h32, object.key()).is_none_or(|slot| slot.is_fetched());
            if !stays && is_over(&object) {
                shard.expel(h32, &object, &mut dead);
            }
        }
        drop(shard);
        count(&self.ledger().expired, dead.len() as u64);
        more
    }
}
