//! Client side of an HTTP/1 exchange: sends the reply while the request's body may still be
//! received.

use std::cell::{Cell, OnceCell, RefCell};
use std::sync::Arc;
use std::task::{Context, Poll};

use base::{Account, Counter, Limit};
use bytes::Bytes;
use cache::{BodyDerivation, HeldTrailers};
use flow::{BodyPart, Reply, ReplyBody, Tunnel};
use h1::encode::{self, BodyFraming};
use message::trailers::are_taken;
use message::{Response, Version};

use super::conn::{SEALED_COPY_MAX, end_after};
use super::slow_writer::write_all;
use super::upload::Upload;
use crate::connection_counts::Entry;
use crate::core::CoreCtx;
use crate::exchange::{DeferredRequest, Engine, ExchangeAbort, ExchangeBytes, Note};
use crate::guard::{ConnectionPhase, Guard};
use crate::head::{append_framed, framing, framing_of};
use crate::segments::{Segments, Tail, copy_range};
use crate::stream::SharedStream;
use crate::tunnel::{self, Carrier};

/// Pieces of a body up to this size are copied behind the bytes before them: one plain write is
/// cheaper. Longer pieces are sent from where they are.
const COPY_MAX: usize = 4 * 1024;
/// Bytes of small parts that are sent together.
const GATHERED_MAX: usize = 64 * 1024;

/// The client's side of one exchange.
pub(super) struct ClientSide<'a> {
    pub(super) core: &'a CoreCtx,
    pub(super) guard: &'a Guard,
    pub(super) account: &'a Arc<Account>,
    pub(super) stream: &'a SharedStream<'a>,
    pub(super) deferred: &'a DeferredRequest,
    pub(super) upload: RefCell<Upload>,
    /// Interim responses that are not sent yet.
    pub(super) early: RefCell<Segments>,
    /// The connection may continue after the reply.
    pub(super) keep: bool,
    /// Bytes that leave with the next write.
    pub(super) out: RefCell<Vec<u8>>,
    pub(super) leaving: OnceCell<ReplyOut>,
}

/// A reply that is being sent.
pub(super) struct ReplyOut {
    reply: Reply,
    reply_us: u64,
    framing: BodyFraming,
    /// The connection may continue after it.
    keep: bool,
    /// Bytes that the connection had sent before its head.
    before: u64,
    head_bytes: u64,
    /// Bytes of chunked framing, which are not content.
    framed: Cell<u64>,
    /// Bytes of the tunnel that it opened.
    tunnelled: Cell<Option<ExchangeBytes>>,
}

impl ReplyOut {
    /// Appends framing of the body to `out`.
    fn frame(&self, out: &mut Vec<u8>, append: impl FnOnce(&mut Vec<u8>)) {
        let before = out.len();
        append(out);
        self.framed.set(self.framed.get() + (out.len() - before) as u64);
    }
}

impl ClientSide<'_> {
    /// Begins to send `reply` with the given framing of its body, or with a switch to `protocol`;
    /// the caller writes its head next.
    fn leave(&self, reply: Reply, framing: BodyFraming, protocol: Option<&[u8]>) -> &ReplyOut {
        let Self { core, guard, deferred, .. } = self;
        let DeferredRequest { request, live, .. } = deferred;
        let now = core.flow.now();
        let mut upload = self.upload.borrow_mut();
        if upload.is_half_closed() {
            guard.enter(ConnectionPhase::Busy, now.mono_ms);
        }
        // A request body that is not read completely here is discarded later, if its rest is short.
        // An error page may close the connection for its own reason.
        let mut is_read = || upload.may_finish(&live.limits, &core.flow.counters);
        let keep = self.keep && is_read() && !reply.close;
        let mut out = self.early.take().into_rest();
        let early = out.len();
        out.reserve(512);
        match protocol {
            Some(protocol) => {
                reply.write_head(live, &mut out);
                encode::switching_tail(&mut out, protocol);
            }
            None => {
                // The time of the whole reply starts here.
                guard.answering(now.mono_ms);
                append_framed(live, request, &reply, framing, keep, &mut out);
            }
        }
        let head_bytes = (out.len() - early) as u64;
        self.out.replace(out);
        self.leaving.get_or_init(|| ReplyOut {
            reply,
            reply_us: core.flow.log.micros(now),
            framing,
            keep,
            before: guard.sent_in_all() + early as u64,
            head_bytes,
            framed: Cell::default(),
            tunnelled: Cell::default(),
        })
    }

    /// Writes the collected bytes, and `tail` behind them. The exchange waits for the client only
    /// during a write.
    async fn write(&self, tail: Option<Tail>) -> Result<(), ExchangeAbort> {
        let Self { core, guard, stream, .. } = *self;
        let out = self.out.take();
        if out.is_empty() && tail.is_none() {
            return Ok(());
        }
        guard.sending(core.flow.now().mono_ms);
        let mut segments = Segments::new(out, tail);
        let wrote = write_all(guard, core, stream, &mut segments).await;
        guard.send_done();
        wrote.map_err(|error| ExchangeAbort::of(&error))?;
        self.out.replace(segments.into_buffer());
        Ok(())
    }

    /// Logs the exchange, which has ended.
    pub(super) fn note(&self, done: Result<(), ExchangeAbort>) {
        let Self { core, guard, deferred, .. } = self;
        let mut moved =
            ExchangeBytes { body_in: self.upload.borrow().received(), ..ExchangeBytes::default() };
        let Some(leaving) = self.leaving.get() else {
            return Note::of(deferred, 0).log_aborted(core, None, moved);
        };
        let sent = guard.sent_in_all().saturating_sub(leaving.before);
        moved.head_out = leaving.head_bytes.min(sent);
        moved.body_out = (sent - moved.head_out).saturating_sub(leaving.framed.get());
        let tunnelled = leaving.tunnelled.get().unwrap_or_default();
        moved.body_in += tunnelled.body_in;
        moved.body_out += tunnelled.body_out;
        let note = Note::of(deferred, leaving.reply_us);
        match done {
            Ok(()) => note.log_finished(core, &leaving.reply, moved),
            Err(_) => note.log_aborted(core, Some(&leaving.reply), moved),
        }
    }

    /// The counter for the connection's end, if it ends with this reply.
    pub(super) fn ends_as(&self) -> Option<Counter> {
        let leaving = self.leaving.get()?;
        let end = match leaving.framing {
            _ if leaving.tunnelled.get().is_some() => Counter::ClosedTunnel,
            BodyFraming::UntilClose => Counter::ClosedByEnd,
            _ if leaving.keep => return None,
            _ => end_after(&self.deferred.request, leaving.reply.close),
        };
        let is_refused = self.upload.borrow().refusal().is_some();
        Some(if is_refused { Counter::ClosedBody } else { end })
    }
}

