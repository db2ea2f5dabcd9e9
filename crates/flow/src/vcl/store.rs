//! From an answer to what is stored and delivered of it.

use std::sync::Arc;

use base::{Counter, Limit, Now};
use bytes::Bytes;
use cache::{Body as Window, Flags, NewObject, Object, Tags};
use message::date::parse_http_date;
use message::store::NotStored;
use message::vary::Vary;
use message::{Framing, HeaderId, Method, Version};
use vcl::ctx::BerespState;
use vcl::params::Param;

use super::collect::Collected;
use super::counts::Count;
use super::delivery::{Passing, PassingBody, Source};
use super::fetch::{Answer, Body, Got, Job};
use super::heads::Fate;
use super::{heads, lifetime, note, storages};
use crate::carry::{self, Carried, End, Selected, carry, drain};
use crate::gzip::Test;
use crate::lengths::{content_length, declared_length};
use crate::tags;
use crate::why::Why;

/// A marked response has no body of its own in the store.
const NO_BODY: u64 = 0;

/// Delivers `answer` to who waits, and stores it as far as it is to be.
pub(crate) async fn conclude(mut job: Job, mut answer: Answer) {
    let private = job.is_private();
    let mut why = if private { Why::Pass } else { Why::Uncacheable };
    let vary = Vary::of(&answer.response.headers);
    if vary == Vary::Never && !private {
        why = Why::Rule(NotStored::VaryAny);
        job.note_error("Illegal 'Vary' header from backend, making this a pass.");
        answer.state.uncacheable = true;
    }
    answer.response.status = super::delivery::sent_status(answer.state.status);
    let head_length = content_length(&answer.response);
    let fate = match (private, answer.state.uncacheable) {
        (true, _) => Fate::Passed,
        (false, true) => Fate::Uncacheable,
        (false, false) => Fate::Stored,
    };
    heads::beresp(&mut answer.response.headers, &answer.one_hop, fate);
    let tags = match read_tags(&job, &answer) {
        Ok(tags) => tags,
        Err(limit) => {
            job.core.counters.limit(limit);
            job.note_error(&format!("not stored: too many keys (limit: {})", limit.name()));
            answer.state.uncacheable = true;
            why = Why::Rule(NotStored::Tags);
            Tags::default()
        }
    };
    let selected = selected(&job, vary);
    let state = &answer.state;
    let is_worth = is_ever_fresh(state);
    if private || state.uncacheable {
        job.count(Count::BerespUncacheable);
    } else if storages::is_short(&job, state) {
        job.count(Count::BerespShortlived);
    }
    if private || state.uncacheable || !is_worth {
        let has_time = private || state.uncacheable;
        job.note(|trace| trace.note_why(if has_time { why } else { Why::NoLifetime }));
        mark(&mut job, &answer, selected.as_ref());
        return pass(job, answer, head_length, private).await;
    }
    let flags = Flags {
        http10: answer.response.version == Version::Http10,
        gzip: answer.gzip,
        ..Flags::default()
    };
    let length = length(&answer.body);
    let new = NewObject { tags, ..new_object(&job, &answer, flags, length) };
    keep(job, answer, new, selected).await;
}

/// Whether a lookup would find it: Varnish passes over what was never fresh, whatever its grace and
/// keep. Lifetimes count from when the answer was made.
fn is_ever_fresh(state: &BerespState) -> bool {
    state.ttl + state.age > 0.0
}

/// Leaves a mark in the place of an answer that is for this request only.
fn mark(job: &mut Job, answer: &Answer, selected: Option<&Selected>) {
    let Some(lead) = job.lead.take() else { return };
    let state = &answer.state;
    let kept = match answer.pass_s {
        Some(seconds) => seconds > 0.0,
        None => state.uncacheable && is_ever_fresh(state),
    };
    if !kept {
        // What `vcl_backend_error` made replaces nothing.
        let is_made = state.backend.is_none();
        let now_ms = job.now().mono_ms;
        let over = |old: &Arc<Object>| !old.is_fresh(now_ms) && !old.flags().is_mark();
        return match job.stale.take().filter(|old| !is_made && over(old)) {
            Some(old) => lead.supersede(&old),
            None => lead.refuse(None),
        };
    }
    let is_pass = answer.pass_s.is_some();
    let flags = Flags { hit_for_pass: is_pass, hit_for_miss: !is_pass, ..Flags::default() };
    let mut new = new_object(job, answer, flags, Some(NO_BODY));
    if let Some(seconds) = answer.pass_s {
        new.born_ms = job.now().mono_ms as i64;
        (new.lifetime_ms, new.grace_ms, new.stale_if_error_ms) = (ms(seconds), 0, 0);
    }
    // The fields are of no use to anybody: only Vary's part of the key is.
    (new.head, new.etag, new.last_modified) = (Box::default(), None, None);
    _ = lead.store(new, selected.map(Selected::variant)).finish();
}

