//! Fetch under a program: the judge with the steps of Varnish's `cache_fetch.c`, from the backend
//! request to the stored and delivered response.

use std::cell::RefCell;
use std::sync::Arc;

use base::Limit;
use cache::Record;
use codec::Coding;
use message::date::HttpDate;
use message::store::{NotStored, Permit};
use message::{Framing, HeaderId, Method, Request, Response, Status};
use origin::Exchange;
use vcl::backend::Leaf;
use vcl::counts::{Count, Counts};
use vcl::ctx::{Bereq, BereqState, Beresp, BerespState, Ctx, Obj, Session, Task};
use vcl::params::Param;
use vcl::program::Instance;
use vcl::rules::filters::{self, Recoding};
use vcl::rules::heads;
use vcl::rules::lifetime::{self, Lifetime};
use vcl::rules::status::{is_interim, sent_status, usual_reason};
use vcl::sub::{Action, Sub, SyntheticStatus};
use vcl::trace::{LabelSwitch, LogLine, ProgramTrace, SubroutineRun, number};

use super::call::seconds;
use super::world::{ProgramWorld, RunReason};
use super::{backend_request, loop_detection, refresh, storages};
use crate::body_transfer::TransferOutcome;
use crate::fetch::{Attempt, CollectedBody, Fetch, Judge, ResponseBodySource, ResponseFate};
use crate::form;
use crate::recode::BodyRecoding;
use crate::state::assemble::Instructions;
use crate::state::tier::Lead;
use crate::state::vcl::link::BackendOrigin;
use crate::state::vcl::{OutstandingRequest, ProgramRequest};
use crate::verdict::RevalidationJudge;

/// A program's report to the request that caused a fetch.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) ran: Vec<SubroutineRun>,
    pub(crate) lines: Vec<LogLine>,
    /// The limit that the program reached.
    pub(crate) limit: Option<Limit>,
}

impl ProgramRequest {
    /// Takes over what the subroutines of its fetch have done.
    pub(super) fn take_report(&mut self, Report { ran, lines, limit }: Report) {
        let own = self.lines.get_mut();
        self.ran.extend(ran.into_iter().map(|ran| ran.after(own.len())));
        own.extend(lines);
        self.task.limit = limit.or(self.task.limit);
    }
}

/// The fetch failed; the client gets an error.
pub(crate) struct FetchAbort;

/// Facts about a passing response for its delivery.
pub(crate) struct PassingFacts {
    /// Times in seconds since its arrival.
    pub(crate) times: Lifetime,
    /// Its arrival, in monotonic milliseconds.
    pub(crate) came_ms: u64,
    pub(crate) uncacheable: bool,
    /// The number of the fetch.
    pub(crate) xid: u64,
    /// The request was passed: the backend evaluated ranges and conditions.
    pub(crate) private: bool,
    /// The instructions of a page.
    pub(crate) page: Option<Arc<Instructions>>,
}

/// A program's state during a fetch.
pub(crate) struct ProgramJudge {
    pub(crate) instance: Arc<Instance>,
    pub(crate) counts: Arc<Counts>,
    pub(crate) session: Session,
    pub(crate) task: Task,
    /// The original `bereq`, for `std.rollback`.
    pub(crate) original: Request,
    pub(crate) state: BereqState,
    pub(crate) key: Box<[u8]>,
    /// The client's request in the form that the response's note keeps.
    pub(crate) asked: Box<[u8]>,
    /// The mark of a request at a backend.
    pub(crate) sent: Option<OutstandingRequest>,
    /// The backend that was asked last.
    pub(crate) leaf: Option<Arc<Leaf>>,
    pub(crate) lines: RefCell<Vec<LogLine>>,
    pub(crate) ran: Vec<SubroutineRun>,
}

/// The parsing of a body for instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InstructionParsing {
    No,
    Yes,
    /// The page is assembled in gzip, for clients that accept it.
    Gzipped,
}