impl Engine for ClientSide<'_> {
    type Begun = ReplyOut;

    fn poll_body(&self, cx: &mut Context<'_>) {
        self.upload.borrow_mut().poll_all(cx, self.core, self.guard, self.stream);
    }

    fn refusal(&self) -> Option<Reply> {
        self.upload.borrow().refusal()
    }

    /// Sends interim responses as they arrive. A client that does not read delays nothing: unsent
    /// bytes leave before the final head, and are limited by the origin client. An origin that
    /// trickles counts against the time of the whole reply, as a client does.
    fn poll_gone(&self, cx: &mut Context<'_>) -> Poll<()> {
        let Self { core, guard, stream, .. } = *self;
        let mut early = self.early.borrow_mut();
        // A failure recurs when the final reply is written.
        if early.left() > 0 && early.poll_write(cx, &mut **stream.borrow_mut(), core).is_ready() {
            *early = Segments::default();
        }
        if guard.poll_expired(cx) == Poll::Ready(Limit::ResponseTime) {
            return Poll::Ready(());
        }
        self.upload.borrow_mut().poll_gone(cx, core, guard, stream)
    }

    /// HTTP/1.0 has no interim responses (RFC 9110 15.2).
    fn interim(&self, response: Response) {
        if self.deferred.request.version >= Version::Http11 {
            encode::interim(self.early.borrow_mut().buffer(), response.status, &response.headers);
        }
    }

    fn begin(&self, reply: Reply, length: Option<u64>, _: BodyDerivation) -> &ReplyOut {
        self.leave(reply, framing_of(&self.deferred.request, length), None)
    }

    async fn piece(&self, leaving: &ReplyOut, data: Bytes) -> Result<(), ExchangeAbort> {
        let tail = {
            let mut out = self.out.borrow_mut();
            let mut after: &'static [u8] = b"";
            if leaving.framing == BodyFraming::Chunked {
                leaving.frame(&mut out, |out| encode::chunk_start(out, data.len()));
                after = encode::CHUNK_END;
                leaving.framed.set(leaving.framed.get() + after.len() as u64);
            }
            if data.len() > COPY_MAX {
                Some(Tail::Shared(data, after))
            } else {
                out.extend_from_slice(&data);
                out.extend_from_slice(after);
                if out.len() < COPY_MAX {
                    return Ok(());
                }
                None
            }
        };
        self.write(tail).await
    }

    async fn flush(&self, _: &ReplyOut) -> Result<(), ExchangeAbort> {
        self.write(None).await
    }

    async fn end(
        &self,
        leaving: &ReplyOut,
        trailed: Option<Box<HeldTrailers>>,
    ) -> Result<(), ExchangeAbort> {
        if leaving.framing == BodyFraming::Chunked {
            let trailed = trailed.filter(|_| are_taken(&self.deferred.request.headers));
            let trailers = trailed.as_ref().map(|come| &come.trailers);
            leaving.frame(&mut self.out.borrow_mut(), |out| encode::last_chunk(out, trailers));
        }
        self.write(None).await
    }

    async fn whole(&self, mut reply: Reply) -> Result<(), ExchangeAbort> {
        let framing = framing(&self.deferred.request, &reply);
        let parts = match std::mem::replace(&mut reply.body, ReplyBody::None) {
            ReplyBody::Parts(parts) => Some(parts),
            _ => None,
        };
        self.leave(reply, framing, None);
        for part in parts.into_iter().flatten() {
            let tail = match part {
                BodyPart::Bytes(bytes) => {
                    self.out.borrow_mut().extend_from_slice(&bytes);
                    None
                }
                BodyPart::Stored(object, range) if range.end - range.start <= SEALED_COPY_MAX => {
                    copy_range(&object, range, &mut self.out.borrow_mut());
                    None
                }
                BodyPart::Stored(object, range) => Some(Tail::Stored(object, range)),
                BodyPart::File(file, range) => Some(Tail::file(file, range)),
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
    ) -> Result<(), ExchangeAbort> {
        let Self { core, guard, account, stream, .. } = *self;
        let leaving = self.leave(reply, BodyFraming::None, Some(origin.protocol()));
        self.write(None).await?;
        drop(self.out.take());
        let rest = self.upload.borrow_mut().take_rest();
        let run = tunnel::ActiveTunnel::new(Carrier { core, guard, account }, origin, rest, place);
        let (body_in, body_out) = run.carry(stream).await;
        leaving.tunnelled.set(Some(ExchangeBytes { head_out: 0, body_out, body_in }));
        Ok(())
    }
}
