//! `larder serve`: starts the daemon, handles signals, and ends it.

use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base::descriptors::keep_back;
use config::Config;
use config::sizing::Machine;
use flow::invalidate::{AllPeerCaches, PeerCaches};
use net::Server;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, kill_process, setrlimit};
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::api::{self, Console};
use crate::handover::HandoverMessage;
use crate::linked_processes::{LinkedProcesses, ProcessLink};
use crate::live::{self, LiveFigures};
use crate::managed_origin::keep_running;
use crate::material::LOOK;
use crate::open_listeners::{self, OpenListeners};
use crate::pid_file::PidFile;
use crate::ports::{Port, Ports};
use crate::predecessor::{Inheritance, Predecessor};
use crate::service_manager::Watchdog;
use crate::socket_activation::Sockets;
use crate::source::{ConfigSource, DaemonOptions};
use crate::state::{Daemon, InheritedState, Machinery};
use crate::succession::Estate;
use crate::{
    account, crawlers, disk_store, htcp, keeper, node, otlp, outages, pressure, readiness, ring,
    rollout, summary, varnish_cli, vsm, warm_sources, webhooks,
};

/// The shortest interval between two messages about a stalled core.
const TURNS: Duration = Duration::from_secs(5);

/// The longest time that the end waits for memory to be copied to disk: a service manager waits for
/// 90 seconds.
const COPY_TIME: Duration = Duration::from_secs(30);

/// The handled signals.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
    reopen: Signal,
}

impl Signals {
    /// Handles them from now on. Call within the helper runtime.
    fn listen() -> Result<Self, String> {
        let listen = |kind| signal(kind).map_err(|e| format!("larder: cannot start: {e}"));
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            hangup: listen(SignalKind::hangup())?,
            reopen: listen(SignalKind::user_defined1())?,
        })
    }
}

/// Runs the daemon until a signal or a new process ends it.
///
/// # Errors
/// The reason why it cannot run.
pub fn run(source: DaemonOptions) -> Result<(), String> {
    let ended = serve(source);
    base::logging::finish(ended.as_ref().err().map(String::as_str));
    ended
}

