//! The nodes that share what they store: who they are, and what must be so before one believes
//! another. The objects themselves go from node to node, past the stream.

use std::net::SocketAddr;

use tokio::sync::watch;

use crate::cluster::{Cluster, State};
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
    /// The node's own name.
    pub fn name(&self) -> &str {
        &self.settings.name
    }

    /// The nodes that share, this one among them, by name.
    pub fn sharers(&self) -> Vec<Sharer> {
        let now_ms = rt::now().mono_ms;
        let state = self.state.lock();
        let live = state.members.all().filter(|member| member.is_live(now_ms));
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

    /// The position that another node must have reached whose word counts here: all that this one
    /// has applied, and all that it has told the stream. `None` while something waits to be told,
    /// or what is stored is not to be used.
    pub fn asks(&self) -> Option<Position> {
        let state = self.state.lock();
        let is_all_told = state.outbox.is_empty() && state.in_flight.is_empty();
        let own = trusted(&state)?;
        let told =
            state.told.filter(|told| told.epoch == own.epoch).map_or(0, |told| told.sequence);
        is_all_told.then_some(Position { sequence: own.sequence.max(told), ..own })
    }

    /// Returns true if all up to `position` has been applied here, and what is stored is used.
    pub fn has_applied(&self, position: Position) -> bool {
        let own = trusted(&self.state.lock());
        own.is_some_and(|own| own.epoch == position.epoch && own.sequence >= position.sequence)
    }
}

impl State {
    /// The stream has taken an entry of this run.
    pub(crate) fn has_told(&mut self, sequence: u64) {
        let Some(own) = self.follower.position() else { return };
        let before = self.told.filter(|told| told.epoch == own.epoch);
        let sequence = before.map_or(sequence, |told| told.sequence.max(sequence));
        self.told = Some(Position { sequence, ..own });
    }
}

/// The position up to which all is in force in a node that uses what it stores.
fn trusted(state: &State) -> Option<Position> {
    let trusts = rt::now().mono_ms < state.follower.trusted_until_ms();
    state.in_force.filter(|_| trusts)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, OnceLock};

    use parking_lot::Mutex;

    use super::*;
    use crate::Level;
    use crate::entry::{Entry, EntryId};
    use crate::follower::Facts;
    use crate::position::Epoch;
    use crate::testing::{Looking, settings};

    #[test]
    fn nothing_counts_as_applied_before_it_is_in_force() {
        let epoch = Epoch(7);
        let at = |sequence| Position { epoch, sequence, id: None };
        let facts = |last| Facts { epoch, first: 1, last, last_id: None, asked: None, found: None };
        let next = Arc::new(Mutex::new(at(3)));
        let (node, said) = (Arc::new(OnceLock::<Arc<Cluster>>::new()), Arc::new(Mutex::default()));
        let host = {
            let (next, node, said) = (Arc::clone(&next), Arc::clone(&node), Arc::clone(&said));
            Looking(move || {
                let has_applied = node.get().expect("set").has_applied(*next.lock());
                Mutex::<Vec<bool>>::lock(&said).push(has_applied);
            })
        };
        let cluster = Cluster::new(settings("a"), Arc::new(host), None);
        assert!(node.set(Arc::clone(&cluster)).is_ok());

        // It joins, and doubts all that it stored before.
        cluster.take_answer(&facts(3), rt::now().mono_ms);
        assert_eq!(std::mem::take(&mut *said.lock()), [false]);
        assert!(cluster.has_applied(at(3)) && !cluster.has_applied(at(4)));

        *next.lock() = at(4);
        let id = EntryId { run: 1, number: 1 };
        let (node, invalidations) = ("b".to_owned(), vec![vec![1], vec![2]]);
        let entry = Entry { id, node, level: Level::Local, invalidations };
        cluster.take_entry(4, &entry.encode().expect("small"));
        assert_eq!(*said.lock(), [false, false]);
        assert!(cluster.has_applied(at(4)));
    }
}