/// The head of a backend's response or of its substitute.
pub(crate) struct BackendResponseHead {
    pub(crate) response: Response,
    pub(crate) state: BerespState,
    /// Seconds of hit-for-pass.
    pub(crate) pass_s: Option<f64>,
    /// The pending recoding of the body.
    pub(crate) recode: BodyRecoding,
    /// The coding of the body after that.
    pub(crate) coding: Coding,
    /// The body arrived in another coding.
    pub(crate) recoded: bool,
    /// The pending parsing of the body.
    pub(crate) reading: InstructionParsing,
    /// The parsed instructions.
    pub(crate) page: Option<Arc<Instructions>>,
}

/// Variables that a subroutine of the backend's side sees beside `bereq`: `beresp` and `obj_stale`.
#[derive(Default)]
pub(super) struct BackendVariables<'a> {
    pub(super) beresp: Option<Beresp<'a>>,
    pub(super) obj: Option<&'a Obj<'a>>,
}

impl Judge for ProgramJudge {
    type Instead = FetchAbort;
    type Facts = PassingFacts;
    type Pending = BackendResponseHead;
    type Report = Report;

    // `obj.hits`, as Varnish counts.
    const COUNTS_ON: bool = false;

    fn ends_with_client(&self, fetch: &Fetch) -> bool {
        self.is_private(fetch) && self.original.method.is_safe()
    }

    /// The program has not seen the response and chosen a storage.
    fn sinks(&self) -> cache::DemotionPolicy {
        cache::DemotionPolicy::ByMerit
    }

    /// `vcl_backend_fetch`.
    fn ask(&mut self, fetch: &mut Fetch) -> Attempt<Self> {
        let number = self.state.xid.to_string();
        let shared = Arc::clone(&fetch.core.shared);
        self.sent = None;
        if self.state.retries > 0 {
            loop_detection::leave_own_numbers(&mut fetch.request.headers, &shared.vcl.xids);
            refresh::leave_conditions(fetch);
        }
        let led = fetch.lead.as_ref().map(|_| fetch.key_hash);
        self.sent = Some(OutstandingRequest::new(&shared.vcl.xids, self.state.xid, led));
        fetch.request.headers.push(HeaderId::XVarnish, number.as_bytes());
        match self.call(fetch, Sub::BackendFetch, BackendVariables::default()) {
            Action::Fetch => {}
            Action::Error(said) => return Attempt::Fate(self.error(fetch, Some(said))),
            action => return Attempt::Fate(Self::give_up(fetch, &action)),
        }
        let Some(leaf) = self.resolve(fetch) else {
            return Attempt::Fate(self.fail(fetch, "No backend"));
        };
        fetch.note(|trace| *trace.backend.borrow_mut() = Some(Arc::clone(&leaf)));
        if !leaf.is_healthy() {
            self.count(Count::BackendUnhealthy);
            BackendOrigin::of(&leaf).inspect(|connected| connected.turn_away());
            let why = format!("backend {}: unhealthy", leaf.name);
            return Attempt::Fate(self.fail(fetch, &why));
        }
        match backend_request::prepare(self, fetch, &leaf) {
            Ok(target) => Attempt::Send(target),
            Err(why) => Attempt::Fate(self.fail(fetch, &why)),
        }
    }

    fn answered(&mut self, fetch: &mut Fetch, exchange: Box<Exchange>) -> ResponseFate<Self> {
        self.count(Count::BackendReq);
        self.count(kind_of(&fetch.request.method, &exchange));
        self.respond(fetch, exchange)
    }

    fn unanswered(&mut self, fetch: &mut Fetch, error: &origin::Error) -> ResponseFate<Self> {
        self.count(match error {
            origin::Error::QueueFull { .. } => Count::BackendBusy,
            error if error.is_before_sending() => Count::BackendFail,
            _ => Count::BackendReq,
        });
        let name = self.leaf.as_ref().map_or("", |leaf| &leaf.name);
        let why = format!("backend {name}: {error}");
        self.fail(fetch, &why)
    }

