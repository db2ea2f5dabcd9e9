//! One fetch: the steps of Varnish's `cache_fetch.c`, from backend request to what is delivered and
//! stored.
//!
//! A fetch is a task of its own. The client that caused it may leave without harm to those that
//! wait.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use base::{Limit, Now};
use bytes::Bytes;
use cache::{Lead, Object, Passage, Reader};
use message::date::HttpDate;
use message::{Framing, HeaderId, Method, Request, Response, Status};
use origin::Exchange;
use tokio::sync::oneshot;
use vcl::backend::Leaf;
use vcl::ctx::{Bereq, BereqState, Beresp, BerespState, Ctx, Session, Task};
use vcl::params::Param;
use vcl::program::Instance;
use vcl::sub::{Action, Said, Sub};

use super::call::seconds;
use super::counts::{Count, Counts};
use super::delivery::{Source, is_interim, may_confirm, usual_reason};
use super::heads::{self, OneHop};
use super::lifetime::{self, Lifetime};
use super::link::Connected;
use super::send::{self, Upload};
use super::told::{Ran, Switched, Told, number};
use super::world::{Line, Sight};
use super::xids::Sent;
use super::{storages, store};
use crate::ask::LiveRef;
use crate::core::Core;
use crate::finish::Background;
use crate::trace::Trace;

/// What a fetch came to, as soon as its head is known.
pub(crate) enum Got {
    /// This is delivered.
    Answer(Source),
    /// Nothing: the client is told so.
    Failed,
}

/// What the fetch has done, for who waits for it.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) ran: Vec<Ran>,
    pub(crate) lines: Vec<Line>,
    /// The limit that its program has reached.
    pub(crate) limit: Option<Limit>,
}

/// One fetch and all it needs, independent of the client's connection.
pub(crate) struct Job {
    pub(crate) core: Rc<Core>,
    pub(crate) live: LiveRef,
    pub(crate) instance: Arc<Instance>,
    pub(crate) counts: Arc<Counts>,
    pub(crate) session: Session,
    pub(crate) task: Task,
    pub(crate) bereq: Request,
    /// `bereq` as it was made, for `std.rollback`.
    pub(crate) original: Request,
    pub(crate) state: BereqState,
    pub(crate) key: Box<[u8]>,
    pub(crate) key_hash: u64,
    /// What it was asked for, as it is kept with what it brings.
    pub(crate) asked: Box<[u8]>,
    pub(crate) lead: Option<Lead>,
    /// The stored object that the answer replaces, and that the origin may confirm.
    pub(crate) stale: Option<Arc<Object>>,
    pub(crate) upload: Upload,
    /// What a passing body may be ahead of its client.
    pub(crate) passage: Passage,
    pub(crate) front: send::Front,
    /// Its request is with a backend.
    pub(crate) sent: Option<Sent>,
    pub(crate) trace: Option<Rc<Trace>>,
    pub(crate) lines: RefCell<Vec<Line>>,
    pub(crate) ran: Vec<Ran>,
    /// What tells of it where no client waits.
    pub(crate) background: Option<Background>,
    pub(crate) tell: Option<oneshot::Sender<(Got, Report)>>,
}

/// A backend's answer, or one made in its stead.
pub(crate) struct Answer {
    pub(crate) response: Response,
    pub(crate) state: BerespState,
    pub(crate) body: Body,
    /// Seconds for which requests go past the store.
    pub(crate) pass_s: Option<f64>,
    /// What of it is not passed on.
    pub(crate) one_hop: OneHop,
    /// The body is in gzip.
    pub(crate) gzip: bool,
}

/// Where an answer's body comes from.
pub(crate) enum Body {
    Exchange(Box<Exchange>),
    Whole(Bytes),
    /// What is stored, confirmed.
    Stale(Reader),
}

/// What comes next.
enum Step {
    Send,
    /// `vcl_backend_error`; none for what is usual.
    Error(Option<Said>),
    Use(Box<Answer>),
    Fail,
}

/// Starts `job`; what it comes to arrives on the channel.
pub(crate) fn start(mut job: Box<Job>) -> oneshot::Receiver<(Got, Report)> {
    let (tell, told) = oneshot::channel();
    job.tell = Some(tell);
    // Boxed, it is written once; the runtime copies what it is given at every turn of its life.
    tokio::task::spawn_local(Box::pin(async move {
        job.count(Count::SFetch);
        job.run().await;
    }));
    told
}

