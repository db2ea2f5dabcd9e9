//! The simulation of a cluster in virtual time: nodes over the pure parts, a server that loses
//! acknowledged entries, links that delay, lose and break, and nodes that crash, stop, leave and
//! return with clocks of their own. A seed decides everything, and a failure names it. The claim:
//! after a purge was acknowledged with `all`, no node serves an older version; after one that the
//! stream still has, none does for longer than `max_isolation`.

mod checks;
mod clock;
mod events;
mod faults;
mod message;
mod network;
mod node;
mod regions;
mod shape;
mod simulated_cluster;
mod tally;

use std::rc::Rc;

use crate::Level;
use crate::entry::Entry;
use crate::follower::{FollowAction, StreamFacts};
use crate::members::Card;
use crate::position::{Epoch, Stamp};
use crate::settings::question_ms;
use events::{QueuedEvent, SimulationEvent};
use message::{KEYS, StoredEntry, ToNode, ToServer};
use node::{NameState, WaitingPurge};
use shape::{Bug, Shape, told};
use simulated_cluster::{Promise, SimulatedCluster};
use tally::RunFigures;

impl SimulatedCluster {
    fn run(mut self) -> Result<RunFigures, String> {
        self.run_until(self.shape.troubles_ms + self.shape.calm_ms)?;
        self.converged()?;
        Ok(self.counts)
    }

    fn run_until(&mut self, end_ms: u64) -> Result<(), String> {
        while self.queue.peek().is_some_and(|next| next.0 <= end_ms) {
            let Some(QueuedEvent(at_ms, _, what)) = self.queue.pop() else { break };
            self.now_ms = at_ms;
            self.happens(what);
            if let Some(broken) = self.broken.take() {
                return Err(broken);
            }
        }
        Ok(())
    }

    fn happens(&mut self, what: SimulationEvent) {
        match what {
            SimulationEvent::AtServer(node, what) if self.server.up => self.serve_node(node, what),
            SimulationEvent::AtServer(..) => {}
            SimulationEvent::AtNode(node, run, what) if self.nodes[node].run == run => {
                if self.nodes[node].stopped {
                    self.nodes[node].held.push(what);
                } else if self.nodes[node].up {
                    self.at_node(node, what);
                }
            }
            SimulationEvent::AtNode(..) => {}
            SimulationEvent::Tick(node, run) => self.tick(node, run),
            SimulationEvent::Apply(node, run, entry) if self.nodes[node].run == run => {
                self.nodes[node].apply(&entry);
            }
            SimulationEvent::Apply(..) => {}
            SimulationEvent::Serve => self.serve(),
            SimulationEvent::Purge => self.purge(),
            SimulationEvent::Trouble => self.trouble(),
            SimulationEvent::Heal(trouble) => self.heal(trouble),
        }
    }

    fn serve_node(&mut self, node: usize, what: ToServer) {
        match what {
            ToServer::Publish(entry) => {
                let known = self.server.log.iter().position(|own| own.entry.id == entry.id);
                let at = known.unwrap_or_else(|| {
                    let at_ns = self.stored_ns();
                    self.server.log.push(StoredEntry { entry: Rc::clone(&entry), at_ns });
                    self.server.stored.insert(entry.id);
                    self.server.log.len() - 1
                });
                let sequence = at as u64 + 1;
                if known.is_none() {
                    let subscribed: Vec<_> = self.server.subscriptions.keys().copied().collect();
                    subscribed.into_iter().for_each(|to| self.push(to, sequence));
                }
                self.answer(node, ToNode::Stored(entry.id, sequence));
            }
            ToServer::Card(card, asked_ms) => {
                self.server.cards_last += 1;
                let last = self.server.cards_last;
                self.server.cards.insert(card.name.clone(), (last, Rc::clone(&card)));
                for to in 0..self.nodes.len() {
                    self.answer(to, ToNode::Card(last, Rc::clone(&card)));
                }
                self.answer(node, ToNode::CardStored(last, asked_ms));
            }
            ToServer::Name => {
                let last = self.server.cards.get(&self.nodes[node].name);
                let last = last.map(|(_, card)| Rc::clone(card));
                self.answer(node, ToNode::Named(last));
            }
            ToServer::Ask(asked, asked_ms) => {
                let server = &self.server;
                let stamp_at = |sequence: u64| {
                    let kept = sequence >= server.first && sequence > 0;
                    let stored = server.log.get((sequence as usize).wrapping_sub(1));
                    let stored = stored.filter(|_| kept)?;
                    Some(Stamp { id: Some(stored.entry.id), stored_ns: stored.at_ns })
                };
                let last = server.log.len() as u64;
                let (epoch, first) = (Epoch(server.epoch), server.first);
                let found = asked.and_then(|asked| stamp_at(asked.sequence));
                let facts =
                    StreamFacts { epoch, first, last, last_stamp: stamp_at(last), asked, found };
                self.answer(node, ToNode::Answer(Box::new(facts), asked_ms));
            }
            ToServer::Subscribe(from) => {
                let subscription = from << 32 | self.order;
                self.nodes[node].subscription = subscription;
                self.nodes[node].order = 0;
                self.server.subscriptions.insert(node, (subscription, 0));
                let cards = self.server.cards.values().cloned().collect();
                let last = self.server.cards_last;
                self.answer(node, ToNode::Cards(last, cards));
                let first = from.max(self.server.first);
                (first..=self.server.log.len() as u64).for_each(|at| self.push(node, at));
            }
            ToServer::Word(id) => {
                let maker = self.nodes.iter().position(|own| own.run == id.run);
                let run = self.nodes[node].run;
                if let Some(maker) = maker {
                    self.answer(maker, ToNode::Word(run, id));
                }
            }
            ToServer::Check(id) => {
                self.answer(node, ToNode::Checked(id, self.server.cards_last));
            }
        }
    }

