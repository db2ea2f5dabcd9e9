//! Tries of a request: selects server and connection, and decides on retries. A request that may
//! have been acted on must never be repeated unless it is idempotent.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

use base::{Account, Counter, Limit};
use message::{Framing, Request, Status, Upgrade, grpc};
use rt::time::Instant;

use crate::attempt::{AttemptFailure, AttemptResponse, Call, Reach};
use crate::client_ends::ClientEnds;
use crate::config::{HttpVersion, Opening, Protocol, ProxyHeader, Timeouts};
use crate::deadline::Deadline;
use crate::error::{Error, TimeoutStep};
use crate::events::Events;
use crate::exchange::{Exchange, ExchangeInput};
use crate::exchange_slots::Holder;
use crate::fastcgi_exchange::{Cgi, OriginRequestContext};
use crate::multiplex::{self, Checkout, MultiplexOpening, MultiplexedConnection, OpeningGuard};
use crate::origin::Origin;
use crate::owner::{self, Owner};
use crate::pool::{CorePool, CorePoolState};
use crate::scripts;
use crate::server::{Permit, Server};
use crate::stream::IdleCheck;
use crate::upload::{RequestBody, Upload};
use crate::upstream_connection::UpstreamConnection;

impl CorePool {
    /// Sends `request` to one of `origin`'s servers and returns after the response's head.
    ///
    /// `hash` selects the server if the origin balances by hash; `caller` supplies FastCGI's
    /// parameters about the client. `body` has the framing of `request.framing`; it is read no
    /// faster than the server receives it, and no further than needed if the server answers early.
    /// For a FastCGI server, a chunked body is spooled first.
    ///
    /// A failed try is repeated, on another server if possible, if all of this holds: the server
    /// has sent no byte; the request is idempotent, or no byte of it was sent; no byte of its body
    /// was consumed; the origin's `retries` and retry budget permit it. A retry after an idle
    /// connection turned out to be closed is free: a new connection is opened.
    ///
    /// # Errors
    /// The last try's; see [`Error`].
    pub async fn send(
        &self,
        origin: &Arc<Origin>,
        request: &Request,
        body: RequestBody<'_>,
        hash: u64,
        caller: &OriginRequestContext,
        events: &mut dyn Events,
    ) -> Result<Exchange, Error> {
        let core = &self.core;
        let mut timeouts = caller.timeouts.unwrap_or_else(|| origin.config().timeouts);
        // A later one than the origin's own has no say: that is lifted for what is not stored.
        let call_ms = grpc::timeout_ms(request).filter(|call_ms| *call_ms < timeouts.total_ms);
        timeouts.total_ms = call_ms.unwrap_or(timeouts.total_ms);
        let mut request = with_host(origin, request);
        let mut body = body;
        let mut cgi = None;
        if origin.protocol() == Protocol::FastCgi {
            match self.script(origin, &request, caller).await? {
                Ok(script) => cgi = Some(script),
                Err(answered) => return Ok(answered),
            }
            if request.framing == Framing::Chunked {
                let whole = core.spooling.take(body, caller.account.as_ref(), &core.counters).await;
                let whole = whole.map_err(Error::RequestBody);
                let whole = whole.inspect_err(|error| error.count(&core.counters))?;
                request.to_mut().framing = Framing::Length(whole.len());
                body = RequestBody::Stream(Box::new(whole));
            }
        }
        core.counters.inc(Counter::Fetches);
        origin.budget().deposit();
        let mut sender = Sender {
            core,
            origin,
            request: &request,
            account: caller.account.as_ref(),
            upload: Upload::new(&request, body, origin.protocol()),
            cgi: cgi.as_ref(),
            read_at_most: match caller.read_at_most {
                0 => usize::MAX,
                most => usize::try_from(most).unwrap_or(usize::MAX),
            },
            timeouts,
            ends: caller.ends,
            once: caller.once,
            is_timed: call_ms.is_some(),
            holder: Holder::of(caller.client, caller.ends),
            owner: caller.owner.as_ref(),
            preferred: caller.preferred,
            total: Deadline::new(TimeoutStep::Total, Instant::now(), timeouts.total_ms),
            events,
            tried: Vec::new(),
            tries: 0,
        };
        sender.send(hash).await.inspect_err(|error| error.count(&core.counters))
    }

