//! Fetches: asking an origin, judging its answer, filling the store or a window.
//!
//! A fetch is a task of its own. The client that caused it may leave without harm to those that
//! wait.

mod notes;

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use base::{Counter, KeyBuf, Now};
use bytes::Bytes;
use cache::{Body, Flags, Lead, NewObject, Object, Passage, Reader, Tags};
use files::Root;
use message::date::parse_http_date;
use message::freshness::Freshness;
use message::store::{self, NotStored, StorePlan};
use message::vary::Vary;
use message::{Framing, HeaderBlock, HeaderId, Request, Response, Status, Version};
use origin::{BodySource, Caller, Exchange, RequestBody, SourceError, Tunnel};
use policy::{BackendResponse, FetchCtx, FetchVerdict, Notes, Peer, ResponseCtx, Synthetic};
use tokio::sync::oneshot;

use crate::accel::{self, Named, Said};
use crate::ask::{Ask, Front, LiveRef};
use crate::carry::{self, Selected, carry, drain};
use crate::core::Core;
use crate::decide::freshness;
use crate::finish::Background;
use crate::forward::{self, Errand};
use crate::interims::{Interims, Told};
use crate::lengths::{content_length, declared_length};
use crate::live::Site;
use crate::pages::Problem;
use crate::surrogate;
use crate::tags;
use crate::trace::Trace;
use crate::why::Why;

/// What a fetch came to, as soon as its head is known.
pub(crate) enum Fetched {
    /// An object, complete or filling.
    Object {
        /// The object.
        object: Arc<Object>,
        /// Whether others will find it.
        stored: bool,
        /// A reader at its beginning.
        reader: Reader,
    },
    /// The stored object was confirmed by a 304; this is its new form.
    Confirmed(Arc<Object>),
    /// A response for this request only.
    Passing(Box<Passing>),
    /// The origin has changed the protocol.
    Switched(Box<Switched>),
    /// No usable answer.
    Failed(Failure),
    /// Policy answered in the origin's stead.
    Synthetic(Arc<Synthetic>),
    /// No script answers but this file beside them.
    File(Vec<u8>),
    /// The origin named a file to answer with.
    Named(Box<NamedFile>),
}

/// A file that an origin answers with, and the head it gave.
pub(crate) struct NamedFile {
    /// The root it is below, and its path there; none when no setting allows it.
    pub(crate) place: Option<(Arc<Root>, Vec<u8>)>,
    pub(crate) headers: HeaderBlock,
}

/// A response on its way through, not stored.
pub(crate) struct Passing {
    pub(crate) response: Response,
    pub(crate) reader: Reader,
    pub(crate) length: Option<u64>,
    pub(crate) no_body: bool,
    /// The Content-Length that came with an answer to HEAD.
    pub(crate) head_length: Option<u64>,
}

/// A 101, and the connection it came over.
pub(crate) struct Switched {
    pub(crate) response: Response,
    pub(crate) tunnel: Box<Tunnel>,
}

/// Why there is no usable answer.
pub(crate) struct Failure {
    pub(crate) problem: Problem,
    /// A stale object that may stand in.
    pub(crate) stale: Option<Arc<Object>>,
    /// The origin could not be reached; otherwise its answer was of no use.
    pub(crate) unreachable: bool,
}

/// One fetch and all it needs, independent of the client's connection.
pub(crate) struct Job {
    live: LiveRef,
    site: Arc<Site>,
    request: Request,
    notes: Notes,
    /// Chooses the server where an origin balances by hash.
    key_hash: u64,
    lead: Option<Lead>,
    /// The stored object this fetch is to confirm or replace.
    old: Option<Arc<Object>>,
    /// A stored object that is not confirmed, but may stand in like `old`.
    spare: Option<Arc<Object>>,
    /// The answer's surrogate keys.
    tags: Tags,
    /// Whether the client's own method, conditions and ranges go along.
    own: bool,
    /// Whether the client's wish for another protocol goes along.
    upgrade: bool,
    /// Whether it goes past the store for what is stored there.
    beside: bool,
    /// Where the client waits for interim responses; none when it cannot take them.
    interims: Option<Rc<Interims>>,
    /// Both ends of the client's connection.
    ends: Option<(SocketAddr, SocketAddr)>,
    /// What a passing body may be ahead of its client.
    passage: Passage,
    /// Bytes of it read at once, where the client's connection has to share; 0 for any.
    read_at_most: u64,
    /// Where it is noted how it fares, for the client that waits for it.
    trace: Option<Rc<Trace>>,
}

