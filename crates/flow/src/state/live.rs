//! State that all cores share: the cache, and the configuration in force, which is swapped as a
//! whole.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::{ArcSwap, ArcSwapOption};
use base::{HashSeed, Limit, Limits, Memory, counters::Registry, tally::Tallies};
use observe::{Want, Wanted};
use origin::{Depot, Journal, Origin};
use parking_lot::Mutex;
use vcl::backend::Backend;
use vcl::params::Params;

use crate::allowance::{Allowance, FileHits};
use crate::challenge::Challenges;
use crate::state::announce::Announce;
use crate::state::connections::ConnectionRules;
use crate::state::dictionary::Dictionaries;
use crate::state::invalidate::Door;
use crate::state::peers::Peers;
use crate::state::siblings::Siblings;
use crate::state::site::SiteTable;
use crate::state::slices::SliceMemory;
use crate::state::tier::{Cache, Chores};
use crate::state::vcl::VclSettings;
use crate::state::vcl::link::Connected;
use crate::tracing::Tracing;
use crate::trust::Trust;
use codec::Compression;

/// The configuration in force. Requests under way keep the one they began with.
pub struct Live {
    /// The sites.
    pub sites: SiteTable,
    /// Limits.
    pub limits: Limits,
    /// The rules for clients' connections.
    pub connections: ConnectionRules,
    /// The path that is answered 200 where Host names no site.
    pub health_check: Option<Box<[u8]>>,
    /// The proxy, as messages tell of it.
    pub announce: Announce,
    /// Compression, for sites that have no program.
    pub compression: Compression,
    /// The rule by which traces are continued and begun; `None` where trace context is passed on as
    /// it is.
    pub tracing: Option<Arc<Tracing>>,
    /// The settings that programs see.
    pub vcl: VclSettings,
    /// Trust in what is stored: the store's, whatever stands here at first.
    pub trust: Arc<Trust>,
}

/// The configuration a request began with, shared cheaply within its core.
pub type LiveRef = Rc<Arc<Live>>;

impl Live {
    /// A configuration of these sites, which says nothing else.
    pub fn new(sites: SiteTable, limits: Limits) -> Self {
        Self {
            sites,
            connections: ConnectionRules::new(&limits),
            limits,
            health_check: None,
            announce: Announce::new("larder"),
            compression: Compression::default(),
            tracing: None,
            vcl: VclSettings::new(&Params::default()),
            trust: Arc::default(),
        }
    }

    /// An origin of a site, or a backend of a program, that `is_it`.
    pub(crate) fn find_origin(&self, is_it: impl Fn(&Origin) -> bool) -> Option<Arc<Origin>> {
        let of_sites = self.sites.listed.iter().flat_map(|site| &site.origins);
        if let Some(own) = of_sites.into_iter().find(|own| is_it(&own.origin)) {
            return Some(Arc::clone(&own.origin));
        }
        let programs = self.sites.listed.iter().filter_map(|site| site.vcl.as_ref());
        let backends =
            programs.chain(self.vcl.labels.values()).flat_map(|program| program.backends());
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
    for (at, site) in live.sites.listed.iter().enumerate() {
        let Some(throttles) = &site.throttles else { continue };
        let earlier = before.into_iter().flat_map(|live| &live.sites.listed);
        let same =
            live.sites.listed[..at].iter().chain(earlier).filter(|other| other.name == site.name);
        throttles.take_over(same.filter_map(|other| other.throttles.as_deref()), memory);
    }
}
