//! Delivery under a program: from a found or fetched object to the reply, by `vcl_deliver`, or by
//! `vcl_synth` without an object.

use std::sync::Arc;

use bytes::Bytes;
use cache::{Flags, Object, Reader};
use codec::Coding;
use codec::dictionary::vary_by_dictionary;
use message::date::HttpDate;
use message::forwarding::add_via;
use message::{HeaderId, Method, Response, Status, Version};
use observe::DictionaryUse;
use policy::ConnectionPeer;
use vcl::counts::Count;
use vcl::ctx::{Obj, RespState};
use vcl::params::Param;
use vcl::rules::heads;
use vcl::rules::status::{is_interim, sent_status, usual_reason};
use vcl::rules::{dates, filters};
use vcl::sub::{Action, Sub};

use super::call::{ClientVariables, StepContext, StepHost};
use super::fetch::PassingFacts;
use super::step::{DeliveredResponse, HostStep, RequestStep};
use super::storages;
use super::stored_object::{Age, age, obj_of};
use crate::assemble::draft;
use crate::dictionary::{self, DictionaryAnswer};
use crate::fetch::PassingResponse;
use crate::form::{self, FormSource};
use crate::peers::{self, PeerRefusal};
use crate::selection::{ConditionRules, SELECTORS, Selection, Validators};
use crate::sent_form::SentForm;
use crate::state::assemble::{ComposedPage, Dialect, Instructions, TopPage};
use crate::state::body::ReplyBody;
use crate::state::reply::{CacheOutcome, ForwardReason, HeadSource, Reply, VarnishFields, number};
use crate::state::site_context::SiteContext;
use crate::state::vcl::note;
use crate::state::vcl::{ProgramRequest, VclConnection};
use crate::stored_heads::stored_head;

/// A time too short for the clock, in seconds.
const MOMENT_S: f64 = 1e-6;

/// Fields that are added to a head before its program sees it, beyond the limit's count.
const ADDED: u64 = 5;

/// Runs `vcl_deliver` and makes the reply, unless the program returns another step.
pub(crate) fn deliver<S: StepHost>(
    turn: &mut ProgramRequest,
    env: &StepContext<'_, S>,
    delivered: DeliveredResponse,
) -> Result<Reply, HostStep<S>> {
    match delivered {
        DeliveredResponse::Object { object, reader } if turn.downstream.is_node() => {
            let served = served(turn, env, &object, reader.is_some());
            Ok(peers::stored(env.asked, &object, reader, served, env.now))
        }
        DeliveredResponse::Passing(_) if turn.downstream.is_node() => {
            Ok(peers::silent(PeerRefusal::Nothing))
        }
        DeliveredResponse::Object { object, reader } => stored(turn, env, &object, reader),
        DeliveredResponse::Passing(passing) => passed(turn, env, *passing),
    }
}