impl Job {
    /// A fetch for the store, with the right to answer everyone who waits.
    pub(crate) fn store(ask: &Ask<'_>, key: &KeyBuf, lead: Lead, old: Option<Arc<Object>>) -> Self {
        Self { lead: Some(lead), old, own: false, key_hash: key.hash(), ..Self::bare(ask) }
    }

    /// A fetch for one request whose answer may still be stored; `spare` may stand in for it.
    pub(crate) fn alone(
        ask: &Ask<'_>,
        key: &KeyBuf,
        lead: Lead,
        spare: Option<Arc<Object>>,
    ) -> Self {
        Self { lead: Some(lead), spare, own: true, key_hash: key.hash(), ..Self::bare(ask) }
    }

    /// A fetch past the store.
    pub(crate) fn pass(core: &Core, ask: &Ask<'_>) -> Self {
        let key_hash = core.shared.seed.hash(&ask.request.target);
        Self { own: true, key_hash, ..Self::bare(ask) }
    }

    /// A fetch past the store because what is stored there is for others; `spare` may stand in.
    pub(crate) fn beside(core: &Core, ask: &Ask<'_>, spare: Option<Arc<Object>>) -> Self {
        Self { beside: true, spare, ..Self::pass(core, ask) }
    }

    /// A fetch past the store that may change the protocol.
    pub(crate) fn upgrade(core: &Core, ask: &Ask<'_>) -> Self {
        Self { upgrade: true, ..Self::pass(core, ask) }
    }

    fn bare(ask: &Ask<'_>) -> Self {
        Self {
            live: Rc::clone(ask.live),
            site: Arc::clone(ask.site),
            request: ask.request.clone(),
            notes: ask.notes,
            key_hash: 0,
            lead: None,
            old: None,
            spare: None,
            tags: Tags::default(),
            own: false,
            upgrade: false,
            beside: false,
            interims: ask.front.interims.cloned(),
            ends: ask.front.ends,
            passage: ask.front.passage(&ask.live.limits),
            read_at_most: ask.front.window,
            trace: ask.trace.cloned(),
        }
    }

    /// What is stored and may, as its times say, stand in for an answer.
    fn stand_in(&self, may: impl FnOnce(Freshness) -> bool) -> Option<&Arc<Object>> {
        self.old.as_ref().or(self.spare.as_ref()).filter(|old| may(freshness(old)))
    }
}

/// Starts `job`; what it comes to arrives on the channel.
pub(crate) fn start(core: &Rc<Core>, job: Job, body: Option<Reader>) -> oneshot::Receiver<Fetched> {
    let (tell, told) = oneshot::channel();
    let core = Rc::clone(core);
    // Boxed, it is written once; the runtime copies what it is given at every turn of its life.
    tokio::task::spawn_local(Box::pin(run(core, job, body, tell)));
    told
}

/// Starts the background fetch of a stale object, caused by transaction number `cause`.
pub(crate) fn refresh(
    core: &Rc<Core>,
    ask: &Ask<'_>,
    key: &KeyBuf,
    (lead, old): (Lead, &Arc<Object>),
    cause: u64,
) {
    let trace = Rc::new(Trace::default());
    let ask = &Ask { trace: Some(&trace), ..*ask };
    let job = Job::store(ask, key, lead, Some(Arc::clone(old)));
    let numbers = (ask.notes.rule, key.hash(), cause);
    let background = Background::begin(core, ask.site, ask.request, numbers, &trace);
    let core = Rc::clone(core);
    tokio::task::spawn_local(Box::pin(async move {
        // Nobody waits for what it comes to.
        let (tell, _) = oneshot::channel();
        run(core, job, None, tell).await;
        drop(background);
    }));
}

