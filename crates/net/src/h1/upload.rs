//! Upload: a request's body on its way from the socket to its reader. A byte behind the body's end
//! must never enter it.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use base::memory::HoldError;
use base::{Account, Counter, Counters, Limit, Limits};
use cache::{BodyWindow, BodyWriter, Reader, WindowLimit};
use flow::{LiveConfiguration, Reply};
use h1::BodyReader;
use message::Framing;
use tokio::io::ReadBuf;

use crate::account::{self, BufferCharge};
use crate::core::CoreCtx;
use crate::exchange::BodyFault;
use crate::guard::{ConnectionPhase, Guard};
use crate::stream::SharedStream;

/// A client that shuts down its side within this time of its request did so together with it.
const TOGETHER_MS: u64 = 1_000;

/// The body of the present request.
pub(crate) struct Upload {
    /// Received bytes that are not decoded; after the body's end, the next request.
    held: ReceiveBuffer,
    /// The account that `held` is charged to.
    account: Arc<Account>,
    reader: BodyReader,
    writer: Option<BodyWriter>,
    received: u64,
    max: u64,
    fault: Option<BodyFault>,
    ended: bool,
    /// The time at which the request's head was complete.
    whole_ms: u64,
    /// The client shut down its side together with its request, and waits for the reply.
    half_closed: bool,
}

impl Upload {
    pub(crate) fn new(
        framing: Framing,
        held: Vec<u8>,
        live: &LiveConfiguration,
        account: &Arc<Account>,
        now_ms: u64,
    ) -> Self {
        Self {
            held: ReceiveBuffer { bytes: held, from: 0, buffered: BufferCharge::default() },
            account: Arc::clone(account),
            reader: BodyReader::new(framing, live.limits.trailer_bytes as usize),
            writer: None,
            received: 0,
            max: live.limits.request_body_bytes,
            fault: None,
            ended: framing == Framing::None,
            whole_ms: now_ms,
            half_closed: false,
        }
    }

    /// Charges the bytes received together with the request.
    ///
    /// # Errors
    /// If there is no memory; the bytes are dropped then.
    pub(crate) fn hold(&mut self) -> Result<(), HoldError> {
        let held = self.held.hold(&self.account);
        if held.is_err() {
            self.held = ReceiveBuffer::default();
        }
        held
    }

    /// Rejects the request because of `fault`, before a byte of its body is asked for.
    pub(crate) fn refuse(&mut self, fault: BodyFault) {
        self.fault = Some(fault);
    }

    /// Opens the window of the body, and returns its reader.
    pub(crate) fn open(&mut self, core: &CoreCtx, guard: &Guard, passage: WindowLimit) -> Reader {
        let (writer, reader) = BodyWindow::window(passage);
        guard.receiving(core.flow.now().mono_ms);
        self.writer = Some(writer);
        reader
    }

    /// Returns true if no byte of the body has been received yet.
    pub(crate) fn is_untouched(&self) -> bool {
        self.held.rest().is_empty()
    }

    /// Returns true if the body is complete and no byte was received after it.
    pub(crate) fn is_spent(&self) -> bool {
        self.ended && self.held.rest().is_empty()
    }

    /// The reply to a request whose body cannot be received further.
    pub(crate) fn refusal(&self) -> Option<Reply> {
        self.fault.as_ref()?.page()
    }

    /// Bytes of the body received.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// Receives the body into the window until it is complete, the limit `body_buffer_bytes` is
    /// reached or the window is full, which is narrow if memory is scarce. A slow client thus does
    /// not occupy the origin (nginx: `client_body_buffer_size`).
    pub(crate) async fn gather(
        &mut self,
        core: &CoreCtx,
        guard: &Guard,
        stream: &SharedStream<'_>,
        limits: &Limits,
    ) {
        let enough = limits.body_buffer_bytes;
        poll_fn(|cx| {
            let moved = self.poll_move(cx, core, guard, stream, enough);
            // A full window has no reader yet.
            let room = self.writer.as_mut().map(|writer| writer.poll_room(cx));
            if matches!(room, Some(Poll::Pending)) { Poll::Ready(()) } else { moved }
        })
        .await;
        if self.writer.is_none() {
            guard.receive_done();
        } else {
            core.flow.counters.limit(Limit::BodyBufferBytes);
        }
    }

    /// Continues the body, if it has a reader.
    pub(crate) fn poll_all(
        &mut self,
        cx: &mut Context<'_>,
        core: &CoreCtx,
        guard: &Guard,
        stream: &SharedStream<'_>,
    ) {
        let all = u64::MAX;
        if self.writer.is_some() && self.poll_move(cx, core, guard, stream, all).is_ready() {
            guard.receive_done();
        }
    }

    /// Returns true if the client shut down its side together with its request.
    pub(crate) fn is_half_closed(&self) -> bool {
        self.half_closed
    }

