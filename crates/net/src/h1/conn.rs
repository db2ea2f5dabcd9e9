//! Conn: one HTTP/1.x client connection, and its fast path.
//!
//! The fast path must neither allocate nor wait. What it cannot finish it returns as a [`SlowStep`]
//! to `slow_path`.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use base::memory::HoldError;
use base::{Counter, Limit, Now};
use flow::finish::{RequestStart, UnreadableRequest};
use flow::{BodyPart, BodyParts, LiveRef, Reply, ReplyBody, Start, WaitingRequest};
use h1::{ReadProgress, RequestError, RequestReader};
use message::{Framing, Request, Version};
use tls::SessionTerms;
use tokio::io::ReadBuf;

use super::final_segment::CorkedStream;
use crate::account::{self, BufferCharge};
use crate::caller::Caller;
use crate::core::CoreCtx;
use crate::exchange::{DeferredRequest, ExchangeBytes, ExchangeTimestamp, Note};
use crate::file;
use crate::guard::{ConnectionPhase, Guard};
use crate::head::append;
use crate::proxy_header::ConnectionEndpoints;
use crate::scratch::{Scratch, Work};
use crate::segments::{Segments, Tail, copy_range};
use crate::stream::Stream;

/// Bodies up to this size are copied behind their head and sent in one plain write; above it, a
/// vectored write costs less than the copy.
const COPY_MAX: u64 = 16 * 1024;
/// The largest body to copy over TLS, which copies it anyway to encrypt it.
pub(crate) const SEALED_COPY_MAX: u64 = 2 * 1024;
/// Collected replies beyond this are written before the next request is parsed.
const FLUSH_AT: usize = 64 * 1024;

/// The first line from a client that speaks HTTP/2 without negotiation (RFC 9113 3.4).
const HTTP2: &[u8] = b"PRI * HTTP/2.0\r\n";

/// One HTTP/1.x client connection, from its first byte to its close.
///
/// # Life
///
/// `worker` accepts a socket, reserves its memory, and reads the PROXY header and performs the TLS
/// handshake that the listener requires. Then it makes a `Conn` and gives it to `slow_path::serve`,
/// which owns it until it is closed. The connection stays on the core that accepted it.
///
/// # Order of calls
///
/// 1. [`Conn::poll_fast`] reads, answers every complete request that needs no waiting, and writes
///    all these replies at once. It is pending while the client is idle, or else returns a
///    [`SlowStep`].
/// 2. `serve` finishes that step: it writes on for a slow client, or runs an exchange that waits
///    for the request's body, an origin or a body in transit. Requests received meanwhile stay in
///    `held`.
/// 3. After an exchange, [`Conn::go_on`] returns the bytes received behind it, and `poll_fast` is
///    called again. After `NextAction::Close` or `Linger`, the stream is closed and never polled
///    again.
///
/// # Owners of bytes
///
/// Received bytes are in the core's scratch buffer within one call of `poll_fast`. Afterwards,
/// `held` has those that no request has used. During an exchange, its `Upload` owns them. Replies
/// are written from the scratch output; what a slow client does not take moves to [`Segments`].
/// Buffered bytes are charged to the client's account before they are kept; an idle connection
/// holds no buffer.
///
/// # What must never happen
///
/// - A reply leaves before the reply to an earlier request.
/// - Bytes of one request, or of its body, are parsed as another request.
/// - A truncated reply ends like a complete one: [`Conn::broke_off`] resets the connection instead.
/// - A connection with unread bytes is closed at once: the reset would take the last reply along.
/// - The scratch memory stays borrowed across an await.
pub(crate) struct Conn {
    pub(crate) stream: Stream,
    pub(crate) caller: Caller,
    /// Received bytes that no request has used yet; empty while idle.
    pub(crate) held: Vec<u8>,
    /// True if `held` may begin with a complete request.
    pub(crate) unread: bool,
    partial: Option<Box<PartialHead>>,
    /// The listener also accepts another protocol: an invalid first line gets no reply.
    pub(crate) is_h2c: bool,
}

/// A partial head.
struct PartialHead {
    reader: RequestReader,
    request: Request,
    /// The time of its first bytes, in the form of [`RequestStart`].
    began_us: u64,
    /// The charge for its bytes and fields.
    buffered: BufferCharge,
}

