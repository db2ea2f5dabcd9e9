//! The simulation of a daemon in a schedule: one core, its cache, and two sites over one origin;
//! and the checks of what is left at the end.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base::{Account, Counter, HashSeed, Limits};
use cache::Config;
use flow::tier::{Cache, memory_only};
use flow::vcl::ProgramWorld;
use flow::vcl::link::BackendOrigin;
use flow::{
    CoreState, LiveConfiguration, ProxyFields, SharedState, ShownFields, Site, SiteAuthChecks,
    SiteOrigin, SiteTable, Throttles, VclSettings,
};
use net::SimulatedPort;
use origin::{Address, EjectConfig, Origin, OriginConfig, Protocol, ServerConfig};
use policy::{Declared, SiteRules, Users};
use rt::simulation::random;
use tokio::net::UnixListener;
use tokio::task::JoinHandle;
use tokio::time::sleep;
use vcl::backend::Backend;
use vcl::params::Params;
use vcl::program::{CompileSettings, Input, Instance, Program, ProgramRole};
use vcl::source::NoFiles;

use crate::oracle::Oracle;
use crate::plan::{Engine, SchedulePlan};

/// Time after which all work behind the last answer must have ended.
const REST: Duration = Duration::from_secs(300);

/// The program of the second site; SOCKET stands for the path of the origin's socket.
const PROGRAM: &str = r#"vcl 4.1;
import std;
backend b { .path = "SOCKET"; .first_byte_timeout = 4s; .between_bytes_timeout = 3s; }
sub vcl_recv {
    if (req.method == "PURGE") { return (purge); }
    if (req.method == "BAN") { ban("obj.http.x-path == " + req.url); return (synth(200)); }
}
sub vcl_backend_response {
    set beresp.http.x-path = bereq.url;
    set beresp.grace = std.duration(beresp.http.x-grace, 0s);
    if (bereq.url ~ "^/p/") { set beresp.do_esi = true; }
    if (bereq.url ~ "^/z/") { set beresp.do_gzip = true; }
}
"#;

/// The hosts of the sites by number: the first has a declared policy, the other a program.
pub(crate) const HOSTS: [&str; 2] = ["d.example", "v.example"];

/// The user who may authenticate, with `password`.
const USERS: &str = "old:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=";

/// The state of a running schedule.
pub(crate) struct Simulation {
    pub(crate) oracle: Rc<Oracle>,
    pub(crate) plan: SchedulePlan,
    pub(crate) core: Rc<CoreState>,
    /// The port of clients that talk to an engine.
    pub(crate) port: SimulatedPort,
    /// Number of requests, and of those whose clients left.
    pub(crate) asked: Cell<u64>,
    pub(crate) left: Cell<u64>,
    /// The accounts of all clients.
    pub(crate) accounts: RefCell<Vec<Arc<Account>>>,
    origin: Arc<Origin>,
    /// The current content of each resource's variant.
    contents: RefCell<BTreeMap<(usize, u64), u64>>,
    next_content: Cell<u64>,
    listener: RefCell<Option<JoinHandle<()>>>,
    socket: PathBuf,
}

