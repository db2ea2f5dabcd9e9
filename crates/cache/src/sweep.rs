//! The sweep: adding a ban, testing what a lookup found, and testing all other objects in the
//! background. After a ban has been added, no lookup may return an object that it matches.

use std::sync::Arc;

use crate::bans::{Ban, BanTestResult, NewBan};
use crate::cache::Cache;
use crate::ledger::count;
use crate::lower::Lower;
use crate::object::Object;
use crate::shard::{KeyLocation, Position, RemovedObjects};

/// Slots of the index visited under one hold of the lock: some microseconds.
const BATCH: usize = 128;

/// The hooks of a sweep.
pub struct SweepHooks<'a> {
    /// Called every few microseconds, without a lock.
    pub pause: &'a mut dyn FnMut(),
    /// Shown each object that a ban has removed, or made stale. Called without a lock.
    pub ended: &'a mut dyn FnMut(&Object),
}

/// An entry of [`Cache::bans`].
#[derive(Clone, Debug)]
pub struct BanListing {
    /// The ban.
    pub ban: Arc<Ban>,
    /// True if everything stored has been tested against the ban.
    pub over: bool,
}

impl<L: Lower> Cache<L> {
    /// Adds a ban. From its return on, no lookup returns a matching object (with a soft ban:
    /// returns it as fresh), nor a matching response of an earlier fetch. The number of objects is
    /// known after [`Cache::sweep`].
    ///
    /// At the limit of bans, this call first completes the oldest ones, so it must not run on a
    /// thread that serves requests.
    pub fn ban(&self, new: NewBan) -> Arc<Ban> {
        self.complete_bans(new.now_ms);
        self.enact(new)
    }

    /// Makes room for another ban: at the limit of bans, completes the oldest ones.
    pub fn complete_bans(&self, now_ms: u64) {
        let bans_max = self.config().bans_max.max(1);
        self.room_for_ban(bans_max);
        if self.bans.len() >= bans_max {
            self.sweep(self.bans.newest(), now_ms, &mut || ());
            self.bans.forget(bans_max / 2);
        }
    }

    /// [`Cache::ban`] for a thread that serves requests: at the limit of bans it completes none,
    /// and exceeds the limit until the next sweep ends.
    pub fn ban_at_once(&self, new: NewBan) -> Arc<Ban> {
        let bans_max = self.config().bans_max.max(1);
        self.room_for_ban(bans_max);
        self.enact(new)
    }

    /// Forgets completed bans at the limit of bans.
    fn room_for_ban(&self, bans_max: usize) {
        if self.bans.len() >= bans_max {
            count(&self.ledger().bans_over, 1);
            self.bans.forget(bans_max / 2);
        }
    }

    fn enact(&self, new: NewBan) -> Arc<Ban> {
        let charge = self.reserve(Ban::cost(&new));
        count(&self.ledger().bans, 1);
        let (enacted, replaced) = self.bans.add(new, charge);
        count(&self.ledger().ban_repeats, u64::from(replaced));
        match enacted {
            Ok(ban) => ban,
            // After 2^32 bans no number is left. Objects can no longer be told apart, so all are
            // removed.
            Err(ban) => {
                ban.met_all(self.clear() as u64);
                ban
            }
        }
    }

    /// Bans that may still match something stored or being fetched, oldest first.
    pub fn bans(&self) -> Vec<BanListing> {
        self.bans.all().into_iter().map(|(ban, over)| BanListing { ban, over }).collect()
    }

    /// The number of the newest ban; zero without any.
    pub fn newest_ban(&self) -> u32 {
        self.bans.newest()
    }

    /// The number of the newest ban that everything in memory has passed, with all before it.
    pub fn swept_bans(&self) -> u32 {
        self.bans.swept()
    }

    /// The number of the newest ban that may be forgotten, with all before it: a response that has
    /// not passed it is not used.
    pub fn forgotten_bans(&self) -> u32 {
        self.bans.forgotten()
    }

    /// Returns true if some bans may still match.
    pub fn has_bans(&self) -> bool {
        self.bans.len() > 0
    }

    /// Returns true if something stored has not been tested against every ban.
    pub fn has_untested(&self) -> bool {
        self.bans.is_pending()
    }

    /// Tests everything stored against the bans up to the number `until` at least, unless that has
    /// been done, and removes what they match. `pause` is called every few microseconds, without a
    /// lock. Of several callers one works and the others wait.
    pub fn sweep(&self, until: u32, now_ms: u64, pause: &mut dyn FnMut()) {
        self.sweep_with(until, now_ms, SweepHooks { pause, ended: &mut |_| () });
    }

