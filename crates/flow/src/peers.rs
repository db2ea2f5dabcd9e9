//! The other nodes of a cluster, where nodes share what they store: each key has an owner, and who
//! misses asks the owner before the origin. So there is one fetch for all nodes.
//!
//! An owner is asked by the client's own request. It deals with it by its own configuration, as if
//! the client had come to it, but for the end: it answers with the stored response itself, not with
//! what a client gets of it, or not at all. It never asks another node.
//!
//! Of what is stored in slices a node gets the part that it asks for, which is bound to one version
//! as an origin's is: it makes a set of its own of that, and asks for further slices one by one.
//!
//! No purge is lost on the way. Who asks says up to where it has applied the cluster's stream, and
//! asks only if all that it has invalidated itself is in there; an owner that has not applied as
//! much does not answer. What comes later finds the fetch of who asked under way, as it does with
//! an origin's.

mod answer;
mod field;
mod owner_query;

pub use self::field::{PeerQuestion, read_question};
pub use crate::state::peers::{ClusterStanding, InvalidationPosition, PeerNode, Peers};

pub(crate) use self::answer::{PeerRefusal, begin, may_have, silent, stored, told_only};
pub(crate) use self::owner_query::PeerRecord;