/// What the origin's head makes of a fetch.
enum Outcome {
    Synthetic(Arc<Synthetic>),
    File(Vec<u8>),
    Failed(Failure),
    Confirmed(Exchange, Said),
    Switched(Box<Switched>),
    Named(Exchange, Named),
    Use(Exchange, StorePlan),
}

async fn run(
    core: Rc<Core>,
    mut job: Job,
    body: Option<Reader>,
    mut tell: oneshot::Sender<Fetched>,
) {
    let outcome = if job.own && job.request.method.is_safe() {
        // Nobody else gains by its answer.
        tokio::select! {
            biased;
            outcome = ask_origin(&core, &mut job, body) => outcome,
            () = tell.closed() => return,
        }
    } else {
        ask_origin(&core, &mut job, body).await
    };
    let told = match outcome {
        Outcome::Synthetic(synthetic) => Fetched::Synthetic(synthetic),
        Outcome::Switched(switched) => Fetched::Switched(switched),
        Outcome::File(name) => {
            // Others that wait are told to ask for themselves: they get the file too.
            if let Some(lead) = job.lead.take() {
                lead.refuse(None);
            }
            Fetched::File(name)
        }
        Outcome::Failed(failure) => fail(&core, job, failure),
        Outcome::Named(exchange, named) => {
            let file = name_file(&core, &mut job, &exchange, &named);
            _ = tell.send(Fetched::Named(Box::new(file)));
            // Its body, if it has one, is of no use to anybody.
            drain(exchange).await;
            return;
        }
        Outcome::Confirmed(exchange, said) => match confirm(&core, job, &exchange, &said) {
            Some(object) => {
                drain(exchange).await;
                Fetched::Confirmed(object)
            }
            None => return,
        },
        // A body that only its connection's end ends may have been cut: it is kept only of origins
        // that are said to end them so (RFC 9112 8).
        Outcome::Use(exchange, plan)
            if job.lead.is_some()
                && plan.store.is_ok()
                && (exchange.framing != Framing::UntilClose || job.keeps_until_close()) =>
        {
            keep(&core, job, exchange, &plan, tell).await;
            return;
        }
        Outcome::Use(exchange, plan) => {
            pass(&core, job, exchange, &plan, tell).await;
            return;
        }
    };
    // The client may be gone; the store has what it needs.
    _ = tell.send(told);
}

async fn ask_origin(core: &Rc<Core>, job: &mut Job, body: Option<Reader>) -> Outcome {
    let repeatable = body.is_none();
    let mut body = body;
    let mut tries = 0;
    loop {
        let mut request = job.origin_request(core);
        if let Some(tracing) = &job.live.tracing {
            let sent = tracing.pass_on(&mut request.headers);
            job.note(|trace| trace.sent.set(sent));
        }
        let mut ctx =
            FetchCtx { request: &mut request, pass: job.lead.is_none(), notes: &mut job.notes };
        if let FetchVerdict::Synth(synthetic) = job.site.policy.fetch(&mut ctx) {
            return Outcome::Synthetic(synthetic);
        }
        let Some(origin) = job.site.origins.get(job.notes.origin as usize).cloned() else {
            let reason = "This site has no origin to ask.".to_owned();
            let problem = Problem::Origin { status: Status::BAD_GATEWAY, reason, limit: None };
            let stale = None;
            return Outcome::Failed(Failure { problem, stale, unreachable: false });
        };
        let stream = match body.take() {
            Some(reader) => RequestBody::Stream(Box::new(Upload(reader))),
            None => RequestBody::None,
        };
        let sent = core.now();
        job.note_begun(core, &request, &origin);
        let pool = core.pool();
        if job.site.beside_scripts.get(job.notes.origin as usize).is_some_and(Option::is_some)
            && let Some(name) = pool.file(&origin, &request).await
        {
            return Outcome::File(name);
        }
        let told = &mut Told(job.interims.as_deref());
        let sending = pool.send(&origin, &request, stream, job.key_hash, job.caller(), told);
        let mut exchange = match sending.await {
            Ok(exchange) => exchange,
            Err(error) => return Outcome::Failed(unanswered(job, &error, sent)),
        };
        job.note_answered(core, &exchange);
        let accel = job.site.accel.get(job.notes.origin as usize).and_then(Option::as_ref);
        let said = accel::take(&mut exchange.response.headers, accel, sent.unix_secs());
        if exchange.response.status == Status::NOT_MODIFIED && job.old.is_some() {
            return Outcome::Confirmed(exchange, said);
        }
        if is_unasked(&request, exchange.response.status) {
            return Outcome::Failed(refused(job, exchange.response.status, sent));
        }
        if let Some(tunnel) = exchange.take_tunnel() {
            let mut response = exchange.response.clone();
            forward::passable(&mut response, &job.site, &job.live, core.now().unix_secs());
            return Outcome::Switched(Box::new(Switched { response, tunnel }));
        }
        let plan = judge(core, job, &request, &mut exchange, sent, &said);
        match (plan, said.file) {
            (Verdict::Use(_), Some(named)) => return Outcome::Named(exchange, named),
            (Verdict::Use(mut plan), None) => {
                note_tags(core, job, &exchange.response, &mut plan);
                return Outcome::Use(exchange, plan);
            }
            (Verdict::Retry, _) if repeatable && tries < job.live.limits.retries => tries += 1,
            (Verdict::Retry | Verdict::Fail, _) => {
                return Outcome::Failed(refused(job, exchange.response.status, sent));
            }
        }
    }
}

