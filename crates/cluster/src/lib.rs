//! Several Larders as one, over NATS with JetStream: an invalidation on one node reaches all.
//!
//! An invalidation that passes the door of a node is an entry of one stream, which every node
//! applies in its order and from its own position. The pure parts decide: [`Entry`] is what the
//! stream holds, [`Follower`] what a node may still trust, [`Members`] who has not applied an entry,
//! [`Outbox`] what waits to be told. The link does what they say. Nothing here reaches the store:
//! the daemon is the [`Host`].

mod cluster;
mod entry;
mod error;
mod follower;
mod members;
mod outbox;
mod position;
mod session;
mod settings;
#[cfg(test)]
mod simulated;
mod streams;
#[cfg(test)]
mod testing;

use serde::{Deserialize, Serialize};

pub use cluster::{Cluster, Counts, MemberStatus, Status, Ticket};
pub use entry::{ENTRY_BYTES, ENTRY_INVALIDATIONS, Entry, EntryId, Unreadable};
pub use error::{Error, NotReached};
pub use follower::{Course, Facts, Follower, Loss, Step};
pub use members::{Applied, Card, Member, Members, Word, is_name};
pub use outbox::{Fate, Letter, Outbox};
pub use position::{Epoch, Position, Saved};
pub use settings::{Credentials, Host, Settings, Tls};

/// The word that whoever invalidates waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Level {
    /// This node has done it.
    Local,
    /// The stream has it durably.
    Quorum,
    /// Every live node has done it.
    All,
}

impl Level {
    /// All of them, by number.
    pub const ALL: [Self; 3] = [Self::Local, Self::Quorum, Self::All];

    /// Its name in settings and requests.
    pub fn word(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Quorum => "quorum",
            Self::All => "all",
        }
    }

    /// The level of this name.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.word() == word)
    }
}