    fn collected(
        &mut self,
        fetch: &mut Fetch,
        pending: BackendResponseHead,
        body: Result<CollectedBody, String>,
    ) -> ResponseFate<Self> {
        match body {
            Ok(whole) => {
                let mut answer = pending;
                if answer.reading != InstructionParsing::No {
                    answer.page = self.read(fetch, &whole.bytes, answer.reading);
                }
                if answer.reading == InstructionParsing::Gzipped && answer.page.is_none() {
                    // The page has no instruction, so it is sent like other gzip bodies.
                    answer.reading = InstructionParsing::No;
                    if let Some(recode) = self.gzip_recoding(fetch, Some(whole.bytes.len() as u64))
                    {
                        answer.coding = Coding::Gzip;
                        let (whole, pending) = (Box::new(whole), Box::new(answer));
                        return ResponseFate::Recode { whole, recode, pending };
                    }
                    answer.recoded = false;
                    heads::gunzip(&mut answer.response.headers);
                }
                self.conclude(fetch, answer, ResponseBodySource::Whole(Box::new(whole)))
            }
            Err(why) => self.fail(fetch, &why),
        }
    }

    fn judge_again(&self, fetch: &Fetch, record: &Record) -> Result<Permit, NotStored> {
        RevalidationJudge::Program.judge(record, fetch.now())
    }

    fn found_file(&mut self, fetch: &mut Fetch, _: Vec<u8>) -> ResponseFate<Self> {
        // Backends have no files beside them here.
        self.fail(fetch, "a file answers in place of the backend")
    }

    fn carried(&mut self, outcome: &TransferOutcome) {
        if outcome.end.is_failure() {
            self.count(Count::FetchFailed);
        }
    }

    fn report(&mut self) -> Report {
        let (ran, lines) = (std::mem::take(&mut self.ran), self.lines.take());
        Report { ran, lines, limit: self.task.limit }
    }

    fn program_trace(&mut self, report: Report) -> Option<Box<ProgramTrace>> {
        let Report { ran, lines, limit } = report;
        let instance = Arc::clone(&self.instance);
        Some(Box::new(ProgramTrace {
            xid: number(self.state.xid),
            session: number(self.session.xid),
            ran: ran.into(),
            lines: (!lines.is_empty()).then(|| Box::new(lines)),
            switched: Some(Box::new(LabelSwitch { instance, after: 0 })),
            limit,
            req: None,
        }))
    }
}

impl ProgramJudge {
    /// Returns true if the response cannot be stored because its request was passed.
    pub(crate) fn is_private(&self, fetch: &Fetch) -> bool {
        fetch.lead.is_none() && self.state.uncacheable
    }

    pub(crate) fn count(&self, count: Count) {
        self.counts.inc(count);
    }

    /// Logs the reason for which the fetch or this try fails.
    pub(crate) fn note_error(&self, text: &str) {
        self.lines.borrow_mut().push((vcl::ctx::Tag::FetchError, text.as_bytes().into()));
    }

    /// Logs a request of the program that is not met.
    fn note_vcl_error(&self, text: &str) {
        self.lines.borrow_mut().push((vcl::ctx::Tag::Error, text.as_bytes().into()));
    }

    /// Fails the try for this reason.
    pub(super) fn fail(&mut self, fetch: &mut Fetch, why: &str) -> ResponseFate<Self> {
        self.count(Count::FetchFailed);
        self.note_error(why);
        self.error(fetch, None)
    }

    /// Runs `sub` of the backend's side.
    pub(super) fn call(
        &mut self,
        fetch: &mut Fetch,
        sub: Sub,
        variables: BackendVariables<'_>,
    ) -> Action {
        let action = self.lend(fetch, sub, variables, |ctx| ctx.instance.run(ctx));
        let lines = self.lines.get_mut().len();
        self.ran.push(SubroutineRun::new(sub, action.verb(), self.task.at, lines));
        action
    }

    /// The backend to ask; `None` without a healthy one.
    pub(crate) fn resolve(&mut self, fetch: &mut Fetch) -> Option<Arc<Leaf>> {
        let backend = self.state.backend.clone();
        let variables = BackendVariables::default();
        self.leaf = self.lend(fetch, Sub::BackendFetch, variables, |ctx| backend.resolve(ctx));
        self.leaf.clone()
    }