/// Delivers an answer past the store.
async fn pass(mut job: Job, answer: Answer, head_length: Option<u64>, private: bool) {
    let Answer { response, state, body, gzip, .. } = answer;
    let length = length(&body);
    let (window, exchange) = match body {
        Body::Exchange(exchange) if exchange.framing != Framing::None => {
            let (writer, reader) = Window::window(job.passage.clone());
            (PassingBody::Stream { reader, length }, Some((exchange, writer)))
        }
        Body::Exchange(exchange) => {
            drop(exchange);
            (PassingBody::Bytes(Bytes::new()), None)
        }
        Body::Whole(bytes) => (PassingBody::Bytes(bytes), None),
        Body::Stale(reader) => (PassingBody::Stream { reader, length }, None),
    };
    let passing = Passing {
        response,
        body: window,
        head_length: head_length.filter(|_| job.bereq.method == Method::Head || state.uncacheable),
        times: lifetime::Lifetime {
            ttl: state.ttl,
            grace: state.grace,
            keep: state.keep,
            age: state.age,
        },
        came_ms: job.now().mono_ms,
        uncacheable: state.uncacheable,
        private,
        xid: job.state.xid,
        gzip,
        window: job.passage.clone(),
    };
    if !job.tell(Got::Answer(Source::Passing(Box::new(passing)))) {
        return;
    }
    if let Some((mut exchange, writer)) = exchange {
        exchange.lift_total();
        let test = gzip.then(|| Test::new(length));
        if carry(*exchange, writer, test, None).await.end.is_failure() {
            job.count(Count::FetchFailed);
        }
    }
}

/// Stores an answer, whose body is delivered while it comes.
async fn keep(mut job: Job, answer: Answer, new: NewObject, selected: Option<Selected>) {
    let Some(mut lead) = job.lead.take() else { return };
    let variant = selected.as_ref().map(Selected::variant);
    if answer.state.was_304
        && let Some(stale) = job.stale.take()
    {
        let object = lead.freshen(&stale, NewObject { length: None, ..new }, variant);
        job.note(|trace| trace.stored.set(true));
        job.core.counters.inc(Counter::Revalidated);
        job.tell(Got::Answer(Source::Object { object, reader: None }));
        if let Body::Exchange(exchange) = answer.body {
            drain(*exchange).await;
        }
        return;
    }
    let length = new.length;
    lead.passes_by(job.passage.clone());
    let trace = job.trace.clone();
    let trace = trace.as_deref();
    let mut filling = carry::begin(&job.core, trace, lead, new, variant);
    let object = Arc::clone(filling.object());
    // A body too large to keep is a window: who reads it must be there before it moves.
    let reader = Some(object.reader());
    let carried = match answer.body {
        Body::Exchange(exchange) => {
            job.tell(Got::Answer(Source::Object { object, reader }));
            let test = answer.gzip.then(|| Test::new(length));
            carry(*exchange, filling, test, trace).await
        }
        Body::Whole(bytes) => {
            _ = filling.push(&bytes);
            let (bytes, stored) = (bytes.len() as u64, filling.stored());
            let end = if filling.finish() { End::Whole } else { End::Cut(None) };
            job.tell(Got::Answer(Source::Object { object, reader }));
            Carried { end, bytes, stored }
        }
        Body::Stale(_) => {
            filling.abort();
            Carried { end: End::Cut(None), bytes: 0, stored: false }
        }
    };
    job.note(|trace| trace.note_body(&carried));
    if carried.end.is_failure() {
        job.count(Count::FetchFailed);
    }
}

