//! Invalidation beyond one key: making a ban, testing what is about to be used, and the sweep that
//! tests everything else.

use std::sync::Arc;

use crate::bans::{Ban, BanTestResult, NewBan};
use crate::cache::Cache;
use crate::ledger::count;
use crate::lower::Lower;
use crate::object::Object;
use crate::shard::{KeyLocation, Position, RemovedObjects};

/// Places of the index looked at under one lock: some microseconds.
const BATCH: usize = 128;

/// One ban of [`Cache::bans`].
#[derive(Clone, Debug)]
pub struct BanListing {
    /// The ban.
    pub ban: Arc<Ban>,
    /// True if everything stored has been tested against the ban.
    pub over: bool,
}

impl<L: Lower> Cache<L> {
    /// Invalidates what `new` describes, and what comes of fetches that began before: once this
    /// returns no lookup finds it (a soft ban: finds it fresh). How many responses that are is
    /// known when [`Cache::sweep`] has come by.
    ///
    /// When there are as many bans as there may be, the oldest are completed first, by this call:
    /// not for a thread that others wait for.
    pub fn ban(&self, new: NewBan) -> Arc<Ban> {
        self.complete_bans(new.now_ms);
        self.enact(new)
    }

    /// Makes room for another ban: where there are as many as there may be, the oldest are
    /// completed, by this call.
    pub fn complete_bans(&self, now_ms: u64) {
        let bans_max = self.config().bans_max.max(1);
        self.room_for_ban(bans_max);
        if self.bans.len() >= bans_max {
            self.sweep(self.bans.newest(), now_ms, &mut || ());
            self.bans.forget(bans_max / 2);
        }
    }

    /// As [`Cache::ban`], for a thread that others wait for: bans that are not complete stay, and
    /// there may be more of them than there should, until the next sweep has ended.
    pub fn ban_at_once(&self, new: NewBan) -> Arc<Ban> {
        let bans_max = self.config().bans_max.max(1);
        self.room_for_ban(bans_max);
        self.enact(new)
    }

    /// Forgets bans that are over where there are as many as there may be.
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
            // After four thousand million of them no number is left: nothing can be told apart any
            // more, so everything goes.
            Err(ban) => {
                ban.met_all(self.clear() as u64);
                ban
            }
        }
    }

    /// Bans that may still matter to something stored or being fetched, the oldest first.
    pub fn bans(&self) -> Vec<BanListing> {
        self.bans.all().into_iter().map(|(ban, over)| BanListing { ban, over }).collect()
    }

    /// The number of the newest ban that was made; zero without any.
    pub fn newest_ban(&self) -> u32 {
        self.bans.newest()
    }

    /// The number of the newest ban such that everything stored in memory has passed it and all
    /// before it.
    pub fn swept_bans(&self) -> u32 {
        self.bans.swept()
    }

    /// The number of the newest ban such that it and all before it may be forgotten: whatever has
    /// not passed it is not used.
    pub fn forgotten_bans(&self) -> u32 {
        self.bans.forgotten()
    }

    /// Returns true if there are bans that may still matter.
    pub fn has_bans(&self) -> bool {
        self.bans.len() > 0
    }

    /// Returns true if something stored may not have been tested against every ban.
    pub fn has_untested(&self) -> bool {
        self.bans.is_pending()
    }

    /// Tests everything stored against the bans up to the number `until` and newer ones, unless
    /// that has been done; what they meet gives its memory back. `pause` is called every few
    /// microseconds, no lock being held. Of several callers one works and the others wait.
    pub fn sweep(&self, until: u32, now_ms: u64, pause: &mut dyn FnMut()) {
        let _one = self.sweeping.lock();
        if self.bans.swept() < until {
            let target = self.bans.newest();
            for at in 0..self.shards() {
                self.sweep_shard(at, target, pause);
            }
            self.bans.swept_to(target);
        }
        self.bans.forget_old(now_ms, self.lower.passed().unwrap_or(u32::MAX));
    }

    /// As [`Cache::sweep`], for a thread that others wait for: it waits for no other sweep, and
    /// ends after about `places` of the index. Whether these were all.
    pub fn sweep_first(&self, mut places: usize) -> bool {
        let target = self.bans.newest();
        for at in 0..self.shards() {
            let mut cursor = Position::default();
            while self.sweep_batch(at, target, &mut cursor) {
                let Some(left) = places.checked_sub(BATCH) else { return false };
                places = left;
            }
        }
        self.bans.swept_to(target);
        true
    }

    /// Returns true if no ban has met `object` since its fetch began.
    pub fn may_use(&self, object: &Object) -> bool {
        object.passed() == self.bans.newest()
            || matches!(self.bans.test(object, object.is_live()), BanTestResult::Yes)
    }

    /// Tests what a lookup found against new bans; takes it out when one meets it.
    #[cold]
    pub(crate) fn weigh(&self, place: KeyLocation, object: &Arc<Object>) -> bool {
        count(&self.ledger().ban_lookups, 1);
        let BanTestResult::No(ban) = self.bans.test(object, object.is_live()) else { return true };
        count(&self.ledger().ban_lookups_met, 1);
        let mut dead = RemovedObjects::new();
        self.expel(place.shard, vec![(place.h32, Arc::clone(object), ban)], &mut dead);
        false
    }

    /// Shows everything stored to `each`, as long as it says so, no lock being held. What comes or
    /// goes meanwhile may be missed, what is moved may be shown twice.
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

    fn sweep_shard(&self, at: usize, target: u32, pause: &mut dyn FnMut()) {
        let mut cursor = Position::default();
        while self.sweep_batch(at, target, &mut cursor) {
            pause();
        }
    }

    /// Tests the next places of a shard; whether there are more.
    fn sweep_batch(&self, at: usize, target: u32, cursor: &mut Position) -> bool {
        let mut found = Vec::new();
        let more = self.shared_shard(at).untested(target, cursor, BATCH, &mut found);
        count(&self.ledger().ban_sweeps, found.len() as u64);
        let mut banned = Vec::new();
        for (h32, object) in found {
            if let BanTestResult::No(ban) = self.bans.test(&object, object.is_live()) {
                banned.push((h32, object, ban));
            }
        }
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

/// A response to be taken out, with its hash and the ban it has met.
type BannedObject = (u32, Arc<Object>, Option<Arc<Ban>>);