    fn push(&mut self, to: usize, sequence: u64) {
        let Some((subscription, order)) = self.server.subscriptions.get_mut(&to) else { return };
        *order += 1;
        let (subscription, order) = (*subscription, *order);
        let stored = self.server.log[sequence as usize - 1].clone();
        self.answer(to, ToNode::Entry { subscription, order, sequence, stored });
    }

    fn at_node(&mut self, at: usize, what: ToNode) {
        if self.nodes[at].follower.is_displaced() && !matches!(what, ToNode::Named(_)) {
            return;
        }
        match what {
            ToNode::Named(last) => self.named(at, last.as_deref()),
            ToNode::Stored(id, sequence) => {
                let mut check = false;
                for own in self.nodes[at].waiting.iter_mut().filter(|own| own.entry.id == id) {
                    own.stored = Some(sequence);
                    check = own.level == Level::All;
                }
                if check {
                    self.send(at, ToServer::Check(id));
                }
            }
            ToNode::CardStored(shown, asked_ms) => {
                self.nodes[at].name_state.shown.get_or_insert(shown);
                let position = self.nodes[at].follower.asks_about();
                self.send(at, ToServer::Ask(position, asked_ms));
            }
            ToNode::Answer(facts, asked_ms) => self.answered(at, &facts, asked_ms),
            ToNode::Entry { subscription, order, sequence, stored } => {
                self.entry_at(at, subscription, order, sequence, &stored);
            }
            ToNode::Card(seen, card) => {
                let node = &mut self.nodes[at];
                if node.cards_seen.is_some_and(|before| seen == before + 1) {
                    node.cards_seen = Some(seen);
                } else {
                    (node.cards_seen, node.subscription) = (None, 0);
                }
                self.card_at(at, seen, &card);
            }
            ToNode::Cards(seen, cards) => {
                self.nodes[at].cards_seen = Some(seen);
                for (sequence, card) in cards {
                    self.card_at(at, sequence, &card);
                }
            }
            ToNode::Word(run, id) => {
                for own in self.nodes[at].waiting.iter_mut().filter(|own| own.entry.id == id) {
                    own.applied.insert(run);
                }
            }
            ToNode::Checked(id, last) => {
                for own in self.nodes[at].waiting.iter_mut().filter(|own| own.entry.id == id) {
                    own.checked = Some(last);
                }
            }
        }
        self.acknowledge(at);
    }

    /// Takes a card, and checks whether another run has this node's name.
    fn card_at(&mut self, at: usize, sequence: u64, card: &Card) {
        let now_ms = self.nodes[at].clock(self.now_ms);
        let node = &mut self.nodes[at];
        let is_other = card.name == node.name && card.run != node.run;
        let is_behind = is_other && node.name_state.shown.is_some_and(|shown| sequence > shown);
        if is_behind && !card.left {
            if self.shape.bug == Some(Bug::SharesItsName) {
                return;
            }
            node.follower.displace();
            self.give_way(at);
            return;
        }
        if is_other && card.left {
            node.name_state.displaces.take_if(|(run, _)| *run == card.run);
        }
        node.members.heard(card.clone(), now_ms);
        if is_behind {
            self.show(at);
        }
    }