/// Whether an answer of `status` says that less than a whole representation comes although
/// `request` has not asked for that (RFC 9110 15.3.7, 15.4.5).
fn is_unasked(request: &Request, status: Status) -> bool {
    let has = |id| request.headers.contains(id);
    match status {
        Status::NOT_MODIFIED => !has(HeaderId::IfNoneMatch) && !has(HeaderId::IfModifiedSince),
        Status::PARTIAL_CONTENT => !has(HeaderId::Range),
        _ => false,
    }
}

/// Notes the surrogate keys of an answer that is to be stored; it is not when it has too many.
fn note_tags(core: &Core, job: &mut Job, response: &Response, plan: &mut StorePlan) {
    if plan.store.is_err() {
        return;
    }
    match tags::read(&response.headers, &core.shared.seed, &job.live.limits) {
        Ok(tags) => job.tags = tags.unwrap_or_default(),
        Err(limit) => {
            core.counters.limit(limit);
            job.note(|trace| trace.limit.set(Some(limit)));
            plan.refuse(NotStored::Tags, response.status);
        }
    }
}

/// What is left to do when an origin's answer is of no use.
fn refused(job: &Job, status: Status, sent: Now) -> Failure {
    let reason = format!("The origin answered with status {status}.");
    let stale = job.stand_in(|times| times.may_serve_on_error(sent.mono_ms)).cloned();
    let problem = Problem::Origin { status: Status::BAD_GATEWAY, reason, limit: None };
    Failure { problem, stale, unreachable: false }
}

/// The same when it could not be asked, or did not answer.
fn unanswered(job: &Job, error: &origin::Error, sent: Now) -> Failure {
    let unreachable = error.is_unreachable();
    let stale = job.stand_in(|times| match unreachable {
        true => times.may_serve_unreachable(sent.mono_ms),
        false => times.may_serve_on_error(sent.mono_ms),
    });
    let stale = stale.cloned();
    let (status, limit) = (error.status(), error.limit());
    let problem = Problem::Origin { status, reason: error.to_string(), limit };
    Failure { problem, stale, unreachable }
}

enum Verdict {
    Use(StorePlan),
    Retry,
    Fail,
}

