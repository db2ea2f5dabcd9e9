//! Everything the cores share: the cache, the configuration in force, and what each feature keeps
//! for all cores.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use base::{HashSeed, Limit, counters::Registry, tally::Tallies};
use origin::SharedPool;

use crate::allowance::FormWork;
use crate::challenge::Challenges;
use crate::failing_keys::FailingKeys;
use crate::state::configuration_holder::ConfigurationHolder;
use crate::state::dictionary::Dictionaries;
use crate::state::early_removal::EarlyRemoval;
use crate::state::gate::VerifiedPasswords;
use crate::state::invalidate::Invalidator;
use crate::state::live_configuration::LiveConfiguration;
use crate::state::peers::Peers;
use crate::state::siblings::Siblings;
use crate::state::slices::SliceMemory;
use crate::state::tier::{self, Cache};
use crate::state::vcl::SharedVcl;

/// Everything the cores share.
pub struct SharedState {
    /// The store.
    pub cache: Arc<Cache>,
    /// The configuration in force, and what readers of the log want.
    pub in_force: Arc<ConfigurationHolder>,
    /// The secret of the keys' hashes.
    pub seed: HashSeed,
    /// The answer to a challenge of a certificate authority, while one is pending.
    pub challenges: Challenges,
    /// Counters of all cores.
    pub counters: Registry,
    /// State that all programs share.
    pub vcl: SharedVcl,
    /// Counts of all cores by site and by duration.
    pub tallies: Tallies,
    /// The nodes of a cluster that share what they store, if they do.
    pub peers: ArcSwapOption<Peers>,
    /// Caches that are asked whether they have something, if there are any.
    pub siblings: ArcSwapOption<Siblings>,
    /// The way of invalidations to the store.
    pub door: Arc<Invalidator>,
    /// Connections to origins, as far as cores share them.
    pub depot: Arc<SharedPool>,
    /// Further forms of stored bodies and files.
    pub(crate) forms: FormWork,
    /// Stored responses that serve as dictionaries.
    pub(crate) dictionaries: Dictionaries,
    /// The memory of responses in slices.
    pub(crate) slices: Arc<SliceMemory>,
    /// Keys whose last fetch failed.
    pub(crate) failing: FailingKeys,
    /// Passwords that were right.
    pub(crate) right: Arc<VerifiedPasswords>,
    /// Looks for what is of no more use.
    pub(crate) early_removal: EarlyRemoval,
}

impl SharedState {
    /// Starts with `live`, and with a seed that somebody knows: a disk's, or one of benches, which
    /// must repeat.
    pub fn with_seed(cache: Arc<Cache>, live: LiveConfiguration, seed: HashSeed) -> Arc<Self> {
        Self::over(cache, live, seed, SharedPool::default())
    }

    /// As [`Shared::with_seed`], with connections to origins of `depot`.
    pub fn over(
        cache: Arc<Cache>,
        live: LiveConfiguration,
        seed: HashSeed,
        depot: SharedPool,
    ) -> Arc<Self> {
        let vcl = SharedVcl::default();
        vcl.memory.set_limits(&live.limits);
        live.sites.carry_over_limits(None, cache.memory());
        let (trust, counters) = (Arc::clone(&live.trust), Registry::default());
        let in_force = Arc::new(ConfigurationHolder::new(live));
        Arc::new(Self {
            slices: Arc::new(SliceMemory::new(&cache, seed)),
            door: Invalidator::new(&cache, seed, &in_force, &trust, counters.register()),
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
            failing: FailingKeys::default(),
            right: Arc::default(),
            early_removal: EarlyRemoval::default(),
        })
    }

    /// Puts `live` in force for every request that begins from now on.
    pub fn replace(&self, live: LiveConfiguration) {
        live.sites.carry_over_limits(Some(&self.live().sites), self.cache.memory());
        self.cache.lower().set_limits(&live.limits);
        self.vcl.memory.set_limits(&live.limits);
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
