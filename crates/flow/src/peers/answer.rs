//! Answer of an owner to another node: a stored response, or none.

use std::rc::Rc;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use base::Now;
use bytes::Bytes;
use cache::{Object, Reader};
use message::{ClassifiedClient, ClientProof, HeaderId, Method, Request, Response, Status};
use policy::ConnectionPeer;

use super::field::{PEER, RECORD, read_question, write_record};
use crate::state::body::ReplyBody;
use crate::state::client::Client;
use crate::state::peers::Peers;
use crate::state::reply::{CacheOutcome, PeerAnswer, Reply};
use crate::state::request_context::RequestContext;
use crate::state::slices::persistence;

/// The reason for which a node gets no response.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PeerRefusal {
    /// The node is unknown, or its request is invalid.
    Strange,
    /// The node has applied more invalidations than this one, or this one does not trust its store.
    Behind,
    /// There is no response that may be shared.
    Nothing,
}

/// A node's request without its question.
pub(crate) struct NodeRequest<'a> {
    pub(crate) client: Client<'a>,
    /// The fields that the VCL beside the site's settings has added to the key there, if it has
    /// received the request.
    pub(crate) added_key: Option<Rc<[u8]>>,
}

/// Returns true if another node may get the response to `ctx`.
pub(crate) fn may_have(ctx: &RequestContext<'_>) -> bool {
    !ctx.downstream.is_node() && !ctx.notes.personal
}

/// Removes a node's question from its request. Its client, with its class, and its
/// scheme replace those of the connection. `None` if the connection is no node's.
///
/// # Errors
/// The answer, if it is known already.
#[cold]
pub(crate) fn begin<'a>(
    peers: &ArcSwapOption<Peers>,
    request: &mut Request,
    client: &Client<'a>,
) -> Option<Result<NodeRequest<'a>, Reply>> {
    let peers = peers.load();
    let (peers, secured) = (peers.as_ref()?, client.secured?);
    if secured.auth() != Some(&peers.auth) {
        return None;
    }
    let identity = secured.identity();
    let is_node = identity.is_some_and(|shown| peers.roster.name_of(shown.der()).is_some());
    let value = request.headers.value_named(PEER);
    let question = value.filter(|_| is_node && request.method == Method::Get);
    let Some(question) = question.and_then(read_question) else {
        return Some(Err(silent(PeerRefusal::Strange)));
    };
    if !peers.standing.has_applied(question.applied) {
        return Some(Err(silent(PeerRefusal::Behind)));
    }
    request.headers.remove_named(PEER);
    request.scheme = question.scheme;
    let proof = ClientProof::Claimed;
    request.client = question.class.map(|class| ClassifiedClient { class, proof, number: None });
    let peer = question.client.map_or(ConnectionPeer::Unnamed(None), ConnectionPeer::Host);
    let account = client.account;
    let client = Client { peer, near: false, secured: None, vcl_connection: None, account };
    Some(Ok(NodeRequest { client, added_key: question.added_key.map(Into::into) }))
}

/// The answer to a node: `object` before any change for a client, or the requested part of a sliced
/// one.
pub(crate) fn stored(
    request: &Request,
    object: &Arc<Object>,
    reader: Option<Reader>,
    served: CacheOutcome,
    now: Now,
) -> Reply {
    let is_meant = served != CacheOutcome::StaleOnError
        && !object.flags().is_mark()
        && object.trailers().is_none_or(|trailers| trailers.is_empty());
    let Some(record) = is_meant.then(|| write_record(object, now)).flatten() else {
        return silent(PeerRefusal::Nothing);
    };
    let is_stored = matches!(served, CacheOutcome::Hit | CacheOutcome::Stale);
    let answer = if is_stored { PeerAnswer::Stored } else { PeerAnswer::Fetched };
    let mut response = Response::new(Status::OK);
    response.headers.push_named(RECORD, record.as_bytes());
    let mut body = ReplyBody::whole(object, reader);
    if let Some(set) = persistence::of_object(object) {
        match set.show(request, now, &mut response) {
            Some(range) => body.narrow(&range),
            None => return silent(PeerRefusal::Nothing),
        }
    }
    Reply::owned(response, body, CacheOutcome::Peer(answer))
}

/// `reply` if it is for a node; otherwise an answer without a response.
pub(crate) fn for_node_only(reply: Reply) -> Reply {
    if matches!(reply.served, CacheOutcome::Peer(_)) { reply } else { silent(PeerRefusal::Nothing) }
}

/// The answer without a response.
pub(crate) fn silent(refusal: PeerRefusal) -> Reply {
    let (code, word): (_, &[u8]) = match refusal {
        PeerRefusal::Strange => (403, b"strange"),
        PeerRefusal::Behind => (503, b"behind"),
        PeerRefusal::Nothing => (404, b"nothing"),
    };
    let mut response = Response::new(Status::new(code).unwrap_or(Status::OK));
    response.headers.push_named(PEER, word);
    response.headers.push(HeaderId::CacheControl, b"no-store");
    Reply::owned(response, Bytes::new().into(), CacheOutcome::Peer(PeerAnswer::Nothing))
}
