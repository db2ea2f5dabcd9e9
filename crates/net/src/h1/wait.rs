//! Work of a connection outside its fast way: waiting for an answer while the request's body goes
//! up, sending bodies that are not all there yet, finishing slow writes, closing with grace.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use base::{Account, Counter, Held, Limit};
use bytes::Bytes;
use cache::Reader;
use flow::{Front, LiveRef, Part, Peer, Reply, ReplyBody, Tunnel, pages};
use h1::encode::{self, BodyFraming};
use message::trailers::are_taken;
use message::{Framing, Request, Status};

use super::conn::{Answer, Conn, Refusal, SEALED_COPY_MAX, Step, Then, Waiting, end_after};
use super::early::Early;
use super::upload::Upload;
use crate::account::{self, Buffered};
use crate::core::CoreCtx;
use crate::ending::linger;
use crate::exchange::{self, Moment, Moved, Note};
use crate::guard::{Guard, Phase};
use crate::head::append;
use crate::peers::Entry;
use crate::segments::{Segments, Tail, copy_range};
use crate::stream::{Both, Stream};
use crate::tunnel::{self, Carrier};

/// The response that a client waits for after its `Expect: 100-continue` (RFC 9110 10.1.1).
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Pieces of a body up to this size are copied behind what stands before them: a plain write of
/// them is the cheaper one. Longer ones leave from where they lie.
const COPY_MAX: usize = 4 * 1024;
/// Bytes of small parts that leave together.
const GATHERED_MAX: usize = 64 * 1024;

/// Serves a connection to its end.
pub(crate) async fn serve(mut conn: Conn, core: Rc<CoreCtx>) {
    loop {
        let then = match poll_fn(|cx| conn.poll_fast(cx, &core)).await {
            Step::Close => Then::Close,
            Step::Expired(limit) => {
                Box::pin(expired(&mut conn, &core, limit)).await;
                Then::Close
            }
            Step::Send(mut segments, then) => {
                match Box::pin(send(&mut conn, &core, &mut segments)).await {
                    Ok(()) => then,
                    Err(error) => {
                        conn.broke_off(&core, SendError::of(&error) != SendError::Io);
                        Then::Close
                    }
                }
            }
            Step::Wait(waiting) => Box::pin(exchange(&mut conn, &core, waiting)).await,
        };
        match then {
            Then::Next => conn.guard.enter(Phase::Idle, core.flow.now().mono_ms),
            Then::Close if conn.held.is_empty() => return conn.stream.close(),
            // Closing with requests unread would be a reset, which takes the last answer along.
            Then::Close | Then::Linger => {
                conn.held = Vec::new();
                Box::pin(linger(&mut conn.stream, &conn.guard, &core, u64::MAX)).await;
                return;
            }
        }
    }
}

/// A limit ended the connection: says so where a request had begun.
async fn expired(conn: &mut Conn, core: &CoreCtx, limit: Limit) {
    if limit != Limit::HeaderTimeout {
        return;
    }
    let reason = "The request's head took too long (limit: header_timeout).";
    let Some(status) = Status::new(408) else { return };
    let reply = pages::refused(status, reason).because_of(limit);
    let started = conn.half_read(Moment::now(core));
    let mut out = Vec::new();
    let refusal = Refusal { reply: &reply, received: &conn.held };
    conn.refuse(core, &core.flow.live(), refusal, &started, &mut out);
    // As much as the socket takes at once; a client this slow gets no more of our time.
    conn.stream.write_now(&out);
}

async fn send(conn: &mut Conn, core: &CoreCtx, segments: &mut Segments) -> io::Result<()> {
    let guard = Rc::clone(&conn.guard);
    guard.answering(core.flow.now().mono_ms);
    guard.sending(core.flow.now().mono_ms);
    let stream = RefCell::new(&mut conn.stream);
    let sent = write_all(&guard, core, &stream, segments).await;
    guard.answered();
    sent
}

