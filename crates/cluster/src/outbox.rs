//! The outbox: entries on their way to the stream, in the order of their effects here. Pure.
//!
//! While the stream is unreachable they wait, up to a limit. Beyond it one entry replaces all, by
//! which nodes trust nothing stored before. No entry may be dropped without that.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::watch;

use crate::entry::EntryId;

/// The fate of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryFate {
    /// It waits, or is being sent.
    Waits,
    /// The stream has stored it at this sequence.
    Stored(u64),
    /// It was dropped for an entry by which nothing stored before is trusted.
    Replaced,
}

/// An entry in the outbox.
#[derive(Clone, Debug)]
pub struct OutboxEntry {
    /// Its identity.
    pub id: EntryId,
    /// Its bytes.
    pub bytes: Bytes,
    fate: Arc<watch::Sender<EntryFate>>,
}

impl OutboxEntry {
    /// An entry that waits.
    pub fn new(id: EntryId, bytes: Bytes) -> Self {
        Self { id, bytes, fate: Arc::new(watch::Sender::new(EntryFate::Waits)) }
    }

    /// Its fate, now and later.
    pub fn follow(&self) -> watch::Receiver<EntryFate> {
        self.fate.subscribe()
    }

    /// Notes that the stream has stored it.
    pub fn stored(&self, sequence: u64) {
        self.fate.send_replace(EntryFate::Stored(sequence));
    }
}

/// Entries to be sent, oldest first.
#[derive(Debug)]
pub struct Outbox {
    waiting: VecDeque<OutboxEntry>,
    most: usize,
    /// Times the outbox overflowed.
    pub overflows: u64,
}

impl Outbox {
    /// An outbox for `most` entries.
    pub fn new(most: usize) -> Self {
        Self { waiting: VecDeque::new(), most: most.max(1), overflows: 0 }
    }

    /// Adds an entry. If the outbox is full, `everything` replaces all entries, including this one.
    pub fn add(&mut self, queued: OutboxEntry, everything: impl FnOnce() -> OutboxEntry) {
        self.waiting.push_back(queued);
        if self.waiting.len() > self.most {
            for queued in self.waiting.drain(..) {
                queued.fate.send_replace(EntryFate::Replaced);
            }
            self.waiting.push_back(everything());
            self.overflows += 1;
        }
    }

    /// Takes the next entry.
    pub fn take(&mut self) -> Option<OutboxEntry> {
        self.waiting.pop_front()
    }

    /// Puts entries whose arrival is unknown back, before all others.
    pub fn put_back(&mut self, entries: impl DoubleEndedIterator<Item = OutboxEntry>) {
        entries.rev().for_each(|queued| self.waiting.push_front(queued));
    }

    /// Takes the entry `number` out of turn, if it waits.
    pub fn take_number(&mut self, number: u64) -> Option<OutboxEntry> {
        let at = self.waiting.iter().position(|queued| queued.id.number == number)?;
        self.waiting.remove(at)
    }

    /// Waiting entries, oldest first.
    pub fn entries(&self) -> impl Iterator<Item = &OutboxEntry> {
        self.waiting.iter()
    }

    /// The number of waiting entries.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Returns true if no entry waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(number: u64) -> OutboxEntry {
        OutboxEntry::new(EntryId { run: 1, number }, Bytes::new())
    }

    #[test]
    fn a_full_outbox_is_replaced_by_one_broader_entry() {
        let mut outbox = Outbox::new(2);
        let entries = [entry(1), entry(2), entry(3)];
        entries.iter().for_each(|own| outbox.add(own.clone(), || entry(9)));
        assert_eq!((outbox.len(), outbox.overflows), (1, 1));
        assert!(entries.iter().all(|own| *own.follow().borrow() == EntryFate::Replaced));
        outbox.add(entry(10), || entry(11));
        let order: Vec<_> = std::iter::from_fn(|| outbox.take()).map(|own| own.id.number).collect();
        assert_eq!(order, [9, 10]);
    }

    #[test]
    fn entries_of_unknown_arrival_are_sent_first_and_in_order() {
        let mut outbox = Outbox::new(9);
        (1..=3).for_each(|number| outbox.add(entry(number), || entry(0)));
        let sent: Vec<_> = (0..2).filter_map(|_| outbox.take()).collect();
        sent[0].stored(7);
        assert_eq!(*sent[0].follow().borrow(), EntryFate::Stored(7));
        outbox.put_back(sent.into_iter().skip(1));
        let order: Vec<_> = std::iter::from_fn(|| outbox.take()).map(|own| own.id.number).collect();
        assert_eq!(order, [2, 3]);
        assert!(outbox.is_empty());
    }
}
