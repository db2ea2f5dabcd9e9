//! HTTP/2 client connections: the loop that joins the engine (`h2`) to `flow` and to the socket.
//!
//! Replies at hand are sent while requests are parsed, many in one write. A request that must wait
//! has its own task, which ends with its stream. A client that does not read must never grow our
//! memory: it is not read from, and is bounded by its windows and by one batch of output.

mod answers;
mod exchange;
mod head;
mod mailbox;
mod output_queue;
mod stream_state;
mod timing;
mod uploads;

use std::cell::{OnceCell, RefCell};
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use base::{Counter, Limit, Now};
use cache::{BodyDerivation, WindowLimit};
use flow::finish::RequestStart;
use flow::{BodyPart, LiveRef, Start, pages};
use h2::{Code, Connection, ConnectionError, Event, Settings, StreamHandle};
use message::{Request, Status, Upgrade as Change};
use tls::SessionTerms;
use tokio::io::{AsyncRead, ReadBuf};

use self::exchange::Task;
use self::mailbox::{Mailbox, Promise, StreamMessage};
use self::output_queue::OutputQueue;
use self::stream_state::{BodyOrigin, StreamState, StreamTask, StreamUpload};
use crate::account::{self, BufferCharge, SMALLEST_WINDOW};
use crate::caller::Caller;
use crate::client_socket::ClientSocket;
use crate::core::CoreCtx;
use crate::exchange::{DeferredRequest, ExchangeBytes, ExchangeTimestamp, Intake, Note};
use crate::guard::{ConnectionPhase, Guard};
use crate::lingering_close;
use crate::proxy_header::ConnectionEndpoints;
use crate::rate::Transfer;
use crate::scratch::{Scratch, Work};
use crate::stream::Stream;

/// The most unsent bytes in the kernel's send buffer.
const UNSENT_BYTES: u32 = 128 * 1024;

/// Bytes of a body, approximately, that are produced at once.
const MADE_BYTES: usize = 16 * 1024;

/// One HTTP/2 client connection.
///
/// [`serve`] owns it and polls it until it ends. One poll takes the tasks' messages, forwards
/// request bodies, checks the limits, encodes what the flow-control windows permit, writes, and
/// only then reads further frames: unsent output stops reading. Frames of all streams leave through
/// `out` in the order of the engine's schedule. A stream's state is in `states` and its task ends
/// with it; a task communicates by `mail` only, and never holds the connection.
pub(crate) struct H2 {
    stream: Stream,
    caller: Caller,
    engine: Box<Connection>,
    states: Vec<StreamState>,
    mail: Rc<Mailbox>,
    out: OutputQueue,
    /// Received bytes that are not parsed yet.
    held: Vec<u8>,
    /// Streams whose request bodies have bytes for their readers.
    uploads: Vec<StreamHandle>,
    /// The connection's phase, as last reported to the guard.
    phase: ConnectionPhase,
    /// The last time at which a request was under way.
    worked_ms: u64,
    /// Progress of all streams' replies, as far as the connection's flow-control window goes.
    sending: Transfer,
    /// Bytes reserved for bodies in transit.
    reserved: u64,
    /// The number of bodies that are produced as the client takes them.
    made: usize,
    /// The charge for buffers that wait for the client.
    buffered: BufferCharge,
    ticked_ms: u64,
    /// Only the last bytes are left to be sent.
    over: bool,
}

/// The way in which a connection ends.
enum ConnectionEnding {
    /// A lingering close: the client may still be sending, and should read the reason.
    Linger,
    /// At once, but in order.
    Close,
    /// The peer is gone.
    Gone,
}

