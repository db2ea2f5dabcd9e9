//! The start over a disk: what former processes have left is found, and what they invalidated is
//! invalidated once more.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use base::{HashSeed, Now};
use disk::{Config, Disk, OpenedStore, RecordAddress, VolumeCondition};
use parking_lot::Mutex;

use super::journal::DiskJournal;
use crate::state::invalidate::Invalidator;
use crate::state::tier::{Cache, DiskRules, JournalBatches, Store, Tier};

/// A disk under a cache, before it is taken up.
#[derive(Debug)]
pub struct OpenedDisk {
    opened: OpenedStore,
    rules: DiskRules,
}

/// The outcome of taking a disk up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiskStartOutcome {
    /// Invalidations of former processes that may still matter, and are in force again.
    pub invalidations: usize,
    /// Reasons why some could not be put in force: whatever is older than they are is not used.
    pub not_done: Vec<String>,
    /// Volumes, by their numbers, that had something that was not to be trusted, and are empty.
    pub emptied: Vec<usize>,
    /// Volumes that cannot be used now, and are tried again: each with the reason, and what to do.
    pub failed: Vec<(String, &'static str)>,
}

/// Of the budget, what waits for the disk may take one part in so many: it is stored responses that
/// have left the index, and stay charged until they are written. What does not fit is not kept, so
/// that evicting makes room for requests however slow the disk is.
const QUEUE_PARTS: u64 = 4;
/// The least for that, within half of the budget: some long records.
const QUEUE_MIN: u64 = 8 << 20;

/// Opens a disk for what leaves `cache`. It is in use once [`OpenedDisk::take_up`] has been called.
///
/// # Errors
/// The settings or the disks are of no use.
pub fn open(
    cache: &Arc<Cache>,
    mut config: Config,
    rules: DiskRules,
) -> Result<OpenedDisk, disk::Error> {
    let drawn = HashSeed::draw().to_le_bytes();
    config.owner[..drawn.len()].copy_from_slice(&drawn);
    config.index = Arc::clone(cache.index());
    let (budget, volumes) = (cache.config().budget_bytes, config.volumes.len() as u64);
    let share = (budget / QUEUE_PARTS).max(QUEUE_MIN).min(budget / 2);
    config.queue_bytes = config.queue_bytes.min(share / volumes.max(1));
    let names = config.volumes.iter().map(|volume| volume.vfs.name()).collect();
    let owner = Arc::new(Index { cache: Arc::downgrade(cache), names });
    let opened = Disk::open(config, owner, Arc::new(rt::now))?;
    Ok(OpenedDisk { opened, rules })
}

impl OpenedDisk {
    /// The seed of hashes that the disk keeps: those of its records were made with it.
    pub fn seed(&self) -> HashSeed {
        HashSeed::from_u64(seed_bits(&self.opened))
    }

    /// Takes the disk up below the cache of `door`: invalidations of former processes are put in
    /// force again, new ones are written down, and what is there is found behind that. Once, before
    /// the first request; the configuration is in force.
    pub fn take_up(self, door: &Arc<Invalidator>, now: Now) -> DiskStartOutcome {
        let Self { opened, rules } = self;
        let tier = door.cache.lower();
        let mut told = DiskStartOutcome {
            invalidations: opened.invalidations.len(),
            emptied: opened.emptied.clone(),
            failed: (opened.failed.iter())
                .map(|(_, why)| (why.to_string(), why.remedy()))
                .collect(),
            ..DiskStartOutcome::default()
        };
        tier.found.goes_on.store(true, Ordering::Release);
        let (mut former, mut kept) = (Vec::new(), JournalBatches::default());
        for invalidation in &opened.invalidations {
            let number = invalidation.number;
            tier.found.replayed.store(number, Ordering::Relaxed);
            let before = door.cache.newest_ban();
            let done = door.replay_unswept(&invalidation.bytes, now);
            let newest = door.cache.newest_ban();
            kept.add([number], (newest > before).then_some(newest));
            match done {
                Ok(()) => former.push((number, newest)),
                Err(why) => {
                    tier.found.floor.store(number, Ordering::Relaxed);
                    told.not_done.push(why.to_string());
                }
            }
        }
        tier.found.replayed.store(0, Ordering::Relaxed);
        let seed = HashSeed::from_u64(seed_bits(&opened));
        let live = door.in_force.live();
        let read_ms = live.limits.disk_read_timeout.into();
        let next_ms = live.limits.between_bytes_timeout.into();
        let read_share = live.limits.disk_read_share.into();
        let (disk, bans, kept) = (opened.disk, Mutex::default(), Mutex::new(kept));
        let store = Store { disk, rules, read_ms, next_ms, read_share, seed, former, bans, kept };
        if tier.store.set(store).is_ok() {
            door.record_invalidations(Arc::new(DiskJournal { cache: Arc::clone(&door.cache) }));
            tier.store.get().into_iter().for_each(|store| store.disk.find());
        }
        told
    }
}

fn seed_bits(opened: &OpenedStore) -> u64 {
    opened.owner.first_chunk().map_or(0, |bits| u64::from_le_bytes(*bits))
}

/// The index, as the disk knows it.
struct Index {
    cache: Weak<Cache>,
    /// Names of the volumes.
    names: Vec<String>,
}

impl Index {
    fn with<T>(&self, call: impl FnOnce(&Arc<Cache>, &Tier) -> T) -> Option<T> {
        let cache = self.cache.upgrade()?;
        Some(call(&cache, cache.lower()))
    }
}

impl disk::Owner for Index {
    fn found(&self, records: &[disk::FoundRecord]) {
        self.with(|cache, tier| {
            for found in records {
                let is_wanted = |h32| tier.found.wants(h32, found.order);
                if !cache.add_cold(found.hash, found.place, is_wanted)
                    && let Some(disk) = tier.disk()
                {
                    disk.forget(found.place);
                }
            }
        });
    }

    fn moved(&self, hash: u64, old: RecordAddress, new: RecordAddress) -> bool {
        let moved = self.with(|cache, tier| {
            let is_there = cache.move_cold(hash, old, new);
            tier.note_moved(old, is_there.then_some(new));
            is_there
        });
        moved.unwrap_or(false)
    }

    fn dropped(&self, hash: u64, place: RecordAddress) {
        self.with(|cache, tier| {
            cache.drop_cold(hash, place);
            tier.note_moved(place, None);
        });
    }

    fn changed(&self, volume: usize, condition: VolumeCondition) {
        let name = self.names.get(volume).map_or("", String::as_str);
        self.with(|_, tier| tier.note_condition(volume, name, condition));
    }
}