fn stored<S: StepHost>(
    turn: &mut ProgramRequest,
    env: &StepContext<'_, S>,
    object: &Arc<Object>,
    reader: Option<Reader>,
) -> Result<Reply, HostStep<S>> {
    let served = served(turn, env, object, reader.is_some());
    let body = S::body(object, reader).answering(&env.asked.method, object.status());
    let mut reply = Reply::stored(object, body, served);
    let is_to_be_fetched = reply.is_to_be_fetched(&turn.req);
    if is_to_be_fetched && !object.is_live() && turn.is_hit() {
        // The disk has lost the body, so no lookup finds the object again.
        return Err(RequestStep::Lookup);
    }
    let is_elsewhere = object.elsewhere().is_some();
    if is_to_be_fetched && is_elsewhere && turn.is_hit() {
        // The object stays for its present readers.
        return Err(RequestStep::Pass);
    }
    if is_to_be_fetched && !is_elsewhere {
        // The body outgrew the store before this request read it.
        turn.state.hash_always_miss = true;
        return Err(RequestStep::Lookup);
    }
    let age_s = object.age_ms(env.now.mono_ms) / 1000;
    let varnish = VarnishFields {
        xid: turn.state.xid,
        found: turn.is_hit().then(|| note::xid(object.note())),
        ranges: offers_ranges(env, object.status()),
    };
    let DictionaryAnswer { used, form: delta } = seek(turn, env, object);
    reply.dictionary = used;
    let decodes = decodes(turn, env, head_coding(object.flags()));
    let mut delivered = VclDeliveryOutcome::Reply;
    // A head for ranges is written anew.
    let parts = turn.req.headers.contains(HeaderId::Range);
    if decodes
        || parts
        || delta.is_some()
        || object.flags().esi
        || turn.instance.program().uses().head.has(Sub::Deliver)
    {
        let shape = DeliveryChanges { varnish, age_s, decodes, delta };
        delivered = shaped(turn, env, object, &mut reply, shape)?;
    } else {
        reply.varnish = Some(varnish);
        reply.by_dictionary = dictionary::may_use_dictionary(env.asked, object);
        reply.age_s = Some(age_s);
        let mut unseen = Response::new(object.status());
        let do_esi = !turn.state.no_esi;
        run(turn, env, object, &mut unseen, &mut RespState { do_esi, ..RespState::default() })?;
        if turn.req.headers.contains_any(&SELECTORS) {
            narrow(turn, env, &Validators::of(object), |_| {}, has_ranges(env), &mut reply);
        }
    }
    if let VclDeliveryOutcome::Reply = delivered {
        conclude(turn, env, &mut reply);
        return Ok(reply);
    }
    end(turn, env, reply, delivered)
}

/// The result of `vcl_deliver` and the following steps.
enum VclDeliveryOutcome {
    /// The head cannot be sent.
    Nothing,
    Reply,
    /// A page to be assembled.
    Page(Box<ComposedPage>),
}

/// Ends with the reply, or with its page.
#[inline(never)]
fn end<S: StepHost>(
    turn: &mut ProgramRequest,
    env: &StepContext<'_, S>,
    mut reply: Reply,
    delivered: VclDeliveryOutcome,
) -> Result<Reply, HostStep<S>> {
    if let VclDeliveryOutcome::Nothing = delivered {
        return Ok(failed(turn, env));
    }
    conclude(turn, env, &mut reply);
    match delivered {
        VclDeliveryOutcome::Page(page) => Err(RequestStep::Page(draft(reply, *page))),
        VclDeliveryOutcome::Nothing | VclDeliveryOutcome::Reply => Ok(reply),
    }
}

/// Notes the facts of the reply.
#[inline(always)]
fn conclude<S: StepHost>(turn: &mut ProgramRequest, env: &StepContext<'_, S>, reply: &mut Reply) {
    if reply.dictionary != DictionaryUse::NotNamed {
        S::note_dictionary(env, reply.dictionary);
    }
    finish(turn, env, reply);
}