    /// Ready when the client has left: the connection failed, or the client shut down its side long
    /// after its request. A client that shuts down together with its request (`nc -N`) may still
    /// read, so it gets some time. nginx, Envoy and Go's server take both for gone.
    ///
    /// Pipelined requests are kept as far as there is memory, up to the size of one read. Beyond it
    /// the client is not watched: a client that sends so much has not left.
    pub(crate) fn poll_gone(
        &mut self,
        cx: &mut Context<'_>,
        core: &CoreCtx,
        guard: &Guard,
        stream: &SharedStream<'_>,
    ) -> Poll<()> {
        while self.ended && !self.half_closed {
            let room = account::reads(&self.account).saturating_sub(self.held.rest().len());
            if room == 0 || room < stream.borrow().least_read() {
                break;
            }
            let mut scratch = core.scratch.borrow_mut();
            let mut buf = ReadBuf::new(&mut scratch.input[..room]);
            let read = ready!(stream.borrow_mut().poll_read(cx, &mut buf, &core.sealed));
            let at_end = match read {
                Ok(()) => buf.filled().is_empty(),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => true,
                Err(_) => return Poll::Ready(()),
            };
            if at_end {
                let late_ms = core.flow.now().mono_ms.saturating_sub(self.whole_ms);
                if late_ms > TOGETHER_MS {
                    return Poll::Ready(());
                }
                self.half_closed = true;
                guard.enter(ConnectionPhase::HalfClosed, core.flow.now().mono_ms);
            }
            core.flow.counters.add(Counter::BytesIn, buf.filled().len() as u64);
            self.held.add(buf.filled(), &self.account);
        }
        if self.half_closed { guard.poll_expired(cx).map(drop) } else { Poll::Pending }
    }

    /// Continues the body until it ends, fails, loses its reader, or has `enough` bytes.
    fn poll_move(
        &mut self,
        cx: &mut Context<'_>,
        core: &CoreCtx,
        guard: &Guard,
        stream: &SharedStream<'_>,
        enough: u64,
    ) -> Poll<()> {
        let moved = loop {
            let Some(writer) = &mut self.writer else { return Poll::Ready(()) };
            if self.received >= enough {
                return Poll::Ready(());
            }
            let room = writer.poll_room(cx);
            // A client is not slow if its bytes have no reader.
            guard.receives(room.is_ready(), || core.flow.now().mono_ms);
            if ready!(room).is_err() {
                break Ok(());
            }
            match self.decode(&core.flow.counters) {
                Ok(_) if self.ended => break Ok(()),
                Ok(true) => {}
                Ok(false) => match ready!(self.poll_fill(cx, core, guard, stream)) {
                    Ok(()) => {}
                    Err(fault) => break Err(fault),
                },
                Err(fault) => break Err(fault),
            }
        };
        let writer = self.writer.take();
        match moved {
            Ok(()) if self.ended => {
                self.whole_ms = core.flow.now().mono_ms;
                if let Some(writer) = writer {
                    writer.finish_with(self.reader.take_trailers());
                }
            }
            // The reader is gone: an early reply, or a failed origin.
            Ok(()) => {}
            Err(fault) => {
                self.fault = Some(fault);
                if let Some(writer) = writer {
                    writer.abort();
                }
            }
        }
        Poll::Ready(())
    }

    /// Decodes one piece and passes it on; false if more must be received first.
    fn decode(&mut self, counters: &Counters) -> Result<bool, BodyFault> {
        let read = self.reader.read(self.held.rest());
        let step = read.map_err(|error| BodyFault::framing(&error, counters))?;
        if let Some(writer) = &mut self.writer {
            // Space is checked before the next piece.
            _ = writer.push(&self.held.rest()[step.data.clone()]);
        }
        self.received += step.data.len() as u64;
        self.held.take(step.consumed);
        self.ended = step.done;
        if self.received > self.max {
            return Err(BodyFault::too_large(counters));
        }
        Ok(step.consumed > 0)
    }

    fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        core: &CoreCtx,
        guard: &Guard,
        stream: &SharedStream<'_>,
    ) -> Poll<Result<(), BodyFault>> {
        let mut scratch = core.scratch.borrow_mut();
        let room = account::reads(&self.account).max(stream.borrow().least_read());
        let mut buf = ReadBuf::new(&mut scratch.input[..room]);
        let polled = stream.borrow_mut().poll_read(cx, &mut buf, &core.sealed);
        if polled.is_pending()
            && let Poll::Ready(limit) = guard.poll_expired(cx)
        {
            return Poll::Ready(Err(BodyFault::slow(limit)));
        }
        if ready!(polled).is_err() || buf.filled().is_empty() {
            return Poll::Ready(Err(BodyFault::gone()));
        }
        let filled = buf.filled();
        self.held.add(filled, &self.account);
        core.flow.counters.add(Counter::BytesIn, filled.len() as u64);
        guard.received(filled.len(), core.flow.now().mono_ms);
        Poll::Ready(Ok(()))
    }

    /// Returns true if the connection can continue after this request: its body is complete, or its
    /// rest is short enough to be discarded. The rest of a chunked body has an unknown length
    /// unless it was received, so the reply announces the close then.
    pub(crate) fn may_finish(&mut self, limits: &Limits, counters: &Counters) -> bool {
        while !self.ended && self.fault.is_none() {
            let Some(left) = self.reader.remaining() else {
                match self.decode(counters) {
                    Ok(true) => continue,
                    Ok(false) | Err(_) => return self.ended,
                }
            };
            let is_short = left <= limits.drain_bytes;
            if !is_short {
                counters.limit(Limit::DrainBytes);
            }
            return is_short;
        }
        self.ended
    }

    /// Reads and discards the rest of the body; false if it is too long, too slow or malformed.
    pub(crate) async fn finish(
        &mut self,
        core: &CoreCtx,
        guard: &Guard,
        stream: &SharedStream<'_>,
        limits: &Limits,
    ) -> bool {
        self.writer = None;
        let allowed = self.received.saturating_add(limits.drain_bytes);
        guard.enter(ConnectionPhase::Linger, core.flow.now().mono_ms);
        while !self.ended {
            match self.decode(&core.flow.counters) {
                Ok(_) if self.received > allowed => {
                    core.flow.counters.limit(Limit::DrainBytes);
                    return false;
                }
                Ok(true) => {}
                Ok(false) => {
                    let filled = poll_fn(|cx| self.poll_fill(cx, core, guard, stream)).await;
                    if filled.is_err() {
                        return false;
                    }
                }
                Err(_) => return false,
            }
        }
        true
    }

    /// Takes the bytes received after the body.
    pub(crate) fn take_rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held).into_rest()
    }
}

/// Received bytes, taken from the front by an offset. A body of one-byte chunks would otherwise
/// move the rest for every chunk, at quadratic cost.
#[derive(Default)]
struct ReceiveBuffer {
    bytes: Vec<u8>,
    from: usize,
    buffered: BufferCharge,
}

impl ReceiveBuffer {
    fn rest(&self) -> &[u8] {
        &self.bytes[self.from..]
    }

    /// Takes bytes from the front.
    fn take(&mut self, bytes: usize) {
        self.from += bytes;
        if self.from == self.bytes.len() {
            *self = Self::default();
        }
    }

    /// Appends received bytes.
    fn add(&mut self, bytes: &[u8], account: &Arc<Account>) {
        self.bytes.drain(..std::mem::take(&mut self.from));
        self.bytes.extend_from_slice(bytes);
        self.buffered.set_anyway(self.bytes.capacity() as u64, account);
    }

    fn hold(&mut self, account: &Arc<Account>) -> Result<(), HoldError> {
        self.buffered.set(self.bytes.capacity() as u64, || Arc::clone(account))
    }

    fn into_rest(mut self) -> Vec<u8> {
        self.bytes.drain(..self.from);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account() -> Arc<Account> {
        Account::open(&base::MemoryBudget::new(1 << 20, 1 << 20), u64::MAX)
    }

    /// Bytes moved while a body of one-byte chunks is decoded, received in pieces of that size.
    fn moved(chunks: usize, piece: usize) -> usize {
        let wire = [b"1\r\nx\r\n".repeat(chunks), b"0\r\n\r\n".to_vec()].concat();
        let (mut held, mut reader) =
            (ReceiveBuffer::default(), BodyReader::new(Framing::Chunked, 1024));
        let account = account();
        let (mut moved, mut body) = (0, 0);
        for received in wire.chunks(piece) {
            moved += held.rest().len();
            held.add(received, &account);
            loop {
                let step = reader.read(held.rest()).expect("good framing");
                let at = held.rest().as_ptr().wrapping_add(step.consumed);
                body += step.data.len();
                held.take(step.consumed);
                if held.rest().as_ptr() != at {
                    moved += held.rest().len();
                }
                if step.done || step.consumed == 0 {
                    break;
                }
            }
        }
        assert_eq!(body, chunks);
        moved
    }

    #[test]
    fn one_byte_chunks_move_less_than_was_received() {
        for (chunks, piece) in [(10_000, 64 * 1024), (10_000, 1_000), (50, 1)] {
            let moved = moved(chunks, piece);
            assert!(moved <= 6 * chunks, "{moved} bytes for {chunks} chunks by {piece}");
        }
    }

    #[test]
    fn what_follows_a_body_is_kept_in_order() {
        let mut held = ReceiveBuffer { bytes: b"abc".to_vec(), ..ReceiveBuffer::default() };
        held.take(1);
        held.add(b"de", &account());
        assert_eq!(held.rest(), b"bcde");
        held.take(2);
        assert_eq!(held.into_rest(), b"de");
    }
}
