//! The node: the daemon's part in a cluster. It applies the invalidations of other nodes, trusts
//! stored responses for as long as the cluster permits, and keeps its position in the stream beside
//! the disk.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base::tally::Outcome;
use base::{Counter, Counters, Limit};
use cluster::{
    Bucket, Card, Cluster, Credentials, Host, Loss, Position, SavedPosition, Settings, Stance, Tls,
};
use config::{ClusterConfig, ClusterCredentials, Config, Isolation, PlacedPath};
use flow::invalidate::{InvalidationError, PeerCaches};
use flow::{Readiness, SharedState};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::secrets::Users;
use crate::sharing::Sharing;
use crate::versions::Versions;
use crate::{keeper, secrets};

/// The file with the position, beside the journal of the disk cache's first volume.
const FILE: &str = "cluster-position";
/// The file beside it that names the run that uses the volume: its number, and the boot of its
/// machine.
const RUN_FILE: &str = "cluster-run";
/// A random number that the kernel draws at each boot: it differs on a copy of a machine.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";
/// The timeout of leaving.
const LEAVE: Duration = Duration::from_secs(3);

/// A node, and its work beside requests.
pub(crate) struct Node {
    pub(crate) cluster: Arc<Cluster>,
    /// The secrets that it shares; `None` if it shares none.
    pub(crate) bucket: Option<Arc<Bucket>>,
    work: JoinHandle<()>,
}

/// The store, as the cluster uses it.
struct Store {
    shared: Arc<SharedState>,
    counters: Arc<Counters>,
    /// The file of the position; `None` without a disk.
    file: Option<PathBuf>,
    /// The node's port for its peers, and its certificate; `None` if nothing is shared.
    sharing: Option<Arc<Sharing>>,
    /// The configurations that it shares, if it does.
    versions: Option<Arc<Versions>>,
}

/// Makes the daemon a node, if it is configured as one. Call before the first request, and after
/// the disk is read. Peers are not sent invalidations yet.
///
/// # Errors
/// A file that cannot be used.
pub(crate) fn join(users: &Users, config: &Config) -> Result<Option<Node>, String> {
    let shared = &users.shared;
    let Some(wanted) = &config.cluster else { return Ok(None) };
    if !cluster::HAS_LINK {
        return Err(format!("larder: [cluster]: {}", base::DEMO_BUILD));
    }
    let volume = config.disk.iter().flat_map(|disk| &disk.volumes).next();
    let file = volume.map(|volume| volume.path.join(FILE));
    let run_file = volume.map(|volume| volume.path.join(RUN_FILE));
    let before = run_file.as_deref().and_then(run_before);
    let settings = Settings { before, ..settings(wanted, config)? };
    let now = rt::now();
    let saved = file.as_deref().and_then(|file| SavedPosition::decode(&fs::read(file).ok()?));
    if let Some(saved) = saved.filter(|saved| saved.doubted_unix_ms > 0) {
        let unix_ms = i64::try_from(saved.doubted_unix_ms).unwrap_or(i64::MAX);
        shared.invalidator.trust.set_doubted(now.mono_at(unix_ms));
    }
    shared.invalidator.trust.tell_health_checks(wanted.isolation == Isolation::NotReady);
    let counters = shared.counters.register();
    let sharing = match wanted.peer {
        Some(address) => {
            let (name, limits) = (&settings.name, &config.limits);
            Some(Arc::new(Sharing::new(name, address, wanted.shields, limits)?))
        }
        None => None,
    };
    let (shared_store, versions) = (Arc::clone(shared), users.versions.clone());
    let store = Store { shared: shared_store, counters, file, sharing: sharing.clone(), versions };
    let cluster = Cluster::new(settings, Arc::new(store), saved.map(|saved| saved.position));
    if let (Some(file), Ok(boot)) = (run_file, fs::read_to_string(BOOT)) {
        // Without the file, peers wait for this run until its trust in stored responses would end.
        _ = fs::write(file, format!("{} {boot}", cluster.run_number()));
    }
    let bucket = secrets::share(&cluster, config, users)?;
    if let Some(sharing) = sharing {
        let (shared, cluster) = (Arc::clone(shared), Arc::clone(&cluster));
        rt::spawn(async move { sharing.follow(shared, cluster).await });
    }
    let (own, counters) = (Arc::clone(&cluster), shared.counters.register());
    let work = rt::spawn(async move {
        net::run_with_restarts(move || Arc::clone(&own).run(), || counters.inc(Counter::Panics))
            .await;
    });
    Ok(Some(Node { cluster, bucket, work }))
}

/// The run that used the volume before, and has ended, since this process has the volume now. A run
/// of another boot may have been another machine's: this one may be a copy of it.
fn run_before(file: &Path) -> Option<u64> {
    let (text, boot) = (fs::read_to_string(file).ok()?, fs::read_to_string(BOOT).ok()?);
    let (run, its_boot) = text.split_once(' ')?;
    (its_boot == boot).then(|| run.parse().ok())?
}

impl Node {
    /// The other nodes, as receivers of invalidations.
    pub(crate) fn others(&self) -> Arc<dyn PeerCaches> {
        Arc::new(cluster::ClusterPeers(Arc::clone(&self.cluster)))
    }

    /// Leaves the cluster, after the last response.
    pub(crate) async fn leave(self) {
        if let Some(bucket) = &self.bucket {
            // Another node may order at once.
            _ = rt::time::timeout(LEAVE, bucket.release()).await;
        }
        self.cluster.end();
        _ = rt::time::timeout(LEAVE, self.work).await;
        self.cluster.keep_position();
    }
}

