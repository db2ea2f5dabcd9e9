//! A volume in use: its segments, its queue, its journal, and the state of health, reads, writer
//! and finder. Locks are taken in this order: writer, front, a segment, lists, journal. While the
//! owner is called, only the writer's lock may be held. The code that works on a volume is in
//! modules above.

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
pub(crate) use writer_notes::{ObsoleteInvalidations, WriterNotes};
