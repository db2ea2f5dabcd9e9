//! Delivery under the declared policy: from a stored or passing response to the client's reply,
//! with preconditions, ranges, HEAD and the policy's changes.

use std::rc::Rc;
use std::sync::Arc;

use base::Counter;
use bytes::Bytes;
use cache::{Object, Reader};
use codec::Coding;
use codec::dictionary::vary_by_dictionary;
use message::digest::{DigestSubject, digest_of};
use message::forwarding::add_via;
use message::{HeaderId, Response, Version};

use super::substitute::UpgradedConnection;
use super::{includes, interception};
use crate::assemble::plain;
use crate::decisions::freshness;
use crate::dictionary::{self, DictionaryContext, FormRequester};
use crate::disposition::Start;
use crate::fetch::PassingResponse;
use crate::form::{self, Choice, FormSource};
use crate::problem::ErrorPage;
use crate::recode::{BodyDecoding, decode_limits};
use crate::selection::{SELECTORS, Selection, Validators};
use crate::sent_form::{SentCoding, SentForm};
use crate::shape::{ShapedResponse, is_shaped, matched, shape, shapes, unshaped};
use crate::state::assemble::Dialect;
use crate::state::body::ReplyBody;
use crate::state::core::CoreState;
use crate::state::reply::{CacheOutcome, HeadSource, Reply};
use crate::state::request_context::RequestContext;
use crate::stored_heads::stored_head;
use crate::{peers, refinement, trailers};

/// Request fields that may select something else than a whole response in its single form, or that
/// name a dictionary.
const ASKING: [HeaderId; SELECTORS.len() + 1] = {
    let mut ids = [HeaderId::AvailableDictionary; SELECTORS.len() + 1];
    let mut at = 0;
    while at < SELECTORS.len() {
        ids[at] = SELECTORS[at];
        at += 1;
    }
    ids
};

/// The reply from a stored response, complete or filling. Without a core, in a forecast, no body is
/// decoded and no form is made.
pub(crate) fn stored(
    core: Option<&Rc<CoreState>>,
    ctx: &RequestContext<'_>,
    object: &Arc<Object>,
    served: CacheOutcome,
) -> Start {
    deliver(core, ctx, object, served, None)
}

/// The reply from a response that was just fetched; `reader` reads its body.
pub(crate) fn fetched(
    core: &Rc<CoreState>,
    ctx: &RequestContext<'_>,
    object: &Arc<Object>,
    served: CacheOutcome,
    reader: Reader,
) -> Start {
    deliver(Some(core), ctx, object, served, Some(reader))
}

fn deliver(
    core: Option<&Rc<CoreState>>,
    ctx: &RequestContext<'_>,
    object: &Arc<Object>,
    served: CacheOutcome,
    reader: Option<Reader>,
) -> Start {
    if ctx.downstream.is_node() {
        return Start::Reply(peers::stored(ctx.request, object, reader, served, ctx.now));
    }
    if let Some(page) = interception::page_for(ctx, object.status())
        && let Some(reply) = intercepted(ctx, object, page, served)
    {
        return Start::Reply(reply);
    }
    let freshness = freshness(ctx.live, object, ctx.now.mono_ms);
    let body = ReplyBody::whole(object, reader).answering(&ctx.request.method, object.status());
    let mut reply = Reply::stored(object, body, served);
    reply.age_s = Some(freshness.age_ms(ctx.now.mono_ms) / 1000);
    reply.ttl_s = Some(freshness.ttl_ms(ctx.now.mono_ms) / 1000);
    let mut negotiated = object.flags().negotiated;
    if let Some(dialect) = includes::of_stored(object.flags()) {
        let Some(page) = plain(object, dialect, ctx.live) else {
            return includes::stored(ctx, object, dialect, reply);
        };
        negotiated |= page.negotiated;
    }
    if let Some(core) = core {
        dictionary::note(core, dictionary_context(ctx), object);
    }
    if negotiated {
        negotiate(core, ctx, object, &mut reply);
    } else if ctx.request.headers.contains_any(&ASKING) {
        reply.dictionary = dictionary::of_one_form(ctx.request);
        let (validators, kind) = (Validators::of(object), || kind(object));
        Selection::of(ctx).select(&validators, || false, |_| {}, kind, &mut reply);
    }
    let may_follow = ctx.downstream.page().is_none() && ctx.extra.is_none();
    if reply.status == object.status() && may_follow {
        trailers::follow(ctx.request, object, &mut reply);
    }
    if is_shaped(ctx, reply.status) {
        shape_stored(ctx, object, &mut reply);
    }
    Start::Reply(reply)
}

