//! The order in which a list is asked: as it stands, shuffled by a seed, or drawn at random
//! (siege's `-i`).

use super::List;

/// An order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestOrder {
    /// As the source has it, from the start again after its end.
    Sequence,
    /// Each request as often in a pass as in the source; another order in each pass, the same for
    /// the same seed.
    Shuffle(u64),
    /// Each drawn by itself, so that weights hold on average; the same for the same seed.
    Random(u64),
}

/// The endless numbers of requests of a list, in an order.
#[derive(Clone, Debug)]
pub struct Picks {
    sequence: Vec<u32>,
    at: usize,
    step: usize,
    draws: Option<fastrand::Rng>,
    shuffles: bool,
}

impl Picks {
    /// The picks of `list`.
    pub fn new(list: &List, order: RequestOrder) -> Self {
        Self::share(list, order, 0, 1)
    }

    /// The picks of `list` for one of several who ask in turns: number `own` of `all`, from 0.
    /// Together they ask what one alone would.
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

    /// The next number; none if the list is empty.
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
