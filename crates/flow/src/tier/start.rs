//! Start over a disk: records of former processes are found, and their invalidations are replayed.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use base::{HashSeed, Now};
use disk::{Config, Disk, OpenedStore, RecordAddress, VolumeCondition};
use parking_lot::Mutex;

use super::journal::DiskJournal;
use crate::state::invalidate::Invalidator;
use crate::state::tier::{Cache, DiskRules, JournalBatches, Store, Tier};

/// A disk before it is attached to a cache.
#[derive(Debug)]
pub struct OpenedDisk {
    opened: OpenedStore,
    rules: DiskRules,
}

/// The result of attaching a disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiskStartOutcome {
    /// Invalidations of former processes that were replayed.
    pub invalidations: usize,
    /// Reasons for which others could not be replayed: all older records are void.
    pub not_done: Vec<String>,
    /// Numbers of volumes with untrustworthy content, which were emptied.
    pub emptied: Vec<usize>,
    /// Volumes that cannot be used now and are tried again: name, reason and advice.
    pub failed: Vec<(String, &'static str)>,
}

/// The fraction of the budget for the write queue: it holds evicted responses, which stay charged
/// until they are written. Responses beyond it are not kept, so that eviction frees memory however
/// slow the disk is.
const QUEUE_PARTS: u64 = 4;
/// The least size of the queue, within half of the budget: some long records.
const QUEUE_MIN: u64 = 8 << 20;

/// Opens a disk for `cache`. It is used once [`OpenedDisk::take_up`] is called.
///
/// # Errors
/// The settings or the disks are unusable.
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
    /// The seed of the hashes on disk, with which its records were written.
    pub fn seed(&self) -> HashSeed {
        HashSeed::from_u64(self.seed_number())
    }

    /// The number that the seed is made from.
    pub fn seed_number(&self) -> u64 {
        seed_bits(&self.opened)
    }

    /// Attaches the disk below the cache of `invalidator`: replays former invalidations, journals
    /// new ones, and finds records in the background. Call it once, before the first request, with
    /// the configuration in force.
    pub fn take_up(self, invalidator: &Arc<Invalidator>, now: Now) -> DiskStartOutcome {
        let Self { opened, rules } = self;
        let tier = invalidator.cache.lower();
        let mut outcome = DiskStartOutcome {
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
            let before = invalidator.cache.newest_ban();
            let done = invalidator.replay_unswept(&invalidation.bytes, now);
            let newest = invalidator.cache.newest_ban();
            kept.add([number], (newest > before).then_some(newest));
            match done {
                Ok(()) => former.push((number, newest)),
                Err(why) => {
                    tier.found.floor.store(number, Ordering::Relaxed);
                    outcome.not_done.push(why.to_string());
                }
            }
        }
        tier.found.replayed.store(0, Ordering::Relaxed);
        let seed = HashSeed::from_u64(seed_bits(&opened));
        let live = invalidator.in_force.live();
        let read_ms = live.limits.disk_read_timeout.into();
        let next_ms = live.limits.between_bytes_timeout.into();
        let read_share = live.limits.disk_read_share.into();
        let (disk, bans, kept) = (opened.disk, Mutex::default(), Mutex::new(kept));
        let store = Store { disk, rules, read_ms, next_ms, read_share, seed, former, bans, kept };
        if tier.store.set(store).is_ok() {
            invalidator.record_invalidations(Arc::new(DiskJournal {
                cache: Arc::clone(&invalidator.cache),
            }));
            tier.store.get().into_iter().for_each(|store| store.disk.find());
        }
        outcome
    }
}

fn seed_bits(opened: &OpenedStore) -> u64 {
    opened.owner.first_chunk().map_or(0, |bits| u64::from_le_bytes(*bits))
}

/// The index as the disk sees it.
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
