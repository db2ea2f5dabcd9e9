//! Peer state: the nodes that share their stores, and the requests to them.

mod nodes;
mod owner_request;

pub use self::nodes::{ClusterStanding, InvalidationPosition, PeerNode, Peers};
pub(crate) use self::owner_request::{FetchIdentity, OwnerRequest};
