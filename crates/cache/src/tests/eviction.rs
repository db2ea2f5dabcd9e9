//! Eviction and the memory budget.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

const KIB: u64 = 1 << 10;

fn hot_and_cold(budget: u64) -> Arc<Cache> {
    Cache::new(config(budget))
}

#[test]
fn the_budget_is_kept_and_what_came_first_without_hits_goes_first() {
    let cache = hot_and_cold(MIB);
    for n in 0..5000 {
        put(&cache, &n.to_string(), &[0; 1000]);
        assert!(cache.stats().bytes <= MIB);
    }
    let stats = cache.stats();
    assert!(stats.objects > 500 && stats.evictions + stats.objects == 5000, "{stats:?}");
    let last = (4000..5000).filter(|n| found(&cache, &n.to_string()).is_some()).count();
    assert!(last as u64 > stats.objects * 8 / 10, "{last} of {}", stats.objects);
    cache.check();
}

#[test]
fn one_hit_wonders_do_not_wash_out_the_hot_set() {
    let cache = hot_and_cold(4 * MIB);
    let hot: Vec<_> = (0..200).map(|n| format!("hot {n}")).collect();
    for name in &hot {
        put(&cache, name, &[0; 1000]);
        for _ in 0..3 {
            found(&cache, name).expect("stored just now");
        }
    }
    for n in 0..50_000 {
        put(&cache, &n.to_string(), &[0; 1000]);
        // A hit now and then, much more rarely than eviction passes.
        if n % 1000 == 0 {
            hot.iter().for_each(|name| drop(found(&cache, name)));
        }
    }
    let survivors = hot.iter().filter(|name| found(&cache, name).is_some()).count();
    assert!(survivors > 190, "{survivors}");
    cache.check();
}

#[test]
fn a_key_that_comes_back_soon_enters_the_main_queue() {
    let cache = hot_and_cold(MIB);
    // Objects for the main queue, so that its ghost grows.
    for n in 0..3000 {
        put(&cache, &n.to_string(), &[0; 1000]);
        drop(found(&cache, &n.to_string()));
        drop(found(&cache, &n.to_string()));
    }
    let gone: Vec<_> = (0..3000).filter(|n| found(&cache, &n.to_string()).is_none()).collect();
    for n in 0..2000 {
        put(&cache, &format!("cold {n}"), &[0; 1000]);
    }
    let before = cache.stats().ghosts;
    for n in (0..2000).rev().take(300) {
        put(&cache, &format!("cold {n}"), &[0; 1000]);
    }
    assert!(!gone.is_empty());
    assert!(cache.stats().ghosts > before, "{:?}", cache.stats());
    cache.check();
}

#[test]
fn what_is_being_read_or_filled_is_not_evicted() {
    let cache = hot_and_cold(MIB);
    let read = put(&cache, "read", &[1; 1000]);
    let mut filling = lead(begin(&cache, "filled")).store(permit(), head(Some(2000)), None);
    assert_eq!(filling.push(&[2; 1000]), PushOutcome::Ok);
    for n in 0..5000 {
        put(&cache, &n.to_string(), &[0; 1000]);
    }
    assert!(read.is_live() && filling.object().is_live());
    assert_eq!(filling.push(&[2; 1000]), PushOutcome::Ok);
    assert!(filling.finish());
    assert!(found(&cache, "filled").is_some());
    drop(read);
    for n in 0..5000 {
        put(&cache, &n.to_string(), &[0; 1000]);
    }
    assert!(found(&cache, "read").is_none());
    cache.check();
}

#[test]
fn hit_for_miss_markers_are_bounded_by_the_budget() {
    let cache = hot_and_cold(512 * KIB);
    for n in 0..20_000 {
        lead(begin(&cache, &n.to_string())).refuse(Some(1_000_000));
        assert!(cache.stats().bytes <= 512 * KIB);
    }
    cache.check();
    let marked = |n: &u32| {
        matches!(cache.lookup(&key(&n.to_string()), &mut plain, 0), CacheLookup::HitForMiss)
    };
    assert!(marked(&19_999));
    assert!((0..20_000).filter(marked).count() > 500);
    put(&cache, "stored", b"");
    assert!(found(&cache, "stored").is_some(), "markers make room");
}