/// Makes the plan for an answer: RFC 9111 first, then policy; a server error yields to a stale
/// object that may stand in.
fn judge(
    core: &Core,
    job: &Job,
    request: &Request,
    exchange: &mut Exchange,
    sent: base::Now,
    said: &Said,
) -> Verdict {
    let now = core.now();
    let times = store::Exchange { request_ms: sent.unix_ms, response_ms: now.unix_ms };
    let rules = job.site.policy.store_rules(&job.notes);
    let response = &mut exchange.response;
    let mut plan = plan_by(said, response, |response| {
        store::plan(request, job.notes.personal, response, times, rules)
    });
    let mut ctx = ResponseCtx { request, response, plan: &mut plan, notes: &job.notes };
    match job.site.policy.response(&mut ctx) {
        BackendResponse::Retry => return Verdict::Retry,
        BackendResponse::Fail => return Verdict::Fail,
        BackendResponse::Deliver => {}
    }
    let failed = matches!(exchange.response.status.code(), 500 | 502 | 503 | 504);
    let stand_in = job.stand_in(|times| times.may_serve_on_error(now.mono_ms));
    if failed && stand_in.is_some() { Verdict::Fail } else { Verdict::Use(plan) }
}

/// Makes a plan, in which X-Accel-Expires counts before every other field, as nginx has it: as
/// CDN-Cache-Control does (RFC 9213). What is stored and sent on says nothing of it.
fn plan_by(
    said: &Said,
    response: &mut Response,
    plan: impl FnOnce(&Response) -> StorePlan,
) -> StorePlan {
    let Some(lifetime_s) = said.lifetime_s else { return plan(response) };
    let headers = response.headers.clone();
    let value = match lifetime_s {
        0 => "no-store".to_owned(),
        seconds => format!("max-age={seconds}"),
    };
    response.headers.set(HeaderId::CdnCacheControl, value.as_bytes());
    let planned = plan(response);
    response.headers = headers;
    planned
}

/// What was named belongs to this request: it is not stored, and others do not wait for it.
fn name_file(core: &Core, job: &mut Job, exchange: &Exchange, named: &Named) -> NamedFile {
    job.note_why(Why::File);
    if let Some(lead) = job.lead.take() {
        lead.refuse(Some(core.now().mono_ms + job.live.limits.hit_for_miss_ttl));
    }
    invalidate_after(core, job, &exchange.response);
    let accel = job.site.accel.get(job.notes.origin as usize).and_then(Option::as_ref);
    let place = accel.and_then(|accel| accel.place(named));
    NamedFile {
        place: place.map(|(root, path)| (Arc::clone(root), path.to_vec())),
        headers: exchange.response.headers.clone(),
    }
}

fn fail(core: &Core, mut job: Job, failure: Failure) -> Fetched {
    job.note_why(Why::Failed);
    job.note(|trace| {
        trace.made_status.set(failure.problem.status().code());
        *trace.trouble.borrow_mut() = Some(failure.problem.trouble());
    });
    if failure.stale.is_some() && job.lead.is_some() {
        core.note_fetch(job.key_hash, Some(failure.unreachable));
    }
    if let Some(lead) = job.lead.take() {
        lead.fail();
    }
    Fetched::Failed(failure)
}

