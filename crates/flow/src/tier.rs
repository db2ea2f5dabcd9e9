//! The ways between memory and the disk: what leaves memory sinks, and what is asked for is read
//! before an origin is. The disk in use is [`Tier`]'s.

mod journal;
mod promotion;
mod record_view;
mod spool;
mod start;
#[cfg(test)]
pub(crate) mod tests;

pub use self::record_view::RecordView;
pub use self::start::{DiskStartOutcome, OpenedDisk, open};
pub use crate::state::tier::{Cache, DiskRules, Lead, ShutdownOutcome, Tier, memory_only};

pub(crate) use self::promotion::raise;
pub(crate) use self::spool::Spool;
