//! The nodes that share what they store: who they are, and what must be so before one believes
//! another. The objects themselves go from node to node, past the stream.

use std::net::SocketAddr;

use tokio::sync::watch;

use crate::cluster::{Cluster, State};
use crate::outbox::OutboxEntry;
use crate::position::Position;

/// A node that shares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sharer {
    /// Its name.
    pub name: String,
    /// Where it answers the others.
    pub address: SocketAddr,
    /// SHA-256 of the certificate that it shows, in hex.
    pub shows: String,
    /// It may own keys: it uses what it stores, and wants clients.
    pub owns: bool,
    /// It stands between the others and the origins: while such a node may own keys, no other does.
    pub shields: bool,
}

impl Cluster {
    /// The number of this run, drawn at its start.
    pub fn run_number(&self) -> u64 {
        self.run
    }

    /// The node's own name.
    pub fn name(&self) -> &str {
        &self.settings.name
    }

    /// The nodes that share, this one among them, by name.
    pub fn sharers(&self) -> Vec<Sharer> {
        let now_ms = rt::now().mono_ms;
        let state = self.state.lock();
        let live = state.members.named().filter(|member| member.is_live(now_ms));
        let sharer = |member: &crate::Member| {
            let card = &member.card;
            Some(Sharer {
                name: card.name.clone(),
                address: card.peer.parse().ok()?,
                shows: card.shows.clone(),
                owns: card.trusts && !card.draining,
                shields: card.shields,
            })
        };
        live.filter_map(sharer).collect()
    }

    /// Grows whenever what is known of the others may have changed.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// The position that another node must have passed whose word counts here: all that this one
    /// has applied, and all that it has told the stream. `None` while an entry is carried out,
    /// while something waits to be told or has not come back (only then its time is known), or if
    /// what is stored is not to be used.
    pub fn asks(&self) -> Option<Position> {
        let state = self.state.lock();
        let is_all_told = state.outbox.is_empty() && state.in_flight.is_empty();
        let own = state.in_force.position().filter(|_| state.trusts())?;
        let is_whole = state.follower.position() == Some(own);
        (is_all_told && is_whole && state.told.is_empty()).then_some(own)
    }

    /// Returns true if this very entry is in force here, with all before it, and what is stored is
    /// used.
    pub fn has_applied(&self, position: Position) -> bool {
        let state = self.state.lock();
        state.trusts() && state.in_force.has(position)
    }
}

impl State {
    /// The stream has taken an entry of this run. It counts as told until the entry itself comes
    /// back: a stream that has gone back gives it a sequence that this node is behind already, so
    /// that a number says nothing.
    pub(crate) fn has_told(&mut self, letter: &OutboxEntry, sequence: u64) {
        self.counts.told += 1;
        self.told.insert(letter.id.number);
        letter.stored(sequence);
    }

    /// An entry of this run has come back from the stream, perhaps before its acknowledgement.
    pub(crate) fn has_come_back(&mut self, number: u64, sequence: u64) {
        let waiting = self.in_flight.remove(&number).or_else(|| self.outbox.take_number(number));
        if let Some(letter) = waiting {
            self.counts.told += 1;
            letter.stored(sequence);
        }
        self.told.remove(&number);
    }

    fn trusts(&self) -> bool {
        rt::now().mono_ms < self.follower.trusted_until_ms()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, OnceLock};

    use parking_lot::Mutex;

    use super::*;
    use crate::Level;
    use crate::entry::{Entry, EntryId};
    use crate::follower::StreamFacts;
    use crate::position::{Epoch, Stamp};
    use crate::testing::{CallbackHost, nobody, settings};

    /// The position of an entry that was stored at ten times its sequence.
    fn at(sequence: u64) -> Position {
        let stamp = Some(Stamp { id: Some(id(sequence)), stored_ns: 10 * sequence });
        Position { epoch: Epoch(7), sequence, stamp }
    }

    fn id(number: u64) -> EntryId {
        EntryId { run: 1, number }
    }

    fn facts(last: Position, asked: Option<Position>) -> StreamFacts {
        let Position { epoch, sequence: last, stamp: last_stamp } = last;
        let found = asked.and_then(|asked| asked.stamp);
        StreamFacts { epoch, first: 1, last, last_stamp, asked, found }
    }

    fn entry(number: u64) -> Vec<u8> {
        let invalidations = vec![vec![1], vec![2]];
        let entry =
            Entry { id: id(number), node: "b".to_owned(), level: Level::Local, invalidations };
        entry.encode().expect("small")
    }