    /// Lends `then` the state of a subroutine of the backend's side.
    fn lend<R>(
        &mut self,
        fetch: &mut Fetch,
        sub: Sub,
        BackendVariables { beresp, obj }: BackendVariables<'_>,
        then: impl FnOnce(&mut Ctx<'_>) -> R,
    ) -> R {
        let now = fetch.now();
        let (shared, live) = (&fetch.core.shared, &fetch.live);
        let kept = fetch.upload.kept();
        let counters = RunReason::Core(&self.counts, &fetch.core.counters);
        let world = ProgramWorld::new(shared, live, counters, now, kept, &self.lines);
        then(&mut Ctx {
            sub,
            instance: &self.instance,
            environment: &world,
            now: seconds(now),
            session: &mut self.session,
            task: &mut self.task,
            req: None,
            req_top: None,
            bereq: Some(Bereq {
                head: &mut fetch.request,
                state: &mut self.state,
                original: Some(&self.original),
                key: &self.key,
            }),
            beresp,
            obj,
            resp: None,
            key: None,
        })
    }

    /// `vcl_backend_response`.
    fn respond(&mut self, fetch: &mut Fetch, exchange: Box<Exchange>) -> ResponseFate<Self> {
        let now = fetch.now();
        let mut response = exchange.response.clone();
        if !response.headers.contains(HeaderId::Date) {
            let date = HttpDate::new(now.unix_secs());
            response.headers.push(HeaderId::Date, date.as_bytes());
        }
        heads::collect(&mut response.headers, HeaderId::CacheControl);
        heads::collect(&mut response.headers, HeaderId::Vary);
        let private = self.is_private(fetch);
        let times = lifetime_of(fetch, &response, private);
        let was_304 = response.status == Status::NOT_MODIFIED && !private;
        let has_content = !was_304 && has_content(exchange.framing);
        let mut body = ResponseBodySource::Exchange(exchange);
        let mut state = self.begin_state(fetch, &response, has_content, times);
        state.was_304 = was_304;
        if was_304 {
            body = match self.refresh(fetch, &mut response, &mut state) {
                Ok(stored) => stored,
                Err(fate) => return fate,
            };
        }
        let beresp = Some(Beresp { head: &mut response, state: &mut state });
        let variables = BackendVariables { beresp, obj: None };
        let mut action = self.call(fetch, Sub::BackendResponse, variables);
        self.refuse_interim(&mut action, state.status);
        if private || state.uncacheable {
            fetch.passage.bytes = transit_bytes(fetch, &state);
        }
        // Once set, it holds for the rest of the fetch.
        self.state.uncacheable = state.uncacheable || matches!(action, Action::Pass(_));
        let ((recode, coding), reading) = match (&body, &fetch.old) {
            (ResponseBodySource::Stored(_), Some(stale)) => {
                ((BodyRecoding::None, stale.flags().coding), InstructionParsing::No)
            }
            (ResponseBodySource::Exchange(exchange), _) => {
                self.filter(fetch, &mut response, &mut state, exchange.framing)
            }
            _ => ((BodyRecoding::None, Coding::Identity), InstructionParsing::No),
        };
        let recoded = match (&body, &fetch.old) {
            (ResponseBodySource::Stored(_), Some(stale)) => stale.flags().coded_here,
            _ => recode.changes() || reading == InstructionParsing::Gzipped,
        };
        let (pass_s, page) = (None, None);
        let mut answer =
            BackendResponseHead { response, state, pass_s, recode, coding, recoded, reading, page };
        if matches!(action, Action::Deliver | Action::Pass(_))
            && let Some(why) = self.why_useless(fetch, &answer)
        {
            return self.fail(fetch, why);
        }
        match action {
            Action::Deliver => self.settle(fetch, answer, body),
            Action::Pass(seconds) => {
                let state = &mut answer.state;
                (state.uncacheable, state.grace, state.keep) = (true, 0.0, 0.0);
                answer.pass_s = Some(seconds.unwrap_or(state.ttl));
                self.settle(fetch, answer, body)
            }
            Action::Retry => self.try_again(fetch),
            Action::Error(said) => self.error(fetch, Some(said)),
            action => Self::give_up(fetch, &action),
        }
    }

    /// The state of a response before its program runs.
    fn begin_state(
        &self,
        fetch: &Fetch,
        response: &Response,
        has_content: bool,
        times: Lifetime,
    ) -> BerespState {
        let private = self.is_private(fetch);
        BerespState {
            status: response.status.code(),
            ttl: times.ttl,
            grace: times.grace,
            keep: times.keep,
            age: times.age,
            uncacheable: self.state.uncacheable,
            do_stream: true,
            time: seconds(fetch.now()),
            unfiltered: !has_content,
            gzip_off: !fetch.live.vcl.params.is_on(Param::HttpGzipSupport),
            storage: storages::first(&fetch.live.vcl, &fetch.core.shared.vcl.storages, private),
            backend: self.leaf.clone(),
            ..BerespState::default()
        }
    }

    /// Continues with `answer`, after its whole body if the program needs that.
    fn settle(
        &self,
        fetch: &Fetch,
        mut answer: BackendResponseHead,
        body: ResponseBodySource,
    ) -> ResponseFate<Self> {
        match body {
            // As in Varnish, a page is parsed for its fragments first.
            ResponseBodySource::Exchange(exchange)
                if !answer.state.do_stream || answer.reading != InstructionParsing::No =>
            {
                let recode = std::mem::take(&mut answer.recode);
                ResponseFate::Collect { exchange, recode, pending: Box::new(answer) }
            }
            body => self.conclude(fetch, answer, body),
        }
    }

    /// Parses a page's instructions; `None` if it has none.
    fn read(
        &self,
        fetch: &Fetch,
        bytes: &[u8],
        reading: InstructionParsing,
    ) -> Option<Arc<Instructions>> {
        let is_gzipped = reading == InstructionParsing::Gzipped;
        let page = Instructions::of_new(&fetch.core, &fetch.live, bytes, is_gzipped);
        let mut lines = self.lines.borrow_mut();
        for remark in page.remarks().list() {
            lines.push((vcl::ctx::Tag::EsiXmlError, remark.to_string().as_bytes().into()));
        }
        (!page.is_plain()).then_some(page)
    }

    /// Decides the recoding of the body by `beresp.filters`, and adapts the head. Returns the
    /// recoding (none without memory for it), the coding after it, and the parsing of instructions.
    fn filter(
        &self,
        fetch: &Fetch,
        response: &mut Response,
        state: &mut BerespState,
        framing: Framing,
    ) -> ((BodyRecoding, Coding), InstructionParsing) {
        let filters = Beresp { head: response, state }.filters();
        let headers = &mut response.headers;
        if !has_content(framing) {
            headers.remove(HeaderId::ContentEncoding);
            return ((BodyRecoding::None, Coding::Identity), InstructionParsing::No);
        }
        // A part (206) is not recoded.
        if response.status == Status::PARTIAL_CONTENT {
            return ((BodyRecoding::None, Coding::Identity), InstructionParsing::No);
        }
        if filters::has_esi_filter(&filters) {
            let (recode, reading) = self.plain_page(response, &filters);
            return ((recode, Coding::Identity), reading);
        }
        let headers = &mut response.headers;
        let change = match filters::coding_of(&filters, headers.value(HeaderId::ContentEncoding)) {
            Recoding::None => (BodyRecoding::None, Coding::Identity),
            Recoding::TestGunzip => {
                self.count(Count::NTestGunzip);
                heads::keep_gzip(headers);
                (BodyRecoding::Test(Coding::Gzip), Coding::Gzip)
            }
            // A decoded and encoded body differs only in its length.
            Recoding::Regzip => {
                self.count(Count::NGunzip);
                self.count(Count::NGzip);
                heads::gzip(headers);
                (BodyRecoding::Test(Coding::Gzip), Coding::Gzip)
            }
            Recoding::Gunzip => {
                self.count(Count::NGunzip);
                heads::gunzip(headers);
                (BodyRecoding::Decode(Coding::Gzip), Coding::Identity)
            }
            Recoding::Gzip => match self.gzip_recoding(fetch, framing.length()) {
                Some(recode) => {
                    self.count(Count::NGzip);
                    heads::gzip(headers);
                    (recode, Coding::Gzip)
                }
                None => (BodyRecoding::None, Coding::Identity),
            },
        };
        (change, InstructionParsing::No)
    }

    /// The encoding of a body of this length, if known; `None` without memory for it.
    fn gzip_recoding(&self, fetch: &Fetch, length: Option<u64>) -> Option<BodyRecoding> {
        let level = fetch.live.vcl.params.number(Param::GzipLevel);
        let settings = codec::gzip(u8::try_from(level).unwrap_or(u8::MAX));
        let memory = fetch.core.shared.cache.memory();
        let recode = BodyRecoding::encode(form::sized(settings, length), memory);
        if recode.is_none() {
            fetch.core.counters.limit(Limit::ClientMemory);
            self.note_vcl_error("no memory to compress the body (limit: client_memory)");
        }
        recode
    }

    /// The recoding of a page's body that is parsed, and so stored without a coding; its head names
    /// the coding that is sent.
    fn plain_page(
        &self,
        response: &mut Response,
        filters: &[u8],
    ) -> (BodyRecoding, InstructionParsing) {
        let recode = match heads::is_gzip(response) {
            true => {
                self.count(Count::NGunzip);
                heads::gunzip(&mut response.headers);
                BodyRecoding::Decode(Coding::Gzip)
            }
            false => BodyRecoding::None,
        };
        if !filters::has_filter(filters, b"esi_gzip") {
            return (recode, InstructionParsing::Yes);
        }
        self.count(Count::NGzip);
        heads::gzip(&mut response.headers);
        (recode, InstructionParsing::Gzipped)
    }

    /// The reason for which `answer` is unusable, whatever the program decides: its body is gone,
    /// or it is an unrequested part.
    fn why_useless(&self, fetch: &Fetch, answer: &BackendResponseHead) -> Option<&'static str> {
        let is_part = answer.response.headers.contains(HeaderId::ContentRange)
            && !self.original.headers.contains(HeaderId::Range)
            && fetch.live.vcl.params.is_on(Param::HttpRangeSupport);
        if answer.state.cut_off {
            return Some("No backend connection (rollback?)");
        }
        is_part.then_some("Unexpected content-range header")
    }