impl PartialHead {
    /// Takes over the partial head in `work`, whose first bytes came at `began_us`.
    fn of(work: &mut Work, began_us: u64) -> Self {
        Self {
            reader: std::mem::take(&mut work.reader),
            request: std::mem::take(&mut work.request),
            began_us,
            buffered: BufferCharge::default(),
        }
    }

    /// Charges the memory of the head, with the `received` bytes of it.
    fn hold(&mut self, core: &CoreCtx, received: usize) -> Result<(), HoldError> {
        let bytes = received + self.request.memory();
        self.buffered.set_begun(bytes as u64, core)
    }
}

/// A step that the fast path cannot finish.
pub(crate) enum SlowStep {
    /// The connection is closed.
    Close,
    /// A limit ended the connection.
    Expired(Limit),
    /// Bytes must still be written.
    Send(Segments, NextAction),
    /// A request must wait.
    Wait(Box<DeferredExchange>),
}

/// The step that follows a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextAction {
    /// Read the next request.
    Next,
    /// Close.
    Close,
    /// Close, after the client had time to read the reply, since it may still be sending.
    Linger,
}

/// A request that must wait: for its reply, its body, or the reply's body.
pub(crate) struct DeferredExchange {
    /// Unsent replies to earlier pipelined requests.
    pub(crate) before: Option<Segments>,
    pub(crate) deferred: DeferredRequest,
    pub(crate) answer: ReplyReadiness,
    /// True if the connection may continue after this request.
    pub(crate) keep: bool,
}

/// A reply, or the request that waits for it.
#[expect(clippy::large_enum_variant, reason = "a reply is moved, never allocated")]
pub(crate) enum ReplyReadiness {
    Reply(Reply),
    Slow(Box<WaitingRequest>),
}

/// The reason why `answer_all` stopped before it ran out of bytes.
enum Pause {
    /// A body too large to be copied comes next, or the end.
    Send(Option<Tail>, NextAction),
    Wait(Box<DeferredExchange>),
}

impl Conn {
    /// A connection that has already received `held`.
    pub(crate) fn new(
        stream: Stream,
        secured: Option<Rc<SessionTerms>>,
        ends: ConnectionEndpoints,
        guard: Rc<Guard>,
        held: Vec<u8>,
        core: &CoreCtx,
    ) -> Self {
        let (account, now_ms) = (account::open(core), core.flow.now().mono_ms);
        let caller = Caller::new(secured, ends, guard, account, now_ms);
        Self { stream, caller, unread: !held.is_empty(), held, partial: None, is_h2c: false }
    }

    /// Reads, answers and writes until something must wait.
    pub(crate) fn poll_fast(&mut self, cx: &mut Context<'_>, core: &CoreCtx) -> Poll<SlowStep> {
        let mut scratch = core.scratch.borrow_mut();
        let Scratch { input, work } = &mut *scratch;
        // A panic may have left bytes of another client.
        work.output.clear();
        loop {
            let makes_room = match self.caller.guard.poll_waiting(cx) {
                Ok(makes_room) => makes_room,
                Err(limit) => return Poll::Ready(SlowStep::Expired(limit)),
            };
            let mut read = 0;
            if !std::mem::take(&mut self.unread) {
                let mut buf = ReadBuf::new(input);
                match self.stream.poll_read(cx, &mut buf, &core.sealed) {
                    Poll::Ready(Ok(())) if !buf.filled().is_empty() => read = buf.filled().len(),
                    Poll::Ready(_) => return Poll::Ready(SlowStep::Close),
                    Poll::Pending if makes_room => {
                        return Poll::Ready(SlowStep::Expired(Limit::ConnectionMemory));
                    }
                    Poll::Pending => return Poll::Pending,
                }
                core.flow.counters.add(Counter::BytesIn, read as u64);
            }
            if makes_room {
                self.caller.guard.cancel_eviction();
            }
            let moment = ExchangeTimestamp::now(core);
            let stop = if self.held.is_empty() {
                let (used, stop) = self.answer_all(core, work, &input[..read], moment);
                self.held.extend_from_slice(&input[used..read]);
                stop
            } else {
                let mut held = std::mem::take(&mut self.held);
                held.extend_from_slice(&input[..read]);
                let (used, stop) = self.answer_all(core, work, &held, moment);
                // A partial head stays in this buffer.
                if used < held.len() {
                    held.drain(..used);
                    self.held = held;
                }
                stop
            };
            // Bytes left over after a stop or a full output are parsed without waiting for more.
            self.unread = !self.held.is_empty() && self.partial.is_none();
            let phase = match stop {
                Some(_) => ConnectionPhase::Busy,
                None if self.held.is_empty() => ConnectionPhase::Idle,
                None => ConnectionPhase::Head,
            };
            self.caller.guard.enter(phase, moment.now.mono_ms);
            if let Some(step) = self.flush(cx, core, &mut work.output, stop) {
                return Poll::Ready(step);
            }
        }
    }