/// Returns true if a plain connection begins with the preface of HTTP/2 (RFC 9113 3.4). The bytes
/// read for that are in `received`; a request of HTTP/1 differs in its first bytes.
pub(crate) async fn begins(
    wire: &mut ClientSocket,
    received: &mut Vec<u8>,
    guard: &Guard,
    core: &CoreCtx,
) -> bool {
    loop {
        let compared = received.len().min(Connection::PREFACE.len());
        if received[..compared] != Connection::PREFACE[..compared] {
            return false;
        }
        if compared == Connection::PREFACE.len() {
            return true;
        }
        let more = poll_fn(|cx| {
            let Ok(makes_room) = guard.poll_waiting(cx) else { return Poll::Ready(false) };
            let mut scratch = core.scratch.borrow_mut();
            let mut buf = ReadBuf::new(&mut scratch.input);
            let read = match Pin::new(&mut *wire).poll_read(cx, &mut buf) {
                Poll::Pending if makes_room => return Poll::Ready(false),
                read => ready!(read),
            };
            if makes_room && !buf.filled().is_empty() {
                guard.cancel_eviction();
            }
            received.extend_from_slice(buf.filled());
            core.flow.counters.add(Counter::BytesIn, buf.filled().len() as u64);
            Poll::Ready(read.is_ok() && !buf.filled().is_empty())
        });
        if !more.await {
            // The end of the stream or a limit: the HTTP/1 connection ends for the same reason.
            return false;
        }
        guard.enter(ConnectionPhase::Head, core.flow.now().mono_ms);
    }
}

/// Serves a connection to its end, starting with the bytes in `received`.
pub(crate) async fn serve(
    stream: Stream,
    secured: Option<Rc<SessionTerms>>,
    ends: ConnectionEndpoints,
    guard: Rc<Guard>,
    received: Vec<u8>,
    core: Rc<CoreCtx>,
) {
    let mut connection = H2::new(stream, secured, ends, guard, received, &core);
    let end = poll_fn(|cx| connection.poll(cx, &core)).await;
    let H2 { mut stream, caller: Caller { guard, .. }, .. } = connection.leave(&core);
    match end {
        ConnectionEnding::Linger => {
            // A client that learns of the end has at most its windows in flight; more is a flood.
            let limits = &core.flow.live().limits;
            let most = limits.drain_bytes.saturating_add(limits.window_bytes);
            Box::pin(lingering_close::linger(&mut stream, &guard, &core, most)).await;
        }
        ConnectionEnding::Close => stream.close(),
        ConnectionEnding::Gone => {}
    }
}

impl H2 {
    fn new(
        stream: Stream,
        secured: Option<Rc<SessionTerms>>,
        ends: ConnectionEndpoints,
        guard: Rc<Guard>,
        held: Vec<u8>,
        core: &CoreCtx,
    ) -> Self {
        let now_ms = core.flow.now().mono_ms;
        let mut out = OutputQueue::default();
        let live = core.flow.live();
        let (limits, seed) = (&live.limits, core.flow.shared.seed);
        let settings = Settings::from(limits).with_raw_utf8(live.connections.head_limits.raw_utf8);
        let account = account::open_for(core, limits.h2_memory, limits.h2_streams);
        let caller = Caller::new(secured, ends, guard, account, now_ms);
        let engine = Connection::new(settings, caller.scheme(), seed, now_ms, &mut out.bytes);
        stream.hold_unsent(UNSENT_BYTES);
        core.flow.counters.inc(Counter::H2Connections);
        Self {
            stream,
            caller,
            engine: Box::new(engine),
            states: Vec::new(),
            mail: Rc::default(),
            out,
            held,
            uploads: Vec::new(),
            phase: ConnectionPhase::New,
            worked_ms: now_ms,
            sending: Transfer::default(),
            reserved: 0,
            made: 0,
            buffered: BufferCharge::default(),
            ticked_ms: now_ms,
            over: false,
        }
    }