    /// Fails a program that sends an interim status as a final one.
    fn refuse_interim(&self, action: &mut Action, status: u16) {
        if matches!(action, Action::Deliver | Action::Pass(_)) && is_interim(status) {
            self.note_vcl_error(&format!("no final answer can have the status {status}"));
            *action = Action::Fail("an interim status".into());
        }
    }

    /// `return (retry)` after a backend's response.
    pub(super) fn try_again(&mut self, fetch: &mut Fetch) -> ResponseFate<Self> {
        match self.retry(fetch, "Too many retries, delivering 503") {
            Retry::Now => ResponseFate::Try,
            Retry::TooMany => self.error(fetch, None),
            Retry::Impossible => Self::end(fetch),
        }
    }

    /// Begins one more try, if permitted; otherwise logs `too_many`.
    fn retry(&mut self, fetch: &Fetch, too_many: &str) -> Retry {
        let max = fetch.live.vcl.params.number(Param::MaxRetries);
        self.state.retries += 1;
        fetch.note(|trace| trace.made_status.set(0));
        if u64::from(self.state.retries) > max {
            self.note_vcl_error(too_many);
            return Retry::TooMany;
        }
        if fetch.upload.is_spent() {
            self.note_error("Retry not possible, req.body not cached");
            return Retry::Impossible;
        }
        self.state.xid = fetch.core.shared.vcl.xids.next();
        Retry::Now
    }

