//! The nodes that share what they store, and what they may be asked.

mod nodes;
mod owner_request;

pub use self::nodes::{ClusterStanding, InvalidationPosition, PeerNode, Peers};
pub(crate) use self::owner_request::{FetchIdentity, OwnerRequest};
