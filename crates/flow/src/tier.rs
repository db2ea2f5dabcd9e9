//! Tier: the paths between memory and disk. Evicted responses are demoted to the disk, and the disk
//! is read before an origin is asked. The disk in use belongs to [`Tier`].

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