    /// Serves the connection until it ends.
    fn poll(&mut self, cx: &mut Context<'_>, core: &Rc<CoreCtx>) -> Poll<ConnectionEnding> {
        self.mail.register(cx);
        let mut scratch = core.scratch.borrow_mut();
        let Scratch { input, work } = &mut *scratch;
        work.output.clear();
        self.out.borrow(&mut work.output);
        loop {
            if let Poll::Ready(limit) = self.caller.guard.poll_expired(cx) {
                return Poll::Ready(self.expired(limit));
            }
            let now = core.flow.now();
            self.take_mail(core);
            self.poll_uploads(cx);
            self.tick(core, now);
            self.pump(core, now);
            let Poll::Ready(written) = self.poll_write(cx, core) else {
                return self.poll_unsent(core);
            };
            match written {
                // The client's bytes in flight must not cause a reset.
                Ok(()) if self.over => return Poll::Ready(ConnectionEnding::Linger),
                Ok(()) if self.engine.is_over() => {
                    self.caller.guard.ends_as(Counter::ClosedByReply);
                    return Poll::Ready(ConnectionEnding::Linger);
                }
                Ok(()) => self.open_feeds(),
                Err(_) => return Poll::Ready(ConnectionEnding::Gone),
            }
            if self.engine.has_turn() {
                continue;
            }
            let bytes = if self.held.is_empty() {
                let mut buf = ReadBuf::new(input);
                let Poll::Ready(read) = self.stream.poll_read(cx, &mut buf, &core.sealed) else {
                    self.out.give_back(&mut work.output);
                    let kept = self.engine.kept() as u64;
                    if self.buffered.set_begun(kept, core).is_err() {
                        return Poll::Ready(self.too_much(core));
                    }
                    // The last reply may just have left.
                    if self.phase() != self.phase {
                        self.enter_phase(now.mono_ms);
                    }
                    return Poll::Pending;
                };
                let length = buf.filled().len();
                if read.is_err() || length == 0 {
                    return Poll::Ready(ConnectionEnding::Gone);
                }
                core.flow.counters.add(Counter::BytesIn, length as u64);
                &input[..length]
            } else {
                &std::mem::take(&mut self.held)[..]
            };
            if let Err(fatal) = self.read(core, work, bytes, cx) {
                self.fatal(core, &fatal);
            }
            self.enter_phase(now.mono_ms);
        }
    }

    /// Parses the client's frames, and answers requests that need no waiting.
    fn read(
        &mut self,
        core: &Rc<CoreCtx>,
        work: &mut Work,
        bytes: &[u8],
        cx: &mut Context<'_>,
    ) -> Result<(), ConnectionError> {
        let live = core.flow.live();
        let now = core.flow.now();
        let begun = self.caller.begun(ExchangeTimestamp { now, us: core.flow.log.micros(now) });
        let mut rest = bytes;
        while self.out.room() > 0 {
            let (request, before) = (&mut work.request, rest.len());
            let event = self.engine.next(&mut rest, request, &mut self.out.bytes, now.mono_ms)?;
            let Some(event) = event else { break };
            let started = RequestStart { head_bytes: before - rest.len(), ..begun };
            match event {
                Event::Request { stream, ends } => {
                    self.request(core, &live, request, stream, ends, started);
                }
                Event::Refused { stream, error } => {
                    self.refused(core, &live, stream, request, &error, &started);
                }
                Event::Data { stream, bytes } => self.data(core, stream, bytes, now, cx),
                Event::End { stream, trailers } => self.body_ends(core, stream, trailers, cx),
                Event::Reset { stream, by_client } => {
                    if !by_client {
                        core.flow.counters.inc(Counter::BadRequests);
                    }
                    self.drop_stream(core, stream);
                }
            }
        }
        self.held.extend_from_slice(rest);
        Ok(())
    }

    fn state(&mut self, at: StreamHandle) -> Option<&mut StreamState> {
        self.states.get_mut(at.place).filter(|state| state.id == at.id)
    }

    /// The state of a new stream.
    fn new_state(&mut self, at: StreamHandle) -> &mut StreamState {
        if self.states.len() <= at.place {
            self.states.resize_with(at.place + 1, StreamState::default);
        }
        let state = &mut self.states[at.place];
        *state = StreamState { id: at.id, ..StreamState::default() };
        state
    }