    /// Shows that another run has the name, and checks again later.
    fn give_way(&mut self, at: usize) {
        let wait_ms = self.shape.max_isolation_ms + self.rng.u64(..self.shape.max_isolation_ms / 4);
        let node = &mut self.nodes[at];
        let clock_ms = node.clock(self.now_ms);
        node.name_state = NameState { again_ms: clock_ms + wait_ms, ..NameState::default() };
        (node.subscription, node.cards_seen) = (0, None);
        let card = node.card(self.shape.max_isolation_ms, clock_ms);
        let card = Card { left: true, displaced: true, ..card };
        self.send(at, ToServer::Card(Rc::new(card), clock_ms));
    }

    /// Takes the answer as to which run has the name.
    fn named(&mut self, at: usize, last: Option<&Card>) {
        let node = &mut self.nodes[at];
        if node.name_state.is_known {
            return;
        }
        let clock_ms = node.clock(self.now_ms);
        let other = last.filter(|card| card.run != node.run && !card.left);
        if other.is_some() && node.follower.is_displaced() {
            return self.give_way(at);
        }
        node.follower.take_name(clock_ms);
        let displaces = other.map(|card| (card.run, clock_ms + card.patience_ms()));
        node.name_state = NameState { is_known: true, displaces, ..NameState::default() };
        self.show(at);
    }

    fn entry_at(
        &mut self,
        at: usize,
        subscription: u64,
        order: u64,
        sequence: u64,
        StoredEntry { entry, at_ns }: &StoredEntry,
    ) {
        let node = &mut self.nodes[at];
        let passes_over_gaps = self.shape.bug == Some(Bug::PassesOverGaps);
        if subscription != node.subscription && !passes_over_gaps {
            return;
        }
        if order != node.order + 1 && !passes_over_gaps {
            // As an ordered consumer does: lost messages are requested again.
            let from = node.follower.position().map_or(1, |own| own.sequence + 1);
            node.subscription = 0;
            self.send(at, ToServer::Subscribe(from));
            return;
        }
        node.order = order;
        let step = node.follower.entry(sequence, *at_ns, Ok(entry));
        if step.doubt.is_some() && !passes_over_gaps {
            node.doubted_ms = self.now_ms;
            self.counts.doubts += 1;
        }
        if step.apply {
            self.apply(at, entry);
        }
        let node = &mut self.nodes[at];
        if node.follower.wants_question(node.clock(self.now_ms)) && node.asked_for < sequence {
            node.asked_for = sequence;
            self.show(at);
        }
        if step.apply && entry.level == Level::All {
            self.send(at, ToServer::Word(entry.id));
        }
    }

    fn apply(&mut self, at: usize, entry: &Rc<Entry>) {
        if self.shape.bug == Some(Bug::SpeaksTooSoon) {
            let run = self.nodes[at].run;
            self.later(500, SimulationEvent::Apply(at, run, Rc::clone(entry)));
            return;
        }
        self.nodes[at].apply(entry);
        if let Some((made_ms, _)) = self.made.get(&entry.id) {
            let region = self.network.region_of(at);
            self.counts.in_force_ms[region].push(self.now_ms - made_ms);
        }
    }

    /// Shows a card, with the question that follows it.
    fn show(&mut self, at: usize) {
        let node = &self.nodes[at];
        let clock = node.clock(self.now_ms);
        let card = Rc::new(node.card(self.shape.max_isolation_ms, clock));
        self.send(at, ToServer::Card(card, clock));
    }

    fn answered(&mut self, at: usize, facts: &StreamFacts, asked_ms: u64) {
        let node = &mut self.nodes[at];
        let course = node.follower.answered(facts, asked_ms);
        let from = node.follower.position().map_or(1, |own| own.sequence + 1);
        let is_behind = facts.last >= from && node.last_answer >= from;
        node.last_answer = facts.last;
        if let FollowAction::Doubt(loss) = course {
            node.doubted_ms = self.now_ms;
            self.counts.doubts += 1;
            self.send(at, ToServer::Subscribe(from));
            if loss.is_for_all() {
                let entry = self.entry(at, Level::Local, (KEYS, 0));
                self.send(at, ToServer::Publish(entry));
            }
        } else if is_behind || self.nodes[at].subscription == 0 {
            self.send(at, ToServer::Subscribe(from));
        }
    }