fn serve(source: DaemonOptions) -> Result<(), String> {
    account::harden();
    if let Some(path) = &source.keeper {
        keeper::reach(path);
    }
    let pid_path = source.pid_file.clone();
    let write_pid = || pid_path.as_deref().map(PidFile::write).transpose();
    let given = Sockets::of_environment()?;
    let runtime = helper_runtime()?;
    let (started, _pid) = match source.takes_over {
        false => {
            let pid = write_pid()?;
            let mut start = Start { given, ..Start::default() }.of_program();
            (Started::begin(source, &runtime, &mut start)?, pid)
        }
        true => {
            let started = take_over(source, &runtime)?;
            // It serves: a file that cannot be written must not end it.
            let pid = write_pid().unwrap_or_else(|why| {
                base::tell!(Error, "{why}");
                None
            });
            (started, pid)
        }
    };
    let Started { daemon, server, signals } = started;
    let watchdog = Watchdog::of_environment(server.heartbeats());
    let pulse = server.heartbeats();
    let is_ordered = runtime.block_on(async {
        keep_running(&daemon.shared, move || log_stalls(pulse.clone()));
        let watch = async {
            match watchdog {
                Some(watchdog) => watchdog.run(&daemon.notify).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = daemon.until_signal(signals) => true,
            _ = daemon.succession.replaced() => false,
            () = watch => false,
        }
    });
    // A new process that is starting shares the listening sockets.
    daemon.succession.end();
    match daemon.succession.successor() {
        None => stop(&daemon, server, &runtime),
        Some(pid) => {
            if is_ordered && let Some(pid) = Pid::from_raw(pid.cast_signed()) {
                _ = kill_process(pid, rustix::process::Signal::TERM);
            }
            leave(&daemon, server, &runtime);
        }
    }
    // A pending lookup or slow disk no longer delays the end.
    runtime.shutdown_background();
    Ok(())
}

/// Starts in place of the process at the other end of standard input.
fn take_over(source: DaemonOptions, runtime: &Runtime) -> Result<Started, String> {
    let (predecessor, mut inheritance) = Predecessor::greet()?;
    inheritance.keeper.take().into_iter().for_each(keeper::take_over);
    let mut start = Start::default().of_program();
    let given = Sockets::of_former(std::mem::take(&mut inheritance.given));
    (start.inheritance, start.predecessor) = (inheritance, Some(predecessor));
    let started = given.and_then(|given| {
        start.given = given;
        Started::begin(source, runtime, &mut start)
    });
    if let (Err(why), Some(predecessor)) = (&started, start.predecessor.take()) {
        predecessor.announce_failure(why);
    }
    if let (Ok(_), Some(link)) = (&started, &start.link) {
        link.send(&HandoverMessage::Serving);
    }
    started
}

/// A daemon that has just started.
struct Started {
    daemon: Arc<Daemon>,
    server: Server,
    signals: Signals,
}

impl Started {
    fn begin(source: DaemonOptions, runtime: &Runtime, start: &mut Start) -> Result<Self, String> {
        let config = source.config()?;
        start.listen = listeners(&config, &start.given)?;
        let (daemon, server) = runtime.block_on(Daemon::start_from(source, &config, start))?;
        // A process that has read that it listens may send signals: until then a hangup would end
        // it.
        let signals = runtime.block_on(async { Signals::listen() })?;
        for listen in server.addresses() {
            let tls = if listen.tls { " (TLS)" } else { "" };
            let proxy = if listen.proxy { " (PROXY protocol)" } else { "" };
            base::tell!(Info, "larder: listening on {}{tls}{proxy}", listen.at);
        }
        summary::log_served(&daemon);
        daemon.error_log.serves();
        daemon.notify.ready("serving");
        Ok(Self { daemon, server, signals })
    }
}

/// Stops the daemon.
fn stop(daemon: &Arc<Daemon>, server: Server, runtime: &Runtime) {
    daemon.notify.stopping();
    begin_end(daemon, "finishing requests under way");
    runtime.block_on(warm_sources::save_hot_lists(daemon));
    server.drain(drain_time(daemon));
    if let Some(node) = daemon.node.lock().take() {
        runtime.block_on(node.leave());
    }
    finish_end(daemon, runtime);
    disk_store::close(&daemon.shared, COPY_TIME);
    end_records(daemon);
}

/// Ends the daemon after another process has taken its place.
fn leave(daemon: &Arc<Daemon>, server: Server, runtime: &Runtime) {
    daemon.ports.leave();
    // The service goes on: what this process still answers must not say that it stops.
    base::tell!(Info, "larder: finishing connections");
    daemon.shared.warmth.end(rt::now().mono_ms);
    server.leave(drain_time(daemon));
    daemon.succession.finish_answers();
    finish_end(daemon, runtime);
    end_records(daemon);
}

fn drain_time(daemon: &Daemon) -> Duration {
    Duration::from_millis(daemon.shared.live().limits.drain_time)
}

fn begin_end(daemon: &Daemon, what: &str) {
    daemon.shared.invalidator.trust.set_stopping();
    base::tell!(Info, "larder: {what}");
    daemon.shared.warmth.end(rt::now().mono_ms);
}

fn finish_end(daemon: &Daemon, runtime: &Runtime) {
    if let Some(neighbours) = daemon.neighbours.get() {
        runtime.block_on(neighbours.finish());
    }
    if let Some(workdir) = daemon.admin_socket().parent() {
        vsm::withdraw(workdir);
    }
    daemon.vcls.end();
}

fn end_records(daemon: &Daemon) {
    if let Some(log) = &daemon.log {
        log.sync();
    }
    if let Some(ring) = &daemon.ring {
        ring.end();
    }
}

/// Logs stalls of cores.
async fn log_stalls(pulse: net::Heartbeats) {
    let mut look = rt::time::interval(TURNS);
    loop {
        look.tick().await;
        if let Some((core, ms)) = pulse.take_longest() {
            base::tell!(
                Warn,
                "larder: core {core} was blocked by one task for {ms} ms while its requests waited"
            );
        }
    }
}

/// The runtime of everything that is not a request: admin, probes, name resolution, signals.
///
/// # Errors
/// The reason why it cannot start.
pub fn helper_runtime() -> Result<Runtime, String> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("helper")
        .enable_all()
        .build()
        .map_err(|e| format!("larder: cannot start: {e}"))
}

/// Parts that a start begins with.
#[derive(Default)]
pub(crate) struct Start {
    /// The addresses and sockets that the configuration listens on.
    listen: Vec<net::ListenerSettings>,
    /// The sockets of a service manager.
    given: Sockets,
    /// The program, if a new process may replace the daemon.
    program: Option<PathBuf>,
    inheritance: Inheritance,
    /// The process to replace, until it has released what only one may have.
    predecessor: Option<Predecessor>,
    /// The link to that process, from then on.
    link: Option<ProcessLink>,
}

impl Start {
    /// The start of a daemon that a new process may replace.
    fn of_program(self) -> Self {
        Self { program: std::env::current_exe().ok(), ..self }
    }

    /// Replaces the former process, if there is one: it has released everything when this returns.
    /// Returns its socket, and the bytes that came from it.
    fn replace(&mut self) -> Result<Option<(UnixStream, Vec<u8>)>, String> {
        if let Some(predecessor) = &mut self.predecessor {
            predecessor.announce_ready()?;
        }
        Ok(self.predecessor.take().and_then(Predecessor::into_parts))
    }