    /// Starts a request; `ends` is true if it has no body.
    fn request(
        &mut self,
        core: &Rc<CoreCtx>,
        live: &LiveRef,
        request: &mut Request,
        at: StreamHandle,
        ends: bool,
        mut started: RequestStart,
    ) {
        let now = started.at;
        self.caller.served += 1;
        self.worked_ms = now.mono_ms;
        let extended = request.upgrade != Change::None;
        if extended {
            head::as_http1_upgrade(request);
        }
        let (start, client) = self.caller.ask(core, live, &mut self.stream, request, &mut started);
        let note = Note { client, live, request: &*request, started: &started, reply_us: None };
        let start = match start {
            Start::Reply(mut reply) => {
                if let Some(head_out) = self.answer_now(core, live, at, &mut reply, now) {
                    let body_out = reply.length().unwrap_or(0);
                    let moved = ExchangeBytes { head_out, body_out, body_in: 0 };
                    return note.log_finished(core, &reply, moved);
                }
                Start::Reply(reply)
            }
            slow @ Start::Slow(_) => slow,
        };
        let held = match &start {
            Start::Reply(_) => account::hold_answered(&self.caller.account, client, request),
            Start::Slow(slow) => account::hold_waiting(&self.caller.account, client, request, slow),
        };
        let held = match held {
            Ok(held) => held,
            Err(full) => return self.no_memory(core, at, &note, full),
        };
        let (live, held) = (Rc::clone(live), RefCell::new(Some(held)));
        request.fit();
        let deferred =
            DeferredRequest { request: std::mem::take(request), live, client, started, held };
        let deferred = Rc::new(deferred);
        self.new_state(at).deferred = Some(Rc::clone(&deferred));
        match start {
            Start::Reply(reply)
                if reply.is_at_hand() && !reply.body.part().is_some_and(BodyPart::is_file) =>
            {
                self.begin_reply(core, at, Box::new(reply), None, None);
            }
            Start::Reply(reply) => {
                let task = self.task(core, at, deferred);
                self.run(at, task.hand_over(reply));
            }
            Start::Slow(slow) => self.wait(core, at, &deferred, slow, ends),
        }
    }

    fn task(
        &mut self,
        core: &Rc<CoreCtx>,
        at: StreamHandle,
        deferred: Rc<DeferredRequest>,
    ) -> Task {
        let (ends, owner) = (self.caller.ends.pair(&self.stream), self.caller.ends.owner());
        let promise = Promise::new(Rc::clone(core), Rc::clone(&self.mail), at);
        // The first bodies get large windows, later ones smaller: together not much more than a
        // tenth of the limit, since each body may be buffered several times.
        let limits = &deferred.live.limits;
        let share = (limits.h2_memory / 16).saturating_sub(self.reserved) / 8;
        let scarce = account::window(&self.caller.account, limits);
        let window = share.min(scarce).max(SMALLEST_WINDOW).min(limits.window_bytes);
        self.reserved += window;
        if let Some(state) = self.state(at) {
            state.window = window;
        }
        let account = Arc::clone(&self.caller.account);
        let is_open = self.engine.is_open_to(at);
        let (core, feed, up) = (Rc::clone(core), OnceCell::new(), RefCell::default());
        Task { core, deferred, ends, owner, window, account, is_open, promise, feed, up }
    }

    /// Runs a stream's task.
    fn run(&mut self, at: StreamHandle, task: impl Future<Output = ()> + 'static) {
        if let Some(state) = self.state(at) {
            state.task = Some(StreamTask(rt::spawn_local(task).abort_handle()));
        }
    }

