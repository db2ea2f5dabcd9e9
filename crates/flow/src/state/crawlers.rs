//! Crawlers: the queue of their fetches, and what is known of clients that claim to be one.

mod fetch_budget;
mod fetch_lanes;
mod signature_quota;
mod verification;

pub(crate) use fetch_budget::{BudgetRates, OriginMoment};
pub(crate) use fetch_lanes::{FetchLanes, LaneEntry, LaneLimits, LanePermit};

use std::sync::Arc;

use agents::FetchedKeys;
use arc_swap::ArcSwap;
use base::HashSeed;

pub(crate) use self::signature_quota::SignatureQuota;
pub(crate) use self::verification::CrawlerClaim;
pub use self::verification::{ClaimedAddress, CrawlerVerification};

/// The state of all cores for crawlers.
#[derive(Debug)]
pub struct SharedCrawlers {
    /// Fetches on behalf of crawlers.
    pub(crate) lanes: Arc<FetchLanes>,
    /// Clients that are verified by DNS.
    pub verification: CrawlerVerification,
    /// The keys of agents that sign their requests, as far as they were fetched.
    pub keys: ArcSwap<FetchedKeys>,
}

impl SharedCrawlers {
    /// The state of a daemon that has served no crawler.
    pub(crate) fn new(seed: HashSeed) -> Self {
        let verification = CrawlerVerification::new(seed);
        Self { lanes: Arc::default(), verification, keys: ArcSwap::default() }
    }
}
