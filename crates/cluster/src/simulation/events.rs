//! The events of a simulated cluster, in order of time.

use std::rc::Rc;

use super::message::{ToNode, ToServer};
use crate::entry::Entry;

/// A fault that lasts for a while.
#[derive(Clone, Copy, Debug)]
pub(super) enum SimulatedFault {
    CutOut(usize),
    CutIn(usize),
    Cut(usize),
    Stop(usize),
    Crash(usize),
    Leave(usize),
    /// The copy of the first node runs.
    Twin(usize),
    /// A region's link to the stream, in one direction or both.
    CutRegion(usize, (bool, bool)),
    ServerAway,
    ServerLoses,
    ServerAnew,
    Expire,
}

/// An event.
#[derive(Debug)]
pub(super) enum SimulationEvent {
    AtServer(usize, ToServer),
    AtNode(usize, u64, ToNode),
    Tick(usize, u64),
    /// The late application of an entry by a node with a bug.
    Apply(usize, u64, Rc<Entry>),
    Serve,
    Purge,
    Trouble,
    Heal(SimulatedFault),
}

/// An event, its time, and its number.
#[derive(Debug)]
pub(super) struct QueuedEvent(pub(super) u64, pub(super) u64, pub(super) SimulationEvent);

impl PartialEq for QueuedEvent {
    fn eq(&self, other: &Self) -> bool {
        (self.0, self.1) == (other.0, other.1)
    }
}
impl Eq for QueuedEvent {}
impl PartialOrd for QueuedEvent {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for QueuedEvent {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (other.0, other.1).cmp(&(self.0, self.1))
    }
}