/// Parses the stored head, runs `vcl_deliver`, and returns the result.
fn shaped<S: StepHost>(
    turn: &mut ProgramRequest,
    env: &StepContext<'_, S>,
    object: &Arc<Object>,
    reply: &mut Reply,
    DeliveryChanges { varnish, age_s, decodes, delta }: DeliveryChanges,
) -> Result<VclDeliveryOutcome, HostStep<S>> {
    let Some(mut response) = stored_head(object) else { return Err(RequestStep::Fail) };
    if decodes {
        heads::weaken_etag(&mut response.headers);
    }
    // After a change of the coding a program sees no length, as in Varnish.
    let is_told = !object.flags().coded_here && !object.status().has_no_body();
    if let Some(length) = object.length().filter(|_| is_told) {
        response.headers.push_with(HeaderId::ContentLength, |out| number(out, length));
    }
    announce(env, &mut response, varnish, age_s);
    let mut state = RespState {
        status: response.status.code(),
        time: env.time(),
        is_streaming: object.is_filling(),
        do_esi: !turn.state.no_esi,
        ..RespState::default()
    };
    run(turn, env, object, &mut response, &mut state)?;
    reply.status = sent_status(state.status);
    response.status = reply.status;
    if reply.status.has_no_body() {
        reply.body = ReplyBody::None;
    } else if matches!(reply.body, ReplyBody::None) {
        // The program changed a 204 to a status that has a length.
        reply.body = ReplyBody::from(Bytes::new()).answering(&env.asked.method, reply.status);
    }
    if dictionary::may_use_dictionary(env.asked, object) {
        vary_by_dictionary(&mut response.headers);
    }
    let chosen = BodyFilters::of(&state, env);
    let delta = delta.filter(|_| chosen.gunzip.is_none());
    let delta = delta.and_then(|delta| {
        let (bytes, form) = *delta;
        give_delta(form, object, &mut response).then_some(bytes)
    });
    if reply.dictionary == DictionaryUse::Used && delta.is_none() {
        reply.dictionary = DictionaryUse::Program;
    }
    let is_gzipped = object.flags().gzip_page;
    let decodes = delta.is_none() && chosen.decodes(decodes, head_coding(object.flags()));
    let given = given(delta, decodes, &mut response);
    let (modified, date) = (object.last_modified(), object.date());
    let length = form::plain_length(object);
    let delivered = DeliveredHead { response, modified, date, given, is_gzipped, length };
    let page = match object.flags().esi {
        true => SentPage::of(object.attached(), &chosen, is_gzipped, decodes),
        false => None,
    };
    Ok(close(turn, env, reply, delivered, page, chosen.ranges))
}

/// The filters of a body in `resp.filters`.
struct BodyFilters {
    esi: bool,
    /// `None` if request and response decide.
    gunzip: Option<bool>,
    ranges: bool,
}

impl BodyFilters {
    fn of<S: StepHost>(state: &RespState, env: &StepContext<'_, S>) -> Self {
        let ranges = has_ranges(env);
        let Some(filters) = &state.filters else {
            return Self { esi: state.do_esi, gunzip: None, ranges };
        };
        let has = |name: &[u8]| filters::has_filter(filters, name);
        let ranges = ranges && has(b"range");
        Self { esi: has(b"esi"), gunzip: Some(has(b"gunzip")), ranges }
    }

    /// Returns true if a body in `coding` is decoded; `usually` if the program does not decide.
    fn decodes(&self, usually: bool, coding: Coding) -> bool {
        self.gunzip.map_or(usually, |gunzip| gunzip && coding == Coding::Gzip)
    }
}

/// Changes of a stored response for one client, beside those of its program.
struct DeliveryChanges {
    varnish: VarnishFields,
    age_s: u64,
    decodes: bool,
    /// The form with the client's dictionary.
    delta: Option<Box<(Bytes, SentForm)>>,
}

/// Looks for the form of `object` with the client's dictionary, if the parameter for codings is on.
/// An assembled page has a single form.
#[inline]
fn seek<S: StepHost>(
    turn: &ProgramRequest,
    env: &StepContext<'_, S>,
    object: &Arc<Object>,
) -> DictionaryAnswer {
    match env.asked.headers.contains(HeaderId::AvailableDictionary) || object.flags().dictionary {
        true => seek_some(turn, env, object),
        false => DictionaryAnswer::default(),
    }
}

fn seek_some<S: StepHost>(
    turn: &ProgramRequest,
    env: &StepContext<'_, S>,
    object: &Arc<Object>,
) -> DictionaryAnswer {
    let is_whole = !object.flags().esi && object.status() == Status::OK;
    let may = is_whole
        && turn.downstream.page().is_none()
        && env.live.vcl.params.is_on(Param::HttpGzipSupport);
    match may {
        true => S::seek(turn, env, object),
        false => dictionary::of_one_form(env.asked).into(),
    }
}

