//! The sharing nodes: which nodes answer each other from their stores, and under what conditions
//! one may believe another. The objects go from node to node, not through the stream.

use std::net::SocketAddr;

use tokio::sync::watch;

use crate::cluster::{Cluster, State};
use crate::outbox::OutboxEntry;
use crate::position::Position;

/// A node that shares its store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sharer {
    /// Its name.
    pub name: String,
    /// The address for other nodes' questions.
    pub address: SocketAddr,
    /// SHA-256 of its certificate, in hex.
    pub shows: String,
    /// True if it may own keys: it trusts its store, and wants clients.
    pub owns: bool,
    /// True for a shield between the others and the origins. While a shield may own keys, no other
    /// node does.
    pub shields: bool,
}

impl Cluster {
    /// The random number of this run.
    pub fn run_number(&self) -> u64 {
        self.run
    }

    /// The node's own name.
    pub fn name(&self) -> &str {
        &self.settings.name
    }

    /// The sharing nodes by name, including this one.
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

    /// Changes with the knowledge of other nodes.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// The position that another node must have applied for its answers to be believed: all that
    /// this one has applied, and all that it has sent to the stream. `None` while an entry is
    /// applied, while the outbox is not empty or an entry has not been delivered back, and without
    /// trust.
    pub fn asks(&self) -> Option<Position> {
        let state = self.state.lock();
        let is_all_sent = state.outbox.is_empty() && state.in_flight.is_empty();
        let own = state.in_force.position().filter(|_| state.trusts())?;
        let is_whole = state.follower.position() == Some(own);
        (is_all_sent && is_whole && state.outstanding.is_empty()).then_some(own)
    }

    /// Returns true if the entry at this position is in force here, with all before it, and stored
    /// responses are trusted.
    pub fn has_applied(&self, position: Position) -> bool {
        let state = self.state.lock();
        state.trusts() && state.in_force.has(position)
    }
}

impl State {
    /// Notes that the stream has stored an entry of this run. It stays outstanding until it is
    /// delivered back, because a stream that has lost entries may reuse a sequence that this node
    /// has passed.
    pub(crate) fn note_stored(&mut self, queued: &OutboxEntry, sequence: u64) {
        self.counts.told += 1;
        self.outstanding.insert(queued.id.number);
        queued.stored(sequence);
    }

    /// Notes that an entry of this run was delivered back, perhaps before its acknowledgement.
    pub(crate) fn note_delivered(&mut self, number: u64, sequence: u64) {
        let waiting = self.in_flight.remove(&number).or_else(|| self.outbox.take_number(number));
        if let Some(queued) = waiting {
            self.counts.told += 1;
            queued.stored(sequence);
        }
        self.outstanding.remove(&number);
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
    fn a_node_that_applied_another_entry_at_that_sequence_has_not_applied_it() {
        let cluster = Cluster::new(settings("a"), nobody(), None);
        cluster.take_answer(&facts(at(3), None), rt::now().mono_ms);
        (4..=6).for_each(|own| _ = cluster.take_entry(own, 10 * own, &entry(own)));
        assert!((3..=6).all(|own| cluster.has_applied(at(own))));
        // The other node has applied an entry that the stream lost, or this one when it was first
        // stored.
        let again = |own, stored_ns| Position {
            stamp: Some(Stamp { id: Some(id(own)), stored_ns }),
            ..at(own)
        };
        assert!([4, 5, 6].into_iter().all(|own| !cluster.has_applied(again(own, 39))));
        // The stream loses the last entry, which is sent again.
        let (asked, now_ms) = (cluster.asks(), rt::now().mono_ms);
        let lost = StreamFacts { found: again(6, 99).stamp, ..facts(again(6, 99), asked) };
        assert!(cluster.take_answer(&lost, now_ms), "it is followed anew");
        assert!(cluster.has_applied(again(6, 99)) && !cluster.has_applied(at(6)));
        assert!(!cluster.has_applied(at(4)), "it is unknown");
    }

    /// An entry of this run that is being sent.
    fn sends(cluster: &Cluster, number: u64) -> Vec<u8> {
        let id = EntryId { run: cluster.run, number };
        let entry =
            Entry { id, node: "a".to_owned(), level: Level::Local, invalidations: vec![vec![1]] };
        let bytes = entry.encode().expect("small");
        let queued = OutboxEntry::new(id, bytes.clone().into());
        cluster.state.lock().in_flight.insert(number, queued);
        bytes
    }

    /// The stream acknowledges it.
    fn acknowledged(cluster: &Cluster, number: u64, sequence: u64) {
        let mut state = cluster.state.lock();
        if let Some(queued) = state.in_flight.remove(&number) {
            state.note_stored(&queued, sequence);
        }
    }

    #[test]
    fn an_outstanding_entry_leaves_no_node_to_ask() {
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
        // It is delivered before it is acknowledged.
        let own = sends(&cluster, 2);
        cluster.take_entry(6, 60, &own);
        acknowledged(&cluster, 2, 6);
        assert!(cluster.asks().is_some_and(|own| own.sequence == 6));
    }

    #[test]
    fn an_entry_lost_by_the_stream_stays_outstanding() {
        let cluster = Cluster::new(settings("a"), nobody(), None);
        cluster.take_answer(&facts(at(9), None), rt::now().mono_ms);
        // The stream ends at 3 again, and this node has not noticed.
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
