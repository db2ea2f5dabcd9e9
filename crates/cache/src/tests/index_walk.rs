//! Index walks: expired objects are removed, and no others.

use super::*;

/// Walks once around, and removes the objects stale before `now_ms`. Returns the number of pauses.
fn drop_stale(cache: &Cache, walk: &mut IndexWalk, places: usize, now_ms: u64) -> usize {
    let mut pauses = 0;
    cache.drop_expired(walk, places, &|object| !object.is_fresh(now_ms), &mut || pauses += 1);
    pauses
}

#[test]
fn what_is_over_leaves_and_gives_its_memory_back() {
    let cache = cache();
    let empty = cache.stats().bytes;
    for n in 0..1000 {
        put(&cache, &format!("page {n}"), b"body");
    }
    let full = cache.stats().bytes;
    let mut walk = IndexWalk::default();
    drop_stale(&cache, &mut walk, 1 << 20, 9_999);
    assert_eq!(cache.stats().objects, 1000);
    drop_stale(&cache, &mut walk, 1 << 20, 10_000);
    let stats = cache.stats();
    assert_eq!((stats.objects, stats.expired, stats.invalidated, cache.keys()), (0, 1000, 0, 0));
    assert!(stats.bytes - empty < (full - empty) / 2, "{} of {full}", stats.bytes);
    cache.check();
}

#[test]
fn a_walk_continues_from_its_position() {
    let cache = cache();
    for n in 0..20_000 {
        put(&cache, &format!("page {n}"), b"");
    }
    let mut walk = IndexWalk::default();
    let mut before = 20_000;
    for _ in 0..1000 {
        drop_stale(&cache, &mut walk, 1024, 10_000);
        let now = cache.stats().objects;
        assert!(before - now <= 1024 + 128, "{before} to {now}");
        before = now;
        if now == 0 {
            return;
        }
    }
    panic!("{before} are left");
}

#[test]
fn an_object_stays_until_its_refresh_has_ended() {
    let cache = cache();
    let old = put(&cache, "page", b"old");
    let lead = cache.begin_refresh(&key("page"), &old).expect("a fetch");
    drop_stale(&cache, &mut IndexWalk::default(), 1 << 20, 10_000);
    assert!(old.is_live() && cache.stats().objects == 1);
    let new = NewObject { born_ms: 10_000, length: None, ..head(None) };
    assert!(lead.freshen(permit(), &old, new, None).is_live());
    drop_stale(&cache, &mut IndexWalk::default(), 1 << 20, 10_000);
    assert_eq!(cache.stats().objects, 1);
}
