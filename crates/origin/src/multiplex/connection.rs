//! Multiplexed connection: the engine, and what has arrived for each stream.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use base::{Account, Counters, HashSeed, Limit};
use h2::{ClientConnection, ClientEvent, ClientSettings, Code};
use message::{Framing, Request, Response, Scheme, Status, Trailers};

use super::failure::StreamFailure;
use super::liveness::{ClockStep, Liveness, SUSPICIOUS_MS};
use super::pool::EndpointConnections;
use super::stream_memory::StreamMemory;
use crate::error::Error;
use crate::server::Server;

/// Bytes that may wait for the socket before requests' bodies wait instead, and before nothing
/// more is read.
pub(super) const OUT_BYTES: usize = 64 << 10;
/// The least share of the room that a body has in its turn.
const SHARE_BYTES: usize = 16 << 10;
/// Streams ended before their time in [`CANCELS_MS`] after which a connection begins no more. Half
/// of what this server permits its own clients (`h2_resets`).
const CANCELS_MAX: u32 = 50;
const CANCELS_MS: u64 = 10_000;

/// A response's head.
#[derive(Debug)]
pub(super) struct StreamHead {
    pub(super) response: Response,
    pub(super) framing: Framing,
}

/// The parts of a response that have arrived for one stream.
#[derive(Debug)]
struct StreamState {
    id: u32,
    began_ms: u64,
    /// A head has arrived.
    answered: bool,
    heads: VecDeque<StreamHead>,
    data: Vec<u8>,
    memory: StreamMemory,
    /// The response is complete.
    ended: bool,
    trailers: Option<Trailers>,
    failure: Option<StreamFailure>,
    reader: Option<Waker>,
    sender: Option<Waker>,
    /// The body waits for room.
    waits: bool,
}

impl StreamState {
    fn wake(&mut self) {
        self.reader.take().into_iter().for_each(Waker::wake);
        self.sender.take().into_iter().for_each(Waker::wake);
    }
}

/// The part of a connection that changes.
struct ConnectionState {
    engine: ClientConnection,
    out: Vec<u8>,
    /// The bytes in `out` that the server has made this end say, about.
    said: usize,
    streams: Vec<StreamState>,
    /// The stream that last had room for its body.
    served: u32,
    /// Streams that were ended before their time, since `cancels_since_ms`.
    cancels: u32,
    cancels_since_ms: u64,
    /// The loss of the connection was reported.
    is_loss_told: bool,
    driver: Option<Waker>,
    /// It begins no more streams.
    retired: bool,
    /// It ends once nothing waits for it.
    closing: bool,
    /// The reason of its end.
    end: Option<StreamFailure>,
    /// The time since which it has no streams.
    idle_since_ms: u64,
    liveness: Liveness,
    /// A head that is being read.
    response: Response,
}

/// A connection that carries many exchanges at once, on one core.
pub(crate) struct MultiplexedConnection {
    /// The server as it is set at present.
    server: RefCell<Arc<Server>>,
    pub(crate) peer: Option<SocketAddr>,
    scheme: Scheme,
    /// 1xx responses of one exchange.
    interim_responses: usize,
    counters: Arc<Counters>,
    endpoint: Weak<EndpointConnections>,
    state: RefCell<ConnectionState>,
}

/// The beginning of a new connection.
pub(crate) struct ConnectionOpening {
    pub(crate) server: Arc<Server>,
    pub(crate) peer: Option<SocketAddr>,
    /// Bytes in front of the protocol's own.
    pub(crate) first: Vec<u8>,
    pub(crate) settings: ClientSettings,
    /// The time in which the server must send its settings.
    pub(crate) greeting_ms: u64,
    /// The time that it may be silent while requests wait.
    pub(crate) silence_ms: u64,
    /// 1xx responses of one exchange.
    pub(crate) interim_responses: usize,
    pub(crate) counters: Arc<Counters>,
}

