//! Eviction from a shard: S3-FIFO weighted by bytes (Yang et al., SOSP 2023).
//!
//! New objects enter the small queue, a tenth of the bytes. At its end those that were hit since go
//! on to the main queue; the others leave, and their hashes are remembered for a while: a key that
//! comes back in that time enters the main queue at once. The main queue gives every hit object
//! another round. A hit sets two bits in the object and moves nothing.
//!
//! Queues hold tokens, not objects. The token of an object that left the index otherwise is dead;
//! it is dropped when its turn comes, or sifted out when the dead outnumber the living.
//!
//! Where nearly everything was hit since its last turn, one reservation would judge every token
//! several times over. So it is patient only for a while; then whoever's turn it is leaves.

use std::sync::Arc;

use super::queue::{Queue, Token};
use super::{RemovedObjects, Shard, settle};
use crate::ledger::count;
use crate::lower::Lower;
use crate::slot::IndexSlot;

/// Hits since it was stored that let an object pass from the small to the main queue. Two, as the
/// paper has it: on Zipf traces with a third of one-hit wonders one gives 0.5 to 2 points fewer
/// hits.
const PROMOTE_AT: u8 = 2;
/// The small queue's share of the bytes is one in so many.
const SMALL_SHARE: u64 = 10;
/// Tokens looked at under one lock.
const SCAN: usize = 64;
/// Tokens that one reservation judges and shards that it visits.
const EFFORT: usize = 16 * 1024;
/// Of these, those after which hits no longer count.
const PATIENCE: usize = 4 * 1024;

/// The work that making room for one reservation may cost.
#[derive(Debug)]
pub(crate) struct Effort {
    left: usize,
}

impl Effort {
    pub(crate) fn new() -> Self {
        Self { left: EFFORT }
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.left == 0
    }

    /// Returns true if hits no longer count.
    fn is_urgent(&self) -> bool {
        self.left <= EFFORT - PATIENCE
    }

    pub(crate) fn spend(&mut self, steps: usize) {
        self.left = self.left.saturating_sub(steps);
    }
}

/// The outcome of a visit of [`Shard::evict`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EvictionOutcome {
    /// Something left the index.
    Evicted,
    /// Nothing left yet, but the next visit is nearer to it.
    Progress,
    /// Nothing can leave: empty, or all of it is being read or filled.
    Nothing,
}

enum Verdict {
    Keep,
    Again,
    Promote,
    Evict,
    Dead,
}

impl<L: Lower> Shard<L> {
    /// Looks at a few tokens and lets at most one object or marker leave.
    pub(crate) fn evict(
        &mut self,
        effort: &mut Effort,
        dead: &mut RemovedObjects,
    ) -> EvictionOutcome {
        let total = self.small.bytes + self.main.bytes;
        let from_main = self.small.bytes * SMALL_SHARE < total;
        match self.evict_from(from_main, effort, dead) {
            // What was asked for once and is still being read must not push out what is asked for
            // again and again: beyond half of the bytes it gets no more.
            EvictionOutcome::Nothing if !from_main && self.small.bytes * 2 > total => {
                EvictionOutcome::Nothing
            }
            EvictionOutcome::Nothing => self.evict_from(!from_main, effort, dead),
            visit => visit,
        }
    }

    fn evict_from(
        &mut self,
        main: bool,
        effort: &mut Effort,
        dead: &mut RemovedObjects,
    ) -> EvictionOutcome {
        let mut visit = EvictionOutcome::Nothing;
        let urgent = effort.is_urgent();
        for _ in 0..self.queue_of(main).len().min(SCAN) {
            let Some(token) = self.queue_of(main).pop() else { break };
            effort.spend(1);
            self.work.add(1);
            match self.judge(token, main, urgent) {
                Verdict::Keep => self.requeue(token, main),
                Verdict::Again => {
                    self.requeue(token, main);
                    visit = EvictionOutcome::Progress;
                }
                Verdict::Dead => {
                    self.queue_of(main).bury();
                    visit = EvictionOutcome::Progress;
                }
                Verdict::Promote => {
                    self.promote(token);
                    visit = EvictionOutcome::Progress;
                }
                Verdict::Evict => {
                    self.remove(token, main, dead);
                    visit = EvictionOutcome::Evicted;
                    break;
                }
            }
        }
        self.give_back();
        visit
    }

    fn requeue(&mut self, token: Token, main: bool) {
        let moved = self.queue_of(main).push(token);
        self.work.add(moved);
    }

    fn queue_of(&mut self, main: bool) -> &mut Queue {
        if main { &mut self.main } else { &mut self.small }
    }

    pub(super) fn of_token(&self, token: Token) -> Option<&IndexSlot> {
        let is_it = |slot: &IndexSlot| slot.h32() == token.h32 && slot.has_token(token.id);
        self.table.find(token.h32, is_it)
    }

    fn judge(&self, token: Token, main: bool, urgent: bool) -> Verdict {
        let Some(slot) = self.of_token(token) else { return Verdict::Dead };
        let Some(object) = slot.variants().iter().find(|object| object.standing.id == token.id)
        else {
            return Verdict::Evict;
        };
        // Whoever reads it keeps its memory: letting it go would free nothing now. Under this lock
        // nobody can come by a reference who has none.
        if object.is_filling() || object.is_held() {
            return Verdict::Keep;
        }
        let frequency = if urgent { 0 } else { object.standing.frequency() };
        match main {
            true if frequency > 0 => {
                object.standing.set_frequency(frequency - 1);
                Verdict::Again
            }
            // Without memory for a longer main queue the object stays where it is, and is judged
            // again.
            false if frequency >= PROMOTE_AT && self.main.is_full() => {
                object.standing.set_frequency(0);
                Verdict::Again
            }
            false if frequency >= PROMOTE_AT => Verdict::Promote,
            _ => Verdict::Evict,
        }
    }

    fn promote(&mut self, token: Token) {
        let object = self
            .of_token(token)
            .and_then(|slot| slot.variants().iter().find(|object| object.standing.id == token.id))
            .cloned();
        if let Some(object) = object {
            self.unpush(&object);
            self.small.bury();
            object.standing.set_frequency(0);
            self.push(token.h32, &object, true);
        }
    }

    /// Lets what `token` stands for leave; the token has been taken from its queue.
    fn remove(&mut self, token: Token, main: bool, dead: &mut RemovedObjects) {
        let is_it = |slot: &IndexSlot| slot.h32() == token.h32 && slot.has_token(token.id);
        let Some(mut entry) = self.table.find_entry(token.h32, is_it) else { return };
        let slot = entry.get_mut();
        if slot.has_marker(token.id)
            && let IndexSlot::Many(_, more) = slot
        {
            more.marker = None;
            let key_len = more.key.len();
            settle(entry);
            self.unmarked(key_len);
            self.small.bury();
            return;
        }
        let object = match slot {
            IndexSlot::One(_, object) => {
                let object = Arc::clone(object);
                drop(entry.remove());
                Some(object)
            }
            IndexSlot::Many(_, more) => {
                let at = more.variants.iter().position(|object| object.standing.id == token.id);
                let object = at.map(|at| more.variants.remove(at));
                settle(entry);
                object
            }
        };
        if let Some(object) = object {
            self.sink(token.h32, &object);
            self.strike_off(std::slice::from_ref(&object));
            self.queue_of(main).bury();
            count(&self.charge.ledger().evictions, 1);
            if !main {
                let ledger = Arc::clone(self.charge.ledger());
                self.ghost.insert(token.h32, self.main.live, &ledger);
            }
            dead.push(object);
        }
    }
}
