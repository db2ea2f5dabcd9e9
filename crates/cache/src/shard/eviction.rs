//! Eviction from a shard: S3-FIFO weighted by bytes (Yang et al., SOSP 2023). Queues hold tokens,
//! not objects: the token of an object that has left the index is dead, and is dropped at its turn
//! or when dead tokens outnumber live ones. Eviction must never wait for a reader or examine more
//! tokens than its effort permits.

use std::sync::Arc;

use super::queue::{Queue, Token};
use super::{RemovedObjects, Shard, settle};
use crate::ledger::count;
use crate::lower::Lower;
use crate::slot::IndexSlot;

/// Hits after which an object moves from the small to the main queue. Two, as in the paper: on Zipf
/// traces with a third of one-hit wonders, one gives 0.5 to 2 points fewer hits.
const PROMOTE_AT: u8 = 2;
/// The small queue's share of the bytes: one part in this many.
const SMALL_SHARE: u64 = 10;
/// Tokens examined under one hold of the lock.
const SCAN: usize = 64;
/// Tokens examined and shards visited for one reservation.
const EFFORT: usize = 16 * 1024;
/// Tokens of these after which hits no longer count.
const PATIENCE: usize = 4 * 1024;

/// The limit of eviction work for one reservation.
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

/// The outcome of a visit by [`Shard::evict`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EvictionOutcome {
    /// An object or marker was evicted.
    Evicted,
    /// None was evicted, but the next visit is closer to it.
    Progress,
    /// None can be evicted: the shard is empty, or all objects are being read or filled.
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
    /// Examines a few tokens and evicts at most one object or marker.
    ///
    /// New objects enter the small queue, a tenth of the bytes. At its end, objects with hits move
    /// to the main queue; the others are evicted, and their hashes enter the ghost queue. A key
    /// that returns from it enters the main queue at once. The main queue gives each object with
    /// hits another round. A hit sets two bits in the object and moves nothing.
    ///
    /// If nearly all objects have hits, one reservation would examine every token several times, so
    /// after a limited number of tokens hits no longer count.
    pub(crate) fn evict(
        &mut self,
        effort: &mut Effort,
        dead: &mut RemovedObjects,
    ) -> EvictionOutcome {
        let total = self.small.bytes + self.main.bytes;
        let from_main = self.small.bytes * SMALL_SHARE < total;
        match self.evict_from(from_main, effort, dead) {
            // Objects requested once that are still being read must not displace popular ones
            // beyond half of the bytes.
            EvictionOutcome::Nothing if !from_main && self.small.bytes * 2 > total => {
                EvictionOutcome::Nothing
            }
            EvictionOutcome::Nothing => self.evict_from(!from_main, effort, dead),
            outcome => outcome,
        }
    }

    fn evict_from(
        &mut self,
        main: bool,
        effort: &mut Effort,
        dead: &mut RemovedObjects,
    ) -> EvictionOutcome {
        let mut outcome = EvictionOutcome::Nothing;
        let urgent = effort.is_urgent();
        for _ in 0..self.queue_of(main).len().min(SCAN) {
            let Some(token) = self.queue_of(main).pop() else { break };
            effort.spend(1);
            self.work.add(1);
            match self.judge(token, main, urgent) {
                Verdict::Keep => self.requeue(token, main),
                Verdict::Again => {
                    self.requeue(token, main);
                    outcome = EvictionOutcome::Progress;
                }
                Verdict::Dead => {
                    self.queue_of(main).remove_dead();
                    outcome = EvictionOutcome::Progress;
                }
                Verdict::Promote => {
                    self.promote(token);
                    outcome = EvictionOutcome::Progress;
                }
                Verdict::Evict => {
                    self.remove(token, main, dead);
                    outcome = EvictionOutcome::Evicted;
                    break;
                }
            }
        }
        self.give_back();
        outcome
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
        let Some(object) = slot.variants().iter().find(|object| object.index_state.id == token.id)
        else {
            return Verdict::Evict;
        };
        // A reader keeps the memory in use, so eviction would free nothing now. Under this lock no
        // new reference can appear.
        if object.is_filling() || object.is_held() {
            return Verdict::Keep;
        }
        let frequency = if urgent { 0 } else { object.index_state.frequency() };
        match main {
            true if frequency > 0 => {
                object.index_state.set_frequency(frequency - 1);
                Verdict::Again
            }
            // Without memory for a longer main queue the object stays, and is examined again.
            false if frequency >= PROMOTE_AT && self.main.is_full() => {
                object.index_state.set_frequency(0);
                Verdict::Again
            }
            false if frequency >= PROMOTE_AT => Verdict::Promote,
            _ => Verdict::Evict,
        }
    }

    fn promote(&mut self, token: Token) {
        let object = self
            .of_token(token)
            .and_then(|slot| {
                slot.variants().iter().find(|object| object.index_state.id == token.id)
            })
            .cloned();
        if let Some(object) = object {
            self.unpush(&object);
            self.small.remove_dead();
            object.index_state.set_frequency(0);
            self.push(token.h32, &object, true);
        }
    }

    /// Removes the object or marker of `token`, which has been taken from its queue.
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
            self.small.remove_dead();
            return;
        }
        let object = match slot {
            IndexSlot::One(_, object) => {
                let object = Arc::clone(object);
                drop(entry.remove());
                Some(object)
            }
            IndexSlot::Many(_, more) => {
                let at = more.variants.iter().position(|object| object.index_state.id == token.id);
                let object = at.map(|at| more.variants.remove(at));
                settle(entry);
                object
            }
        };
        if let Some(object) = object {
            self.demote_object(token.h32, &object);
            self.note_removed(std::slice::from_ref(&object));
            self.queue_of(main).remove_dead();
            count(&self.charge.ledger().evictions, 1);
            if !main {
                let ledger = Arc::clone(self.charge.ledger());
                self.ghost.insert(token.h32, self.main.live, &ledger);
            }
            dead.push(object);
        }
    }
}