/// Writes `segments` to their end, noting progress, unless the sweep ends the connection.
async fn write_all(
    guard: &Guard,
    core: &CoreCtx,
    stream: &Both<'_>,
    segments: &mut Segments,
) -> io::Result<()> {
    let mut buffered = Buffered::default();
    poll_fn(|cx| {
        let mut stream = stream.borrow_mut();
        let (before, wire_before) = (segments.left(), stream.wire_bytes());
        let done = segments.poll_write(cx, &mut **stream, core);
        let wrote = before - segments.left();
        if wrote > 0 || stream.wire_bytes() > wire_before {
            guard.sent(wrote as usize, core.flow.now().mono_ms);
        }
        match done {
            Poll::Pending if !hold_unsent(core, &stream, segments, &mut buffered) => {
                Poll::Ready(Err(io::ErrorKind::OutOfMemory.into()))
            }
            Poll::Pending => {
                if guard.wants_look() {
                    guard.holds(stream.held_by_kernel(), core.flow.now().mono_ms);
                }
                guard.poll_expired(cx).map(|_| Err(io::ErrorKind::TimedOut.into()))
            }
            ready => ready,
        }
    })
    .await
}

/// Holds memory for what a client does not take yet; false if there is not so much.
fn hold_unsent(
    core: &CoreCtx,
    stream: &Stream,
    segments: &mut Segments,
    buffered: &mut Buffered,
) -> bool {
    segments.fit();
    let bytes = segments.kept() + stream.unsent();
    let held = buffered.set(bytes as u64, || account::open(core));
    if held.is_err() {
        core.flow.counters.limit(Limit::ClientMemory);
    }
    held.is_ok()
}

/// One request's exchange: its body goes up while its answer is awaited and sent.
async fn exchange(conn: &mut Conn, core: &Rc<CoreCtx>, waiting: Box<Waiting>) -> Then {
    let Waiting { before, mut request, live, answer, client, keep, started } = *waiting;
    let (guard, account) = (Rc::clone(&conn.guard), Arc::clone(&conn.account));
    let held = std::mem::take(&mut conn.held);
    let (ends, owner) = (conn.ends.pair(&conn.stream), conn.ends.owner());
    let stream = &RefCell::new(&mut conn.stream);
    let (waits, answer) = hold_memory(core, &account, client, &mut request, answer);
    let mut upload = Upload::new(request.framing, held, &live, &account, core.flow.now().mono_ms);
    let (is_lost, answer) = hold_ahead(core, &mut upload, answer);
    if let Some(mut before) = before
        && write_all(&guard, core, stream, &mut before).await.is_err()
    {
        return Then::Close;
    }
    let wanted = matches!(answer, Answer::Slow(_))
        && request.framing != Framing::None
        && !upload.refuse_declared(core, &live.limits);
    let late = request.expect_continue && answer.continues_late();
    let awaited = wanted && request.expect_continue && !late && upload.is_untouched();
    if awaited && say_continue(&guard, core, stream).await.is_err() {
        return Then::Close;
    }
    let (place, answer) = hold_place(core, client, &live, answer);
    let passage = account::passage(&account, &live.limits);
    let window = account::narrowed(&passage, &live.limits);
    let body = wanted.then(|| upload.open(core, &guard, passage));
    if !late {
        upload.gather(core, &guard, stream, &live.limits).await;
    }
    let mut early = Early::new(request.version);
    let reply = match answer {
        Answer::Reply(reply) => Some(reply),
        Answer::Slow(_) if upload.refusal().is_some() => upload.refusal(),
        Answer::Slow(slow) => {
            let interims = early.interims();
            let (interims, account, owner) = (interims.as_ref(), &account, Some(&owner));
            let front = Front { interims, ends, window, account, owner };
            let answer = pin!(slow.run(&core.flow, &request, body, front));
            let answer = pin!(early.beside(core, stream, answer));
            upload.beside(core, &guard, stream, answer, true).await
        }
    };
    let note = Note::ready_now(core, client, &live, &request, &started);
    let Some(reply) = reply else { return gone(core, &note, &upload) };
    let mut reply = upload.refusal().unwrap_or(reply);
    // A body that was not read to its end here is read off afterwards, if it is short.
    let keep =
        keep && !is_lost && upload.may_finish(&live.limits, &core.flow.counters) && !reply.close;
    let (early, wrote, kept) = (early.rest(), Written::default(), Cell::new((waits, place)));
    let (live, request, guard, account) = (&live, &request, &guard, &account);
    let sending = Sending { core, guard, account, live, request, early, keep, wrote, kept };
    let sent = sending.send_and_note(stream, &mut upload, &mut reply, &note).await;
    let end = match sent {
        Ok(sent) => sending.end(&sent, &reply, &upload),
        Err(error) => {
            conn.broke_off(core, error != SendError::Io);
            return Then::Close;
        }
    };
    if let Some(end) = end {
        guard.ends_as(end);
        return if upload.is_spent() && !is_lost { Then::Close } else { Then::Linger };
    }
    if !upload.finish(core, guard, stream, &live.limits).await {
        guard.ends_as(Counter::ClosedBody);
        return Then::Linger;
    }
    conn.go_on(upload.take_rest());
    Then::Next
}