impl MultiplexedConnection {
    pub(super) fn new(opening: ConnectionOpening, endpoint: &Rc<EndpointConnections>) -> Rc<Self> {
        let now_ms = rt::now().mono_ms;
        let ConnectionOpening { server, peer, first: mut out, settings, .. } = opening;
        let engine = ClientConnection::new(settings, HashSeed::random(), now_ms, &mut out);
        Rc::new(Self {
            scheme: if server.config.tls { Scheme::Https } else { Scheme::Http },
            server: RefCell::new(server),
            peer,
            interim_responses: opening.interim_responses,
            counters: opening.counters,
            endpoint: Rc::downgrade(endpoint),
            state: RefCell::new(ConnectionState {
                engine,
                out,
                said: 0,
                streams: Vec::new(),
                served: 0,
                cancels: 0,
                cancels_since_ms: now_ms,
                is_loss_told: false,
                driver: None,
                retired: false,
                closing: false,
                end: None,
                idle_since_ms: now_ms,
                liveness: Liveness::new(opening.greeting_ms, opening.silence_ms, now_ms),
                response: Response::new(Status::OK),
            }),
        })
    }

    /// Returns true if a request can begin.
    pub(super) fn has_room(&self) -> bool {
        let state = self.state.borrow();
        state.end.is_none()
            && !state.retired
            && !state.liveness.is_doubtful()
            && state.engine.has_room()
    }

    /// Returns true if the connection leads to an address of `server`, whose settings hold for it
    /// from now on; if not, it begins no more streams.
    pub(super) fn is_of(&self, server: &Arc<Server>) -> bool {
        use crate::shared_pool::Terms as _;
        if !Arc::ptr_eq(&self.server.borrow(), server) {
            *self.server.borrow_mut() = Arc::clone(server);
        }
        let is_there = self.peer.is_none_or(|peer| server.is_at(peer));
        if !is_there {
            let mut state = self.state.borrow_mut();
            state.retired = true;
            state.close_if_idle();
        }
        is_there
    }

    /// Returns true if the server takes the head of `request`, as far as it has said how large one
    /// may be.
    pub(super) fn takes(&self, request: &Request) -> bool {
        self.state.borrow().engine.takes(request)
    }

    /// Returns true if the server's settings are still to come.
    pub(super) fn is_new(&self) -> bool {
        let state = self.state.borrow();
        state.end.is_none() && !state.retired && !state.engine.is_greeted()
    }

    /// Returns true if this side's limit of streams is reached.
    pub(super) fn is_full(&self) -> bool {
        self.state.borrow().engine.is_full()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.state.borrow().engine.streams() == 0
    }

    /// Ends the connection if it was idle for too long, or should not be used any more.
    pub(super) fn sweep(&self, now_ms: u64) -> bool {
        use crate::shared_pool::Terms as _;
        let server = self.server.borrow();
        let is_wanted =
            server.keeps_connections() && self.peer.is_none_or(|peer| server.is_at(peer));
        let mut state = self.state.borrow_mut();
        state.retired |= !is_wanted;
        let idle_ms = now_ms.saturating_sub(state.idle_since_ms);
        let is_late = state.streams.is_empty() && idle_ms >= server.idle_timeout_ms();
        if is_late || state.retired {
            state.close_if_idle();
        }
        is_late
    }

    /// Begins a stream with the head of `request`, whose response is charged to `account`. Returns
    /// it with the size of the head; `None` if no stream can begin.
    pub(super) fn start(
        self: &Rc<Self>,
        request: &Request,
        ends: bool,
        account: Option<&Arc<Account>>,
    ) -> Option<(MultiplexedStream, u64)> {
        let mut state = self.state.borrow_mut();
        if state.end.is_some() || state.retired {
            return None;
        }
        let ConnectionState { engine, out, .. } = &mut *state;
        let before = out.len();
        let id = engine.start(request, self.scheme, ends, out)?;
        let size = (out.len() - before) as u64;
        let now_ms = rt::now().mono_ms;
        if state.streams.is_empty() {
            state.liveness.awaits(now_ms);
        }
        state.streams.push(StreamState {
            id,
            began_ms: now_ms,
            answered: false,
            heads: VecDeque::new(),
            data: Vec::new(),
            memory: StreamMemory::new(account),
            ended: false,
            trailers: None,
            failure: None,
            reader: None,
            sender: None,
            waits: false,
        });
        state.wake_driver();
        drop(state);
        Some((MultiplexedStream { connection: Rc::clone(self), id }, size))
    }