    /// Acknowledges what may be acknowledged.
    fn acknowledge(&mut self, at: usize) {
        let (now_ms, node) = (self.now_ms, &mut self.nodes[at]);
        let clock = node.clock(now_ms);
        let (members, seen) = (&node.members, node.cards_seen);
        let (promised, quorum, counts) = (&mut self.promised, &mut self.quorum, &mut self.counts);
        node.waiting.retain(|own| match (own.level, own.stored, own.checked) {
            (Level::All, Some(_), Some(last)) => {
                let done = seen >= Some(last) && members.have_all(&own.applied, clock);
                if done {
                    counts.all += 1;
                    counts.all_ms.push(now_ms - own.sent_ms);
                    let by = own.applied.iter().copied().collect();
                    promised.push(Promise {
                        id: own.entry.id,
                        since_ms: now_ms,
                        of: own.purged,
                        by,
                    });
                }
                !done
            }
            (Level::Quorum, Some(_), _) => {
                counts.quorum += 1;
                quorum.push((own.entry.id, now_ms, own.purged));
                false
            }
            // An entry that the stream lacks waits for it.
            _ => own.stored.is_none() || now_ms < own.sent_ms + 10_000,
        });
    }

    fn tick(&mut self, at: usize, run: u64) {
        if self.nodes[at].run != run {
            return;
        }
        let members = self.nodes[at].members.count_live(self.nodes[at].clock(self.now_ms));
        let in_ms = question_ms(self.shape.max_isolation_ms, members);
        self.later(in_ms, SimulationEvent::Tick(at, run));
        if !self.nodes[at].up || self.nodes[at].stopped {
            return;
        }
        if self.shape.has_twin && !self.nodes[at].name_state.is_known {
            if self.nodes[at].clock(self.now_ms) >= self.nodes[at].name_state.again_ms {
                self.send(at, ToServer::Name);
            }
            return;
        }
        self.show(at);
        if self.rng.u8(..4) == 0 {
            self.nodes[at].saved = self.nodes[at].follower.position();
        }
        let now_ms = self.now_ms;
        let late = |own: &&WaitingPurge| own.stored.is_none() && now_ms > own.sent_ms + 500;
        let again: Vec<_> =
            self.nodes[at].waiting.iter().filter(late).map(|own| Rc::clone(&own.entry)).collect();
        again.into_iter().for_each(|entry| self.send(at, ToServer::Publish(entry)));
        let is_stored = |own: &&WaitingPurge| own.stored.is_some() && own.checked.is_none();
        let check: Vec<_> =
            self.nodes[at].waiting.iter().filter(is_stored).map(|own| own.entry.id).collect();
        check.into_iter().for_each(|id| self.send(at, ToServer::Check(id)));
        self.acknowledge(at);
    }
}

fn runs(seeds: std::ops::Range<u64>, shape: &Shape) {
    let mut sum = RunFigures::default();
    let is_one = seeds.end - seeds.start == 1;
    for seed in seeds {
        let counts =
            SimulatedCluster::new(seed, shape.clone()).run().unwrap_or_else(|why| panic!("{why}"));
        sum.served += counts.served;
        sum.from_cache += counts.from_cache;
        (sum.all, sum.quorum) = (sum.all + counts.all, sum.quorum + counts.quorum);
        sum.doubts += counts.doubts;
    }
    // A claim about nothing would hold, too.
    assert!(is_one || sum.from_cache * 4 > sum.served, "{sum:?}");
    assert!(is_one || sum.all > 10 && sum.quorum > 10 && sum.doubts > 10, "{sum:?}");
}

/// The seeds to run: a given one, or the first seeds.
fn seeds(most: u64) -> std::ops::Range<u64> {
    match told("CLUSTER_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..told("CLUSTER_RUNS").unwrap_or(most),
    }
}

#[test]
fn nothing_purged_is_served_after_it_was_acknowledged() {
    runs(seeds(60), &Shape::few());
}

#[test]
fn nothing_purged_is_served_by_either_of_two_nodes_of_one_name() {
    runs(seeds(60), &Shape::twins());
    let blind = Shape { bug: Some(Bug::SharesItsName), ..Shape::twins() };
    let found = (0..20).any(|seed| SimulatedCluster::new(seed, blind.clone()).run().is_err());
    assert!(found, "nodes that do not look for their name pass, too");
}

#[test]
fn nothing_purged_is_served_where_the_stream_often_loses_its_end() {
    runs(seeds(30), &Shape::losing());
}

/// In these two runs an entry is lost with the one before it, is sent again, and gets its old
/// sequence behind another entry. The seeds depend on every random decision, so a change of the
/// simulation needs other seeds. (Three of a thousand of the second shape have it.)
#[test]
fn an_entry_that_is_stored_again_at_its_old_place_hides_no_loss() {
    for (seed, shape) in [(1244, Shape::few()), (314, Shape::losing())] {
        SimulatedCluster::new(seed, shape.clone()).run().unwrap_or_else(|why| panic!("{why}"));
        let blind = Shape { bug: Some(Bug::KnowsNoTimes), ..shape };
        let broken = SimulatedCluster::new(seed, blind).run().err();
        assert!(broken.is_some(), "seed {seed} is not such a run any more");
    }
}
