//! Peers: the other nodes of a cluster that share their stores. Each key has an owner, and a miss
//! is sent to the owner before the origin. So there is one fetch for all nodes.
//!
//! The owner gets the client's request and serves it by its own configuration. It responds with the
//! stored response itself, not with the form for the client, or not at all, and never asks another
//! node. Of a sliced response a node gets one part, bound to one version, from which it builds a
//! set of its own.
//!
//! No purge is lost on the way. The asking node sends its position in the cluster's stream, and
//! asks only if all its own invalidations are in the stream; an owner that has applied less does
//! not respond. A later invalidation meets the fetch in progress, as with an origin.

mod answer;
mod field;
mod owner_query;

pub use self::field::{PeerQuestion, read_question};
pub use crate::state::peers::{ClusterStanding, InvalidationPosition, PeerNode, Peers};

pub(crate) use self::answer::{
    NodeRequest, PeerRefusal, begin, for_node_only, may_have, silent, stored,
};
pub(crate) use self::owner_query::PeerRecord;
