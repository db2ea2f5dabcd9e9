//! Chores of the tier in the background: copies of valuable responses, the records of lost volumes,
//! the release of journal entries; and the copy of all memory at shutdown.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cache::{IndexWalk, Object};
use disk::VolumeCondition;

use super::body::may_answer;
use super::store::Store;
use super::{Cache, Tier};

/// Milliseconds between two rounds.
const EVERY_MS: u64 = 900;
/// The fraction of the index that one round examines: the whole takes five seconds.
const ROUNDS: u64 = 5;
/// The fewest index slots of a round.
const PLACES_MIN: u64 = 16 * 1024;
/// Pieces between two pauses: a few hundred microseconds.
const PIECES: u32 = 8;
const PAUSE: Duration = Duration::from_micros(100);
/// A pause for a busy disk.
const CATCH_UP: Duration = Duration::from_millis(2);

/// The position of the last round.
#[derive(Debug, Default)]
pub(crate) struct Chores {
    walk: IndexWalk,
    began_ms: u64,
    /// Invalidations up to this number were released.
    released: u64,
    /// The full index was logged.
    has_told_index: bool,
}

/// The result of the copy at shutdown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShutdownOutcome {
    /// Responses copied.
    pub copied: usize,
    /// The time was used up before all responses were examined.
    pub is_cut: bool,
}

/// Does the chores of a second, unless another core just did.
pub(crate) fn look_after(cache: &Arc<Cache>, now_ms: u64) {
    if cache.lower().store.get().is_none() || cache.lower().is_handed_over() {
        return;
    }
    let Ok(mut chores) = Arc::clone(&cache.lower().chores).try_lock_owned() else { return };
    if now_ms < chores.began_ms + EVERY_MS {
        return;
    }
    chores.began_ms = now_ms;
    let cache = Arc::clone(cache);
    rt::blocking(move || {
        let tier = Arc::clone(cache.lower());
        let Some(store) = tier.store.get() else { return };
        let mut pieces = 0_u32;
        let mut pause = || {
            pieces += 1;
            if pieces.is_multiple_of(PIECES) {
                rt::pause(PAUSE);
            }
        };
        tier.forget_lost(&cache, &mut pause);
        if tier.found.goes_on() && store.disk.has_found() {
            tier.found.end();
        }
        let places = (cache.keys() / ROUNDS).max(PLACES_MIN);
        let is_meant = |object: &Object| may_answer(object, now_ms) && store.is_worth_it(object);
        let places = usize::try_from(places).unwrap_or(usize::MAX);
        cache.copy_down(&mut chores.walk, places, &is_meant, &mut pause);
        chores.log_full_index(&cache);
        if !tier.found.goes_on() {
            store.release(cache.swept_bans(), &mut chores.released);
            store.drop_needless(&tier, &cache);
        }
    });
}

impl Chores {
    /// Logs once that the index is full.
    fn log_full_index(&mut self, cache: &Cache) {
        let index = cache.index();
        if index.is_short() && !std::mem::replace(&mut self.has_told_index, true) {
            base::tell!(
                Warn,
                "larder: the index of the disk cache is full: of {} in `[limits] \
                 disk_index_bytes` {} are used, so what is worth least leaves the disk",
                base::units::Bytes(index.most()),
                base::units::Bytes(index.used())
            );
        }
    }
}

impl Tier {
    /// Notes the new condition of a volume with this number and name.
    pub(crate) fn note_condition(&self, volume: usize, name: &str, condition: VolumeCondition) {
        if let VolumeCondition::Out(_) = condition {
            self.lost.lock().push(volume);
        }
        match condition {
            VolumeCondition::In => {
                base::tell!(Notice, "larder: the disk cache in {name} is in use again");
            }
            VolumeCondition::Pausing(reason) => {
                let why = reason.about();
                base::tell!(Warn, "larder: the disk cache in {name} pauses: {why}");
            }
            VolumeCondition::Out(reason) => {
                let why = reason.about();
                base::tell!(
                    Error,
                    "larder: the disk cache in {name} is out of use: {why}. Larder runs without \
                     it, and empties it and takes it back when it is well (tried each disk_retry)"
                );
            }
        }
    }

