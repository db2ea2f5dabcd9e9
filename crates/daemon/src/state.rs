//! The state of a running daemon: what its faces read, and what operators change. It must know
//! neither its callers nor how it was started.

mod inherited_state;
mod reload_outcome;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use acme::Webhook;
use admin::MetricsAuthentication;
use base::HashSeed;
use base::counters::Counters;
use base::descriptors::keep_back;
use config::sizing::Machine;
use config::{Config, Programs};
use flow::SharedState;
use flow::finish::Records;
use flow::tier::{Cache, OpenedDisk};
use net::AccessLog;
use observe::ring::Ring;
use origin::{HealthOverride, ReservedAddresses, ServerStatus, SharedPool};
use parking_lot::{Mutex, MutexGuard};
use tls::{Challenges, TicketKeys};
use tokio::sync::watch;

use crate::certificate_orders::Responder;
use crate::cli_certificates::{CertificateRefusal, CliCertificates};
use crate::collector::Collector;
use crate::config_bundle::ConfigBundle;
use crate::config_file::{load, load_shared, render};
use crate::error_log::ErrorLog;
use crate::guard::Guard;
use crate::handover::DiskOffer;
use crate::key_directories::DirectoryPlan;
use crate::managed_origin::{ManagedOrigin, keep_running, tend};
use crate::material::{Material, read_material};
use crate::neighbours::Neighbours;
use crate::node::Node;
use crate::ports::PortRegistry;
use crate::records::records;
use crate::secrets::{Nodes, Users};
use crate::server_log::ServerLog;
use crate::service_manager::ServiceManager;
use crate::source::{ConfigSource, DaemonOptions};
use crate::succession::Succession;
use crate::vcl::Vcls;
use crate::versions::Versions;
use crate::{disk_store, key_directories, ocsp_staples, programs, site_assembly};

pub(crate) use self::inherited_state::InheritedState;
pub(crate) use self::reload_outcome::ReloadOutcome;

/// The longest wait for another reload.
const READING_PATIENCE: Duration = Duration::from_secs(1);

/// A running daemon, as far as its control goes.
pub struct Daemon {
    source: DaemonOptions,
    /// State that cores, cache and faces share.
    pub shared: Arc<SharedState>,
    /// The admin listener's TCP addresses.
    pub admin_addresses: Vec<SocketAddr>,
    /// The ports for operators and their tools, and those that could not be opened yet.
    pub(crate) ports: Arc<PortRegistry>,
    /// The admin socket is open.
    has_socket: bool,
    /// The counters of the admin listener.
    pub(crate) admin_counts: Mutex<Arc<Counters>>,
    /// The addresses of the admin listener, which no origin may lead to.
    reserved: Arc<ReservedAddresses>,
    machine: Machine,
    /// Locked by the advice that is being made.
    pub(crate) advising: Arc<tokio::sync::Mutex<()>>,
    /// The number of descriptors that this process may have.
    descriptors: u64,
    cores: usize,
    pub(crate) log: Option<AccessLog>,
    /// The error log.
    pub(crate) error_log: ErrorLog,
    /// The log ring, if there is one.
    pub ring: Option<Arc<Ring>>,
    /// Programs in VCL, and their parameters.
    pub(crate) vcls: Vcls,
    started: Instant,
    /// The configuration that the daemon was started with.
    first: Config,
    pub(crate) notify: ServiceManager,
    /// The node, while the daemon is in a cluster.
    pub(crate) node: Mutex<Option<Node>>,
    /// The neighbours that invalidations are sent to; unset until they are started.
    pub(crate) neighbours: OnceLock<Arc<Neighbours>>,
    running: Mutex<ActiveState>,
    /// The configurations shared with all nodes, if they are.
    pub(crate) versions: Option<Arc<Versions>>,
    /// The lock for reading the configuration: one reload at a time.
    reading: Mutex<()>,
    /// The responses to authorities' challenges in handshakes.
    challenges: Arc<Challenges>,
    /// The keys of session tickets.
    ticket_keys: Arc<TicketKeys>,
    /// The plan of certificates to order, if there are any.
    plans: watch::Sender<Option<Arc<acme::CertificatePlan>>>,
    /// The certificates that are stapled.
    stapling: watch::Sender<Option<acme::StaplePlan>>,
    /// The key directories of agents that are fetched.
    directories: watch::Sender<DirectoryPlan>,
    /// The authentication of `[metrics]` clients; `None` if there was none at the start.
    metrics_authentication: Option<watch::Sender<Arc<MetricsAuthentication>>>,
    /// Sites that cannot be served, if readiness reports them.
    pub(crate) unserved: Mutex<Vec<String>>,
    /// The daemon's replacement by a new process.
    pub(crate) succession: Succession,
    /// The process that this one has replaced; `None` without one.
    pub(crate) predecessor: Option<u32>,
    /// The number that hashes of keys on the disk begin with; `None` without a disk cache.
    disk_seed: Option<u64>,
}

