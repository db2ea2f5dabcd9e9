//! Workers: the core threads, each pinned, with its own runtime, listeners and connections. A
//! connection must never leave the core that accepted it.

#[cfg(feature = "simulation")]
pub(crate) mod simulation;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use base::descriptors::is_kept;
use base::memory::OpenConnectionBytes;
use base::{Counter, Limit};
use flow::finish::Records;
use flow::{ConnectionPeer, CoreState, SharedState};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use tokio::sync::watch;

use crate::bound_listeners::{BoundListener, BoundListeners, ListenerSettings, ListenerSockets};
use crate::client_socket::ClientSocket;
use crate::connection_counts::{ConnectionCounts, ConnectionRefusal, Entry};
use crate::connection_memory;
use crate::core::{CoreCtx, ReclaimRequests};
use crate::guard::{ConnectionPhase, Guard};
use crate::h1::{self, Conn};
use crate::h2;
use crate::handshake;
use crate::heartbeat::Heartbeats;
use crate::listener::{Listener, SocketFile};
use crate::proxy_header::{self, ConnectionEndpoints, ConnectionPreamble};
use crate::restarts::run_with_restarts;
use crate::stream::Stream;

/// Pause after an accept failed for lack of descriptors or memory.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The interval of a core's checks for long turns; one above `LONG_TURN_MS` is reported.
const TURN: Duration = Duration::from_millis(50);
const LONG_TURN_MS: u64 = 100;

/// The time that a core gets beyond the drain time before the process exits without it.
const OVERTIME: Duration = Duration::from_secs(2);
/// The interval of the checks for a core's end.
const ASK_PAUSE: Duration = Duration::from_millis(5);

/// The time that tunnels get at the end of a drain to shut down in order.
const LAST_WORDS: Duration = Duration::from_millis(50);

/// The time that clients get at a stop to finish a TCP handshake: longer than most round trips.
const HANDSHAKES: Duration = Duration::from_millis(200);

/// Settings of a server.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The limit of all connections if the setting `connections` is 0.
    pub connections: u64,
    /// The consumer of transaction records.
    pub records: Records,
}

/// The running core threads.
#[derive(Debug)]
pub struct Server {
    addresses: Vec<ListenerSettings>,
    files: Vec<SocketFile>,
    heartbeats: Heartbeats,
    threads: Vec<JoinHandle<()>>,
    stop: watch::Sender<Stop>,
    /// Duplicates of the listening sockets.
    sockets: Vec<ListenerSockets>,
}

/// The cores' order to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    No,
    /// Accept no more, and finish requests under way within this time.
    Drain(Duration),
    /// Leave the listening sockets to another process, and finish connections within this time.
    Leave(Duration),
}

impl Server {
    /// Starts each core that sockets were bound for. Returns when all of them accept.
    ///
    /// # Errors
    /// If a thread cannot be started, or a core not listen.
    pub fn start(
        shared: &Arc<SharedState>,
        listeners: BoundListeners,
        settings: &Settings,
    ) -> io::Result<Self> {
        let sockets = listeners.duplicates()?;
        let BoundListeners { addresses, per_core, files, .. } = listeners;
        let (stop, stopped) = watch::channel(Stop::No);
        let (peers, tunnels, reclaims) = (Arc::default(), Arc::default(), Arc::default());
        let heartbeats = Heartbeats::new(per_core.len());
        let mut threads = Vec::new();
        let (ready, readied) = mpsc::channel();
        for (index, listeners) in per_core.into_iter().enumerate() {
            let worker = Worker {
                shared: Arc::clone(shared),
                peers: Arc::clone(&peers),
                tunnels: Arc::clone(&tunnels),
                reclaims: Arc::clone(&reclaims),
                connections: settings.connections,
                records: settings.records.clone(),
                stopped: stopped.clone(),
                heartbeats: heartbeats.clone(),
            };
            let ready = ready.clone();
            let thread = thread::Builder::new()
                .name(format!("core-{index}"))
                .spawn(move || worker.run(index, listeners, ready))?;
            threads.push(thread);
        }
        drop(ready);
        for word in readied {
            word?;
        }
        Ok(Self { addresses, files, heartbeats, threads, stop, sockets })
    }

