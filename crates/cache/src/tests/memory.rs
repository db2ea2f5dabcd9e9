//! The memory that an object costs beside its body.

use super::*;
use crate::shard::KeyLocation;
use crate::size;

#[test]
fn the_structures_of_an_object_have_their_promised_sizes() {
    assert_eq!(size::arc::<Object>(), 160);
    assert_eq!(size_of::<Object>(), 144);
    assert_eq!(size_of::<crate::slot::IndexSlot>(), 16);
    assert_eq!(size_of::<crate::shard::ColdEntry<u64>>(), 16);
    assert_eq!(size_of::<crate::content::CompleteBody>(), 16);
    // A longer reply is copied by a call instead of a few moves, at every hit.
    assert_eq!(size_of::<Reader>(), 64);
}

/// A sixteenth of the shards filled as full as a million objects would fill all of them.
#[test]
fn a_million_small_objects_cost_at_most_450_bytes_each_over_their_bodies() {
    const OBJECTS: usize = 1_000_000 / 16;
    const BODY: usize = 1024;
    let cache = Cache::new(config(1 << 30));
    let mut stored = 0;
    for n in 0.. {
        let mut key = KeyBuf::new();
        key.field(b"sample.org");
        key.field(format!("/page/{n:07}").as_bytes());
        key.finish(&HashSeed::from_u64(1));
        if KeyLocation::of(key.hash(), 64).shard >= 4 {
            continue;
        }
        assert_eq!(key.bytes().len(), 25);
        let lead = lead(cache.begin(&key, &mut plain, BeginOptions::default(), 0));
        let new = NewObject { head: vec![b'h'; 180].into(), etag: None, ..head(Some(BODY as u64)) };
        let mut filling = lead.store(permit(), new, None);
        assert_eq!(filling.push(&[0; BODY]), PushOutcome::Ok);
        assert!(filling.finish());
        stored += 1;
        if stored == OBJECTS {
            break;
        }
    }
    let full = cache.stats();
    assert_eq!(full.objects, OBJECTS as u64);
    let over = |bytes: u64, objects: u64| bytes / objects - BODY as u64;
    assert!(over(full.bytes, full.objects) <= 450, "{}", over(full.bytes, full.objects));
    // And in the steady state, both queues and the ghost grown.
    cache.set_config(config(full.bytes));
    for n in 0..2 * OBJECTS {
        let mut key = KeyBuf::new();
        key.field(b"sample.net");
        key.field(format!("/page/{n:07}").as_bytes());
        key.finish(&HashSeed::from_u64(1));
        if KeyLocation::of(key.hash(), 64).shard < 4 {
            let lead = lead(cache.begin(&key, &mut plain, BeginOptions::default(), 0));
            let new = NewObject { head: vec![b'h'; 180].into(), ..head(Some(BODY as u64)) };
            let mut filling = lead.store(permit(), NewObject { etag: None, ..new }, None);
            assert_eq!(filling.push(&[0; BODY]), PushOutcome::Ok);
            assert!(filling.finish());
        }
    }
    let steady = cache.stats();
    assert!(steady.evictions > 1000 && steady.bytes <= full.bytes);
    assert!(over(steady.bytes, steady.objects) <= 450, "{}", over(steady.bytes, steady.objects));
    cache.clear();
    assert_eq!(cache.stats().bytes, 0);
}
