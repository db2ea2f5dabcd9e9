//! `larder serve`: starts, reloads and ends the daemon.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use base::counters::Counters;
use base::descriptors::keep_back;
use config::sizing::Machine;
use config::{CliOptions, Config};
use flow::Shared;
use flow::finish::{Records, Taker};
use net::{AccessLog, Server};
use observe::record::{SENT, USER};
use observe::ring::Ring;
use origin::{Order, Origin, Reserved, ServerStatus};
use parking_lot::Mutex;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tls::Challenges;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::given::Sockets;
use crate::journal::ServerLog;
use crate::keeper::{self, How};
use crate::live::{self, Live};
use crate::load::{load, render};
use crate::material::{LOOK, Material, read_material};
use crate::notify::{Notify, Watchdog};
use crate::opened::{self, Opened};
use crate::ordered::{self, Responder};
use crate::ports::Ports;
use crate::varnish_cli::{self, Guard};
use crate::varnishd;
use crate::vcl::Vcls;
use crate::{account, api, build, htcp, otlp, pressure, ring, stapled};

/// How long requests under way may take to finish after a stop was asked for.
/// How often it is said that a core stood still, at most.
const TURNS: Duration = Duration::from_secs(5);

/// Where the configuration comes from; asked again at every reload.
#[derive(Clone, Debug)]
pub struct Source {
    /// The configuration, or what takes its place.
    pub settings: Settings,
    /// The admin socket's path.
    pub admin_socket: PathBuf,
    /// The log ring's folder; it goes before what the configuration says.
    pub log_ring: Option<PathBuf>,
    /// As whom it is to run.
    pub user: account::Wanted,
    /// The file with the process id.
    pub pid_file: Option<PathBuf>,
}

/// A file, or what the command line said.
#[derive(Clone, Debug)]
pub enum Settings {
    /// `larder.toml`.
    File(PathBuf),
    /// Our own flags.
    Flags(CliOptions),
    /// varnishd's.
    Varnishd(Box<varnishd::Flags>),
}

impl Source {
    /// Reads the configuration; warnings go to standard error.
    ///
    /// # Errors
    /// What is wrong with it, rendered.
    pub fn config(&self) -> Result<Config, String> {
        match &self.settings {
            Settings::File(path) => {
                let (config, warnings) = load(path)?;
                eprint!("{warnings}");
                Ok(config)
            }
            Settings::Flags(options) => {
                config::from_cli(options).map_err(|problems| render(&problems))
            }
            Settings::Varnishd(flags) => flags.config(),
        }
    }
}

/// A running daemon, as far as its control goes.
pub struct Daemon {
    source: Source,
    /// What cores, cache and faces share.
    pub shared: Arc<Shared>,
    /// Where it is asked over TCP.
    pub admin_addresses: Vec<SocketAddr>,
    /// What the admin listener counts.
    pub(crate) admin_counts: Mutex<Arc<Counters>>,
    /// The admin listener, where no origin leads.
    reserved: Arc<Reserved>,
    machine: Machine,
    /// How many descriptors this process may have.
    descriptors: u64,
    cores: usize,
    log: Option<AccessLog>,
    /// The log ring, if there is one.
    pub ring: Option<Arc<Ring>>,
    /// Programs in VCL, and their parameters.
    pub(crate) vcls: Vcls,
    /// What dashboards are sent.
    pub(crate) live: Arc<Live>,
    started: Instant,
    /// What it was started with.
    first: Config,
    notify: Notify,
    running: Mutex<Running>,
    /// What authorities are answered in handshakes.
    challenges: Arc<Challenges>,
    /// What is to be ordered of them.
    plans: watch::Sender<Option<Arc<acme::Plan>>>,
    /// The certificates that are shown with an authority's word.
    stapling: watch::Sender<Option<acme::Stapling>>,
}

/// What is in force, to build the next from.
struct Running {
    config: Config,
    material: Material,
    origins: Vec<Tended>,
}

/// An origin and its background work.
struct Tended {
    origin: Arc<Origin>,
    work: JoinHandle<()>,
}

impl Drop for Tended {
    fn drop(&mut self) {
        self.work.abort();
    }
}

/// The signals a daemon heeds.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
    reopen: Signal,
}

