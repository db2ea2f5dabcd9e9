//! The store context: what all volumes of a store share.

use std::sync::Arc;

use base::Now;

use crate::buffers::Buffers;
use crate::config::{Clock, Config};
use crate::journal::CommitMoment;
use crate::owner::Owner;
use crate::sequence::SequenceCounter;
use crate::sync::Mutex;

/// The settings, the clock and the sequence, which all volumes of a store share.
pub(crate) struct StoreContext {
    pub(crate) config: Config,
    pub(crate) owner: Arc<dyn Owner>,
    pub(crate) clock: Clock,
    /// The first number of this session.
    pub(crate) began: u64,
    pub(crate) order: SequenceCounter,
    /// Volumes that were taken out, with the next number at that time, for the journals of the
    /// others.
    pub(crate) taken_out: Mutex<Vec<([u8; 16], u64)>>,
    pub(crate) buffers: Arc<Buffers>,
}

impl StoreContext {
    pub(crate) fn now(&self) -> Now {
        (self.clock)()
    }

    pub(crate) fn moment(&self) -> CommitMoment {
        CommitMoment { now: self.now(), next: self.order.now() }
    }
}
