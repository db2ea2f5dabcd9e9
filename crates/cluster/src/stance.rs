//! A node's part as its operator wants it: a member like the others, one that is to get no more
//! clients, or one that has left.
//!
//! Whoever has left stays on the stream: it applies what others invalidate, and tells what is
//! invalidated here. But it uses nothing that it stores without asking, so that nobody has to wait
//! for it.

use std::fmt;

use serde::Serialize;

/// A node's part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stance {
    /// A member.
    #[default]
    Member,
    /// A member that is not ready for clients.
    Draining,
    /// Away: not ready, not waited for, and it trusts nothing that it stores.
    Left,
}

/// An operator's word about a node's part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MembershipOrder {
    /// Be a member.
    Join,
    /// Be one that is to get no more clients.
    Drain,
    /// Leave.
    Leave,
}

/// An order that cannot be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrainRefusal;

impl fmt::Display for DrainRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it has left the cluster, and is not ready already: `join` it first")
    }
}

impl std::error::Error for DrainRefusal {}

impl MembershipOrder {
    /// All, by their words.
    pub const WORDS: [(&'static str, Self); 3] =
        [("join", Self::Join), ("drain", Self::Drain), ("leave", Self::Leave)];

    /// The stance of a node that stood like `before`.
    ///
    /// # Errors
    /// One that has left does not drain: it would be waited for again.
    pub(crate) fn stance(self, before: Stance) -> Result<Stance, DrainRefusal> {
        match (self, before) {
            (Self::Join, _) => Ok(Stance::Member),
            (Self::Drain, Stance::Left) => Err(DrainRefusal),
            (Self::Drain, _) => Ok(Stance::Draining),
            (Self::Leave, _) => Ok(Stance::Left),
        }
    }
}

/// A stance, and whether the others know of it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Posture {
    pub(crate) stance: Stance,
    /// The number of times that it has changed.
    pub(crate) turn: u64,
    /// The last of those that is on a card that the stream has.
    pub(crate) shown: u64,
}

impl Posture {
    pub(crate) fn is_shown(self) -> bool {
        self.shown == self.turn
    }
}
