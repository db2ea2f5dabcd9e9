//! Removal of objects that are of no more use. They leave before eviction comes for them, so that
//! their memory serves others. The number of stored responses then counts only those that may still
//! answer.

use crate::cache::Cache;
use crate::ledger::count;
use crate::lower::Lower;
use crate::object::Object;
use crate::shard::{Dead, Position};

/// Places of the index looked at under one lock: some microseconds.
const BATCH: usize = 128;

/// The place that the walk over everything stored has reached. The next walk goes on from there.
#[derive(Clone, Copy, Debug, Default)]
pub struct Walk {
    shard: usize,
    cursor: Position,
}

impl<L: Lower> Cache<L> {
    /// Goes on with `walk` for about `places` of the index, at most once around, and takes out what
    /// `is_over` says is of no more use; what is being fetched anew stays. `is_over` must not call
    /// the cache. `pause` is called every few microseconds, no lock being held.
    pub fn drop_over(
        &self,
        walk: &mut Walk,
        places: usize,
        is_over: &dyn Fn(&Object) -> bool,
        pause: &mut dyn FnMut(),
    ) {
        let mut left = places;
        for _ in 0..self.shards() {
            loop {
                let more = self.drop_batch(walk, is_over);
                pause();
                left = left.saturating_sub(BATCH);
                if !more || left == 0 {
                    break;
                }
            }
            if left == 0 {
                return;
            }
            *walk = Walk { shard: (walk.shard + 1) % self.shards(), cursor: Position::default() };
        }
    }

    /// Looks at the next places of the shard that `walk` is in; whether there are more.
    fn drop_batch(&self, walk: &mut Walk, is_over: &dyn Fn(&Object) -> bool) -> bool {
        let mut found = Vec::new();
        let shard = self.shared_shard(walk.shard);
        let more = shard.collect(&mut walk.cursor, BATCH, &mut found, &|slot, object| {
            !slot.is_fetched() && is_over(object)
        });
        drop(shard);
        if found.is_empty() {
            return more;
        }
        let mut dead = Dead::new();
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
