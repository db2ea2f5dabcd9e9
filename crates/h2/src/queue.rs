//! Queue of streams that have bytes to send (RFC 9218 10).

use std::collections::VecDeque;

/// The number of urgencies (RFC 9218 4.1).
const URGENCIES: usize = 8;

/// Streams that have bytes to send, by urgency. Within an urgency, an incremental stream moves to
/// the end after each turn; any other stays in front until it is done.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    waiting: [VecDeque<u16>; URGENCIES],
    /// A bit for each urgency with a waiting stream.
    some: u8,
}

impl Queues {
    /// Adds a stream behind those of its urgency.
    pub(crate) fn push(&mut self, urgency: u8, place: usize) {
        let urgency = urgency.min(7);
        self.waiting[usize::from(urgency)].push_back(place as u16);
        self.some |= 1 << urgency;
    }

    /// The stream whose turn it is.
    pub(crate) fn first(&self) -> Option<usize> {
        let urgency = self.some.trailing_zeros() as usize;
        self.waiting.get(urgency)?.front().map(|place| usize::from(*place))
    }

    /// Removes the stream whose turn it is.
    pub(crate) fn pop(&mut self) {
        let urgency = self.some.trailing_zeros() as usize;
        if let Some(waiting) = self.waiting.get_mut(urgency) {
            waiting.pop_front();
            if waiting.is_empty() {
                self.some &= !(1 << urgency);
            }
        }
    }

    /// Removes a stream from any position.
    pub(crate) fn remove(&mut self, urgency: u8, place: usize) {
        let urgency = usize::from(urgency.min(7));
        let waiting = &mut self.waiting[urgency];
        waiting.retain(|own| usize::from(*own) != place);
        if waiting.is_empty() {
            self.some &= !(1 << urgency);
        }
    }

    /// Returns true if no stream waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.some == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_urgent_comes_first_and_others_in_their_order() {
        let mut queues = Queues::default();
        assert!(queues.is_empty() && queues.first().is_none());
        for (urgency, place) in [(3, 1), (7, 2), (0, 3), (3, 4)] {
            queues.push(urgency, place);
        }
        queues.remove(3, 9);
        let mut order = Vec::new();
        while let Some(place) = queues.first() {
            order.push(place);
            queues.pop();
        }
        assert_eq!(order, [3, 1, 4, 2]);
        queues.push(3, 1);
        queues.remove(3, 1);
        assert!(queues.is_empty());
    }
}
