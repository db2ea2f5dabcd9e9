//! The foundation of all layers: clock readings, limits, units, the memory budget, keyed hashes and
//! per-core counters.
//!
//! Nothing here may use HTTP. Only [`clock::System`] reads the operating system's clocks, and only
//! the outer layers call it; all other code gets a [`Now`].
//!
//! Begin with [`limits`] (every limit is a row of its table), [`memory`] (no byte is allocated for
//! a client or the store before it is reserved there) and [`counters`].

pub mod allowance;
mod authorities;
pub mod clock;
pub mod counters;
pub mod descriptors;
pub mod fnmatch;
pub mod hash;
pub mod html;
pub mod limits;
pub mod logging;
pub mod memory;
pub mod rate;
pub mod tally;
pub mod units;

/// The error text for a feature that the demo build (`--cfg larder_demo`) leaves out.
pub const DEMO_BUILD: &str = "this is the demo build, which leaves it out; `cargo build --release \
                              --package larder` builds the whole program";

pub use allowance::Allowance;
pub use authorities::system_authorities;
pub use clock::Now;
pub use counters::{Counter, Counters};
pub use hash::{HashSeed, KeyBuf, key_fields};
pub use limits::{Limit, Limits};
pub use memory::{Account, ClientId, HeldBytes, MemoryBudget};
