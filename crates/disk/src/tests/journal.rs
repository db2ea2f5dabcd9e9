//! The journal alone: items that are added while a new file replaces the old one.

use std::sync::OnceLock;

use super::*;
use crate::journal::{Chain, CommitMoment, Journal, JournalHistory, JournalItem};
use crate::vfs::{FaultyDirectory, InjectedFault, MemoryDirectory, Operation};

const KEY: u64 = 7;

/// A journal, and the number of the next invalidation.
#[derive(Default)]
struct Busy {
    journal: OnceLock<Journal>,
    next: AtomicU64,
}

impl Busy {
    /// A journal that gets an invalidation at every operation of its disk, which `fault` may fail.
    fn over(
        memory: &MemoryDirectory,
        fault: impl Fn(&str, Operation) -> Option<InjectedFault> + Send + Sync + 'static,
    ) -> Arc<Self> {
        let busy = Arc::new(Self::default());
        let own = Arc::downgrade(&busy);
        let vfs = FaultyDirectory::new(memory.clone(), move |name, operation| {
            if let Some(busy) = own.upgrade() {
                busy.invalidate();
            }
            fault(name, operation)
        });
        let mut past = JournalHistory::read(memory, KEY, None).unwrap();
        assert!(busy.journal.set(Journal::new(Arc::new(vfs), KEY, &mut past)).is_ok());
        busy
    }

    fn invalidate(&self) {
        let Some(journal) = self.journal.get() else { return };
        let number = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        journal
            .push(JournalItem::Invalidation(number, Bytes::copy_from_slice(&number.to_le_bytes())));
    }

    fn journal(&self) -> &Journal {
        self.journal.get().unwrap()
    }

    /// The invalidations that were reported durable.
    fn durable(&self) -> u64 {
        let is = |ticket: &u64| self.journal().wait(*ticket, 0, || 0).is_ok();
        (1..=self.journal().ticket()).take_while(is).count() as u64
    }
}

fn moment() -> CommitMoment {
    CommitMoment { now: Now { mono_ms: 1, unix_ms: START_MS }, next: 1 }
}

/// All invalidations that a start finds with a snapshot of generation `from`.
fn known(memory: &MemoryDirectory, from: u64) -> Vec<u64> {
    let past = JournalHistory::read(memory, KEY, Some(from)).unwrap();
    assert_eq!(past.chain, Chain::Whole);
    past.keep.invalidations.into_keys().collect()
}

#[test]
fn items_added_during_a_rotation_are_in_the_journal_before_they_are_durable() {
    let memory = MemoryDirectory::new();
    let busy = Busy::over(&memory, |_, _| None);
    for generation in 0..5 {
        busy.journal().rotate(moment(), generation, 100).unwrap();
        // With a snapshot, earlier journals are not read.
        let (known, durable) = (known(&memory, generation), busy.durable());
        assert!(known.len() as u64 >= durable && durable >= generation * 3, "{durable}: {known:?}");
        assert!(known.iter().copied().eq(1..=known.len() as u64), "{known:?}");
        busy.journal().flush(moment()).unwrap();
    }
}

#[test]
fn what_is_added_while_a_journal_cannot_begin_is_in_the_old_one() {
    let memory = MemoryDirectory::new();
    let full = |name: &str, operation| {
        let refused = name.ends_with("1.new") && operation == Operation::Sync;
        refused.then_some(InjectedFault::Full)
    };
    let busy = Busy::over(&memory, full);
    busy.journal().rotate(moment(), 0, 100).unwrap();
    busy.journal().rotate(moment(), 1, 100).unwrap_err();
    busy.journal().flush(moment()).unwrap();
    let (known, durable) = (known(&memory, 0), busy.durable());
    assert!(durable > 5 && known.iter().copied().eq(1..=durable), "{durable}: {known:?}");
}