impl Signals {
    /// Heeds them from now on. Call within the helper runtime.
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

/// Runs the daemon until it is told to end.
///
/// # Errors
/// Why it cannot be had.
pub fn run(source: Source) -> Result<(), String> {
    let sockets = Sockets::of_environment()?;
    account::harden();
    let config = source.config()?;
    let runtime = helper_runtime()?;
    let listen = listeners(&config, &sockets)?;
    let (daemon, server) = runtime.block_on(Daemon::start(source, &config, listen))?;
    // Whoever has read that it listens may send signals: until then a hangup would end it.
    let signals = runtime.block_on(async { Signals::listen() })?;
    for listen in server.addresses() {
        let tls = if listen.tls { " (TLS)" } else { "" };
        let proxy = if listen.proxy { " (PROXY protocol)" } else { "" };
        eprintln!("larder: listening on {}{tls}{proxy}", listen.at);
    }
    daemon.notify.ready("serving");
    let watchdog = Watchdog::of_environment(server.pulse());
    runtime.spawn(tell_of_turns(server.pulse()));
    runtime.block_on(async {
        let watch = async {
            match watchdog {
                Some(watchdog) => watchdog.run(&daemon.notify).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = daemon.until_told(signals) => {}
            () = watch => {}
        }
    });
    daemon.notify.stopping();
    eprintln!("larder: finishing requests under way");
    server.drain(Duration::from_millis(daemon.shared.live().limits.drain_time));
    daemon.vcls.end();
    if let Some(log) = &daemon.log {
        log.sync();
    }
    if let Some(ring) = &daemon.ring {
        ring.end();
    }
    // What it waits for, a name's lookup or a slow disk, holds the end up no longer.
    runtime.shutdown_background();
    Ok(())
}

/// Says when a core has stood still.
async fn tell_of_turns(pulse: net::Pulse) {
    let mut look = tokio::time::interval(TURNS);
    loop {
        look.tick().await;
        if let Some((core, ms)) = pulse.take_longest() {
            eprintln!("larder: core {core} did one thing for {ms} ms while its requests waited");
        }
    }
}

/// The runtime of everything that is not a request: admin, probes, name resolution, signals.
///
/// # Errors
/// Why it cannot be had.
pub fn helper_runtime() -> Result<tokio::runtime::Runtime, String> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("helper")
        .enable_all()
        .build()
        .map_err(|e| format!("larder: cannot start: {e}"))
}

/// Memory, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    /// What the process may take.
    pub(crate) size: u64,
    /// Of this, what may be reserved for what is stored or held.
    pub(crate) budget: u64,
    /// Of that, what may be held for clients.
    pub(crate) share: u64,
}

impl Daemon {
    /// Starts the cores, listening on `listen`. Call within the helper runtime.
    ///
    /// # Errors
    /// Why it cannot.
    pub async fn start(
        source: Source,
        config: &Config,
        listen: Vec<net::Listen>,
    ) -> Result<(Arc<Self>, Server), String> {
        let descriptors = raise_descriptors();
        refuse_huge_pages();
        let machine = Machine::read();
        let workers = config.workers.unwrap_or_else(|| machine.default_workers());
        let Opened { doors, ports, console, ring } =
            opened::open(&source, config, &listen, workers).await?;
        // From here on it may do no more than at a reload.
        let material = read_material(config)?;
        let sockets = vec![source.admin_socket.clone()];
        let cli = config.varnish_cli.iter().flat_map(|cli| cli.listen.addresses.iter().copied());
        let consoles = console.0.addresses().into_iter().chain(cli);
        let reserved = Arc::new(Reserved::new(consoles, sockets));
        let challenges = Arc::default();
        let tls = material.server(config, None, &challenges)?;
        let vcls = source.programs(config);
        let (live, origins) = build::live(config, &[], &material, tls, &reserved, vcls.view());
        let journal = ServerLog::start().map_err(|e| format!("larder: cannot start: {e}"))?;
        let shared = Shared::with_journal(build::cache(config, &machine), live, journal);
        let lines = shared.counters.register();
        let (records, log) = records(config, ring, workers, lines)?;
        let ring = records.ring.clone();
        let connections = keep_back(descriptors, config.limits.descriptors_reserve) / 5 * 4;
        let settings = net::Settings { connections, records };
        let origins = origins.into_iter().map(|origin| tend(origin, &shared)).collect();
        let (plans, planned) = watch::channel(ordered::plan(config, &material));
        tokio::spawn(acme::run(planned, Responder::new(&shared, &challenges)));
        let (stapling, stapled) = watch::channel(stapled::plan(config, &material));
        let counts = shared.counters.register();
        tokio::spawn(acme::staple(stapled, move |event| stapled::note(&counts, &event)));
        let running = Mutex::new(Running { config: config.clone(), material, origins });
        let notify = Notify::of_environment();
        let live = Live::new(&shared.counters, config.admin.history_minutes);
        let daemon = Arc::new(Self {
            source,
            admin_counts: Mutex::new(shared.counters.register()),
            admin_addresses: console.0.addresses(),
            live: Arc::clone(&live),
            shared,
            reserved,
            machine,
            descriptors,
            cores: workers,
            log,
            ring,
            vcls,
            started: Instant::now(),
            first: config.clone(),
            notify,
            running,
            challenges,
            plans,
            stapling,
        });
        daemon.load_programs(config).await?;
        let server = Server::start(&daemon.shared, doors, &settings)
            .map_err(|e| format!("larder: cannot listen: {e}"))?;
        tokio::spawn(live::run(Arc::clone(&daemon), live));
        tokio::spawn(pressure::run(Arc::clone(&daemon)));
        api::serve(&daemon, console);
        daemon.start_ports(config, ports);
        Ok((daemon, server))
    }