    /// Gives away duplicates of the listening sockets, once. While one is open, its address stays
    /// taken and connections to it wait.
    pub fn take_sockets(&mut self) -> Vec<ListenerSockets> {
        std::mem::take(&mut self.sockets)
    }

    /// The listeners in use.
    pub fn addresses(&self) -> &[ListenerSettings] {
        &self.addresses
    }

    /// The heartbeats of the cores.
    pub fn heartbeats(&self) -> Heartbeats {
        self.heartbeats.clone()
    }

    /// Stops accepting, lets requests under way finish for at most `grace`, and waits for the cores
    /// to end, except for one that is blocked.
    pub fn drain(self, grace: Duration) {
        self.files.iter().for_each(SocketFile::remove);
        self.end(Stop::Drain(grace), grace);
    }

    /// Leaves the listening sockets to the process that has taken them over, and serves connections
    /// for at most `grace`: each ends with its next response, and an idle one stays open until
    /// then. Waits for the cores to end, except for one that is blocked.
    pub fn leave(self, grace: Duration) {
        self.end(Stop::Leave(grace), grace);
    }

    fn end(self, stop: Stop, grace: Duration) {
        drop(self.sockets);
        _ = self.stop.send(stop);
        let last = Instant::now() + grace + OVERTIME;
        for thread in self.threads {
            while !thread.is_finished() && Instant::now() < last {
                rt::pause(ASK_PAUSE);
            }
            if thread.is_finished() {
                _ = thread.join();
            }
        }
    }
}

/// An error with the number of the core that cannot start.
fn of_core(index: usize, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("core {index} cannot start: {error}"))
}

/// A core's runtime. It has at most `threads` blocking threads; more blocking work is queued.
fn runtime(threads: usize) -> io::Result<tokio::runtime::LocalRuntime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(threads)
        .build_local(tokio::runtime::LocalOptions::default())
}

struct Worker {
    shared: Arc<SharedState>,
    peers: Arc<ConnectionCounts>,
    tunnels: Arc<ConnectionCounts>,
    reclaims: Arc<ReclaimRequests>,
    connections: u64,
    records: Records,
    stopped: watch::Receiver<Stop>,
    heartbeats: Heartbeats,
}

impl Worker {
    /// Runs a core; sends to `ready` when it accepts, or why it cannot.
    fn run(self, index: usize, listeners: Vec<BoundListener>, ready: mpsc::Sender<io::Result<()>>) {
        pin_to(index);
        let runtime = runtime(self.shared.live().limits.blocking_threads as usize);
        // The receiver is gone if another core has failed before.
        let runtime = match runtime {
            Ok(runtime) => runtime,
            Err(error) => {
                _ = ready.send(Err(of_core(index, &error)));
                return;
            }
        };
        let listeners = {
            let _within = runtime.enter();
            listeners.into_iter().map(BoundListener::open).collect::<io::Result<Vec<_>>>()
        };
        match listeners {
            Ok(listeners) => {
                _ = ready.send(Ok(()));
                drop(ready);
                runtime.block_on(self.serve(index, listeners));
                // A file read that never returns must not delay the end.
                runtime.shutdown_background();
            }
            Err(error) => {
                _ = ready.send(Err(of_core(index, &error)));
            }
        }
    }

