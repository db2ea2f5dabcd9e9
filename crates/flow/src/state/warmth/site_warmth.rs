//! Site warmth: a site's settings for warming, `[site.warm]`.

use std::num::NonZeroU32;
use std::path::PathBuf;

use message::freshness::Freshness;

/// The part of a lifetime, counted from its end, in which popular responses are renewed: its last
/// fifth.
const WINDOW: u64 = 5;

/// A site's settings for warming.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SiteWarmth {
    /// Pages that a purge removes come back by themselves, the hottest first, as after a restart.
    pub rewarm: bool,
    /// Requests beyond which a stored response is renewed before its end; `None` if it is renewed
    /// once it is stale.
    pub refresh_ahead: Option<NonZeroU32>,
    /// URLs of its sitemaps.
    pub sitemaps: Vec<String>,
    /// The file with a URL in each line.
    pub list: Option<PathBuf>,
}

impl SiteWarmth {
    /// Returns true if a fresh response with this key and so many hits is to be renewed now. The
    /// first half of the window is spread over the keys, so that what was stored together is not
    /// renewed together.
    pub(crate) fn is_due(&self, key_hash: u64, hits: u32, times: &Freshness, now_ms: u64) -> bool {
        let Some(least) = self.refresh_ahead else { return false };
        let now_ms = i64::try_from(now_ms).unwrap_or(i64::MAX);
        let age_ms = u64::try_from(now_ms.saturating_sub(times.born_ms)).unwrap_or(0);
        let window_ms = times.lifetime_ms / WINDOW;
        let spread_ms = window_ms / 2 * (key_hash >> 56) / 256;
        let left_ms = times.lifetime_ms.saturating_sub(age_ms);
        hits > least.get() && left_ms <= window_ms - spread_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(key_hash: u64, hits: u32, now_ms: u64) -> bool {
        let site = SiteWarmth { refresh_ahead: NonZeroU32::new(3), ..SiteWarmth::default() };
        site.is_due(key_hash, hits, &TIMES, now_ms)
    }

    const TIMES: Freshness = Freshness {
        born_ms: 1_000,
        lifetime_ms: 100_000,
        grace_ms: 0,
        stale_if_error_ms: 0,
        stale_if_unreachable_ms: 0,
        must_validate: false,
    };

    #[test]
    fn what_is_popular_is_due_in_its_last_fifth_spread_over_the_keys() {
        assert!(due(0, 4, 81_000) && !due(0, 4, 80_999));
        assert!(!due(0, 3, 81_000), "it is not popular");
        let last = u64::MAX;
        assert!(!due(last, 4, 90_000) && due(last, 4, 91_000));
        assert!(!SiteWarmth::default().is_due(0, 99, &TIMES, 100_000));
    }
}
