//! Lookups: index, variants and invalidation.

use super::*;

#[test]
fn a_stored_response_is_found_with_all_it_was_stored_with() {
    let cache = cache();
    assert!(found(&cache, "/a").is_none());
    put(&cache, "/a", b"hello");
    let object = found(&cache, "/a").expect("stored");
    assert_eq!(object.status(), Status::OK);
    assert!(object.head().starts_with(b"HTTP/1.1 200"));
    assert_eq!(object.etag(), Some(&b"\"x\""[..]));
    assert_eq!(object.last_modified(), Some(1_700_000_000));
    assert_eq!(object.date(), Some(1_700_000_100));
    assert_eq!((object.born_ms(), object.lifetime_ms(), object.grace_ms()), (0, 10_000, 5000));
    assert_eq!(
        (object.stale_if_error_ms(), object.stale_if_unreachable_ms()),
        (60_000, 86_400_000)
    );
    assert_eq!(object.flags(), Flags { shared: true, ..Flags::default() });
    assert_eq!(object.key(), key("/a").bytes());
    assert_eq!(object.length(), Some(5));
    assert_eq!(bytes_of(&object).expect("complete"), b"hello");
    assert!(object.is_live() && object.vary().is_none());
    assert!(found(&cache, "/b").is_none());
}

#[test]
fn keys_with_one_hash_are_distinguished_by_their_bytes() {
    let cache = cache();
    let (mut a, mut b) = (KeyBuf::new(), KeyBuf::new());
    a.field(b"a");
    b.field(b"b");
    // Not finished, with both hashes zero.
    let lead = lead(cache.begin(&a, &mut plain, BeginOptions::default(), 0));
    assert!(lead.store(permit(), head(Some(0)), None).finish());
    assert!(matches!(cache.lookup(&a, &mut plain, 0), CacheLookup::Object(_)));
    assert!(matches!(cache.lookup(&b, &mut plain, 0), CacheLookup::Nothing));
}

#[test]
fn freshness_ends_with_the_lifetime_and_age_counts_from_birth() {
    let cache = cache();
    let new = NewObject { born_ms: -4000, ..head(Some(0)) };
    let filling = lead(begin(&cache, "/a")).store(permit(), new, None);
    let object = Arc::clone(filling.object());
    assert!(filling.finish());
    assert!(object.is_fresh(5999) && !object.is_fresh(6000));
    assert_eq!((object.stale_ms(5999), object.stale_ms(6500)), (0, 500));
    assert_eq!(object.age_ms(1000), 5000);
}

#[test]
fn hits_are_counted() {
    let cache = cache();
    put(&cache, "/a", b"");
    for _ in 0..5 {
        found(&cache, "/a").expect("stored");
    }
    // Storing looked it up before it existed.
    assert_eq!(found(&cache, "/a").map(|object| object.hits()), Some(6));
}

#[test]
fn a_new_response_takes_the_place_of_the_old_one() {
    let cache = cache();
    let old = put(&cache, "/a", b"old");
    let new = put(&cache, "/a", b"new");
    assert!(Arc::ptr_eq(&found(&cache, "/a").expect("stored"), &new));
    assert!(!old.is_live());
    assert_eq!(bytes_of(&old).expect("still whole"), b"old");
    assert_eq!(cache.stats().objects, 1);
}

#[test]
fn variants_are_chosen_by_signature() {
    let cache = cache();
    let gzip = put_variant(&cache, "/a", head(None), "accept-encoding", "gzip");
    let br = put_variant(&cache, "/a", head(None), "accept-encoding", "br");
    for (signature, object) in [("gzip", &gzip), ("br", &br)] {
        match cache.lookup(&key("/a"), &mut of(signature), 0) {
            CacheLookup::Object(found) => assert!(Arc::ptr_eq(&found, object)),
            other => panic!("{other:?}"),
        }
        assert!(object.matches(&mut of(signature)) && !object.matches(&mut of("zstd")));
    }
    assert!(matches!(cache.lookup(&key("/a"), &mut of("zstd"), 0), CacheLookup::Nothing));
    let again = put_variant(&cache, "/a", head(None), "accept-encoding", "gzip");
    assert!(again.is_live() && !gzip.is_live() && br.is_live());
}

#[test]
fn every_distinct_vary_is_asked_about_once_and_the_latest_date_wins() {
    let cache = cache();
    let dated = |date| NewObject { date: Some(date), ..head(None) };
    put_variant(&cache, "/a", dated(5), "one", "s");
    put_variant(&cache, "/a", dated(9), "two", "s");
    put_variant(&cache, "/a", dated(7), "one", "t");
    let asked = std::cell::RefCell::new(Vec::new());
    let mut select = |spec: &VarySpec, out: &mut Vec<u8>| {
        asked.borrow_mut().push(spec.to_vec());
        out.extend_from_slice(b"s");
    };
    let CacheLookup::Object(best) = cache.lookup(&key("/a"), &mut select, 0) else {
        panic!("stored")
    };
    assert_eq!(best.date(), Some(9));
    assert_eq!(*asked.borrow(), [b"one".to_vec(), b"two".to_vec()]);
}

