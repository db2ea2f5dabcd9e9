//! One volume while it is in use: its segments, the one that is open, what waits to be written, and
//! its journal; and the state of what works on it: health, reads, writer and finder.
//!
//! Locks are taken in this order: writer, front, a segment, lists, journal. Only the writer's is
//! held while the owner is called. Nothing here knows those that work on a volume, which stand
//! above it.

mod finder;
mod front;
mod health;
mod new;
mod notes;
mod queue;
mod records;
mod shared;
mod state;

pub(crate) use finder::{Finder, Judged};
pub(crate) use front::{Front, Job, Queued};
pub(crate) use health::{Health, IN, OUT, PAUSING, often};
pub(crate) use new::New;
pub(crate) use notes::{Needless, Writer};
pub(crate) use queue::{ReadQueue, Request};
pub(crate) use shared::Shared;
pub(crate) use state::Volume;