    async fn serve(self, index: usize, listeners: Vec<(Listener, ListenerSettings)>) {
        let flow = CoreState::with_records(Arc::clone(&self.shared), &self.records, index);
        let core = CoreCtx::new(flow, Arc::clone(&self.tunnels), Arc::clone(&self.reclaims));
        let accepting: Vec<_> = listeners
            .into_iter()
            .map(|(listener, listen)| {
                let gate = Gate {
                    core: Rc::clone(&core),
                    peers: Arc::clone(&self.peers),
                    connections: self.connections,
                    listen,
                };
                rt::spawn_local(gate.keep_accepting(listener, self.stopped.clone()))
            })
            .collect();
        let flushing = Rc::clone(&core);
        rt::spawn_local(async move {
            run_with_restarts(|| flushing.flow.log.keep_flushing(), || flushing.note_panic()).await;
        });
        let warming = Rc::clone(&core);
        rt::spawn_local(async move {
            run_with_restarts(|| warming.flow.keep_warming(), || warming.note_panic()).await;
        });
        rt::spawn_local(watch_turns(Rc::clone(&core), self.heartbeats.clone(), index));
        let mut stopped = self.stopped;
        let mut tick = rt::time::interval(Duration::from_secs(1));
        let (grace, leaves) = loop {
            tokio::select! {
                _ = tick.tick() => {
                    // A panic in the sweep must not end the core.
                    if catch_unwind(AssertUnwindSafe(|| sweep(&core))).is_err() {
                        core.note_panic();
                    }
                    self.heartbeats.beat(index);
                }
                changed = stopped.changed() => match *stopped.borrow() {
                    Stop::Drain(grace) => break (grace, false),
                    Stop::Leave(grace) => break (grace, true),
                    Stop::No if changed.is_err() => break (Duration::ZERO, false),
                    Stop::No => {}
                },
            }
        };
        core.draining.set(true);
        core.keeps_idle.set(leaves);
        for task in accepting {
            // The task ends at the same order to stop.
            _ = task.await;
        }
        end_connections(&core, index, grace).await;
        core.flow.log.flush();
    }
}

/// Ends the connections of a core that drains, within `grace`.
async fn end_connections(core: &CoreCtx, index: usize, grace: Duration) {
    let deadline = core.flow.now().mono_ms + grace.as_millis() as u64;
    if core.keeps_idle.get() {
        // Idle HTTP/2 connections tell their clients to open another.
        core.sweep.wake_all();
    }
    let mut tick = rt::time::interval(Duration::from_millis(50));
    while !core.sweep.is_empty() && core.flow.now().mono_ms < deadline {
        sweep(core);
        tick.tick().await;
    }
    if core.keeps_idle.replace(false) && !core.sweep.is_empty() {
        // Those without a request end now, in order.
        sweep(core);
        rt::time::sleep(LAST_WORDS).await;
    }
    // Tunnels end by themselves or now, with an end for both sides.
    let open = core.sweep.open_by_kind();
    core.sweep.end_tunnels();
    if !core.sweep.is_empty() {
        core.flow.counters.limit(Limit::DrainTime);
        let limit = Limit::DrainTime.name();
        base::tell!(Warn, "larder: core {index} ends with {open} (limit: {limit})");
        rt::time::sleep(LAST_WORDS).await;
    }
}

/// Measures the turns of a core's event loop: a timer that fires late shows a long turn. Each time
/// it also handles reclaim requests, and publishes its counters.
async fn watch_turns(core: Rc<CoreCtx>, heartbeats: Heartbeats, index: usize) {
    loop {
        let due = rt::time::Instant::now() + TURN;
        rt::time::sleep_until(due).await;
        let ms = due.elapsed().as_millis() as u64;
        core.flow.counters.peak(Counter::LongestTurn, ms);
        if ms > LONG_TURN_MS {
            core.flow.counters.inc(Counter::LongTurns);
            heartbeats.turned(index, ms);
        }
        connection_memory::handle_reclaims(&core);
        core.flow.log.hand_over();
    }
}

fn sweep(core: &CoreCtx) {
    let now = core.flow.now();
    core.flow.sweep(now);
    core.encoded_heads.borrow_mut().sweep();
    let live = core.flow.live();
    let ends_idle = core.draining.get() && !core.keeps_idle.get();
    core.sweep.run(now.mono_ms, &live.limits, ends_idle, &mut |limit| {
        core.flow.counters.limit(limit);
    });
    core.flow.log.flush();
}

