//! Store of the tier: a disk in use under the cache.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use base::HashSeed;
use cache::Object;
use disk::{Disk, RecordAddress, RecordData, RecordRequest};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::journal_batches::JournalBatches;

/// Rules of admission to the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskRules {
    /// Each evicted response is kept, requested again or not.
    pub admit_all: bool,
}

/// A disk in use.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) disk: Disk,
    pub(crate) rules: DiskRules,
    /// Milliseconds that a request waits for the disk before it asks an origin.
    pub(crate) read_ms: AtomicU64,
    /// Milliseconds that a started body waits for its next bytes, as for an origin's.
    pub(crate) next_ms: AtomicU64,
    /// The percentage of a volume that readers may pin.
    pub(crate) read_share: AtomicU64,
    /// The seed of the hashes on disk.
    pub(crate) seed: HashSeed,
    /// The number in the disk's sequence of each invalidation of former processes, in order, and
    /// the newest ban once it was in force here.
    pub(crate) former: Vec<(u64, u32)>,
    /// For bans made here that objects in memory may not be tested against: the newest ban of an
    /// invalidation, and the invalidation's number.
    pub(crate) bans: Mutex<VecDeque<(u32, u64)>>,
    /// Invalidations in the journal.
    pub(crate) kept: Mutex<JournalBatches>,
}

impl Store {
    /// The newest ban that a record was tested against, from its position in the disk's sequence
    /// and the ban stored beside it.
    pub(crate) fn passed(&self, order: u64, passed: u32) -> u32 {
        if order >= self.disk.began() {
            return passed;
        }
        let later = self.former.partition_point(|(number, _)| *number <= order);
        self.former[..later].last().map_or(0, |(_, ban)| *ban)
    }

    /// The newest invalidation that `object` was tested against; `None` for all.
    pub(crate) fn order(&self, object: &Object) -> Option<u64> {
        let passed = object.passed();
        let bans = self.bans.lock();
        let untested = bans.iter().find(|(ban, _)| *ban > passed);
        untested.map(|(_, number)| number - 1)
    }

    /// Reads from the disk within the time limit. A read of a body has more time, as no origin can
    /// supply the rest.
    pub(crate) fn ask(
        &self,
        place: RecordAddress,
        hash: u64,
        ask: RecordRequest,
    ) -> oneshot::Receiver<Result<RecordData, disk::Error>> {
        let (sender, asked) = oneshot::channel();
        let within_ms = if ask.head { &self.read_ms } else { &self.next_ms };
        let deadline_ms = rt::now().mono_ms.saturating_add(within_ms.load(Ordering::Relaxed));
        // The receiver may have given up.
        let done = Box::new(move |answer| _ = sender.send(answer));
        self.disk.read(place, hash, ask, deadline_ms, done);
        asked
    }
}
