//! Tunnel: a connection whose protocol the origin has switched.
//!
//! A direction reads only after it has written all that it read, so a slow reader slows its writer,
//! and an idle tunnel holds no buffer. An end of one side is passed to the other, which may
//! continue; an error ends both. A tunnel must never parse its bytes, nor take one for a request.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use base::{Account, Counter, Limit, Limits};
use flow::{ConnectionPeer, Reply, Tunnel, pages};
use message::Status;
use tokio::io::{AsyncWrite, ReadBuf};

use crate::account::{self, BufferCharge};
use crate::connection_counts::{ConnectionRefusal, Entry};
use crate::core::CoreCtx;
use crate::guard::{ConnectionPhase, Guard};
use crate::stream::Stream;

/// Takes one of the permitted tunnels for `client`.
///
/// # Errors
/// The limit that is reached.
pub(crate) fn place(
    core: &CoreCtx,
    client: ConnectionPeer,
    limits: &Limits,
) -> Result<Entry, Limit> {
    let entered = core.tunnels.enter(limits.tunnels).and_then(|mut entry| {
        if let Some(address) = client.address() {
            entry.claim(address, limits.tunnels_per_ip)?;
        }
        Ok(entry)
    });
    entered.map_err(|refused| {
        let limit = match refused {
            ConnectionRefusal::All => Limit::Tunnels,
            ConnectionRefusal::PerClient => Limit::TunnelsPerIp,
        };
        core.flow.counters.limit(limit);
        limit
    })
}

/// The reply to a client for whom `limit` permits no tunnel.
pub(crate) fn no_place(limit: Limit) -> Reply {
    let name = limit.name();
    let reason = format!("Too many connections speak other protocols (limit: {name}).");
    pages::refused(Status::SERVICE_UNAVAILABLE, &reason).because_of(limit)
}

/// One end of a tunnel. A client's socket counts its own bytes; a stream of a connection does not,
/// since the connection counts its frames.
pub(crate) trait TunnelSide {
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut [u8],
        core: &CoreCtx,
    ) -> Poll<io::Result<usize>>;
    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
        core: &CoreCtx,
    ) -> Poll<io::Result<usize>>;
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
    fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
    /// Ends this side so that the peer cannot take it for an orderly end.
    fn cut(&mut self);
    /// The least buffer size of one read.
    fn least_read(&self) -> usize {
        1
    }
}

impl TunnelSide for Stream {
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut [u8],
        core: &CoreCtx,
    ) -> Poll<io::Result<usize>> {
        let mut buf = ReadBuf::new(buf);
        ready!(self.poll_read(cx, &mut buf, &core.sealed))?;
        let read = buf.filled().len();
        core.flow.counters.add(Counter::BytesIn, read as u64);
        Poll::Ready(Ok(read))
    }

    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
        core: &CoreCtx,
    ) -> Poll<io::Result<usize>> {
        let wrote = ready!(AsyncWrite::poll_write(Pin::new(self), cx, bytes))?;
        core.flow.counters.add(Counter::BytesOut, wrote as u64);
        Poll::Ready(Ok(wrote))
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        AsyncWrite::poll_flush(Pin::new(self), cx)
    }

    fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        AsyncWrite::poll_shutdown(Pin::new(self), cx)
    }

    fn cut(&mut self) {
        Self::cut(self);
    }

    fn least_read(&self) -> usize {
        self.least_read()
    }
}

impl TunnelSide for Tunnel {
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut [u8],
        _: &CoreCtx,
    ) -> Poll<io::Result<usize>> {
        self.poll_read(cx, buf)
    }

    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
        _: &CoreCtx,
    ) -> Poll<io::Result<usize>> {
        self.poll_write(cx, bytes)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }

    fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_shutdown(cx)
    }

    fn cut(&mut self) {
        Self::cut(self);
    }
}

/// The state of a direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Open,
    /// The source has ended; earlier bytes may still have to be written.
    Ending,
    /// The end was passed to the target.
    Ended,
    /// The target accepts no more bytes.
    Broken,
}

/// The context of a tunnel: its core, the guard that times it, and the account that is charged for
/// bytes that wait for a slow reader.
#[derive(Clone, Copy)]
pub(crate) struct Carrier<'a> {
    pub(crate) core: &'a CoreCtx,
    pub(crate) guard: &'a Guard,
    pub(crate) account: &'a Arc<Account>,
}

/// One direction.
#[derive(Debug, Default)]
struct Direction {
    state: State,
    /// Bytes read, written up to `at`; empty while the target is fast enough.
    held: Vec<u8>,
    at: usize,
    buffered: BufferCharge,
    moved: u64,
}

/// The source failed.
struct TunnelSourceError;

impl Direction {
    fn holding(held: Vec<u8>) -> Self {
        Self { held, ..Self::default() }
    }

    fn is_over(&self) -> bool {
        matches!(self.state, State::Ended | State::Broken)
    }