/// Takes the whole body into memory, where it must be there before it is delivered.
///
/// # Errors
/// Why it is not, in words.
pub(crate) async fn hold(job: &Job, answer: &mut Answer) -> Result<(), String> {
    if answer.state.do_stream {
        return Ok(());
    }
    let Body::Exchange(exchange) = &mut answer.body else { return Ok(()) };
    let most = job.core.shared.cache.config().object_bytes_max;
    let too_large = || Err("body too large (limit: object_bytes)".to_owned());
    let length = declared_length(exchange.framing);
    if length.is_some_and(|length| length > most) {
        return too_large();
    }
    let no_memory = |_| {
        job.core.counters.limit(Limit::ClientMemory);
        "no memory for the body (limit: client_memory)".to_owned()
    };
    let memory = job.core.shared.cache.memory();
    let mut whole = Collected::new(memory, length).map_err(no_memory)?;
    loop {
        let mut taken = Ok(());
        let sink = &mut |data: &[u8]| taken = taken.and_then(|()| whole.push(data));
        let more = exchange.next(sink).await;
        taken.map_err(no_memory)?;
        match more {
            Ok(_) if whole.len() > most => return too_large(),
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => return Err(error.to_string()),
        }
    }
    let whole = whole.into_bytes();
    if answer.gzip {
        let mut test = Test::new(Some(whole.len() as u64));
        test.take(&whole);
        if !test.go_on(true, |_| {}).await {
            return Err("the body claims to be in gzip and is not".to_owned());
        }
    }
    answer.body = Body::Whole(whole);
    Ok(())
}

fn length(body: &Body) -> Option<u64> {
    match body {
        Body::Exchange(exchange) => declared_length(exchange.framing),
        Body::Whole(bytes) => Some(bytes.len() as u64),
        Body::Stale(reader) => reader.length(),
    }
}

/// The surrogate keys of an answer: those in its fields, and those that the program added.
fn read_tags(job: &Job, answer: &Answer) -> Result<Tags, base::Limit> {
    let seed = &job.core.shared.seed;
    let read = tags::read(&answer.response.headers, seed, &job.live.limits)?;
    if answer.state.keys.is_empty() {
        return Ok(read.unwrap_or_default());
    }
    let own = answer.state.keys.iter().map(|key| tags::hash(seed, key));
    let all: Vec<u64> = read.iter().flat_map(Tags::iter).chain(own).collect();
    match all.len() as u64 > job.live.limits.tags {
        true => Err(base::Limit::Tags),
        false => Ok(Tags::new(all)),
    }
}

/// What the answer is kept under beside its key.
fn selected(job: &Job, vary: Vary) -> Option<Selected> {
    let Vary::Names(names) = vary else { return None };
    let gzip = job.live.params.is_on(Param::HttpGzipSupport);
    // What is stored in gzip is for all clients then.
    let names = if gzip { names.without(HeaderId::AcceptEncoding)? } else { names };
    Some(Selected::of(names, &job.bereq))
}

fn ms(seconds: f64) -> u64 {
    (seconds.max(0.0) * 1000.0) as u64
}

/// What is stored of an answer, but for its keys.
fn new_object(job: &Job, answer: &Answer, flags: Flags, length: Option<u64>) -> NewObject {
    let Answer { response, state, .. } = answer;
    let now: Now = job.now();
    let mut head = Vec::with_capacity(256);
    h1::encode::stored_head(&mut head, response.status, &response.reason, &response.headers);
    let date = |id| response.headers.value(id).and_then(|v| parse_http_date(v, now.unix_secs()));
    let etag = response.headers.value(HeaderId::Etag).and_then(|etag| {
        // Wherever these bytes stand in the head, they are the same bytes.
        let at = memchr::memmem::find(&head, etag)?;
        Some((at as u32, etag.len() as u32))
    });
    // What is over already takes the time since from what follows.
    let (fresh, over) = (state.ttl.max(0.0), (-state.ttl).max(0.0));
    NewObject {
        status: response.status,
        etag,
        last_modified: date(HeaderId::LastModified),
        date: date(HeaderId::Date),
        head: head.into_boxed_slice(),
        born_ms: now.mono_ms as i64 - ms(state.age) as i64,
        lifetime_ms: ms(fresh + state.age),
        grace_ms: ms(state.grace - over),
        stale_if_error_ms: ms(state.keep),
        stale_if_unreachable_ms: 0,
        flags,
        tags: Tags::default(),
        note: note::of(job.state.xid, storages::place(job, state), &job.asked),
        length,
    }
}