    /// Lets a request wait for its reply, after enough of its body was received.
    fn wait(
        &mut self,
        core: &Rc<CoreCtx>,
        at: StreamHandle,
        deferred: &Rc<DeferredRequest>,
        slow: Box<flow::WaitingRequest>,
        ends: bool,
    ) {
        let limits = &deferred.live.limits;
        let intake = Intake::of(&deferred.request, ends, &slow, limits, &core.flow.counters);
        let (continues, gathers) = match intake {
            Intake::None => return self.start(core, at, slow, None),
            Intake::Refused(fault) => return self.refuse(core, at, fault.page()),
            Intake::Taken { continues, gathers } => (continues, gathers),
        };
        if continues {
            self.engine.begin_head(100, &mut self.out.bytes);
            self.engine.end_head(at, false, &mut self.out.bytes);
        }
        // The task is woken when half of it was taken, long before the client must stop.
        let window = u64::from(Settings::from(limits).stream_window()) / 4;
        let passage = WindowLimit { bytes: window, account: Arc::clone(&self.caller.account) };
        let (writer, reader) = cache::BodyWindow::window(passage);
        let now_ms = core.flow.now().mono_ms;
        let Some(state) = self.state(at) else { return };
        state.upload = Some(StreamUpload::new(writer, now_ms));
        if gathers {
            state.waiting = Some((slow, reader));
        } else {
            self.start(core, at, slow, Some(reader));
        }
    }

    fn start(
        &mut self,
        core: &Rc<CoreCtx>,
        at: StreamHandle,
        slow: Box<flow::WaitingRequest>,
        body: Option<cache::Reader>,
    ) {
        let Some(deferred) = self.state(at).and_then(|state| state.deferred.clone()) else {
            return;
        };
        let (up, body) = if slow.is_upgrade() { (body, None) } else { (None, body) };
        let task = Task { up: RefCell::new(up), ..self.task(core, at, deferred) };
        self.run(at, task.answer(slow, body));
    }

    fn take_mail(&mut self, core: &Rc<CoreCtx>) {
        while let Some((at, item)) = self.mail.take() {
            // A message of a task that was ended is dropped.
            let Some(state) = self.state(at).filter(|state| state.task.is_some()) else { continue };
            match item {
                StreamMessage::Interim(response) => {
                    let out = &mut self.out.bytes;
                    head::interim(&mut self.engine, &response, out);
                    self.engine.end_head(at, false, out);
                }
                StreamMessage::Reply { reply, feed, length } => {
                    self.begin_reply(core, at, reply, feed, length);
                }
                StreamMessage::Piece(bytes) => {
                    if let BodyOrigin::Fed(pieces, _) = &mut state.source {
                        let length = bytes.len() as u64;
                        pieces.push_back(bytes);
                        self.engine.offer(at, length, false);
                    }
                }
                StreamMessage::End(None) => self.engine.offer(at, 0, true),
                StreamMessage::End(trailed) => {
                    state.trailed = trailed;
                    self.engine.offer_trailers(at);
                }
                StreamMessage::Broke if state.reply.is_none() => {
                    let reason = "The request failed because of an internal error.";
                    let page = pages::refused(Status::INTERNAL_SERVER_ERROR, reason);
                    self.refuse(core, at, Some(page));
                }
                StreamMessage::Broke => self.cut(core, at, Code::Internal),
            }
        }
    }

    /// Encodes the output that leaves next, up to the size of one write.
    fn pump(&mut self, core: &CoreCtx, now: Now) {
        while self.out.room() > 0
            && let Some(grant) = self.engine.grant(self.out.room(), &mut self.out.bytes)
        {
            let at = grant.stream;
            if let Some(state) = self.states.get_mut(at.place) {
                state.source.take(grant.bytes, &mut self.out);
                state.sent += grant.bytes as u64;
                state.sending.moved(grant.bytes, now.mono_ms);
            }
            self.sending.moved(grant.bytes, now.mono_ms);
            if grant.ends {
                let state = self.states.get_mut(at.place);
                match state.and_then(|state| state.trailed.take()) {
                    Some(come) => self.engine.trailers(at, &come.trailers, &mut self.out.bytes),
                    None => self.engine.sent_all(at, &mut self.out.bytes),
                }
                self.finished(core, at);
            }
        }
    }

