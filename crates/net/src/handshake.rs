//! TLS handshakes on a core's loop: timed, counted, and limited in number. A failed handshake must
//! never reach an engine.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use base::{Counter, Limit};
use flow::{BodyPart, pages};
use message::{Request, Status};
use tls::{Handshake, HandshakeError, ServerContext, SessionTerms};
use tokio::io::{AsyncRead, ReadBuf};

use crate::client_socket::ClientSocket;
use crate::core::{CoreCtx, Handshakes};
use crate::guard::{ConnectionPhase, Guard};
use crate::head::append;
use crate::stream::{ImmediateWriter, Socket, Stream};

/// The slot of one concurrent handshake.
struct HandshakeSlot<'a> {
    core: &'a CoreCtx,
    number: u64,
}

impl<'a> HandshakeSlot<'a> {
    /// Takes a slot. At the limit, the oldest handshake is aborted: in a flood of unfinished
    /// handshakes it is most likely one of the flood, since a normal client finishes in two round
    /// trips.
    fn take(core: &'a CoreCtx, guard: &Rc<Guard>, max: u64) -> Self {
        let Handshakes { next, under_way } = &core.handshakes;
        let number = next.replace(next.get() + 1);
        let mut under_way = under_way.borrow_mut();
        if under_way.len() as u64 >= max
            && let Some((_, oldest)) = under_way.pop_first()
        {
            core.flow.counters.limit(Limit::Handshakes);
            oldest.expire(Limit::Handshakes);
        }
        under_way.insert(number, Rc::clone(guard));
        Self { core, number }
    }
}

impl Drop for HandshakeSlot<'_> {
    fn drop(&mut self) {
        self.core.handshakes.under_way.borrow_mut().remove(&self.number);
    }
}

/// Performs the handshake, starting with the bytes in `received`; `None` if it failed.
pub(crate) async fn perform_handshake(
    mut tcp: ClientSocket,
    received: Vec<u8>,
    guard: &Rc<Guard>,
    core: &CoreCtx,
    server: &ServerContext,
) -> Option<(Stream, SessionTerms)> {
    guard.enter(ConnectionPhase::Handshake, core.flow.now().mono_ms);
    let max = core.flow.live().limits.handshakes.max(1);
    let place = HandshakeSlot::take(core, guard, max);
    let mut handshake = Handshake::default();
    let shaken = match handshake.feed(&received, server) {
        Ok(()) => poll_fn(|cx| poll_shake(cx, &mut tcp, &mut handshake, guard, core, server)).await,
        Err(error) => Err(HandshakeFailure::Tls(error)),
    };
    drop(received);
    drop(place);
    let counters = &core.flow.counters;
    match shaken {
        Ok(()) => {
            if handshake.end_challenge() {
                counters.inc(Counter::AcmeChallenges);
                _ = handshake.send(&mut ImmediateWriter(&tcp));
                return None;
            }
            let (session, secured) = handshake.finish()?;
            counters.inc(Counter::TlsHandshakes);
            if secured.is_resumed() {
                counters.inc(Counter::TlsResumed);
            }
            if secured.is_tls12() {
                counters.inc(Counter::Tls12);
            }
            Some((Stream::secure(tcp, session), secured))
        }
        Err(failure) => {
            counters.inc(Counter::TlsFailures);
            match failure {
                HandshakeFailure::Tls(HandshakeError::PlainHttp) => plain_http(&tcp, core),
                // Sends the alert as far as the socket takes it without blocking.
                HandshakeFailure::Tls(_) => _ = handshake.send(&mut ImmediateWriter(&tcp)),
                HandshakeFailure::Gone | HandshakeFailure::Expired => {}
            }
            None
        }
    }
}

enum HandshakeFailure {
    Tls(HandshakeError),
    /// The client has closed, or the socket failed.
    Gone,
    /// A limit ended the handshake.
    Expired,
}

fn poll_shake(
    cx: &mut Context<'_>,
    tcp: &mut ClientSocket,
    handshake: &mut Handshake,
    guard: &Guard,
    core: &CoreCtx,
    server: &ServerContext,
) -> Poll<Result<(), HandshakeFailure>> {
    if guard.poll_expired(cx).is_ready() {
        return Poll::Ready(Err(HandshakeFailure::Expired));
    }
    loop {
        while !handshake.is_sent() {
            match handshake.send(&mut Socket { tcp, cx }) {
                Ok(sent) if sent > 0 => core.flow.counters.add(Counter::BytesOut, sent as u64),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
                _ => return Poll::Ready(Err(HandshakeFailure::Gone)),
            }
        }
        if handshake.is_done() {
            return Poll::Ready(Ok(()));
        }
        let mut sealed = core.sealed.borrow_mut();
        let mut received = ReadBuf::new(&mut sealed);
        let read = ready!(Pin::new(&mut *tcp).poll_read(cx, &mut received));
        if read.is_err() || received.filled().is_empty() {
            return Poll::Ready(Err(HandshakeFailure::Gone));
        }
        core.flow.counters.add(Counter::BytesIn, received.filled().len() as u64);
        if let Err(error) = handshake.feed(received.filled(), server) {
            return Poll::Ready(Err(HandshakeFailure::Tls(error)));
        }
    }
}

/// Sends an error page to a client that speaks plain HTTP to a TLS port, as nginx does.
fn plain_http(tcp: &ClientSocket, core: &CoreCtx) {
    let reason = "The plain HTTP request was sent to an HTTPS port.";
    let Some(status) = Status::new(400) else { return };
    let reply = pages::refused(status, reason);
    core.flow.counters.inc(Counter::BadRequests);
    core.flow.log.count_refusal(&reply);
    let mut out = Vec::new();
    append(&core.flow.live(), &Request::new(), &reply, false, &mut out);
    if let Some(BodyPart::Bytes(body)) = reply.body.part() {
        out.extend_from_slice(body);
    }
    _ = tcp.try_write(&out);
}
