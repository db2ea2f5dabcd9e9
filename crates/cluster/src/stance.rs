//! The stance of a node, as its operator wants it: member, draining, or left.
//!
//! A node that has left stays on the stream: it applies and sends invalidations. But it must serve
//! no stored response without revalidation, so that no other node has to wait for it.

use std::fmt;

use serde::Serialize;

/// The stance of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stance {
    /// A member.
    #[default]
    Member,
    /// A member that wants no more clients.
    Draining,
    /// Away: not ready, not waited for, and without trust in its store.
    Left,
}

/// An operator's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MembershipOrder {
    /// Become a member.
    Join,
    /// Become a member without new clients.
    Drain,
    /// Leave.
    Leave,
}

/// The refusal of an order to drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrainRefusal;

impl fmt::Display for DrainRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it has left the cluster, so it cannot drain: `join` it first")
    }
}

impl std::error::Error for DrainRefusal {}

impl MembershipOrder {
    /// All stances, by name.
    pub const WORDS: [(&'static str, Self); 3] =
        [("join", Self::Join), ("drain", Self::Drain), ("leave", Self::Leave)];

    /// The stance after this order, from the stance `before`.
    ///
    /// # Errors
    /// A node that has left cannot drain: the others would wait for it again.
    pub(crate) fn stance(self, before: Stance) -> Result<Stance, DrainRefusal> {
        match (self, before) {
            (Self::Join, _) => Ok(Stance::Member),
            (Self::Drain, Stance::Left) => Err(DrainRefusal),
            (Self::Drain, _) => Ok(Stance::Draining),
            (Self::Leave, _) => Ok(Stance::Left),
        }
    }
}

/// A stance, and whether the others know it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Posture {
    pub(crate) stance: Stance,
    /// The number of its changes.
    pub(crate) turn: u64,
    /// The last change that is on a card in the stream.
    pub(crate) shown: u64,
}

impl Posture {
    pub(crate) fn is_shown(self) -> bool {
        self.shown == self.turn
    }
}