impl Job {
    /// Whether nothing of it is stored: its request was passed.
    pub(crate) fn is_private(&self) -> bool {
        self.lead.is_none() && self.state.uncacheable
    }

    pub(crate) fn now(&self) -> Now {
        self.core.now()
    }

    pub(crate) fn count(&self, count: Count) {
        self.counts.inc(count);
    }

    /// Puts into the log why the fetch, or this try of it, comes to nothing.
    pub(crate) fn note_error(&self, text: &str) {
        self.lines.borrow_mut().push((vcl::ctx::Tag::FetchError, text.as_bytes().into()));
    }

    /// Puts into the log what the program wants and does not get.
    fn note_vcl_error(&self, text: &str) {
        self.lines.borrow_mut().push((vcl::ctx::Tag::Error, text.as_bytes().into()));
    }

    pub(crate) fn note(&self, note: impl FnOnce(&Trace)) {
        if let Some(trace) = &self.trace {
            note(trace);
        }
    }

    /// Tells who waits.
    pub(crate) fn tell(&mut self, got: Got) -> bool {
        let (ran, lines) = (std::mem::take(&mut self.ran), self.lines.take());
        if let Some(background) = &mut self.background {
            let instance = Arc::clone(&self.instance);
            background.told = Some(Box::new(Told {
                xid: number(self.state.xid),
                session: number(self.session.xid),
                ran: ran.into(),
                lines: (!lines.is_empty()).then(|| Box::new(lines)),
                switched: Some(Box::new(Switched { instance, after: 0 })),
                limit: self.task.limit,
            }));
            return false;
        }
        let report = Report { ran, lines, limit: self.task.limit };
        self.tell.take().is_none_or(|tell| tell.send((got, report)).is_ok())
    }

    async fn run(mut self: Box<Self>) {
        let mut step = Step::Send;
        loop {
            step = match step {
                Step::Send => match self.ask_while_wanted().await {
                    Some(step) => step,
                    None => return,
                },
                Step::Error(said) => self.error(said),
                Step::Use(mut answer) => match store::hold(&self, &mut answer).await {
                    Ok(()) => return store::conclude(*self, *answer).await,
                    Err(reason) => {
                        self.count(Count::FetchFailed);
                        self.note_error(&reason);
                        Step::Error(None)
                    }
                },
                Step::Fail => {
                    // Who waits looks again, and fetches for himself.
                    if let Some(lead) = self.lead.take() {
                        lead.refuse(None);
                    }
                    self.tell(Got::Failed);
                    return;
                }
            };
        }
    }

    /// [`Job::ask`], given up when the client of a safe request that was passed has left: nobody
    /// else gains by its answer.
    async fn ask_while_wanted(&mut self) -> Option<Step> {
        let can_leave = self.is_private() && self.original.method.is_safe();
        let mut tell = self.tell.take_if(|_| can_leave);
        let left = async {
            match &mut tell {
                Some(tell) => tell.closed().await,
                None => std::future::pending().await,
            }
        };
        let step = tokio::select! {
            biased;
            step = self.ask() => step,
            () = left => return None,
        };
        self.tell = tell.or_else(|| self.tell.take());
        Some(step)
    }

    /// Runs `sub` of the backend's side.
    fn call(&mut self, sub: Sub, beresp: Option<Beresp<'_>>) -> Action {
        let action = self.lend(sub, beresp, |ctx| ctx.instance.run(ctx));
        let lines = self.lines.get_mut().len();
        self.ran.push(Ran::new(sub, action.verb(), self.task.at, lines));
        action
    }

    /// The backend to ask; none when no healthy one is there.
    pub(crate) fn resolve(&mut self) -> Option<Arc<Leaf>> {
        let backend = self.state.backend.clone();
        self.lend(Sub::BackendFetch, None, |ctx| backend.resolve(ctx))
    }

