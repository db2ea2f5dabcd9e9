//! Hot list: the URLs that a site's visitors ask for most, with a score that decays.

use std::collections::HashMap;
use std::sync::Arc;

use super::warm_url::WarmUrl;

/// The time in which a score halves, in milliseconds: half a day. What was hot yesterday at this
/// hour still counts, what was hot last week does not.
const HALF_LIFE_MS: u64 = 12 * 60 * 60 * 1000;
/// The score below which a URL is not hot: that of a single visitor, hours ago.
const LEAST: f64 = 0.5;

/// A score at a time.
#[derive(Clone, Copy, Debug)]
struct HotScore {
    value: f64,
    /// The time of the value, in milliseconds of the monotonic clock.
    at_ms: u64,
}

impl HotScore {
    /// The score at a later time.
    fn at(self, now_ms: u64) -> f64 {
        let passed_ms = now_ms.saturating_sub(self.at_ms) as f64;
        self.value * (-passed_ms / HALF_LIFE_MS as f64).exp2()
    }
}

/// A URL of the list.
#[derive(Clone, Debug, PartialEq)]
pub struct HotUrl {
    /// The URL and its variant.
    pub url: Arc<WarmUrl>,
    /// About the number of its visitors in the last half day.
    pub score: f64,
}

/// The hot URLs of one site.
#[derive(Debug, Default)]
pub(crate) struct HotList {
    scores: HashMap<Arc<WarmUrl>, HotScore>,
}

impl HotList {
    /// Adds `visits` to the score of `url`, and returns it. Beyond `most` URLs the coldest are
    /// forgotten.
    pub(crate) fn add(&mut self, url: &Arc<WarmUrl>, visits: f64, now_ms: u64, most: u64) -> f64 {
        let before = self.scores.get(url).map_or(0.0, |score| score.at(now_ms));
        let value = before + visits;
        if value < LEAST {
            return value;
        }
        self.scores.insert(Arc::clone(url), HotScore { value, at_ms: now_ms });
        // A tenth at once, so that not every new URL sorts the list.
        if self.scores.len() as u64 > most.saturating_add(most / 10) {
            self.shrink(now_ms, most);
        }
        value
    }

    fn shrink(&mut self, now_ms: u64, most: u64) {
        let mut values: Vec<f64> = self.scores.values().map(|score| score.at(now_ms)).collect();
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        if values.len() <= most {
            return;
        }
        let (_, least, _) = values.select_nth_unstable_by(most, |a, b| b.total_cmp(a));
        let least = least.max(LEAST);
        self.scores.retain(|_, score| score.at(now_ms) > least);
    }

    /// At most `most` URLs, the hottest first.
    pub(crate) fn hottest(&self, now_ms: u64, most: u64) -> Vec<HotUrl> {
        let mut list: Vec<HotUrl> = self
            .scores
            .iter()
            .map(|(url, score)| HotUrl { url: Arc::clone(url), score: score.at(now_ms) })
            .filter(|hot| hot.score >= LEAST)
            .collect();
        list.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.url.cmp(&b.url)));
        list.truncate(usize::try_from(most).unwrap_or(usize::MAX));
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn url(number: usize) -> Arc<WarmUrl> {
        Arc::new(WarmUrl {
            host: b"a".as_slice().into(),
            target: format!("/{number}").into_bytes().into(),
            secure: false,
            port: None,
            fields: Box::default(),
        })
    }

    #[test]
    fn a_score_halves_in_half_a_day_and_the_cold_is_forgotten() {
        let mut list = HotList::default();
        assert_eq!(list.add(&url(1), 8.0, 0, 10), 8.0);
        assert_eq!(list.add(&url(2), 1.0, 0, 10), 1.0);
        assert_eq!(list.add(&url(1), 1.0, HALF_LIFE_MS, 10), 5.0);
        assert_eq!(list.add(&url(3), 0.1, HALF_LIFE_MS, 10), 0.1);
        let names = |now_ms| -> Vec<String> {
            let hottest = list.hottest(now_ms, 10);
            hottest.iter().map(|hot| String::from_utf8_lossy(&hot.url.target).into()).collect()
        };
        assert_eq!(names(HALF_LIFE_MS), ["/1", "/2"]);
        assert_eq!(names(HALF_LIFE_MS * 2), ["/1"]);
        assert!(names(HALF_LIFE_MS * 9).is_empty());
        assert_eq!(list.hottest(0, 1).len(), 1);
    }

    proptest! {
        #[test]
        fn it_is_bounded_and_keeps_the_hottest(
            visits in prop::collection::vec((0usize..200, 1u32..50), 1..400),
            most in 1u64..30,
        ) {
            let mut list = HotList::default();
            for (number, visits) in &visits {
                list.add(&url(*number), f64::from(*visits), 0, most);
                prop_assert!(list.scores.len() as u64 <= most + most / 10);
            }
            let hottest = list.hottest(0, most);
            prop_assert!(hottest.windows(2).all(|pair| pair[0].score >= pair[1].score));
        }
    }
}
