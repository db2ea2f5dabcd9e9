//! `larder serve`: starts the daemon, handles signals, and ends it.

use std::sync::Arc;
use std::time::Duration;

use base::descriptors::keep_back;
use config::Config;
use config::sizing::Machine;
use flow::invalidate::{AllPeerCaches, PeerCaches};
use net::Server;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::live::{self, LiveFigures};
use crate::managed_origin::keep_running;
use crate::material::LOOK;
use crate::open_listeners::{self, OpenListeners};
use crate::ports::{Port, Ports};
use crate::service_manager::Watchdog;
use crate::socket_activation::Sockets;
use crate::source::{ConfigSource, DaemonOptions};
use crate::state::{Daemon, Machinery};
use crate::{
    account, api, crawlers, disk_store, htcp, keeper, node, otlp, outages, pressure, readiness,
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

/// Runs the daemon until a signal ends it.
///
/// # Errors
/// The reason why it cannot run.
pub fn run(source: DaemonOptions) -> Result<(), String> {
    let ended = serve(source);
    base::logging::finish(ended.as_ref().err().map(String::as_str));
    ended
}

fn serve(source: DaemonOptions) -> Result<(), String> {
    let sockets = Sockets::of_environment()?;
    account::harden();
    if let Some(path) = &source.keeper {
        keeper::reach(path);
    }
    let config = source.config()?;
    let runtime = helper_runtime()?;
    let listen = listeners(&config, &sockets)?;
    let (daemon, server) = runtime.block_on(Daemon::start(source, &config, listen))?;
    // A process that has read that it listens may send signals: until then a hangup would end it.
    let signals = runtime.block_on(async { Signals::listen() })?;
    for listen in server.addresses() {
        let tls = if listen.tls { " (TLS)" } else { "" };
        let proxy = if listen.proxy { " (PROXY protocol)" } else { "" };
        base::tell!(Info, "larder: listening on {}{tls}{proxy}", listen.at);
    }
    summary::log_served(&daemon);
    daemon.error_log.serves();
    daemon.notify.ready("serving");
    let watchdog = Watchdog::of_environment(server.heartbeats());
    let pulse = server.heartbeats();
    runtime.block_on(async {
        keep_running(&daemon.shared, move || log_stalls(pulse.clone()));
        let watch = async {
            match watchdog {
                Some(watchdog) => watchdog.run(&daemon.notify).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = daemon.until_signal(signals) => {}
            () = watch => {}
        }
    });
    daemon.notify.stopping();
    daemon.shared.invalidator.trust.set_stopping();
    base::tell!(Info, "larder: finishing requests under way");
    daemon.shared.warmth.end(rt::now().mono_ms);
    runtime.block_on(warm_sources::save_hot_lists(&daemon));
    server.drain(Duration::from_millis(daemon.shared.live().limits.drain_time));
    if let Some(node) = daemon.node.lock().take() {
        runtime.block_on(node.leave());
    }
    if let Some(neighbours) = daemon.neighbours.get() {
        runtime.block_on(neighbours.finish());
    }
    if let Some(workdir) = daemon.admin_socket().parent() {
        vsm::withdraw(workdir);
    }
    daemon.vcls.end();
    disk_store::close(&daemon.shared, COPY_TIME);
    if let Some(log) = &daemon.log {
        log.sync();
    }
    if let Some(ring) = &daemon.ring {
        ring.end();
    }
    // A pending lookup or slow disk no longer delays the end.
    runtime.shutdown_background();
    Ok(())
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
pub fn helper_runtime() -> Result<tokio::runtime::Runtime, String> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("helper")
        .enable_all()
        .build()
        .map_err(|e| format!("larder: cannot start: {e}"))
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
        let descriptors = raise_descriptors();
        refuse_huge_pages();
        let machine = Machine::read();
        let cores = config.workers.unwrap_or_else(|| machine.default_workers());
        let OpenListeners { listeners, ports, console, ring } =
            open_listeners::open(&source, config, &listen, cores)?;
        // From here on it needs no more rights than at a reload.
        let admin_addresses = ports.admin.iter().map(Port::address).collect();
        let has_socket = console.listeners.has_socket();
        let machinery =
            Machinery { machine, descriptors, cores, admin_addresses, has_socket, ring };
        let (daemon, records, below) = Self::new(source, config, machinery)?;
        let connections = keep_back(descriptors, config.limits.descriptors_reserve) / 5 * 4;
        let settings = net::Settings { connections, records };
        daemon.start_stapling();
        daemon.start_fetching_keys();
        daemon.load_programs(config)?;
        // The disk's invalidations are read by the rules of sites and programs.
        if let Some(below) = below {
            disk_store::attach_disk(&daemon.shared, config, below);
        }
        let node = node::join(&daemon.users(), config)?;
        let neighbours: Arc<dyn PeerCaches> = daemon.start_neighbours()?;
        let nodes = node.iter().map(node::Node::others);
        daemon
            .shared
            .invalidator
            .tell_others(Arc::new(AllPeerCaches(nodes.chain([neighbours]).collect())));
        *daemon.node.lock() = node;
        daemon.start_ordering();
        if let Some(file) = daemon.source().flags().and_then(|flags| flags.commands.as_ref()) {
            varnish_cli::carry_out(&daemon, file).await?;
        }
        varnish_cli::tell_of_no_certificate(&daemon);
        listeners.claim().map_err(|refused| open_listeners::cannot_listen(&refused))?;
        let server = Server::start(&daemon.shared, listeners, &settings)
            .map_err(|e| format!("larder: cannot listen: {e}"))?;
        let live = LiveFigures::new(&daemon.shared.counters, config.admin.history_minutes);
        let (own, samples) = (Arc::clone(&daemon), Arc::clone(&live));
        keep_running(&daemon.shared, move || live::run(Arc::clone(&own), Arc::clone(&samples)));
        let own = Arc::clone(&daemon);
        keep_running(&daemon.shared, move || pressure::run(Arc::clone(&own)));
        let own = Arc::clone(&daemon.shared.crawlers);
        keep_running(&daemon.shared, move || crawlers::run(Arc::clone(&own)));
        let own = Arc::clone(&daemon);
        keep_running(&daemon.shared, move || outages::run(Arc::clone(&own)));
        let (own, listeners) = (Arc::clone(&daemon), Arc::<[_]>::from(server.addresses()));
        keep_running(&daemon.shared, move || {
            rollout::run(Arc::clone(&own), Arc::clone(&listeners))
        });
        let own = Arc::clone(&daemon);
        keep_running(&daemon.shared, move || readiness::run(Arc::clone(&own)));
        warm_sources::begin(&daemon);
        let own = Arc::clone(&daemon);
        keep_running(&daemon.shared, move || warm_sources::keep_hot_lists(Arc::clone(&own)));
        let Ports { admin, health, metrics, varnish_cli, htcp } = ports;
        api::serve(&daemon, live, console, [admin, health, metrics]);
        daemon.start_ports(config, varnish_cli, htcp);
        Ok((daemon, server))
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
