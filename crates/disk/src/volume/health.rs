//! The health state of a volume, and the failures counted in it.

use std::collections::VecDeque;

use crate::owner::{Reason, VolumeCondition};
use crate::record_request::RecordRequest;
use crate::sync::{AtomicBool, AtomicU8, AtomicU64, Mutex, Ordering};

pub(crate) const IN: u8 = 0;
pub(crate) const PAUSING: u8 = 1;
pub(crate) const OUT: u8 = 2;

/// The health of one volume.
#[derive(Debug, Default)]
pub(crate) struct Health {
    pub(crate) state: AtomicU8,
    /// The time of the next attempt to write the marker, on the monotonic clock; `u64::MAX` once it
    /// is written.
    pub(crate) mark_ms: AtomicU64,
    /// True once the marker is written: no start will find a record of the volume.
    pub(crate) void: AtomicBool,
    pub(crate) notes: Mutex<Notes>,
}

#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// The times of failed operations, on the monotonic clock.
    pub(crate) errors: VecDeque<u64>,
    pub(crate) lates: VecDeque<u64>,
    pub(crate) until_ms: u64,
    reason: Option<Reason>,
}

/// Notes an event at `now_ms`. Returns true at `most` events within `within_ms`.
pub(crate) fn often(events: &mut VecDeque<u64>, now_ms: u64, within_ms: u64, most: u32) -> bool {
    events.push_back(now_ms);
    while events.front().is_some_and(|first| now_ms.saturating_sub(*first) > within_ms) {
        events.pop_front();
    }
    events.len() >= most as usize
}

impl Health {
    pub(crate) fn is_in(&self) -> bool {
        self.state.load(Ordering::Acquire) == IN
    }

    /// Returns true if the volume serves this read. A pausing volume continues bodies that have
    /// begun.
    pub(crate) fn serves(&self, ask: &RecordRequest) -> bool {
        match self.state.load(Ordering::Acquire) {
            IN => true,
            PAUSING => !ask.head,
            _ => false,
        }
    }

    pub(crate) fn is_out(&self) -> bool {
        self.state.load(Ordering::Acquire) == OUT
    }

    /// Returns true if no start will find a record of the volume.
    pub(crate) fn is_void(&self) -> bool {
        self.is_out() && self.void.load(Ordering::Acquire)
    }

    pub(crate) fn condition(&self) -> VolumeCondition {
        let reason = self.notes.lock().reason.unwrap_or(Reason::Errors);
        match self.state.load(Ordering::Acquire) {
            IN => VolumeCondition::In,
            PAUSING => VolumeCondition::Pausing(reason),
            _ => VolumeCondition::Out(reason),
        }
    }

    /// Enters a worse state. Returns false if the state is already as bad.
    pub(crate) fn worsen(&self, state: u8, reason: Reason, until_ms: u64) -> bool {
        let mut notes = self.notes.lock();
        if self.state.load(Ordering::Acquire) >= state {
            return false;
        }
        self.state.store(state, Ordering::Release);
        notes.reason = Some(reason);
        notes.until_ms = until_ms;
        true
    }
}
