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

/// The position of a node that uses what it stores.
fn trusted(state: &State) -> Option<Position> {
    let trusts = rt::now().mono_ms < state.follower.trusted_until_ms();
    state.follower.position().filter(|_| trusts)
}