/// The state in force, from which the next is built.
struct ActiveState {
    config: Config,
    material: Material,
    origins: Vec<ManagedOrigin>,
}

/// Memory, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemorySizes {
    /// The bytes that the process may take.
    pub(crate) size: u64,
    /// The part of `size` that may be reserved for stored and held bytes.
    pub(crate) budget: u64,
    /// The part of that which may be held for clients.
    pub(crate) share: u64,
}

/// Resources that the daemon has opened on its machine.
pub(crate) struct Machinery {
    pub(crate) machine: Machine,
    /// The number of descriptors that this process may have.
    pub(crate) descriptors: u64,
    /// Core threads.
    pub(crate) cores: usize,
    /// The admin listener's TCP addresses.
    pub(crate) admin_addresses: Vec<SocketAddr>,
    /// The admin socket is open.
    pub(crate) has_socket: bool,
    /// The log ring's folder.
    pub(crate) ring: PathBuf,
    /// State of the process that this one replaces.
    pub(crate) inherited: InheritedState,
}

impl Daemon {
    /// The state that `config` begins with, without programs and listeners; the sinks of the cores'
    /// records; and the disk, to be attached. Call within the helper runtime.
    ///
    /// # Errors
    /// The part of the configuration that cannot be used.
    pub(crate) fn new(
        source: DaemonOptions,
        config: &Config,
        machinery: Machinery,
    ) -> Result<(Arc<Self>, Records, Option<OpenedDisk>), String> {
        let InheritedState { predecessor, ring_lock, ticket_keys: keys, disk } =
            machinery.inherited;
        let Machinery { machine, descriptors, cores, admin_addresses, has_socket, ring, .. } =
            machinery;
        let material = read_material(config)?;
        let reserved = reserved(&source, config, &admin_addresses);
        let challenges = Arc::default();
        let ticket_keys = ticket_keys(&keys)?;
        let tls = material.server(config, &ticket_keys, &challenges)?;
        let metrics = material.metrics_authentication(config, is_secure(config), &ticket_keys)?;
        let metrics_authentication = metrics.map(|own| watch::Sender::new(Arc::new(own)));
        let vcls = source.programs(config);
        let (live, origins) =
            site_assembly::live(config, &[], &material, tls, &reserved, vcls.view());
        let cache = site_assembly::cache(config, &machine);
        let (below, disk_seed) = open_disk(config, &cache, disk)?;
        let seed = disk_seed.map_or_else(HashSeed::random, HashSeed::from_u64);
        let shared =
            SharedState::over(cache, live, seed, SharedPool::with_journal(ServerLog::shared()));
        let error_log = ErrorLog::start(config, shared.counters.register())?;
        error_log.listen();
        let (records, log) = records(config, ring, cores, ring_lock, &shared)?;
        let origins = origins.into_iter().map(|origin| tend(origin, &shared)).collect();
        let plans = watch::Sender::new(material.plan(config));
        let stapling = watch::Sender::new(ocsp_staples::plan(config, &material));
        let directories = watch::Sender::new(material.crawlers.directories(&config.limits));
        let running = Mutex::new(ActiveState { config: config.clone(), material, origins });
        let versions = versions(config, &shared);
        let daemon = Arc::new(Self {
            source,
            admin_counts: Mutex::new(shared.counters.register()),
            admin_addresses,
            ports: Arc::default(),
            has_socket,
            shared,
            reserved,
            machine,
            advising: Arc::default(),
            descriptors,
            cores,
            log,
            error_log,
            ring: records.ring.clone(),
            vcls,
            started: Instant::now(),
            first: config.clone(),
            notify: ServiceManager::of_environment(),
            node: Mutex::default(),
            neighbours: OnceLock::new(),
            running,
            versions,
            reading: Mutex::default(),
            challenges,
            ticket_keys,
            plans,
            stapling,
            directories,
            metrics_authentication,
            unserved: Mutex::default(),
            succession: Succession::default(),
            predecessor,
            disk_seed,
        });
        Ok((daemon, records, below))
    }

