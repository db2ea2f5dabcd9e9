//! One volume while it is in use: its segments, the one that is open, what waits to be written, and
//! its journal; and the state of what works on it: health, reads, writer and finder.
//!
//! Locks are taken in this order: writer, front, a segment, lists, journal. Only the writer's is
//! held while the owner is called. Nothing here knows those that work on a volume, which stand
//! above it.

mod finder;
mod health;
mod new_record;
mod queue;
mod record_queue;
mod records;
mod state;
mod store_context;
mod writer_notes;

pub(crate) use finder::{Finder, RowVerdict};
pub(crate) use health::{Health, IN, OUT, PAUSING, often};
pub(crate) use new_record::NewRecord;
pub(crate) use queue::{PendingRead, ReadQueue};
pub(crate) use record_queue::{Job, QueuedRecord, RecordQueue};
pub(crate) use state::Volume;
pub(crate) use store_context::StoreContext;
pub(crate) use writer_notes::{Needless, WriterNotes};