#[test]
fn of_equal_dates_the_response_stored_last_is_chosen() {
    let cache = cache();
    put_variant(&cache, "/a", head(None), "one", "s");
    let last = put_variant(&cache, "/a", head(None), "two", "s");
    let CacheLookup::Object(best) = cache.lookup(&key("/a"), &mut of("s"), 0) else {
        panic!("stored")
    };
    assert!(Arc::ptr_eq(&best, &last));
}

#[test]
fn beyond_the_limit_the_oldest_variant_leaves() {
    let cache = cache();
    let all: Vec<_> =
        (0..9).map(|n| put_variant(&cache, "/a", head(None), "spec", &n.to_string())).collect();
    let live: Vec<_> = all.iter().map(|object| object.is_live()).collect();
    assert_eq!(live, [false, false, false, false, false, true, true, true, true]);
    assert_eq!((cache.stats().objects, cache.stats().evictions), (4, 5));
}

#[test]
fn invalidation_removes_all_variants_of_its_key_only() {
    let cache = cache();
    put_variant(&cache, "/a", head(None), "spec", "1");
    put_variant(&cache, "/a", head(None), "spec", "2");
    put(&cache, "/b", b"b");
    assert_eq!(cache.invalidate(&key("/a")), 2);
    assert_eq!(cache.invalidate(&key("/a")), 0);
    assert!(matches!(cache.lookup(&key("/a"), &mut of("1"), 0), CacheLookup::Nothing));
    assert!(found(&cache, "/b").is_some());
    assert_eq!((cache.stats().objects, cache.stats().invalidated), (1, 2));
}

#[test]
fn a_fetch_under_way_at_an_invalidation_never_becomes_visible() {
    let cache = cache();
    for invalidate in
        [(|cache: &Cache| cache.invalidate(&key("/a"))) as fn(&Cache) -> usize, |cache| {
            cache.clear()
        }]
    {
        let before = lead(begin(&cache, "/a"));
        let FetchDecision::Wait(ticket) = begin(&cache, "/a") else {
            panic!("a fetch is under way")
        };
        invalidate(&cache);
        // A request after the invalidation does not wait for a fetch from before it.
        let after = lead(begin(&cache, "/a"));
        let mut filling = before.store(permit(), head(Some(2)), None);
        assert!(!filling.stored() && !filling.is_window());
        assert!(matches!(block_on(ticket), WaiterOutcome::Ready(_)), "who waited before gets it");
        assert_eq!(filling.push(b"ab"), PushOutcome::Ok);
        let object = Arc::clone(filling.object());
        assert!(filling.finish());
        assert_eq!(bytes_of(&object).expect("whole"), b"ab");
        assert!(found(&cache, "/a").is_none() && !object.is_live());
        let filling = after.store(permit(), head(Some(0)), None);
        assert!(filling.stored());
        assert!(filling.finish());
        assert!(found(&cache, "/a").is_some());
        cache.clear();
    }
}

#[test]
fn an_object_invalidated_while_it_fills_stays_out_and_reaches_its_readers() {
    let cache = cache();
    let mut filling = lead(begin(&cache, "/a")).store(permit(), head(Some(4)), None);
    assert_eq!(filling.push(b"ab"), PushOutcome::Ok);
    let reader = filling.object().reader();
    assert_eq!(cache.invalidate(&key("/a")), 1);
    assert_eq!(filling.push(b"cd"), PushOutcome::Ok);
    assert!(filling.finish());
    assert_eq!(read_all(reader).expect("complete"), b"abcd");
    assert!(found(&cache, "/a").is_none());
}

#[test]
fn a_soft_purge_ends_freshness_now_and_for_what_is_being_fetched() {
    let cache = cache();
    let object = put(&cache, "/a", b"a");
    let lead = begin_anew(&cache, "/a");
    assert_eq!(cache.soft_invalidate(&key("/a"), 3000), 1);
    assert!(object.is_fresh(2999) && !object.is_fresh(3000) && object.is_live());
    assert_eq!((object.stale_ms(4000), object.grace_ms()), (1000, 5000));
    let filling = lead.store(permit(), NewObject { born_ms: 2000, ..head(Some(0)) }, None);
    assert!(!filling.object().is_fresh(3000), "fetched before the purge");
    assert!(filling.finish());
    let later = put(&cache, "/a", b"b");
    assert!(later.is_fresh(3000));
    assert_eq!(cache.soft_invalidate(&key("/b"), 0), 0);
}

#[test]
fn who_waits_since_a_soft_purge_gets_nothing_fresh_from_before_it_stored_or_not() {
    for is_stored in [true, false] {
        let cache = cache();
        let lead = begin_anew(&cache, "/a");
        cache.soft_invalidate(&key("/a"), 3000);
        let FetchDecision::Wait(ticket) = begin(&cache, "/a") else { panic!("it waits") };
        if !is_stored {
            // The fetch leaves the key, so later events do not reach it.
            cache.invalidate(&key("/a"));
        }
        let filling = lead.store(permit(), NewObject { born_ms: 2000, ..head(Some(0)) }, None);
        let WaiterOutcome::Ready(object) = block_on(ticket) else { panic!("it has come") };
        assert_eq!((object.is_live(), object.is_fresh(3000)), (is_stored, false));
        assert!(filling.finish());
    }
}