/// Makes the head that of a form with a dictionary. False if the program has changed the coding.
/// The tag becomes weak, as for a decoded body.
fn give_delta(form: SentForm, object: &Object, response: &mut Response) -> bool {
    let given = Coding::of_content(response.headers.values(HeaderId::ContentEncoding));
    if response.status != Status::OK || given != Some(object.flags().coding) {
        return false;
    }
    heads::weaken_etag(&mut response.headers);
    let token = form.coding.token().unwrap_or_default();
    response.headers.set(HeaderId::ContentEncoding, token.as_bytes());
    true
}

/// A page as one client gets it.
struct SentPage {
    instructions: Option<Arc<Instructions>>,
    /// Its head names gzip, which is encoded while it is sent.
    is_gzipped: bool,
    /// The page is sent in gzip.
    is_gzip: bool,
    /// Its instructions are ignored.
    is_verbatim: bool,
}

impl SentPage {
    /// The page with these instructions; `None` if it is sent as stored. With `is_gzipped` its head
    /// names gzip; with `decodes` the client gets it decoded.
    fn of(
        instructions: Option<Arc<Instructions>>,
        chosen: &BodyFilters,
        is_gzipped: bool,
        decodes: bool,
    ) -> Option<Self> {
        let is_gzip = is_gzipped && !decodes;
        let is_put = chosen.esi || is_gzip;
        is_put.then_some(Self { instructions, is_gzipped, is_gzip, is_verbatim: !chosen.esi })
    }
}

/// The coding in the head of a stored response. A page is stored without a coding for its assembly,
/// whatever coding it is sent in.
fn head_coding(flags: Flags) -> Coding {
    if flags.gzip_page { Coding::Gzip } else { flags.coding }
}

/// The source of a body, whose head is adapted: `delta`, or decoded if it `decodes`.
fn given(delta: Option<Bytes>, decodes: bool, response: &mut Response) -> FormSource {
    match delta {
        Some(delta) => FormSource::Beside(delta),
        None if decodes => {
            response.headers.remove(HeaderId::ContentEncoding);
            FormSource::Decoded
        }
        None => FormSource::Stored,
    }
}

/// The head after `vcl_deliver`, and the form of its body.
struct DeliveredHead {
    response: Response,
    /// Last-Modified before `vcl_deliver`, and Date: removed fields still apply.
    modified: Option<u64>,
    date: Option<u64>,
    given: FormSource,
    /// Only the head names gzip so far.
    is_gzipped: bool,
    /// The length of the decoded body, if known.
    length: Option<u64>,
}