    /// Starts what others' tools speak to, and the export of traces.
    fn start_ports(self: &Arc<Self>, config: &Config, ports: Ports) {
        varnish_cli::start(self, config.varnish_cli.as_ref(), ports.varnish_cli);
        if let Settings::Varnishd(flags) = &self.source.settings
            && let Some(address) = &flags.reverse_cli
        {
            varnish_cli::call_back(self, address);
        }
        htcp::start(self, config.htcp.as_ref(), ports.htcp);
        otlp::start(self, config.tracing.as_ref());
    }

    /// Reads the configuration again. A bad one changes nothing. The result is what is to be said.
    pub(crate) fn reload(&self) -> Result<String, String> {
        self.notify.reloading();
        let reloaded = self.read_again();
        self.notify.ready(match &reloaded {
            Ok(_) => "serving",
            Err(_) => "serving; the last reload was refused, the log says why",
        });
        reloaded
    }

    fn read_again(&self) -> Result<String, String> {
        let config = self.source.config()?;
        let mut material = read_material(&config)?;
        let mut running = self.running.lock();
        material.keep_ordered(&running.material);
        material.keep_staples(&running.material, &config);
        let tls = self.shake_with(&config, &material)?;
        let programs = self.prepare_programs(&config)?;
        // From here on nothing is refused.
        programs.take_up();
        self.shared.cache.set_config(build::cache_config(&config, &self.machine));
        keep_back(self.descriptors, config.limits.descriptors_reserve);
        self.plans.send_replace(ordered::plan(&config, &material));
        let fixed = self.first.fixed_changes(&config);
        self.replace(&mut running, config, material, tls);
        Ok(match fixed.as_slice() {
            [] => "configuration reloaded".to_owned(),
            fixed => {
                let fixed = format!("what takes a restart stays as it was: {}", fixed.join(", "));
                eprintln!("larder: {fixed}");
                format!("configuration reloaded; {fixed}")
            }
        })
    }

    /// Reads certificates again whose files were changed; what cannot be used is said, and the old
    /// stays.
    fn renew_certificates(&self) {
        let mut running = self.running.lock();
        let (renewed, refused) = running.material.renew();
        if !refused.is_empty() {
            eprintln!("{}\nlarder: the certificates in use stay", render(&refused));
        }
        if !renewed {
            return;
        }
        match self.shake_with(&running.config, &running.material) {
            Ok(tls) => {
                let config = running.config.clone();
                let material = std::mem::take(&mut running.material);
                self.replace(&mut running, config, material, tls);
                eprintln!("larder: certificates renewed");
            }
            Err(problem) => eprintln!("{problem}"),
        }
    }

    /// What TLS listeners are to shake hands with.
    fn shake_with(
        &self,
        config: &Config,
        material: &Material,
    ) -> Result<Option<Arc<tls::Server>>, String> {
        material.server(config, self.shared.live().tls.as_deref(), &self.challenges)
    }

    /// Every origin's servers, each with its origin's name.
    pub(crate) fn servers(&self) -> Vec<(String, ServerStatus)> {
        let running = self.running.lock();
        let of = |tended: &Tended| {
            let (name, servers) = (tended.origin.name().to_string(), tended.origin.servers());
            servers.into_iter().map(move |server| (name.clone(), server))
        };
        running.origins.iter().flat_map(of).collect()
    }

    /// Has an operator's word count for servers of an origin, all of them when none is named; false
    /// when there are none.
    pub(crate) fn order_servers(&self, origin: &str, server: Option<&str>, order: Order) -> bool {
        // As it is shown, or as it is written in the configuration.
        let written = server.and_then(|name| origin::parse_server(name).ok());
        let written = written.map(|server| server.address.to_string());
        let is_meant = |name: &str| {
            server.is_none_or(|meant| meant == name) || written.as_deref() == Some(name)
        };
        let running = self.running.lock();
        let mut found = false;
        for tended in running.origins.iter().filter(|own| &**own.origin.name() == origin) {
            let servers = tended.origin.servers();
            for own in servers.iter().filter(|own| is_meant(&own.name)) {
                found |= tended.origin.order(&own.name, order);
            }
        }
        found
    }

