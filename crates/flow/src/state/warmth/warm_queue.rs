//! Warm queue: what waits to be warmed on one site, the hottest first, each URL once.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use base::{Account, HeldBytes};

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
    /// Times that its origin had no place for it for too long. All others come before it.
    pub(crate) round: u32,
    pub(crate) campaign: Arc<Campaign>,
}

/// The place of a task: the hottest of a round first, of equals the one that came first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    round: u32,
    score: Reverse<u64>,
    sequence: u64,
}

/// The heat of a task: the hottest first, of equals the one that came first. How often its origin
/// had no place says nothing about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Heat {
    score: Reverse<u64>,
    sequence: u64,
    round: u32,
}

impl Heat {
    fn of(Rank { round, score, sequence }: Rank) -> Self {
        Self { score, sequence, round }
    }

    fn rank(self) -> Rank {
        Rank { round: self.round, score: self.score, sequence: self.sequence }
    }
}

/// The tasks of one site.
#[derive(Debug, Default)]
pub(crate) struct WarmQueue {
    tasks: BTreeMap<Rank, WarmTask>,
    ranks: HashMap<Arc<WarmUrl>, Rank>,
    heats: BTreeSet<Heat>,
    sequence: u64,
    /// The bytes of all URLs.
    bytes: u64,
    /// The memory of all tasks, in steps.
    held: Option<HeldBytes>,
}

/// The bytes of a URL that the limit of URLs counts on. Few are as long.
const URL_BYTES: u64 = 512;
/// The bytes that a task takes beside its URL: itself, and its places in the three lists.
const TASK_BYTES: u64 = 256;
/// Bytes that are counted at once.
const HELD_STEP: u64 = 64 << 10;

impl WarmQueue {
    /// Adds a task. Beyond `most` tasks, or so many bytes, the coldest one is returned. A URL that
    /// waits already keeps the better place, and the other of its two tasks is returned.
    pub(crate) fn push(&mut self, task: WarmTask, most: u64) -> PushResult {
        if let Some(rank) = self.ranks.get(&task.url).copied()
            && let Some(waiting) = self.take(rank)
        {
            let round = task.round.min(waiting.round);
            let (kept, other) = match task.score > waiting.score {
                true => (task, waiting),
                false => (waiting, task),
            };
            let sequence = rank.sequence;
            self.insert(WarmTask { round, ..kept }, sequence);
            return PushResult::Twice(other);
        }
        self.sequence += 1;
        self.insert(task, self.sequence);
        let is_full = self.tasks.len() as u64 > most || self.bytes > most.saturating_mul(URL_BYTES);
        if is_full
            && self.tasks.len() > 1
            && let Some(heat) = self.heats.last().copied()
            && let Some(coldest) = self.take(heat.rank())
        {
            return PushResult::Full(coldest);
        }
        PushResult::Added
    }

    /// Counts the memory of all tasks on `account`. Their number has a limit of its own.
    pub(crate) fn charge(&mut self, account: &Arc<Account>) {
        let wanted = self.memory().next_multiple_of(HELD_STEP);
        match &mut self.held {
            None => self.held = Some(account.hold_anyway(wanted)),
            Some(held) => held.grow_anyway(wanted.saturating_sub(held.bytes())),
        }
    }

    /// The memory of all tasks.
    fn memory(&self) -> u64 {
        self.tasks.len() as u64 * TASK_BYTES + self.bytes
    }

    fn insert(&mut self, task: WarmTask, sequence: u64) {
        let rank = Rank { round: task.round, score: Reverse(task.score), sequence };
        self.bytes += task.url.bytes() as u64;
        self.ranks.insert(Arc::clone(&task.url), rank);
        self.heats.insert(Heat::of(rank));
        self.tasks.insert(rank, task);
    }

    fn take(&mut self, rank: Rank) -> Option<WarmTask> {
        let task = self.tasks.remove(&rank)?;
        self.ranks.remove(&task.url);
        self.heats.remove(&Heat::of(rank));
        self.bytes = self.bytes.saturating_sub(task.url.bytes() as u64);
        let wanted = self.memory().next_multiple_of(HELD_STEP);
        self.held.iter_mut().for_each(|held| held.shrink_to(wanted));
        Some(task)
    }

    /// Removes the hottest task.
    pub(crate) fn pop(&mut self) -> Option<WarmTask> {
        let rank = *self.tasks.first_key_value()?.0;
        self.take(rank)
    }

    /// The round of the hottest task.
    pub(crate) fn round(&self) -> Option<u32> {
        Some(self.tasks.first_key_value()?.0.round)
    }

    /// Removes all tasks.
    pub(crate) fn clear(&mut self) -> Vec<WarmTask> {
        self.ranks.clear();
        self.heats.clear();
        self.bytes = 0;
        self.held = None;
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
        WarmTask { site, url, failures: 0, score, round: 0, campaign }
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
    fn what_had_no_place_comes_after_all_others() {
        let mut queue = WarmQueue::default();
        queue.push(WarmTask { round: 1, ..task(b'a', 9) }, 10);
        queue.push(WarmTask { round: 2, ..task(b'b', 99) }, 10);
        queue.push(WarmTask { round: 1, ..task(b'c', 8) }, 10);
        queue.push(task(b'd', 1), 10);
        assert_eq!(drain(&mut queue), b"dacb".to_vec());
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

    #[test]
    fn the_coldest_goes_whatever_its_round() {
        let mut queue = WarmQueue::default();
        queue.push(WarmTask { round: 3, ..task(b'a', 9) }, 3);
        queue.push(WarmTask { round: 1, ..task(b'b', 1) }, 3);
        queue.push(task(b'c', 2), 3);
        for (name, score, coldest) in [(b'd', 3, b'b'), (b'e', 4, b'c'), (b'f', 3, b'f')] {
            let pushed = queue.push(task(name, score), 3);
            let PushResult::Full(task) = pushed else { panic!("it is full") };
            assert_eq!(task.url.target[1], coldest);
        }
        assert_eq!(drain(&mut queue), b"eda".to_vec());
    }

    proptest! {
        #[test]
        fn it_is_a_bounded_set_in_order(
            steps in prop::collection::vec((0u8..12, 0u64..9, 0u8..4, 0u32..3), 0..120),
            most in 1u64..8,
        ) {
            let mut queue = WarmQueue::default();
            for (name, score, step, round) in steps {
                let before = queue.len() as u64;
                if step > 0 {
                    let pushed = queue.push(WarmTask { round, ..task(name, score) }, most);
                    let grows = matches!(pushed, PushResult::Added);
                    prop_assert_eq!(queue.len() as u64, before + u64::from(grows));
                    if let PushResult::Full(coldest) = pushed {
                        let is_hotter = |task: &WarmTask| task.score >= coldest.score;
                        prop_assert!(queue.tasks.values().all(is_hotter));
                    }
                } else if let Some(popped) = queue.pop() {
                    let place = |task: &WarmTask| (task.round, Reverse(task.score));
                    prop_assert!(queue.tasks.values().all(|task| place(task) >= place(&popped)));
                }
                prop_assert!(queue.len() as u64 <= most);
                prop_assert_eq!(queue.len(), queue.ranks.len());
                prop_assert_eq!(queue.len(), queue.heats.len());
                let bytes = queue.tasks.values().map(|task| task.url.bytes() as u64).sum::<u64>();
                prop_assert_eq!(queue.bytes, bytes);
            }
        }
    }
}