    /// Asks for a sign of life if the server has said nothing since `since_ms`: a request that
    /// timed out may have lost its connection. Until there is one, no more streams begin.
    pub(super) fn doubt(&self, since_ms: u64) {
        self.state.borrow_mut().doubt(since_ms);
    }

    /// Returns true for the first stream that reports the loss of the connection: it is one failure
    /// of the server, however many streams there are.
    pub(super) fn is_first_to_tell(&self) -> bool {
        !std::mem::replace(&mut self.state.borrow_mut().is_loss_told, true)
    }

    /// Counts an exchange without a usable response.
    pub(super) fn note_failure(&self, error: &Error) {
        error.count(&self.counters);
    }

    fn stream<T>(&self, id: u32, with: impl FnOnce(&mut StreamState) -> T) -> Option<T> {
        let mut state = self.state.borrow_mut();
        state.streams.iter_mut().find(|stream| stream.id == id).map(with)
    }

    /// Tells the requests that wait for a connection to look again.
    fn tell_endpoint(&self) {
        if let Some(endpoint) = self.endpoint.upgrade() {
            endpoint.changed();
        }
    }
}

/// The driver's side.
impl MultiplexedConnection {
    pub(super) fn set_driver(&self, waker: &Waker) {
        let mut state = self.state.borrow_mut();
        if !state.driver.as_ref().is_some_and(|driver| driver.will_wake(waker)) {
            state.driver = Some(waker.clone());
        }
    }

    /// Passes the bytes that wait for the socket to `write`, which returns how many it took.
    /// Returns true if too many are left of those that the server has made this end say. Bodies of
    /// requests do not count: if each end waited for the other to read them, none would go on.
    pub(super) fn write(
        &self,
        mut write: impl FnMut(&[u8]) -> Poll<io::Result<usize>>,
    ) -> io::Result<bool> {
        let mut state = self.state.borrow_mut();
        let (mut written, mut outcome) = (0, Ok(()));
        while written < state.out.len() {
            match write(&state.out[written..]) {
                Poll::Ready(Ok(0)) => outcome = Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(taken)) => written += taken,
                Poll::Ready(Err(error)) => outcome = Err(error),
                Poll::Pending => break,
            }
            if outcome.is_err() {
                break;
            }
        }
        let was_full = state.out.len() >= OUT_BYTES;
        state.out.drain(..written);
        state.said = state.said.saturating_sub(written);
        let is_full = state.out.len() >= OUT_BYTES;
        if state.out.is_empty() {
            state.out.shrink_to(OUT_BYTES);
        }
        if was_full && !is_full {
            state.wake_senders();
        }
        outcome.map(|()| state.said >= OUT_BYTES)
    }

    /// Takes received bytes; returns how many were used.
    pub(super) fn read(&self, bytes: &[u8]) -> Result<usize, StreamFailure> {
        let now_ms = rt::now().mono_ms;
        let (mut input, mut changed) = (bytes, false);
        let mut state = self.state.borrow_mut();
        state.liveness.heard(now_ms);
        let before = state.out.len();
        loop {
            let ConnectionState { engine, out, response, .. } = &mut *state;
            match engine.next(&mut input, response, out, now_ms) {
                Ok(Some(event)) => changed |= state.apply(event, self),
                Ok(None) => break,
                Err(fatal) => {
                    engine.end(&fatal, out);
                    return Err(StreamFailure::Broken(fatal));
                }
            }
        }
        state.said += state.out.len() - before;
        drop(state);
        if changed {
            self.tell_endpoint();
        }
        Ok(bytes.len() - input.len())
    }

    /// Returns true if the connection should end, and nothing waits for the socket.
    pub(super) fn is_over(&self) -> bool {
        let mut state = self.state.borrow_mut();
        if state.engine.leaves() || state.retired {
            state.close_if_idle();
        }
        state.closing && state.out.is_empty()
    }

    /// Takes the steps of the clock that are due; returns the time of the next one.
    pub(super) fn tick(&self, now_ms: u64) -> Result<Option<u64>, StreamFailure> {
        let mut state = self.state.borrow_mut();
        loop {
            let (is_greeted, has_streams) = (state.engine.is_greeted(), !state.streams.is_empty());
            match state.liveness.step(now_ms, is_greeted, has_streams) {
                ClockStep::Wait(until_ms) => return Ok(until_ms),
                ClockStep::Ask => state.ask(now_ms),
                ClockStep::Unsettled(after_ms) => return Err(StreamFailure::Unsettled(after_ms)),
                ClockStep::Stuck => return Err(StreamFailure::Closed),
                ClockStep::Silent => {
                    self.counters.limit(Limit::OriginH2Silence);
                    return Err(StreamFailure::Silent);
                }
            }
        }
    }

    /// Ends every stream.
    pub(super) fn end(&self, failure: StreamFailure) {
        let mut state = self.state.borrow_mut();
        state.end = Some(failure);
        for stream in &mut state.streams {
            if !stream.ended {
                stream.failure.get_or_insert(failure);
            }
            stream.wake();
        }
        drop(state);
        if let Some(endpoint) = self.endpoint.upgrade() {
            endpoint.remove(self);
        }
    }
}