    /// The path, relative to the root, of the file that a FastCGI origin's rules select for
    /// `request`, if it is not a script.
    pub async fn file(&self, origin: &Arc<Origin>, request: &Request) -> Option<Vec<u8>> {
        let core = &self.core;
        let scripts = origin.config().scripts.as_ref()?;
        let found = core.look_up(origin, scripts, request).await;
        match &found.target {
            fastcgi::script::ScriptTarget::File(name) => Some(name.clone()),
            _ => None,
        }
    }

    /// The script for `request`, or the response if there is no such script.
    async fn script<'a>(
        &self,
        origin: &Arc<Origin>,
        request: &Request,
        caller: &'a OriginRequestContext,
    ) -> Result<Result<Cgi<'a>, Exchange>, Error> {
        let core = &self.core;
        let config = origin.config();
        let scripts = config
            .scripts
            .as_ref()
            .ok_or_else(|| Error::NoScripts { origin: Arc::clone(origin.name()) })?;
        let found = core.look_up(origin, scripts, request).await;
        Ok(match scripts::answer(request, &found.target) {
            None => {
                let added = Arc::clone(&scripts.params);
                Ok(Cgi { found, caller, keep: config.idle_max > 0, added })
            }
            Some((response, body)) => Err(Exchange::own(response, body, origin.name())),
        })
    }
}

/// The request with the origin's own Host, if it has one.
fn with_host<'a>(origin: &Origin, request: &'a Request) -> Cow<'a, Request> {
    match origin.host_for(request) {
        None => Cow::Borrowed(request),
        Some(host) => {
            let mut request = request.clone();
            request.host.clear();
            request.host.extend_from_slice(host.as_bytes());
            request.port = None;
            Cow::Owned(request)
        }
    }
}

/// The bytes that open a new connection. Without a known client, the PROXY header says LOCAL or
/// UNKNOWN.
pub(crate) fn opening(
    opening: &Opening,
    ends: Option<ClientEnds>,
    link: &UpstreamConnection,
) -> Vec<u8> {
    let mut out = opening.preamble.to_vec();
    match (opening.proxy, ends) {
        (None, _) => {}
        (Some(ProxyHeader::V1), Some(ClientEnds { client, own })) => {
            proxyproto::write_v1(&mut out, client, own);
        }
        (Some(ProxyHeader::V2), Some(ClientEnds { client, own })) => {
            proxyproto::write_v2(&mut out, client, own);
        }
        (Some(ProxyHeader::V1), None) => match (link.stream.local(), link.peer) {
            (Some(own), Some(peer)) => proxyproto::write_v1(&mut out, own, peer),
            _ => out.extend_from_slice(b"PROXY UNKNOWN\r\n"),
        },
        (Some(ProxyHeader::V2), None) => proxyproto::write_local(&mut out),
    }
    out
}

/// A request that its server admits.
struct Admission {
    /// The server's index.
    at: usize,
    permit: Permit,
    began_us: u64,
}

impl Admission {
    fn note_answered(&self, status: Status) {
        let server = self.permit.server();
        server.answered(status, rt::now().mono_ms);
        server.waited(rt::micros().saturating_sub(self.began_us));
    }
}

/// The outcome of asking a server that may multiplex.
enum MultiplexedOutcome {
    Answered(Exchange),
    /// The server has chosen HTTP/1.1, perhaps over this connection.
    Single(Admission, Option<UpstreamConnection>),
}

/// A request being sent.
struct Sender<'a, 'b> {
    core: &'a Rc<CorePoolState>,
    origin: &'a Arc<Origin>,
    request: &'a Request,
    /// The account of the bytes that are held for it.
    account: Option<&'a Arc<Account>>,
    upload: Upload<'b>,
    cgi: Option<&'a Cgi<'a>>,
    /// The most bytes of one read.
    read_at_most: usize,
    timeouts: Timeouts,
    /// Both ends of the client's connection.
    ends: Option<ClientEnds>,
    /// The request is not repeated if an idle connection turns out to be closed.
    once: bool,
    /// The client has set the time that the exchange may take.
    is_timed: bool,
    /// The holder of its slot.
    holder: Option<Holder>,
    /// The client's connection.
    owner: Option<&'a Owner>,
    /// The server that the client was answered by before.
    preferred: Option<usize>,
    total: Deadline,
    events: &'a mut dyn Events,
    /// Servers that have failed the request.
    tried: Vec<usize>,
    tries: u32,
}

