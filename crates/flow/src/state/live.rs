//! State that all cores share: the cache, and the configuration in force, which is swapped as a
//! whole.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::{ArcSwap, ArcSwapOption};
use base::{HashSeed, Limit, Limits, Memory, counters::Registry, tally::Tallies};
use files::{Root, accel::Accel};
use h1::HeadLimits;
use message::pseudonym::Pseudonym;
use observe::{Want, Wanted};
use origin::{Depot, Journal, Origin};
use parking_lot::Mutex;
use policy::{Includes, Policy, Purge, acl::CidrSet, hosts::HostTable};
use tls::ClientAuth;
use vcl::backend::Backend;
use vcl::params::Params;
use vcl::program::Instance;

use crate::allowance::{Allowance, FileHits};
use crate::challenge::Challenges;
use crate::problem::ErrorPage;
use crate::state::client::CertificateFields;
use crate::state::dictionary::Dictionaries;
use crate::state::gate::Gates;
use crate::state::invalidate::Door;
use crate::state::peers::Peers;
use crate::state::siblings::Siblings;
use crate::state::slices::SliceMemory;
use crate::state::tier::{Cache, Chores};
use crate::state::vcl::link::Connected;
use crate::throttle::Throttles;
use crate::tracing::Tracing;
use crate::trust::Trust;
use codec::{Compress, Compression};

/// One site: a policy and the origins it may choose from.
pub struct Site {
    /// Its first host, for logs and counters.
    pub name: Arc<str>,
    /// Its index in [`Live::listed`].
    pub number: u32,
    /// The VCL that decides in the place of everything below; `None` where its policy does.
    pub vcl: Option<Arc<Instance>>,
    /// Its policy.
    pub policy: Arc<dyn Policy>,
    /// Its origins; [`policy::Notes::origin`] is an index into this list. Empty when policy answers
    /// everything itself.
    pub origins: Vec<Arc<Origin>>,
    /// The roots that it serves files of; [`policy::ReceiveVerdict::Files`] is an index into this.
    pub files: Vec<Arc<Root>>,
    /// In the order of `origins`: the files beside an origin's scripts.
    pub beside_scripts: Vec<Option<Arc<Root>>>,
    /// In the order of `origins`: the pages that plugins write below an origin's root.
    pub page_caches: Vec<Option<Arc<Root>>>,
    /// In the order of `origins`: what an origin's X-Accel-* fields and X-Sendfile may do.
    pub accel: Vec<Option<Accel>>,
    /// The check of TLS clients; `None` lets everyone in.
    pub client_auth: Option<ClientAuth>,
    /// In which fields origins are told of its clients' certificates.
    pub certificate_fields: CertificateFields,
    /// The clients that may purge the site, and their dialects; `None` when no client may.
    pub purge: Option<Purge>,
    /// HTCP's datagrams purge the site, too.
    pub by_htcp: bool,
    /// Responses say Server-Timing, where [`Announce::server_timing`] says so.
    pub server_timing: bool,
    /// Clients see the fields with surrogate keys.
    pub shows_tags: bool,
    /// Clients see Surrogate-Control.
    pub shows_surrogate_control: bool,
    /// Its own pages for errors that are made here.
    pub error_pages: Vec<ErrorPage>,
    /// Its pages that are put together of others.
    pub includes: Includes,
    /// The bodies that are coded here, where its policy decides.
    pub compress: Compress,
    /// Its limits on how often, and how much at once, clients may ask.
    pub throttles: Option<Arc<Throttles>>,
    /// Its gates, if not everybody may enter.
    pub gates: Option<Arc<Gates>>,
    /// Its Strict-Transport-Security, as an index into [`Live::hsts`].
    pub hsts: Option<u16>,
}

/// Facts about the cache that a response announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Announce {
    /// Send `Cache-Status` (RFC 9211).
    pub cache_status: bool,
    /// Also name the rule that decided, in its `detail`.
    pub detail: bool,
    /// Send `X-Cache: HIT|MISS|...`.
    pub x_cache: bool,
    /// Some site's responses say `Server-Timing`.
    pub server_timing: bool,
}

/// A listener as programs see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Endpoint {
    /// `local.socket`: its name.
    pub socket: Arc<str>,
    /// `local.endpoint`: its address as configured.
    pub endpoint: Arc<str>,
}

