//! Multiplexed connection: the engine, and what has arrived for each stream.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use base::{Counters, HashSeed};
use h2::{ClientConnection, ClientEvent, ClientSettings, Code, ConnectionError};
use message::{Framing, Request, Response, Scheme, Status, Trailers};

use super::pool::EndpointConnections;
use crate::error::Error;
use crate::server::Server;

/// Bytes that may wait for the socket before requests' bodies wait instead, and before nothing
/// more is read.
pub(super) const OUT_BYTES: usize = 64 << 10;

/// The reason why a stream failed.
#[derive(Clone, Copy, Debug)]
pub(super) enum StreamFailure {
    /// The server has announced that it will not process the stream.
    Left,
    /// The connection ended.
    Closed,
    /// The connection failed.
    Io(io::ErrorKind),
    /// The connection broke the protocol.
    Broken(ConnectionError),
    /// The server guarantees that it has not processed the stream.
    Refused,
    /// The server ended the stream, with this code.
    Reset(u32),
    /// The response is malformed or too large.
    Rejected(h2::ResponseError),
    /// Too many 1xx responses.
    TooManyInterim,
    /// The source of the request's body failed.
    Upload,
}

impl StreamFailure {
    /// Returns true if the server has certainly not processed the request.
    pub(super) fn is_unprocessed(self) -> bool {
        matches!(self, Self::Left | Self::Refused)
    }

    pub(super) fn error(self, server: &Arc<str>, in_body: bool) -> Error {
        let server = Arc::clone(server);
        match self {
            Self::Left | Self::Closed if !in_body => Error::ClosedBeforeHead { server },
            Self::Left | Self::Closed | Self::Upload => Error::Truncated { server },
            Self::Io(kind) => Error::Read { server, source: kind.into(), in_body },
            Self::Broken(source) => Error::Frames { server, source },
            Self::Refused => Error::Refused { server },
            Self::Reset(code) => Error::Reset { server, code, in_body },
            Self::Rejected(source) => Error::Fields { server, source },
            Self::TooManyInterim => Error::TooManyInterim { server },
        }
    }
}

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
    heads: VecDeque<StreamHead>,
    data: Vec<u8>,
    /// The response is complete.
    ended: bool,
    trailers: Option<Trailers>,
    failure: Option<StreamFailure>,
    reader: Option<Waker>,
    sender: Option<Waker>,
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
    streams: Vec<StreamState>,
    driver: Option<Waker>,
    /// It begins no more streams.
    retired: bool,
    /// It ends once nothing waits for it.
    closing: bool,
    /// The reason of its end.
    end: Option<StreamFailure>,
    /// The time since which it has no streams.
    idle_since_ms: u64,
    /// The time at which the server was last heard.
    heard_ms: u64,
    /// A head that is being read.
    response: Response,
}

