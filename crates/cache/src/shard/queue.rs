//! A queue of tokens in the order of entry. It grows and drops dead tokens in small steps: no call
//! may move all tokens at once.

use std::collections::VecDeque;

use crate::size;

/// Tokens of a queue's first allocation.
const PLACES: usize = 16;
/// Dead tokens that are permitted whatever the number of live ones.
pub(super) const DEAD_SUFFERED: usize = 64;
/// Tokens that one insertion moves into the longer queue: the old one is empty when the new one is
/// three quarters full.
const MOVED: usize = 2;
/// Tokens examined for each new dead one while dead tokens are removed. More than one, so that the
/// removal ends.
const SIFTED: usize = 2;

/// An object or marker of the table, by its hash and its number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub(super) h32: u32,
    pub(super) id: u32,
}

/// A queue, and the weight of its live entries.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// The first tokens, until they have been moved to the beginning of `tokens`.
    first: VecDeque<Token>,
    tokens: VecDeque<Token>,
    /// Weight of the live entries.
    pub(super) bytes: u64,
    pub(super) live: usize,
    dead: usize,
    sieve: Option<Sieve>,
}

/// The progress of a removal of dead tokens. Tokens before `kept` are live; those between it and
/// `next` are dead.
#[derive(Clone, Copy, Debug, Default)]
struct Sieve {
    kept: usize,
    next: usize,
}

impl Queue {
    pub(super) fn len(&self) -> usize {
        self.first.len() + self.tokens.len()
    }

    pub(super) fn weigh_more(&mut self, bytes: u64) {
        self.bytes += bytes;
        self.live += 1;
    }

    /// Subtracts an entry that has left the table while its token is still queued.
    pub(super) fn weigh_less(&mut self, bytes: u64) {
        self.bytes -= bytes;
        self.live -= 1;
        self.dead += 1;
    }

    /// Notes that a dead token has been removed.
    pub(super) fn remove_dead(&mut self) {
        self.dead = self.dead.saturating_sub(1);
    }

    // Tokens.

    /// Adds a token at the end. The queue has room. Returns the number of other tokens that were
    /// moved.
    pub(super) fn push(&mut self, token: Token) -> usize {
        debug_assert!(!self.is_full(), "nothing may move all at once");
        self.tokens.push_back(token);
        self.move_some()
    }

    pub(super) fn pop(&mut self) -> Option<Token> {
        if let Some(sieve) = &mut self.sieve {
            sieve.kept = sieve.kept.saturating_sub(1);
            sieve.next = sieve.next.saturating_sub(1);
        }
        self.first.pop_front().or_else(|| self.tokens.pop_front())
    }