/// Binds the calling thread to the `index`-th processor that this process may use.
fn pin_to(index: usize) {
    let Ok(allowed) = sched_getaffinity(None) else { return };
    let usable: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect();
    if usable.is_empty() {
        return;
    }
    let mut one = CpuSet::new();
    one.set(usable[index % usable.len()]);
    // An unpinned core is slower, but correct.
    _ = sched_setaffinity(None, &one);
}

/// Admits connections of one listener.
#[derive(Clone)]
struct Gate {
    core: Rc<CoreCtx>,
    peers: Arc<ConnectionCounts>,
    connections: u64,
    listen: ListenerSettings,
}

impl Gate {
    async fn keep_accepting(self, listener: Listener, stopped: watch::Receiver<Stop>) {
        let accept = || self.accept(&listener, stopped.clone());
        run_with_restarts(accept, || self.core.note_panic()).await;
        let listener = match *stopped.borrow() {
            Stop::Leave(_) => listener.leave(),
            Stop::Drain(_) | Stop::No => listener,
        };
        // Connections in the kernel's accept queue would be reset together with the listener.
        listener.close(|wire, remote| {
            let Some(newcomer) = self.admit(wire, remote) else { return };
            let mut opened = connection_memory::none(&self.core);
            match connection_memory::hold(
                &self.core,
                &mut opened,
                connection_memory::of_new(self.listen.tls),
            ) {
                true => self.begin(newcomer, opened),
                false => connection_memory::refuse(&self.core),
            }
        });
    }

    async fn accept(&self, listener: &Listener, mut stopped: watch::Receiver<Stop>) {
        // The only message is the order to stop.
        self.accept_until(listener, stopped.changed()).await;
        let leaves = matches!(*stopped.borrow(), Stop::Leave(_));
        if !leaves && listener.turn_away() {
            self.accept_until(listener, rt::time::sleep(HANDSHAKES)).await;
        }
    }

