//! A cluster of nodes over NATS with JetStream: an invalidation on one node reaches all.
//!
//! Each invalidation is an [`Entry`] of one stream, which every node applies in order and from its
//! own position. Nodes may also share sealed secrets ([`Bucket`]), a lease, and a configuration in
//! stages ([`RollOut`]). Nothing here may touch the store: the daemon does, as the [`Host`]. A node
//! must never serve stored responses on trust after it may have missed an entry.
//!
//! Begin with [`StreamFollower`] (what a node may trust), [`Members`] (which nodes have applied an
//! entry) and [`Cluster`] (sending and waiting). These decide without sockets; the session does the
//! input and output.

// The demo build has no session, which is the only user of much of this.
#![cfg_attr(larder_demo, allow(dead_code, reason = "there is no session"))]

mod bucket;
#[cfg(not(larder_demo))]
mod bucket_link;
mod cluster;
mod entries_in_force;
mod entry;
mod error;
mod follower;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
#[cfg_attr(larder_demo, path = "link_stub.rs")]
mod link;
mod members;
#[cfg(not(larder_demo))]
mod nats_connection;
mod outbox;
mod position;
mod progress;
mod rollout;
mod seal;
mod secret_store;
#[cfg(not(larder_demo))]
mod session;
mod settings;
mod sharing_nodes;
#[cfg(test)]
mod simulation;
mod stance;
mod stance_change;
#[cfg(not(larder_demo))]
mod streams;
#[cfg(test)]
mod testing;

pub use bucket::{
    Bucket, BucketStatus, Claim, SecretBounds, SecretCounts, SecretLookup, SecretStatus,
    SecretsHost,
};
pub use cluster::{Cluster, ClusterPeers, Counts, MemberStatus, Status, Ticket};
pub use entry::{ENTRY_BYTES, ENTRY_INVALIDATIONS, Entry, EntryDecodeError, EntryId};
pub use error::{Error, PropagationError, SecretWriteError};
pub use follower::{EntryAction, FollowAction, Loss, StreamFacts, StreamFollower};
pub use link::HAS_LINK;
pub use members::{AppliedRuns, Card, EntryAcknowledgement, Member, Members, is_name};
pub use outbox::{EntryFate, Outbox, OutboxEntry};
pub use position::{Epoch, Position, SavedPosition, Stamp};
pub use purge::Level;
pub use rollout::{
    CANARIES_MAX, CHECKS_MAX, Canary, Release, RollOut, RollOutPlan, RollOutRefusal, RollOutStage,
    SLOTS, version_of,
};
pub use seal::{BadSecret, SECRET_BYTES_MIN, SECRETS_MAX, SealKeyring, UnsealError, UnsealedBytes};
pub use secret_store::{
    Bound, ByteBounds, LeaseState, ReceiptOutcome, ReceivedSecret, Secret, SecretSlot, SecretStore,
    is_entry_name,
};
pub use settings::{Credentials, Host, Settings, Tls};
pub use sharing_nodes::Sharer;
pub use stance::{MembershipOrder, Stance};