impl ConnectionState {
    fn wake_driver(&self) {
        if let Some(driver) = &self.driver {
            driver.wake_by_ref();
        }
    }

    /// Wakes the senders of bodies in turn, beginning behind the one that was served last.
    fn wake_senders(&mut self) {
        let served = self.served;
        let mut turns: Vec<_> = (self.streams.iter_mut())
            .filter_map(|stream| Some((stream.id, stream.sender.take()?)))
            .collect();
        turns.sort_unstable_by_key(|(id, _)| (*id <= served, *id));
        turns.into_iter().for_each(|(_, sender)| sender.wake());
    }

    fn doubt(&mut self, since_ms: u64) {
        let now_ms = rt::now().mono_ms;
        let may_ask = self.end.is_none() && self.engine.is_greeted();
        if may_ask && self.liveness.is_suspicious(since_ms, now_ms) {
            self.ask(now_ms);
        }
    }

    fn ask(&mut self, now_ms: u64) {
        self.engine.ask(&mut self.out);
        self.liveness.asks(now_ms);
        self.wake_driver();
    }

    /// Counts a stream that this end has ended before its time. Servers end connections on which
    /// that happens often (CVE-2023-44487), with all streams: before that, this one gets no more.
    fn note_cancel(&mut self, now_ms: u64) {
        if now_ms.saturating_sub(self.cancels_since_ms) >= CANCELS_MS {
            (self.cancels, self.cancels_since_ms) = (0, now_ms);
        }
        self.cancels += 1;
        self.retired |= self.cancels >= CANCELS_MAX;
    }

    fn close_if_idle(&mut self) {
        if self.streams.is_empty() && self.end.is_none() && !self.closing {
            (self.retired, self.closing) = (true, true);
            self.liveness.closes(rt::now().mono_ms);
            self.engine.leave(&mut self.out);
            self.wake_driver();
        }
    }

    /// Applies an event; true if requests that wait for a connection should look again.
    fn apply(&mut self, event: ClientEvent<'_>, of: &MultiplexedConnection) -> bool {
        if !matches!(event, ClientEvent::Room) {
            self.liveness.moved();
        }
        match event {
            ClientEvent::Head { stream, framing } => {
                let response = std::mem::replace(&mut self.response, Response::new(Status::OK));
                let bytes =
                    |field: message::header::Field<'_>| field.name.len() + field.value.len();
                of.server.borrow().traffic.head_came(response.headers.iter().map(bytes).sum());
                self.with(stream, |state| {
                    state.answered = true;
                    if state.heads.len() > of.interim_responses {
                        state.failure = Some(StreamFailure::TooManyInterim);
                    } else {
                        state.heads.push_back(StreamHead { response, framing });
                    }
                });
            }
            ClientEvent::Data { stream, bytes } => {
                let (wide, mut widens) = (self.engine.wide_window(), false);
                self.with(stream, |state| {
                    state.data.extend_from_slice(bytes);
                    widens = state.memory.came(bytes.len() as u64, wide);
                });
                if widens {
                    self.engine.widen(stream, &mut self.out);
                }
            }
            ClientEvent::End { stream, trailers } => self.with(stream, |state| {
                (state.ended, state.trailers) = (true, trailers);
            }),
            ClientEvent::Reset { stream, code } => {
                let refused = code == Code::RefusedStream as u32;
                self.fail(
                    stream,
                    if refused { StreamFailure::Refused } else { StreamFailure::Reset(code) },
                );
            }
            ClientEvent::Rejected { stream, error } => {
                self.fail(stream, StreamFailure::Rejected(error));
            }
            ClientEvent::Leaves { last } => {
                self.retired = true;
                for stream in self.streams.iter_mut().filter(|stream| stream.id > last) {
                    stream.failure.get_or_insert(StreamFailure::Left);
                    stream.wake();
                }
                return true;
            }
            ClientEvent::Room => {
                self.wake_senders();
                return true;
            }
        }
        false
    }

