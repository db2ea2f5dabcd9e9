//! The network between nodes and the stream, and its traffic.
//!
//! A region without the stream has a leaf node: one connection to the stream's region for all its
//! nodes. A lost message is repeated a round trip later, and all behind it wait.

use fastrand::Rng;

use super::message::{ToNode, ToServer};
use super::shape::Shape;
use crate::Level;
use crate::entry::{Entry, EntryId};
use crate::members::{Card, EntryAcknowledgement};

/// One-way delays between two regions, in milliseconds.
const FAR_MS: (u64, u64) = (20, 150);

// The figures below are somewhat larger than those measured with two servers of NATS 2.9 and a leaf
// node: 330 bytes for a delivered entry (here 361), and 78.6 KB in half a minute of three idle
// nodes (here 101), with questions to an empty stream.

/// Bytes of NATS around a published message: subject, reply subject, lengths, identity.
const PUBLISHED_BYTES: u64 = 130;
/// Bytes of NATS around an acknowledgement, which has no reply.
const WORD_BYTES: u64 = 50;
/// Bytes of NATS around a delivered message: inbox, reply subject, subject.
const DELIVERED_BYTES: u64 = 190;
/// Bytes of a question's requests (the stream, and two entries of it).
const QUESTION_BYTES: u64 = 3 * 150;
/// Bytes of the answers.
const ANSWER_BYTES: u64 = 1_200 + 2 * 600;

/// The kinds of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Cards,
    Entries,
    Words,
    Questions,
}

impl Kind {
    pub(super) const ALL: [Self; 4] = [Self::Cards, Self::Entries, Self::Words, Self::Questions];
}

/// Messages and bytes of one kind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MessageVolume {
    pub(super) messages: u64,
    pub(super) bytes: u64,
}

/// The load of one message between a node and the server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    kind: Kind,
    passed: MessageVolume,
}

impl Load {
    fn new(kind: Kind, messages: u64, bytes: u64) -> Self {
        Self { kind, passed: MessageVolume { messages, bytes } }
    }
}

/// Traffic over the edge of each region, by kind, to the stream and from it.
#[derive(Clone, Debug, Default)]
pub(super) struct Traffic {
    pub(super) regions: Vec<[[MessageVolume; 2]; 4]>,
}

/// Bytes of a card, an entry and an acknowledgement as real nodes send them.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    card: u64,
    entry: u64,
    word: u64,
}

impl Sizes {
    fn real() -> Self {
        let name = "fra1-web-042".to_owned();
        let (run, many) = (u64::MAX / 3, 12_345_678);
        let card = Card {
            name: name.clone(),
            run,
            version: "1.10.0".to_owned(),
            max_isolation_ms: 30_000,
            epoch: 1_764_288_000_000_000_000,
            sequence: many,
            trusts: true,
            objects: many,
            bytes: many * 10_000,
            hits: many * 100,
            judged: many * 100,
            requests: many * 100,
            ..Card::default()
        };
        // One purge of a URL of a hundred bytes.
        let (id, invalidations) = (EntryId { run, number: many }, vec![vec![b'u'; 140]]);
        let entry = Entry { id, node: name.clone(), level: Level::All, invalidations };
        Self {
            card: card.encode().len() as u64,
            entry: entry.encode().map_or(0, |bytes| bytes.len() as u64),
            word: EntryAcknowledgement { name, run, number: many }.encode().len() as u64,
        }
    }
}

/// The network.
#[derive(Debug)]
pub(super) struct Network {
    /// One-way milliseconds from each region to the stream's.
    pub(super) far_ms: Vec<u64>,
    /// Broken links by region: to the stream, from it.
    pub(super) cut: Vec<(bool, bool)>,
    /// The arrival of the last message on each connection, because messages stay in order.
    links: Vec<[u64; 2]>,
    nodes: Vec<[u64; 2]>,
    lost_one_in: u32,
    sizes: Sizes,
}

