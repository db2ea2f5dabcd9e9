//! A tunnel: a connection whose protocol the origin has changed. It carries bytes both ways,
//! unread.
//!
//! Each direction is a lane. A lane reads only when all it read before is written, so a slow reader
//! holds its writer back, and an idle tunnel holds no buffer. The end of one side is passed on to
//! the other, which may go on; a side that breaks breaks the other, but for what was on its way.
//!
//! Must never look into what it carries, nor take a byte of it for a request.

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

/// A place among the tunnels there may be, for `client`; the limit that keeps it from one.
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

/// The reply to a client for whom `limit` left no place.
pub(crate) fn no_place(limit: Limit) -> Reply {
    let name = limit.name();
    let reason = format!("Too many connections speak other protocols (limit: {name}).");
    pages::refused(Status::SERVICE_UNAVAILABLE, &reason).because_of(limit)
}

/// One end of a tunnel. A socket of a client's counts what goes over it; a stream of a connection
/// does not, since its connection has counted its frames.
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
    /// Has it end in a way that cannot be taken for an orderly one.
    fn cut(&mut self);
    /// Bytes that one read must have room for.
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

/// The progress of a direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Open,
    /// The source has ended; what it sent before may still have to be written.
    Ending,
    /// The target has been told of the end.
    Ended,
    /// The target takes nothing any more.
    Broken,
}

/// The carrier of a tunnel: its core, the guard that times it, and the account that holds what
/// waits for a slow reader.
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
    /// Read, and not written before `at`; empty as long as the target takes what comes.
    held: Vec<u8>,
    at: usize,
    buffered: BufferCharge,
    moved: u64,
}

/// The source broke.
struct TunnelSourceError;

impl Direction {
    fn holding(held: Vec<u8>) -> Self {
        Self { held, ..Self::default() }
    }

    fn is_over(&self) -> bool {
        matches!(self.state, State::Ended | State::Broken)
    }

    /// Moves what there is; ready when nothing more will ever come.
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
                // One that is gone already need not be told.
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

    /// Writes what is held.
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

    /// Writes `bytes` as far as they are taken at once, and holds the rest.
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

/// A tunnel under way.
pub(crate) struct ActiveTunnel<'a> {
    carrier: Carrier<'a>,
    origin: Box<Tunnel>,
    up: Direction,
    down: Direction,
    place: Option<Entry>,
}

impl<'a> ActiveTunnel<'a> {
    /// `early` is what the client sent behind its request: that is the other protocol's now.
    /// `place` is given back before the tunnel no longer counts as open.
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

    /// Carries bytes until both sides have ended, one breaks, or a limit says enough; the result is
    /// how many bytes the origin and the client got.
    pub(crate) async fn carry(mut self, client: &RefCell<&mut impl TunnelSide>) -> (u64, u64) {
        let Carrier { core, guard, .. } = self.carrier;
        guard.enter(ConnectionPhase::Tunnel, core.flow.now().mono_ms);
        let ended = poll_fn(|cx| self.poll(cx, &mut **client.borrow_mut())).await;
        // A limit, or the end of a drain, ends both sides in order.
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
        let lanes = [
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
        if lanes.iter().any(|lane| matches!(lane, Poll::Ready(Err(TunnelSourceError)))) {
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
        // Whoever sees that no tunnel is open finds room for one, on every core.
        self.place = None;
        self.carrier.core.flow.counters.dec(Counter::TunnelsOpen);
    }
}

/// The reason for a tunnel's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TunnelEnd {
    /// Nothing more comes from either side.
    Both,
    /// One side broke.
    Broken,
    /// A limit, or the end of a drain.
    Expired,
}