/// The reply with the site's page in place of a stored error.
#[cold]
fn intercepted(
    ctx: &RequestContext<'_>,
    object: &Object,
    page: &ErrorPage,
    served: CacheOutcome,
) -> Option<Reply> {
    let mut response = stored_head(object)?;
    let received = if object.flags().http10 { Version::Http10 } else { Version::Http11 };
    add_via(&mut response.headers, received, ctx.live.announce.pseudonym.as_str());
    let of = ShapedResponse::Stored(object, served);
    let mut reply = interception::reply(ctx, page, &response, served, of);
    let (freshness, now_ms) = (freshness(ctx.live, object, ctx.now.mono_ms), ctx.now.mono_ms);
    reply.age_s = Some(freshness.age_ms(now_ms) / 1000);
    reply.ttl_s = Some(freshness.ttl_ms(now_ms) / 1000);
    Some(reply)
}

/// Returns true if clients get the stored body in their preferred form.
pub(crate) fn is_negotiated(ctx: &RequestContext<'_>, object: &Object) -> bool {
    let page = includes::of_stored(object.flags());
    let page = page.and_then(|dialect| plain(object, dialect, ctx.live));
    object.flags().negotiated || page.is_some_and(|page| page.negotiated)
}

/// The request's context for dictionaries.
pub(crate) fn dictionary_context<'a>(ctx: &'a RequestContext<'_>) -> DictionaryContext<'a> {
    let request = ctx.request;
    DictionaryContext {
        live: ctx.live,
        request,
        target: &request.target,
        ctx: Some(ctx),
        now: ctx.now,
    }
}

/// Selects the client's preferred form, and of that what its conditions and ranges select.
fn negotiate(
    core: Option<&Rc<CoreState>>,
    ctx: &RequestContext<'_>,
    object: &Arc<Object>,
    reply: &mut Reply,
) {
    let mut delta = None;
    if let Some(core) = core {
        let sought =
            dictionary::seek(FormRequester::Request(core), dictionary_context(ctx), object);
        (reply.dictionary, delta) = (sought.used, sought.form);
    }
    let is_delta = delta.is_some();
    let (Choice { coding, from, wanted, lacks_gzip }, delta) = chosen(ctx, object, delta);
    let is_other = !is_delta && coding != object.flags().coding;
    let selects = ctx.request.headers.contains_any(&SELECTORS);
    let sent = delta.or_else(|| (selects && is_other).then(|| form::sent(object, coding)));
    if coding == Coding::Identity && !lacks_gzip && !is_delta && core.is_some() {
        object.note_plain_asked();
    }
    let give_form = |body: &mut ReplyBody| match (from, core) {
        (FormSource::Beside(bytes), _) => {
            let counter = if is_delta { Counter::DeltasSent } else { Counter::FormsSent };
            let spared = object.length().unwrap_or(0).saturating_sub(bytes.len() as u64);
            form::put_beside(bytes, body);
            if let Some(core) = core {
                core.counters.inc(counter);
                core.counters.add(Counter::FormsSpared, spared);
            }
        }
        (FormSource::Decoded, Some(core)) => {
            let decoding = BodyDecoding {
                coding: object.flags().coding,
                limits: decode_limits(&ctx.live.limits),
                account: ctx.connection.account,
                counters: &core.counters,
            };
            decoding.decode_body(body, form::plain_length(object));
        }
        (FormSource::Stored | FormSource::Decoded, _) => {}
    };
    let mut had = None;
    if selects {
        let validators = Validators::of(object);
        let validators = match &sent {
            Some(form) => Validators { etag: form.tag.as_deref(), ..validators },
            None => validators,
        };
        // A client that has another acceptable form gets a 304 for that one.
        let is_had = || {
            had = form::form_of_client(object, ctx.request);
            had.is_some()
        };
        Selection::of(ctx).select(&validators, is_had, give_form, || kind(object), reply);
    } else {
        give_form(&mut reply.body);
    }
    let sent = had.or(sent);
    give((is_other && !selects).then_some(coding), sent, reply);
    reply.by_dictionary = dictionary::may_use_dictionary(ctx.request, object);
    let made = wanted.unwrap_or(coding);
    if let Some(core) = core.filter(|_| !is_delta && made != object.flags().coding) {
        refinement::demand(core, ctx, object, made, lacks_gzip);
    }
}

