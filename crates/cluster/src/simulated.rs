//! A cluster in virtual time: nodes over the pure parts, a server that loses what it acknowledged,
//! links that delay, lose and are cut in one direction or both, nodes that crash, stop, leave and
//! come back, and have clocks of their own speed. A seed decides all of it, and a run that fails
//! names its seed.
//!
//! The claim: after a purge was acknowledged with `all` no node serves what it was for; after one
//! that the stream still has, none does for longer than `max_isolation`.

mod checks;
mod clock;
mod network;
mod regions;
mod shape;
mod troubles;

use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};
use std::rc::Rc;

use fastrand::Rng;

use crate::Level;
use crate::entry::{Entry, EntryId};
use crate::follower::{Course, Facts, Follower};
use crate::members::{Applied, Card, Members};
use crate::position::{Epoch, Position, Stamp};
use crate::settings::question_ms;
use checks::{purge_bytes, purged_of};
use clock::Clock;
use network::{Network, Traffic};
use shape::{Bug, Shape};
use troubles::Trouble;

const KEYS: usize = 4;

/// A purge: the key, and the version that the origin has had since.
type Purged = (usize, u64);

#[derive(Clone, Debug)]
enum ToServer {
    Publish(Rc<Entry>),
    Card(Rc<Card>, u64),
    Ask(Option<Position>, u64),
    Subscribe(u64),
    Word(EntryId),
    Check(EntryId),
    /// Asks which run of the node's name was shown last.
    Name,
}

#[derive(Clone, Debug)]
enum ToNode {
    Stored(EntryId, u64),
    CardStored(u64, u64),
    Answer(Box<Facts>, u64),
    Entry {
        subscription: u64,
        order: u64,
        sequence: u64,
        stored: Stored,
    },
    Card(u64, Rc<Card>),
    /// All cards up to this one, as they are at the beginning of a subscription.
    Cards(u64, Vec<(u64, Rc<Card>)>),
    Named(Option<Rc<Card>>),
    Word(u64, EntryId),
    Checked(EntryId, u64),
}

#[derive(Debug)]
enum Happening {
    AtServer(usize, ToServer),
    AtNode(usize, u64, ToNode),
    Tick(usize, u64),
    /// An entry that a node with a bug applies later than it says.
    Apply(usize, u64, Rc<Entry>),
    Serve,
    Purge,
    Trouble,
    Heal(Trouble),
}

/// An entry as the stream has it, and when it was stored.
#[derive(Clone, Debug)]
struct Stored {
    entry: Rc<Entry>,
    at_ns: u64,
}

#[derive(Debug)]
struct Server {
    up: bool,
    epoch: u64,
    first: u64,
    log: Vec<Stored>,
    clock: Clock,
    /// The last of each name.
    cards: BTreeMap<String, (u64, Rc<Card>)>,
    cards_last: u64,
    /// Entries that it acknowledged, and does not have any more.
    lost: BTreeSet<EntryId>,
    /// All that it ever acknowledged.
    stored: BTreeSet<EntryId>,
    /// By node: the subscription, and its last order number.
    subscriptions: BTreeMap<usize, (u64, u64)>,
}

#[derive(Debug)]
struct Waiting {
    level: Level,
    purged: Purged,
    sent_ms: u64,
    entry: Rc<Entry>,
    stored: Option<u64>,
    checked: Option<u64>,
    applied: Applied,
}

/// A purge that was acknowledged with `all`.
#[derive(Debug)]
struct Promise {
    id: EntryId,
    since_ms: u64,
    of: Purged,
    /// Runs that said they have applied it.
    by: Vec<u64>,
}

#[derive(Debug)]
struct Node {
    name: String,
    run: u64,
    rate: f64,
    up: bool,
    stopped: bool,
    has_disk: bool,
    cut: (bool, bool),
    follower: Follower,
    members: Members,
    /// All cards up to this one are known.
    cards_seen: Option<u64>,
    name_state: NameState,
    subscription: u64,
    order: u64,
    last_answer: u64,
    asked_for: u64,
    cache: HashMap<usize, (u64, u64)>,
    doubted_ms: u64,
    saved: Option<Position>,
    numbers: u64,
    waiting: Vec<Waiting>,
    held: Vec<ToNode>,
}