    /// State of the process to replace, with its disk cache if that is the one of `config`.
    fn inherited_state(&mut self, config: &Config) -> InheritedState {
        let own = config.disk.iter().flat_map(|disk| &disk.volumes);
        let own: Vec<_> = own.map(|volume| volume.path.display().to_string()).collect();
        InheritedState {
            predecessor: self.predecessor.as_ref().map(Predecessor::pid),
            ring_lock: self.inheritance.ring_lock.take(),
            ticket_keys: std::mem::take(&mut self.inheritance.ticket_keys),
            disk: self.inheritance.disk.take().filter(|disk| disk.volumes == own),
        }
    }
}

impl Daemon {
    /// Starts the cores, listening on `listen`. Call within the helper runtime.
    ///
    /// # Errors
    /// The reason why it cannot.
    pub async fn start(
        source: DaemonOptions,
        config: &Config,
        listen: Vec<net::ListenerSettings>,
    ) -> Result<(Arc<Self>, Server), String> {
        Self::start_from(source, config, &mut Start { listen, ..Start::default() }).await
    }

    async fn start_from(
        source: DaemonOptions,
        config: &Config,
        start: &mut Start,
    ) -> Result<(Arc<Self>, Server), String> {
        let descriptors = raise_descriptors();
        refuse_huge_pages();
        let machine = Machine::read();
        let cores = config.workers.unwrap_or_else(|| machine.default_workers());
        let opened =
            open_listeners::open(&source, config, &start.listen, cores, &mut start.inheritance)?;
        let OpenListeners { listeners, ports, console, ring } = opened;
        // From here on it needs no more rights than at a reload.
        let admin_addresses = ports.admin.iter().map(Port::address).collect();
        let has_socket = console.listeners.has_socket();
        let inherited = start.inherited_state(config);
        let late_disk = inherited.disk.as_ref().map(|disk| disk.seed);
        let machinery =
            Machinery { machine, descriptors, cores, admin_addresses, has_socket, ring, inherited };
        let (daemon, records, below) = Self::new(source, config, machinery)?;
        let connections = keep_back(descriptors, config.limits.descriptors_reserve) / 5 * 4;
        let settings = net::Settings { connections, records };
        daemon.start_stapling();
        daemon.start_fetching_keys();
        daemon.load_programs(config)?;
        let former = start.replace()?;
        if let Some(seed) = late_disk {
            disk_store::take_over(&daemon.shared, config, seed)?;
        }
        // The disk's invalidations are read by the rules of sites and programs.
        if let Some(below) = below {
            disk_store::attach_disk(&daemon.shared, config, below);
        }
        let links = daemon.join_others(config)?;
        if let Some((socket, received)) = former {
            let link = links.add(socket, received);
            start.link = Some(link.map_err(|error| format!("larder: upgrade: {error}"))?);
        }
        daemon.start_ordering();
        if let Some(file) = daemon.source().flags().and_then(|flags| flags.commands.as_ref()) {
            varnish_cli::carry_out(&daemon, file).await?;
        }
        varnish_cli::tell_of_no_certificate(&daemon);
        listeners.claim().map_err(|refused| open_listeners::cannot_listen(&refused))?;
        let mut server = Server::start(&daemon.shared, listeners, &settings)
            .map_err(|e| format!("larder: cannot listen: {e}"))?;
        daemon.ring.iter().for_each(|ring| ring::publish(ring));
        if let Some(program) = start.program.take() {
            daemon.succession.prepare(Estate {
                program,
                listeners: server.take_sockets(),
                given: std::mem::take(&mut start.given),
                admin_socket: console.listeners.duplicate_socket(),
                links,
            });
        }
        daemon.start_work(config, server.addresses(), console, ports);
        Ok((daemon, server))
    }

    /// Joins the cluster, and tells others of invalidations; returns the list of processes that
    /// share this one's sockets.
    fn join_others(&self, config: &Config) -> Result<Arc<LinkedProcesses>, String> {
        let node = node::join(&self.users(), config)?;
        let neighbours: Arc<dyn PeerCaches> = self.start_neighbours()?;
        let links = LinkedProcesses::new(&self.shared);
        let linked: Arc<dyn PeerCaches> = Arc::<LinkedProcesses>::clone(&links);
        let nodes = node.iter().map(node::Node::others);
        let all = nodes.chain([neighbours, linked]).collect();
        self.shared.invalidator.tell_others(Arc::new(AllPeerCaches(all)));
        *self.node.lock() = node;
        Ok(links)
    }