    pub(super) fn give_up(fetch: &mut Fetch, action: &Action) -> ResponseFate<Self> {
        debug_assert!(matches!(action, Action::Fail(_) | Action::Abandon), "{action:?}");
        Self::end(fetch)
    }

    /// Ends the fetch without a response. Waiters look up again and fetch for themselves.
    fn end(fetch: &mut Fetch) -> ResponseFate<Self> {
        if let Some(lead) = fetch.lead.take() {
            lead.refuse(None);
        }
        ResponseFate::Instead(FetchAbort, None)
    }

    /// `vcl_backend_error`.
    pub(super) fn error(
        &mut self,
        fetch: &mut Fetch,
        said: Option<SyntheticStatus>,
    ) -> ResponseFate<Self> {
        let now = fetch.now();
        let (code, reason) = match said {
            Some(said) => (said.status, said.reason.map(|reason| reason.to_vec())),
            None => (503, Some(b"Backend fetch failed".to_vec())),
        };
        let status = sent_status(code);
        fetch.note(|trace| trace.made_status.set(code));
        let mut response = Response::new(status);
        response.reason = reason.unwrap_or_else(|| usual_reason(status).to_vec());
        response.headers.push(HeaderId::Date, HttpDate::new(now.unix_secs()).as_bytes());
        response.headers.push(HeaderId::Server, b"Larder");
        // Waiters need not try one after the other.
        let waited_for = fetch.lead.as_ref().is_some_and(Lead::is_watched);
        let (ttl, grace, keep) = if waited_for { (1.0, 5.0, 5.0) } else { (0.0, 0.0, 0.0) };
        let mut state = BerespState {
            status: code,
            ttl,
            grace,
            keep,
            uncacheable: self.state.uncacheable,
            do_stream: true,
            time: seconds(now),
            ..BerespState::default()
        };
        let beresp = Some(Beresp { head: &mut response, state: &mut state });
        let mut action =
            self.call(fetch, Sub::BackendError, BackendVariables { beresp, obj: None });
        self.refuse_interim(&mut action, state.status);
        self.state.uncacheable = state.uncacheable;
        match action {
            Action::Deliver => {
                let bytes = std::mem::take(&mut state.body).into();
                let body =
                    ResponseBodySource::Whole(Box::new(CollectedBody { bytes, plain: None }));
                let (recode, coding) = (BodyRecoding::None, Coding::Identity);
                let (pass_s, recoded, reading, page) = (None, false, InstructionParsing::No, None);
                let answer = BackendResponseHead {
                    response,
                    state,
                    pass_s,
                    recode,
                    coding,
                    recoded,
                    reading,
                    page,
                };
                self.settle(fetch, answer, body)
            }
            Action::Retry => match self.retry(fetch, "Too many retries, failing") {
                Retry::Now => ResponseFate::Try,
                Retry::TooMany | Retry::Impossible => Self::end(fetch),
            },
            action => Self::give_up(fetch, &action),
        }
    }
}

