//! A reply on its way out, its request's body perhaps still on its way in.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::task::{Context, Poll};

use base::{Account, Counter, Limit};
use bytes::Bytes;
use cache::{Making, Trailed};
use flow::{Part, Reply, ReplyBody, Tunnel};
use h1::encode::{self, BodyFraming};
use message::trailers::are_taken;
use message::{Response, Version};

use super::conn::{SEALED_COPY_MAX, end_after};
use super::early::Early;
use super::upload::Upload;
use super::write::write_all;
use crate::core::CoreCtx;
use crate::exchange::{Asked, Broken, Engine, Moment, Moved, Note};
use crate::guard::{Guard, Phase};
use crate::head::{Framed, append_framed, framing, framing_of};
use crate::peers::Entry;
use crate::segments::{Segments, Tail, copy_range};
use crate::stream::Both;
use crate::tunnel::{self, Carrier};

/// Pieces of a body up to this size are copied behind what stands before them: a plain write of
/// them is the cheaper one. Longer ones leave from where they lie.
const COPY_MAX: usize = 4 * 1024;
/// Bytes of small parts that leave together.
const GATHERED_MAX: usize = 64 * 1024;

/// The client's side of one exchange.
pub(super) struct Answering<'a> {
    pub(super) core: &'a CoreCtx,
    pub(super) guard: &'a Guard,
    pub(super) account: &'a Arc<Account>,
    pub(super) stream: &'a Both<'a>,
    pub(super) asked: &'a Asked,
    pub(super) upload: RefCell<Upload>,
    pub(super) early: RefCell<Early>,
    /// Bytes that leave with the next write.
    pub(super) out: RefCell<Vec<u8>>,
    pub(super) left: Left,
}

/// A reply that is leaving, and what has left of it.
pub(super) struct Left {
    /// The connection may go on behind it.
    keep: Cell<bool>,
    reply: RefCell<Option<Reply>>,
    reply_us: Cell<u64>,
    framing: Cell<BodyFraming>,
    /// Bytes that the connection had sent before its head.
    before: Cell<u64>,
    head_bytes: Cell<u64>,
    /// Bytes of chunked framing, which are no content.
    framed: Cell<u64>,
    /// Bytes that a tunnel carried behind it.
    tunnelled: Cell<Option<Moved>>,
}

impl Left {
    /// For a reply that is not there yet; the connection may go on behind it if `keep`.
    pub(super) fn new(keep: bool) -> Self {
        Self {
            keep: Cell::new(keep),
            reply: RefCell::default(),
            reply_us: Cell::default(),
            framing: Cell::new(BodyFraming::None),
            before: Cell::default(),
            head_bytes: Cell::default(),
            framed: Cell::default(),
            tunnelled: Cell::default(),
        }
    }
}

impl Answering<'_> {
    /// Takes the reply, whose head is next to be written.
    fn take(&self, reply: Reply, head: impl FnOnce(&Reply, bool, &mut Vec<u8>)) {
        let Self { core, guard, asked, left, .. } = self;
        let now = core.flow.now();
        if self.upload.borrow().is_half_closed() {
            guard.enter(Phase::Busy, now.mono_ms);
        }
        // A body that was not read to its end here is read off afterwards, if it is short. A page in
        // the place of a reply may want an end that nothing else wants.
        let is_short =
            || self.upload.borrow_mut().may_finish(&asked.live.limits, &core.flow.counters);
        let keep = left.keep.get() && is_short() && !reply.close;
        let mut out = Vec::with_capacity(512);
        out.extend_from_slice(self.early.borrow().rest());
        let early = out.len();
        head(&reply, keep, &mut out);
        left.keep.set(keep);
        left.reply_us.set(core.flow.log.micros(now));
        left.before.set(guard.sent_in_all() + early as u64);
        left.head_bytes.set((out.len() - early) as u64);
        left.reply.replace(Some(reply));
        self.out.replace(out);
        guard.sending(now.mono_ms);
    }

    /// Takes a reply with a body that is framed so: from here on all of it is timed.
    fn take_framed(&self, reply: Reply, framing: BodyFraming) {
        let Self { core, guard, asked, .. } = self;
        guard.answering(core.flow.now().mono_ms);
        self.left.framing.set(framing);
        self.take(reply, |reply, keep, out| {
            append_framed(&asked.live, &asked.request, reply, Framed { framing, keep }, out);
        });
    }

    /// Writes what was collected, and `tail` behind it. Only while something is written is the
    /// client what the exchange waits for.
    async fn write(&self, tail: Option<Tail>) -> Result<(), Broken> {
        let Self { core, guard, stream, .. } = *self;
        let out = self.out.take();
        if out.is_empty() && tail.is_none() {
            return Ok(());
        }
        guard.sending(core.flow.now().mono_ms);
        let mut segments = Segments::new(out, tail);
        let wrote = write_all(guard, core, stream, &mut segments).await;
        guard.send_done();
        wrote.map_err(|error| Broken::of(&error))?;
        self.out.replace(segments.into_buffer());
        Ok(())
    }

    /// Appends framing of the body.
    fn frame(&self, append: impl FnOnce(&mut Vec<u8>)) {
        let mut out = self.out.borrow_mut();
        let before = out.len();
        append(&mut out);
        let framed = &self.left.framed;
        framed.set(framed.get() + (out.len() - before) as u64);
    }

    /// Bytes that have moved so far.
    fn moved(&self) -> Moved {
        let left = &self.left;
        let sent = self.guard.sent_in_all().saturating_sub(left.before.get());
        let head_out = left.head_bytes.get().min(sent);
        let tunnelled = left.tunnelled.get().unwrap_or_default();
        Moved {
            head_out,
            body_out: (sent - head_out).saturating_sub(left.framed.get()) + tunnelled.body_out,
            body_in: self.upload.borrow().received() + tunnelled.body_in,
        }
    }

    /// Tells the log of the exchange, which is over.
    pub(super) fn note(&self, done: Result<(), Broken>) {
        let Self { core, asked, left, .. } = self;
        match &*left.reply.borrow() {
            Some(reply) => {
                let note = Note::of(asked, left.reply_us.get());
                note.over(core, reply, self.moved(), done.is_err());
            }
            None => {
                let note = Note::of(asked, Moment::now(core).us);
                note.gone(core, self.upload.borrow().received());
            }
        }
    }

    /// The counter for the connection's end, if it ends with this answer.
    pub(super) fn end(&self) -> Option<Counter> {
        let Self { asked, left, .. } = self;
        let closes = left.reply.borrow().as_ref().is_some_and(|reply| reply.close);
        let end = match left.framing.get() {
            _ if left.tunnelled.get().is_some() => Counter::ClosedTunnel,
            BodyFraming::UntilClose => Counter::ClosedByEnd,
            _ if left.keep.get() => return None,
            _ => end_after(&asked.request, closes),
        };
        let refused = self.upload.borrow().refusal().is_some();
        Some(if refused { Counter::ClosedBody } else { end })
    }
}