    /// What it was told to do.
    pub(crate) fn source(&self) -> &Source {
        &self.source
    }

    /// Where no backend leads.
    pub(crate) fn reserved(&self) -> &Arc<Reserved> {
        &self.reserved
    }

    /// Shows the configuration in force.
    pub(crate) fn with_config<T>(&self, show: impl FnOnce(&Config) -> T) -> T {
        show(&self.running.lock().config)
    }

    /// The file that the configuration is read from; none when flags are.
    pub(crate) fn config_file(&self) -> Option<String> {
        match &self.source.settings {
            Settings::File(path) => Some(path.display().to_string()),
            Settings::Flags(_) | Settings::Varnishd(_) => None,
        }
    }

    /// Core threads.
    pub(crate) fn cores(&self) -> usize {
        self.cores
    }

    /// What a reload would say, which is not made.
    ///
    /// # Errors
    /// What is wrong.
    pub(crate) fn check_own(&self) -> Result<String, String> {
        let (config, warnings) = match &self.source.settings {
            Settings::File(path) => load(path)?,
            Settings::Flags(_) | Settings::Varnishd(_) => (self.source.config()?, String::new()),
        };
        read_material(&config).map(|_| warnings)
    }

    /// The admin socket's path; what the daemon keeps for its operators is beside it.
    pub(crate) fn admin_socket(&self) -> &Path {
        &self.source.admin_socket
    }

    /// What guards the Varnish CLI port; `None` when there is to be none.
    pub(crate) fn varnish_cli(&self) -> Option<Guard> {
        self.running.lock().material.varnish_cli.clone()
    }

    /// What guards the CLI that is spoken where the daemon connects itself: the flags' secret, or
    /// nothing where they name none.
    pub(crate) fn reverse_guard(&self) -> Option<Guard> {
        match &self.source.settings {
            Settings::Varnishd(flags) => flags.guard().ok(),
            Settings::File(_) | Settings::Flags(_) => None,
        }
    }

    /// What memory it may take, as configured.
    pub(crate) fn memory(&self) -> Memory {
        let running = self.running.lock();
        let cache = build::cache_config(&running.config, &self.machine);
        let size = self.machine.memory_bytes(running.config.memory.size);
        Memory { size, budget: cache.budget_bytes, share: cache.held_bytes_max }
    }

    /// How long it has been running.
    pub(crate) fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    /// Every certificate, as [`Material::certificates`] has it.
    pub(crate) fn certificates(&self) -> BTreeMap<(String, String), Option<u64>> {
        let running = self.running.lock();
        running.material.certificates(&running.config)
    }

    /// Has the configuration in force take up what has changed of programs and parameters.
    pub(crate) fn refresh(&self) {
        let mut running = self.running.lock();
        let (config, tls) = (running.config.clone(), self.shared.live().tls.clone());
        let material = std::mem::take(&mut running.material);
        self.replace(&mut running, config, material, tls);
    }

    /// Puts a configuration in force.
    fn replace(
        &self,
        running: &mut Running,
        config: Config,
        material: Material,
        tls: Option<Arc<tls::Server>>,
    ) {
        let tended = &mut running.origins;
        let origins: Vec<_> = tended.iter().map(|t| Arc::clone(&t.origin)).collect();
        let view = self.vcls.view();
        let (live, origins) = build::live(&config, &origins, &material, tls, &self.reserved, view);
        let mut next = Vec::with_capacity(origins.len());
        for origin in origins {
            let kept = tended.iter().position(|t| Arc::ptr_eq(&t.origin, &origin));
            next.push(match kept {
                Some(at) => tended.swap_remove(at),
                None => tend(origin, &self.shared),
            });
        }
        self.stapling.send_replace(stapled::plan(&config, &material));
        *running = Running { config, material, origins: next };
        self.shared.replace(live);
    }

    async fn until_told(&self, signals: Signals) {
        let mut look = tokio::time::interval(LOOK);
        let Signals { mut terminate, mut interrupt, mut hangup, mut reopen } = signals;
        loop {
            tokio::select! {
                _ = terminate.recv() => return,
                _ = interrupt.recv() => return,
                _ = look.tick() => {
                    self.renew_certificates();
                    self.vcls.sweep();
                }
                _ = reopen.recv() => {
                    if let Some(log) = &self.log {
                        log.reopen();
                    }
                }
                _ = hangup.recv() => match self.reload() {
                    Ok(_) => eprintln!("larder: configuration reloaded"),
                    Err(problems) => {
                        eprintln!("{problems}\nlarder: the running configuration stays");
                    }
                },
            }
        }
    }
}