#[test]
fn dead_tokens_are_bounded() {
    let cache = hot_and_cold(MIB);
    for _ in 0..100_000 {
        put(&cache, "the same", b"");
    }
    cache.check();
    assert!(cache.stats().bytes < 10_000, "{:?}", cache.stats());
}

#[test]
fn a_smaller_budget_evicts_at_once() {
    let cache = hot_and_cold(4 * MIB);
    (0..2000).for_each(|n| drop(put(&cache, &n.to_string(), &[0; 1000])));
    cache.set_config(config(MIB));
    let stats = cache.stats();
    assert!(stats.bytes <= MIB && stats.budget == MIB && stats.objects > 300, "{stats:?}");
    cache.check();
}

#[test]
fn a_body_larger_than_the_budget_evicts_nothing() {
    let cache = hot_and_cold(512 * KIB);
    put(&cache, "/a", b"a");
    let filling = lead(begin(&cache, "/b")).store(permit(), head(Some(600 * KIB)), None);
    assert!(filling.is_window());
    assert!(found(&cache, "/a").is_some());
}

#[derive(Clone, Debug)]
enum Op {
    Put { key: u8, size: usize, declared: bool },
    Look { key: u8, times: u8 },
    Hold { key: u8 },
    Fill { key: u8, size: usize },
    Finish,
    Abort,
    Confirm { key: u8 },
    Refuse { key: u8 },
    Invalidate { key: u8 },
    Release,
    Clear,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let key = 0..40_u8;
    let size = prop_oneof![6 => 0..3000_usize, 2 => 3000..40_000_usize, 1 => 40_000..400_000_usize];
    let op = prop_oneof![
        12 => (key.clone(), size.clone(), any::<bool>())
            .prop_map(|(key, size, declared)| Op::Put { key, size, declared }),
        8 => (key.clone(), 1..4_u8).prop_map(|(key, times)| Op::Look { key, times }),
        2 => key.clone().prop_map(|key| Op::Hold { key }),
        3 => (key.clone(), size).prop_map(|(key, size)| Op::Fill { key, size }),
        2 => Just(Op::Finish),
        1 => Just(Op::Abort),
        3 => key.clone().prop_map(|key| Op::Confirm { key }),
        2 => key.clone().prop_map(|key| Op::Refuse { key }),
        2 => key.prop_map(|key| Op::Invalidate { key }),
        1 => Just(Op::Release),
        1 => Just(Op::Clear),
    ];
    proptest::collection::vec(op, 1..200)
}

/// A cache and its permitted contents.
struct CheckedCache {
    cache: Arc<Cache>,
    budget: u64,
    /// The version of the body last stored under a key. The body begins with it.
    last: HashMap<u8, u64>,
    version: u64,
    held: Vec<(Arc<Object>, Reader)>,
    filling: Vec<(u8, ObjectWriter, usize)>,
}

impl CheckedCache {
    fn new(budget: u64) -> Self {
        Self {
            cache: Cache::new(config(budget)),
            budget,
            last: HashMap::new(),
            version: 0,
            held: Vec::new(),
            filling: Vec::new(),
        }
    }

    fn body(&mut self, size: usize) -> Vec<u8> {
        self.version += 1;
        let mut body = self.version.to_le_bytes().to_vec();
        body.resize(size.max(8), 0);
        body
    }

    fn begin(&self, key: u8) -> Lead {
        let old = found(&self.cache, &key.to_string());
        let options = BeginOptions { coalesce: false, rejected: old.as_ref() };
        lead(self.cache.begin(&super::key(&key.to_string()), &mut plain, options, 0))
    }

    fn put(&mut self, key: u8, size: usize, declared: bool) {
        let body = self.body(size);
        let length = declared.then_some(body.len() as u64);
        let mut filling = self.begin(key).store(permit(), head(length), None);
        if !filling.stored() {
            return;
        }
        self.last.insert(key, self.version);
        for piece in body.chunks(10_000) {
            match filling.push(piece) {
                PushOutcome::Ok => {}
                PushOutcome::Abandoned => break,
                other => panic!("{other:?}"),
            }
        }
        let kept = filling.stored();
        assert!(filling.finish() || !kept);
        if !kept {
            self.last.remove(&key);
        }
    }