    /// Orders certificates while the runtime lives, together with the cluster's nodes if they share
    /// secrets.
    pub(crate) fn start_ordering(&self) {
        let commons =
            self.bucket().map(|bucket| Arc::new(Nodes(bucket)) as Arc<dyn acme::CertificatePeers>);
        let (shared, challenges) = (Arc::clone(&self.shared), Arc::clone(&self.challenges));
        let plans = self.plans.subscribe();
        keep_running(&self.shared, move || {
            let responder = Responder::new(&shared, &challenges);
            acme::run(plans.clone(), responder, commons.clone())
        });
    }

    /// Stops to order certificates: another process will.
    pub(crate) fn stop_ordering(&self) {
        self.plans.send_replace(None);
    }

    /// Orders certificates again.
    pub(crate) fn resume_ordering(&self) {
        let running = self.running.lock();
        self.plans.send_replace(running.material.plan(&running.config));
    }

    /// Holds back reloads while the value lives.
    pub(crate) fn hold_configuration(&self) -> MutexGuard<'_, ()> {
        self.reading.lock()
    }

    /// The secrets of session tickets, for the next process.
    pub(crate) fn ticket_keys(&self) -> Vec<u8> {
        self.ticket_keys.encode()
    }

    /// The disk cache, for the next process; `None` without one.
    pub(crate) fn disk_offer(&self) -> Option<DiskOffer> {
        let seed = self.disk_seed?;
        Some(DiskOffer { volumes: self.volumes(), seed })
    }

    /// Requests staples while the runtime lives.
    pub(crate) fn start_stapling(&self) {
        let (counts, stapling) = (self.shared.counters.register(), self.stapling.subscribe());
        keep_running(&self.shared, move || {
            let counts = Arc::clone(&counts);
            let note = move |event: acme::StapleEvent| ocsp_staples::note(&counts, &event);
            acme::staple(stapling.clone(), note)
        });
    }

    /// Fetches the keys of agents while the runtime lives.
    pub(crate) fn start_fetching_keys(&self) {
        let (counts, wanted) = (self.shared.counters.register(), self.directories.subscribe());
        let crawlers = Arc::clone(&self.shared.crawlers);
        keep_running(&self.shared, move || {
            key_directories::run(Arc::clone(&crawlers), Arc::clone(&counts), wanted.clone())
        });
    }

    /// Loads the programs that the configuration begins with. Call it once.
    ///
    /// # Errors
    /// The reason why there is nothing to serve.
    pub(crate) fn load_programs(&self, config: &Config) -> Result<(), String> {
        self.vcls.set_program_host(&self.shared, &self.reserved)?;
        let shared = self.versions.as_ref().and_then(|own| own.in_force());
        programs::prepare(&self.vcls, &self.source, config, shared.as_deref())?.take_up();
        self.refresh();
        Ok(())
    }

    /// Reads the configuration again, and logs the outcome on standard error. A faulty one changes
    /// nothing.
    ///
    /// # Errors
    /// The faults, rendered.
    pub(crate) fn reload(&self) -> Result<ReloadOutcome, String> {
        self.notify.reloading();
        // In any case: log rotation does not depend on a good file.
        self.reopen_logs();
        let reading = self.begin_reading().inspect_err(|why| {
            base::tell!(Error, "{why}");
            self.notify.ready("serving; the last reload was refused: see the log");
        })?;
        let shared = self.versions.as_ref().and_then(|own| own.in_force());
        let reloaded = self.read_again(shared.as_deref());
        drop(reading);
        // The node's own file may have been the reason for a refusal.
        self.versions.iter().for_each(|own| own.try_again());
        match &reloaded {
            Ok(reloaded) => {
                base::tell!(Notice, "larder: {reloaded}");
                self.notify.ready(&match reloaded.stays.as_slice() {
                    [] => "serving".to_owned(),
                    stays => format!("serving; these wait for a restart: {}", stays.join(", ")),
                });
            }
            Err(problems) => {
                base::tell!(Error, "{problems}\nlarder: the running configuration stays");
                self.notify.ready("serving; the last reload was refused: see the log");
            }
        }
        reloaded
    }

    /// Puts in force the node's own configuration, with the one that all nodes share or without
    /// one. An unusable one changes nothing.
    ///
    /// # Errors
    /// The faults, rendered, as of a reload.
    pub(crate) fn apply_shared_config(
        &self,
        shared: Option<Arc<ConfigBundle>>,
    ) -> Result<(), String> {
        let Some(versions) = &self.versions else { return Ok(()) };
        let _reading = self.begin_reading()?;
        self.read_again(shared.as_deref())?;
        self.shared.invalidator.trust.set_unprepared(shared.is_none());
        versions.set(shared);
        Ok(())
    }

    /// Begins to read the configuration. Must not wait for an upgrade, which needs this thread.
    fn begin_reading(&self) -> Result<MutexGuard<'_, ()>, String> {
        self.reading.try_lock_for(READING_PATIENCE).ok_or_else(|| {
            "larder: nothing is changed: an upgrade or another reload is under way".to_owned()
        })
    }

    fn read_again(&self, shared: Option<&ConfigBundle>) -> Result<ReloadOutcome, String> {
        let config = self.source.config_with(shared)?;
        let mut material = read_material(&config)?;
        let mut running = self.running.lock();
        material.keep_ordered(&running.material);
        material.keep_cli_certificates(&running.material);
        material.keep_staples(&running.material, &config);
        let tls = self.tls_server(&config, &material)?;
        let programs = programs::prepare(&self.vcls, &self.source, &config, shared)?;
        // From here on nothing is refused.
        programs.take_up();
        self.shared.cache.set_config(site_assembly::cache_config(&config, &self.machine));
        keep_back(self.descriptors, config.limits.descriptors_reserve);
        self.plans.send_replace(material.plan(&config));
        let stays = self.first.fixed_changes(&config);
        self.error_log.configure(&config);
        self.replace(&mut running, config, material, tls);
        let missing = self.ports.reasons();
        self.ports.try_again();
        Ok(ReloadOutcome { stays, missing })
    }

    /// Reopens log files by their paths, after a rotation.
    pub(crate) fn reopen_logs(&self) {
        self.log.iter().for_each(AccessLog::reopen);
        self.error_log.reopen();
    }

    /// The folder of the documentation, if it is served.
    pub(crate) fn documents(&self) -> Option<&Path> {
        self.first.admin.docs.as_deref()
    }

    /// Settings of `config` that differ from those in use and that only take effect at a restart.
    pub(crate) fn waits_for_restart(&self, config: &Config) -> Vec<&'static str> {
        self.first.fixed_changes(config)
    }

    /// Reads changed certificates again; an unusable one is logged, and the old one stays.
    pub(crate) fn renew_certificates(&self) {
        // A running reload leaves the files to the next check.
        let Some(_reading) = self.reading.try_lock() else { return };
        let mut running = self.running.lock();
        let (renewed, refused) = running.material.renew();
        if !refused.is_empty() {
            base::tell!(Error, "{}\nlarder: the certificates in use stay", render(&refused));
        }
        if !renewed {
            return;
        }
        match self.tls_server(&running.config, &running.material) {
            Ok(tls) => {
                let config = running.config.clone();
                let material = std::mem::take(&mut running.material);
                self.replace(&mut running, config, material, tls);
                base::tell!(Notice, "larder: certificates renewed");
            }
            Err(problem) => base::tell!(Error, "{problem}"),
        }
    }

    /// Reads the certificates of Varnish's CLI.
    pub(crate) fn with_cli_certificates<T>(&self, show: impl FnOnce(&CliCertificates) -> T) -> T {
        show(&self.running.lock().material.cli_certificates)
    }

    /// Changes the certificates of Varnish's CLI; handshakes present the active ones then.
    ///
    /// # Errors
    /// The reason why nothing is changed.
    pub(crate) fn change_cli_certificates<T>(
        &self,
        change: impl FnOnce(&mut CliCertificates) -> Result<T, CertificateRefusal>,
    ) -> Result<T, CertificateRefusal> {
        // Reading files blocks neither requests nor readers of the state.
        let _reading = self.begin_reading().map_err(CertificateRefusal::because)?;
        let mut cli_certificates = self.with_cli_certificates(CliCertificates::clone);
        let done = change(&mut cli_certificates)?;
        let mut running = self.running.lock();
        if cli_certificates.shows_as(&running.material.cli_certificates) {
            running.material.cli_certificates = cli_certificates;
            return Ok(done);
        }
        let before = std::mem::replace(&mut running.material.cli_certificates, cli_certificates);
        match self.tls_server(&running.config, &running.material) {
            Ok(tls) => {
                let config = running.config.clone();
                let material = std::mem::take(&mut running.material);
                self.replace(&mut running, config, material, tls);
                Ok(done)
            }
            Err(problem) => {
                running.material.cli_certificates = before;
                Err(CertificateRefusal::because(problem))
            }
        }
    }

    /// The TLS server for the handshakes of listeners.
    fn tls_server(
        &self,
        config: &Config,
        material: &Material,
    ) -> Result<Option<Arc<tls::ServerContext>>, String> {
        material.server(config, &self.ticket_keys, &self.challenges)
    }

    /// Every server, with its origin's name.
    pub(crate) fn servers(&self) -> Vec<(String, ServerStatus)> {
        let running = self.running.lock();
        let of = |managed: &ManagedOrigin| {
            let (name, servers) = (managed.origin.name().to_string(), managed.origin.servers());
            servers.into_iter().map(move |server| (name.clone(), server))
        };
        running.origins.iter().flat_map(of).collect()
    }

    /// Applies an operator's order to servers of an origin, all of them without a `server`; false
    /// if there are none.
    pub(crate) fn order_servers(
        &self,
        origin: &str,
        server: Option<&str>,
        order: HealthOverride,
    ) -> bool {
        // By the displayed name, or by the configured one.
        let written = server.and_then(|name| origin::parse_server(name).ok());
        let written = written.map(|server| server.address.to_string());
        let is_meant = |name: &str| {
            server.is_none_or(|meant| meant == name) || written.as_deref() == Some(name)
        };
        let running = self.running.lock();
        let mut found = false;
        for managed in running.origins.iter().filter(|own| &**own.origin.name() == origin) {
            let servers = managed.origin.servers();
            for own in servers.iter().filter(|own| is_meant(&own.name)) {
                found |= managed.origin.order(&own.name, order);
            }
        }
        found
    }

    /// Returns true if a site uses the program in force.
    pub(crate) fn takes_programs(&self) -> bool {
        self.with_config(|config| config.vcl != Programs::None)
    }

    /// The source of the configuration.
    pub(crate) fn source(&self) -> &DaemonOptions {
        &self.source
    }

    /// Reads the configuration in force.
    pub(crate) fn with_config<T>(&self, show: impl FnOnce(&Config) -> T) -> T {
        show(&self.running.lock().config)
    }

    /// The machine, as it was at the start.
    pub(crate) fn machine(&self) -> Machine {
        self.machine
    }

    /// The file of the configuration; `None` with flags.
    pub(crate) fn config_file(&self) -> Option<String> {
        match &self.source.settings {
            ConfigSource::File(path) => Some(path.display().to_string()),
            ConfigSource::Flags(_) | ConfigSource::Varnishd(_) => None,
        }
    }

    /// The cluster, if the daemon is part of one.
    pub(crate) fn cluster(&self) -> Option<Arc<cluster::Cluster>> {
        self.node.lock().as_ref().map(|node| Arc::clone(&node.cluster))
    }

    /// The secrets shared with the nodes of the cluster, if there are any.
    pub(crate) fn bucket(&self) -> Option<Arc<cluster::Bucket>> {
        self.node.lock().as_ref().and_then(|node| node.bucket.clone())
    }

    /// The age of the key that session tickets are made with, in seconds.
    pub(crate) fn ticket_keys_age(&self) -> u64 {
        self.ticket_keys.age_secs(rt::now().unix_secs())
    }

    /// The users of shared secrets.
    pub(crate) fn users(&self) -> Users {
        Users {
            shared: Arc::clone(&self.shared),
            handshakes: Arc::clone(&self.challenges),
            ticket_keys: Arc::clone(&self.ticket_keys),
            versions: self.versions.clone(),
        }
    }

    /// Core threads.
    pub(crate) fn cores(&self) -> usize {
        self.cores
    }

    /// Checks the configuration as a reload would, without putting it in force. Returns it with the
    /// warnings.
    ///
    /// # Errors
    /// The faults, rendered.
    pub(crate) fn check_own(&self) -> Result<(Config, String), String> {
        let shared = self.versions.as_ref().and_then(|own| own.in_force());
        let (config, warnings) = match (&self.source.settings, &shared) {
            (ConfigSource::File(path), Some(shared)) => load_shared(path, shared)?,
            (ConfigSource::File(path), None) => load(path)?,
            (ConfigSource::Flags(_) | ConfigSource::Varnishd(_), _) => {
                (self.source.config_with(None)?, String::new())
            }
        };
        read_material(&config).map(|_| (config, warnings))
    }

    /// Checks a configuration for all nodes, together with the node's own. The files that it names
    /// are not read. Returns the hosts that would lose their site.
    ///
    /// # Errors
    /// The faults, rendered.
    pub(crate) fn check_shared(&self, shared: &ConfigBundle) -> Result<Vec<String>, String> {
        let ConfigSource::File(path) = &self.source.settings else { return Ok(Vec::new()) };
        let (config, _) = load_shared(path, shared)?;
        let has = |host: &String| config.sites.iter().any(|site| site.hosts.contains(host));
        let in_force = self.check_own().map(|(config, _)| config.sites).unwrap_or_default();
        let hosts = in_force.into_iter().flat_map(|site| site.hosts);
        Ok(hosts.filter(|host| !has(host)).collect())
    }

    /// The admin socket's path; the daemon keeps its files for operators beside it.
    pub(crate) fn admin_socket(&self) -> &Path {
        &self.source.admin_socket
    }

    /// The admin listener's open TCP addresses.
    pub(crate) fn open_consoles(&self) -> Vec<SocketAddr> {
        let all = self.admin_addresses.iter().copied();
        all.filter(|address| !self.ports.has(*address)).collect()
    }

    /// Returns true if the admin socket is open.
    pub(crate) fn has_socket(&self) -> bool {
        self.has_socket
    }

    /// The guard of the Varnish CLI port; `None` without such a port.
    pub(crate) fn varnish_cli(&self) -> Option<Guard> {
        self.running.lock().material.varnish_cli.clone()
    }

    /// The collector of traces, if one is configured.
    pub(crate) fn collector(&self) -> Option<Arc<Collector>> {
        self.running.lock().material.collector.clone()
    }

    /// The receiver of findings, if one is configured.
    pub(crate) fn webhook(&self) -> Option<Arc<Webhook>> {
        self.running.lock().material.webhook.clone()
    }

    /// The guard of a CLI connection that the daemon opens itself: the flags' secret, or
    /// [`Guard::Open`] if the flags have none; `None` without varnishd's flags, or if the secret
    /// cannot be read.
    pub(crate) fn reverse_guard(&self) -> Option<Guard> {
        match &self.source.settings {
            ConfigSource::Varnishd(flags) => flags.guard().ok(),
            ConfigSource::File(_) | ConfigSource::Flags(_) => None,
        }
    }

    /// The configured memory of the daemon.
    pub(crate) fn memory(&self) -> MemorySizes {
        let running = self.running.lock();
        let cache = site_assembly::cache_config(&running.config, &self.machine);
        let size = self.machine.memory_bytes(running.config.memory.size);
        MemorySizes { size, budget: cache.budget_bytes, share: cache.held_bytes_max }
    }

    /// The time since the daemon was started.
    pub(crate) fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    /// Paths of the disk cache's volumes, by number.
    pub(crate) fn volumes(&self) -> Vec<String> {
        let volumes = self.first.disk.iter().flat_map(|disk| &disk.volumes);
        volumes.map(|volume| volume.path.display().to_string()).collect()
    }

    /// Every certificate, as of [`Material::certificates`].
    pub(crate) fn certificates(&self) -> BTreeMap<(String, String), Option<u64>> {
        let running = self.running.lock();
        running.material.certificates(&running.config)
    }

    /// Every issued certificate: its site (empty for all), its file or host, and the seconds until
    /// expiry, negative afterwards.
    pub(crate) fn expiries(&self) -> Vec<(String, String, i64)> {
        let now = rt::now().unix_secs();
        let left = |end: u64| i64::try_from(end).unwrap_or(i64::MAX).saturating_sub_unsigned(now);
        let all = self.certificates().into_iter();
        all.filter_map(|((site, name), end)| Some((site, name, left(end?)))).collect()
    }

    /// Applies changes of programs and parameters to the configuration in force.
    pub(crate) fn refresh(&self) {
        let mut running = self.running.lock();
        let (config, tls) = (running.config.clone(), self.shared.live().connections.tls.clone());
        let material = std::mem::take(&mut running.material);
        self.replace(&mut running, config, material, tls);
    }

    /// Puts a configuration in force.
    fn replace(
        &self,
        running: &mut ActiveState,
        config: Config,
        material: Material,
        tls: Option<Arc<tls::ServerContext>>,
    ) {
        let managed = &mut running.origins;
        let origins: Vec<_> = managed.iter().map(|t| Arc::clone(&t.origin)).collect();
        let view = self.vcls.view();
        let (live, origins) =
            site_assembly::live(&config, &origins, &material, tls, &self.reserved, view);
        let mut next = Vec::with_capacity(origins.len());
        for origin in origins {
            let kept = managed.iter().position(|t| Arc::ptr_eq(&t.origin, &origin));
            next.push(match kept {
                Some(at) => managed.swap_remove(at),
                None => tend(origin, &self.shared),
            });
        }
        self.stapling.send_replace(ocsp_staples::plan(&config, &material));
        self.directories.send_replace(material.crawlers.directories(&config.limits));
        self.set_metrics_authentication(&config, &material);
        *running = ActiveState { config, material, origins: next };
        self.shared.replace(live);
        self.set_neighbours(running);
    }
}

