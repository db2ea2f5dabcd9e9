//! Guard of a connection: its timeouts without timers.
//!
//! A connection notes its phase and since when; one sweep a second per core ends connections that
//! exceed a limit. A timer per request would cost a registration and a cancellation on the hit
//! path, where the sweep costs nothing. Timeouts are therefore a second late at most.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BinaryHeap;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use base::{Counter, Limit, Limits};
use flow::vcl::ConnectionTimeouts;

use crate::open_connections::OpenConnections;
use crate::rate::{Bounds, Transfer};

/// The part of a core's connections that one eviction ends: at least one, at most
/// [`ENDED_AT_ONCE`]. An eviction looks at all connections.
const ENDED_PART: usize = 256;
const ENDED_AT_ONCE: usize = 32;
/// Milliseconds for which all connections are assumed busy after they were found busy.
const BUSY_MS: u64 = 100;
/// Milliseconds for which a new connection is not evicted in favour of others that are open
/// already: a client sends its first request within that time.
const SETTLED_MS: u64 = 2_000;

/// The idle connections that may be evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EvictableConnections {
    /// All of them.
    Any,
    /// Those that have sent a request, or were accepted a while ago.
    Settled,
}

/// The activity of a connection, as its timeouts distinguish it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionPhase {
    /// No byte of a first request received.
    New,
    /// TLS handshake.
    Handshake,
    /// Keep-alive, nothing received.
    Idle,
    /// A partial request head received.
    Head,
    /// A request is being answered; only transfers are timed.
    Busy,
    /// A request is being answered for a client that has shut down its side, and may have left.
    HalfClosed,
    /// Another protocol; its time restarts with every byte.
    Tunnel,
    /// A tunnel with one side ended.
    TunnelEnd,
    /// Reads and discards the rest before the connection closes.
    Linger,
}

/// Checks of the kernel's send queue. The kernel reports a socket writable only if a third of its
/// buffer is free, which may be megabytes: a client that reads slowly makes progress nevertheless.
#[derive(Debug, Default)]
struct SendQueueChecks {
    /// The connection's task must check.
    wanted: Cell<bool>,
    last_ms: Cell<u64>,
    /// Bytes at the last check, if nothing was sent since.
    held: Cell<Option<u32>>,
}

/// The number of checks within the time after which a silent client is cut off.
const LOOKS: u64 = 4;

/// Converts a program's seconds to milliseconds.
fn millis(seconds: f64) -> u64 {
    (seconds * 1000.0) as u64
}

/// The counter for a connection that `limit` ended; `None` if the connection's end was counted
/// before.
fn counter_of(limit: Limit) -> Option<Counter> {
    Some(match limit {
        Limit::IdleTimeout | Limit::DrainWait | Limit::ConnectionMemory => Counter::ClosedIdle,
        Limit::HandshakeTimeout => Counter::ClosedHandshake,
        Limit::HeaderTimeout => Counter::ClosedHead,
        Limit::BodyTimeout | Limit::BodyMinRate => Counter::ClosedBody,
        Limit::SendTimeout | Limit::SendMinRate | Limit::ResponseTime => Counter::ClosedSending,
        _ => return None,
    })
}

/// The entry of one connection in the sweep.
#[derive(Debug)]
pub(crate) struct Guard {
    phase: Cell<ConnectionPhase>,
    since_ms: Cell<u64>,
    receive: Transfer,
    send: Transfer,
    sent_in_all: Cell<u64>,
    looks: SendQueueChecks,
    ticks: Cell<bool>,
    expired: Cell<Option<Limit>>,
    /// The counter for the connection's end.
    ends_as: Cell<Counter>,
    /// The start of the reply that is being sent.
    answer_ms: Cell<Option<u64>>,
    /// Timeouts that programs have set; most connections have none.
    own: OnceCell<Box<Cell<ConnectionTimeouts>>>,
    waker: RefCell<Option<Waker>>,
}

impl Guard {
    pub(crate) fn new(now_ms: u64) -> Rc<Self> {
        Rc::new(Self {
            phase: Cell::new(ConnectionPhase::New),
            since_ms: Cell::new(now_ms),
            receive: Transfer::default(),
            send: Transfer::default(),
            sent_in_all: Cell::new(0),
            looks: SendQueueChecks::default(),
            ticks: Cell::new(false),
            expired: Cell::new(None),
            ends_as: Cell::new(Counter::ClosedByClient),
            answer_ms: Cell::new(None),
            own: OnceCell::new(),
            waker: RefCell::new(None),
        })
    }