impl Network {
    pub(super) fn new(shape: &Shape, nodes: usize, rng: &mut Rng) -> Self {
        let mut far = |region| if region == 0 { 0 } else { rng.u64(FAR_MS.0..=FAR_MS.1) };
        Self {
            far_ms: (0..shape.regions).map(&mut far).collect(),
            cut: vec![(false, false); shape.regions],
            links: vec![[0; 2]; shape.regions],
            nodes: vec![[0; 2]; nodes],
            lost_one_in: shape.lost_one_in,
            sizes: Sizes::real(),
        }
    }

    pub(super) fn region_of(&self, node: usize) -> usize {
        node % self.far_ms.len()
    }

    /// The arrival of a message that is sent now.
    pub(super) fn arrives(&mut self, node: usize, is_out: bool, now_ms: u64, rng: &mut Rng) -> u64 {
        let (region, way) = (self.region_of(node), usize::from(is_out));
        let mut at_ms = now_ms;
        if self.far_ms.len() == 1 {
            let slow = if rng.u8(..20) == 0 { 400 } else { 20 };
            at_ms += rng.u64(1..slow);
        } else {
            let far_ms = self.far_ms[region];
            if region > 0 {
                let is_lost = rng.u32(..self.lost_one_in) == 0;
                at_ms += far_ms + rng.u64(0..=far_ms / 10) + if is_lost { 2 * far_ms } else { 0 };
                let link = &mut self.links[region][way];
                *link = at_ms.max(*link);
                at_ms = *link;
            }
            // Half a millisecond on average.
            at_ms += rng.u64(0..=1);
        }
        let latest = &mut self.nodes[node][way];
        *latest = at_ms.max(*latest);
        *latest
    }

    /// The load of a message to the server.
    pub(super) fn to_server(&self, what: &ToServer) -> Load {
        match what {
            ToServer::Publish(_) => Load::new(Kind::Entries, 1, self.sizes.entry + PUBLISHED_BYTES),
            ToServer::Card(..) => Load::new(Kind::Cards, 1, self.sizes.card + PUBLISHED_BYTES),
            ToServer::Ask(..) => Load::new(Kind::Questions, 3, QUESTION_BYTES),
            ToServer::Word(_) => Load::new(Kind::Words, 1, self.sizes.word + WORD_BYTES),
            // Two consumers are created, and the stream of cards is queried.
            ToServer::Subscribe(_) => Load::new(Kind::Questions, 2, 2 * 500),
            ToServer::Check(_) | ToServer::Name => {
                Load::new(Kind::Questions, 1, QUESTION_BYTES / 3)
            }
        }
    }

    /// The load of a message to a node.
    pub(super) fn to_node(&self, what: &ToNode) -> Load {
        let card = self.sizes.card + DELIVERED_BYTES;
        match what {
            ToNode::Stored(..) => Load::new(Kind::Entries, 1, PUBLISHED_BYTES),
            ToNode::CardStored(..) | ToNode::Named(_) => Load::new(Kind::Cards, 1, PUBLISHED_BYTES),
            ToNode::Answer(..) => Load::new(Kind::Questions, 3, ANSWER_BYTES),
            ToNode::Entry { .. } => Load::new(Kind::Entries, 1, self.sizes.entry + DELIVERED_BYTES),
            ToNode::Card(..) => Load::new(Kind::Cards, 1, card),
            ToNode::Cards(_, cards) => {
                Load::new(Kind::Cards, cards.len() as u64, cards.len() as u64 * card)
            }
            ToNode::Word(..) => Load::new(Kind::Words, 1, self.sizes.word + WORD_BYTES),
            ToNode::Checked(..) => Load::new(Kind::Questions, 1, ANSWER_BYTES / 2),
        }
    }
}

impl Traffic {
    pub(super) fn new(regions: usize) -> Self {
        Self { regions: vec![Default::default(); regions] }
    }

    pub(super) fn add(&mut self, region: usize, load: Load, is_out: bool) {
        let passed = &mut self.regions[region][load.kind as usize][usize::from(!is_out)];
        passed.messages += load.passed.messages;
        passed.bytes += load.passed.bytes;
    }
}