/// The configuration in force. Requests under way keep the one they began with.
pub struct Live {
    /// Sites by host.
    pub sites: HostTable<Arc<Site>>,
    /// All of them, in the order of the configuration.
    pub listed: Vec<Arc<Site>>,
    /// The server that TLS listeners shake hands with; `None` without certificates.
    pub tls: Option<Arc<tls::Server>>,
    /// The proxies in front that are believed, and let through to listeners with `proxy`.
    pub trusted: CidrSet,
    /// The different values of Strict-Transport-Security (RFC 6797) that sites send over HTTPS.
    pub hsts: Vec<String>,
    /// Limits.
    pub limits: Limits,
    /// The limits on heads, as the engine wants them.
    pub head_limits: HeadLimits,
    /// The path that is answered 200 where Host names no site.
    pub health_check: Option<Box<[u8]>>,
    /// Facts about the cache that responses announce.
    pub announce: Announce,
    /// Compression, for sites that have no program.
    pub compression: Compression,
    /// The rule by which traces are continued and begun; `None` where trace context is passed on as
    /// it is.
    pub tracing: Option<Arc<Tracing>>,
    /// This proxy's name in `Via` and `Cache-Status`.
    pub pseudonym: Pseudonym,
    /// Varnish's parameters, for sites that have a VCL.
    pub params: Arc<Params>,
    /// Clients may begin with HTTP/2 without TLS, or may not, where a parameter says so; `None`
    /// where each listener says so for itself.
    pub h2c: Option<bool>,
    /// The VCLs that `return (vcl(label))` goes on in, by label.
    pub labels: HashMap<Box<str>, Arc<Instance>>,
    /// `server.identity`
    pub identity: Arc<str>,
    /// `server.hostname`
    pub hostname: Arc<str>,
    /// The listeners, by number.
    pub endpoints: Arc<[Endpoint]>,
    /// Names of storages, `Transient` among them. One memory is behind all of them.
    pub storages: Arc<[Arc<str>]>,
    /// Those of them that are disks.
    pub disk_storages: Arc<[Arc<str>]>,
    /// Trust in what is stored: the store's, whatever stands here at first.
    pub trust: Arc<Trust>,
}

/// The configuration a request began with, shared cheaply within its core.
pub type LiveRef = Rc<Arc<Live>>;

impl Live {
    /// An origin of a site, or a backend of a program, that `is_it`.
    pub(crate) fn find_origin(&self, is_it: impl Fn(&Origin) -> bool) -> Option<Arc<Origin>> {
        let of_sites = self.listed.iter().flat_map(|site| &site.origins);
        if let Some(origin) = of_sites.into_iter().find(|origin| is_it(origin)) {
            return Some(Arc::clone(origin));
        }
        let programs = self.listed.iter().filter_map(|site| site.vcl.as_ref());
        let backends = programs.chain(self.labels.values()).flat_map(|program| program.backends());
        let mut origins = backends.filter_map(|backend| match backend {
            Backend::Leaf(leaf) => Some(Arc::clone(&Connected::of(&leaf)?.origin)),
            _ => None,
        });
        origins.find(|origin| is_it(origin))
    }
}

/// Everything the cores share.
pub struct Shared {
    /// The store.
    pub cache: Arc<Cache>,
    pub(crate) live: ArcSwap<Live>,
    /// Grows with every change of `live`; cores look at this instead of `live` itself.
    pub(crate) version: AtomicU64,
    /// The secret of the keys' hashes.
    pub seed: HashSeed,
    /// The answer to a challenge of a certificate authority, while one is pending.
    pub challenges: Challenges,
    /// Counters of all cores.
    pub counters: Registry,
    /// State that all programs share.
    pub vcl: crate::state::vcl::Common,
    /// Counts of all cores by site and by duration.
    pub tallies: Tallies,
    pub(crate) journal: Option<Arc<dyn Journal>>,
    /// Trust in what is stored.
    pub trust: Arc<Trust>,
    /// The nodes of a cluster that share what they store, if they do.
    pub peers: ArcSwapOption<Peers>,
    /// Caches that are asked whether they have something, if there are any.
    pub siblings: ArcSwapOption<Siblings>,
    /// The way of invalidations to the store.
    pub(crate) door: Door,
    /// Idle connections to origins, of all cores.
    pub(crate) depot: Arc<Depot>,
    /// The header fields that readers of the log ask for.
    wanted: Mutex<Option<Arc<Wanted>>>,
    /// Held by the sweep of the store that is under way.
    pub(crate) sweeping: Arc<tokio::sync::Mutex<()>>,
    /// Held by the look at all that is stored that is under way.
    pub(crate) listing: Arc<tokio::sync::Mutex<()>>,
    /// Time for further forms of stored bodies.
    pub(crate) allowance: Allowance,
    /// Counts of files that may be worth a form.
    pub(crate) asked: FileHits,
    /// Stored responses that serve as dictionaries.
    pub(crate) dictionaries: Dictionaries,
    /// The memory of responses in slices.
    pub(crate) slices: SliceMemory,
    /// Keys whose last fetch failed.
    pub(crate) failing: crate::failing::Failing,
    /// Passwords that were right.
    pub(crate) right: crate::state::gate::RightPasswords,
    /// Looks for what is of no more use.
    pub(crate) rounds: Arc<tokio::sync::Mutex<crate::state::over::Rounds>>,
    /// Chores for the disk, behind requests.
    pub(crate) chores: Arc<tokio::sync::Mutex<Chores>>,
}

impl Shared {
    /// Starts with `live` and an empty store.
    pub fn new(cache: Arc<Cache>, live: Live) -> Arc<Self> {
        Self::with_seed(cache, live, HashSeed::random())
    }