impl<'a> Sender<'a, '_> {
    async fn send(&mut self, hash: u64) -> Result<Exchange, Error> {
        loop {
            let now_ms = rt::now().mono_ms;
            let at = self
                .owned_at(now_ms)
                .or_else(|| self.preferred_at(now_ms))
                .or_else(|| self.origin.pick(hash, &self.tried, now_ms))
                .ok_or_else(|| Error::NoHealthyServer { origin: Arc::clone(self.origin.name()) })?;
            let failure = match self.ask(at).await {
                Ok(exchange) if !self.wants_another(&exchange) => return Ok(exchange),
                Ok(mut exchange) => {
                    let server = Arc::clone(&exchange.server_name);
                    let status = exchange.response.status;
                    exchange.discard();
                    self.note_retry(&Error::Unwanted { server, status });
                    continue;
                }
                Err(failure) => failure,
            };
            if failure.is_counted {
                self.origin.shared()[at].failed(&failure.error, rt::now().mono_ms);
            }
            self.tried.push(at);
            if !self.may_retry(&failure) {
                return Err(failure.error);
            }
            self.note_retry(&failure.error);
        }
    }

    /// The server to which the client owns a connection: a login that has begun continues there.
    fn owned_at(&self, now_ms: u64) -> Option<usize> {
        let owner = self.owner?;
        let mut servers = self.origin.shared().iter().enumerate();
        let (at, _) = servers.find(|(at, server)| {
            !self.tried.contains(at)
                && self.core.has_owned(server, owner)
                && server.is_healthy(now_ms)
        })?;
        Some(at)
    }

    /// The server that the client was answered by before, while it is in use.
    fn preferred_at(&self, now_ms: u64) -> Option<usize> {
        self.preferred.filter(|at| !self.tried.contains(at) && self.origin.is_usable(*at, now_ms))
    }

    /// Sends the request to the server at `at`, over an idle connection if there is one.
    async fn ask(&mut self, at: usize) -> Result<Exchange, AttemptFailure> {
        let origin = self.origin;
        let server = &origin.shared()[at];
        let unconnected = |error: &Error| server.traffic.unconnected(error);
        let (holder, counters) = (self.holder, &self.core.counters);
        let permit = server.permit(origin.config(), holder, self.total, counters).await;
        let permit = permit.inspect_err(unconnected)?;
        let mut admission = Admission { at, permit, began_us: rt::micros() };
        let mut opened = None;
        if self.multiplexes(server) {
            // Boxed: most exchanges are of HTTP/1, and their futures should not be as large.
            match Box::pin(self.ask_multiplexed(admission)).await? {
                MultiplexedOutcome::Answered(exchange) => return Ok(exchange),
                MultiplexedOutcome::Single(same, link) => (admission, opened) = (same, link),
            }
        }
        let now_ms = rt::now().mono_ms;
        let mut kept = match opened {
            Some(_) => None,
            None => self.core.checkout(server, now_ms, self.look(), self.owner),
        };
        loop {
            let reused = kept.is_some();
            let link = match kept.take().or_else(|| opened.take()) {
                Some(link) => link,
                None => self.connect(server, false).await?,
            };
            self.note_connected(server, reused);
            match self.attempt(server, link, reused).await {
                Ok(mut answer) => {
                    if self.cgi.is_none() {
                        answer.give_to(self.owner, self.request);
                    }
                    admission.note_answered(answer.response.status);
                    return Ok(Exchange::new(answer, self.input(admission, reused)));
                }
                // The server closed the idle connection meanwhile, which is not a failure.
                Err(failure) if reused && self.was_stale(&failure) => {
                    self.note_retry(&failure.error);
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Returns true if the request is sent over a connection that may carry others. A switch of
    /// protocols needs one of its own, of HTTP/1.1, and so do a login to a connection and what
    /// follows it.
    fn multiplexes(&self, server: &Arc<Server>) -> bool {
        server.http != HttpVersion::Http11
            && self.request.upgrade == Upgrade::None
            && !owner::logs_in(&self.request.headers)
            && !self
                .owner
                .is_some_and(|owner| owner.has_logged_in() || self.core.has_owned(server, owner))
    }

    /// Sends the request over a stream of a multiplexed connection. If the server chooses HTTP/1.1,
    /// the connection opened for it is returned.
    async fn ask_multiplexed(
        &mut self,
        admission: Admission,
    ) -> Result<MultiplexedOutcome, AttemptFailure> {
        let server = &self.origin.shared()[admission.at];
        let mut is_last = false;
        loop {
            let connection = match self.checkout_multiplexed(server).await? {
                Checkout::Shared(connection) => Ok(connection),
                Checkout::Single => return Ok(MultiplexedOutcome::Single(admission, None)),
                Checkout::Open(guard) => Err(guard),
            };
            let reused = connection.is_ok();
            let connection = match connection {
                Ok(connection) => connection,
                Err(guard) => match self.open_multiplexed(server, guard).await? {
                    Ok(connection) => connection,
                    Err(link) => return Ok(MultiplexedOutcome::Single(admission, Some(link))),
                },
            };
            self.note_connected(server, reused);
            let call = self.call(server, Vec::new());
            let answered = call.attempt_stream(&connection, &mut self.upload, self.events).await;
            match answered {
                Ok(answer) => {
                    admission.note_answered(answer.response.status);
                    let rest = answer.is_early().then(|| self.upload.take_rest());
                    let input = self.input(admission, reused);
                    let exchange = Exchange::over_stream(answer, connection.peer, rest, input);
                    return Ok(MultiplexedOutcome::Answered(exchange));
                }
                // As with an idle connection of HTTP/1, once.
                Err(failure) if reused && !is_last && self.was_stale(&failure) => {
                    is_last = true;
                    self.note_retry(&failure.error);
                }
                Err(failure) if needs_http_1(&failure.error) && self.can_repeat(&failure) => {
                    return Ok(MultiplexedOutcome::Single(admission, None));
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    /// A multiplexed connection to `server`, or the task to open one.
    async fn checkout_multiplexed(&self, server: &Arc<Server>) -> Result<Checkout, AttemptFailure> {
        let connect_ms = self.timeouts.connect_ms;
        let deadline =
            Deadline::new(TimeoutStep::Connect, Instant::now(), connect_ms).or(self.total);
        let taken = rt::time::timeout_at(deadline.at, self.core.checkout_multiplexed(server)).await;
        Ok(taken.map_err(|_| server.deadline_error(deadline))?)
    }

    /// Opens a connection; the inner error is one over which the server has chosen HTTP/1.1.
    async fn open_multiplexed(
        &self,
        server: &Arc<Server>,
        guard: OpeningGuard,
    ) -> Result<Result<Rc<MultiplexedConnection>, UpstreamConnection>, AttemptFailure> {
        let link = self.connect(server, true).await?;
        if server.config.tls && !link.stream.chose_http2() {
            if server.http == HttpVersion::Http2 {
                return Err(Error::NotHttp2 { server: Arc::clone(&server.name) }.into());
            }
            guard.single();
            return Ok(Err(link));
        }
        let first = opening(&server.opening, self.ends, &link);
        let greeting_ms = self.timeouts.connect_ms;
        let opening = MultiplexOpening { first, greeting_ms, guard };
        Ok(Ok(multiplex::connect(self.core, server, link, opening)))
    }

    fn note_connected(&mut self, server: &Server, reused: bool) {
        if reused {
            self.core.counters.inc(Counter::OriginReuse);
        }
        self.events.connected(&server.name, reused);
        self.tries += 1;
    }

    fn input(&self, admission: Admission, reused: bool) -> ExchangeInput {
        ExchangeInput {
            server: admission.at,
            reused,
            tries: self.tries,
            permit: admission.permit,
            total: self.total,
            is_timed: self.is_timed,
            between_bytes_ms: self.timeouts.between_bytes_ms,
            read_at_most: self.read_at_most,
        }
    }

    /// The check that an idle connection needs. If the request can be repeated over another
    /// connection, no system call is needed.
    fn look(&self) -> IdleCheck {
        let repeats = self.request.method.is_idempotent() && !self.upload.has_body() && !self.once;
        if repeats { IdleCheck::AsNoticed } else { IdleCheck::Sure }
    }

    async fn connect(
        &self,
        server: &Server,
        multiplexed: bool,
    ) -> Result<UpstreamConnection, AttemptFailure> {
        let connect_ms = self.timeouts.connect_ms;
        let deadline =
            Deadline::new(TimeoutStep::Connect, Instant::now(), connect_ms).or(self.total);
        let hold = self.timeouts.hold;
        server.held(hold, rt::now().mono_ms)?;
        let (stream, peer) = server.connect(deadline, multiplexed).await.inspect_err(|error| {
            server.traffic.unconnected(error);
            server.note_unconnected(error, rt::now().mono_ms);
        })?;
        self.core.counters.inc(Counter::OriginConnects);
        Ok(UpstreamConnection::new(stream, peer))
    }

    async fn attempt(
        &mut self,
        server: &Arc<Server>,
        link: UpstreamConnection,
        reused: bool,
    ) -> Result<AttemptResponse, AttemptFailure> {
        let first = if reused { Vec::new() } else { opening(&server.opening, self.ends, &link) };
        let call = self.call(server, first);
        call.attempt(link, &mut self.upload, self.events).await
    }

    fn call<'c>(&self, server: &'c Arc<Server>, first: Vec<u8>) -> Call<'c>
    where
        'a: 'c,
    {
        Call {
            first,
            core: self.core,
            server,
            request: self.request,
            account: self.account,
            timeouts: self.timeouts,
            total: self.total,
            is_timed: self.is_timed,
            cgi: self.cgi,
            read_at_most: self.read_at_most,
        }
    }

    /// Returns true if the failed try had no effect: the server sent no byte, and received no byte
    /// of the body.
    fn can_repeat(&self, failure: &AttemptFailure) -> bool {
        !failure.answered && !self.upload.started()
    }

    /// Returns true if an idle connection was closed before the server saw the request. A request
    /// that is not idempotent is repeated only if it was incomplete and so cannot have been acted
    /// on (RFC 9110 9.2.2, RFC 9112 9.3.1).
    fn was_stale(&self, failure: &AttemptFailure) -> bool {
        failure.error.is_drop()
            && !self.once
            && self.can_repeat(failure)
            && (self.request.method.is_idempotent() || failure.reach != Reach::Whole)
    }

    /// Returns true if the request may be retried after a failure of the server.
    fn may_retry(&self, failure: &AttemptFailure) -> bool {
        let on = self.origin.config().retry_on;
        on.helps(&failure.error, || self.origin.has_other(&self.tried))
            && self.can_repeat(failure)
            && (self.request.method.is_idempotent() || failure.reach == Reach::Nothing)
            && self.has_tries()
    }

    /// Returns true if another server is tried instead of using this response. The server of an
    /// unwanted response counts as tried.
    fn wants_another(&mut self, exchange: &Exchange) -> bool {
        let on = self.origin.config().retry_on;
        if !on.statuses.has(exchange.response.status)
            || !self.request.method.is_idempotent()
            || self.upload.started()
        {
            return false;
        }
        self.tried.push(exchange.server);
        self.origin.has_other(&self.tried) && self.has_tries()
    }

    /// Returns true if the limits permit one more try, which is then taken from the retry budget.
    fn has_tries(&self) -> bool {
        let counters = &self.core.counters;
        let retries = self.origin.config().retries as usize;
        if self.tried.len() > retries {
            if retries > 0 {
                counters.limit(Limit::Retries);
            }
            return false;
        }
        if Instant::now() >= self.total.at {
            return false;
        }
        let allowed = self.origin.budget().withdraw();
        if !allowed {
            counters.limit(Limit::RetryBudget);
        }
        allowed
    }

    fn note_retry(&mut self, error: &Error) {
        self.core.counters.inc(Counter::OriginRetries);
        self.events.retry(error);
    }
}

/// A failure without a connection has reached no server.
impl From<Error> for AttemptFailure {
    fn from(error: Error) -> Self {
        Self { error, answered: false, reach: Reach::Nothing, is_counted: true }
    }
}

/// Returns true if the server wants the request over HTTP/1.1 (RFC 9113 7, HTTP_1_1_REQUIRED).
fn needs_http_1(error: &Error) -> bool {
    let code = h2::Code::Http11Required as u32;
    matches!(error, Error::Reset { code: said, in_body: false, .. } if *said == code)
}