impl Engine for Answering<'_> {
    fn poll_body(&self, cx: &mut Context<'_>) {
        self.upload.borrow_mut().poll_all(cx, self.core, self.guard, self.stream);
    }

    fn refusal(&self) -> Option<Reply> {
        self.upload.borrow().refusal()
    }

    /// An origin that drips counts against the time of a whole response as a client does.
    fn poll_gone(&self, cx: &mut Context<'_>) -> Poll<()> {
        let Self { core, guard, stream, .. } = *self;
        if guard.poll_expired(cx) == Poll::Ready(Limit::ResponseTime) {
            return Poll::Ready(());
        }
        self.upload.borrow_mut().poll_gone(cx, core, guard, stream)
    }

    /// One of HTTP/1.0 knows none (RFC 9110 15.2).
    fn takes_interims(&self) -> bool {
        self.asked.request.version >= Version::Http11
    }

    fn interim(&self, response: Response) {
        self.early.borrow_mut().add(&response);
    }

    fn poll_interims(&self, cx: &mut Context<'_>) {
        self.early.borrow_mut().poll_write(cx, self.core, self.stream);
    }

    fn begin(&self, reply: Reply, length: Option<u64>, _: Making) {
        self.take_framed(reply, framing_of(&self.asked.request, length));
    }

    async fn piece(&self, data: Bytes) -> Result<(), Broken> {
        let is_chunked = self.left.framing.get() == BodyFraming::Chunked;
        let mut after: &'static [u8] = b"";
        if is_chunked {
            self.frame(|out| encode::chunk_start(out, data.len()));
            after = encode::CHUNK_END;
        }
        if data.len() > COPY_MAX {
            let framed = &self.left.framed;
            framed.set(framed.get() + after.len() as u64);
            return self.write(Some(Tail::Shared(data, after))).await;
        }
        self.out.borrow_mut().extend_from_slice(&data);
        self.frame(|out| out.extend_from_slice(after));
        if self.out.borrow().len() < COPY_MAX {
            return Ok(());
        }
        self.write(None).await
    }

    async fn flush(&self) -> Result<(), Broken> {
        self.write(None).await
    }

    async fn end(&self, trailed: Option<Box<Trailed>>) -> Result<(), Broken> {
        if self.left.framing.get() == BodyFraming::Chunked {
            let trailed = trailed.filter(|_| are_taken(&self.asked.request.headers));
            self.frame(|out| {
                encode::last_chunk(out, trailed.as_ref().map(|come| &come.trailers));
            });
        }
        self.write(None).await
    }

    async fn whole(&self, mut reply: Reply) -> Result<(), Broken> {
        let framing = framing(&self.asked.request, &reply);
        let parts = match std::mem::replace(&mut reply.body, ReplyBody::None) {
            ReplyBody::Parts(parts) => Some(parts),
            _ => None,
        };
        self.take_framed(reply, framing);
        for part in parts.into_iter().flatten() {
            let tail = match part {
                Part::Bytes(bytes) => {
                    self.out.borrow_mut().extend_from_slice(&bytes);
                    None
                }
                Part::Stored(object, range) if range.end - range.start <= SEALED_COPY_MAX => {
                    copy_range(&object, range, &mut self.out.borrow_mut());
                    None
                }
                Part::Stored(object, range) => Some(Tail::Stored(object, range)),
                Part::File(file, range) => Some(Tail::file(file, range)),
            };
            if tail.is_some() || self.out.borrow().len() > GATHERED_MAX {
                self.write(tail).await?;
            }
        }
        self.write(None).await
    }

    async fn tunnel(
        &self,
        reply: Reply,
        origin: Box<Tunnel>,
        place: Option<Entry>,
    ) -> Result<(), Broken> {
        let Self { core, guard, account, stream, asked, .. } = *self;
        self.take(reply, |reply, _, out| {
            reply.write_head(&asked.live, out);
            encode::switching_tail(out, origin.protocol());
        });
        self.write(None).await?;
        drop(self.out.take());
        let rest = self.upload.borrow_mut().take_rest();
        let run = tunnel::Run::new(Carrier { core, guard, account }, origin, rest, place);
        let (body_in, body_out) = run.carry(stream).await;
        self.left.tunnelled.set(Some(Moved { head_out: 0, body_out, body_in }));
        Ok(())
    }
}