    /// [`Cache::sweep`] with both hooks.
    pub fn sweep_with(&self, until: u32, now_ms: u64, mut hooks: SweepHooks<'_>) {
        let _one = self.sweeping.lock();
        if self.bans.swept() < until {
            let target = self.bans.newest();
            for at in 0..self.shards() {
                self.sweep_shard(at, target, &mut hooks);
            }
            self.bans.swept_to(target);
        }
        self.bans.forget_old(now_ms, self.lower.passed().unwrap_or(u32::MAX));
    }

    /// [`Cache::sweep`] for a thread that serves requests: it waits for no other sweep, and ends
    /// after about `places` slots of the index. Returns true if these were all. `ended` as in
    /// [`SweepHooks`].
    pub fn sweep_first(&self, mut places: usize, ended: &mut dyn FnMut(&Object)) -> bool {
        let target = self.bans.newest();
        for at in 0..self.shards() {
            let mut cursor = Position::default();
            while self.sweep_batch(at, target, &mut cursor, ended) {
                let Some(left) = places.checked_sub(BATCH) else { return false };
                places = left;
            }
        }
        self.bans.swept_to(target);
        true
    }

    /// Returns true if no ban has matched `object` since its fetch began.
    pub fn may_use(&self, object: &Object) -> bool {
        object.passed() == self.bans.newest()
            || matches!(self.bans.test(object, object.is_live()), BanTestResult::Passed)
    }

    /// Tests an object that a lookup found against new bans. Removes it, and returns false, if one
    /// matches.
    #[cold]
    pub(crate) fn weigh(&self, place: KeyLocation, object: &Arc<Object>) -> bool {
        count(&self.ledger().ban_lookups, 1);
        let BanTestResult::Banned(ban) = self.bans.test(object, object.is_live()) else {
            return true;
        };
        count(&self.ledger().ban_lookups_met, 1);
        let mut dead = RemovedObjects::new();
        self.expel(place.shard, vec![(place.h32, Arc::clone(object), ban)], &mut dead);
        false
    }

    /// Passes every stored object to `each` until it returns false, without a lock. Objects that
    /// enter or leave meanwhile may be missed; objects that move may be passed twice.
    pub fn walk(&self, each: &mut dyn FnMut(&Object) -> bool) {
        let mut found = Vec::new();
        for at in 0..self.shards() {
            let mut cursor = Position::default();
            let mut more = true;
            while more {
                more = self.shared_shard(at).untested(u32::MAX, &mut cursor, BATCH, &mut found);
                if !found.drain(..).all(|(_, object)| each(&object)) {
                    return;
                }
            }
        }
    }

    fn sweep_shard(&self, at: usize, target: u32, hooks: &mut SweepHooks<'_>) {
        let mut cursor = Position::default();
        while self.sweep_batch(at, target, &mut cursor, hooks.ended) {
            (hooks.pause)();
        }
    }

    /// Tests the next slots of a shard. Returns true if there are more.
    fn sweep_batch(
        &self,
        at: usize,
        target: u32,
        cursor: &mut Position,
        ended: &mut dyn FnMut(&Object),
    ) -> bool {
        let mut found = Vec::new();
        let more = self.shared_shard(at).untested(target, cursor, BATCH, &mut found);
        count(&self.ledger().ban_sweeps, found.len() as u64);
        let mut banned = Vec::new();
        for (h32, object) in found {
            let fresh_until_ms = object.fresh_until_ms();
            match self.bans.test(&object, object.is_live()) {
                BanTestResult::Banned(ban) => banned.push((h32, object, ban)),
                BanTestResult::Passed if object.fresh_until_ms() < fresh_until_ms => ended(&object),
                BanTestResult::Passed => {}
            }
        }
        banned.iter().for_each(|(_, object, _)| ended(object));
        let mut dead = RemovedObjects::new();
        if !banned.is_empty() {
            self.expel(at, banned, &mut dead);
        }
        count(&self.ledger().ban_sweeps_met, dead.len() as u64);
        more
    }

    fn expel(&self, at: usize, banned: Vec<BannedObject>, dead: &mut RemovedObjects) {
        {
            let mut shard = self.shard(at);
            for (h32, object, ban) in &banned {
                if shard.expel(*h32, object, dead)
                    && let Some(ban) = ban
                {
                    ban.met(object);
                }
            }
        }
        count(&self.ledger().invalidated, dead.len() as u64);
    }
}

/// A response to be removed, with its hash and the ban that it matches.
type BannedObject = (u32, Arc<Object>, Option<Arc<Ban>>);