    /// Lends `then` what a subroutine of the backend's side sees.
    fn lend<R>(
        &mut self,
        sub: Sub,
        beresp: Option<Beresp<'_>>,
        then: impl FnOnce(&mut Ctx<'_>) -> R,
    ) -> R {
        let now = self.core.now();
        let shared = (&self.core.shared, &**self.live);
        let kept = self.upload.kept();
        let world =
            Sight::new(shared, Some((&self.counts, &self.core.counters)), now, kept, &self.lines);
        then(&mut Ctx {
            sub,
            instance: &self.instance,
            world: &world,
            now: seconds(now),
            session: &mut self.session,
            task: &mut self.task,
            req: None,
            req_top: None,
            bereq: Some(Bereq {
                head: &mut self.bereq,
                state: &mut self.state,
                original: Some(&self.original),
                key: &self.key,
            }),
            beresp,
            obj: None,
            resp: None,
            key: None,
        })
    }

    /// `vcl_backend_fetch`, the request, and `vcl_backend_response`.
    async fn ask(&mut self) -> Step {
        let number = self.state.xid.to_string();
        self.sent = None;
        if self.state.retries > 0 {
            heads::leave_own_numbers(&mut self.bereq.headers, &self.core.shared.vcl.xids);
        }
        let led = self.lead.as_ref().map(|_| self.key_hash);
        self.sent = Some(Sent::new(&self.core.shared, self.state.xid, led));
        self.bereq.headers.push(HeaderId::XVarnish, number.as_bytes());
        match self.call(Sub::BackendFetch, None) {
            Action::Fetch => {}
            Action::Error(said) => return Step::Error(Some(said)),
            action => return Self::give_up(action),
        }
        let Some(leaf) = self.resolve() else {
            self.count(Count::FetchFailed);
            self.note_error("No backend");
            return Step::Error(None);
        };
        self.note(|trace| *trace.backend.borrow_mut() = Some(Arc::clone(&leaf)));
        if !leaf.is_healthy() {
            self.note_error(&format!("backend {}: unhealthy", leaf.name));
            self.count(Count::BackendUnhealthy);
            Connected::of(&leaf).inspect(|connected| connected.turn_away());
            self.count(Count::FetchFailed);
            return Step::Error(None);
        }
        let exchange = match send::send(self, &leaf).await {
            Ok(exchange) => exchange,
            Err(unsent) => {
                self.count(Count::FetchFailed);
                if let Some(count) = unsent.count {
                    self.count(count);
                }
                self.note_error(&unsent.reason);
                return Step::Error(None);
            }
        };
        self.count(Count::BackendReq);
        self.count(kind_of(&self.bereq.method, &exchange));
        self.respond(exchange, leaf)
    }

    /// `vcl_backend_response`.
    fn respond(&mut self, exchange: Exchange, leaf: Arc<Leaf>) -> Step {
        let now = self.now();
        let mut response = exchange.response.clone();
        let one_hop = OneHop::of(&response.headers);
        if !response.headers.contains(HeaderId::Date) {
            let date = HttpDate::new(now.unix_secs());
            response.headers.push(HeaderId::Date, date.as_bytes());
        }
        heads::collect(&mut response.headers, HeaderId::CacheControl);
        heads::collect(&mut response.headers, HeaderId::Vary);
        let private = self.is_private();
        let times = match private {
            true => Lifetime { age: lifetime::age(&response.headers), ..Lifetime::default() },
            false => {
                let (status, time) = (response.status.code(), seconds(now));
                lifetime::of(status, &response.headers, time, &self.live.params)
            }
        };
        let mut body = Body::Exchange(Box::new(exchange));
        let was_304 = response.status == Status::NOT_MODIFIED && !private;
        if was_304 {
            let Some(stored) = self.confirm(&mut response) else { return Step::Error(None) };
            body = stored;
        }
        let mut state = BerespState {
            status: response.status.code(),
            ttl: times.ttl,
            grace: times.grace,
            keep: times.keep,
            age: times.age,
            uncacheable: self.state.uncacheable,
            do_stream: true,
            time: seconds(now),
            was_304,
            storage: storages::first(self, private),
            backend: Some(leaf),
            ..BerespState::default()
        };
        let beresp = Some(Beresp { head: &mut response, state: &mut state });
        let mut action = self.call(Sub::BackendResponse, beresp);
        self.refuse_interim(&mut action, state.status);
        // Once said it holds for all that the fetch may still come to.
        self.state.uncacheable = state.uncacheable || matches!(action, Action::Pass(_));
        let gzip = match (&body, &self.stale) {
            (Body::Stale(_), Some(stale)) => stale.flags().gzip,
            (Body::Exchange(exchange), _) => {
                heads::settle_coding(&mut response, has_content(exchange.framing))
            }
            _ => false,
        };
        let mut answer = Answer { response, state, body, pass_s: None, one_hop, gzip };
        let useless = self.why_useless(&answer);
        match action {
            Action::Deliver | Action::Pass(_) if useless.is_some() => {
                self.count(Count::FetchFailed);
                self.note_error(useless.unwrap_or_default());
                Step::Error(None)
            }
            Action::Deliver => Step::Use(Box::new(answer)),
            Action::Pass(seconds) => {
                let state = &mut answer.state;
                (state.uncacheable, state.grace, state.keep) = (true, 0.0, 0.0);
                answer.pass_s = Some(seconds.unwrap_or(state.ttl));
                Step::Use(Box::new(answer))
            }
            Action::Retry => self.retry("Too many retries, delivering 503", Step::Error(None)),
            Action::Error(said) => Step::Error(Some(said)),
            action => Self::give_up(action),
        }
    }

    /// Why `answer` cannot be used, whatever the program says of it: its body is gone, or it is a
    /// part of something although no part was asked for.
    fn why_useless(&self, answer: &Answer) -> Option<&'static str> {
        let is_part = answer.response.headers.contains(HeaderId::ContentRange)
            && !self.original.headers.contains(HeaderId::Range)
            && self.live.params.is_on(Param::HttpRangeSupport);
        if answer.state.cut_off {
            return Some("No backend connection (rollback?)");
        }
        is_part.then_some("Unexpected content-range header")
    }