/// The client has left before its answer came.
fn gone(core: &CoreCtx, note: &Note<'_>, upload: &Upload) -> Then {
    note.gone(core, upload.received());
    Then::Close
}

/// Has the client send its body.
async fn say_continue(guard: &Guard, core: &CoreCtx, stream: &Both<'_>) -> io::Result<()> {
    write_all(guard, core, stream, &mut Segments::new(CONTINUE.to_vec(), None)).await
}

/// A request that must wait holds memory for that, and is refused if there is not enough.
fn hold_memory(
    core: &CoreCtx,
    account: &Arc<Account>,
    client: Peer,
    request: &mut Request,
    answer: Answer,
) -> (Option<Held>, Answer) {
    let Answer::Slow(slow) = &answer else { return (None, answer) };
    request.fit();
    match account::hold_waiting(account, client, request, slow) {
        Ok(held) => (Some(held), answer),
        Err(_) => (None, Answer::Reply(account::no_memory(core))),
    }
}

/// Holds memory for what was received with a request; returns true if it is lost for want
/// of memory, and the answer to the request.
fn hold_ahead(core: &CoreCtx, upload: &mut Upload, answer: Answer) -> (bool, Answer) {
    match upload.hold() {
        Ok(()) => (false, answer),
        Err(_) => (true, Answer::Reply(account::no_memory(core))),
    }
}

/// A request that may become a tunnel holds a place for it; refused if no place is free.
fn hold_place(
    core: &CoreCtx,
    client: Peer,
    live: &LiveRef,
    answer: Answer,
) -> (Option<Entry>, Answer) {
    let Answer::Slow(slow) = &answer else { return (None, answer) };
    if !slow.is_upgrade() {
        return (None, answer);
    }
    match tunnel::place(core, client, &live.limits) {
        Ok(place) => (Some(place), answer),
        Err(limit) => (None, Answer::Reply(tunnel::no_place(limit))),
    }
}

/// A reply that has left.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    head_bytes: u64,
    body_bytes: u64,
    /// Bytes that a tunnel carried the other way.
    tunnelled_in: u64,
    /// The counter for the connection's end, where only that end shows that the body is whole.
    end: Option<Counter>,
}

/// Counts of what has been written of a reply.
#[derive(Default)]
struct Written {
    /// Bytes of the head that was written last.
    head_bytes: Cell<u64>,
    /// Bytes of chunked framing, which are no content, in what was written since then.
    framed: Cell<u64>,
}

/// A reply on its way out, its request's body perhaps still on its way in.
struct Sending<'a> {
    core: &'a CoreCtx,
    guard: &'a Guard,
    account: &'a Arc<Account>,
    live: &'a LiveRef,
    request: &'a Request,
    /// Interim responses that did not leave yet.
    early: &'a [u8],
    keep: bool,
    wrote: Written,
    /// Memory that the request waits with, and a tunnel's place if the reply may open one.
    kept: Cell<(Option<Held>, Option<Entry>)>,
}

