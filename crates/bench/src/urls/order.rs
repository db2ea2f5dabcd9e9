//! The order of a list's requests: its own, shuffled by a seed, or drawn at random (siege's `-i`).

use super::List;

/// An order of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestOrder {
    /// The source's order, repeated from its start.
    Sequence,
    /// Each request as often per pass as in the source, in an order that differs by pass;
    /// reproducible by its seed.
    Shuffle(u64),
    /// Each request drawn independently, with weights as probabilities; reproducible by its seed.
    Random(u64),
}

/// An endless iterator over the numbers of a list's requests, in an order.
#[derive(Clone, Debug)]
pub struct Picks {
    sequence: Vec<u32>,
    at: usize,
    step: usize,
    draws: Option<fastrand::Rng>,
    shuffles: bool,
}

impl Picks {
    /// Makes the iterator over `list`.
    pub fn new(list: &List, order: RequestOrder) -> Self {
        Self::share(list, order, 0, 1)
    }

    /// Makes the part of iterator `own` (from 0) of `all`, which take turns: together they yield
    /// what one alone would.
    pub fn share(list: &List, order: RequestOrder, own: usize, all: usize) -> Self {
        let (seed, shuffles) = match order {
            RequestOrder::Sequence => (None, false),
            RequestOrder::Shuffle(seed) => (Some(seed), true),
            RequestOrder::Random(seed) => (Some(seed.wrapping_add(own as u64)), false),
        };
        let mut sequence = list.sequence().to_vec();
        let mut draws = seed.map(fastrand::Rng::with_seed);
        if let (true, Some(draws)) = (shuffles, &mut draws) {
            draws.shuffle(&mut sequence);
        }
        Self { sequence, at: own, step: all, draws, shuffles }
    }
}

impl Iterator for Picks {
    type Item = u32;

    /// Returns the next number; `None` for an empty list.
    fn next(&mut self) -> Option<u32> {
        let count = self.sequence.len();
        if count == 0 {
            return None;
        }
        match &mut self.draws {
            Some(draws) if !self.shuffles => {
                return self.sequence.get(draws.usize(..count)).copied();
            }
            draws => {
                while self.at >= count {
                    self.at -= count;
                    if let Some(draws) = draws {
                        draws.shuffle(&mut self.sequence);
                    }
                }
            }
        }
        let at = self.at;
        self.at += self.step;
        self.sequence.get(at).copied()
    }
}