    /// Has a program fail that makes a final answer of an interim status.
    fn refuse_interim(&self, action: &mut Action, status: u16) {
        if matches!(action, Action::Deliver | Action::Pass(_)) && is_interim(status) {
            self.note_vcl_error(&format!("no final answer can have the status {status}"));
            *action = Action::Fail("an interim status".into());
        }
    }

    /// Makes `response`, a 304, the stored one that it confirms, whose body is the result; none
    /// where it confirms nothing.
    fn confirm(&self, response: &mut Response) -> Option<Body> {
        let Some(stale) =
            self.stale.as_ref().filter(|stale| may_confirm(stale, self.now().mono_ms))
        else {
            self.count(Count::FetchFailed);
            self.note_error("304 response but not conditional fetch");
            return None;
        };
        let mut stored = Response::new(stale.status());
        // What was stored was written by the same engine.
        h1::parse_stored_head(stale.head(), &mut stored).ok()?;
        heads::merge(&mut response.headers, &stored.headers);
        (response.status, response.reason) = (stale.status(), stored.reason);
        Some(Body::Stale(stale.reader()))
    }

    /// One more try; `too_many` and what is logged of it where there have been enough.
    fn retry(&mut self, why: &str, too_many: Step) -> Step {
        let max = self.live.params.number(Param::MaxRetries);
        self.state.retries += 1;
        self.note(|trace| trace.made_status.set(0));
        if u64::from(self.state.retries) > max {
            self.note_vcl_error(why);
            return too_many;
        }
        if matches!(self.upload, Upload::Spent) {
            self.note_error("Retry not possible, req.body not cached");
            return Step::Fail;
        }
        self.state.xid = self.core.shared.vcl.xids.next();
        Step::Send
    }

    fn give_up(action: Action) -> Step {
        debug_assert!(matches!(action, Action::Fail(_) | Action::Abandon), "{action:?}");
        Step::Fail
    }

    /// `vcl_backend_error`.
    fn error(&mut self, said: Option<Said>) -> Step {
        let now = self.now();
        let (code, reason) = match said {
            Some(said) => (said.status, said.reason.map(|reason| reason.to_vec())),
            None => (503, Some(b"Backend fetch failed".to_vec())),
        };
        let status = super::delivery::sent_status(code);
        self.note(|trace| trace.made_status.set(code));
        let mut response = Response::new(status);
        response.reason = reason.unwrap_or_else(|| usual_reason(status).to_vec());
        response.headers.push(HeaderId::Date, HttpDate::new(now.unix_secs()).as_bytes());
        response.headers.push(HeaderId::Server, b"Larder");
        // So that those who wait need not try one after the other.
        let waited_for = self.lead.as_ref().is_some_and(Lead::is_watched);
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
        let mut action = self.call(Sub::BackendError, beresp);
        self.refuse_interim(&mut action, state.status);
        self.state.uncacheable = state.uncacheable;
        match action {
            Action::Deliver => {
                let body = Body::Whole(std::mem::take(&mut state.body).into());
                let one_hop = OneHop::default();
                Step::Use(Box::new(Answer {
                    response,
                    state,
                    body,
                    pass_s: None,
                    one_hop,
                    gzip: false,
                }))
            }
            Action::Retry => self.retry("Too many retries, failing", Step::Fail),
            action => Self::give_up(action),
        }
    }
}

/// Whether a body of this framing may have bytes.
fn has_content(framing: Framing) -> bool {
    !matches!(framing, Framing::None | Framing::Length(0))
}

/// What counts an answer to a request of `method`, as its body is framed.
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