/// Gives the stored object the fields and times of the 304 that confirmed it (RFC 9111 4.3.4).
fn confirm(core: &Core, mut job: Job, exchange: &Exchange, said: &Said) -> Option<Arc<Object>> {
    let (old, lead) = (job.old.take()?, job.lead.take()?);
    core.note_fetch(job.key_hash, None);
    let now = core.now();
    let mut merged = Response::new(old.status());
    if h1::parse_stored_head(old.head(), &mut merged).is_err() {
        return None;
    }
    surrogate::put_back(&mut merged.headers, old.note());
    let mut confirmation = exchange.response.clone();
    forward::keepable(&mut confirmation, &job.site, now.unix_secs());
    store::update_fields(&mut merged.headers, &confirmation.headers);
    merged.version = confirmation.version;
    // The plan reads the Age that came with the confirmation, which is never kept.
    let mut dated = merged.clone();
    if let Some(age) = exchange.response.headers.value(HeaderId::Age) {
        dated.headers.set(HeaderId::Age, age);
    }
    let rules = job.site.policy.store_rules(&job.notes);
    let times = store::Exchange { request_ms: now.unix_ms, response_ms: now.unix_ms };
    let mut plan = plan_by(said, &mut dated, |dated| {
        store::plan(&job.request, job.notes.personal, dated, times, rules)
    });
    let mut ctx = ResponseCtx {
        request: &job.request,
        response: &mut merged,
        plan: &mut plan,
        notes: &job.notes,
    };
    job.site.policy.response(&mut ctx);
    core.counters.inc(Counter::Revalidated);
    job.note(|trace| trace.stored.set(true));
    let selected = selected(&merged, &job.request);
    let note = surrogate::set_aside(&mut merged.headers, &job.site);
    let mut new = NewObject { note, ..new_object(&merged, &plan, now, old.length()) };
    match tags::read(&exchange.response.headers, &core.shared.seed, &job.live.limits) {
        Ok(tags) => new.tags = tags.unwrap_or_else(|| old.tags()),
        Err(limit) => {
            core.counters.limit(limit);
            job.note(|trace| trace.limit.set(Some(limit)));
            job.note_why(Why::Rule(NotStored::Tags));
            job.note(|trace| trace.stored.set(false));
            // Not by all its tags could it be invalidated: good for this answer alone.
            new = NewObject {
                lifetime_ms: 0,
                grace_ms: 0,
                stale_if_error_ms: 0,
                stale_if_unreachable_ms: 0,
                ..new
            };
        }
    }
    Some(lead.freshen(&old, new, selected.as_ref().map(Selected::variant)))
}

async fn keep(
    core: &Rc<Core>,
    mut job: Job,
    mut exchange: Exchange,
    plan: &StorePlan,
    tell: oneshot::Sender<Fetched>,
) {
    let Some(mut lead) = job.lead.take() else { return };
    lead.passes_by(job.passage.clone());
    core.note_fetch(job.key_hash, None);
    let now = core.now();
    let selected = selected(&exchange.response, &job.request);
    forward::keepable(&mut exchange.response, &job.site, now.unix_secs());
    let length = declared_length(exchange.framing);
    let note = surrogate::set_aside(&mut exchange.response.headers, &job.site);
    let tags = std::mem::take(&mut job.tags);
    let new = NewObject { tags, note, ..new_object(&exchange.response, plan, now, length) };
    let trace = job.trace.as_deref();
    let filling = carry::begin(core, trace, lead, new, selected.as_ref().map(Selected::variant));
    let object = Arc::clone(filling.object());
    // A body too large to keep is a window: who reads it must be there before it moves.
    let reader = object.reader();
    _ = tell.send(Fetched::Object { object, stored: filling.stored(), reader });
    let carried = carry(exchange, filling, None, trace).await;
    job.note(|trace| trace.note_body(&carried));
}

async fn pass(
    core: &Rc<Core>,
    mut job: Job,
    mut exchange: Exchange,
    plan: &StorePlan,
    tell: oneshot::Sender<Fetched>,
) {
    let now = core.now();
    job.note_why(job.why_passing(plan));
    job.note_evidence(&exchange.response, plan);
    if let Some(lead) = job.lead.take() {
        lead.refuse(job.marker_ms(plan).map(|ms| now.mono_ms + ms));
    }
    invalidate_after(core, &job, &exchange.response);
    forward::passable(&mut exchange.response, &job.site, &job.live, now.unix_secs());
    let (writer, reader) = Body::window(job.passage.clone());
    let passing = Passing {
        no_body: exchange.framing == Framing::None,
        length: declared_length(exchange.framing),
        head_length: content_length(&exchange.response),
        response: exchange.response.clone(),
        reader,
    };
    if tell.send(Fetched::Passing(Box::new(passing))).is_err() {
        return;
    }
    // How long it takes is the client's business, as long as it goes on.
    exchange.lift_total();
    carry(exchange, writer, None, None).await;
}

/// What the answer is kept under beside its key.
fn selected(response: &Response, request: &Request) -> Option<Selected> {
    // `*` never comes here: the plan refuses it.
    let Vary::Names(names) = Vary::of(&response.headers) else { return None };
    Some(Selected::of(names, request))
}

