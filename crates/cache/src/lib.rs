//! The memory tier: index, variants, busy objects and waiters, eviction, bodies.
//!
//! * [`Cache::lookup`] is the hit path: a shared lock of one shard, no allocation, nothing moved.
//! * [`Cache::begin`] is the miss path: it makes the caller the one that fetches ([`Lead`]), or
//!   lets it wait for the one that does ([`Ticket`]).
//! * A [`Lead`] is a duty: it is concluded by [`Lead::store`], [`Lead::refuse`], [`Lead::freshen`]
//!   or [`Lead::fail`]; dropping it is failing, so a cancelled request never leaves others waiting.
//! * [`Cache::invalidate`] is for one key; [`Cache::ban`] for everything else: surrogate keys, any
//!   [`Test`] of what is stored, everything. Whatever was being fetched before is tested as well.
//! * [`Filling`] pushes a body into an [`Object`], [`Reader`]s follow it; a body too large to be
//!   kept becomes a window that the slowest reader moves. [`Body::window`] is such a window by
//!   itself.
//!
//! The tier knows bytes, keys and milliseconds. It never judges freshness, never parses a field,
//! never reads a clock and never touches a socket: `flow` does, with the numbers an [`Object`]
//! carries.

//! # Floors
//! A file uses only what stands before it here, so that the tier can be opened from below:
//! 1. `sync`, `size`, `span`, `slots`, `tags`, `variant`; `record` (what a response is) and
//!    `durable`; `ledger`, `standing` (accounting); `bans`; `ghost`;
//! 2. bodies: `pieces`, `piece`, `forms`, `fill`, `content` (who keeps a body is a trait here),
//!    `reader`, `window`;
//! 3. `object` (record, body and standing), `busy`;
//! 4. the index: `lower` (a tier below is a trait here), `slot`, `shard`;
//! 5. `cache` with `lead` and `filling`, which know each other; on it `sweep`, `over`,
//!    `peek`, `reform`.

mod bans;
mod busy;
mod cache;
mod content;
mod durable;
mod fill;
mod filling;
mod forms;
mod ghost;
mod keyed;
mod lead;
mod ledger;
mod lower;
mod object;
mod over;
mod peek;
mod piece;
mod pieces;
mod reader;
mod record;
mod reform;
mod shard;
mod size;
mod slot;
mod slots;
mod span;
mod standing;
mod sweep;
mod sync;
mod tags;
mod variant;
mod window;

pub use bans::{Ban, NewBan, Test, Which};
pub use busy::{Ticket, Waited};
pub use cache::begin::{Begin, BeginOptions};
pub use cache::{Cache, Config, Found};
pub use content::{Closed, Elsewhere, Making, Reading};
pub use fill::{Abandoned, Aborted, Passage, Push, Trailed};
pub use filling::{Filling, NotKept};
pub use forms::{Attached, FORMS};
pub use keyed::KEYED_FORMS;
pub use lead::{Lead, Loan};
pub use ledger::Stats;
pub use lower::{Lower, MemoryOnly};
pub use object::{BodyRef, Object};
pub use over::Walk;
pub use peek::{Peek, Seen};
pub use pieces::{Pieces, Whole};
pub use reader::Reader;
pub use record::{Flags, NewObject, Record, Retime};
pub use standing::Sinks;
pub use sweep::Listed;
pub use tags::Tags;
pub use variant::{Select, Variant, VarySpec};
pub use window::{Body, BodyWriter, Watch};

#[cfg(loom)]
pub mod model;

#[cfg(all(test, not(loom)))]
mod tests;