impl DeliveredHead {
    fn validators<S: StepHost>(&self, env: &StepContext<'_, S>) -> Validators<'_> {
        let headers = &self.response.headers;
        let parse = |value| dates::read(value, env.now.unix_secs(), &env.live.vcl.params);
        // An invalid date is later than any other.
        let shown = headers.value(HeaderId::LastModified).map(|v| parse(v).unwrap_or(u64::MAX));
        Validators {
            etag: headers.value(HeaderId::Etag),
            modified: shown.or(self.modified),
            shown,
            date: headers.value(HeaderId::Date).and_then(parse).or(self.date),
        }
    }

    /// Sets the form of the reply and narrows it by the request.
    fn narrow<S: StepHost>(
        &mut self,
        turn: &ProgramRequest,
        env: &StepContext<'_, S>,
        ranges: bool,
        reply: &mut Reply,
    ) {
        let (given, is_gzipped, length) =
            (std::mem::take(&mut self.given), self.is_gzipped, self.length);
        let give = |body: &mut ReplyBody| match given {
            FormSource::Stored => {}
            FormSource::Beside(bytes) => form::put_beside(bytes, body),
            FormSource::Decoded if is_gzipped => env.count(Count::NGunzip),
            FormSource::Decoded => S::decode(env, body, length),
        };
        match turn.req.headers.contains_any(&SELECTORS) {
            true => narrow(turn, env, &self.validators(env), give, ranges, reply),
            false => give(&mut reply.body),
        }
    }
}

/// Narrows the reply by the request, and sets the head after `vcl_deliver`.
fn close<S: StepHost>(
    turn: &mut ProgramRequest,
    env: &StepContext<'_, S>,
    reply: &mut Reply,
    mut delivered: DeliveredHead,
    page: Option<SentPage>,
    ranges: bool,
) -> VclDeliveryOutcome {
    if let Some(page) = &page {
        let headers = &mut delivered.response.headers;
        heads::weaken_etag(headers);
        headers.remove(HeaderId::ContentLength);
        if page.is_gzipped {
            // Set again once there is memory to encode the page.
            headers.remove(HeaderId::ContentEncoding);
        }
    }
    // An assembled page has no known length to cut.
    delivered.narrow(turn, env, ranges && page.is_none(), reply);
    let fits = !has_too_many_fields(env, &delivered.response);
    own_head(turn, reply, delivered.response);
    match page {
        _ if !fits => VclDeliveryOutcome::Nothing,
        None => VclDeliveryOutcome::Reply,
        Some(page) => VclDeliveryOutcome::Page(Box::new(page.composed(turn, env))),
    }
}

impl SentPage {
    /// The page that answers the request.
    fn composed<S: StepHost>(
        self,
        turn: &ProgramRequest,
        env: &StepContext<'_, S>,
    ) -> ComposedPage {
        let (place, asked) = (SiteContext { live: env.live, site: env.site }, env.asked.clone());
        let mut page =
            ComposedPage::new(Dialect::Varnish, place, asked, turn.downstream.page(), || {
                let (peer, vcl_connection) =
                    (ConnectionPeer::Unnamed(None), VclConnection::of_session(&turn.session));
                TopPage::new(
                    env.live,
                    turn.req.clone(),
                    peer,
                    Some(vcl_connection),
                    env.connection.account,
                )
            });
        (page.xid, page.instructions) = (turn.state.xid, self.instructions);
        (page.gzipped, page.verbatim) = (self.is_gzipped, self.is_verbatim);
        // A fragment is joined to its page as it is.
        page.gzip = self.is_gzip && turn.downstream.page().is_none();
        page
    }
}

/// Returns true if a body in `coding` must be decoded for this client, or for the enclosing page,
/// which requests gzip if it is sent in gzip.
fn decodes<S: StepHost>(turn: &ProgramRequest, env: &StepContext<'_, S>, coding: Coding) -> bool {
    coding == Coding::Gzip
        && !heads::takes_gzip(&turn.req.headers)
        && env.live.vcl.params.is_on(Param::HttpGzipSupport)
}

fn run<S: StepHost>(
    turn: &mut ProgramRequest,
    env: &StepContext<'_, S>,
    object: &Object,
    response: &mut Response,
    state: &mut RespState,
) -> Result<(), HostStep<S>> {
    let mut obj = obj_of(env.live, env.now, object);
    if !turn.is_hit() {
        obj.hits = 0;
    }
    let resp = Some((response, &mut *state));
    let action = turn.run(
        env,
        Sub::Deliver,
        ClientVariables { obj: Some(&obj), resp, ..ClientVariables::default() },
    );
    // A restart keeps this.
    turn.state.no_esi = !state.do_esi;
    after_deliver(turn, action, state.status)
}

/// Returns the step after `vcl_deliver`, which has set this status; `Ok` to deliver.
fn after_deliver<L, T>(
    turn: &ProgramRequest,
    action: Action,
    status: u16,
) -> Result<(), RequestStep<L, T>> {
    match action {
        Action::Deliver if is_interim(status) => {
            turn.note_error(&format!("no final answer can have the status {status}"));
            Err(RequestStep::Fail)
        }
        Action::Deliver => Ok(()),
        Action::Restart => Err(RequestStep::Restart),
        Action::Synth(said) => Err(RequestStep::Synth(said)),
        // The program has logged the reason; the compiler permits no other action.
        _ => Err(RequestStep::Fail),
    }
}

/// Delivers a response for this request only.
fn passed<S: StepHost>(
    turn: &mut ProgramRequest,
    env: &StepContext<'_, S>,
    passing: PassingResponse<PassingFacts>,
) -> Result<Reply, HostStep<S>> {
    let PassingResponse { mut response, body, head_length, coding, plain, facts } = passing;
    let PassingFacts { times, came_ms, uncacheable, xid: fetched, private, page } = facts;
    let own = private || uncacheable;
    let is_gzipped = page.as_ref().is_some_and(|page| page.is_gzipped);
    let coding = if is_gzipped { Coding::Gzip } else { coding };
    let decodes = decodes(turn, env, coding);
    if decodes {
        heads::weaken_etag(&mut response.headers);
    }
    let mut head = Vec::new();
    if turn.instance.program().uses().head.has(Sub::Deliver) {
        h1::encode::stored_head(&mut head, response.status, &response.reason, &response.headers);
    }
    let modified = response.headers.value(HeaderId::LastModified);
    let (params, status) = (&env.live.vcl.params, response.status);
    let modified = modified.and_then(|value| dates::read(value, env.now.unix_secs(), params));
    let since = env.now.mono_ms.saturating_sub(came_ms) as f64 / 1000.0;
    let (xid, ranges) = (turn.state.xid, !private && offers_ranges(env, status));
    let found = turn.is_hit().then_some(fetched);
    announce(env, &mut response, VarnishFields { xid, found, ranges }, (times.age + since) as u64);
    let obj = Obj {
        head: &head,
        status: status.code(),
        age: times.age + since,
        // Some time has passed, however short: a response that was never fresh is over.
        ttl: (times.ttl - since.max(MOMENT_S)).into(),
        grace: times.grace.into(),
        keep: times.keep.into(),
        uncacheable,
        can_esi: page.is_some(),
        time: env.time() - since - times.age,
        storage: storages::transient(&env.live.vcl),
        ..Obj::default()
    };
    let mut state = RespState {
        status: status.code(),
        time: env.time(),
        is_streaming: matches!(body, ReplyBody::Stream { .. }),
        do_esi: !turn.state.no_esi,
        ..RespState::default()
    };
    let resp = Some((&mut response, &mut state));
    let action = turn.run(
        env,
        Sub::Deliver,
        ClientVariables { obj: Some(&obj), resp, ..ClientVariables::default() },
    );
    turn.state.no_esi = !state.do_esi;
    after_deliver(turn, action, state.status)?;
    response.status = sent_status(state.status);
    let chosen = BodyFilters::of(&state, env);
    let body = passing_body(&env.asked.method, response.status, body, head_length, own);
    let decodes = chosen.decodes(decodes, coding);
    let given = given(None, decodes, &mut response);
    let mut reply = bare(response.status, body, served_past(turn, private));
    let delivered =
        DeliveredHead { response, modified, date: None, given, is_gzipped, length: plain };
    let page = page.and_then(|page| SentPage::of(Some(page), &chosen, is_gzipped, decodes));
    let delivered = close(turn, env, &mut reply, delivered, page, chosen.ranges);
    end(turn, env, reply, delivered)
}

/// The cache's part in a reply that is not stored.
fn served_past(turn: &ProgramRequest, private: bool) -> CacheOutcome {
    let reason = if private { ForwardReason::Bypass } else { turn.missed() };
    CacheOutcome::Fetched { reason, stored: false, collapsed: false }
}

/// The body of a reply that is not stored; `own` if it is for this request only. `head_length` is
/// that of the response to HEAD.
fn passing_body(
    method: &Method,
    status: Status,
    body: ReplyBody,
    head_length: Option<u64>,
    own: bool,
) -> ReplyBody {
    // A substitute for a response of this request is not the body of a GET.
    let stands_in = own && body.part().is_some();
    let mut body = body.answering(method, status);
    if let ReplyBody::Head(length) = &mut body {
        *length = head_length.or_else(|| length.filter(|_| !stands_in));
    }
    body
}

/// Runs `vcl_synth` and makes the reply, unless the program returns another step.
pub(crate) fn synthesize<S: StepHost>(
    turn: &mut ProgramRequest,
    env: &StepContext<'_, S>,
) -> Result<Reply, HostStep<S>> {
    env.count(Count::SSynth);
    let code = if turn.said.status < 100 { 501 } else { turn.said.status };
    if turn.said.reason.is_none() {
        turn.said.reason = Some(usual_reason(sent_status(code)).into());
    }
    if is_interim(code) {
        return Err(RequestStep::Fail);
    }
    let mut response = Response::new(sent_status(code));
    let date = HttpDate::new(env.now.unix_secs());
    response.headers.push(HeaderId::Date, date.as_bytes());
    response.headers.push(HeaderId::Server, b"Larder");
    let varnish = VarnishFields { xid: turn.state.xid, found: None, ranges: false };
    response.headers.push_with(HeaderId::XVarnish, |out| varnish.write(out));
    response.no_reason = turn.said.reason.as_ref().is_some_and(|reason| reason.is_empty());
    response.reason = turn.said.reason.as_deref().unwrap_or_default().to_vec();
    let do_esi = !turn.state.no_esi;
    let mut state = RespState { status: code, time: env.time(), do_esi, ..RespState::default() };
    let resp = Some((&mut response, &mut state));
    match turn.run(env, Sub::Synth, ClientVariables { resp, ..ClientVariables::default() }) {
        Action::Restart
            if u64::from(turn.state.restarts) <= env.live.vcl.params.number(Param::MaxRestarts) =>
        {
            return Err(RequestStep::Restart);
        }
        Action::Fail(_) => return Ok(failed(turn, env)),
        _ if is_interim(state.status) => return Ok(failed(turn, env)),
        _ => {}
    }
    if has_too_many_fields(env, &response) {
        return Ok(failed(turn, env));
    }
    response.status = sent_status(state.status);
    let body = ReplyBody::from(Bytes::from(state.body));
    let body = body.answering(&env.asked.method, response.status);
    let mut reply = bare(response.status, body, CacheOutcome::Synthetic);
    if reply.status == Status::OK {
        let rules = ConditionRules::Varnish { now_s: env.now.unix_secs(), ranges: true };
        let selection = Selection { request: &turn.req, method: &env.asked.method, rules };
        selection.cut(|| None, &mut reply);
    }
    own_head(turn, &mut reply, response);
    finish(turn, env, &mut reply);
    Ok(reply)
}

/// The reply if `vcl_synth` fails too: 500 without a head, as in Varnish.
fn failed<S: StepHost>(turn: &mut ProgramRequest, env: &StepContext<'_, S>) -> Reply {
    turn.close = true;
    env.host.note_unanswered();
    let response = Response::new(Status::INTERNAL_SERVER_ERROR);
    let status = response.status;
    let mut reply = bare(status, Bytes::new().into(), CacheOutcome::Synthetic);
    own_head(turn, &mut reply, response);
    finish(turn, env, &mut reply);
    reply
}

/// Returns true if a program's head exceeds `http_max_hdr` fields.
fn has_too_many_fields<S: StepHost>(env: &StepContext<'_, S>, response: &Response) -> bool {
    let most = env.live.limits.header_count.saturating_add(ADDED);
    let is_beyond = response.headers.len() as u64 > most;
    if is_beyond {
        env.host.limit(base::Limit::HeaderCount);
    }
    is_beyond
}

/// Returns true if clients may request ranges of a response of this status.
fn offers_ranges<S: StepHost>(env: &StepContext<'_, S>, status: Status) -> bool {
    status == Status::OK && has_ranges(env)
}

/// Adds the fields that Varnish adds before `vcl_deliver`.
fn announce<S: StepHost>(
    env: &StepContext<'_, S>,
    response: &mut Response,
    varnish: VarnishFields,
    age_s: u64,
) {
    let headers = &mut response.headers;
    headers.push_with(HeaderId::XVarnish, |out| varnish.write(out));
    headers.push_with(HeaderId::Age, |out| number(out, age_s));
    add_via(headers, Version::Http11, env.live.announce.pseudonym.as_str());
    if varnish.ranges {
        headers.push(HeaderId::AcceptRanges, b"bytes");
    }
}

/// Returns true if replies are cut to ranges.
fn has_ranges<S: StepHost>(env: &StepContext<'_, S>) -> bool {
    env.live.vcl.params.is_on(Param::HttpRangeSupport)
}

/// Sets the form of the reply through `give`, and narrows it to the conditions and ranges of the
/// request, after `vcl_deliver`.
fn narrow<S: StepHost>(
    turn: &ProgramRequest,
    env: &StepContext<'_, S>,
    validators: &Validators<'_>,
    give: impl FnOnce(&mut ReplyBody),
    ranges: bool,
    reply: &mut Reply,
) {
    let now_s = env.now.unix_secs();
    let req = dates::conditions(&turn.req, now_s, &env.live.vcl.params);
    let rules = ConditionRules::Varnish { now_s, ranges };
    let selection = Selection { request: &req, method: &env.asked.method, rules };
    selection.select(validators, || false, give, || None, reply);
}

/// A reply whose head is set last.
fn bare(status: Status, body: ReplyBody, served: CacheOutcome) -> Reply {
    Reply::new(status, HeadSource::Owned(Box::new(Response::new(status))), body, served)
}

/// Sets a head on the reply; Connection is written by the engine.
fn own_head(turn: &mut ProgramRequest, reply: &mut Reply, mut response: Response) {
    let wants_close = response.headers.values(HeaderId::Connection).any(|value| {
        value.split(|b| *b == b',').any(|v| v.trim_ascii().eq_ignore_ascii_case(b"close"))
    });
    turn.close |= wants_close;
    if response.status != reply.status {
        response.status = reply.status;
        response.no_reason = false;
        response.reason.clear();
        if reply.status == Status::RANGE_NOT_SATISFIABLE {
            response.reason.extend_from_slice(b"Requested Range Not Satisfiable");
        }
    }
    reply.head = HeadSource::Owned(Box::new(response));
}

impl ProgramRequest {
    /// A reply without a subroutine.
    pub(crate) fn signed<S: StepHost>(
        &mut self,
        env: &StepContext<'_, S>,
        mut reply: Reply,
    ) -> Reply {
        finish(self, env, &mut reply);
        reply
    }
}

/// Sets the parts that all replies share.
fn finish<S: StepHost>(turn: &mut ProgramRequest, env: &StepContext<'_, S>, reply: &mut Reply) {
    reply.close |= turn.close;
    reply.about.key = turn.key.hash();
    let mut program_trace = turn.program_trace();
    if env.host.is_followed() {
        program_trace.req = Some(Box::new(turn.req.clone()));
    }
    reply.about.program_trace = Some(program_trace);
    env.sign(reply);
}

fn served<S: StepHost>(
    turn: &ProgramRequest,
    env: &StepContext<'_, S>,
    object: &Object,
    fetched: bool,
) -> CacheOutcome {
    match age(turn, env, object) {
        Age::Fresh if turn.is_hit() => CacheOutcome::Hit,
        _ if turn.is_hit() => CacheOutcome::Stale,
        // The stored response, confirmed by the backend.
        _ if !fetched => CacheOutcome::Revalidated,
        _ => {
            let (reason, stored) = (turn.missed(), object.is_live());
            CacheOutcome::Fetched { reason, stored, collapsed: false }
        }
    }
}