    /// Enters `phase`, which began at `since_ms`.
    pub(crate) fn enter_since(&self, phase: ConnectionPhase, since_ms: u64) {
        self.phase.set(phase);
        self.since_ms.set(since_ms);
    }

    /// Enters `phase`; entering the present one does not restart its time.
    pub(crate) fn enter(&self, phase: ConnectionPhase, now_ms: u64) {
        if self.phase.replace(phase) != phase || phase == ConnectionPhase::Idle {
            self.since_ms.set(now_ms);
            if phase == ConnectionPhase::Linger {
                self.receive.moved(0, now_ms);
            }
        }
    }

    /// Restarts the time of the phase, since bytes have moved.
    pub(crate) fn moved(&self, now_ms: u64) {
        self.since_ms.set(now_ms);
    }

    pub(crate) fn receiving(&self, now_ms: u64) {
        self.receive.start(now_ms);
    }

    pub(crate) fn received(&self, bytes: usize, now_ms: u64) {
        self.receive.moved(bytes, now_ms);
    }

    /// Notes whether the request's body waits for the client.
    pub(crate) fn receives(&self, for_client: bool, now_ms: impl FnOnce() -> u64) {
        if for_client != self.receive.is_active() {
            self.receive.waits(for_client, now_ms());
        }
    }

    pub(crate) fn receive_done(&self) {
        self.receive.pause();
    }

    /// Notes that sending waits for the client.
    pub(crate) fn sending(&self, now_ms: u64) {
        self.send.waits(true, now_ms);
    }

    /// Starts the time of a whole reply over HTTP/1.
    pub(crate) fn answering(&self, now_ms: u64) {
        self.answer_ms.set(Some(now_ms));
        self.send.start(now_ms);
        self.looks.held.set(None);
    }

    /// Ends the time of a reply, sent or aborted.
    pub(crate) fn answered(&self) {
        self.answer_ms.set(None);
        self.send_done();
    }

    /// The timeouts that programs have set.
    pub(crate) fn times(&self) -> ConnectionTimeouts {
        self.own.get().map(|own| own.get()).unwrap_or_default()
    }

    /// Sets the timeouts of programs, valid from now on.
    pub(crate) fn set_times(&self, times: ConnectionTimeouts) {
        self.own.get_or_init(Box::default).set(times);
    }

    pub(crate) fn sent(&self, bytes: usize, now_ms: u64) {
        self.send.moved(bytes, now_ms);
        self.looks.held.set(None);
        self.sent_in_all.set(self.sent_in_all.get() + bytes as u64);
    }

    /// Returns true if the task must check the send queue and call [`Guard::holds`].
    pub(crate) fn wants_look(&self) -> bool {
        self.looks.wanted.take()
    }

    /// Notes the bytes in the kernel's send queue, if known.
    pub(crate) fn holds(&self, bytes: Option<u32>, now_ms: u64) {
        let before = self.looks.held.replace(bytes);
        if let Some((before, left)) = before.zip(bytes)
            && left < before
        {
            self.send.moved((before - left) as usize, now_ms);
        }
    }

    /// Returns true if a check is due for a transfer that may be silent for `silent_ms`.
    fn is_look_due(&self, now_ms: u64, silent_ms: u64) -> bool {
        let since_ms = self.send.moved_ms().max(self.looks.last_ms.get());
        let is_due = self.send.is_active() && now_ms.saturating_sub(since_ms) > silent_ms / LOOKS;
        if is_due {
            self.looks.last_ms.set(now_ms);
            self.looks.wanted.set(true);
        }
        is_due
    }

    /// Bytes noted by [`Guard::sent`] over all transfers.
    pub(crate) fn sent_in_all(&self) -> u64 {
        self.sent_in_all.get()
    }

    /// Sets whether every sweep wakes the connection's task.
    pub(crate) fn ticks(&self, ticks: bool) {
        self.ticks.set(ticks);
    }

    pub(crate) fn send_done(&self) {
        self.send.pause();
    }

