//! The memory cache: index, variants, busy objects with their waiters, eviction and bodies.
//!
//! It knows bytes, keys and milliseconds. It must never judge freshness, parse a field, read a
//! clock or touch a socket: `flow` does that, with the values of a stored [`Object`].
//!
//! Begin with [`Object`], then [`Cache::lookup`] (the hit path: one shared lock, no allocation) and
//! [`Cache::begin`] (the miss path, which ends in a [`Lead`] or a [`Ticket`]). The modules form
//! layers from the bottom: `record` and `ledger`; bodies (`fill`, `content`, `reader`); `object`;
//! the index (`slot`, `shard`, `lower`); `cache` with `lead` and `object_writer`; on top `sweep`,
//! `index_walk`, `peek`, `key_survey` and `form_making`.

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
mod key_survey;
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
pub use key_survey::SurveyedKey;
pub use keyed_forms::KEYED_FORMS;
pub use lead::{Lead, LowerTierBody};
pub use ledger::Stats;
pub use lower::{Lower, MemoryOnly};
pub use object::{BodyRef, Object};
pub use object_writer::{ObjectWriter, StoreRefusal};
pub use peek::{KeyInspection, VariantInspection};
pub use reader::Reader;
pub use record::{Flags, LifetimeUpdate, NewObject, Record};
pub use sweep::{BanListing, ObjectEnding, SweepHooks};
pub use tags::Tags;
pub use variant::{SignatureFunction, Variant, VarySpec};
pub use window::{BodyWindow, BodyWriter, ReaderWatch};

#[cfg(loom)]
pub mod model;

#[cfg(all(test, not(loom)))]
mod tests;