    /// Answers the requests in `bytes` into the output; returns the number of bytes used.
    fn answer_all(
        &mut self,
        core: &CoreCtx,
        work: &mut Work,
        bytes: &[u8],
        moment: ExchangeTimestamp,
    ) -> (usize, Option<Pause>) {
        let live = core.flow.live();
        let scheme = self.caller.scheme();
        let mut used = 0;
        let mut stop = None;
        while used < bytes.len() && stop.is_none() && work.output.len() < FLUSH_AT {
            let mut partial = self.partial.take();
            let began_us = partial.as_ref().map_or(moment.us, |partial| partial.began_us);
            let begun = RequestStart { began_us, ..self.caller.begun(moment) };
            let (reader, request) = match &mut partial {
                Some(partial) => (&mut partial.reader, &mut partial.request),
                None => work.fresh(),
            };
            match reader.read(&bytes[used..], &live.connections.head_limits, scheme, request) {
                Ok(ReadProgress::Complete(len)) => {
                    used += len;
                    if let Some(partial) = partial {
                        work.request = partial.request;
                    }
                    stop =
                        self.answer(core, &live, work, RequestStart { head_bytes: len, ..begun });
                }
                Ok(ReadProgress::Partial) => {
                    let mut partial =
                        partial.unwrap_or_else(|| Box::new(PartialHead::of(work, began_us)));
                    if partial.hold(core, bytes.len() - used).is_ok() {
                        self.partial = Some(partial);
                        break;
                    }
                    self.caller.guard.ends_as(Counter::ClosedTooLarge);
                    let reply = account::no_memory(core);
                    stop = Some(self.turn_away(core, &reply, &bytes[used..], begun, work));
                    used = bytes.len();
                }
                Err(RequestError::RequestLine) if self.is_h2c && self.caller.served == 0 => {
                    core.flow.counters.inc(Counter::BadRequests);
                    self.caller.guard.ends_as(Counter::ClosedMalformed);
                    used = bytes.len();
                    stop = Some(Pause::Send(None, NextAction::Close));
                }
                Err(error) => {
                    let reply = self.unreadable(core, &error, bytes);
                    stop = Some(self.turn_away(core, &reply, &bytes[used..], begun, work));
                    used = bytes.len();
                }
            }
        }
        (used, stop)
    }

    /// Continues with the bytes received after a request that waited.
    pub(crate) fn go_on(&mut self, rest: Vec<u8>) {
        self.unread = !rest.is_empty();
        self.held = rest;
    }

    /// Counts a request that cannot be parsed, and returns the error page. The client's bytes begin
    /// with `received`.
    fn unreadable(&self, core: &CoreCtx, error: &RequestError, received: &[u8]) -> Reply {
        core.flow.counters.inc(Counter::BadRequests);
        if *error == RequestError::Expectation {
            core.flow.counters.inc(Counter::BadExpectations);
        }
        self.caller.guard.ends_as(match error.limit() {
            _ if self.caller.served == 0 && received.starts_with(HTTP2) => Counter::ClosedHttp2Off,
            Some(_) => Counter::ClosedTooLarge,
            None => Counter::ClosedMalformed,
        });
        if let Some(limit) = error.limit() {
            core.flow.counters.limit(limit);
        }
        flow::pages::refused(error.status(), &error.to_string()).because_of(error.limit())
    }

