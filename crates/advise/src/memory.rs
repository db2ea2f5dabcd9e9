//! Memory: a model of the store's eviction, S3-FIFO weighted by bytes, over numbers in place of
//! objects.
//!
//! The real store is crate `cache`, which holds bodies. The model must evict in the order of its
//! queues: a small one for what is new, a main one for what was asked for again, and a list of what
//! left the small one lately.

use std::collections::{HashMap, HashSet, VecDeque};

/// The share of the small queue: a tenth, as in the store.
const SMALL_SHARE: u64 = 10;
/// Most counted uses of an object.
const USES_MAX: u8 = 3;

/// Name of an object in the model.
pub(crate) type ObjectNumber = u64;

#[derive(Debug)]
struct Held {
    bytes: u64,
    uses: u8,
    is_main: bool,
    /// The queue's place that counts: an object that was replaced leaves its old one behind.
    turn: u64,
}

/// The model of a store with a budget.
#[derive(Debug)]
pub(crate) struct Memory {
    budget_bytes: u64,
    held: HashMap<ObjectNumber, Held>,
    small: VecDeque<(ObjectNumber, u64)>,
    main: VecDeque<(ObjectNumber, u64)>,
    ghosts: VecDeque<ObjectNumber>,
    ghost_set: HashSet<ObjectNumber>,
    small_bytes: u64,
    bytes: u64,
    turns: u64,
    /// Most bytes that were held.
    pub(crate) peak_bytes: u64,
}

impl Memory {
    /// An empty store.
    pub(crate) fn new(budget_bytes: u64) -> Self {
        Self {
            budget_bytes,
            held: HashMap::new(),
            small: VecDeque::new(),
            main: VecDeque::new(),
            ghosts: VecDeque::new(),
            ghost_set: HashSet::new(),
            small_bytes: 0,
            bytes: 0,
            turns: 0,
            peak_bytes: 0,
        }
    }

    /// Counts a use of an object.
    pub(crate) fn touch(&mut self, number: ObjectNumber) {
        if let Some(held) = self.held.get_mut(&number) {
            held.uses = (held.uses + 1).min(USES_MAX);
        }
    }

    /// Removes an object.
    pub(crate) fn remove(&mut self, number: ObjectNumber) {
        if let Some(held) = self.held.remove(&number) {
            self.bytes -= held.bytes;
            self.small_bytes -= if held.is_main { 0 } else { held.bytes };
        }
    }

    /// Puts an object in, in place of an earlier one of its number, and returns those that had to
    /// leave. An object larger than the budget leaves at once.
    pub(crate) fn insert(&mut self, number: ObjectNumber, bytes: u64) -> Vec<ObjectNumber> {
        let uses = self.held.get(&number).map_or(0, |held| held.uses);
        let was_main = self.held.get(&number).is_some_and(|held| held.is_main);
        self.remove(number);
        if bytes > self.budget_bytes {
            return vec![number];
        }
        let is_main = was_main || self.ghost_set.remove(&number);
        self.enqueue(number, Held { bytes, uses, is_main, turn: 0 });
        let mut left = Vec::new();
        while self.bytes > self.budget_bytes {
            match self.evict() {
                Some(gone) => left.push(gone),
                None => break,
            }
        }
        self.peak_bytes = self.peak_bytes.max(self.bytes);
        left
    }

    fn enqueue(&mut self, number: ObjectNumber, held: Held) {
        self.turns += 1;
        let turn = self.turns;
        self.bytes += held.bytes;
        if held.is_main {
            self.main.push_back((number, turn));
        } else {
            self.small_bytes += held.bytes;
            self.small.push_back((number, turn));
        }
        self.held.insert(number, Held { turn, ..held });
    }

    /// Makes one step towards room; `None` if nothing is left.
    fn evict(&mut self) -> Option<ObjectNumber> {
        loop {
            let from_small =
                self.small_bytes > self.budget_bytes / SMALL_SHARE || self.main.is_empty();
            let queue = if from_small { &mut self.small } else { &mut self.main };
            let (number, turn) = queue.pop_front()?;
            if self.held.get(&number).is_none_or(|held| held.turn != turn) {
                continue;
            }
            let uses = self.held.get(&number).map_or(0, |held| held.uses);
            let bytes = self.held.get(&number).map_or(0, |held| held.bytes);
            self.remove(number);
            if uses > 0 {
                let uses = if from_small { 0 } else { uses - 1 };
                self.enqueue(number, Held { bytes, uses, is_main: true, turn: 0 });
                continue;
            }
            if from_small {
                self.remember(number);
            }
            return Some(number);
        }
    }

    /// Remembers an object that left the small queue, for as long as the main queue has objects.
    fn remember(&mut self, number: ObjectNumber) {
        if self.ghost_set.insert(number) {
            self.ghosts.push_back(number);
        }
        while self.ghosts.len() > self.held.len().max(1) {
            if let Some(oldest) = self.ghosts.pop_front() {
                self.ghost_set.remove(&oldest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_again_stays_when_others_pass_by() {
        let mut memory = Memory::new(100);
        assert!(memory.insert(1, 10).is_empty());
        memory.touch(1);
        let left: Vec<_> = (2..200).flat_map(|number| memory.insert(number, 10)).collect();
        assert!(!left.contains(&1) && left.len() > 180, "{left:?}");
    }

    #[test]
    fn what_returns_soon_after_it_left_goes_to_the_main_queue() {
        let mut memory = Memory::new(100);
        let left: Vec<_> = (0..12).flat_map(|number| memory.insert(number, 10)).collect();
        assert_eq!(left, [0, 1]);
        memory.insert(1, 10);
        let later: Vec<_> = (20..60).flat_map(|number| memory.insert(number, 10)).collect();
        assert!(!later.contains(&1));
    }

    #[test]
    fn an_object_larger_than_all_memory_leaves_at_once() {
        let mut memory = Memory::new(100);
        memory.insert(1, 60);
        assert_eq!(memory.insert(2, 101), [2]);
        assert!(memory.insert(1, 100).is_empty());
        assert_eq!(memory.peak_bytes, 100);
    }
}
