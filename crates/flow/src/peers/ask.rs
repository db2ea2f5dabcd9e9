//! The side of who asks: a miss whose key is another node's.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use base::{Counter, Limit, Now};
use cache::{Record, Sinks};
use message::store::strip_hop_by_hop;
use message::{Framing, HeaderId, Method, Request, Response, Upgrade, Version};
use origin::{Caller, Events, Exchange, Origin, RequestBody};

use super::Peers;
use super::field::{PEER, PeerQuestion, RECORD, read_record};
use crate::carry::{Selected, drain};
use crate::core::Core;
use crate::fetch::{Fetch, Plan};
use crate::key::select_by;
use crate::recode::Recode;

/// Fields of a request that are about what its client has, or is to get of the whole.
const CLIENTS: [HeaderId; 7] = [
    HeaderId::Range,
    HeaderId::IfRange,
    HeaderId::IfMatch,
    HeaderId::IfNoneMatch,
    HeaderId::IfModifiedSince,
    HeaderId::IfUnmodifiedSince,
    HeaderId::Expect,
];

/// A request that the owner of its key may be asked with.
pub(crate) struct Asking {
    peers: Arc<Peers>,
    owner: Arc<Origin>,
    /// As the client has made it.
    request: Request,
    /// As variants are selected by it; `None` for the same.
    selecting: Option<Request>,
    key: Box<[u8]>,
}

/// A stored response that its owner has told of.
pub(crate) struct PeerRecord {
    record: Record,
    pub(crate) exchange: Box<Exchange>,
}

impl Asking {
    /// The question behind `request`, whose key is `key`; `None` where that is this node's own, or
    /// nodes share nothing.
    pub(crate) fn of(
        core: &Core,
        request: &Request,
        selecting: Option<&Request>,
        key: &[u8],
    ) -> Option<Box<Self>> {
        let peers = core.shared.peers.load_full()?;
        let owner = Arc::clone(peers.owner(key)?.way()?);
        let (request, selecting) = (request.clone(), selecting.cloned());
        Some(Box::new(Self { peers, owner, request, selecting, key: key.into() }))
    }

    /// Asks the key's owner; `None` if the origin is to be asked.
    pub(crate) async fn ask(self: Box<Self>, fetch: &Fetch) -> Option<PeerRecord> {
        let applied = self.peers.standing.asks()?;
        let counters = &fetch.core.counters;
        counters.inc(Counter::PeersAsked);
        let (asked, client) = (fetch.now(), fetch.caller.client);
        let question = PeerQuestion { applied, client, scheme: self.request.scheme };
        let exchange = send(fetch, &self.owner, &self.question(question)).await?;
        match self.read(&exchange, asked) {
            Some(record) => {
                counters.inc(Counter::PeersFound);
                Some(PeerRecord { record, exchange })
            }
            None => {
                // It is short, and the connection serves again.
                drain(*exchange).await;
                None
            }
        }
    }

    /// The client's request as it is put to a node.
    fn question(&self, question: PeerQuestion) -> Request {
        let mut request = self.request.clone();
        strip_hop_by_hop(&mut request.headers);
        request.headers.retain(|field| !CLIENTS.contains(&field.id));
        request.headers.remove_named(PEER);
        request.headers.push_named(PEER, question.write().as_bytes());
        (request.method, request.framing) = (Method::Get, Framing::None);
        (request.version, request.upgrade) = (Version::Http11, Upgrade::None);
        request
    }

    /// The record that the owner has told, if it is what was asked for.
    fn read(&self, exchange: &Exchange, asked: Now) -> Option<Record> {
        let value = exchange.response.headers.value_named(RECORD)?;
        let record = read_record(value, asked)?;
        let selecting = self.selecting.as_ref().unwrap_or(&self.request);
        let is_it = record.key() == &*self.key
            && !record.flags().is_mark()
            && record.matches(&mut select_by(&selecting.headers));
        is_it.then_some(record)
    }
}

impl PeerRecord {
    /// The plan by which it is stored here.
    pub(crate) fn plan(&self, sinks: Sinks) -> Box<Plan> {
        Box::new(Plan {
            new: self.record.renewed(),
            selected: self.record.vary().map(Selected::again),
            recode: Recode::default(),
            gate: None,
            attached: None,
            kept: true,
            sinks,
        })
    }
}

/// Notes that the owner has begun to fetch.
struct BeginsThere<'a>(&'a Cell<bool>);

impl Events for BeginsThere<'_> {
    fn interim(&mut self, _: Response) {
        self.0.set(true);
    }
}

/// Sends `request` to a node, and returns with its answer's head; `None` if it does not come, or
/// the node does not even begin in time.
async fn send(fetch: &Fetch, way: &Arc<Origin>, request: &Request) -> Option<Box<Exchange>> {
    let core = &fetch.core;
    let begun = Cell::new(false);
    let (mut events, pool) = (BeginsThere(&begun), core.pool());
    let caller = Caller { timeouts: None, account: None, ..fetch.caller.clone() };
    let nothing = RequestBody::None;
    let sent = pool.send(way, request, nothing, fetch.key_hash, &caller, &mut events);
    let mut sent = std::pin::pin!(sent);
    let patience = Duration::from_millis(fetch.live.limits.peer_timeout);
    let sent = match rt::time::timeout(patience, &mut sent).await {
        Ok(sent) => sent,
        Err(_) if begun.get() => sent.await,
        Err(_) => {
            core.counters.limit(Limit::PeerTimeout);
            way.was_late();
            return None;
        }
    };
    sent.ok().map(Box::new)
}
