//! Shared state of all cores: the cache, the configuration in force, and each feature's shared
//! part.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use base::{HashSeed, Limit, counters::Registry, tally::Tallies};
use origin::SharedPool;

use crate::allowance::FormWork;
use crate::challenge::Challenges;
use crate::failing_keys::FailingKeys;
use crate::state::configuration_holder::ConfigurationHolder;
use crate::state::crawlers::SharedCrawlers;
use crate::state::dictionary::Dictionaries;
use crate::state::early_removal::EarlyRemoval;
use crate::state::finding_notices::FindingNotices;
use crate::state::gate::VerifiedPasswords;
use crate::state::invalidate::{Invalidator, InvalidatorParts};
use crate::state::live_configuration::LiveConfiguration;
use crate::state::peers::Peers;
use crate::state::siblings::Siblings;
use crate::state::slices::SliceMemory;
use crate::state::tier::{self, Cache};
use crate::state::vcl::SharedVcl;
use crate::state::warmth::SharedWarmth;

/// The state that all cores share.
pub struct SharedState {
    /// The store.
    pub cache: Arc<Cache>,
    /// The configuration in force, and the fields that log readers request.
    pub in_force: Arc<ConfigurationHolder>,
    /// The secret seed of key hashes.
    pub seed: HashSeed,
    /// The pending challenge of a certificate authority.
    pub challenges: Challenges,
    /// The counters of all cores.
    pub counters: Registry,
    /// The state that all programs share.
    pub vcl: SharedVcl,
    /// The counts of all cores by site and duration.
    pub tallies: Tallies,
    /// The nodes that share their stores, if there are any.
    pub peers: ArcSwapOption<Peers>,
    /// The siblings, if there are any.
    pub siblings: ArcSwapOption<Siblings>,
    /// The entry point of invalidations to the store.
    pub invalidator: Arc<Invalidator>,
    /// The origin connections that cores share.
    pub shared_pool: Arc<SharedPool>,
    /// The making of further forms of bodies and files.
    pub(crate) forms: FormWork,
    /// Stored responses that serve as dictionaries.
    pub(crate) dictionaries: Dictionaries,
    /// The shared state of sliced responses.
    pub(crate) slices: Arc<SliceMemory>,
    /// Keys whose last fetch failed.
    pub(crate) failing: FailingKeys,
    /// Passwords that were verified.
    pub(crate) verified_passwords: Arc<VerifiedPasswords>,
    /// The early removal of useless responses.
    pub(crate) early_removal: EarlyRemoval,
    /// The state for crawlers.
    pub crawlers: Arc<SharedCrawlers>,
    /// The state for warming.
    pub warmth: Arc<SharedWarmth>,
    /// New findings of `verify`.
    pub notices: FindingNotices,
}

impl SharedState {
    /// The state over `live`, with a given seed: that of a disk, or a constant one for repeatable
    /// benchmarks.
    pub fn with_seed(cache: Arc<Cache>, live: LiveConfiguration, seed: HashSeed) -> Arc<Self> {
        Self::over(cache, live, seed, SharedPool::default())
    }

    /// The state like [`SharedState::with_seed`], with the shared connections `shared_pool`.
    pub fn over(
        cache: Arc<Cache>,
        live: LiveConfiguration,
        seed: HashSeed,
        shared_pool: SharedPool,
    ) -> Arc<Self> {
        let vcl = SharedVcl::default();
        vcl.memory.set_limits(&live.limits);
        live.sites.carry_over(None, cache.memory());
        let (trust, counters) = (Arc::clone(&live.trust), Registry::default());
        let in_force = Arc::new(ConfigurationHolder::new(live));
        let warmth = Arc::new(SharedWarmth::new(counters.register(), cache.memory()));
        Arc::new(Self {
            slices: Arc::new(SliceMemory::new(&cache, seed)),
            invalidator: Invalidator::new(
                InvalidatorParts { cache: &cache, in_force: &in_force, warmth: &warmth },
                seed,
                &trust,
                counters.register(),
            ),
            warmth,
            cache,
            in_force,
            seed,
            challenges: Challenges::default(),
            counters,
            vcl,
            tallies: Tallies::default(),
            peers: ArcSwapOption::empty(),
            siblings: ArcSwapOption::empty(),
            shared_pool: Arc::new(shared_pool),
            forms: FormWork::default(),
            dictionaries: Dictionaries::default(),
            failing: FailingKeys::default(),
            verified_passwords: Arc::default(),
            early_removal: EarlyRemoval::default(),
            crawlers: Arc::new(SharedCrawlers::new(seed)),
            notices: FindingNotices::default(),
        })
    }

    /// Puts `live` in force for all requests from now on.
    pub fn replace(&self, live: LiveConfiguration) {
        live.sites.carry_over(Some(&self.live().sites), self.cache.memory());
        self.cache.lower().set_limits(&live.limits);
        self.vcl.memory.set_limits(&live.limits);
        self.warmth.keep_to(&live);
        self.in_force.replace(live);
    }

    /// Returns the number of times that `limit` was reached, in the store or elsewhere.
    pub fn limit_hits(&self, limit: Limit) -> u64 {
        self.counters.limit_sum(limit) + tier::limit_hits(&self.cache, limit)
    }

    /// The configuration in force.
    pub fn live(&self) -> Arc<LiveConfiguration> {
        self.in_force.live()
    }
}
