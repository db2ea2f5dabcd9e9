//! Bounds of the work under one hold of a shard's lock, for any number of objects.

use std::collections::BTreeSet;

use super::*;

/// Entries moved, examined or removed under one hold of the lock: some tens of microseconds.
const WORK_MAX: usize = 700;
/// All in one shard: as many as a shard has with twenty million objects.
const OBJECTS: usize = 20_000;

fn one_shard(budget: u64) -> Arc<Cache> {
    Cache::with_shards(Arc::new(MemoryOnly), config(budget), 1)
}

fn put_tagged(cache: &Arc<Cache>, name: &str, tag: u64) {
    let new = NewObject { tags: Tags::new(vec![tag]), ..head(Some(0)) };
    assert!(lead(begin(cache, name)).store(permit(), new, None).finish());
}

fn ban_tag(cache: &Cache, tag: u64) -> Arc<Ban> {
    let which = BanSelector { tags: Some(Tags::new(vec![tag])), test: None };
    let data = Box::default();
    let text = "a tag".into();
    cache.ban(NewBan { number: 0, data, text, which, soft: false, now_ms: 0 })
}

#[test]
fn growing_moves_few_entries_at_once() {
    let cache = one_shard(64 * MIB);
    for n in 0..OBJECTS {
        put(&cache, &n.to_string(), b"");
        if n % 2000 == 0 {
            cache.check();
        }
    }
    assert!(cache.most_work() <= 32, "{}", cache.most_work());
    assert!((0..OBJECTS).all(|n| found(&cache, &n.to_string()).is_some()));
    cache.check();
}

#[test]
fn purging_by_tag_takes_few_entries_out_at_once() {
    let cache = one_shard(64 * MIB);
    (0..OBJECTS).for_each(|n| put_tagged(&cache, &n.to_string(), n as u64 % 3));
    for (tag, objects) in [(0, 6667), (1, 6667), (2, 6666)] {
        let ban = ban_tag(&cache, tag);
        let mut pieces = 0;
        cache.sweep(ban.number(), 0, &mut || {
            pieces += 1;
            if pieces % 40 == 0 {
                cache.check();
            }
        });
        assert_eq!(ban.objects(), objects);
    }
    assert!(cache.most_work() <= WORK_MAX, "{}", cache.most_work());
    assert_eq!(cache.stats().objects, 0);
}

#[test]
fn clearing_takes_few_entries_out_at_once_and_gives_everything_back() {
    let cache = one_shard(64 * MIB);
    (0..OBJECTS).for_each(|n| drop(put(&cache, &n.to_string(), b"")));
    let busy = lead(begin(&cache, "being fetched"));
    assert_eq!(cache.clear(), OBJECTS);
    assert!(cache.most_work() <= WORK_MAX, "{}", cache.most_work());
    assert!(busy.store(permit(), head(Some(0)), None).refused().is_some());
    assert_eq!((cache.clear(), cache.stats().bytes), (0, 0));
    put(&cache, "afterwards", b"");
    cache.check();
}

#[test]
fn replacing_one_object_again_and_again_looks_at_few_tokens_at_once() {
    let cache = one_shard(64 * MIB);
    (0..500).for_each(|n| drop(put(&cache, &n.to_string(), b"")));
    for n in 0..OBJECTS {
        put(&cache, &(n % 7).to_string(), b"");
    }
    assert!(cache.most_work() <= 32, "{}", cache.most_work());
    cache.check();
    assert!(cache.stats().bytes < 500 * 450, "{:?}", cache.stats());
}

#[test]
fn a_store_in_which_everything_was_hit_takes_what_is_new() {
    let cache = one_shard(8 * MIB);
    let full = (0..).find(|n| {
        put(&cache, &n.to_string(), b"");
        cache.stats().evictions > 0
    });
    let full = full.expect("it gets full");
    for n in 0..full {
        (0..3).for_each(|_| drop(found(&cache, &n.to_string())));
    }
    // All objects pass to the main queue and through it several times before the first is evicted.
    assert!(full > 8_000, "{full}");
    for n in 0..200 {
        put(&cache, &format!("new {n}"), b"");
        assert!(found(&cache, &format!("new {n}")).is_some());
        (0..full).step_by(7).for_each(|n| drop(found(&cache, &n.to_string())));
    }
    let stats = cache.stats();
    assert_eq!(stats.refused, 0, "{stats:?}");
    assert!(cache.most_work() <= WORK_MAX, "{}", cache.most_work());
    cache.check();
}

#[test]
fn room_is_made_ahead_of_need() {
    let cache = cache();
    let mut pauses = 0;
    cache.make_room_ahead(&mut || pauses += 1);
    assert_eq!(pauses, 0, "there is room");
    (0..).find(|n: &u32| {
        put(&cache, &n.to_string(), &[0; 1000]);
        cache.stats().evictions > 0
    });
    cache.make_room_ahead(&mut || pauses += 1);
    let ahead = cache.stats();
    assert!(ahead.budget - ahead.bytes >= ahead.budget / 128, "{ahead:?}");
    assert!(pauses > 0 && ahead.evictions > 100);
    for n in 0..100 {
        put(&cache, &format!("new {n}"), &[0; 1000]);
    }
    assert_eq!(cache.stats().evictions, ahead.evictions, "no request had to evict");
    cache.make_room_ahead(&mut || pauses += 1);
    assert_eq!(cache.stats().evictions, ahead.evictions, "more than half of it is free");
    cache.check();
}

#[test]
fn a_walk_sees_all_that_stays_although_the_table_grows_meanwhile() {
    let cache = one_shard(64 * MIB);
    let names: BTreeSet<Vec<u8>> =
        (0..1000).map(|n| put(&cache, &n.to_string(), b"").key().to_vec()).collect();
    let (mut seen, mut more) = (BTreeSet::new(), 0);
    cache.walk(&mut |object| {
        seen.insert(object.key().to_vec());
        if more < OBJECTS {
            (0..9).for_each(|n| drop(put(&cache, &format!("more {}", more + n), b"")));
            more += 9;
        }
        true
    });
    assert!(seen.is_superset(&names));
    assert!(more >= 2000, "the table grew several times");
}