impl Simulation {
    /// Builds the simulation of `plan`; `serve` is its origin.
    pub(crate) fn build<F: Future<Output = ()> + 'static>(
        oracle: &Rc<Oracle>,
        plan: SchedulePlan,
        serve: impl FnOnce(Rc<Self>, UnixListener) -> F,
    ) -> Rc<Self> {
        let (socket, listener) = listen();
        let origin = Origin::new(at(&socket));
        let seed = HashSeed::from_u64(plan.seed);
        let params = Params::default();
        let live = |vcl| live(seed, &origin, vcl, &params);
        let shared = SharedState::with_seed(store(&plan), live(None), seed);
        let text = PROGRAM.replace("SOCKET", &socket.to_string_lossy());
        shared.replace(live(Some(start(&text, &shared))));
        let core = CoreState::new(shared);
        let simulation = Rc::new(Self {
            oracle: Rc::clone(oracle),
            port: SimulatedPort::new(Rc::clone(&core)),
            core,
            asked: Cell::new(0),
            left: Cell::new(0),
            accounts: RefCell::default(),
            origin,
            contents: RefCell::default(),
            next_content: Cell::new(0),
            listener: RefCell::default(),
            socket,
            plan,
        });
        let serving = rt::spawn_local(serve(Rc::clone(&simulation), listener));
        *simulation.listener.borrow_mut() = Some(serving);
        simulation
    }

    /// The content of a resource's variant, which changes at random.
    pub(crate) fn content(&self, resource: usize, variant: u64) -> u64 {
        if random(3) == 0 {
            self.contents.borrow_mut().remove(&(resource, variant));
        }
        self.content_now(resource, variant)
    }

    /// The current content of a resource's variant.
    pub(crate) fn content_now(&self, resource: usize, variant: u64) -> u64 {
        let fresh = || {
            self.next_content.set(self.next_content.get() + 1);
            self.next_content.get()
        };
        *self.contents.borrow_mut().entry((resource, variant)).or_insert_with(fresh)
    }

    /// Waits until all work has ended, and checks what is left.
    pub(crate) async fn settle(&self) {
        sleep(REST).await;
        let (shared, oracle) = (&self.core.shared, &self.oracle);
        let memory = shared.cache.memory();
        // A dropped account releases everything, so accounts are checked before.
        let kept: u64 = self.accounts.borrow().iter().map(|account| account.held()).sum();
        if kept != 0 {
            oracle.fail(|| format!("{kept} bytes are held for clients that have left"));
        }
        self.accounts.borrow_mut().clear();
        if memory.held() != 0 {
            oracle.fail(|| format!("{} bytes are held without a client", memory.held()));
        }
        if self.origin.in_flight() != 0 {
            oracle.fail(|| format!("{} exchanges without a request", self.origin.in_flight()));
        }
        let requests = shared.counters.sum(Counter::Requests);
        // A client may leave a connection before its first request.
        let least = match self.plan.engine {
            Engine::Direct => self.asked.get(),
            Engine::Http1 | Engine::Http2 => self.asked.get() - self.left.get(),
        };
        if !(least..=self.asked.get()).contains(&requests) {
            oracle.fail(|| format!("{requests} requests counted of {}", self.asked.get()));
        }
        shared.cache.clear();
        shared.cache.sweep(u32::MAX, u64::MAX, &mut || ());
        let stats = shared.cache.stats();
        if (stats.bytes, stats.objects, stats.markers) != (0, 0, 0) {
            oracle.fail(|| format!("an empty store: {stats:?}"));
        }
        if let Some(listener) = self.listener.borrow_mut().take() {
            listener.abort();
        }
        // The socket is not needed any more; it does no harm if it stays.
        _ = std::fs::remove_file(&self.socket);
        oracle.note(format_args!("over: {} evictions, {} stores", stats.evictions, stats.stores));
    }
}

/// Does the chores of each second.
pub(crate) async fn sweep(simulation: Rc<Simulation>) {
    loop {
        sleep(Duration::from_secs(1)).await;
        simulation.port.sweep();
        let stats = simulation.core.shared.cache.stats();
        // Received bytes count as held even beyond the budget.
        if stats.bytes - stats.held > stats.budget {
            simulation.oracle.fail(|| format!("over the budget: {stats:?}"));
        }
    }
}

/// Makes a socket for an origin.
pub(crate) fn listen() -> (PathBuf, UnixListener) {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("larder-sim-{}-{number}", std::process::id());
    let socket = std::env::temp_dir().join(name);
    // An earlier process with the same id may have left it.
    _ = std::fs::remove_file(&socket);
    let listener = UnixListener::bind(&socket).expect("a socket in the temporary directory");
    (socket, listener)
}

/// The origin at a socket, never ejected however often it fails.
pub(crate) fn at(socket: &Path) -> OriginConfig {
    let server = ServerConfig {
        address: Address::Unix(socket.to_owned()),
        protocol: Protocol::Http,
        weight: 1,
        backup: false,
        tls: false,
    };
    OriginConfig {
        eject: EjectConfig { failures: 0, ..EjectConfig::default() },
        ..OriginConfig::with_limits("o", vec![server], &limits())
    }
}