/// The configurations shared with all nodes, if they are. Without one in force, health checks fail.
fn versions(config: &Config, shared: &SharedState) -> Option<Arc<Versions>> {
    let versions = Versions::begin(config);
    let is_unprepared = versions.as_ref().is_some_and(|own| own.in_force().is_none());
    shared.invalidator.trust.set_unprepared(is_unprepared);
    versions
}

/// The addresses of operators' listeners, which no origin may lead to.
fn reserved(
    source: &DaemonOptions,
    config: &Config,
    admin: &[SocketAddr],
) -> Arc<ReservedAddresses> {
    let cli = config.varnish_cli.iter().flat_map(|cli| cli.listen.addresses.iter().copied());
    let consoles = admin.iter().copied().chain(cli);
    Arc::new(ReservedAddresses::new(consoles, vec![source.admin_socket.clone()]))
}

/// The configured disk, and the number that hashes of its keys begin with. A disk that another
/// process still has is opened later.
fn open_disk(
    config: &Config,
    cache: &Arc<Cache>,
    of_another: Option<DiskOffer>,
) -> Result<(Option<OpenedDisk>, Option<u64>), String> {
    if let Some(disk) = of_another {
        return Ok((None, Some(disk.seed)));
    }
    let below = disk_store::open(config, cache)?;
    let seed = below.as_ref().map(OpenedDisk::seed_number);
    Ok((below, seed))
}