    /// As [`Shared::with_seed`]; what origin servers say besides responses goes to `journal`.
    pub fn with_journal(
        cache: Arc<Cache>,
        live: Live,
        seed: HashSeed,
        journal: Arc<dyn Journal>,
    ) -> Arc<Self> {
        Arc::new(Self::assemble(cache, live, seed, Some(journal)))
    }

    /// As [`Shared::new`], but with a seed somebody knows: a disk's, or one of benches, which must
    /// repeat.
    pub fn with_seed(cache: Arc<Cache>, live: Live, seed: HashSeed) -> Arc<Self> {
        Arc::new(Self::assemble(cache, live, seed, None))
    }

    fn assemble(
        cache: Arc<Cache>,
        live: Live,
        seed: HashSeed,
        journal: Option<Arc<dyn Journal>>,
    ) -> Self {
        let vcl = crate::state::vcl::Common::default();
        vcl.memory.set_limits(&live.limits);
        go_on(&live, None, cache.memory());
        Self {
            trust: Arc::clone(&live.trust),
            cache,
            live: ArcSwap::from_pointee(live),
            version: AtomicU64::new(0),
            seed,
            challenges: Challenges::default(),
            counters: Registry::default(),
            vcl,
            tallies: Tallies::default(),
            journal,
            peers: ArcSwapOption::empty(),
            siblings: ArcSwapOption::empty(),
            door: Door::default(),
            depot: Arc::default(),
            wanted: Mutex::default(),
            sweeping: Arc::default(),
            listing: Arc::default(),
            allowance: Allowance::default(),
            asked: FileHits::default(),
            dictionaries: Dictionaries::default(),
            slices: SliceMemory::default(),
            failing: crate::failing::Failing::default(),
            right: crate::state::gate::RightPasswords::default(),
            rounds: Arc::default(),
            chores: Arc::default(),
        }
    }

    /// Puts `live` in force for every request that begins from now on.
    pub fn replace(&self, mut live: Live) {
        live.trust = Arc::clone(&self.trust);
        go_on(&live, Some(&self.live.load()), self.cache.memory());
        self.cache.lower().set_limits(&live.limits);
        self.vcl.memory.set_limits(&live.limits);
        self.live.store(Arc::new(live));
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Has the cores keep with records what a reader wants, from `now_ms` until `until_ms`; false
    /// when as many as may ask already.
    pub fn want(&self, want: Want, now_ms: u64, until_ms: u64) -> bool {
        let most = self.live().limits.log_readers as usize;
        let mut wanted = self.wanted.lock();
        let before = wanted.as_deref().cloned().unwrap_or_default();
        let Some(next) = before.with(want, now_ms, until_ms, most) else { return false };
        *wanted = Some(Arc::new(next));
        drop(wanted);
        self.version.fetch_add(1, Ordering::Release);
        true
    }

    /// Has the cores keep with records what a log asks for as long as the daemon runs.
    pub fn want_always(&self, want: Want) {
        let mut wanted = self.wanted.lock();
        let before = wanted.as_deref().cloned().unwrap_or_default();
        *wanted = Some(Arc::new(before.with_lasting(want)));
        drop(wanted);
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Returns the header fields that readers of the log ask for.
    pub(crate) fn wanted(&self) -> Option<Arc<Wanted>> {
        self.wanted.lock().clone()
    }

    /// Where it goes what origin servers say besides responses.
    pub fn journal(&self) -> Option<&Arc<dyn Journal>> {
        self.journal.as_ref()
    }

    /// Returns the number of times that `limit` was reached, in the store or elsewhere.
    pub fn limit_hits(&self, limit: Limit) -> u64 {
        let store = || self.cache.stats();
        let below = || self.cache.lower().disk().map(|disk| disk.stats()).unwrap_or_default();
        let in_store = match limit {
            Limit::ObjectBytes => store().too_large,
            Limit::Variants => store().variants_over,
            Limit::Bans => store().bans_over,
            Limit::DiskReadTimeout => below().reads_late,
            Limit::DiskQueueBytes => below().refused_queue,
            Limit::DiskRetry => below().outs + below().pauses,
            Limit::DiskIndexBytes => {
                let below = below();
                self.cache.index().refused() + below.refused_index + below.dropped_index
            }
            Limit::DiskReadShare => below().refused_hold,
            _ => 0,
        };
        self.counters.limit_sum(limit) + in_store
    }

    /// The configuration in force.
    pub fn live(&self) -> Arc<Live> {
        self.live.load_full()
    }
}

/// Has the limits of `live` go on from those `before`.
fn go_on(live: &Live, before: Option<&Live>, memory: &Arc<Memory>) {
    for (at, site) in live.listed.iter().enumerate() {
        let Some(throttles) = &site.throttles else { continue };
        let earlier = before.into_iter().flat_map(|live| &live.listed);
        let same = live.listed[..at].iter().chain(earlier).filter(|other| other.name == site.name);
        throttles.take_over(same.filter_map(|other| other.throttles.as_deref()), memory);
    }
}