/// The client's form; `delta` if there is one, which is returned beside it.
fn chosen(
    ctx: &RequestContext<'_>,
    object: &Object,
    delta: Option<Box<(Bytes, SentForm)>>,
) -> (Choice, Option<SentForm>) {
    if let Some(delta) = delta {
        let (bytes, sent) = *delta;
        let from = FormSource::Beside(bytes);
        let coding = Coding::Identity;
        return (Choice { coding, from, wanted: None, lacks_gzip: false }, Some(sent));
    }
    (form::choose(object, ctx.request, &ctx.live.compression), None)
}

/// Sets the form that is sent. Its tag is computed when it is written, unless it is needed earlier.
fn give(plain: Option<Coding>, sent: Option<SentForm>, reply: &mut Reply) {
    reply.form = plain;
    match sent {
        None => {}
        Some(SentForm { coding: SentCoding::Plain(coding), .. }) => reply.form = Some(coding),
        Some(delta) => reply.change().delta = Some(delta),
    }
}

/// The Content-Type of a stored response.
fn kind(object: &Object) -> Option<Vec<u8>> {
    stored_head(object)?.headers.value(HeaderId::ContentType).map(<[u8]>::to_vec)
}

/// Parses the stored head and lets the policy change it for this client.
fn shape_stored(ctx: &RequestContext<'_>, object: &Arc<Object>, reply: &mut Reply) {
    let Some(mut response) = stored_head(object) else { return };
    let matched = matched(ctx, &response);
    response.status = reply.status;
    let received = if object.flags().http10 { Version::Http10 } else { Version::Http11 };
    add_via(&mut response.headers, received, ctx.live.announce.pseudonym.as_str());
    if let Some(changed) = &mut reply.changed {
        if let Some(kind) = changed.content_type.take() {
            response.headers.set(HeaderId::ContentType, kind.as_bytes());
        }
        if changed.content_range.is_some() {
            // These digests are of the whole content.
            let is_of_content = |name: &[u8]| digest_of(name) == Some(DigestSubject::Content);
            response.headers.retain(|field| !is_of_content(field.name));
        }
        if let Some(delta) = changed.delta.take() {
            form::give(&mut response.headers, delta.coding, delta.tag.as_deref());
        }
    }
    if let Some(coding) = reply.form.take() {
        let tag = form::tag(object, coding);
        form::give(&mut response.headers, SentCoding::Plain(coding), tag.as_deref());
    }
    if std::mem::take(&mut reply.by_dictionary) {
        vary_by_dictionary(&mut response.headers);
    }
    if !shape(ctx, &mut response, ShapedResponse::Stored(object, reply.served), &matched) {
        *reply = unshaped(ctx);
        return;
    }
    reply.status = response.status;
    reply.head = HeadSource::Owned(Box::new(response));
}

/// The reply for a changed protocol.
pub(crate) fn switched(
    ctx: &RequestContext<'_>,
    switched: UpgradedConnection,
    served: CacheOutcome,
) -> Reply {
    let UpgradedConnection { mut response, tunnel } = switched;
    // As in Varnish no subroutine sees the head of a tunnel.
    let ctx = &RequestContext { extra: None, ..*ctx };
    if shapes(ctx) {
        let matched = matched(ctx, &response);
        _ = shape(ctx, &mut response, ShapedResponse::Passing, &matched);
    }
    Reply::owned(response, ReplyBody::Tunnel(tunnel), served)
}

/// The reply from a response that is not stored.
pub(crate) fn passing(
    ctx: &RequestContext<'_>,
    passing: PassingResponse<Option<Dialect>>,
    served: CacheOutcome,
) -> Start {
    if let Some(page) = interception::page_for(ctx, passing.response.status) {
        let reply =
            interception::reply(ctx, page, &passing.response, served, ShapedResponse::Passing);
        return Start::Reply(reply);
    }
    let mut response = passing.response;
    if is_shaped(ctx, response.status) {
        let matched = matched(ctx, &response);
        if !shape(ctx, &mut response, ShapedResponse::Passing, &matched) {
            return Start::Reply(unshaped(ctx));
        }
    }
    let mut body = passing.body.answering(&ctx.request.method, response.status);
    if let ReplyBody::Head(length) = &mut body {
        *length = passing.head_length;
    }
    let Some(dialect) = passing.facts else {
        return Start::Reply(Reply::owned(response, body, served));
    };
    let reply = Reply::owned(Response::new(response.status), body, served);
    includes::put_together(ctx, dialect, response, reply, false)
}