    /// The limit that ended this connection, if one has; otherwise the sweep wakes the calling task
    /// when one does.
    pub(crate) fn poll_expired(&self, cx: &Context<'_>) -> Poll<Limit> {
        if let Some(limit) = self.expired.get() {
            return Poll::Ready(limit);
        }
        let mut waker = self.waker.borrow_mut();
        // A connection's task keeps its waker, so this clones once per connection.
        if !waker.as_ref().is_some_and(|w| w.will_wake(cx.waker())) {
            *waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }

    fn check(&self, now_ms: u64, limits: &Limits, ends_idle: bool) -> Option<Limit> {
        let in_phase = now_ms.saturating_sub(self.since_ms.get());
        let own = self.times();
        let idle_ms = own.idle.map_or(limits.idle_timeout, millis);
        let head_ms = own.idle.map_or(limits.header_timeout, millis);
        let silent = || now_ms.saturating_sub(self.receive.moved_ms());
        let phase = match self.phase.get() {
            ConnectionPhase::New if ends_idle && in_phase > limits.drain_wait => {
                Some(Limit::DrainWait)
            }
            ConnectionPhase::New if in_phase > idle_ms => Some(Limit::IdleTimeout),
            ConnectionPhase::Idle if ends_idle || in_phase > idle_ms => Some(Limit::IdleTimeout),
            ConnectionPhase::Handshake if in_phase > limits.handshake_timeout => {
                Some(Limit::HandshakeTimeout)
            }
            ConnectionPhase::Head if in_phase > head_ms => Some(Limit::HeaderTimeout),
            ConnectionPhase::HalfClosed if in_phase > limits.half_close_timeout => {
                Some(Limit::HalfCloseTimeout)
            }
            ConnectionPhase::Tunnel if in_phase > limits.tunnel_idle_timeout => {
                Some(Limit::TunnelIdleTimeout)
            }
            ConnectionPhase::TunnelEnd if in_phase > limits.tunnel_end_timeout => {
                Some(Limit::TunnelEndTimeout)
            }
            ConnectionPhase::Linger if in_phase > limits.linger_time => Some(Limit::LingerTime),
            ConnectionPhase::Linger if silent() > limits.linger_timeout => {
                Some(Limit::LingerTimeout)
            }
            _ => None,
        };
        let receive = || self.receive.overdue(now_ms, Bounds::of_body(limits));
        let stall_ms = self.send_stall_ms(limits);
        let bounds = || Bounds::of_reply(limits, stall_ms, Limit::SendTimeout);
        let send = || self.send.overdue(now_ms, bounds());
        let whole = || {
            let took_ms = now_ms.saturating_sub(self.answer_ms.get()?);
            (took_ms > self.response_ms(limits)).then_some(Limit::ResponseTime)
        };
        phase.or_else(send).or_else(whole).or_else(receive)
    }

    /// Milliseconds that sending a whole reply may take.
    pub(crate) fn response_ms(&self, limits: &Limits) -> u64 {
        match limits.response_time {
            _ if let Some(own) = self.times().send => millis(own),
            0 => u64::MAX,
            limit => limit,
        }
    }

    /// Milliseconds for which a client may take nothing of a reply.
    fn send_stall_ms(&self, limits: &Limits) -> u64 {
        match self.times().idle_send {
            // As SO_SNDTIMEO (socket(7)) has it, 0 is no limit.
            Some(0.0) => u64::MAX,
            own => own.map_or(limits.send_timeout, millis),
        }
    }

    /// Sets the counter for the connection's end; the default is an end by the client.
    pub(crate) fn ends_as(&self, counter: Counter) {
        self.ends_as.set(counter);
    }

    /// The counter for the connection's end.
    pub(crate) fn end(&self) -> Counter {
        self.ends_as.get()
    }

    /// Ends the connection because of `limit`.
    pub(crate) fn expire(&self, limit: Limit) {
        self.expired.set(Some(limit));
        if let Some(counter) = counter_of(limit) {
            self.ends_as(counter);
        }
        self.wake();
    }

    /// Polls for a limit that has ended a connection which waits for a request. `Ok(true)` is a
    /// request to evict the connection: the caller first checks for received bytes.
    pub(crate) fn poll_waiting(&self, cx: &Context<'_>) -> Result<bool, Limit> {
        match self.poll_expired(cx) {
            Poll::Pending => Ok(false),
            Poll::Ready(Limit::ConnectionMemory) => Ok(true),
            Poll::Ready(limit) => Err(limit),
        }
    }

    /// Cancels the eviction of the connection: a request has arrived.
    pub(crate) fn cancel_eviction(&self) {
        self.expired.set(None);
        self.ends_as.set(Counter::ClosedByClient);
    }

    /// Clears the limit that ended the connection: its close has limits of its own.
    pub(crate) fn clear_expiry(&self) {
        self.expired.set(None);
    }

    fn wake(&self) {
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
    }
}

/// All connections of a core.
#[derive(Debug, Default)]
pub(crate) struct Sweep {
    guards: RefCell<Vec<Option<Rc<Guard>>>>,
    free: RefCell<Vec<usize>>,
    /// The time until which all connections but new ones are assumed busy, and the time until which
    /// all are.
    busy_ms: [Cell<u64>; 2],
}

impl Sweep {
    /// Adds a connection; returns its index for [`Sweep::leave`].
    pub(crate) fn join(&self, guard: Rc<Guard>) -> usize {
        let mut guards = self.guards.borrow_mut();
        if let Some(place) = self.free.borrow_mut().pop() {
            guards[place] = Some(guard);
            return place;
        }
        guards.push(Some(guard));
        guards.len() - 1
    }