struct World {
    seed: u64,
    rng: Rng,
    now_ms: u64,
    order: u64,
    shape: Shape,
    queue: BinaryHeap<Queued>,
    network: Network,
    server: Server,
    nodes: Vec<Node>,
    truth: [u64; KEYS],
    /// Since this moment no node may serve an older version.
    promised: Vec<Promise>,
    /// Purges with `quorum`, which the stream may lose again.
    quorum: Vec<(EntryId, u64, Purged)>,
    /// All purges, and when each was made.
    made: BTreeMap<EntryId, (u64, Purged)>,
    counts: Tally,
    /// The first thing that was not as claimed.
    broken: Option<String>,
}

#[derive(Debug, Default)]
struct Tally {
    served: u64,
    from_cache: u64,
    all: u64,
    quorum: u64,
    doubts: u64,
    made: u64,
    /// By region: milliseconds from a purge until a node of it had applied it.
    in_force_ms: Vec<Vec<u64>>,
    /// Milliseconds until a purge with `all` was acknowledged.
    all_ms: Vec<u64>,
    traffic: Traffic,
}

#[derive(Debug)]
struct Queued(u64, u64, Happening);

impl PartialEq for Queued {
    fn eq(&self, other: &Self) -> bool {
        (self.0, self.1) == (other.0, other.1)
    }
}
impl Eq for Queued {}
impl PartialOrd for Queued {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Queued {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (other.0, other.1).cmp(&(self.0, self.1))
    }
}

/// A node's knowledge of who else has its name.
#[derive(Debug, Default)]
struct NameState {
    /// It has looked who has its name, in this session.
    is_known: bool,
    /// Its first card in this session.
    shown: Option<u64>,
    /// Another run of its name, and until when that may be live.
    displaces: Option<(u64, u64)>,
    /// It was displaced, and looks again then.
    again_ms: u64,
}