fn settings(wanted: &ClusterConfig, config: &Config) -> Result<Settings, String> {
    let text = |file: &PlacedPath| {
        let told = |why: &dyn fmt::Display| crate::config_file::render(&[file.error(why)]);
        let bytes = keeper::read(&file.path).map_err(|error| told(&error))?;
        String::from_utf8(bytes).map_err(|_| told(&"it is not text"))
    };
    let credentials = match &wanted.credentials {
        ClusterCredentials::None => Credentials::None,
        ClusterCredentials::Password(user, password) => {
            Credentials::Password(user.clone(), password.clone())
        }
        ClusterCredentials::Token(token) => Credentials::Token(token.clone()),
        ClusterCredentials::Nkey(file) => Credentials::Nkey(text(file)?.trim().to_owned()),
        ClusterCredentials::File(file) => Credentials::File(text(file)?),
    };
    let tls = Tls {
        ca: wanted.ca.clone(),
        certificate: wanted.certificate.clone(),
        is_required: wanted.ca.is_some()
            || wanted.servers.iter().any(|server| server.starts_with("tls://")),
    };
    let limits = &config.limits;
    Ok(Settings {
        servers: wanted.servers.clone(),
        name: wanted.name.clone().unwrap_or_else(own_name),
        prefix: wanted.prefix.clone().unwrap_or_else(|| "larder".to_owned()),
        credentials,
        tls,
        level: wanted.acknowledge,
        max_isolation_ms: wanted.max_isolation_ms,
        replicas: wanted.replicas,
        keep_ms: wanted.keep_ms,
        queue: usize::try_from(limits.cluster_queue).unwrap_or(usize::MAX),
        wait_ms: limits.cluster_wait,
        before: None,
    })
}

/// The host's name, in the form of a subject's token.
fn own_name() -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let name: String = host.chars().map(plain).take(64).collect();
    if name.is_empty() { "node".to_owned() } else { name }
}

impl Host for Store {
    fn apply(&self, invalidation: &[u8]) -> Result<(), String> {
        match self.shared.invalidator.apply_told(invalidation, rt::now()) {
            // Nothing is stored of a site that is not configured here.
            Ok(_) | Err(InvalidationError::NoSite(_)) => Ok(()),
            Err(why) => Err(why.to_string()),
        }
    }

    fn doubt(&self, _loss: Loss) {
        self.shared.invalidator.doubt(rt::now());
    }

    fn trust_until(&self, mono_ms: u64) {
        self.shared.invalidator.trust.set_until(mono_ms);
    }

    fn settle(&self) -> Result<(), String> {
        self.shared.invalidator.settle()
    }

    fn save(&self, position: Position) -> Result<(), String> {
        let Some(file) = &self.file else { return Ok(()) };
        self.shared.invalidator.settle()?;
        let doubted = self.shared.invalidator.trust.doubted_ms();
        let doubted_unix_ms = doubted.map_or(0, |ms| rt::now().unix_at(ms));
        let doubted_unix_ms = u64::try_from(doubted_unix_ms).unwrap_or(0);
        let bytes = SavedPosition { position, doubted_unix_ms }.encode();
        write_durably(file, &bytes).map_err(|error| format!("{}: {error}", file.display()))
    }

    fn stand(&self, stance: Stance) {
        self.shared.invalidator.trust.want(match stance {
            Stance::Member => Readiness::Ready,
            Stance::Draining => Readiness::Draining,
            Stance::Left => Readiness::Left,
        });
        self.say(match stance {
            Stance::Member => "it is a member",
            Stance::Draining => "it drains: health checks fail, and what comes is served",
            Stance::Left => "it has left: what is stored is validated before it is used",
        });
    }

    fn figures(&self, card: &mut Card) {
        let store = self.shared.cache.stats();
        card.version = env!("CARGO_PKG_VERSION").to_owned();
        (card.objects, card.bytes) = (store.objects, store.bytes);
        let sum = |such: fn(Outcome) -> bool| {
            let outcomes = Outcome::ALL.into_iter().filter(|outcome| such(*outcome));
            outcomes.map(|outcome| outcome.counted(|one| self.shared.counters.sum(one))).sum()
        };
        (card.hits, card.judged) = (sum(Outcome::is_hit), sum(Outcome::is_judged));
        card.requests = self.shared.counters.sum(Counter::Requests);
        self.sharing.iter().for_each(|sharing| sharing.show(card));
        self.versions.iter().for_each(|versions| versions.show(card));
    }

    fn overflowed(&self) {
        self.counters.limit(Limit::ClusterQueue);
    }

    fn waited_in_vain(&self) {
        self.counters.limit(Limit::ClusterWait);
    }

    fn say(&self, text: &str) {
        base::tell!(Warn, "larder: cluster: {text}");
    }
}

/// Replaces the content of `file` atomically and durably.
fn write_durably(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = file.with_extension("new");
    let mut written = File::create(&new)?;
    written.write_all(bytes)?;
    written.sync_all()?;
    fs::rename(&new, file)?;
    let folder = file.parent().unwrap_or_else(|| Path::new("/"));
    File::open(folder)?.sync_all()
}

/// The cluster as JSON, with the shared secrets; without a cluster, an empty name and no members.
pub(crate) fn json(cluster: Option<&Cluster>, bucket: Option<&Bucket>) -> Value {
    let shared = bucket.map(|bucket| serde_json::to_value(bucket.status()).unwrap_or_default());
    let shared = shared.unwrap_or_default();
    match cluster {
        Some(cluster) => {
            let mut all = serde_json::to_value(cluster.status()).unwrap_or_default();
            all["shared"] = shared;
            all
        }
        None => json!({
            "shared": shared, "name": "", "connected": false, "stance": "member", "is_shown": false,
            "trusted": true, "trusted_ms": 0, "problem": null,
            "sequence": 0, "last": 0, "queued": 0, "counts": {}, "members": [],
        }),
    }
}