    #[test]
    fn nothing_counts_as_applied_before_it_is_in_force() {
        let next = Arc::new(Mutex::new(at(3)));
        let (node, said) = (Arc::new(OnceLock::<Arc<Cluster>>::new()), Arc::new(Mutex::default()));
        let host = {
            let (next, node, said) = (Arc::clone(&next), Arc::clone(&node), Arc::clone(&said));
            CallbackHost(move || {
                let node = node.get().expect("set");
                let (has_applied, asks) = (node.has_applied(*next.lock()), node.asks());
                Mutex::<Vec<_>>::lock(&said).push((has_applied, asks));
            })
        };
        let cluster = Cluster::new(settings("a"), Arc::new(host), None);
        assert!(node.set(Arc::clone(&cluster)).is_ok());

        // It joins, and doubts all that it stored before.
        cluster.take_answer(&facts(at(3), None), rt::now().mono_ms);
        assert_eq!(std::mem::take(&mut *said.lock()), [(false, None)]);
        assert!(cluster.has_applied(at(3)) && !cluster.has_applied(at(4)));
        assert_eq!(cluster.asks(), Some(at(3)));

        *next.lock() = at(4);
        cluster.take_entry(4, 40, &entry(4));
        assert_eq!(*said.lock(), [(false, None); 2], "half of it may have been applied");
        assert!(cluster.has_applied(at(4)));
        assert_eq!(cluster.asks(), Some(at(4)));
    }

    #[test]
    fn a_node_that_applied_another_entry_at_the_place_has_not_applied_it() {
        let cluster = Cluster::new(settings("a"), nobody(), None);
        cluster.take_answer(&facts(at(3), None), rt::now().mono_ms);
        (4..=6).for_each(|own| _ = cluster.take_entry(own, 10 * own, &entry(own)));
        assert!((3..=6).all(|own| cluster.has_applied(at(own))));
        // Who asks has applied an entry that the stream lost, or this one when it was stored first.
        let again = |own, stored_ns| Position {
            stamp: Some(Stamp { id: Some(id(own)), stored_ns }),
            ..at(own)
        };
        assert!([4, 5, 6].into_iter().all(|own| !cluster.has_applied(again(own, 39))));
        // The stream loses the last one, and it is sent again.
        let (asked, now_ms) = (cluster.asks(), rt::now().mono_ms);
        let lost = StreamFacts { found: again(6, 99).stamp, ..facts(again(6, 99), asked) };
        assert!(cluster.take_answer(&lost, now_ms), "it is followed anew");
        assert!(cluster.has_applied(again(6, 99)) && !cluster.has_applied(at(6)));
        assert!(!cluster.has_applied(at(4)), "nobody knows");
    }

    /// An entry of this run that is on its way.
    fn sends(cluster: &Cluster, number: u64) -> Vec<u8> {
        let id = EntryId { run: cluster.run, number };
        let entry =
            Entry { id, node: "a".to_owned(), level: Level::Local, invalidations: vec![vec![1]] };
        let bytes = entry.encode().expect("small");
        let letter = OutboxEntry::new(id, bytes.clone().into());
        cluster.state.lock().in_flight.insert(number, letter);
        bytes
    }

    /// The stream acknowledges it.
    fn acknowledged(cluster: &Cluster, number: u64, sequence: u64) {
        let mut state = cluster.state.lock();
        if let Some(letter) = state.in_flight.remove(&number) {
            state.has_told(&letter, sequence);
        }
    }

    #[test]
    fn what_was_told_and_has_not_come_back_leaves_no_node_to_ask() {
        let cluster = Cluster::new(settings("a"), nobody(), None);
        cluster.take_answer(&facts(at(3), None), rt::now().mono_ms);
        let own = sends(&cluster, 1);
        assert_eq!(cluster.asks(), None, "on its way");
        acknowledged(&cluster, 1, 5);
        assert_eq!(cluster.asks(), None);
        cluster.take_entry(4, 40, &entry(4));
        assert_eq!(cluster.asks(), None);
        cluster.take_entry(5, 50, &own);
        assert!(cluster.asks().is_some_and(|own| own.sequence == 5));
        // It comes back before it is acknowledged.
        let own = sends(&cluster, 2);
        cluster.take_entry(6, 60, &own);
        acknowledged(&cluster, 2, 6);
        assert!(cluster.asks().is_some_and(|own| own.sequence == 6));
    }

    #[test]
    fn what_a_stream_that_went_back_has_taken_is_not_told() {
        let cluster = Cluster::new(settings("a"), nobody(), None);
        cluster.take_answer(&facts(at(9), None), rt::now().mono_ms);
        // The stream ends at 3 again, and this node has not heard of that.
        sends(&cluster, 1);
        acknowledged(&cluster, 1, 4);
        assert_eq!(cluster.asks(), None, "others trust what they had before");
        let (asked, now_ms) = (Some(at(9)), rt::now().mono_ms);
        let back = StreamFacts { found: None, ..facts(at(4), asked) };
        assert!(!cluster.take_answer(&back, now_ms), "it may only be late");
        assert_eq!(cluster.asks(), None);
        assert!(cluster.take_answer(&back, now_ms + 1_000), "it is followed anew");
        assert!(cluster.asks().is_none_or(|own| own.sequence == 4));
    }
}