    pub(crate) fn leave(&self, place: usize) {
        self.guards.borrow_mut()[place] = None;
        self.free.borrow_mut().push(place);
    }

    /// Ends every connection that exceeds a limit; calls `noted` with each such limit. If
    /// `ends_idle`, connections without a request end, too.
    pub(crate) fn run(
        &self,
        now_ms: u64,
        limits: &Limits,
        ends_idle: bool,
        noted: &mut dyn FnMut(Limit),
    ) {
        for guard in self.guards.borrow().iter().flatten() {
            if guard.expired.get().is_none()
                && let Some(limit) = guard.check(now_ms, limits, ends_idle)
            {
                noted(limit);
                guard.expire(limit);
                continue;
            }
            let silent_ms = guard.send_stall_ms(limits).min(limits.send_rate_leeway);
            if guard.is_look_due(now_ms, silent_ms) || guard.ticks.get() {
                guard.wake();
            }
        }
    }

    /// Evicts connections that lose nothing, unless earlier evictions have not closed yet: first
    /// lingering ones, then those that have waited longest for a request. Calls `noted` for each.
    /// False if all connections are busy.
    pub(crate) fn end_idle(
        &self,
        now_ms: u64,
        who: EvictableConnections,
        noted: impl Fn(),
    ) -> bool {
        let busy_ms = &self.busy_ms[usize::from(who == EvictableConnections::Any)];
        if now_ms < busy_ms.get() {
            return false;
        }
        let at_once = (self.open() / ENDED_PART).clamp(1, ENDED_AT_ONCE);
        let guards = self.guards.borrow();
        let (mut idle, mut leaving) = (BinaryHeap::new(), false);
        for (place, guard) in guards.iter().enumerate() {
            let Some(guard) = guard else { continue };
            leaving |= guard.expired.get() == Some(Limit::ConnectionMemory);
            let waits = match guard.phase.get() {
                ConnectionPhase::Linger => false,
                ConnectionPhase::Idle => true,
                ConnectionPhase::New if who == EvictableConnections::Any => true,
                ConnectionPhase::New if guard.since_ms.get() + SETTLED_MS <= now_ms => true,
                _ => continue,
            };
            if guard.expired.get().is_none() {
                idle.push((waits, guard.since_ms.get(), place));
                if idle.len() > at_once {
                    idle.pop();
                }
            }
        }
        let found = leaving || !idle.is_empty();
        busy_ms.set(if found { 0 } else { now_ms + BUSY_MS });
        if !leaving {
            for (.., place) in idle {
                if let Some(guard) = &guards[place] {
                    noted();
                    guard.expire(Limit::ConnectionMemory);
                }
            }
        }
        found
    }

    /// Ends every tunnel, at the end of the drain time.
    pub(crate) fn end_tunnels(&self) {
        for guard in self.guards.borrow().iter().flatten() {
            if matches!(guard.phase.get(), ConnectionPhase::Tunnel | ConnectionPhase::TunnelEnd) {
                guard.expire(Limit::TunnelIdleTimeout);
            }
        }
    }

    /// The connections and tunnels left, by kind.
    pub(crate) fn open_by_kind(&self) -> OpenConnections {
        let mut open = OpenConnections::default();
        for guard in self.guards.borrow().iter().flatten() {
            *match guard.phase.get() {
                ConnectionPhase::Tunnel | ConnectionPhase::TunnelEnd => &mut open.tunnels,
                ConnectionPhase::Busy if guard.receive.is_active() => &mut open.uploads,
                ConnectionPhase::Busy | ConnectionPhase::HalfClosed => &mut open.downloads,
                _ => &mut open.others,
            } += 1;
        }
        open
    }

