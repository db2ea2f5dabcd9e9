//! Several Larders as one, over NATS with JetStream: an invalidation on one node reaches all.
//!
//! An invalidation that passes the door of a node is an entry of one stream, which every node
//! applies in its order and from its own position. The pure parts decide: [`Entry`] is what the
//! stream holds, [`Follower`] what a node may still trust, [`Members`] who has not applied an
//! entry, [`Outbox`] what waits to be told. The link does what they say. Nothing here reaches the
//! store: the daemon is the [`Host`].
//!
//! Nodes may share secrets, too ([`Bucket`]): sealed ([`Seal`]), the last of each name ([`Shelf`]),
//! and with them the right to do what only one may. What all are to have alike goes to some of them
//! first ([`RollOut`]).

// Much of this is called by a session only, which the demo build has not.
#![cfg_attr(larder_demo, allow(dead_code, reason = "there is no session"))]

mod bucket;
#[cfg(not(larder_demo))]
mod bucket_link;
mod cluster;
#[cfg(not(larder_demo))]
mod connect;
mod entry;
mod error;
mod follower;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
mod in_force;
#[cfg_attr(larder_demo, path = "link_none.rs")]
mod link;
mod members;
mod outbox;
mod position;
mod progress;
mod rollout;
mod seal;
#[cfg(not(larder_demo))]
mod session;
mod settings;
mod share;
mod shelf;
#[cfg(test)]
mod simulated;
mod stance;
mod standing;
#[cfg(not(larder_demo))]
mod streams;
#[cfg(test)]
mod testing;

pub use bucket::{
    Bucket, BucketStatus, Claim, Found, SecretBounds, SecretCounts, SecretStatus, SecretsHost,
};
pub use cluster::{Cluster, Counts, Door, MemberStatus, Status, Ticket};
pub use entry::{ENTRY_BYTES, ENTRY_INVALIDATIONS, Entry, EntryId, Unreadable};
pub use error::{Error, NotReached, NotWritten};
pub use follower::{Course, Facts, Follower, Loss, Step};
pub use link::HAS_LINK;
pub use members::{Applied, Card, Member, Members, Word, is_name};
pub use outbox::{Fate, Letter, Outbox};
pub use position::{Epoch, Position, Saved, Stamp};
pub use purge::Level;
pub use rollout::{
    CANARIES_MAX, CHECKS_MAX, Canary, NotRolled, Plan, Release, RollOut, SLOTS, Stage, version_of,
};
pub use seal::{BadSecret, NotOpened, Opened, SECRET_BYTES_MIN, SECRETS_MAX, Seal};
pub use settings::{Credentials, Host, Settings, Tls};
pub use share::Sharer;
pub use shelf::{Bound, ByteBounds, Came, Heard, Right, Secret, Shelf, Slot, is_entry_name};
pub use stance::{Order, Stance};
