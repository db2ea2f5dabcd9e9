//! Survey of the store, for advice: the pages that `Vary` splits, those that are not stored for a
//! while, and the latest invalidations. It runs off the cores and changes nothing.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::time::Duration;

use cache::SurveyedKey;

use crate::invalidate::StoredUrl;
use crate::state::invalidate::{Invalidator, RecentInvalidation};

/// Longest pause between two pieces of a survey, in which other threads of the processor run.
const PAUSE: Duration = Duration::from_micros(100);
/// Pieces between two pauses: a few hundred microseconds.
const PIECES: u32 = 8;

/// A page that has several variants.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct VariedPage {
    /// The number of its variants.
    pub variants: usize,
    /// The number of different bodies that these have.
    pub bodies: usize,
    /// The URL.
    pub url: String,
    /// The fields that select a variant.
    pub vary: Vec<String>,
}

/// A page with a hit-for-miss mark.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MarkedPage {
    /// Milliseconds until the mark ends.
    pub left_ms: u64,
    /// The URL.
    pub url: String,
}

/// The pages that a survey has found: their number, and the first of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundPages<T> {
    /// The number of all.
    pub count: u64,
    /// As many as are listed, the largest first.
    pub pages: Vec<T>,
}

/// The result of a survey.
#[derive(Clone, Debug)]
pub struct StoreSurvey {
    /// Pages with several variants.
    pub varied: FoundPages<VariedPage>,
    /// Pages with a mark.
    pub marked: FoundPages<MarkedPage>,
    /// The latest invalidations, the oldest first.
    pub invalidations: Vec<RecentInvalidation>,
}

/// The largest `most` of the pages that come.
struct Largest<T> {
    count: u64,
    most: usize,
    pages: BinaryHeap<Reverse<T>>,
}

impl<T: Ord> Largest<T> {
    fn new(most: usize) -> Self {
        Self { count: 0, most, pages: BinaryHeap::new() }
    }

    fn push(&mut self, page: T) {
        self.count += 1;
        self.pages.push(Reverse(page));
        if self.pages.len() > self.most {
            self.pages.pop();
        }
    }

    fn push_some(&mut self, page: Option<T>) {
        page.into_iter().for_each(|page| self.push(page));
    }

    fn found(self) -> FoundPages<T> {
        let pages = self.pages.into_sorted_vec();
        FoundPages { count: self.count, pages: pages.into_iter().map(|page| page.0).collect() }
    }
}

impl Invalidator {
    /// Surveys the store at `now_ms` and lists at most `most` pages of each kind. One survey or
    /// listing runs at a time; further callers wait.
    pub async fn survey(self: &Arc<Self>, now_ms: u64, most: usize) -> StoreSurvey {
        let turn = Arc::clone(&self.listing).lock_owned().await;
        let invalidator = Arc::clone(self);
        let survey = rt::run_blocking(move || {
            let _turn = turn;
            let (mut varied, mut marked) = (Largest::new(most), Largest::new(most));
            let mut pieces = 0;
            let mut pause = || {
                pieces += 1;
                if pieces % PIECES == 0 {
                    rt::pause(PAUSE);
                }
            };
            let mut each = |key: SurveyedKey| {
                varied.push_some(varied_page(&key));
                marked.push_some(marked_page(&key, now_ms));
            };
            invalidator.cache.survey(&mut each, &mut pause);
            let invalidations = invalidator.recent.list();
            StoreSurvey { varied: varied.found(), marked: marked.found(), invalidations }
        });
        survey.await
    }
}

fn varied_page(key: &SurveyedKey) -> Option<VariedPage> {
    let first = key.variants.first().filter(|_| key.variants.len() > 1)?;
    let spec = first.vary().map(|vary| vary.spec).unwrap_or_default();
    let names = spec.split(|byte| *byte == b',').filter(|name| !name.is_empty());
    Some(VariedPage {
        variants: key.variants.len(),
        bodies: key.bodies(),
        url: StoredUrl::of(first).text(),
        vary: names.map(|name| String::from_utf8_lossy(name).into_owned()).collect(),
    })
}

fn marked_page(key: &SurveyedKey, now_ms: u64) -> Option<MarkedPage> {
    let left_ms = key.marked_until_ms?.checked_sub(now_ms).filter(|left_ms| *left_ms > 0)?;
    // The key of a program need not have a URL.
    let url = Some(StoredUrl::of_key(&key.key)).filter(|url| !url.host.is_empty())?;
    Some(MarkedPage { left_ms, url: url.text() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_are_listed_and_all_are_counted() {
        let mut largest = Largest::new(2);
        [3, 1, 4, 1, 5].into_iter().for_each(|page| largest.push(page));
        largest.push_some(None);
        assert_eq!(largest.found(), FoundPages { count: 5, pages: vec![5, 4] });
    }
}
