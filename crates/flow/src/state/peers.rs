//! The nodes that share what they store, and what they may be asked.

mod asking;
mod nodes;

pub(crate) use self::asking::{Asking, Whose};
pub use self::nodes::{Applied, PeerNode, Peers, Standing};