#[test]
fn a_304_for_a_superseded_response_does_not_get_past_an_invalidation() {
    let cache = cache();
    let old = put(&cache, "/a", b"old");
    put(&cache, "/a", b"new");
    cache.invalidate(&key("/a"));
    // The invalidation did not reach `old`, which was out already, and the fetch began after it.
    let options = BeginOptions { rejected: Some(&old), ..BeginOptions::default() };
    let FetchDecision::Lead(lead) = cache.begin(&key("/a"), &mut plain, options, 0) else {
        panic!("no fetch is under way")
    };
    let confirmed = lead.freshen(permit(), &old, head(None), None);
    assert!(!confirmed.is_live());
    assert!(found(&cache, "/a").is_none());
}

#[test]
fn a_304_gives_the_same_body_a_new_head_in_one_step() {
    let cache = cache();
    for size in [0, 5, 20_000, 300_000] {
        let body = pattern(size);
        let old = put(&cache, "/a", &body);
        let lead = cache.begin_refresh(&key("/a"), &old).expect("no fetch is under way");
        assert!(cache.begin_refresh(&key("/a"), &old).is_none(), "one refresh at a time");
        assert!(found(&cache, "/a").is_some_and(|object| Arc::ptr_eq(&object, &old)));
        let new =
            NewObject { born_ms: 7000, head: (*b"new head").into(), etag: None, ..head(None) };
        let fresh = lead.freshen(permit(), &old, new, None);
        assert!(found(&cache, "/a").is_some_and(|object| Arc::ptr_eq(&object, &fresh)));
        assert!(!old.is_live() && fresh.is_live());
        assert_eq!((fresh.head(), fresh.etag()), (&b"new head"[..], None));
        assert_eq!(bytes_of(&fresh).expect("whole"), body);
        assert_eq!(read_all(fresh.reader()).expect("complete"), body);
        assert_eq!(fresh.length(), Some(size as u64));
        // Once more: bodies are not chained from head to head.
        let lead = cache.begin_refresh(&key("/a"), &fresh).expect("no fetch is under way");
        drop(old);
        let third = lead.freshen(permit(), &fresh, head(None), None);
        drop(fresh);
        assert_eq!(bytes_of(&third).expect("whole"), body);
        assert_eq!(cache.stats().objects, 1);
        drop(third);
        cache.clear();
        assert_eq!(cache.stats().bytes, 0, "{size}");
    }
}

#[test]
fn a_304_does_not_bring_back_what_was_invalidated() {
    let cache = cache();
    let old = put(&cache, "/a", b"a");
    cache.invalidate(&key("/a"));
    // Begun after the invalidation, with an object found before it.
    let fresh = begin_anew(&cache, "/a").freshen(permit(), &old, head(None), None);
    assert_eq!(bytes_of(&fresh).expect("whole"), b"a");
    assert!(!fresh.is_live() && found(&cache, "/a").is_none());
}

#[test]
fn a_waiter_from_after_an_invalidation_gets_no_object_from_before_it() {
    let cache = cache();
    let old = put(&cache, "/a", b"a");
    cache.invalidate(&key("/a"));
    let lead = begin_anew(&cache, "/a");
    let FetchDecision::Wait(waiting) = begin(&cache, "/a") else { panic!("a fetch is under way") };
    let confirmed = lead.freshen(permit(), &old, head(None), None);
    assert!(matches!(block_on(waiting), WaiterOutcome::Refused));
    assert_eq!(bytes_of(&confirmed).expect("for who had it before"), b"a");
}

#[test]
fn a_304_for_a_body_still_coming_shares_its_fate() {
    let cache = cache();
    for complete in [true, false] {
        let mut filling = lead(begin(&cache, "/a")).store(permit(), head(Some(4)), None);
        assert_eq!(filling.push(b"ab"), PushOutcome::Ok);
        let old = Arc::clone(filling.object());
        let refresh = cache.begin_refresh(&key("/a"), &old).expect("its answer is known");
        let fresh = refresh.freshen(permit(), &old, head(None), None);
        assert!(fresh.is_live() && fresh.whole().is_none());
        let reader = fresh.reader();
        let second = cache.begin_refresh(&key("/a"), &fresh).expect("no fetch is under way");
        if complete {
            assert_eq!(filling.push(b"cd"), PushOutcome::Ok);
            assert!(filling.finish());
            assert_eq!(read_all(reader).expect("complete"), b"abcd");
            assert!(fresh.is_live());
        } else {
            filling.abort();
            assert_eq!(read_all(reader), Err(IncompleteBody));
            assert!(!fresh.is_live() && found(&cache, "/a").is_none());
        }
        let third = second.freshen(permit(), &fresh, head(None), None);
        assert_eq!(third.is_live(), complete, "an aborted body does not come back");
        drop((old, fresh, third));
        cache.clear();
        assert_eq!(cache.stats().bytes, 0);
    }
}
