//! The entries in force in this node, for the questions of other nodes. Pure.
//!
//! A sequence alone proves nothing, because a stream that has lost an entry reuses its sequence. So
//! a node remembers when its last entries were stored, without gaps. It must not confirm an entry
//! from before.

use std::collections::VecDeque;

use crate::position::Position;

/// Entries remembered, sixteen bytes each. A node that lags further behind asks the origin. At a
/// thousand entries a second it is four seconds.
const PAST_MAX: usize = 4_096;

/// The last entries in force.
#[derive(Debug)]
pub(crate) struct EntriesInForce {
    position: Option<Position>,
    /// The times at which the entries up to the position were stored, if known.
    past: VecDeque<Option<u64>>,
}

impl EntriesInForce {
    /// All entries up to `position`.
    pub(crate) fn new(position: Option<Position>) -> Self {
        let past = position.map(stored_ns).into_iter().collect();
        Self { position, past }
    }

    /// Begins again with all entries up to `position`, because the stream may be another.
    pub(crate) fn reset(&mut self, position: Option<Position>) {
        *self = Self::new(position);
    }

    /// Advances to `position`, which is one entry further.
    pub(crate) fn advance(&mut self, position: Option<Position>) {
        let next = self.position.map(|own| (own.epoch, own.sequence + 1));
        match position {
            _ if position == self.position => {}
            Some(own) if Some((own.epoch, own.sequence)) == next => {
                if self.past.len() >= PAST_MAX {
                    self.past.pop_front();
                }
                self.past.push_back(stored_ns(own));
                self.position = position;
            }
            _ => self.reset(position),
        }
    }

    /// The position of the last entry.
    pub(crate) fn position(&self) -> Option<Position> {
        self.position
    }

    /// Returns true if the entry at `asked` is in force. If its time is unknown, as at the end of
    /// an expired stream, the sequence suffices.
    pub(crate) fn has(&self, asked: Position) -> bool {
        let own = self.position.filter(|own| own.epoch == asked.epoch);
        let behind = own.and_then(|own| own.sequence.checked_sub(asked.sequence));
        let behind = behind.and_then(|behind| usize::try_from(behind).ok());
        let place = behind.and_then(|behind| self.past.len().checked_sub(behind + 1));
        let stored = place.and_then(|place| self.past.get(place));
        let is_it = |(own, asked)| own == asked;
        stored.is_some_and(|own| own.zip(stored_ns(asked)).is_none_or(is_it))
    }
}

fn stored_ns(position: Position) -> Option<u64> {
    position.stamp.map(|stamp| stamp.stored_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::position::{Epoch, Stamp};

    fn at(sequence: u64, stored_ns: Option<u64>) -> Position {
        let stamp = stored_ns.map(|stored_ns| Stamp { id: None, stored_ns });
        Position { epoch: Epoch(7), sequence, stamp }
    }

    #[test]
    fn an_entry_is_in_force_where_it_was_applied_at_its_sequence() {
        let mut own = EntriesInForce::new(Some(at(10, Some(100))));
        own.advance(Some(at(11, Some(110))));
        own.advance(Some(at(12, Some(120))));
        // It was delivered twice.
        own.advance(Some(at(12, Some(120))));
        for (asked, has) in [
            (at(10, Some(100)), true),
            (at(11, Some(110)), true),
            (at(12, Some(120)), true),
            // The stream has lost it, and another entry has its sequence.
            (at(12, Some(121)), false),
            (at(10, Some(99)), false),
            (at(13, Some(130)), false),
            // Unknown.
            (at(9, Some(90)), false),
            (at(12, None), true),
            (Position { epoch: Epoch(8), ..at(12, Some(120)) }, false),
        ] {
            assert_eq!(own.has(asked), has, "{asked:?}");
        }
        assert!(!EntriesInForce::new(None).has(at(0, None)));
        assert!(
            EntriesInForce::new(Some(at(0, None))).has(at(0, None)),
            "a stream without entries"
        );
        assert!(
            EntriesInForce::new(Some(at(5, None))).has(at(5, Some(50))),
            "all of it has expired"
        );
    }

    #[test]
    fn what_was_in_force_before_a_loss_or_a_gap_is_not_remembered() {
        let mut own = EntriesInForce::new(Some(at(10, Some(100))));
        own.advance(Some(at(11, Some(110))));
        own.reset(Some(at(12, Some(125))));
        assert!(own.has(at(12, Some(125))) && !own.has(at(11, Some(110))));
        own.advance(Some(at(14, Some(140))));
        assert!(own.has(at(14, Some(140))) && !own.has(at(12, Some(125))));
        assert_eq!(own.position(), Some(at(14, Some(140))));
    }

    #[test]
    fn no_more_is_remembered_than_the_bound() {
        let mut own = EntriesInForce::new(Some(at(0, None)));
        let last = PAST_MAX as u64 + 9;
        (1..=last).for_each(|sequence| own.advance(Some(at(sequence, Some(sequence)))));
        assert_eq!(own.past.len(), PAST_MAX);
        let first = last + 1 - PAST_MAX as u64;
        assert!(own.has(at(first, Some(first))) && own.has(at(last, Some(last))));
        assert!(!own.has(at(first - 1, Some(first - 1))));
    }
}
