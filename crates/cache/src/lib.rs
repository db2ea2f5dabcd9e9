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
mod borrowed_body;
mod busy;
mod cache;
mod charged_bytes;
mod compact_duration;
mod content;
mod fill;
mod form_making;
mod forms;
mod ghost;
mod index_state;
mod index_walk;
mod keyed_forms;
mod lead;
mod ledger;
mod lower;
mod object;
mod object_writer;
mod peek;
mod reader;
mod record;
mod record_encoding;
mod shard;
mod size;
mod slot;
mod slots;
mod sweep;
mod sync;
mod tags;
mod variant;
mod window;

pub use bans::{Ban, BanSelector, NewBan, Test};
pub use borrowed_body::{BodyChunks, BorrowedBody};
pub use busy::{Ticket, WaiterOutcome};
pub use cache::collapsing::{BeginOptions, FetchDecision};
pub use cache::{Cache, CacheLookup, Config};
pub use content::{BodyDerivation, BodyOpenError, ExternalBody, ExternalBodyReader};
pub use fill::{AbandonedBody, HeldTrailers, IncompleteBody, PushOutcome, WindowLimit};
pub use forms::{DerivedData, FORMS};
pub use index_state::DemotionPolicy;
pub use index_walk::IndexWalk;
pub use keyed_forms::KEYED_FORMS;
pub use lead::{Lead, LowerTierBody};
pub use ledger::Stats;
pub use lower::{Lower, MemoryOnly};
pub use object::{BodyRef, Object};
pub use object_writer::{ObjectWriter, StoreRefusal};
pub use peek::{KeyInspection, VariantInspection};
pub use reader::Reader;
pub use record::{Flags, LifetimeUpdate, NewObject, Record};
pub use sweep::BanListing;
pub use tags::Tags;
pub use variant::{SignatureFunction, Variant, VarySpec};
pub use window::{BodyWindow, BodyWriter, ReaderWatch};

#[cfg(loom)]
pub mod model;

#[cfg(all(test, not(loom)))]
mod tests;