    /// Starts everything beside the cores.
    fn start_work(
        self: &Arc<Self>,
        config: &Config,
        listeners: &[net::ListenerSettings],
        console: Console,
        ports: Ports,
    ) {
        let live = LiveFigures::new(&self.shared.counters, config.admin.history_minutes);
        let (own, samples) = (Arc::clone(self), Arc::clone(&live));
        keep_running(&self.shared, move || live::run(Arc::clone(&own), Arc::clone(&samples)));
        let own = Arc::clone(self);
        keep_running(&self.shared, move || pressure::run(Arc::clone(&own)));
        let own = Arc::clone(&self.shared.crawlers);
        keep_running(&self.shared, move || crawlers::run(Arc::clone(&own)));
        let own = Arc::clone(self);
        keep_running(&self.shared, move || outages::run(Arc::clone(&own)));
        let (own, listeners) = (Arc::clone(self), Arc::<[_]>::from(listeners));
        keep_running(&self.shared, move || rollout::run(Arc::clone(&own), Arc::clone(&listeners)));
        let own = Arc::clone(self);
        keep_running(&self.shared, move || readiness::run(Arc::clone(&own)));
        warm_sources::begin(self);
        let own = Arc::clone(self);
        keep_running(&self.shared, move || warm_sources::keep_hot_lists(Arc::clone(&own)));
        let Ports { admin, health, metrics, varnish_cli, htcp } = ports;
        api::serve(self, live, console, [admin, health, metrics]);
        self.start_ports(config, varnish_cli, htcp);
    }

    /// Starts the ports of operators' tools, the export of traces, and the sending of findings.
    fn start_ports(self: &Arc<Self>, config: &Config, cli: Vec<Port>, htcp: Vec<Port>) {
        varnish_cli::start(self, config.varnish_cli.as_ref(), cli);
        if let ConfigSource::Varnishd(flags) = &self.source().settings
            && let Some(address) = &flags.reverse_cli
        {
            varnish_cli::call_back(self, address);
        }
        htcp::start(self, config.htcp.as_ref(), htcp);
        otlp::start(self, config.tracing.as_ref());
        webhooks::start(self);
    }

    async fn until_signal(&self, signals: Signals) {
        let mut look = rt::time::interval(LOOK);
        let Signals { mut terminate, mut interrupt, mut hangup, mut reopen } = signals;
        loop {
            tokio::select! {
                _ = terminate.recv() => return,
                _ = interrupt.recv() => return,
                _ = look.tick() => {
                    self.renew_certificates();
                    self.vcls.sweep();
                }
                _ = reopen.recv() => self.reopen_logs(),
                // The reload logs its outcome itself.
                _ = hangup.recv() => drop(self.reload()),
            }
        }
    }
}

/// The addresses and sockets that the configuration listens on.
///
/// # Errors
/// A named socket that was not handed over.
pub fn listeners(config: &Config, given: &Sockets) -> Result<Vec<net::ListenerSettings>, String> {
    let (mut listen, mut names) = (Vec::new(), Vec::new());
    for (door, spec) in config.listen.iter().enumerate() {
        let (tls, h2c, proxy) = (spec.tls, spec.h2c, spec.proxy);
        let mut sockets: Vec<_> =
            spec.addresses.iter().copied().map(net::ListenAddress::Address).collect();
        sockets.extend(
            spec.path.iter().map(|(path, mode)| net::ListenAddress::Path(path.clone(), *mode)),
        );
        if let Some(name) = &spec.given {
            sockets.extend(given.called(name)?);
            names.push(name.as_str());
        }
        let door = u16::try_from(door).unwrap_or(u16::MAX);
        let of = |at| net::ListenerSettings { at, tls, h2c, proxy, endpoint: door, peers: false };
        listen.extend(sockets.into_iter().map(of));
    }
    if let Some(address) = config.cluster.as_ref().and_then(|cluster| cluster.peer) {
        let at = net::ListenAddress::Address(address);
        let (h2c, proxy, door) = (false, false, u16::MAX);
        listen.push(net::ListenerSettings {
            at,
            tls: true,
            h2c,
            proxy,
            endpoint: door,
            peers: true,
        });
    }
    for unused in given.unused(&names) {
        base::tell!(
            Warn,
            "larder: warning: nothing listens on the socket {unused} that was handed over: see \
             `listen`"
        );
    }
    Ok(listen)
}

/// Makes the kernel use small pages. It clears a huge one of 2 MiB within one page fault, during
/// which the core serves nothing: milliseconds on a virtual machine. Huge pages also make memory
/// resident that the allocator only sets apart.
fn refuse_huge_pages() {
    // A kernel without this costs latency, nothing else.
    _ = rustix::thread::disable_transparent_huge_pages(true);
}

/// Raises the soft limit of file descriptors to the hard one and returns the resulting limit.
fn raise_descriptors() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    }
    .unwrap_or(1 << 20)
}