/// The window of a body that is not stored: as the program or the parameter sets it, within the
/// common limit.
fn transit_bytes(fetch: &Fetch, state: &BerespState) -> u64 {
    let own = state.transit_buffer.and_then(|bytes| u64::try_from(bytes).ok());
    match own.unwrap_or_else(|| fetch.live.vcl.params.number(Param::TransitBuffer)) {
        0 => fetch.passage.bytes,
        most => fetch.passage.bytes.min(most),
    }
}

/// The result of asking for one more try.
enum Retry {
    Now,
    TooMany,
    /// The body of the request was sent and is not kept.
    Impossible,
}

/// The lifetime of a response before its program runs; a `private` one has an age only.
fn lifetime_of(fetch: &Fetch, response: &Response, private: bool) -> Lifetime {
    if private {
        return Lifetime { age: lifetime::age(&response.headers), ..Lifetime::default() };
    }
    let (status, time) = (response.status.code(), seconds(fetch.now()));
    lifetime::of(status, &response.headers, time, &fetch.live.vcl.params)
}

/// Returns true if a body of this framing may have bytes.
fn has_content(framing: Framing) -> bool {
    !matches!(framing, Framing::None | Framing::Length(0))
}

/// Returns the counter of a response to `method`, by its status and framing.
fn kind_of(method: &Method, exchange: &Exchange) -> Count {
    match (exchange.response.status.code(), exchange.framing) {
        _ if *method == Method::Head => Count::FetchHead,
        (204, _) => Count::Fetch204,
        (304, _) => Count::Fetch304,
        (_, Framing::None | Framing::Length(0)) => Count::FetchNone,
        (_, Framing::Length(_)) => Count::FetchLength,
        (_, Framing::Chunked) => Count::FetchChunked,
        (_, Framing::UntilClose) => Count::FetchEof,
    }
}
