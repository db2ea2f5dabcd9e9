//! Everything the cores share: the cache, the configuration in force, and what each feature keeps
//! for all cores.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use base::{HashSeed, Limit, counters::Registry, tally::Tallies};
use observe::Want;
use origin::{Depot, Journal};

use crate::allowance::FormWork;
use crate::challenge::Challenges;
use crate::state::dictionary::Dictionaries;
use crate::state::gate::RightPasswords;
use crate::state::in_force::InForce;
use crate::state::invalidate::Door;
use crate::state::live::Live;
use crate::state::peers::Peers;
use crate::state::siblings::Siblings;
use crate::state::slices::SliceMemory;
use crate::state::tier::Cache;

/// Everything the cores share.
pub struct Shared {
    /// The store.
    pub cache: Arc<Cache>,
    pub(crate) in_force: Arc<InForce>,
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
    /// The nodes of a cluster that share what they store, if they do.
    pub peers: ArcSwapOption<Peers>,
    /// Caches that are asked whether they have something, if there are any.
    pub siblings: ArcSwapOption<Siblings>,
    /// The way of invalidations to the store.
    pub door: Arc<Door>,
    /// Connections to origins, as far as cores share them.
    pub depot: Arc<Depot>,
    /// Further forms of stored bodies and files.
    pub(crate) forms: FormWork,
    /// Stored responses that serve as dictionaries.
    pub(crate) dictionaries: Dictionaries,
    /// The memory of responses in slices.
    pub(crate) slices: Arc<SliceMemory>,
    /// Keys whose last fetch failed.
    pub(crate) failing: crate::failing::Failing,
    /// Passwords that were right.
    pub(crate) right: Arc<RightPasswords>,
    /// Looks for what is of no more use.
    pub(crate) rounds: Arc<tokio::sync::Mutex<crate::state::over::Rounds>>,
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
        Arc::new(Self::assemble(cache, live, seed, Depot::with_journal(journal)))
    }

    /// As [`Shared::new`], but with a seed somebody knows: a disk's, or one of benches, which must
    /// repeat.
    pub fn with_seed(cache: Arc<Cache>, live: Live, seed: HashSeed) -> Arc<Self> {
        Arc::new(Self::assemble(cache, live, seed, Depot::default()))
    }

    fn assemble(cache: Arc<Cache>, live: Live, seed: HashSeed, depot: Depot) -> Self {
        let vcl = crate::state::vcl::Common::default();
        vcl.memory.set_limits(&live.limits);
        live.go_on(None, cache.memory());
        let (trust, counters) = (Arc::clone(&live.trust), Registry::default());
        let in_force = Arc::new(InForce::new(live));
        Self {
            slices: Arc::new(SliceMemory::new(&cache, seed)),
            door: Door::new(&cache, seed, &in_force, &trust, counters.register()),
            cache,
            in_force,
            seed,
            challenges: Challenges::default(),
            counters,
            vcl,
            tallies: Tallies::default(),
            peers: ArcSwapOption::empty(),
            siblings: ArcSwapOption::empty(),
            depot: Arc::new(depot),
            forms: FormWork::default(),
            dictionaries: Dictionaries::default(),
            failing: crate::failing::Failing::default(),
            right: Arc::default(),
            rounds: Arc::default(),
        }
    }

    /// Puts `live` in force for every request that begins from now on.
    pub fn replace(&self, mut live: Live) {
        live.trust = Arc::clone(&self.door.trust);
        live.go_on(Some(&self.in_force.live()), self.cache.memory());
        self.cache.lower().set_limits(&live.limits);
        self.vcl.memory.set_limits(&live.limits);
        self.in_force.replace(live);
    }

    /// Has the cores keep with records what a reader wants, from `now_ms` until `until_ms`; false
    /// when as many as may ask already.
    pub fn want(&self, want: Want, now_ms: u64, until_ms: u64) -> bool {
        self.in_force.want(want, now_ms, until_ms)
    }

    /// Has the cores keep with records what a log asks for as long as the daemon runs.
    pub fn want_always(&self, want: Want) {
        self.in_force.want_always(want);
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
        self.in_force.live()
    }
}