/// Configures a program's backend as the daemon does: no queue, no retries.
fn connect(backend: &Backend) {
    let Backend::Leaf(leaf) = backend else { return };
    let socket = leaf.spec.path.as_deref().expect("the program has one");
    let config = OriginConfig {
        client_share_percent: 100,
        queue: 0,
        retries: 0,
        lenient: true,
        ..at(Path::new(socket))
    };
    leaf.set_link(Arc::new(BackendOrigin::new(config)));
}

fn limits() -> Limits {
    Limits {
        first_byte_timeout: 4_000,
        between_bytes_timeout: 3_000,
        total_timeout: 60_000,
        ..Limits::default()
    }
}

fn store(plan: &SchedulePlan) -> Arc<Cache> {
    // Some fragments are stored, and others exceed the limit on size.
    store_of(plan.budget_bytes, if plan.pages.is_empty() { 60_000 } else { 600_000 })
}

/// A cache with this budget and limit on object size.
pub(crate) fn store_of(budget_bytes: u64, object_bytes_max: u64) -> Arc<Cache> {
    let limits = limits();
    memory_only(Config {
        budget_bytes,
        held_bytes_max: budget_bytes / 2,
        max_variants: 10,
        object_bytes_max,
        waiters_max: 100,
        window_bytes: limits.window_bytes,
        hit_for_miss_ms: limits.hit_for_miss_ttl,
        bans_max: limits.bans as usize,
        index_bytes: 64 << 20,
    })
}

/// Starts a program.
pub(crate) fn start(text: &str, shared: &Arc<SharedState>) -> Arc<Instance> {
    let rules = CompileSettings {
        storages: &["s0"],
        labels: &[],
        include_depth: 10,
        unused_is_error: true,
        role: ProgramRole::Whole,
    };
    let input = Input { name: "sim.vcl", text: text.as_bytes(), loader: &NoFiles, rules };
    let compiled = Program::compile(&input).unwrap_or_else(|error| panic!("{error}"));
    let (live, log, now) = (shared.live(), RefCell::default(), rt::now());
    let simulation = ProgramWorld::without_request(shared, &live, now, &log);
    let instance = compiled
        .program
        .start(&simulation, now.unix_ms as f64 / 1_000.0)
        .unwrap_or_else(|error| panic!("{error}"));
    instance.backends().iter().for_each(connect);
    instance
}

fn site(number: u32, origin: &Arc<Origin>, vcl: Option<Arc<Instance>>) -> Arc<Site> {
    let mut rules = SiteRules::default();
    rules.settings.stale_if_unreachable_ms = Some(0);
    site_of(number, origin, vcl, rules)
}

/// A site with a policy by `rules`, or with a program.
pub(crate) fn site_of(
    number: u32,
    origin: &Arc<Origin>,
    vcl: Option<Arc<Instance>>,
    rules: SiteRules,
) -> Arc<Site> {
    let (name, limits) = (HOSTS[number as usize], limits());
    let throttles = Throttles::new(&rules, &limits);
    let users = Arc::new(Users::parse(USERS.as_bytes()).expect("a user"));
    let gates = SiteAuthChecks::new(&rules, name, |_| Some(Arc::clone(&users)), &[], &limits);
    Arc::new(Site {
        number,
        vcl,
        origins: vec![SiteOrigin::new(origin)],
        shown: ShownFields { tags: true, ..ShownFields::default() },
        throttles,
        gates,
        ..Site::new(name, Arc::new(Declared::new(rules)))
    })
}

fn live(
    seed: HashSeed,
    origin: &Arc<Origin>,
    vcl: Option<Arc<Instance>>,
    params: &Params,
) -> LiveConfiguration {
    live_of(seed, vec![site(0, origin, None), site(1, origin, vcl)], params)
}

/// A configuration with these sites.
pub(crate) fn live_of(
    seed: HashSeed,
    listed: Vec<Arc<Site>>,
    params: &Params,
) -> LiveConfiguration {
    let mut sites = SiteTable::new(seed);
    for site in &listed {
        sites.by_host.insert(&site.name, Arc::clone(site)).expect("a host of its own");
    }
    sites.listed = listed;
    let (identity, hostname) = ("sim".into(), "sim".into());
    LiveConfiguration {
        announce: ProxyFields { x_cache: true, ..ProxyFields::new("larder") },
        vcl: VclSettings { identity, hostname, ..VclSettings::new(params) },
        ..LiveConfiguration::new(sites, limits())
    }
}