impl Sending<'_> {
    /// Sends `reply` in the form that its request wants, and tells of it.
    async fn send_and_note(
        &self,
        stream: &Both<'_>,
        upload: &mut Upload,
        reply: &mut Reply,
        note: &Note<'_>,
    ) -> Result<Sent, SendError> {
        reply.answer_to(self.request);
        let before = self.guard.sent_in_all();
        let sent = self.send_or_say(stream, upload, reply).await;
        self.guard.receive_done();
        let left = sent.unwrap_or_else(|_| self.broken_off(self.guard.sent_in_all() - before));
        let moved = Moved {
            head_out: left.head_bytes,
            body_out: left.body_bytes,
            body_in: upload.received() + left.tunnelled_in,
        };
        note.over(self.core, reply, moved, sent.is_err());
        sent
    }

    /// The counter for the connection's end, if the connection ends with this answer.
    fn end(&self, sent: &Sent, reply: &Reply, upload: &Upload) -> Option<Counter> {
        let ends = sent.end.is_some() || !self.keep || reply.close;
        let refused = || upload.refusal().map(|_| Counter::ClosedBody);
        let in_order = || sent.end.unwrap_or_else(|| end_after(self.request, reply.close));
        ends.then(|| refused().unwrap_or_else(in_order))
    }

    /// The sent part of a reply that broke off after `bytes`, head included.
    fn broken_off(&self, bytes: u64) -> Sent {
        let head_bytes = self.wrote.head_bytes.get().min(bytes);
        let body_bytes = (bytes - head_bytes).saturating_sub(self.wrote.framed.get());
        Sent { head_bytes, body_bytes, ..Sent::default() }
    }

    /// Sends `reply`; a page that says why where its body broke off before anything had left.
    async fn send_or_say(
        &self,
        stream: &Both<'_>,
        upload: &mut Upload,
        reply: &mut Reply,
    ) -> Result<Sent, SendError> {
        match self.send(stream, upload, reply).await {
            Err(early @ (SendError::Early | SendError::Starved)) => {
                *reply = exchange::broke_off(early == SendError::Starved);
                self.send(stream, upload, reply).await
            }
            sent => sent,
        }
    }

    /// Sends `reply`, whose body it takes.
    async fn send(
        &self,
        stream: &Both<'_>,
        upload: &mut Upload,
        reply: &mut Reply,
    ) -> Result<Sent, SendError> {
        let Self { core, guard, account, .. } = *self;
        let mut head = Vec::with_capacity(512);
        head.extend_from_slice(self.early);
        // A page in the place of a reply may want an end that nobody knew of before.
        let keep = self.keep && !reply.close;
        let framing = append(self.live, self.request, reply, keep, &mut head);
        let head_bytes = (head.len() - self.early.len()) as u64;
        self.wrote.head_bytes.set(head_bytes);
        self.wrote.framed.set(0);
        let before_body = guard.sent_in_all() + head.len() as u64;
        let body = std::mem::replace(&mut reply.body, ReplyBody::None);
        let body = match body {
            ReplyBody::Tunnel(origin) => {
                return self.become_tunnel(stream, upload, head, origin).await;
            }
            ReplyBody::Stream { mut reader, length } => {
                reader.hold_for(account);
                ReplyBody::Stream { reader, length }
            }
            body => body,
        };
        // Whoever follows what still comes may leave while there is nothing to send.
        let watch = matches!(body, ReplyBody::Stream { .. });
        guard.answering(core.flow.now().mono_ms);
        guard.sending(core.flow.now().mono_ms);
        let trails = framing == BodyFraming::Chunked && are_taken(&self.request.headers);
        let wire = BodyLine { framing, trails, framed: &self.wrote.framed };
        let send = pin!(send_body(core, guard, stream, head, body, wire));
        let sent = upload.beside(core, guard, stream, send, watch).await;
        guard.answered();
        sent.unwrap_or(Err(SendError::Io)).map(|()| Sent {
            head_bytes,
            body_bytes: guard.sent_in_all().saturating_sub(before_body + self.wrote.framed.get()),
            tunnelled_in: 0,
            end: (framing == BodyFraming::UntilClose).then_some(Counter::ClosedByEnd),
        })
    }
}