    async fn accept_until(&self, listener: &Listener, end: impl Future) {
        let mut end = pin!(end);
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = &mut end => return,
            };
            match accepted {
                Ok((wire, _)) if is_kept(&wire) => {
                    let counters = &self.core.flow.counters;
                    counters.inc(Counter::Connections);
                    counters.inc(Counter::ConnectionsRefused);
                    counters.limit(Limit::DescriptorsReserve);
                }
                Ok((wire, remote)) => {
                    let Some(newcomer) = self.admit(wire, remote) else { continue };
                    let (mut opened, bytes) = (
                        connection_memory::none(&self.core),
                        connection_memory::of_new(self.listen.tls),
                    );
                    if connection_memory::hold_with_eviction(&self.core, &mut opened, bytes).await {
                        self.begin(newcomer, opened);
                    } else {
                        self.begin_later(newcomer, opened, bytes);
                    }
                }
                Err(error) => {
                    self.core.flow.counters.inc(Counter::AcceptErrors);
                    if error.kind() != io::ErrorKind::ConnectionAborted {
                        rt::time::sleep(ACCEPT_PAUSE).await;
                    }
                }
            }
        }
    }

    /// Checks that a connection may be admitted, and counts it.
    fn admit(&self, wire: ClientSocket, remote: Option<SocketAddr>) -> Option<Newcomer> {
        let core = &self.core;
        let counters = &core.flow.counters;
        counters.inc(Counter::Connections);
        let live = core.flow.live();
        let mut ends = ConnectionEndpoints::direct(remote);
        ends.endpoint = self.listen.endpoint;
        if self.listen.proxy && !live.connections.trusted.has(ends.peer) {
            counters.inc(Counter::ProxyRefused);
            return None;
        }
        let max = match live.limits.connections {
            0 => self.connections,
            max => max,
        };
        let entered = self.peers.enter(max).and_then(|mut entry| {
            // A balancer's number of clients is unknown: each client counts once the header names
            // it.
            if let (false, Some(remote)) = (self.listen.proxy, remote) {
                entry.claim(remote.ip(), live.limits.connections_per_ip)?;
            }
            Ok(entry)
        });
        match entered {
            Ok(entry) => Some(Newcomer { wire, remote, ends, entry }),
            Err(refused) => {
                refuse(core, refused);
                None
            }
        }
    }

    /// Lets a new connection wait for `bytes` of memory, while others are accepted.
    fn begin_later(&self, newcomer: Newcomer, mut opened: OpenConnectionBytes, bytes: u64) {
        let gate = self.clone();
        rt::spawn_local(async move {
            if connection_memory::make_or_wait(&gate.core, &mut opened, bytes).await {
                gate.begin(newcomer, opened);
            }
        });
    }

    /// Starts to serve a connection; `opened` is the memory reserved for it.
    fn begin(&self, newcomer: Newcomer, opened: OpenConnectionBytes) {
        let Newcomer { wire, remote, ends, entry } = newcomer;
        let core = &self.core;
        let guard = Guard::new(core.flow.now().mono_ms);
        let place = core.sweep.join(Rc::clone(&guard));
        let end = Rc::clone(&guard);
        core.flow.counters.inc(Counter::ConnectionsOpen);
        let open = ConnectionRegistration { core: Rc::clone(core), place, entry, opened, end };
        let ListenerSettings { tls, h2c, endpoint, peers, .. } = self.listen;
        let h2c = core.flow.live().connections.h2c.unwrap_or(h2c);
        let arrived = AdmittedConnection { wire, guard, open, tls, h2c, endpoint, peers };
        if self.listen.proxy {
            rt::spawn_local(arrived.serve_proxied(remote));
        } else {
            rt::spawn_local(arrived.serve(ends, Vec::new()));
        }
    }
}

/// A connection that is admitted if there is memory for it.
struct Newcomer {
    wire: ClientSocket,
    remote: Option<SocketAddr>,
    ends: ConnectionEndpoints,
    entry: Entry,
}

/// Counts a connection that is closed at once.
fn refuse(core: &CoreCtx, refused: ConnectionRefusal) {
    core.flow.counters.inc(Counter::ConnectionsRefused);
    core.flow.counters.limit(match refused {
        ConnectionRefusal::All => Limit::Connections,
        ConnectionRefusal::PerClient => Limit::ConnectionsPerIp,
    });
}

/// An admitted connection.
struct AdmittedConnection {
    wire: ClientSocket,
    guard: Rc<Guard>,
    open: ConnectionRegistration,
    tls: bool,
    h2c: bool,
    /// The listener's index in [`flow::VclSettings::endpoints`].
    endpoint: u16,
    /// It came to the listener for nodes of the cluster.
    peers: bool,
}

impl AdmittedConnection {
    /// Serves a connection of the trusted proxy at `remote`, after its PROXY header.
    async fn serve_proxied(mut self, remote: Option<SocketAddr>) {
        let core = Rc::clone(&self.open.core);
        self.guard.enter(ConnectionPhase::Head, core.flow.now().mono_ms);
        let read = proxy_header::read(&mut self.wire, remote, &self.guard, &core);
        let Some(ConnectionPreamble { mut ends, named, rest }) = Box::pin(read).await else {
            return self.guard.ends_as(Counter::ClosedHandshake);
        };
        ends.endpoint = self.endpoint;
        if let (true, ConnectionPeer::Host(address)) = (named, ends.peer) {
            let max = core.flow.live().limits.connections_per_ip;
            if let Err(refused) = self.open.entry.claim(address, max) {
                return refuse(&core, refused);
            }
        }
        self.guard.enter(ConnectionPhase::New, core.flow.now().mono_ms);
        self.serve(ends, rest).await;
    }