    /// Moves the available bytes; ready when no more will ever come.
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        carrier: Carrier<'_>,
        from: &mut impl TunnelSide,
        to: &mut impl TunnelSide,
    ) -> Poll<Result<(), TunnelSourceError>> {
        let Carrier { core, account, .. } = carrier;
        loop {
            if self.is_over() {
                return Poll::Ready(Ok(()));
            }
            if ready!(self.poll_held(cx, core, to)).is_err() {
                self.break_off();
                continue;
            }
            if self.state == State::Ending {
                // A target that is gone needs no shutdown.
                _ = ready!(to.poll_shutdown(cx));
                self.state = State::Ended;
                continue;
            }
            if matches!(to.poll_flush(cx), Poll::Ready(Err(_))) {
                self.break_off();
                continue;
            }
            let mut scratch = core.scratch.borrow_mut();
            let room = account::reads(account).max(from.least_read());
            let read = ready!(from.poll_read(cx, &mut scratch.input[..room], core));
            match read.map_err(|_| TunnelSourceError)? {
                0 => self.state = State::Ending,
                read => self.write(cx, core, &scratch.input[..read], to),
            }
            self.buffered.set_anyway(self.held.capacity() as u64, account);
        }
    }

    /// Writes held bytes.
    fn poll_held(
        &mut self,
        cx: &mut Context<'_>,
        core: &CoreCtx,
        to: &mut impl TunnelSide,
    ) -> Poll<io::Result<()>> {
        while self.at < self.held.len() {
            match ready!(to.poll_write(cx, &self.held[self.at..], core))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                wrote => {
                    self.at += wrote;
                    self.moved += wrote as u64;
                }
            }
        }
        if !self.held.is_empty() {
            (self.held, self.at, self.buffered) = (Vec::new(), 0, BufferCharge::default());
        }
        Poll::Ready(Ok(()))
    }

    /// Writes `bytes` as far as the target takes them, and holds the rest.
    fn write(
        &mut self,
        cx: &mut Context<'_>,
        core: &CoreCtx,
        bytes: &[u8],
        to: &mut impl TunnelSide,
    ) {
        let wrote = match to.poll_write(cx, bytes, core) {
            Poll::Ready(Ok(wrote)) => wrote,
            Poll::Ready(Err(_)) => return self.break_off(),
            Poll::Pending => 0,
        };
        self.moved += wrote as u64;
        self.held.extend_from_slice(&bytes[wrote..]);
    }

    fn break_off(&mut self) {
        self.state = State::Broken;
        (self.held, self.buffered) = (Vec::new(), BufferCharge::default());
    }
}

/// A tunnel in use.
pub(crate) struct ActiveTunnel<'a> {
    carrier: Carrier<'a>,
    origin: Box<Tunnel>,
    up: Direction,
    down: Direction,
    place: Option<Entry>,
}

impl<'a> ActiveTunnel<'a> {
    /// A tunnel. `early` is what the client sent behind its request: bytes of the new protocol.
    /// `place` is released before the tunnel no longer counts as open.
    pub(crate) fn new(
        carrier: Carrier<'a>,
        origin: Box<Tunnel>,
        early: Vec<u8>,
        place: Option<Entry>,
    ) -> Self {
        let Carrier { core, account, .. } = carrier;
        core.flow.counters.inc(Counter::Tunnels);
        core.flow.counters.inc(Counter::TunnelsOpen);
        let mut up = Direction::holding(early);
        up.buffered.set_anyway(up.held.capacity() as u64, account);
        Self { carrier, origin, up, down: Direction::default(), place }
    }

    /// Carries bytes until both sides have ended, one fails, or a limit is reached; returns the
    /// bytes that the origin and the client received.
    pub(crate) async fn carry(mut self, client: &RefCell<&mut impl TunnelSide>) -> (u64, u64) {
        let Carrier { core, guard, .. } = self.carrier;
        guard.enter(ConnectionPhase::Tunnel, core.flow.now().mono_ms);
        let ended = poll_fn(|cx| self.poll(cx, &mut **client.borrow_mut())).await;
        // A limit, or the end of a drain, shuts both sides down in order.
        if ended != TunnelEnd::Expired {
            if self.up.state != State::Ended {
                self.origin.cut();
            }
            if self.down.state != State::Ended {
                client.borrow_mut().cut();
            }
        }
        (self.up.moved, self.down.moved)
    }

    fn poll(&mut self, cx: &mut Context<'_>, client: &mut impl TunnelSide) -> Poll<TunnelEnd> {
        let Self { carrier, origin, up, down, .. } = self;
        let carrier = *carrier;
        let Carrier { core, guard, .. } = carrier;
        if guard.poll_expired(cx).is_ready() {
            return Poll::Ready(TunnelEnd::Expired);
        }
        let (sent, got) = (up.moved, down.moved);
        let directions = [
            up.poll(cx, carrier, client, &mut **origin),
            down.poll(cx, carrier, &mut **origin, client),
        ];
        let (sent, got) = (up.moved - sent, down.moved - got);
        let counters = &core.flow.counters;
        if sent > 0 || got > 0 {
            guard.moved(core.flow.now().mono_ms);
            counters.add(Counter::TunnelBytesIn, sent);
            counters.add(Counter::TunnelBytesOut, got);
        }
        if directions
            .iter()
            .any(|direction| matches!(direction, Poll::Ready(Err(TunnelSourceError))))
        {
            return Poll::Ready(TunnelEnd::Broken);
        }
        match (up.is_over(), down.is_over()) {
            (true, true) => return Poll::Ready(TunnelEnd::Both),
            (false, false) => {}
            _ => guard.enter(ConnectionPhase::TunnelEnd, core.flow.now().mono_ms),
        }
        Poll::Pending
    }
}

impl Drop for ActiveTunnel<'_> {
    fn drop(&mut self) {
        // An observer that sees no open tunnel must find a free permit, on every core.
        self.place = None;
        self.carrier.core.flow.counters.dec(Counter::TunnelsOpen);
    }
}

/// The reason for a tunnel's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TunnelEnd {
    /// Both sides have ended.
    Both,
    /// One side failed.
    Broken,
    /// A limit, or the end of a drain.
    Expired,
}