impl Sending<'_> {
    /// Sends a 101, and carries what the client and the origin speak from then on.
    async fn become_tunnel(
        &self,
        stream: &Both<'_>,
        upload: &mut Upload,
        head: Vec<u8>,
        origin: Box<Tunnel>,
    ) -> Result<Sent, SendError> {
        let Self { core, guard, account, .. } = *self;
        guard.sending(core.flow.now().mono_ms);
        let mut head = Segments::new(head, None);
        write_all(guard, core, stream, &mut head).await.map_err(|error| SendError::of(&error))?;
        guard.send_done();
        drop(head);
        let (mut held, place) = self.kept.take();
        if let Some(held) = &mut held {
            account::keep_for_tunnel(held, self.request);
        }
        let run =
            tunnel::Run::new(Carrier { core, guard, account }, origin, upload.take_rest(), place);
        let head_bytes = self.wrote.head_bytes.get();
        let (tunnelled_in, body_bytes) = run.carry(stream).await;
        let end = Some(Counter::ClosedTunnel);
        Ok(Sent { head_bytes, body_bytes, tunnelled_in, end })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SendError {
    /// The source failed before anything was written.
    Early,
    /// The same, for want of memory.
    Starved,
    /// The source ended before its end.
    Cut,
    /// The client is gone, or too slow.
    Io,
}

impl SendError {
    fn of(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::OutOfMemory => Self::Cut,
            _ => Self::Io,
        }
    }
}

/// The way in which a body is written.
#[derive(Clone, Copy)]
struct BodyLine<'a> {
    framing: BodyFraming,
    /// The client takes trailers.
    trails: bool,
    /// Where the bytes of framing are counted.
    framed: &'a Cell<u64>,
}

async fn send_body(
    core: &CoreCtx,
    guard: &Guard,
    stream: &Both<'_>,
    head: Vec<u8>,
    body: ReplyBody,
    wire: BodyLine<'_>,
) -> Result<(), SendError> {
    let mut out = head;
    let parts = match body {
        ReplyBody::None | ReplyBody::Head(_) | ReplyBody::Tunnel(_) => None,
        ReplyBody::Parts(parts) => Some(parts),
        ReplyBody::Stream { reader, length } => {
            let coming = Coming::new(reader, length, wire);
            return send_stream(core, guard, stream, out, coming).await;
        }
    };
    for part in parts.into_iter().flatten() {
        let tail = match part {
            Part::Bytes(bytes) => {
                out.extend_from_slice(&bytes);
                None
            }
            Part::Stored(object, range) if range.end - range.start <= SEALED_COPY_MAX => {
                copy_range(&object, range, &mut out);
                None
            }
            Part::Stored(object, range) => Some(Tail::Stored(object, range)),
            Part::File(file, range) => Some(Tail::file(file, range)),
        };
        if tail.is_some() || out.len() > GATHERED_MAX {
            out = write_segments(core, guard, stream, Segments::new(out, tail)).await?;
        }
    }
    if !out.is_empty() {
        write_segments(core, guard, stream, Segments::new(out, None)).await?;
    }
    Ok(())
}

/// Writes all of `segments`; the emptied buffer.
async fn write_segments(
    core: &CoreCtx,
    guard: &Guard,
    stream: &Both<'_>,
    mut segments: Segments,
) -> Result<Vec<u8>, SendError> {
    let wrote = write_all(guard, core, stream, &mut segments).await;
    wrote.map_err(|error| SendError::of(&error))?;
    Ok(segments.into_buffer())
}