    fn with(&mut self, id: u32, change: impl FnOnce(&mut StreamState)) {
        if let Some(stream) = self.streams.iter_mut().find(|stream| stream.id == id) {
            change(stream);
            stream.wake();
        }
    }

    /// Ends a stream. A complete response stays one, whatever follows it (RFC 9113 8.1).
    fn fail(&mut self, id: u32, failure: StreamFailure) {
        self.with(id, |stream| {
            if !stream.ended {
                stream.failure.get_or_insert(failure);
            }
        });
    }
}

impl fmt::Debug for MultiplexedConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MultiplexedConnection").field("peer", &self.peer).finish_non_exhaustive()
    }
}

/// One exchange's stream. Dropping it before its end resets it.
#[derive(Debug)]
pub(crate) struct MultiplexedStream {
    connection: Rc<MultiplexedConnection>,
    id: u32,
}

/// The next part of a response.
pub(super) enum StreamPart {
    /// Bytes of the body.
    Data(Vec<u8>),
    /// The body is complete.
    End(Option<Trailers>),
}

impl MultiplexedStream {
    pub(super) fn connection(&self) -> &Rc<MultiplexedConnection> {
        &self.connection
    }

    /// A handle for sending the request's body, which does not keep the stream.
    pub(super) fn sender(&self) -> StreamSender {
        StreamSender { connection: Rc::clone(&self.connection), id: self.id }
    }

    /// The next head.
    pub(super) fn poll_head(&self, cx: &Context<'_>) -> Poll<Result<StreamHead, StreamFailure>> {
        self.poll(cx, |stream| stream.heads.pop_front())
    }

    /// The next part of the body.
    pub(super) fn poll_part(&self, cx: &Context<'_>) -> Poll<Result<StreamPart, StreamFailure>> {
        self.poll(cx, |stream| match stream.data.is_empty() {
            false => Some(StreamPart::Data(std::mem::take(&mut stream.data))),
            true => stream.ended.then(|| StreamPart::End(stream.trailers.take())),
        })
    }

