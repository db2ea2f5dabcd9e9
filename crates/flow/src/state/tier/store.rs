//! A disk in use under the cache.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use base::HashSeed;
use cache::Object;
use disk::{Disk, RecordAddress, RecordData, RecordRequest};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::journal_batches::JournalBatches;

/// Rules for what goes to the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskRules {
    /// Everything that leaves memory is kept, asked for again or not.
    pub admit_all: bool,
}

/// A disk in use.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) disk: Disk,
    pub(crate) rules: DiskRules,
    /// Milliseconds that a request waits for the disk, before it asks an origin.
    pub(crate) read_ms: AtomicU64,
    /// Milliseconds that a body which has begun waits for its next bytes, as for an origin's.
    pub(crate) next_ms: AtomicU64,
    /// Share of a volume that readers keep from being reclaimed, in percent.
    pub(crate) read_share: AtomicU64,
    /// The seed of hashes that the disk keeps.
    pub(crate) seed: HashSeed,
    /// For each invalidation of former processes, in their order: its number in the disk's
    /// sequence, and the newest ban once it had taken effect here.
    pub(crate) former: Vec<(u64, u32)>,
    /// For bans made here that something in memory may not have passed yet: the newest of one
    /// invalidation, and the number of that.
    pub(crate) bans: Mutex<VecDeque<(u32, u64)>>,
    /// Invalidations that the journal has.
    pub(crate) kept: Mutex<JournalBatches>,
}

impl Store {
    /// The newest ban that a record has passed, by its place in the disk's sequence and by what
    /// stands beside it.
    pub(crate) fn passed(&self, order: u64, passed: u32) -> u32 {
        if order >= self.disk.began() {
            return passed;
        }
        let later = self.former.partition_point(|(number, _)| *number <= order);
        self.former[..later].last().map_or(0, |(_, ban)| *ban)
    }

    /// The newest invalidation that `object` has been tested against; `None` for all that there
    /// are.
    pub(crate) fn order(&self, object: &Object) -> Option<u64> {
        let passed = object.passed();
        let bans = self.bans.lock();
        let untested = bans.iter().find(|(ban, _)| *ban > passed);
        untested.map(|(_, number)| number - 1)
    }

    /// Asks the disk, which answers in time or not at all. Where only bytes of a body are asked for
    /// nobody else could be asked instead, and there is more time.
    pub(crate) fn ask(
        &self,
        place: RecordAddress,
        hash: u64,
        ask: RecordRequest,
    ) -> oneshot::Receiver<Result<RecordData, disk::Error>> {
        let (sender, asked) = oneshot::channel();
        let within_ms = if ask.head { &self.read_ms } else { &self.next_ms };
        let deadline_ms = rt::now().mono_ms.saturating_add(within_ms.load(Ordering::Relaxed));
        // Whoever does not wait any more is told nothing.
        let done = Box::new(move |answer| _ = sender.send(answer));
        self.disk.read(place, hash, ask, deadline_ms, done);
        asked
    }
}
