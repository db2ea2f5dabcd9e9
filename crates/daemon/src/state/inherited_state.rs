//! State that a process takes over from the one that it replaces.

use observe::ring::InheritedLock;

use crate::handover::DiskOffer;

/// State of the process that this one replaces; nothing of it at another start.
#[derive(Debug, Default)]
pub(crate) struct InheritedState {
    /// Its process id.
    pub(crate) predecessor: Option<u32>,
    /// The lock of the log ring's folder.
    pub(crate) ring_lock: Option<InheritedLock>,
    /// The secrets of session tickets.
    pub(crate) ticket_keys: Vec<u8>,
    /// The disk cache that the other process still has, if it is to be this one's.
    pub(crate) disk: Option<DiskOffer>,
}
