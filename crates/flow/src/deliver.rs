//! From a stored or passing response to the reply this client gets: preconditions, ranges, HEAD,
//! and what policy changes on the way out.

use std::sync::Arc;

use bytes::Bytes;
use cache::{Object, Reader};
use message::conditional::{self, Outcome};
use message::range::{self, RangePlan};
use message::{HeaderId, Method, Request, Response, Status, Version};
use policy::DeliverCtx;

use crate::ask::Ask;
use crate::decide::freshness;
use crate::declared::Switched;
use crate::fetch::{Passing, PassingBody};
use crate::forward;
use crate::multipart;
use crate::reply::{Head, Reply, ReplyBody, Served};

/// Fields that may make a reply another than the whole response.
pub(crate) const SELECTORS: [HeaderId; 3] =
    [HeaderId::IfNoneMatch, HeaderId::IfModifiedSince, HeaderId::Range];

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
    let mut reply = Reply::stored(object, whole_body(&ask.request.method, object, reader), served);
    reply.age_s = Some(freshness.age_ms(ask.now.mono_ms) / 1000);
    reply.ttl_s = Some(freshness.ttl_ms(ask.now.mono_ms) / 1000);
    if ask.request.headers.contains_any(&SELECTORS) {
        select(ask.request, ask.live.limits.ranges, object, &mut reply);
    }
    if ask.site.policy.shapes_delivery(&ask.notes) {
        shape_stored(ask, object, &mut reply);
    }
    reply
}

/// The whole body of `object`, for a request of this method.
pub(crate) fn whole_body(
    method: &Method,
    object: &Arc<Object>,
    reader: Option<Reader>,
) -> ReplyBody {
    if object.status().has_no_body() {
        ReplyBody::None
    } else if *method == Method::Head {
        ReplyBody::Head(object.length())
    } else if let Some(whole) = object.whole() {
        ReplyBody::Stored(Arc::clone(object), 0..whole.len())
    } else {
        let reader = reader.unwrap_or_else(|| object.reader());
        ReplyBody::Stream { reader, length: object.length() }
    }
}

/// Narrows the reply to what the request's conditions and ranges ask for (RFC 9110 13.2.2 and
/// 14.2).
fn select(request: &Request, ranges_max: u64, object: &Arc<Object>, reply: &mut Reply) {
    let headers = &request.headers;
    let (etag, modified, date) = (object.etag(), object.last_modified(), object.date());
    if conditional::evaluate(request, etag, modified, date, reply.status) == Outcome::NotModified {
        reply.status = Status::NOT_MODIFIED;
        reply.body = ReplyBody::None;
        return;
    }
    if request.method == Method::Get
        && reply.status == Status::OK
        && conditional::if_range_matches(headers, etag, modified, date)
    {
        narrow(request, ranges_max, object, reply);
    }
}

/// Narrows the reply with the body of `object` to what the request's Range asks for.
fn narrow(request: &Request, ranges_max: u64, object: &Arc<Object>, reply: &mut Reply) {
    let range = request.headers.value(HeaderId::Range);
    let (Some(range), Some(length)) = (range, object.length()) else { return };
    match range::plan(range, length, ranges_max as usize) {
        RangePlan::Whole => {}
        RangePlan::TooMany => reply.too_many_ranges = true,
        RangePlan::NotSatisfiable => {
            reply.status = Status::RANGE_NOT_SATISFIABLE;
            reply.content_range = Some(format!("bytes */{length}").into());
            reply.body = ReplyBody::Bytes(Bytes::new());
        }
        RangePlan::Ranges(ranges) => match ranges.as_slice() {
            [one] => {
                reply.status = Status::PARTIAL_CONTENT;
                reply.content_range =
                    Some(format!("bytes {}-{}/{length}", one.start, one.end - 1).into());
                match &mut reply.body {
                    ReplyBody::Stored(_, range) => *range = one.clone(),
                    ReplyBody::Stream { reader, length } => {
                        reader.skip(one.start);
                        *length = Some(one.end - one.start);
                    }
                    _ => {}
                }
            }
            several if object.whole().is_some() => parts(object, several, length, reply),
            _ => {}
        },
    }
}

/// Narrows the reply to several ranges.
fn parts(object: &Arc<Object>, ranges: &[std::ops::Range<u64>], length: u64, reply: &mut Reply) {
    let mut head = Response::new(reply.status);
    // What was stored was written by the same engine.
    if h1::parse_stored_head(object.head(), &mut head).is_err() {
        return;
    }
    let kind = head.headers.value(HeaderId::ContentType);
    let (pieces, kind) = multipart::pieces(ranges, kind, length);
    reply.status = Status::PARTIAL_CONTENT;
    reply.content_type = Some(kind);
    reply.body = ReplyBody::Pieces(Arc::clone(object), pieces);
}

/// Takes the stored head apart and lets policy change it for this client.
fn shape_stored(ask: &Ask<'_>, object: &Arc<Object>, reply: &mut Reply) {
    let mut response = Response::new(reply.status);
    // What was stored was written by the same engine.
    if h1::parse_stored_head(object.head(), &mut response).is_err() {
        return;
    }
    response.status = reply.status;
    let received = if object.flags().http10 { Version::Http10 } else { Version::Http11 };
    forward::add_via(&mut response.headers, received, &ask.live.pseudonym);
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
pub(crate) fn passing(ask: &Ask<'_>, passing: Passing<()>, served: Served) -> Reply {
    let mut response = passing.response;
    if ask.site.policy.shapes_delivery(&ask.notes) {
        shape(ask, &mut response, false);
    }
    let body = if response.status.has_no_body() {
        ReplyBody::None
    } else if ask.request.method == Method::Head {
        ReplyBody::Head(passing.head_length)
    } else {
        match passing.body {
            PassingBody::Bytes(bytes) => ReplyBody::Bytes(bytes),
            PassingBody::Stream { reader, length } => ReplyBody::Stream { reader, length },
        }
    };
    Reply::owned(response, body, served)
}