    /// Wakes the task of every connection.
    pub(crate) fn wake_all(&self) {
        self.guards.borrow().iter().flatten().for_each(|guard| guard.wake());
    }

    /// Returns true if no connection is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.open() == 0
    }

    /// The number of connections and tunnels left.
    fn open(&self) -> usize {
        self.guards.borrow().len() - self.free.borrow().len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(sweep: &Sweep, now_ms: u64) -> Vec<Limit> {
        let mut limits = Vec::new();
        sweep.run(now_ms, &Limits::default(), false, &mut |l| limits.push(l));
        limits
    }

    #[test]
    fn connections_without_a_request_end_with_a_drain_only_if_it_says_so() {
        let sweep = Sweep::default();
        let (new, idle) = (Guard::new(0), Guard::new(0));
        for guard in [&new, &idle] {
            sweep.join(Rc::clone(guard));
        }
        idle.enter(ConnectionPhase::Idle, 0);
        assert_eq!(ends(&sweep, 2_000), []);
        let mut limits = Vec::new();
        sweep.run(2_000, &Limits::default(), true, &mut |limit| limits.push(limit));
        assert_eq!(limits, [Limit::DrainWait, Limit::IdleTimeout]);
    }

    #[test]
    fn open_connections_are_counted_by_kind() {
        let sweep = Sweep::default();
        let phases = [
            ConnectionPhase::Idle,
            ConnectionPhase::Busy,
            ConnectionPhase::Busy,
            ConnectionPhase::Tunnel,
        ];
        for (at, phase) in phases.into_iter().enumerate() {
            let guard = Guard::new(0);
            guard.enter(phase, 0);
            if at == 2 {
                guard.receives(true, || 0);
            }
            sweep.join(guard);
        }
        let open = OpenConnections { downloads: 1, uploads: 1, tunnels: 1, others: 1 };
        assert_eq!(sweep.open_by_kind(), open);
    }

    #[test]
    fn idle_and_head_have_their_own_times() {
        let sweep = Sweep::default();
        let guard = Guard::new(0);
        sweep.join(Rc::clone(&guard));
        assert_eq!(ends(&sweep, 30_000), []);
        guard.enter(ConnectionPhase::Head, 30_000);
        guard.enter(ConnectionPhase::Head, 39_000); // another byte does not buy time
        assert_eq!(ends(&sweep, 40_000), []);
        assert_eq!(ends(&sweep, 40_001), [Limit::HeaderTimeout]);
        assert_eq!(ends(&sweep, 99_000), [], "once is enough");
    }

    #[test]
    fn who_takes_what_the_kernel_holds_stays_and_who_does_not_goes() {
        let sweep = Sweep::default();
        let (takes, stalls, unknown) = (Guard::new(0), Guard::new(0), Guard::new(0));
        for guard in [&takes, &stalls, &unknown] {
            sweep.join(Rc::clone(guard));
            guard.enter(ConnectionPhase::Busy, 0);
            guard.answering(0);
            guard.sending(0);
            guard.sent(4 << 20, 0);
        }
        let mut looks = 0;
        for second in 1..=120 {
            let ended = ends(&sweep, second * 1000);
            assert_eq!(ended.len(), if second == 31 { 2 } else { 0 }, "{second}");
            if takes.wants_look() {
                looks += 1;
                // Two kilobytes a second.
                takes.holds(Some((4 << 20) - 2048 * second as u32), second * 1000);
            }
            if stalls.wants_look() {
                stalls.holds(Some(4 << 20), second * 1000);
            }
            if unknown.wants_look() {
                unknown.holds(None, second * 1000);
            }
        }
        assert!((10..=20).contains(&looks), "{looks}");
        // Bytes sent meanwhile are not taken for bytes that were not acknowledged.
        takes.sent(1 << 20, 120_000);
        takes.holds(Some(1), 120_000);
        assert_eq!(ends(&sweep, 151_000), [Limit::SendTimeout]);
    }

    #[test]
    fn a_client_that_has_ended_its_side_is_waited_for_a_while() {
        let sweep = Sweep::default();
        let (waits, answered) = (Guard::new(0), Guard::new(0));
        for guard in [&waits, &answered] {
            sweep.join(Rc::clone(guard));
            guard.enter(ConnectionPhase::HalfClosed, 1_000);
        }
        answered.enter(ConnectionPhase::Busy, 2_000);
        assert_eq!(ends(&sweep, 6_000), []);
        assert_eq!(ends(&sweep, 6_001), [Limit::HalfCloseTimeout]);
        assert!(answered.expired.get().is_none());
    }

    #[test]
    fn at_a_stop_a_new_connection_has_a_moment_for_its_request_and_an_idle_one_has_not() {
        let sweep = Sweep::default();
        let (new, idle) = (Guard::new(10_000), Guard::new(0));
        sweep.join(Rc::clone(&new));
        sweep.join(Rc::clone(&idle));
        idle.enter(ConnectionPhase::Idle, 10_000);
        let ends = |now_ms| {
            let mut limits = Vec::new();
            sweep.run(now_ms, &Limits::default(), true, &mut |l| limits.push(l));
            limits
        };
        assert_eq!(ends(11_000), [Limit::IdleTimeout]);
        assert_eq!(ends(11_001), [Limit::DrainWait]);
    }

    #[test]
    fn a_stalled_or_slow_transfer_ends() {
        let sweep = Sweep::default();
        let (stalled, slow) = (Guard::new(0), Guard::new(0));
        sweep.join(Rc::clone(&stalled));
        sweep.join(Rc::clone(&slow));
        stalled.enter(ConnectionPhase::Busy, 0);
        slow.enter(ConnectionPhase::Busy, 0);
        stalled.sending(0);
        slow.receiving(0);
        for t in 1..=10 {
            slow.received(1, t * 1000);
            assert_eq!(ends(&sweep, t * 1000), []);
        }
        slow.received(1, 11_000);
        assert_eq!(ends(&sweep, 11_000), [Limit::BodyMinRate]);
        assert_eq!(ends(&sweep, 30_001), [Limit::SendTimeout]);
    }

    #[test]
    fn what_a_client_has_taken_fast_is_no_credit_and_time_counts_only_while_it_is_waited_for() {
        let sweep = Sweep::default();
        let guard = Guard::new(0);
        sweep.join(Rc::clone(&guard));
        guard.enter(ConnectionPhase::Busy, 0);
        guard.answering(0);
        guard.sent(1 << 30, 0);
        guard.send_done();
        assert_eq!(ends(&sweep, 3_000_000), [], "nothing was there to be sent");
        let ended = (3_000..).find(|second| {
            guard.sending(second * 1000);
            guard.sent(1, second * 1000);
            !ends(&sweep, second * 1000).is_empty()
        });
        let leeway_s = Limits::default().send_rate_leeway / 1000;
        assert_eq!(ended, Some(3_000 + leeway_s + 1));
        assert_eq!(guard.expired.get(), Some(Limit::SendMinRate));
    }

    #[test]
    fn reading_off_ends_when_nothing_comes_and_after_a_time_in_all() {
        let sweep = Sweep::default();
        let (silent, busy) = (Guard::new(0), Guard::new(0));
        sweep.join(Rc::clone(&silent));
        sweep.join(Rc::clone(&busy));
        silent.enter(ConnectionPhase::Linger, 10_000);
        busy.enter(ConnectionPhase::Linger, 10_000);
        for t in 10..=40 {
            busy.received(1, t * 1000);
            busy.enter(ConnectionPhase::Linger, t * 1000);
        }
        assert_eq!(ends(&sweep, 15_000), []);
        assert_eq!(ends(&sweep, 15_001), [Limit::LingerTimeout]);
        assert_eq!(ends(&sweep, 40_000), []);
        assert_eq!(ends(&sweep, 40_001), [Limit::LingerTime]);
    }

    #[test]
    fn a_tunnel_ends_when_nothing_moves_and_sooner_when_one_side_has_ended() {
        let sweep = Sweep::default();
        let (idle, half) = (Guard::new(0), Guard::new(0));
        for guard in [&idle, &half] {
            sweep.join(Rc::clone(guard));
            guard.enter(ConnectionPhase::Tunnel, 0);
            guard.moved(1_000);
        }
        half.enter(ConnectionPhase::TunnelEnd, 2_000);
        half.moved(3_000);
        half.enter(ConnectionPhase::TunnelEnd, 4_000);
        assert_eq!(ends(&sweep, 33_000), []);
        assert_eq!(ends(&sweep, 33_001), [Limit::TunnelEndTimeout]);
        assert_eq!(ends(&sweep, 3_601_000), []);
        assert_eq!(ends(&sweep, 3_601_001), [Limit::TunnelIdleTimeout]);
    }

    #[test]
    fn the_end_of_a_drain_ends_tunnels_and_nothing_else() {
        let sweep = Sweep::default();
        let guards = [
            ConnectionPhase::Busy,
            ConnectionPhase::Tunnel,
            ConnectionPhase::TunnelEnd,
            ConnectionPhase::Linger,
        ]
        .map(|phase| {
            let guard = Guard::new(0);
            sweep.join(Rc::clone(&guard));
            guard.enter(phase, 0);
            guard
        });
        sweep.end_tunnels();
        let ended = guards.map(|guard| guard.expired.get().is_some());
        assert_eq!(ended, [false, true, true, false]);
    }

    #[test]
    fn for_newcomers_those_leave_that_have_waited_longest_and_busy_ones_stay() {
        let sweep = Sweep::default();
        let all = 4 * ENDED_PART;
        let guards: Vec<_> = (0..all).map(|n| Guard::new(9_000 - n as u64)).collect();
        guards.iter().for_each(|guard| _ = sweep.join(Rc::clone(guard)));
        guards[0].enter(ConnectionPhase::Linger, 9_000);
        let busy = [
            ConnectionPhase::Busy,
            ConnectionPhase::Head,
            ConnectionPhase::Handshake,
            ConnectionPhase::Tunnel,
            ConnectionPhase::TunnelEnd,
        ];
        for (n, phase) in busy.into_iter().enumerate() {
            guards[all - 1 - n].enter_since(phase, 0);
        }
        let noted = Cell::new(0);
        let end =
            || sweep.end_idle(9_000, EvictableConnections::Any, || noted.set(noted.get() + 1));
        assert!(end());
        let ended: Vec<_> = (0..all).filter(|n| guards[*n].expired.get().is_some()).collect();
        assert_eq!(ended, [0, all - 8, all - 7, all - 6]);
        assert!(end());
        assert_eq!(noted.get(), 4, "evicted connections come first");
        assert_eq!(guards[all - 6].end(), Counter::ClosedIdle);
    }

    #[test]
    fn where_all_are_busy_nobody_looks_again_for_a_while() {
        let sweep = Sweep::default();
        let guard = Guard::new(0);
        sweep.join(Rc::clone(&guard));
        guard.enter(ConnectionPhase::Busy, 0);
        assert!(!sweep.end_idle(1_000, EvictableConnections::Any, || {}));
        guard.enter(ConnectionPhase::Idle, 1_000);
        assert!(!sweep.end_idle(1_000 + BUSY_MS - 1, EvictableConnections::Any, || {}));
        assert!(sweep.end_idle(1_000 + BUSY_MS, EvictableConnections::Any, || {}));
        assert_eq!(guard.expired.get(), Some(Limit::ConnectionMemory));
    }

    #[test]
    fn one_that_has_just_come_in_leaves_for_newcomers_alone() {
        let sweep = Sweep::default();
        let guard = Guard::new(1_000);
        sweep.join(Rc::clone(&guard));
        let soon = 1_000 + SETTLED_MS - 1;
        assert!(!sweep.end_idle(soon, EvictableConnections::Settled, || {}));
        assert_eq!(guard.expired.get(), None);
        assert!(sweep.end_idle(soon, EvictableConnections::Any, || {}));
        assert_eq!(guard.expired.get(), Some(Limit::ConnectionMemory));
        guard.cancel_eviction();
        assert_eq!((guard.expired.get(), guard.end()), (None, Counter::ClosedByClient));
        assert!(sweep.end_idle(soon + BUSY_MS, EvictableConnections::Settled, || {}));
        assert_eq!(guard.expired.get(), Some(Limit::ConnectionMemory));
        guard.cancel_eviction();
        guard.enter(ConnectionPhase::Idle, 9_000);
        assert!(
            sweep.end_idle(9_000, EvictableConnections::Settled, || {}),
            "one that has asked before"
        );
    }

    #[test]
    fn places_are_reused() {
        let sweep = Sweep::default();
        let a = sweep.join(Guard::new(0));
        assert!(!sweep.is_empty());
        sweep.leave(a);
        assert!(sweep.is_empty());
        assert_eq!(sweep.join(Guard::new(0)), a);
    }
}