    fn poll<T>(
        &self,
        cx: &Context<'_>,
        take: impl FnOnce(&mut StreamState) -> Option<T>,
    ) -> Poll<Result<T, StreamFailure>> {
        let polled = self.connection.stream(self.id, |stream| {
            if let Some(taken) = take(stream) {
                return Poll::Ready(Ok(taken));
            }
            match stream.failure {
                Some(failure) => Poll::Ready(Err(failure)),
                None => {
                    stream.reader = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        });
        polled.unwrap_or(Poll::Ready(Err(StreamFailure::Closed)))
    }

    /// Returns true if the response is complete, and all of its body was read.
    pub(super) fn is_spent(&self) -> bool {
        let spent =
            self.connection.stream(self.id, |stream| stream.ended && stream.data.is_empty());
        spent.unwrap_or(true)
    }

    /// Returns true if the response is complete: the rest of the request is not needed.
    pub(super) fn has_ended(&self) -> bool {
        self.connection.stream(self.id, |stream| stream.ended).unwrap_or(true)
    }

    /// Reports bytes of the body as used.
    pub(super) fn used(&self, bytes: usize) {
        let mut state = self.connection.state.borrow_mut();
        let ConnectionState { engine, out, streams, .. } = &mut *state;
        let before = out.len();
        if let Some(stream) = streams.iter_mut().find(|stream| stream.id == self.id) {
            stream.memory.passed(bytes as u64);
        }
        engine.used(self.id, bytes, out);
        if out.len() > before {
            state.wake_driver();
        }
    }
}

impl MultiplexedStream {
    /// Records that the client gives the request up by a deadline of its own, which says nothing
    /// about the connection.
    pub(super) fn excuse(&self) {
        let mut state = self.connection.state.borrow_mut();
        let own = state.streams.iter_mut().find(|stream| stream.id == self.id);
        own.into_iter().for_each(|stream| stream.began_ms = rt::now().mono_ms);
    }
}

impl Drop for MultiplexedStream {
    fn drop(&mut self) {
        let mut state = self.connection.state.borrow_mut();
        let ConnectionState { engine, out, streams, .. } = &mut *state;
        let before = out.len();
        engine.reset(self.id, Code::Cancel, out);
        let wrote = out.len() > before;
        let now_ms = rt::now().mono_ms;
        let at = streams.iter().position(|stream| stream.id == self.id);
        let ended = at.map(|at| streams.swap_remove(at));
        let is_last = streams.is_empty();
        if wrote {
            state.note_cancel(now_ms);
        }
        if let Some(mut ended) = ended {
            ended.wake();
            // A client that was tired of waiting may have lost its connection.
            let waited_ms = now_ms.saturating_sub(ended.began_ms);
            if wrote && !ended.answered && waited_ms >= SUSPICIOUS_MS {
                state.doubt(ended.began_ms);
            }
        }
        if is_last {
            state.idle_since_ms = now_ms;
            if self.connection.server.borrow().idle_max == 0 || state.retired {
                state.close_if_idle();
            }
        }
        if wrote {
            state.wake_driver();
        }
        drop(state);
        self.connection.tell_endpoint();
    }
}

/// The sending side of a stream.
#[derive(Debug)]
pub(super) struct StreamSender {
    connection: Rc<MultiplexedConnection>,
    id: u32,
}

/// The room for a request's body.
pub(super) enum SendRoom {
    /// Bytes that can be written now. If `others` wait, too, they have their turn next.
    Bytes { room: usize, others: bool },
    /// None at present.
    Shut,
    /// The stream takes no more.
    Ended,
}

impl StreamSender {
    /// The room for the next bytes. Without any, the task is woken when there may be some.
    pub(super) fn room(&self, cx: &Context<'_>) -> SendRoom {
        let mut state = self.connection.state.borrow_mut();
        let ConnectionState { engine, out, streams, end, served, .. } = &mut *state;
        let is_other = |stream: &&StreamState| stream.waits && stream.id != self.id;
        let others = streams.iter().filter(is_other).count();
        let stream = streams.iter_mut().find(|stream| stream.id == self.id);
        let (Some(stream), None) = (stream, end) else { return SendRoom::Ended };
        if stream.failure.is_some() || stream.ended {
            return SendRoom::Ended;
        }
        stream.sender = Some(cx.waker().clone());
        let Some(room) = engine.send_room(self.id) else { return SendRoom::Ended };
        stream.waits = room == 0 || out.len() >= OUT_BYTES;
        if stream.waits {
            return SendRoom::Shut;
        }
        *served = self.id;
        let share = (room / (others + 1)).max(SHARE_BYTES);
        SendRoom::Bytes { room: room.min(OUT_BYTES).min(share), others: others > 0 }
    }

    /// Writes bytes of the body, at most as many as there is room for.
    pub(super) fn data(&self, bytes: &[u8], ends: bool) {
        let mut state = self.connection.state.borrow_mut();
        let ConnectionState { engine, out, .. } = &mut *state;
        engine.data(self.id, bytes, ends, out);
        state.wake_driver();
    }

    /// Writes the trailers that end the request.
    pub(super) fn trailers(&self, trailers: &Trailers) {
        let mut state = self.connection.state.borrow_mut();
        let ConnectionState { engine, out, .. } = &mut *state;
        engine.trailers(self.id, trailers, out);
        state.wake_driver();
    }

    /// Ends the stream because its request cannot be completed.
    pub(super) fn cancel(&self) {
        let mut state = self.connection.state.borrow_mut();
        let ConnectionState { engine, out, .. } = &mut *state;
        let before = out.len();
        engine.reset(self.id, Code::Cancel, out);
        if out.len() > before {
            state.note_cancel(rt::now().mono_ms);
        }
        state.fail(self.id, StreamFailure::Upload);
        state.wake_driver();
    }
}
