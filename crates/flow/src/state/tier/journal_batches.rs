//! Journal batches: the invalidations in the disk's journal that the next process may need. Those
//! of keys are needed until their responses are forgotten, bans while the cache keeps them.

use smallvec::SmallVec;

/// Invalidations that took effect together.
#[derive(Debug)]
struct JournalBatch {
    /// Their numbers in the disk's sequence.
    numbers: SmallVec<[u64; 1]>,
    /// The bans lie behind the first of these numbers, up to the second; `None` without bans.
    bans: Option<(u32, u32)>,
}

/// All batches in the journal, in the order of their effects.
#[derive(Debug, Default)]
pub(crate) struct JournalBatches {
    batches: Vec<JournalBatch>,
    newest_ban: u32,
}

/// Batches that are no longer needed.
#[derive(Debug, Default)]
pub(crate) struct ObsoleteBatches {
    pub(crate) numbers: Vec<u64>,
    /// Records of a lower order are void: they were not tested against a forgotten ban.
    pub(crate) void: u64,
}

impl JournalBatch {
    fn last(&self) -> u64 {
        self.numbers.last().copied().unwrap_or(0)
    }
}

impl JournalBatches {
    /// Adds invalidations in force; `newest_ban` is the number of their newest ban.
    pub(crate) fn add(&mut self, numbers: impl IntoIterator<Item = u64>, newest_ban: Option<u32>) {
        let bans =
            newest_ban.map(|newest| (std::mem::replace(&mut self.newest_ban, newest), newest));
        let numbers: SmallVec<[u64; 1]> = numbers.into_iter().collect();
        if !numbers.is_empty() {
            self.batches.push(JournalBatch { numbers, bans });
        }
    }

    /// Notes that batches up to this number were released.
    pub(crate) fn release(&mut self, up_to: u64) {
        self.batches.retain(|batch| batch.last() > up_to);
    }

    /// Takes the unneeded batches up to number `sealed`. Bans `alive`, in order, are in force;
    /// those up to `forgotten` may not be.
    pub(crate) fn take(&mut self, sealed: u64, alive: &[u32], forgotten: u32) -> ObsoleteBatches {
        let mut needless = ObsoleteBatches::default();
        self.batches.retain(|batch| {
            let is_needed = batch.last() > sealed
                || batch.bans.is_some_and(|(after, newest)| {
                    let next = alive.partition_point(|ban| *ban <= after);
                    alive.get(next).is_some_and(|ban| *ban <= newest)
                });
            if !is_needed {
                needless.numbers.extend_from_slice(&batch.numbers);
                if batch.bans.is_some_and(|(_, newest)| newest <= forgotten) {
                    needless.void = batch.last();
                }
            }
            is_needed
        });
        needless
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_needed_until_they_are_on_disk_and_bans_as_long_as_they_are_known() {
        let mut kept = JournalBatches::default();
        kept.add([10], None);
        kept.add([11, 12], Some(2));
        kept.add([13], Some(3));
        kept.add([14], None);
        kept.add([15], Some(4));
        let ObsoleteBatches { numbers, void } = kept.take(9, &[1, 2, 3, 4], 0);
        assert_eq!((&*numbers, void), (&[][..], 0), "not on disk");
        let ObsoleteBatches { numbers, void } = kept.take(13, &[2, 3, 4], 1);
        assert_eq!((&*numbers, void), (&[10][..], 0), "its batch made bans 1 and 2");
        let ObsoleteBatches { numbers, void } = kept.take(20, &[2, 4], 1);
        assert_eq!((&*numbers, void), (&[13, 14][..], 0), "a newer ban repeats ban 3");
        let ObsoleteBatches { numbers, void } = kept.take(20, &[4], 2);
        assert_eq!((&*numbers, void), (&[11, 12][..], 12), "what is older is not used any more");
        kept.release(15);
        assert!(kept.batches.is_empty());
    }
}