/// A connection that carries many exchanges at once, on one core.
pub(crate) struct MultiplexedConnection {
    pub(super) server: Arc<Server>,
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
            server,
            peer,
            interim_responses: opening.interim_responses,
            counters: opening.counters,
            endpoint: Rc::downgrade(endpoint),
            state: RefCell::new(ConnectionState {
                engine,
                out,
                streams: Vec::new(),
                driver: None,
                retired: false,
                closing: false,
                end: None,
                idle_since_ms: now_ms,
                heard_ms: now_ms,
                response: Response::new(Status::OK),
            }),
        })
    }

    /// Returns true if a request can begin.
    pub(super) fn has_room(&self) -> bool {
        let state = self.state.borrow();
        state.end.is_none() && !state.retired && state.engine.has_room()
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
        let server = &*self.server;
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

    /// Begins a stream with the head of `request`. Returns it with the size of the head; `None` if
    /// no stream can begin.
    pub(super) fn start(
        self: &Rc<Self>,
        request: &Request,
        ends: bool,
    ) -> Option<(MultiplexedStream, u64)> {
        let mut state = self.state.borrow_mut();
        if state.end.is_some() || state.retired {
            return None;
        }
        let ConnectionState { engine, out, .. } = &mut *state;
        let before = out.len();
        let id = engine.start(request, self.scheme, ends, out)?;
        let size = (out.len() - before) as u64;
        state.streams.push(StreamState {
            id,
            heads: VecDeque::new(),
            data: Vec::new(),
            ended: false,
            trailers: None,
            failure: None,
            reader: None,
            sender: None,
        });
        state.wake_driver();
        drop(state);
        Some((MultiplexedStream { connection: Rc::clone(self), id }, size))
    }

    /// Begins no more streams if the server has said nothing since `since_ms`: a request that timed
    /// out may have lost its connection.
    pub(super) fn doubt(&self, since_ms: u64) {
        let mut state = self.state.borrow_mut();
        state.retired |= state.heard_ms <= since_ms;
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
    /// Returns true if too many are left to read more.
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
        let is_full = state.out.len() >= OUT_BYTES;
        if state.out.is_empty() {
            state.out.shrink_to(OUT_BYTES);
        }
        if was_full && !is_full {
            state.wake_senders();
        }
        outcome.map(|()| is_full)
    }

    /// Takes received bytes; returns how many were used.
    pub(super) fn read(&self, bytes: &[u8]) -> Result<usize, StreamFailure> {
        let now_ms = rt::now().mono_ms;
        let (mut input, mut changed) = (bytes, false);
        let mut state = self.state.borrow_mut();
        state.heard_ms = now_ms;
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

    fn wake_senders(&mut self) {
        for stream in &mut self.streams {
            stream.sender.take().into_iter().for_each(Waker::wake);
        }
    }

    fn close_if_idle(&mut self) {
        if self.streams.is_empty() && self.end.is_none() && !self.closing {
            (self.retired, self.closing) = (true, true);
            self.engine.leave(&mut self.out);
            self.wake_driver();
        }
    }

    /// Applies an event; true if requests that wait for a connection should look again.
    fn apply(&mut self, event: ClientEvent<'_>, of: &MultiplexedConnection) -> bool {
        match event {
            ClientEvent::Head { stream, framing } => {
                let response = std::mem::replace(&mut self.response, Response::new(Status::OK));
                let bytes =
                    |field: message::header::Field<'_>| field.name.len() + field.value.len();
                of.server.traffic.head_came(response.headers.iter().map(bytes).sum());
                self.with(stream, |state| {
                    if state.heads.len() > of.interim_responses {
                        state.failure = Some(StreamFailure::TooManyInterim);
                    } else {
                        state.heads.push_back(StreamHead { response, framing });
                    }
                });
            }
            ClientEvent::Data { stream, bytes } => {
                self.with(stream, |state| state.data.extend_from_slice(bytes));
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
        let ConnectionState { engine, out, .. } = &mut *state;
        let before = out.len();
        engine.used(self.id, bytes, out);
        if out.len() > before {
            state.wake_driver();
        }
    }
}

impl Drop for MultiplexedStream {
    fn drop(&mut self) {
        let mut state = self.connection.state.borrow_mut();
        let ConnectionState { engine, out, streams, .. } = &mut *state;
        let before = out.len();
        engine.reset(self.id, Code::Cancel, out);
        let wrote = out.len() > before;
        if let Some(at) = streams.iter().position(|stream| stream.id == self.id) {
            streams.swap_remove(at).wake();
        }
        if streams.is_empty() {
            state.idle_since_ms = rt::now().mono_ms;
            if self.connection.server.idle_max == 0 || state.retired {
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
    /// Bytes that can be written now.
    Bytes(usize),
    /// None at present.
    Shut,
    /// The stream takes no more.
    Ended,
}

impl StreamSender {
    /// The room for the next bytes. Without any, the task is woken when there may be some.
    pub(super) fn room(&self, cx: &Context<'_>) -> SendRoom {
        let mut state = self.connection.state.borrow_mut();
        let ConnectionState { engine, out, streams, end, .. } = &mut *state;
        let stream = streams.iter_mut().find(|stream| stream.id == self.id);
        let (Some(stream), None) = (stream, end) else { return SendRoom::Ended };
        if stream.failure.is_some() || stream.ended {
            return SendRoom::Ended;
        }
        stream.sender = Some(cx.waker().clone());
        match engine.send_room(self.id) {
            None => SendRoom::Ended,
            Some(0) => SendRoom::Shut,
            Some(_) if out.len() >= OUT_BYTES => SendRoom::Shut,
            Some(room) => SendRoom::Bytes(room.min(OUT_BYTES)),
        }
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
        engine.reset(self.id, Code::Cancel, out);
        state.fail(self.id, StreamFailure::Upload);
        state.wake_driver();
    }
}
