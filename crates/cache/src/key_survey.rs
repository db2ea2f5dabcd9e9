//! Survey of keys, for operators: those that `Vary` splits, and those with a hit-for-miss mark. It
//! must not change anything, and holds no lock for longer than one batch.

use std::sync::Arc;

use crate::borrowed_body::BorrowedBody;
use crate::cache::Cache;
use crate::lower::Lower;
use crate::object::Object;
use crate::shard::Position;
use crate::slot::KeyEntries;

/// Slots that are visited under one hold of the lock: some microseconds.
const BATCH: usize = 128;

/// A key with several variants, or with a hit-for-miss mark.
#[derive(Clone, Debug)]
pub struct SurveyedKey {
    /// The key.
    pub key: Arc<[u8]>,
    /// Its variants, in the order in which they were stored.
    pub variants: Vec<Arc<Object>>,
    /// The end of hit-for-miss, in milliseconds of the monotonic clock.
    pub marked_until_ms: Option<u64>,
}

impl SurveyedKey {
    fn of(entries: &KeyEntries) -> Option<Self> {
        let marked_until_ms = entries.marker.map(|marker| marker.until_ms);
        let is_meant = entries.variants.len() > 1 || marked_until_ms.is_some();
        is_meant.then(|| Self {
            key: Arc::clone(&entries.key),
            variants: entries.variants.to_vec(),
            marked_until_ms,
        })
    }

    /// The number of different bodies that the variants have, as far as these are whole in memory.
    pub fn bodies(&self) -> usize {
        let mut known: Vec<BorrowedBody<'_>> = Vec::new();
        for body in self.variants.iter().filter_map(|object| object.whole()) {
            if !known.iter().any(|other| body.has_bytes_of(*other)) {
                known.push(body);
            }
        }
        known.len()
    }
}

impl<L: Lower> Cache<L> {
    /// Passes every key with several variants or a mark to `each`. Keys that enter or leave
    /// meanwhile may be missed; keys that move may be passed twice. `pause` is called every few
    /// microseconds, without a lock.
    pub fn survey(&self, each: &mut dyn FnMut(SurveyedKey), pause: &mut dyn FnMut()) {
        let mut found = Vec::new();
        for at in 0..self.shards() {
            let mut cursor = Position::default();
            let mut more = true;
            while more {
                more = self.shared_shard(at).walk_entries(&mut cursor, BATCH, &mut |entries| {
                    found.extend(SurveyedKey::of(entries));
                });
                found.drain(..).for_each(&mut *each);
                pause();
            }
        }
    }
}
