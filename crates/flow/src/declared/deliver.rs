//! From a stored or passing response to the reply this client gets: preconditions, ranges, HEAD,
//! and what policy changes on the way out.

use std::rc::Rc;
use std::sync::Arc;

use base::Counter;
use cache::{Object, Reader};
use codec::Coding;
use message::digest::{DigestOf, digest_of};
use message::forwarding::add_via;
use message::{HeaderId, Response, Status, Version};
use policy::DeliverCtx;

use super::{Switched, includes};
use crate::ask::Ask;
use crate::assemble::Dialect;
use crate::assemble::is_plain;
use crate::body::ReplyBody;
use crate::core::Core;
use crate::decide::freshness;
use crate::fetch::Passing;
use crate::form::{self, Choice, Given};
use crate::recode::{Unfolding, decode_limits};
use crate::refine;
use crate::reply::{Head, Reply, Served, stored_head};
use crate::select::{self, Rules, SELECTORS, Validators};

/// The reply from a stored response, complete or filling. Without a core, as for a forecast, no
/// body is decoded and no form made.
pub(crate) fn stored(
    core: Option<&Rc<Core>>,
    ask: &Ask<'_>,
    object: &Arc<Object>,
    served: Served,
) -> Reply {
    deliver(core, ask, object, served, None)
}

/// The reply from a response just fetched; `reader` follows its body.
pub(crate) fn fetched(
    core: &Rc<Core>,
    ask: &Ask<'_>,
    object: &Arc<Object>,
    served: Served,
    reader: Reader,
) -> Reply {
    deliver(Some(core), ask, object, served, Some(reader))
}

fn deliver(
    core: Option<&Rc<Core>>,
    ask: &Ask<'_>,
    object: &Arc<Object>,
    served: Served,
    reader: Option<Reader>,
) -> Reply {
    let freshness = freshness(object);
    let body = ReplyBody::whole(object, reader).answering(&ask.request.method, object.status());
    let mut reply = Reply::stored(object, body, served);
    reply.age_s = Some(freshness.age_ms(ask.now.mono_ms) / 1000);
    reply.ttl_s = Some(freshness.ttl_ms(ask.now.mono_ms) / 1000);
    if let Some(dialect) = includes::of_stored(object.flags())
        && !is_plain(object, dialect, ask.live)
    {
        includes::stored(ask, object, dialect, &mut reply);
        return reply;
    }
    if object.flags().negotiated {
        negotiate(core, ask, object, &mut reply);
    } else if ask.request.headers.contains_any(&SELECTORS) {
        let validators = Validators::of(object);
        select::condition(ask.request, &validators, &mut reply);
        cut(ask, object, &validators, &mut reply);
    }
    if ask.site.policy.shapes_delivery(&ask.notes) {
        shape_stored(ask, object, &mut reply);
    }
    reply
}

/// Gives the client the form that it likes best, and of that what its conditions and ranges ask
/// for.
fn negotiate(core: Option<&Rc<Core>>, ask: &Ask<'_>, object: &Arc<Object>, reply: &mut Reply) {
    let Choice { coding, from, wanted } = form::choose(object, ask.request, &ask.live.compression);
    let mut sent = (coding != object.flags().coding).then_some(coding);
    let selects = ask.request.headers.contains_any(&SELECTORS);
    if selects {
        condition(ask, object, sent, reply);
        // The client may have another form that it takes: then that one is what it is told of.
        if reply.status != Status::NOT_MODIFIED
            && let Some(had) = form::had(object, ask.request)
        {
            condition(ask, object, Some(had), reply);
            sent = Some(had);
        }
    }
    let whole = reply.status == object.status();
    match (from, core) {
        (Given::Beside(bytes), _) if whole => {
            form::put_beside(bytes, &mut reply.body);
            core.inspect(|core| core.counters.inc(Counter::FormsSent));
        }
        (Given::Decoded, Some(core)) if whole => {
            let unfolding = Unfolding {
                coding: object.flags().coding,
                limits: decode_limits(&ask.live.limits),
                passage: ask.front.passage(&ask.live.limits),
                counters: Arc::clone(&core.counters),
            };
            unfolding.unfold_body(&mut reply.body, form::plain_length(object));
        }
        _ => {}
    }
    if selects {
        let tag = sent.and_then(|coding| form::tag(object, coding));
        cut(ask, object, &of_form(object, sent, tag.as_deref()), reply);
    }
    reply.form = sent;
    let made = wanted.unwrap_or(coding);
    if let Some(core) = core
        && made != object.flags().coding
    {
        refine::demand(core, (ask.live, ask.now.mono_ms), object, made);
    }
}

/// Holds what the request says against a form.
fn condition(ask: &Ask<'_>, object: &Object, sent: Option<Coding>, reply: &mut Reply) {
    let tag = sent.and_then(|coding| form::tag(object, coding));
    select::condition(ask.request, &of_form(object, sent, tag.as_deref()), reply);
}

/// The validators of a form that has this tag; of the stored one if it is `None`.
fn of_form<'a>(object: &'a Object, sent: Option<Coding>, tag: Option<&'a [u8]>) -> Validators<'a> {
    let validators = Validators::of(object);
    if sent.is_some() { Validators { etag: tag, ..validators } } else { validators }
}

/// Cuts the reply to the ranges that the request asks for.
fn cut(ask: &Ask<'_>, object: &Arc<Object>, validators: &Validators<'_>, reply: &mut Reply) {
    let rules = Rules::Rfc(ask.live.limits.ranges);
    let method = &ask.request.method;
    select::ranges(ask.request, method, (validators, rules), || kind(object), reply);
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
    if let Some(changed) = &mut reply.changed {
        if let Some(kind) = changed.content_type.take() {
            response.headers.set(HeaderId::ContentType, kind.as_bytes());
        }
        if changed.content_range.is_some() {
            // They are of the whole.
            let is_of_content = |name: &[u8]| digest_of(name) == Some(DigestOf::Content);
            response.headers.retain(|field| !is_of_content(field.name));
        }
    }
    if let Some(coding) = reply.form.take() {
        form::give(&mut response.headers, coding, form::tag(object, coding).as_deref());
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
