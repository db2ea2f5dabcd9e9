//! Peeks, which change nothing.

use super::*;

fn peek(cache: &Cache, name: &str) -> KeyInspection {
    cache.peek(&key(name), &mut of("text"))
}

fn ban(text: &str, soft: bool, now_ms: u64) -> NewBan {
    NewBan { text: text.into(), soft, now_ms, ..NewBan::default() }
}

/// Stores 3000 objects, and after every third calls `look` for all so far. Returns the numbers of
/// the survivors, and the counters.
fn survivors(look: impl Fn(&Cache, &str)) -> (Vec<u32>, Stats) {
    let cache = Cache::new(config(MIB));
    for n in 0..3000 {
        put(&cache, &n.to_string(), &[0; 1000]);
        if n % 3 == 0 {
            for at in 0..=n {
                look(&cache, &at.to_string());
            }
        }
    }
    let stats = cache.stats();
    let is_there = |n: &u32| !peek(&cache, &n.to_string()).variants.is_empty();
    ((0..3000).filter(is_there).collect(), stats)
}

#[test]
fn looking_leaves_hits_order_of_eviction_and_figures_as_they_are() {
    let (unseen, unseen_stats) = survivors(|_, _| ());
    let (seen, seen_stats) = survivors(|cache, name| drop(peek(cache, name)));
    assert_eq!((unseen, unseen_stats), (seen, seen_stats));
    let cache = cache();
    let object = put(&cache, "a", b"body");
    drop(found(&cache, "a"));
    let before =
        (object.hits(), object.index_state.frequency(), object.index_state.place(), cache.stats());
    assert_eq!(peek(&cache, "a").found, Some(0));
    assert_eq!(
        before,
        (object.hits(), object.index_state.frequency(), object.index_state.place(), cache.stats())
    );
    cache.check();
}

#[test]
fn it_sees_what_a_lookup_would_find() {
    let cache = cache();
    assert_eq!(peek(&cache, "none").variants.len(), 0);
    let older = put_variant(&cache, "a", head(None), "accept", "text");
    let other = put_variant(&cache, "a", head(None), "accept", "html");
    let seen = peek(&cache, "a");
    let objects: Vec<_> = seen.variants.iter().map(|seen| Arc::as_ptr(&seen.object)).collect();
    assert_eq!(objects, [Arc::as_ptr(&older), Arc::as_ptr(&other)]);
    assert_eq!((seen.found, seen.is_fetched, seen.marked_until_ms), (Some(0), false, None));
}

#[test]
fn bans_are_foreseen_and_not_carried_out() {
    let cache = cache();
    put_variant(&cache, "a", head(None), "accept", "text");
    cache.ban(ban("soft", true, 700));
    let seen = &peek(&cache, "a").variants[0];
    assert!(!seen.is_banned && seen.bans[0].is_soft() && seen.bans[0].objects() == 0);
    assert_eq!((seen.fresh_until_ms, seen.object.fresh_until_ms()), (700, 10_000));
    cache.ban(ban("hard", false, 800));
    let seen = peek(&cache, "a");
    assert!(seen.found.is_none() && seen.variants[0].is_banned);
    assert_eq!(seen.variants[0].bans.len(), 2);
    assert_eq!((cache.stats().objects, cache.stats().invalidated), (1, 0));
    assert!(matches!(cache.lookup(&key("a"), &mut of("text"), 0), CacheLookup::Nothing));
    assert_eq!(cache.stats().objects, 0);
}

#[test]
fn fetches_under_way_and_marks_are_seen() {
    let cache = cache();
    let lead = lead(begin(&cache, "a"));
    assert!(peek(&cache, "a").is_fetched);
    lead.refuse(Some(500));
    let seen = peek(&cache, "a");
    assert_eq!((seen.is_fetched, seen.marked_until_ms), (false, Some(500)));
}

#[test]
fn the_reason_why_a_response_is_not_stored_is_reported() {
    let cache = cache();
    let large = begin_anew(&cache, "a").store(permit(), head(Some(2 * MIB)), None);
    assert_eq!(large.refused(), Some(StoreRefusal::TooLarge));
    let lead = begin_anew(&cache, "b");
    cache.invalidate(&key("b"));
    assert_eq!(
        lead.store(permit(), head(Some(1)), None).refused(),
        Some(StoreRefusal::Invalidated)
    );
    let mut grown = begin_anew(&cache, "c").store(permit(), head(None), None);
    assert_eq!(grown.refused(), None);
    let reader = grown.object().reader();
    for _ in 0..3 {
        let _ = grown.push(&vec![0; MIB as usize / 2]);
    }
    assert_eq!(grown.refused(), Some(StoreRefusal::TooLarge));
    drop(reader);
    let tight = Cache::new(config(1));
    let lead = begin_anew(&tight, "d");
    assert_eq!(lead.store(permit(), head(Some(1)), None).refused(), Some(StoreRefusal::NoRoom));
}
