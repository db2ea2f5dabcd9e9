//! Walks over everything stored, a little at a time.
//!
//! What is of no more use leaves before eviction comes for it, so that its memory serves others.
//! The number of stored responses then counts only those that may still answer. And what is worth
//! it gets a copy in the tier below, so that it is there after a restart.

use std::cell::Cell;
use std::sync::Arc;

use crate::cache::Cache;
use crate::ledger::count;
use crate::lower::Lower;
use crate::object::Object;
use crate::shard::{Position, RemovedObjects};

/// Places of the index looked at under one lock: some microseconds.
const BATCH: usize = 128;

/// The place that the walk over everything stored has reached. The next walk goes on from there.
#[derive(Clone, Copy, Debug, Default)]
pub struct IndexWalk {
    shard: usize,
    cursor: Position,
}

impl<L: Lower> Cache<L> {
    /// Goes on with `walk` for about `places` of the index, at most once around, and takes out what
    /// `is_over` says is of no more use; what is being fetched anew stays. `is_over` must not call
    /// the cache. `pause` is called every few microseconds, no lock being held.
    pub fn drop_expired(
        &self,
        walk: &mut IndexWalk,
        places: usize,
        is_over: &dyn Fn(&Object) -> bool,
        pause: &mut dyn FnMut(),
    ) {
        self.go_on(walk, places, &|walk| self.drop_batch(walk, is_over), pause);
    }

    /// Goes on with `walk` in the same way, and has the lower tier keep copies of what `is_meant`
    /// says, where it takes them. Returns their number. `is_meant` must not call the cache.
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

    /// Has the lower tier keep a copy of `object`, whose key has this hash; false if it has none
    /// afterwards.
    pub fn copy(&self, hash: u64, object: &Arc<Object>) -> bool {
        let place = self.place(hash);
        self.shard(place.shard).copy_down(place.h32, object)
    }

    /// Goes on with `walk` by batches; `batch` makes one, and says whether its shard has more.
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

    /// Copies of the next places of the shard that `walk` is in; their number, and whether there
    /// are more places.
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

    /// Looks at the next places of the shard that `walk` is in; whether there are more.
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
            // It may have been confirmed meanwhile.
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
