//! Warm queue: what waits to be warmed on one site, the hottest first, each URL once.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::campaign::Campaign;
use super::warm_url::WarmUrl;

/// A URL that waits to be warmed.
#[derive(Clone, Debug)]
pub(crate) struct WarmTask {
    /// The site's name.
    pub(crate) site: Arc<str>,
    pub(crate) url: Arc<WarmUrl>,
    /// Times that its origin has failed.
    pub(crate) failures: u8,
    /// The heat: about the number of its visits.
    pub(crate) score: u64,
    /// It is fetched even if a fresh response is stored.
    pub(crate) renews: bool,
    pub(crate) campaign: Arc<Campaign>,
}

/// The place of a task: the hottest first, of equals the one that came first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    score: Reverse<u64>,
    sequence: u64,
}

/// The tasks of one site.
#[derive(Debug, Default)]
pub(crate) struct WarmQueue {
    tasks: BTreeMap<Rank, WarmTask>,
    ranks: HashMap<Arc<WarmUrl>, Rank>,
    sequence: u64,
}

impl WarmQueue {
    /// Adds a task. Beyond `most` tasks, the coldest one is returned. A URL that waits already
    /// keeps the better place, and the other of its two tasks is returned.
    pub(crate) fn push(&mut self, task: WarmTask, most: u64) -> PushResult {
        if let Some(rank) = self.ranks.get(&task.url).copied()
            && let Some(waiting) = self.take(rank)
        {
            let renews = task.renews || waiting.renews;
            let (kept, other) = match task.score > waiting.score {
                true => (task, waiting),
                false => (waiting, task),
            };
            let sequence = rank.sequence;
            self.insert(WarmTask { renews, ..kept }, sequence);
            return PushResult::Twice(other);
        }
        self.sequence += 1;
        self.insert(task, self.sequence);
        if self.tasks.len() as u64 > most
            && let Some(rank) = self.tasks.last_key_value().map(|(rank, _)| *rank)
            && let Some(coldest) = self.take(rank)
        {
            return PushResult::Full(coldest);
        }
        PushResult::Added
    }

    fn insert(&mut self, task: WarmTask, sequence: u64) {
        let rank = Rank { score: Reverse(task.score), sequence };
        self.ranks.insert(Arc::clone(&task.url), rank);
        self.tasks.insert(rank, task);
    }

    fn take(&mut self, rank: Rank) -> Option<WarmTask> {
        let task = self.tasks.remove(&rank)?;
        self.ranks.remove(&task.url);
        Some(task)
    }

    /// Removes the hottest task.
    pub(crate) fn pop(&mut self) -> Option<WarmTask> {
        let rank = *self.tasks.first_key_value()?.0;
        self.take(rank)
    }

    /// Removes all tasks.
    pub(crate) fn clear(&mut self) -> Vec<WarmTask> {
        self.ranks.clear();
        std::mem::take(&mut self.tasks).into_values().collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.tasks.len()
    }
}

/// The result of adding a task.
#[derive(Debug)]
pub(crate) enum PushResult {
    Added,
    /// The URL waits already; this is the other task.
    Twice(WarmTask),
    /// There is no place; this is the coldest task.
    Full(WarmTask),
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn task(name: u8, score: u64) -> WarmTask {
        let url = WarmUrl {
            host: b"a".as_slice().into(),
            target: vec![b'/', name].into(),
            secure: false,
            port: None,
            fields: Box::default(),
        };
        let campaign = Campaign::new(String::new(), 1, 0);
        let (url, site) = (Arc::new(url), "a".into());
        WarmTask { site, url, failures: 0, score, renews: false, campaign }
    }

    fn drain(queue: &mut WarmQueue) -> Vec<u8> {
        std::iter::from_fn(|| queue.pop()).map(|task| task.url.target[1]).collect()
    }

    #[test]
    fn the_hottest_comes_first_and_each_url_once() {
        let mut queue = WarmQueue::default();
        for (name, score) in [(b'a', 1), (b'b', 9), (b'c', 1), (b'a', 5), (b'b', 2)] {
            queue.push(task(name, score), 10);
        }
        assert_eq!((queue.len(), drain(&mut queue)), (3, b"bac".to_vec()));
        assert!(queue.ranks.is_empty());
    }

    #[test]
    fn beyond_the_limit_the_coldest_goes() {
        let mut queue = WarmQueue::default();
        queue.push(task(b'a', 3), 2);
        queue.push(task(b'b', 1), 2);
        let PushResult::Full(coldest) = queue.push(task(b'c', 2), 2) else { panic!("it is full") };
        assert_eq!(coldest.url.target[1], b'b');
        let PushResult::Full(coldest) = queue.push(task(b'd', 1), 2) else { panic!("it is full") };
        assert_eq!(coldest.url.target[1], b'd');
        assert_eq!(queue.clear().len(), 2);
        assert_eq!((queue.len(), queue.ranks.len()), (0, 0));
    }

    proptest! {
        #[test]
        fn it_is_a_bounded_set_in_order(
            steps in prop::collection::vec((0u8..12, 0u64..9, 0u8..4), 0..120),
            most in 1u64..8,
        ) {
            let mut queue = WarmQueue::default();
            for (name, score, step) in steps {
                let before = queue.len() as u64;
                if step > 0 {
                    let pushed = queue.push(task(name, score), most);
                    let grows = matches!(pushed, PushResult::Added);
                    prop_assert_eq!(queue.len() as u64, before + u64::from(grows));
                } else if let Some(popped) = queue.pop() {
                    prop_assert!(queue.tasks.values().all(|task| task.score <= popped.score));
                }
                prop_assert!(queue.len() as u64 <= most);
                prop_assert_eq!(queue.len(), queue.ranks.len());
            }
        }
    }
}
