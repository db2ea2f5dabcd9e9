//! From a stored or passing response to the reply this client gets: preconditions, ranges, HEAD,
//! and what policy changes on the way out.

use std::sync::Arc;

use cache::{Object, Reader};
use message::forwarding::add_via;
use message::{HeaderId, Response, Version};
use policy::DeliverCtx;

use super::{Switched, includes};
use crate::ask::Ask;
use crate::assemble::Dialect;
use crate::body::ReplyBody;
use crate::decide::freshness;
use crate::fetch::Passing;
use crate::reply::{Head, Reply, Served, stored_head};
use crate::select::{self, Rules, SELECTORS, Validators};

/// The reply from a stored response, complete or filling.
pub(crate) fn stored(ask: &Ask<'_>, object: &Arc<Object>, served: Served) -> Reply {
    deliver(ask, object, served, None)
}

/// The reply from a response just fetched; `reader` follows its body.
pub(crate) fn fetched(
    ask: &Ask<'_>,
    object: &Arc<Object>,
    served: Served,
    reader: Reader,
) -> Reply {
    deliver(ask, object, served, Some(reader))
}

fn deliver(ask: &Ask<'_>, object: &Arc<Object>, served: Served, reader: Option<Reader>) -> Reply {
    let freshness = freshness(object);
    let body = ReplyBody::whole(object, reader).answering(&ask.request.method, object.status());
    let mut reply = Reply::stored(object, body, served);
    reply.age_s = Some(freshness.age_ms(ask.now.mono_ms) / 1000);
    reply.ttl_s = Some(freshness.ttl_ms(ask.now.mono_ms) / 1000);
    if let Some(dialect) = includes::of_stored(object.flags()) {
        includes::stored(ask, object, dialect, &mut reply);
        return reply;
    }
    if ask.request.headers.contains_any(&SELECTORS) {
        select(ask, object, &mut reply);
    }
    if ask.site.policy.shapes_delivery(&ask.notes) {
        shape_stored(ask, object, &mut reply);
    }
    reply
}

/// Narrows the reply to what the request's conditions and ranges ask for.
fn select(ask: &Ask<'_>, object: &Arc<Object>, reply: &mut Reply) {
    let validators = Validators::of(object);
    select::condition(ask.request, &validators, reply);
    let rules = Rules::Rfc(ask.live.limits.ranges);
    let method = &ask.request.method;
    select::ranges(ask.request, method, (&validators, rules), || kind(object), reply);
}

/// The Content-Type of a stored response.
fn kind(object: &Object) -> Option<Vec<u8>> {
    stored_head(object)?.headers.value(HeaderId::ContentType).map(<[u8]>::to_vec)
}

/// Takes the stored head apart and lets policy change it for this client.
fn shape_stored(ask: &Ask<'_>, object: &Arc<Object>, reply: &mut Reply) {
    let Some(mut response) = stored_head(object) else { return };
    response.status = reply.status;
    let received = if object.flags().http10 { Version::Http10 } else { Version::Http11 };
    add_via(&mut response.headers, received, &ask.live.pseudonym);
    if let Some(kind) = reply.content_type.take() {
        response.headers.set(HeaderId::ContentType, kind.as_bytes());
    }
    shape(ask, &mut response, true);
    reply.status = response.status;
    reply.head = Head::Owned(Box::new(response));
}

/// Lets policy change a head.
pub(crate) fn shape(ask: &Ask<'_>, response: &mut Response, hit: bool) {
    let mut ctx = DeliverCtx { request: ask.request, response, hit, notes: &ask.notes };
    ask.site.policy.deliver(&mut ctx);
}

/// The reply that says that the origin has changed the protocol.
pub(crate) fn switched(ask: &Ask<'_>, switched: Switched, served: Served) -> Reply {
    let Switched { mut response, tunnel } = switched;
    if ask.site.policy.shapes_delivery(&ask.notes) {
        shape(ask, &mut response, false);
    }
    Reply::owned(response, ReplyBody::Tunnel(tunnel), served)
}

/// The reply from a response that is not stored.
pub(crate) fn passing(ask: &Ask<'_>, passing: Passing<Option<Dialect>>, served: Served) -> Reply {
    let mut response = passing.response;
    if ask.site.policy.shapes_delivery(&ask.notes) {
        shape(ask, &mut response, false);
    }
    let mut body = passing.body.answering(&ask.request.method, response.status);
    if let ReplyBody::Head(length) = &mut body {
        *length = passing.head_length;
    }
    let Some(dialect) = passing.facts else { return Reply::owned(response, body, served) };
    let mut reply = Reply::owned(Response::new(response.status), body, served);
    includes::put_together(ask, dialect, response, &mut reply);
    reply
}