    /// Removes the records of lost volumes from the index.
    fn forget_lost(&self, cache: &Cache, pause: &mut dyn FnMut()) {
        let lost = std::mem::take(&mut *self.lost.lock());
        if !lost.is_empty() {
            cache.drop_cold_where(&|place| lost.contains(&place.volume()), pause);
        }
    }

    /// Copies everything in memory that may answer again, so that the next process finds it at
    /// once. Takes `most` at most, about; `None` without a disk.
    pub fn copy_all(&self, cache: &Cache, most: Duration) -> Option<ShutdownOutcome> {
        let store = self.store.get()?;
        self.is_resting.store(true, Ordering::Relaxed);
        let until_ms = rt::now().mono_ms.saturating_add(most.as_millis() as u64);
        let mut resting = ShutdownOutcome::default();
        let mut walk = IndexWalk::default();
        loop {
            let now_ms = rt::now().mono_ms;
            let is_late = || rt::now().mono_ms > until_ms;
            let is_meant = |object: &Object| may_answer(object, now_ms) && !is_late();
            let mut pause = || {
                while store.disk.is_behind() && !is_late() {
                    rt::pause(CATCH_UP);
                }
            };
            let copied = cache.copy_down(&mut walk, usize::MAX, &is_meant, &mut pause);
            resting.copied += copied;
            resting.is_cut = is_late();
            // Responses that were refused for a full queue are tried again.
            if copied == 0 || resting.is_cut {
                break;
            }
        }
        Some(resting)
    }

    /// Closes the disk.
    pub fn close(&self) {
        if let Some(disk) = self.disk() {
            disk.close();
        }
    }

    /// Notes that another process records invalidations from now on.
    pub(crate) fn note_handed_over(&self) {
        self.is_handed_over.store(true, Ordering::Release);
    }

    /// Returns true if there is a disk whose invalidations another process records.
    pub fn is_recorded_elsewhere(&self) -> bool {
        self.is_handed_over() && self.disk().is_some()
    }

    /// Closes the disk for another process. This one goes on without writing, and still reads what
    /// its clients have begun to read.
    pub fn close_for_other(&self) {
        if let Some(disk) = self.disk() {
            disk.close_for_other();
        }
    }

    /// Returns true if the disk belongs to another process.
    pub(crate) fn is_handed_over(&self) -> bool {
        self.is_handed_over.load(Ordering::Acquire)
    }
}

impl Store {
    /// Releases journal entries that are older than all stored responses.
    fn release(&self, swept: u32, released: &mut u64) {
        let untested = {
            let mut bans = self.bans.lock();
            while bans.front().is_some_and(|(ban, _)| *ban <= swept) {
                bans.pop_front();
            }
            bans.front().map_or(u64::MAX, |(_, number)| number - 1)
        };
        let up_to = self.disk.oldest().unwrap_or(u64::MAX).min(untested);
        if up_to > *released {
            *released = up_to;
            self.disk.release(up_to);
            self.kept.lock().release(up_to);
        }
    }
}

impl Store {
    /// Drops journal entries that no later process needs. Call it once all records of the start are
    /// found.
    pub(crate) fn drop_needless(&self, tier: &Tier, cache: &Cache) {
        let sealed = self.disk.sealed();
        // In this order, a ban that ends meanwhile does not count as replaced by newer ones.
        let alive: Vec<u32> = cache.bans().iter().map(|listed| listed.ban.number()).collect();
        let forgotten = cache.forgotten_bans();
        let mut kept = self.kept.lock();
        if tier.has_parting() {
            return;
        }
        let needless = kept.take(sealed, &alive, forgotten);
        drop(kept);
        if needless.void > 0 {
            self.disk.discard_before(needless.void);
        }
        self.disk.drop_invalidations(&needless.numbers);
    }
}