    /// Lets bodies be produced where the client's windows permit it, at most as many at once as
    /// leave together. A body that may wait for further input is always permitted.
    fn open_feeds(&self) {
        if self.made == 0 {
            return;
        }
        let mut room = self.out.room().min(self.engine.send_room());
        for (place, state) in self.states.iter().enumerate() {
            let BodyOrigin::Fed(_, feed) = &state.source else { continue };
            let is_open = self.engine.is_open_to(StreamHandle { place, id: state.id });
            match feed.making() {
                BodyDerivation::None => {}
                BodyDerivation::OfComing => feed.open(is_open),
                BodyDerivation::OfWhole => {
                    feed.open(is_open && room > 0);
                    room = room.saturating_sub(if is_open { MADE_BYTES } else { 0 });
                }
            }
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, core: &CoreCtx) -> Poll<io::Result<()>> {
        let (mut moved, before) = (0, self.stream.wire_bytes());
        let done = self.out.poll_write(cx, &mut self.stream, core, &mut moved);
        let now_ms = core.flow.now().mono_ms;
        match done {
            Poll::Pending => {
                self.caller.guard.sending(now_ms);
                if moved > 0 || self.stream.wire_bytes() > before {
                    self.caller.guard.sent(moved, now_ms);
                }
            }
            Poll::Ready(_) => self.caller.guard.send_done(),
        }
        done
    }

    /// Keeps unsent output and unparsed input while the client is slow, if there is memory.
    fn poll_unsent(&mut self, core: &CoreCtx) -> Poll<ConnectionEnding> {
        self.out.fit();
        let received = self.held.capacity() + self.engine.kept();
        let bytes = self.out.bytes.capacity() + self.stream.unsent() + received;
        let account = &self.caller.account;
        match self.buffered.set(bytes as u64, || Arc::clone(account)) {
            Ok(()) => Poll::Pending,
            Err(_) => Poll::Ready(self.too_much(core)),
        }
    }

    /// Ends a connection that has more buffered than there is memory for.
    fn too_much(&mut self, core: &CoreCtx) -> ConnectionEnding {
        core.flow.counters.limit(Limit::ClientMemory);
        self.caller.guard.ends_as(Counter::ClosedSending);
        self.stream.cut();
        ConnectionEnding::Gone
    }

    /// Logs a stream's reply, which was written to the socket completely.
    fn finished(&mut self, core: &CoreCtx, at: StreamHandle) {
        let Some(state) = self.state(at) else { return };
        let state = std::mem::take(state);
        self.reserved -= state.window;
        self.made -= usize::from(state.source.is_made());
        let Some(deferred) = &state.deferred else { return };
        let StreamState { head_out, sent: body_out, received: body_in, .. } = state;
        let (note, moved) =
            (Note::of(deferred, state.reply_us), ExchangeBytes { head_out, body_out, body_in });
        match state.reply.as_deref() {
            Some(reply) if !state.cut_off => note.log_finished(core, reply, moved),
            reply => note.log_aborted(core, reply, moved),
        }
    }

    /// Resets a stream whose reply is truncated, so that the client notices.
    fn cut(&mut self, core: &CoreCtx, at: StreamHandle, code: Code) {
        self.engine.reset(at, code, &mut self.out.bytes);
        if let Some(state) = self.state(at) {
            state.cut_off = true;
        }
        self.finished(core, at);
    }

    /// Removes a stream's state and ends its task.
    fn drop_stream(&mut self, core: &CoreCtx, at: StreamHandle) {
        let Some(state) = self.state(at) else { return };
        state.cut_off = true;
        self.finished(core, at);
    }

    /// Ends all streams with the connection.
    fn leave(mut self, core: &CoreCtx) -> Self {
        for place in 0..self.states.len() {
            let id = self.states[place].id;
            if id != 0 {
                self.drop_stream(core, StreamHandle { place, id });
            }
        }
        self
    }

    /// Ends the connection: the client has broken the protocol or exceeded a limit.
    fn fatal(&mut self, core: &CoreCtx, fatal: &ConnectionError) {
        core.flow.counters.inc(Counter::H2ProtocolErrors);
        self.caller.guard.ends_as(Counter::ClosedMalformed);
        if let Some(limit) = fatal.limit {
            core.flow.counters.limit(limit);
        }
        self.engine.end(fatal, &mut self.out.bytes);
        self.over = true;
        for state in &mut self.states {
            state.task = None;
        }
    }
}
