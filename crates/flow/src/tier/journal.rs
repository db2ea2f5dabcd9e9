//! Journal on the disk: invalidations are written before they are answered, so that they hold after
//! a restart.

use std::sync::Arc;

use bytes::Bytes;
use disk::InvalidationGuard;
use purge::{Invalidation, Journal, JournalWrite};

use crate::state::tier::Cache;

/// The journal of a store's disk.
pub(super) struct DiskJournal {
    pub(super) cache: Arc<Cache>,
}

/// A batch of invalidations being written.
struct DiskRecording {
    cache: Arc<Cache>,
    effects: Vec<InvalidationGuard>,
    writing: Vec<disk::InvalidationWrite>,
}

impl Journal for DiskJournal {
    fn name(&self) -> &str {
        "disk"
    }

    fn record(&self, batch: &[&Invalidation]) -> Result<Box<dyn JournalWrite>, String> {
        let cache = Arc::clone(&self.cache);
        let mut recording = DiskRecording { cache, effects: Vec::new(), writing: Vec::new() };
        let lower = self.cache.lower();
        let Some(disk) = lower.disk().filter(|_| !lower.is_handed_over()) else {
            return Ok(Box::new(recording));
        };
        for invalidation in batch {
            let bytes = Bytes::from(invalidation.encode());
            let begun = disk.begin_append(bytes).map_err(|error| error.to_string())?;
            recording.effects.push(begun.0);
            recording.writing.push(begun.1);
        }
        Ok(Box::new(recording))
    }

    fn wait(&self) -> Result<(), String> {
        let lower = self.cache.lower();
        let Some(disk) = lower.disk().filter(|_| !lower.is_handed_over()) else { return Ok(()) };
        disk.begun().wait().map_err(|error| error.to_string())
    }
}

impl JournalWrite for DiskRecording {
    fn took_effect(&mut self, newest_ban: Option<u32>) {
        // An object not tested against the newest ban may not be tested against the first one
        // either.
        let first = self.effects.first().map(InvalidationGuard::number);
        if let Some(store) = self.cache.lower().store.get() {
            if let (Some(ban), Some(number)) = (newest_ban, first) {
                store.bans.lock().push_back((ban, number));
            }
            store.kept.lock().add(self.effects.iter().map(InvalidationGuard::number), newest_ban);
        }
        // From here on, new records count as younger than these invalidations.
        self.effects.clear();
    }

    fn wait(self: Box<Self>) -> Result<(), String> {
        for writing in self.writing {
            writing.wait().map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}