    fn at(&mut self, index: usize) -> Option<&mut Token> {
        match index.checked_sub(self.first.len()) {
            Some(index) => self.tokens.get_mut(index),
            None => self.first.get_mut(index),
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        let (Some(at_a), Some(at_b)) = (self.at(a).copied(), self.at(b).copied()) else { return };
        for (index, token) in [(a, at_b), (b, at_a)] {
            if let Some(place) = self.at(index) {
                *place = token;
            }
        }
    }

    fn truncate(&mut self, len: usize) {
        self.tokens.truncate(len.saturating_sub(self.first.len()));
        self.first.truncate(len);
    }

    /// Removes dead tokens once they outnumber the live ones: examines a few tokens and returns
    /// their number.
    pub(super) fn sift(&mut self, lives: impl Fn(Token) -> bool) -> usize {
        if self.sieve.is_none() && self.dead <= self.live + DEAD_SUFFERED {
            return 0;
        }
        let Sieve { mut kept, mut next } = self.sieve.unwrap_or_default();
        for looked_at in 0..SIFTED {
            let Some(token) = self.at(next).copied() else {
                self.dead = self.dead.saturating_sub(next - kept);
                self.truncate(kept);
                self.sieve = None;
                return looked_at;
            };
            if lives(token) {
                self.swap(kept, next);
                kept += 1;
            }
            next += 1;
        }
        self.sieve = Some(Sieve { kept, next });
        SIFTED
    }

    // Memory.

    pub(super) fn is_full(&self) -> bool {
        self.len() >= self.tokens.capacity()
    }

    fn bytes_of(places: usize) -> u64 {
        size::class(places * size_of::<Token>())
    }

    fn next_places(&self) -> usize {
        (self.tokens.capacity() * 2).max(PLACES)
    }

    /// Bytes to reserve for one more token; zero if it fits now.
    pub(super) fn growth(&self) -> u64 {
        if self.is_full() { Self::bytes_of(self.next_places()) } else { 0 }
    }

    pub(super) fn memory(&self) -> u64 {
        Self::bytes_of(self.first.capacity()) + Self::bytes_of(self.tokens.capacity())
    }

    /// Returns true if the former queue still takes memory.
    pub(super) fn is_moving(&self) -> bool {
        self.first.capacity() > 0
    }

    /// Begins a longer queue. Returns the number of tokens moved.
    pub(super) fn grow(&mut self) -> usize {
        debug_assert!(self.first.is_empty(), "the longer queue was full before all had moved");
        let longer = VecDeque::with_capacity(self.next_places());
        self.first = std::mem::replace(&mut self.tokens, longer);
        self.move_some()
    }

    fn move_some(&mut self) -> usize {
        if !self.is_moving() {
            return 0;
        }
        for moved in 0..MOVED {
            match self.first.pop_back() {
                Some(token) => self.tokens.push_front(token),
                None => {
                    self.first = VecDeque::new();
                    return moved;
                }
            }
        }
        MOVED
    }
}

#[cfg(test)]
impl Queue {
    pub(super) fn iter(&self) -> impl Iterator<Item = Token> + '_ {
        self.first.iter().chain(&self.tokens).copied()
    }

    pub(super) fn dead(&self) -> usize {
        self.dead
    }

    pub(super) fn is_sifting(&self) -> bool {
        self.sieve.is_some()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Op {
        Push,
        Pop,
        Kill(usize),
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        /// Compared with a plain list: live tokens stay in order through all moves and removals.
        #[test]
        fn tokens_leave_in_the_order_in_which_they_came(
            ops in proptest::collection::vec(
                prop_oneof![
                    8 => Just(Op::Push),
                    1 => Just(Op::Pop),
                    7 => any::<usize>().prop_map(Op::Kill),
                ],
                0..600,
            ),
        ) {
            let mut queue = Queue::default();
            let (mut plain, mut next) = (Vec::new(), 0_u32);
            for op in ops {
                match op {
                    Op::Push => {
                        if queue.growth() > 0 {
                            queue.grow();
                        }
                        let moved = queue.push(Token { h32: next, id: next });
                        prop_assert!(moved <= MOVED);
                        queue.weigh_more(1);
                        plain.push(next);
                        next += 1;
                    }
                    Op::Pop => match queue.pop() {
                        Some(token) if plain.first() == Some(&token.id) => {
                            queue.weigh_less(1);
                            queue.remove_dead();
                            plain.remove(0);
                        }
                        Some(token) => {
                            prop_assert!(!plain.contains(&token.id), "in front of older ones");
                            queue.remove_dead();
                        }
                        None => prop_assert!(plain.is_empty()),
                    },
                    Op::Kill(at) if !plain.is_empty() => {
                        plain.remove(at % plain.len());
                        queue.weigh_less(1);
                        let looked_at = queue.sift(|token| plain.binary_search(&token.id).is_ok());
                        prop_assert!(looked_at <= SIFTED);
                    }
                    Op::Kill(_) => {}
                }
                let tokens = queue.iter().map(|token| token.id);
                let living = tokens.filter(|id| plain.binary_search(id).is_ok());
                prop_assert!(living.eq(plain.iter().copied()));
                prop_assert_eq!(queue.len(), plain.len() + queue.dead());
                prop_assert!(queue.dead() <= plain.len() + DEAD_SUFFERED || queue.is_sifting());
            }
        }
    }
}
