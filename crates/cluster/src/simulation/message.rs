//! The messages between nodes and the stream, and the purges in them.

use std::rc::Rc;

use crate::entry::{Entry, EntryId};
use crate::follower::StreamFacts;
use crate::members::Card;
use crate::position::Position;

/// Keys that are requested and purged. As a purge, the number means all of them.
pub(super) const KEYS: usize = 4;

/// A purge: the key, and the origin's version after it.
pub(super) type SimulatedPurge = (usize, u64);

/// A message of a node to the server.
#[derive(Clone, Debug)]
pub(super) enum ToServer {
    Publish(Rc<Entry>),
    Card(Rc<Card>, u64),
    Ask(Option<Position>, u64),
    Subscribe(u64),
    Word(EntryId),
    Check(EntryId),
    /// Requests the latest run of the node's name.
    Name,
}

/// A message of the server to a node.
#[derive(Clone, Debug)]
pub(super) enum ToNode {
    Stored(EntryId, u64),
    CardStored(u64, u64),
    Answer(Box<StreamFacts>, u64),
    Entry {
        subscription: u64,
        order: u64,
        sequence: u64,
        stored: StoredEntry,
    },
    Card(u64, Rc<Card>),
    /// All cards up to this one, at the beginning of a subscription.
    Cards(u64, Vec<(u64, Rc<Card>)>),
    Named(Option<Rc<Card>>),
    Word(u64, EntryId),
    Checked(EntryId, u64),
}

/// An entry in the stream, and the time at which it was stored.
#[derive(Clone, Debug)]
pub(super) struct StoredEntry {
    pub(super) entry: Rc<Entry>,
    pub(super) at_ns: u64,
}

pub(super) fn purge_bytes((key, version): SimulatedPurge) -> Vec<u8> {
    [(key as u64).to_le_bytes(), version.to_le_bytes()].concat()
}

pub(super) fn purged_of(bytes: &[u8]) -> SimulatedPurge {
    let number = |at: usize| bytes[at..at + 8].iter().rev().fold(0, |n, b| n << 8 | u64::from(*b));
    (number(0) as usize, number(8))
}