fn new_object(response: &Response, plan: &StorePlan, now: Now, length: Option<u64>) -> NewObject {
    let mut head = Vec::with_capacity(256);
    h1::encode::stored_head(&mut head, response.status, &response.reason, &response.headers);
    let now_secs = now.unix_secs();
    let date = |id| response.headers.value(id).and_then(|v| parse_http_date(v, now_secs));
    let etag = response.headers.value(HeaderId::Etag).and_then(|etag| {
        // Wherever these bytes stand in the head, they are the same bytes.
        let at = memchr::memmem::find(&head, etag)?;
        Some((at as u32, etag.len() as u32))
    });
    NewObject {
        status: response.status,
        etag,
        last_modified: date(HeaderId::LastModified),
        date: date(HeaderId::Date),
        head: head.into_boxed_slice(),
        born_ms: now.mono_ms as i64 - plan.age_ms as i64,
        lifetime_ms: plan.lifetime_ms,
        grace_ms: plan.grace_ms,
        stale_if_error_ms: plan.stale_if_error_ms,
        stale_if_unreachable_ms: plan.stale_if_unreachable_ms,
        flags: Flags {
            shared: plan.shared,
            must_validate: plan.must_validate,
            never_stale: plan.never_stale,
            http10: response.version == Version::Http10,
            ..Flags::default()
        },
        note: Box::default(),
        tags: Tags::default(),
        length,
    }
}

impl Job {
    /// On whose behalf the origin is asked.
    fn caller(&self) -> Caller {
        Caller {
            client: self.notes.client.and_then(Peer::address),
            ends: self.ends,
            read_at_most: self.read_at_most,
            account: self.passage.account.clone(),
            timeouts: None,
        }
    }

    fn origin_request(&self, core: &Core) -> Request {
        let ask = Ask {
            live: &self.live,
            site: &self.site,
            request: &self.request,
            notes: self.notes,
            now: core.now(),
            front: Front {
                interims: None,
                ends: self.ends,
                window: self.passage.bytes,
                account: self.passage.account.as_ref(),
            },
            trace: None,
        };
        let errand = match (self.own, &self.lead) {
            (true, None) if self.upgrade => Errand::Upgrade,
            (true, None) => Errand::Own,
            (true, Some(_)) => Errand::Alone,
            (false, _) => Errand::Store(self.old.as_deref()),
        };
        forward::origin_request(&ask, &errand)
    }

    /// Whether bodies are stored whose end is their connection's.
    fn keeps_until_close(&self) -> bool {
        let origin = self.site.origins.get(self.notes.origin as usize);
        origin.is_some_and(|origin| origin.config().store_close_delimited)
    }

    /// How long requests for the key shall not wait for each other after this uncacheable answer;
    /// none when it says nothing about other clients' requests.
    fn marker_ms(&self, plan: &StorePlan) -> Option<u64> {
        let longest = self.live.limits.hit_for_miss_ttl;
        let ms = match plan.store {
            // Storable but for its framing.
            Ok(()) => longest,
            Err(_) => plan.hit_for_miss_ms.min(longest),
        };
        (ms > 0).then_some(ms)
    }
}

/// A client's upload as the origin client pulls it.
struct Upload(Reader);

impl BodySource for Upload {
    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, SourceError>> {
        self.0.poll_next(cx).map_err(|_| SourceError("the client's body broke off"))
    }
}

/// What a successful request that is not safe makes untrue: the stored responses of its target, and
/// of the Location and Content-Location it names on the same host (RFC 9111 4.4).
fn invalidate_after(core: &Core, job: &Job, response: &Response) {
    let class = response.status.code() / 100;
    if job.request.method.is_safe() || !(class == 2 || class == 3) {
        return;
    }
    let mut removed = core.invalidate(&job.site, &job.request, &job.notes);
    for id in [HeaderId::Location, HeaderId::ContentLocation] {
        for value in response.headers.values(id) {
            if let Some(other) = forward::same_origin(&job.request, value) {
                removed += core.invalidate(&job.site, &other, &job.notes);
            }
        }
    }
    core.counters.add(Counter::Invalidations, removed as u64);
}