    /// Serves the connection, starting with the bytes in `received`.
    async fn serve(self, ends: ConnectionEndpoints, received: Vec<u8>) {
        let Self { mut wire, guard, mut open, tls, h2c, peers, .. } = self;
        let core = Rc::clone(&open.core);
        let conn = if tls {
            // Without certificates there is no handshake.
            let server = match peers {
                true => {
                    core.flow.shared.peers.load().as_ref().map(|peers| Arc::clone(&peers.server))
                }
                false => core.flow.live().connections.tls.clone(),
            };
            let Some(server) = server else { return };
            // Boxed, so that its state is freed when the connection has begun.
            let shake = handshake::perform_handshake(wire, received, &guard, &core, &server);
            let Some((stream, secured)) = Box::pin(shake).await else {
                return guard.ends_as(Counter::ClosedHandshake);
            };
            drop(server);
            // Until memory is reserved, it does not count as idle.
            if secured.is_http2()
                && !connection_memory::make_or_wait(
                    &core,
                    &mut open.opened,
                    connection_memory::H2_BYTES,
                )
                .await
            {
                return stream.close();
            }
            guard.enter(ConnectionPhase::New, core.flow.now().mono_ms);
            let secured = Rc::new(secured);
            if secured.is_http2() {
                h2::serve(stream, Some(secured), ends, guard, Vec::new(), core).await;
                return drop(open);
            }
            Conn::new(stream, Some(secured), ends, guard, Vec::new(), &core)
        } else {
            let mut received = received;
            if h2c && h2::begins(&mut wire, &mut received, &guard, &core).await {
                if !connection_memory::make_or_wait(
                    &core,
                    &mut open.opened,
                    connection_memory::H2_BYTES,
                )
                .await
                {
                    return;
                }
                h2::serve(Stream::Plain(wire), None, ends, guard, received, core).await;
                return drop(open);
            }
            let mut conn = Conn::new(Stream::Plain(wire), None, ends, guard, received, &core);
            conn.is_h2c = h2c;
            conn
        };
        h1::serve(conn, core).await;
        drop(open);
    }
}

/// The registrations of an open connection, removed however it ends.
struct ConnectionRegistration {
    core: Rc<CoreCtx>,
    place: usize,
    entry: Entry,
    /// Memory of the open connection itself.
    opened: OpenConnectionBytes,
    /// Its guard, with the reason for its end.
    end: Rc<Guard>,
}

impl Drop for ConnectionRegistration {
    fn drop(&mut self) {
        self.core.sweep.leave(self.place);
        self.core.flow.counters.dec(Counter::ConnectionsOpen);
        self.core.flow.counters.inc(self.end.end());
        if thread::panicking() {
            self.core.flow.counters.inc(Counter::Panics);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn work_that_blocks_waits_for_a_thread() {
        let (begun, at_once) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (release, released) = mpsc::channel::<()>();
        let released = Arc::new(parking_lot::Mutex::new(released));
        let most = runtime(2).expect("a runtime").block_on(async {
            let work = (0..6).map(|_| {
                let (begun, at_once) = (Arc::clone(&begun), Arc::clone(&at_once));
                let released = Arc::clone(&released);
                rt::blocking(move || {
                    begun.fetch_add(1, Ordering::SeqCst);
                    let beside = at_once.fetch_add(1, Ordering::SeqCst);
                    _ = released.lock().recv();
                    at_once.fetch_sub(1, Ordering::SeqCst);
                    beside + 1
                })
            });
            let work: Vec<_> = work.collect();
            while begun.load(Ordering::SeqCst) < 2 {
                rt::time::sleep(Duration::from_millis(1)).await;
            }
            drop(release);
            let mut most = 0;
            for one in work {
                most = most.max(one.await.expect("no panic"));
            }
            most
        });
        assert_eq!((begun.load(Ordering::SeqCst), most), (6, 2));
    }
}