    /// Rejects the received bytes, and ends the connection.
    fn turn_away(
        &self,
        core: &CoreCtx,
        reply: &Reply,
        received: &[u8],
        begun: RequestStart,
        work: &mut Work,
    ) -> Pause {
        let started = RequestStart { head_bytes: received.len(), ..begun };
        self.refuse(core, reply, received, &started, &mut work.output);
        Pause::Send(None, NextAction::Linger)
    }

    /// Appends the reply that rejects `received`, and logs it.
    pub(crate) fn refuse(
        &self,
        core: &CoreCtx,
        reply: &Reply,
        received: &[u8],
        started: &RequestStart,
        output: &mut Vec<u8>,
    ) {
        let live = &core.flow.live();
        let before = output.len();
        append(live, &Request::new(), reply, false, output);
        let head_out = (output.len() - before) as u64;
        if let Some(BodyPart::Bytes(body)) = reply.body.part() {
            output.extend_from_slice(body);
        }
        let unread = UnreadableRequest { received, head_out };
        core.flow.log.refused(live, self.caller.ends.peer, reply, started, unread);
    }

    /// The start and size of a partial request.
    pub(crate) fn half_read(&self, moment: ExchangeTimestamp) -> RequestStart {
        let began_us = self.partial.as_ref().map_or(moment.us, |partial| partial.began_us);
        RequestStart { began_us, head_bytes: self.held.len(), ..self.caller.begun(moment) }
    }

    /// Answers `work.request`; returns a pause if it must wait or its body is not copied.
    fn answer(
        &mut self,
        core: &CoreCtx,
        live: &LiveRef,
        work: &mut Work,
        mut started: RequestStart,
    ) -> Option<Pause> {
        let now = started.at;
        self.caller.served += 1;
        let request = &mut work.request;
        let may_stay = self.caller.may_stay(&live.limits, now.mono_ms);
        if let Some(limit) = may_stay.err().filter(|_| request.keep_alive) {
            core.flow.counters.limit(limit);
        }
        let keep = request.keep_alive && may_stay.is_ok() && !core.draining.get();
        let copy_max = if self.stream.is_tls() { SEALED_COPY_MAX } else { COPY_MAX };
        let (start, client) = self.caller.ask(core, live, &mut self.stream, request, &mut started);
        let answer = match start {
            Start::Reply(reply) if request.framing == Framing::None && reply.is_at_hand() => {
                let (before, out) = (work.output.len(), &mut work.output);
                let stop =
                    reply_now(live, request, &reply, ReplyOptions { keep, copy_max, now }, out);
                if !keep || reply.close {
                    self.caller.guard.ends_as(end_after(request, reply.close));
                }
                let body_out = reply.length().unwrap_or(0);
                let behind = if copies_body(&stop) { body_out } else { 0 };
                let head_out = ((out.len() - before) as u64).saturating_sub(behind);
                let moved = ExchangeBytes { head_out, body_out, body_in: 0 };
                let (request, started) = (&*request, &started);
                let note = Note { client, live, request, started, reply_us: None };
                note.log_finished(core, &reply, moved);
                return stop;
            }
            Start::Reply(reply) => ReplyReadiness::Reply(reply),
            Start::Slow(slow) => ReplyReadiness::Slow(slow),
        };
        let (request, live) = (std::mem::take(request), Rc::clone(live));
        let deferred = DeferredRequest { request, live, client, started, held: RefCell::default() };
        Some(Pause::Wait(Box::new(DeferredExchange { before: None, deferred, answer, keep })))
    }

    /// Ends the connection after a truncated reply. With `cut`, which is for causes other than the
    /// client, it ends with a reset, so that the reply cannot pass for complete.
    pub(crate) fn broke_off(&mut self, cut: bool) {
        self.caller.guard.ends_as(Counter::ClosedSending);
        if cut {
            self.stream.cut();
        }
    }

