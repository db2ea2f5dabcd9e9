//! Token buckets of `vsthrottle`, shared by all programs and requests. Their number is limited:
//! unused ones are dropped.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

/// Identity of a bucket: a part of a SHA-256, so that no client can make two keys collide.
pub(crate) type BucketId = [u8; 16];

/// Rate of a bucket; times in seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    pub(crate) limit: i64,
    pub(crate) period: f64,
    pub(crate) block: f64,
}

/// A bucket; times in seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    tokens: i64,
    /// Time at which the last token was taken.
    used: f64,
    /// Time until which every request is denied.
    pub(crate) blocked_until: f64,
}

impl Bucket {
    fn full(rule: Rate, now: f64) -> Self {
        Self { tokens: rule.limit, used: now, blocked_until: 0.0 }
    }

    /// Number of tokens at `now`.
    pub(crate) fn tokens(&self, rule: Rate, now: f64) -> i64 {
        let since = (now - self.used).max(0.0);
        // A period of 0 refills at once; the conversions saturate.
        let come =
            if rule.period > 0.0 { since / rule.period * rule.limit as f64 } else { f64::MAX };
        self.tokens.saturating_add(come as i64).min(rule.limit)
    }

    /// Takes a token. Returns true if that is denied.
    pub(crate) fn take(&mut self, rule: Rate, now: f64) -> bool {
        if now < self.blocked_until {
            return true;
        }
        let tokens = self.tokens(rule, now);
        if tokens > 0 {
            self.tokens = tokens - 1;
            self.used = now;
            return false;
        }
        if rule.block > 0.0 {
            self.blocked_until = now + rule.block;
        }
        true
    }

    /// Returns a token.
    pub(crate) fn put_back(&mut self, rule: Rate) {
        self.tokens = self.tokens.saturating_add(1).min(rule.limit);
    }
}

/// Number of locks: enough that cores rarely contend.
const SHARDS: usize = 64;

/// All buckets.
#[derive(Debug)]
pub(crate) struct Buckets {
    shards: Box<[Mutex<Generations>]>,
    /// Approximate limit on the number of buckets.
    most: AtomicUsize,
}

/// One shard of the buckets, in two generations. A full young generation becomes the old one, and
/// buckets of the old one that were not used since are dropped.
#[derive(Debug, Default)]
struct Generations {
    young: HashMap<BucketId, Bucket>,
    old: HashMap<BucketId, Bucket>,
}

impl Generations {
    /// The bucket, and true if others were dropped for it. A generation holds at most `most`.
    fn get(
        &mut self,
        id: BucketId,
        most: usize,
        make: impl FnOnce() -> Bucket,
    ) -> (&mut Bucket, bool) {
        let mut forgot = false;
        if !self.young.contains_key(&id) {
            let bucket = self.old.remove(&id).unwrap_or_else(make);
            if self.young.len() >= most {
                forgot = !self.old.is_empty();
                self.old = std::mem::take(&mut self.young);
            }
            self.young.insert(id, bucket);
        }
        (self.young.get_mut(&id).expect("it is there or has just been put there"), forgot)
    }
}

impl Buckets {
    /// Empty buckets, at most about `most`.
    pub(crate) fn new(most: usize) -> Self {
        let shards = std::iter::repeat_with(Mutex::default).take(SHARDS).collect();
        Self { shards, most: AtomicUsize::new(most) }
    }

    /// Changes the limit to about `most`.
    pub(crate) fn set_most(&self, most: usize) {
        self.most.store(most, Ordering::Relaxed);
    }

    /// Runs `run` on a bucket. The flag is true if other buckets were dropped for it.
    pub(crate) fn with<T>(
        &self,
        id: BucketId,
        rule: Rate,
        now: f64,
        run: impl FnOnce(&mut Bucket) -> T,
    ) -> (T, bool) {
        let most = (self.most.load(Ordering::Relaxed) / SHARDS / 2).max(1);
        let mut shard = self.shards[usize::from(id[15]) % SHARDS].lock();
        let (bucket, forgot) = shard.get(id, most, || Bucket::full(rule, now));
        (run(bucket), forgot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: Rate = Rate { limit: 4, period: 4.0, block: 0.0 };

    #[test]
    fn tokens_come_back_one_by_one() {
        let mut bucket = Bucket::full(RULE, 0.0);
        for _ in 0..4 {
            assert!(!bucket.take(RULE, 0.0));
        }
        assert!(bucket.take(RULE, 0.9));
        assert!(!bucket.take(RULE, 1.0));
        assert!(bucket.take(RULE, 1.5));
        assert!(!bucket.take(RULE, 2.0));
        assert_eq!(bucket.tokens(RULE, 100.0), 4);
    }

    #[test]
    fn asking_what_remains_changes_nothing() {
        let mut bucket = Bucket::full(RULE, 0.0);
        for _ in 0..4 {
            bucket.take(RULE, 0.0);
        }
        assert_eq!(bucket.tokens(RULE, 2.0), 2);
        assert_eq!(bucket.tokens(RULE, 2.0), 2);
    }

    #[test]
    fn a_token_can_be_put_back_up_to_the_limit() {
        let mut bucket = Bucket::full(RULE, 0.0);
        bucket.take(RULE, 0.0);
        bucket.put_back(RULE);
        bucket.put_back(RULE);
        assert_eq!(bucket.tokens(RULE, 0.0), 4);
    }

    #[test]
    fn a_block_denies_for_its_time() {
        let rule = Rate { limit: 1, period: 1.0, block: 30.0 };
        let mut bucket = Bucket::full(rule, 0.0);
        assert!(!bucket.take(rule, 0.0));
        assert!(bucket.take(rule, 0.5));
        assert_eq!(bucket.blocked_until, 30.5);
        assert!(bucket.take(rule, 30.0));
        assert!(!bucket.take(rule, 30.5));
    }

    #[test]
    fn a_clock_that_goes_back_gives_nothing() {
        let mut bucket = Bucket::full(RULE, 100.0);
        for _ in 0..4 {
            assert!(!bucket.take(RULE, 100.0));
        }
        assert!(bucket.take(RULE, 50.0));
    }

    #[test]
    fn odd_rules_are_taken() {
        for limit in [0, 1, i64::MAX] {
            for period in [0.0, -1.0, f64::MIN_POSITIVE, f64::MAX, f64::NAN] {
                let rule = Rate { limit, period, block: 0.0 };
                let mut bucket = Bucket::full(rule, 0.0);
                assert_eq!(bucket.take(rule, 1.0), limit == 0);
            }
        }
    }

    #[test]
    fn buckets_that_are_asked_for_stay_while_others_come_and_go() {
        let buckets = Buckets::new(SHARDS * 8);
        let id = |n: u16| {
            let mut id = [0; 16];
            id[..2].copy_from_slice(&n.to_le_bytes());
            id
        };
        let (_, forgot) = buckets.with(id(0), RULE, 0.0, |b| b.tokens = 0);
        assert!(!forgot);
        let mut forgotten = 0;
        for n in 1..1000 {
            forgotten += usize::from(buckets.with(id(n), RULE, 0.0, |_| ()).1);
            assert_eq!(buckets.with(id(0), RULE, 0.0, |b| b.tokens).0, 0, "after {n}");
        }
        assert!(forgotten > 100, "{forgotten}");
        let shard = buckets.shards[0].lock();
        assert!(shard.young.len() + shard.old.len() <= 8);
    }
}