/// What the configuration wants to be listened on.
///
/// # Errors
/// Why it cannot be had.
pub fn listeners(config: &Config, given: &Sockets) -> Result<Vec<net::Listen>, String> {
    let (mut listen, mut names) = (Vec::new(), Vec::new());
    for (door, spec) in config.listen.iter().enumerate() {
        let (tls, h2c, proxy) = (spec.tls, spec.h2c, spec.proxy);
        let mut sockets: Vec<_> = spec.addresses.iter().copied().map(net::At::Address).collect();
        sockets.extend(spec.path.iter().map(|(path, mode)| net::At::Path(path.clone(), *mode)));
        if let Some(name) = &spec.given {
            sockets.extend(given.called(name)?);
            names.push(name.as_str());
        }
        let door = u16::try_from(door).unwrap_or(u16::MAX);
        listen.extend(sockets.into_iter().map(|at| net::Listen { at, tls, h2c, proxy, door }));
    }
    for unused in given.unused(&names) {
        eprintln!("larder: warning: nothing listens on the given socket {unused}: see `listen`");
    }
    Ok(listen)
}

fn tend(origin: Arc<Origin>, shared: &Shared) -> Tended {
    let journal = shared.journal().cloned();
    let work = tokio::spawn(origin::run_background(Arc::clone(&origin), journal));
    Tended { origin, work }
}

/// Where records of transactions go, and what is in them.
fn records(
    config: &Config,
    folder: PathBuf,
    cores: usize,
    counters: Arc<Counters>,
) -> Result<(Records, Option<AccessLog>), String> {
    let mut wanted = config.log_ring.clone();
    if let (Some(ring), Some(_)) = (&mut wanted, &config.tracing) {
        let own = ["traceparent", "tracestate", SENT];
        ring.headers.retain(|name| !own.iter().any(|own| name.eq_ignore_ascii_case(own)));
        ring.headers.extend(own.map(str::to_owned));
    }
    let ring = wanted.as_ref().and_then(|wanted| ring::start(wanted, folder, cores));
    let mut names = match &ring {
        Some(ring) => ring.names().to_vec(),
        None => Vec::new(),
    };
    let log = match &config.access_log {
        Some(log) => {
            // These are part of its lines. What readers of the ring have no names for, they leave
            // out.
            for name in ["Referer", "User-Agent", USER] {
                if !names.iter().any(|own| own.eq_ignore_ascii_case(name)) {
                    names.push(name.to_owned());
                }
            }
            Some(open_log(log, &names, counters)?)
        }
        None => None,
    };
    let taker = log.clone().map(|log| Arc::new(log) as Arc<dyn Taker>);
    Ok((Records { ring, log: taker, names }, log))
}

fn open_log(
    log: &config::AccessLog,
    names: &[String],
    counters: Arc<Counters>,
) -> Result<AccessLog, String> {
    let target = match &log.target {
        config::LogTarget::Stdout => net::LogTarget::Stdout,
        config::LogTarget::File(path) => {
            net::LogTarget::File(path.clone(), |path| keeper::open(path, How::Append))
        }
        config::LogTarget::SyslogPath(path) => {
            net::LogTarget::Syslog(net::SyslogAt::Path(path.clone()))
        }
        config::LogTarget::SyslogAddress(address) => {
            net::LogTarget::Syslog(net::SyslogAt::Address(*address))
        }
    };
    let format = match log.format {
        config::LogFormat::Combined => net::LogFormat::Combined,
        config::LogFormat::Json => net::LogFormat::Json,
    };
    let started = AccessLog::start(target, format, names, counters);
    started.map_err(|e| format!("larder: access log: {e}"))
}

/// Has memory arrive in small pages. The kernel clears a huge one of 2 MiB within one page fault,
/// and all that a core serves waits meanwhile: milliseconds where memory is a virtual machine's. It
/// also makes resident what the allocator only keeps apart.
fn refuse_huge_pages() {
    // A kernel that cannot do this costs latency, nothing else.
    _ = rustix::thread::disable_transparent_huge_pages(true);
}

/// Raises the soft limit of file descriptors to the hard one; the result is what there is.
fn raise_descriptors() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    }
    .unwrap_or(1 << 20)
}