/// Sends a body as it arrives. The head leaves with the first bytes, or at once when there are none
/// yet.
async fn send_stream(
    core: &CoreCtx,
    guard: &Guard,
    stream: &Both<'_>,
    head: Vec<u8>,
    mut coming: Coming<'_>,
) -> Result<(), SendError> {
    let mut out = head;
    let mut cut = SendError::Early;
    loop {
        let (gathered, shared) = coming.gather(&mut out).await;
        if gathered == Gathered::Broken {
            let is_starved = cut == SendError::Early && coming.reader.is_starved();
            return Err(if is_starved { SendError::Starved } else { cut });
        }
        // Nothing to send is no stall of the client's.
        guard.sending(core.flow.now().mono_ms);
        let mut segments = Segments::new(std::mem::take(&mut out), shared);
        write_all(guard, core, stream, &mut segments)
            .await
            .map_err(|error| SendError::of(&error))?;
        guard.send_done();
        if gathered == Gathered::All {
            return Ok(());
        }
        out = segments.into_buffer();
        cut = SendError::Cut;
    }
}

/// A body that is still coming, and how it leaves.
struct Coming<'a> {
    reader: Reader,
    /// Bytes that are still to come, if it was said how many.
    left: Option<u64>,
    chunked: bool,
    wire: BodyLine<'a>,
    broken: bool,
}

/// The progress of [`Coming::gather`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gathered {
    Some,
    All,
    /// Nothing, and nothing will come: the body ends before its end.
    Broken,
}

impl<'a> Coming<'a> {
    fn new(reader: Reader, length: Option<u64>, wire: BodyLine<'a>) -> Self {
        let chunked = wire.framing == BodyFraming::Chunked;
        Self { reader, left: length, chunked, wire, broken: false }
    }

    /// Counts what was appended to `out`, which had `before` bytes, as framing.
    fn count_framing(&self, out: &[u8], before: usize) {
        self.wire.framed.set(self.wire.framed.get() + (out.len() - before) as u64);
    }

    /// Waits until there is something to send. Small pieces that are there are appended to `out`
    /// together, and the end if it is there too; a large piece is to follow `out`.
    async fn gather(&mut self, out: &mut Vec<u8>) -> (Gathered, Option<Tail>) {
        let before = out.len();
        while !self.broken && self.left != Some(0) {
            let next = poll_fn(|cx| match self.reader.poll_next(cx) {
                Poll::Pending if !out.is_empty() => Poll::Ready(None),
                other => other.map(Some),
            });
            match next.await {
                None => return (Gathered::Some, None),
                Some(Ok(Some(data))) => {
                    let shared = self.append(data, out);
                    if shared.is_some() || out.len() >= COPY_MAX {
                        return (Gathered::Some, shared);
                    }
                }
                Some(Ok(None)) if self.left.is_none() => self.left = Some(0),
                Some(Ok(None) | Err(_)) => self.broken = true,
            }
        }
        if self.broken {
            // What came before it leaves first.
            let gathered = if out.len() > before { Gathered::Some } else { Gathered::Broken };
            return (gathered, None);
        }
        if self.chunked {
            let trailed = if self.wire.trails { self.reader.take_trailers() } else { None };
            let before = out.len();
            encode::last_chunk(out, trailed.as_ref().map(|come| &come.trailers));
            self.count_framing(out, before);
        }
        (Gathered::All, None)
    }

    /// Appends a piece to `out`, or says what is to follow it.
    fn append(&mut self, mut data: Bytes, out: &mut Vec<u8>) -> Option<Tail> {
        if let Some(left) = &mut self.left {
            data.truncate((*left).min(data.len() as u64) as usize);
            *left -= data.len() as u64;
        }
        let mut after: &'static [u8] = b"";
        if self.chunked {
            let before = out.len();
            encode::chunk_start(out, data.len());
            self.count_framing(out, before);
            after = encode::CHUNK_END;
            self.wire.framed.set(self.wire.framed.get() + after.len() as u64);
        }
        if data.len() > COPY_MAX {
            return Some(Tail::Shared(data, after));
        }
        out.extend_from_slice(&data);
        out.extend_from_slice(after);
        None
    }
}