impl Node {
    fn new(name: String, rng: &mut Rng, max_isolation_ms: u64) -> Self {
        Self {
            name,
            run: 0,
            rate: 0.99 + 0.02 * rng.f64(),
            up: true,
            stopped: false,
            has_disk: rng.bool(),
            cut: (false, false),
            follower: Follower::new(None, max_isolation_ms),
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
    fn clock(&self, now_ms: u64) -> u64 {
        (now_ms as f64 * self.rate) as u64 + 1_000
    }

    fn card(&self, max_isolation_ms: u64, clock_ms: u64) -> Card {
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

    fn apply(&mut self, entry: &Entry) {
        for (key, version) in entry.invalidations.iter().map(|bytes| purged_of(bytes)) {
            if key == KEYS {
                self.cache.clear();
            } else if self.cache.get(&key).is_some_and(|stored| stored.0 < version) {
                self.cache.remove(&key);
            }
        }
    }

    /// The first thing after a start, with or without what is on the disk.
    fn restart(&mut self, run: u64, max_isolation_ms: u64) {
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
        self.follower = Follower::new(self.saved, max_isolation_ms);
    }
}

impl World {
    fn new(seed: u64, shape: Shape) -> Self {
        let mut rng = Rng::with_seed(seed);
        let server = Server {
            up: true,
            epoch: 1,
            first: 1,
            log: Vec::new(),
            clock: Clock::new(seed),
            cards: BTreeMap::new(),
            cards_last: 0,
            lost: BTreeSet::new(),
            stored: BTreeSet::new(),
            subscriptions: BTreeMap::new(),
        };
        let max_isolation_ms = shape.max_isolation_ms;
        let count = rng.usize(shape.nodes.clone()) as u64;
        let mut nodes: Vec<_> = (0..count)
            .map(|at| Node { run: at, ..Node::new(format!("n{at}"), &mut rng, max_isolation_ms) })
            .collect();
        if shape.has_twin {
            // A copy of the first node's machine, which is started later.
            let twin = Node {
                run: count,
                up: false,
                ..Node::new("n0".to_owned(), &mut rng, max_isolation_ms)
            };
            nodes.push(twin);
        }
        let network = Network::new(&shape, nodes.len(), &mut rng);
        let counts = Tally::new(shape.regions);
        let mut world = Self {
            seed,
            rng,
            now_ms: 0,
            order: 0,
            queue: BinaryHeap::new(),
            shape,
            network,
            server,
            nodes,
            truth: [1; KEYS],
            promised: Vec::new(),
            quorum: Vec::new(),
            made: BTreeMap::new(),
            counts,
            broken: None,
        };
        for node in 0..world.nodes.len() {
            let run = world.nodes[node].run;
            let in_ms = world.rng.u64(0..world.shape.first_ms);
            world.later(in_ms, Happening::Tick(node, run));
        }
        for first in [Happening::Serve, Happening::Purge, Happening::Trouble] {
            world.later(100, first);
        }
        world
    }

    fn later(&mut self, in_ms: u64, what: Happening) {
        self.order += 1;
        self.queue.push(Queued(self.now_ms + in_ms, self.order, what));
    }

    fn run(mut self) -> Result<Tally, String> {
        self.run_until(self.shape.troubles_ms + self.shape.calm_ms)?;
        self.converged()?;
        Ok(self.counts)
    }

    fn run_until(&mut self, end_ms: u64) -> Result<(), String> {
        while self.queue.peek().is_some_and(|next| next.0 <= end_ms) {
            let Some(Queued(at_ms, _, what)) = self.queue.pop() else { break };
            self.now_ms = at_ms;
            self.happens(what);
            if let Some(broken) = self.broken.take() {
                return Err(broken);
            }
        }
        Ok(())
    }

    fn happens(&mut self, what: Happening) {
        match what {
            Happening::AtServer(node, what) if self.server.up => self.serve_node(node, what),
            Happening::AtServer(..) => {}
            Happening::AtNode(node, run, what) if self.nodes[node].run == run => {
                if self.nodes[node].stopped {
                    self.nodes[node].held.push(what);
                } else if self.nodes[node].up {
                    self.at_node(node, what);
                }
            }
            Happening::AtNode(..) => {}
            Happening::Tick(node, run) => self.tick(node, run),
            Happening::Apply(node, run, entry) if self.nodes[node].run == run => {
                self.nodes[node].apply(&entry);
            }
            Happening::Apply(..) => {}
            Happening::Serve => self.serve(),
            Happening::Purge => self.purge(),
            Happening::Trouble => self.trouble(),
            Happening::Heal(trouble) => self.heal(trouble),
        }
    }

    fn serve_node(&mut self, node: usize, what: ToServer) {
        match what {
            ToServer::Publish(entry) => {
                let known = self.server.log.iter().position(|own| own.entry.id == entry.id);
                let at = known.unwrap_or_else(|| {
                    let at_ns = self.stored_ns();
                    self.server.log.push(Stored { entry: Rc::clone(&entry), at_ns });
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
                let facts = Facts { epoch, first, last, last_stamp: stamp_at(last), asked, found };
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
                self.entry_at(at, (subscription, order), sequence, &stored);
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

    /// A card, and whether another run has this node's name.
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

    /// Tells the others that another run has the name, and looks again after a while.
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

    /// Takes the answer to the question who has the name.
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
        (subscription, order): (u64, u64),
        sequence: u64,
        Stored { entry, at_ns }: &Stored,
    ) {
        let node = &mut self.nodes[at];
        let passes_over_gaps = self.shape.bug == Some(Bug::PassesOverGaps);
        if subscription != node.subscription && !passes_over_gaps {
            return;
        }
        if order != node.order + 1 && !passes_over_gaps {
            // As an ordered consumer does: what was lost on the way is asked for again.
            let from = node.follower.position().map_or(1, |own| own.sequence + 1);
            node.subscription = 0;
            self.send(at, ToServer::Subscribe(from));
            return;
        }
        node.order = order;
        let step = node.follower.entry((sequence, *at_ns), Ok(entry));
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
            self.later(500, Happening::Apply(at, run, Rc::clone(entry)));
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

    fn answered(&mut self, at: usize, facts: &Facts, asked_ms: u64) {
        let node = &mut self.nodes[at];
        let course = node.follower.answered(facts, asked_ms);
        let from = node.follower.position().map_or(1, |own| own.sequence + 1);
        let is_behind = facts.last >= from && node.last_answer >= from;
        node.last_answer = facts.last;
        if let Course::Doubt(loss) = course {
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

    fn entry(&mut self, at: usize, level: Level, purged: Purged) -> Rc<Entry> {
        let node = &mut self.nodes[at];
        node.numbers += 1;
        let id = EntryId { run: node.run, number: node.numbers };
        let invalidations = vec![purge_bytes(purged)];
        Rc::new(Entry { id, node: node.name.clone(), level, invalidations })
    }

    /// Acknowledges what may be.
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
            // What the stream does not have waits for it.
            _ => own.stored.is_none() || now_ms < own.sent_ms + 10_000,
        });
    }

    fn tick(&mut self, at: usize, run: u64) {
        if self.nodes[at].run != run {
            return;
        }
        let members = self.nodes[at].members.count_live(self.nodes[at].clock(self.now_ms));
        let in_ms = question_ms(self.shape.max_isolation_ms, members);
        self.later(in_ms, Happening::Tick(at, run));
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
        let late = |own: &&Waiting| own.stored.is_none() && now_ms > own.sent_ms + 500;
        let again: Vec<_> =
            self.nodes[at].waiting.iter().filter(late).map(|own| Rc::clone(&own.entry)).collect();
        again.into_iter().for_each(|entry| self.send(at, ToServer::Publish(entry)));
        let is_stored = |own: &&Waiting| own.stored.is_some() && own.checked.is_none();
        let check: Vec<_> =
            self.nodes[at].waiting.iter().filter(is_stored).map(|own| own.entry.id).collect();
        check.into_iter().for_each(|id| self.send(at, ToServer::Check(id)));
        self.acknowledge(at);
    }
}

fn runs(seeds: std::ops::Range<u64>, shape: &Shape) {
    let mut sum = Tally::default();
    let is_one = seeds.end - seeds.start == 1;
    for seed in seeds {
        let counts = World::new(seed, shape.clone()).run().unwrap_or_else(|why| panic!("{why}"));
        sum.served += counts.served;
        sum.from_cache += counts.from_cache;
        (sum.all, sum.quorum) = (sum.all + counts.all, sum.quorum + counts.quorum);
        sum.doubts += counts.doubts;
    }
    // A claim about nothing would hold, too.
    assert!(is_one || sum.from_cache * 4 > sum.served, "{sum:?}");
    assert!(is_one || sum.all > 10 && sum.quorum > 10 && sum.doubts > 10, "{sum:?}");
}

/// A number that the environment says.
fn told(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|number| number.parse().ok())
}

/// The seeds to run: one that is told, or the first of them.
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
    let found = (0..20).any(|seed| World::new(seed, blind.clone()).run().is_err());
    assert!(found, "nodes that do not look for their name pass, too");
}

#[test]
fn nothing_purged_is_served_where_the_stream_often_loses_its_end() {
    runs(seeds(30), &Shape::losing());
}

/// In these two runs an entry is lost with the one before it, is sent again, and gets its old
/// sequence behind another entry. Where that happens differs with all that chance decides: whoever
/// changes the simulation looks for other seeds. (Three of a thousand of the second shape have it.)
#[test]
fn an_entry_that_is_stored_again_at_its_old_place_hides_no_loss() {
    for (seed, shape) in [(1244, Shape::few()), (314, Shape::losing())] {
        World::new(seed, shape.clone()).run().unwrap_or_else(|why| panic!("{why}"));
        let blind = Shape { bug: Some(Bug::KnowsNoTimes), ..shape };
        let broken = World::new(seed, blind).run().err();
        assert!(broken.is_some(), "seed {seed} is not such a run any more");
    }
}