/// The keys of session tickets, with those of the process before.
fn ticket_keys(inherited: &[u8]) -> Result<Arc<TicketKeys>, String> {
    let keys = TicketKeys::new().map_err(|error| format!("larder: TLS: {error}"))?;
    // Keys that cannot be read cost their clients a full handshake.
    _ = keys.take(inherited, rt::now().unix_secs());
    Ok(keys)
}

/// Returns true if `[metrics]` speaks TLS.
fn is_secure(config: &Config) -> bool {
    config.metrics.as_ref().is_some_and(|metrics| metrics.listen.tls)
}

impl Daemon {
    /// The authentication of `[metrics]` clients; `None` if there was none at the start.
    pub(crate) fn metrics_authentication(
        &self,
    ) -> Option<watch::Receiver<Arc<MetricsAuthentication>>> {
        self.metrics_authentication.as_ref().map(watch::Sender::subscribe)
    }

    /// Applies the authentication of `config` to `[metrics]` clients. It stays unchanged if it is
    /// for a kind of listener other than the open one.
    fn set_metrics_authentication(&self, config: &Config, material: &Material) {
        let Some(metrics_authentication) = &self.metrics_authentication else { return };
        match material.metrics_authentication(config, is_secure(&self.first), &self.ticket_keys) {
            Ok(Some(new)) => _ = metrics_authentication.send_replace(Arc::new(new)),
            Ok(None) => {}
            Err(problem) => base::tell!(Error, "{problem}"),
        }
    }

    /// Starts to send invalidations to the configured neighbours.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(crate) fn start_neighbours(&self) -> Result<Arc<Neighbours>, String> {
        let started = Neighbours::start(&self.shared);
        let started = started.map_err(|e| format!("larder: cannot start: {e}"))?;
        let neighbours = Arc::clone(self.neighbours.get_or_init(|| started));
        self.set_neighbours(&self.running.lock());
        Ok(neighbours)
    }

    fn set_neighbours(&self, running: &ActiveState) {
        let Some(neighbours) = self.neighbours.get() else { return };
        let origins: Vec<_> = running.origins.iter().map(|t| Arc::clone(&t.origin)).collect();
        neighbours.set(&running.config, &origins);
    }
}