    /// Writes the collected replies, and the large body that stopped the collecting, as far as the
    /// socket takes them. `None` means to read on.
    fn flush(
        &mut self,
        cx: &mut Context<'_>,
        core: &CoreCtx,
        output: &mut Vec<u8>,
        stop: Option<Pause>,
    ) -> Option<SlowStep> {
        let (tail, then) = match stop {
            None => (None, NextAction::Next),
            Some(Pause::Send(tail, then)) => (tail, then),
            Some(Pause::Wait(mut waiting)) => {
                if !output.is_empty() {
                    let mut before = Segments::new(std::mem::take(output), None);
                    match before.poll_write(cx, &mut self.stream, core) {
                        Poll::Ready(Ok(())) => *output = before.into_buffer(),
                        Poll::Ready(Err(_)) => return Some(SlowStep::Close),
                        Poll::Pending => waiting.before = Some(before),
                    }
                }
                return Some(SlowStep::Wait(waiting));
            }
        };
        let mut segments = Segments::new(std::mem::take(output), tail);
        let written = match then {
            NextAction::Close => {
                self.stream.is_last();
                match file::Sink::socket(&self.stream) {
                    Some(tcp) => segments.poll_write(cx, &mut CorkedStream(tcp), core),
                    None => segments.poll_write(cx, &mut self.stream, core),
                }
            }
            NextAction::Next | NextAction::Linger => {
                segments.poll_write(cx, &mut self.stream, core)
            }
        };
        match written {
            Poll::Ready(Ok(())) => {
                *output = segments.into_buffer();
                match then {
                    NextAction::Next => None,
                    NextAction::Close => Some(SlowStep::Close),
                    NextAction::Linger => Some(SlowStep::Send(Segments::default(), then)),
                }
            }
            Poll::Ready(Err(error)) => {
                core.flow.counters.inc(Counter::Aborted);
                self.broke_off(error.kind() == std::io::ErrorKind::UnexpectedEof);
                Some(SlowStep::Close)
            }
            Poll::Pending => Some(SlowStep::Send(segments, then)),
        }
    }
}

/// The counter for a connection that ends in order: because of `request`, or because its reply
/// closes it.
pub(crate) fn end_after(request: &Request, reply_closes: bool) -> Counter {
    match request.version {
        _ if reply_closes || request.keep_alive => Counter::ClosedByReply,
        Version::Http10 => Counter::ClosedHttp10,
        Version::Http11 | Version::Http2 => Counter::ClosedAsAsked,
    }
}

/// Options for sending a reply that is completely at hand.
#[derive(Clone, Copy)]
struct ReplyOptions {
    /// The connection may continue after it.
    keep: bool,
    /// The longest body that is copied behind its head.
    copy_max: u64,
    now: Now,
}

/// Appends a reply that is completely at hand; a body too large to copy stops the collecting.
fn reply_now(
    live: &LiveRef,
    request: &Request,
    reply: &Reply,
    way: ReplyOptions,
    output: &mut Vec<u8>,
) -> Option<Pause> {
    let ReplyOptions { keep, copy_max, now } = way;
    let keep = keep && !reply.close;
    let then = if keep { NextAction::Next } else { NextAction::Close };
    append(live, request, reply, keep, output);
    let mut large = None;
    if let ReplyBody::Parts(parts @ BodyParts::Many(_)) = &reply.body {
        parts.each(|part| copy_part(part, output));
    }
    match reply.body.part() {
        Some(BodyPart::Stored(object, range)) if range.end - range.start > copy_max => {
            large = Some(Tail::Stored(Arc::clone(object), range.clone()));
        }
        Some(BodyPart::File(file, range)) => {
            let small = range.end - range.start <= copy_max
                && file::append(file, range.clone(), output, now.mono_ms);
            large = (!small).then(|| Tail::file(Arc::clone(file), range.clone()));
        }
        Some(BodyPart::Stored(object, range)) => copy_range(object, range.clone(), output),
        Some(BodyPart::Bytes(body)) => output.extend_from_slice(body),
        None => {}
    }
    (large.is_some() || !keep).then_some(Pause::Send(large, then))
}

/// Appends a part that is in memory.
fn copy_part(part: &BodyPart, output: &mut Vec<u8>) {
    match part {
        BodyPart::Bytes(bytes) => output.extend_from_slice(bytes),
        BodyPart::Stored(object, range) => copy_range(object, range.clone(), output),
        BodyPart::File(..) => {}
    }
}

/// Returns true if the body was copied behind its head.
fn copies_body(stop: &Option<Pause>) -> bool {
    !matches!(stop, Some(Pause::Send(Some(_), _)))
}