    fn fill(&mut self, key: u8, size: usize) {
        let body = self.body(size);
        let mut filling = self.begin(key).store(permit(), head(Some(body.len() as u64)), None);
        if !filling.stored() {
            return;
        }
        if filling.push(&body[..body.len() / 2]) == PushOutcome::Ok && filling.stored() {
            self.last.insert(key, self.version);
            self.filling.push((key, filling, body.len() - body.len() / 2));
        } else {
            self.last.remove(&key);
        }
    }

    fn apply(&mut self, op: Op) {
        match op {
            Op::Put { key, size, declared } => self.put(key, size, declared),
            Op::Look { key, times } => {
                (0..times).for_each(|_| drop(found(&self.cache, &key.to_string())));
            }
            Op::Hold { key } => {
                if let Some(object) = found(&self.cache, &key.to_string()) {
                    let reader = object.reader();
                    self.held.push((object, reader));
                }
            }
            Op::Fill { key, size } => self.fill(key, size),
            Op::Finish => {
                if let Some((_, mut filling, rest)) = self.filling.pop() {
                    let _ = filling.push(&vec![0; rest]);
                    filling.finish();
                }
            }
            Op::Abort => drop(self.filling.pop()),
            Op::Confirm { key } => {
                if let Some(old) = found(&self.cache, &key.to_string())
                    && let Some(lead) =
                        self.cache.begin_refresh(&super::key(&key.to_string()), &old)
                {
                    lead.freshen(permit(), &old, head(None), None);
                }
            }
            Op::Refuse { key } => self.begin(key).refuse(Some(1000)),
            Op::Invalidate { key } => {
                self.cache.invalidate(&super::key(&key.to_string()));
                self.last.remove(&key);
            }
            Op::Release => self.held.clear(),
            Op::Clear => {
                self.cache.clear();
                self.last.clear();
            }
        }
    }

    fn check(&self) {
        let stats = self.cache.stats();
        assert!(stats.bytes <= self.budget, "{stats:?}");
        self.cache.check();
    }

    /// Asserts that every complete object is the one stored last. Returns the number found.
    fn check_contents(&self) -> usize {
        let mut count = 0;
        for key in 0..40_u8 {
            let Some(object) = found(&self.cache, &key.to_string()) else { continue };
            count += 1;
            if let Some(body) = bytes_of(&object) {
                let version = u64::from_le_bytes(body[..8].try_into().expect("eight bytes"));
                assert_eq!(self.last.get(&key), Some(&version), "key {key}");
            }
        }
        count
    }

    fn end(mut self) {
        self.filling.clear();
        self.held.clear();
        self.check();
        self.cache.clear();
        assert_eq!(self.cache.stats().bytes, 0, "all memory is given back");
        assert_eq!(self.cache.stats().objects, 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn no_sequence_of_operations_exceeds_the_budget_or_loses_memory(
        ops in ops(),
        budget in prop_oneof![Just(20_000_u64), Just(60_000), Just(300_000), Just(MIB)],
    ) {
        let mut checked = CheckedCache::new(budget);
        for op in ops {
            checked.apply(op);
            checked.check();
        }
        checked.check_contents();
        checked.end();
    }

    #[test]
    fn with_room_for_all_exactly_what_was_stored_is_there(ops in ops()) {
        let mut checked = CheckedCache::new(1 << 30);
        for op in ops {
            let aborts = matches!(op, Op::Abort);
            let aborted = checked.filling.last().map(|(key, ..)| *key);
            checked.apply(op);
            if let (true, Some(key)) = (aborts, aborted)
                && found(&checked.cache, &key.to_string()).is_none()
            {
                checked.last.remove(&key);
            }
        }
        checked.check();
        prop_assert_eq!(checked.check_contents(), checked.last.len());
        prop_assert_eq!(checked.cache.stats().evictions, 0);
        checked.end();
    }
}
