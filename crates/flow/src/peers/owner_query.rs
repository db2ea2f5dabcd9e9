//! Owner query: asks the owner of a key for its stored response, after a miss here.

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use base::{Counter, Limit, Limits, Now};
use cache::{DemotionPolicy, Object, Record};
use message::store::{Permit, strip_hop_by_hop};
use message::{Framing, HeaderId, Method, Request, Response, Status, Upgrade, Version};
use origin::{Events, Exchange, Origin, OriginRequestContext, RequestBody};

use super::field::{PEER, PeerQuestion, RECORD, read_record};
use crate::body_transfer::{VariantSelector, discard_response};
use crate::fetch::{Fetch, InsertionPlan};
use crate::key::select_by;
use crate::recode::BodyRecoding;
use crate::state::core::CoreState;
use crate::state::peers::{FetchIdentity, OwnerRequest};
use crate::state::slices::{Edition, Extent, Probe, Shape, part_of};

/// Request fields about the client's stored response, or the part that it wants.
const CLIENTS: [HeaderId; 7] = [
    HeaderId::Range,
    HeaderId::IfRange,
    HeaderId::IfMatch,
    HeaderId::IfNoneMatch,
    HeaderId::IfModifiedSince,
    HeaderId::IfUnmodifiedSince,
    HeaderId::Expect,
];

/// A stored response that its owner has sent.
pub(crate) struct PeerRecord {
    pub(crate) record: Record,
    pub(crate) exchange: Box<Exchange>,
    /// The version, if the owner stores it in slices, in whole or in part.
    pub(crate) edition: Option<Edition>,
    /// The part that the body is, if it is not the whole.
    pub(crate) part: Option<Extent>,
}

impl OwnerRequest {
    /// Asks the key's owner; `None` if the origin must be asked.
    pub(crate) async fn ask(&self, fetch: &Fetch) -> Option<PeerRecord> {
        let limits = &fetch.live.limits;
        let probe = match self.request.headers.contains(HeaderId::Range) {
            true => Some(self.probe(limits)?),
            false => None,
        };
        let counters = &fetch.core.counters;
        let asked = fetch.now();
        let identity = FetchIdentity { key_hash: fetch.key_hash, caller: &fetch.caller };
        let ask = |request: &mut Request| {
            if let Some(probe) = &probe {
                probe.ask(request);
            }
        };
        let exchange = self.send(&fetch.core, identity, Some(Counter::PeersAsked), ask).await?;
        let Some(record) = self.read(&exchange, asked) else {
            discard_response(exchange);
            return None;
        };
        let is_part = exchange.response.status == Status::PARTIAL_CONTENT;
        let part = probe
            .filter(|_| is_part)
            .and_then(|probe| part_of(&exchange.response, exchange.framing, &probe));
        let edition = Edition::of(&exchange, limits);
        if is_part && (part.is_none() || edition.is_none()) {
            discard_response(exchange);
            return None;
        }
        counters.inc(Counter::PeersFound);
        Some(PeerRecord { record, exchange, edition, part })
    }

    /// Asks the key's owner for `range` of the version `edition`; `None` if the origin must be
    /// asked.
    pub(crate) async fn ask_for(
        &self,
        core: &CoreState,
        identity: FetchIdentity<'_>,
        range: &Range<u64>,
        edition: &Edition,
    ) -> Option<Box<Exchange>> {
        let exchange =
            self.send(core, identity, None, |request| edition.ask(range, request)).await?;
        if edition.is_part(&exchange, range) {
            return Some(exchange);
        }
        discard_response(exchange);
        None
    }

    /// The part to ask for if the client wants a part; `None` if the whole is asked for.
    fn probe(&self, limits: &Limits) -> Option<Probe> {
        // The further parts would be requested with these credentials.
        let is_named = self.request.headers.contains(HeaderId::Authorization);
        let shape = Shape::of(limits).filter(|_| !is_named)?;
        Probe::of(&self.request, shape, limits.ranges)
    }

    /// Sends the question, changed by `change`, to the key's owner; `None` without a timely
    /// response.
    async fn send(
        &self,
        core: &CoreState,
        identity: FetchIdentity<'_>,
        counted: Option<Counter>,
        change: impl FnOnce(&mut Request),
    ) -> Option<Box<Exchange>> {
        let peers = core.shared.peers.load_full()?;
        let owner = Arc::clone(peers.owner(&self.key)?.origin()?);
        let applied = peers.standing.asks()?;
        counted.inspect(|counter| core.counters.inc(*counter));
        let (client, scheme) = (identity.caller.client, self.request.scheme);
        let class = self.request.client.map(|classified| classified.class);
        let added_key = self.added_key.clone();
        let question = PeerQuestion { applied, client, scheme, class, added_key };
        let mut request = self.question(&question);
        change(&mut request);
        send(core, &owner, &request, identity).await
    }

    /// The client's request as a question to a node.
    fn question(&self, question: &PeerQuestion) -> Request {
        let mut request = self.request.clone();
        strip_hop_by_hop(&mut request.headers);
        request.headers.retain(|field| !CLIENTS.contains(&field.id));
        request.headers.remove_named(PEER);
        request.headers.push_named(PEER, question.write().as_bytes());
        (request.method, request.framing) = (Method::Get, Framing::None);
        (request.version, request.upgrade) = (Version::Http11, Upgrade::None);
        request
    }

    /// The record that the owner sent, if it fits the question.
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
    /// The plan for storing the response here, in place of `over`.
    pub(crate) fn plan(
        &self,
        permit: Permit,
        over: Option<Arc<Object>>,
        sinks: DemotionPolicy,
    ) -> Box<InsertionPlan> {
        Box::new(InsertionPlan {
            permit,
            over,
            new: self.record.renewed(),
            selector: self.record.vary().map(VariantSelector::of_stored_object),
            recode: BodyRecoding::default(),
            filter: None,
            attached: None,
            sinks,
        })
    }
}

/// Records that the owner has begun to fetch.
struct OwnerFetchFlag<'a>(&'a Cell<bool>);

impl Events for OwnerFetchFlag<'_> {
    fn interim(&mut self, _: Response) {
        self.0.set(true);
    }
}

/// Sends `request` to a node and returns the response's head; `None` if the node fails, or does not
/// even begin in time.
async fn send(
    core: &CoreState,
    origin: &Arc<Origin>,
    request: &Request,
    FetchIdentity { key_hash, caller }: FetchIdentity<'_>,
) -> Option<Box<Exchange>> {
    let begun = Cell::new(false);
    let (mut events, pool) = (OwnerFetchFlag(&begun), core.pool());
    let caller = OriginRequestContext {
        timeouts: None,
        preferred: None,
        account: None,
        owner: None,
        ..caller.clone()
    };
    let sent = pool.send(origin, request, RequestBody::None, key_hash, &caller, &mut events);
    let mut sent = std::pin::pin!(sent);
    let patience = Duration::from_millis(core.live().limits.peer_timeout);
    let sent = match rt::time::timeout(patience, &mut sent).await {
        Ok(sent) => sent,
        Err(_) if begun.get() => sent.await,
        Err(_) => {
            core.counters.limit(Limit::PeerTimeout);
            origin.was_late();
            return None;
        }
    };
    sent.ok().map(Box::new)
}
