//! A node of a simulated cluster.

use std::collections::HashMap;
use std::rc::Rc;

use fastrand::Rng;

use super::message::{KEYS, SimulatedPurge, ToNode, purged_of};
use crate::Level;
use crate::entry::Entry;
use crate::follower::StreamFollower;
use crate::members::{AppliedRuns, Card, Members};
use crate::position::Position;

/// A purge that waits for its confirmation.
#[derive(Debug)]
pub(super) struct WaitingPurge {
    pub(super) level: Level,
    pub(super) purged: SimulatedPurge,
    pub(super) sent_ms: u64,
    pub(super) entry: Rc<Entry>,
    pub(super) stored: Option<u64>,
    pub(super) checked: Option<u64>,
    pub(super) applied: AppliedRuns,
}

/// A node.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) name: String,
    pub(super) run: u64,
    pub(super) rate: f64,
    pub(super) up: bool,
    pub(super) stopped: bool,
    pub(super) has_disk: bool,
    pub(super) cut: (bool, bool),
    pub(super) follower: StreamFollower,
    pub(super) members: Members,
    /// The sequence up to which all cards are known.
    pub(super) cards_seen: Option<u64>,
    pub(super) name_state: NameState,
    pub(super) subscription: u64,
    pub(super) order: u64,
    pub(super) last_answer: u64,
    pub(super) asked_for: u64,
    pub(super) cache: HashMap<usize, (u64, u64)>,
    pub(super) doubted_ms: u64,
    pub(super) saved: Option<Position>,
    pub(super) numbers: u64,
    pub(super) waiting: Vec<WaitingPurge>,
    pub(super) held: Vec<ToNode>,
}

/// A node's knowledge of other runs with its name.
#[derive(Debug, Default)]
pub(super) struct NameState {
    /// True once it has checked its name in this session.
    pub(super) is_known: bool,
    /// Its first card in this session.
    pub(super) shown: Option<u64>,
    /// Another run of its name, and until when that may be live.
    pub(super) displaces: Option<(u64, u64)>,
    /// The time of the next check after it was displaced.
    pub(super) again_ms: u64,
}

impl Node {
    pub(super) fn new(name: String, rng: &mut Rng, max_isolation_ms: u64) -> Self {
        Self {
            name,
            run: 0,
            rate: 0.99 + 0.02 * rng.f64(),
            up: true,
            stopped: false,
            has_disk: rng.bool(),
            cut: (false, false),
            follower: StreamFollower::new(None, max_isolation_ms),
            members: Members::default(),
            cards_seen: None,
            name_state: NameState::default(),
            subscription: 0,
            order: 0,
            last_answer: 0,
            asked_for: 0,
            cache: HashMap::new(),
            doubted_ms: 0,
            saved: None,
            numbers: 0,
            waiting: Vec::new(),
            held: Vec::new(),
        }
    }

    /// Its own clock.
    pub(super) fn clock(&self, now_ms: u64) -> u64 {
        (now_ms as f64 * self.rate) as u64 + 1_000
    }

    pub(super) fn card(&self, max_isolation_ms: u64, clock_ms: u64) -> Card {
        let displaces = self.name_state.displaces.filter(|(_, until_ms)| clock_ms < *until_ms);
        let (epoch, sequence) =
            self.follower.position().map_or((0, 0), |at| (at.epoch.0, at.sequence));
        Card {
            name: self.name.clone(),
            run: self.run,
            max_isolation_ms,
            epoch,
            sequence,
            left: self.follower.has_left(),
            displaces: displaces.map_or(0, |(run, _)| run),
            ..Card::default()
        }
    }

    pub(super) fn apply(&mut self, entry: &Entry) {
        for (key, version) in entry.invalidations.iter().map(|bytes| purged_of(bytes)) {
            if key == KEYS {
                self.cache.clear();
            } else if self.cache.get(&key).is_some_and(|stored| stored.0 < version) {
                self.cache.remove(&key);
            }
        }
    }

    /// Starts again, with or without the contents of its disk.
    pub(super) fn restart(&mut self, run: u64, max_isolation_ms: u64) {
        (self.up, self.run) = (true, run);
        self.waiting.clear();
        self.held.clear();
        (self.members, self.cards_seen) = (Members::default(), None);
        self.name_state = NameState::default();
        (self.subscription, self.last_answer, self.asked_for) = (0, 0, 0);
        if !self.has_disk {
            (self.saved, self.doubted_ms) = (None, 0);
            self.cache.clear();
        }
        self.follower = StreamFollower::new(self.saved, max_isolation_ms);
    }
}
