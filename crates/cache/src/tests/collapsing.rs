//! Request collapsing: one request fetches, the others wait.

use super::*;

fn ticket(begin: FetchDecision) -> Ticket {
    match begin {
        FetchDecision::Wait(ticket) => ticket,
        other => panic!("expected to wait, not {other:?}"),
    }
}

#[test]
fn one_fetches_and_the_others_wait() {
    let cache = cache();
    let FetchDecision::Lead(lead) = begin(&cache, "/a") else { panic!("the first fetches") };
    assert!(!lead.is_watched());
    let tickets: Vec<_> = (0..10).map(|_| ticket(begin(&cache, "/a"))).collect();
    assert!(lead.is_watched());
    assert!(matches!(begin(&cache, "/b"), FetchDecision::Lead(_)), "other keys do not wait");
    let filling = lead.store(permit(), head(Some(0)), None);
    for ticket in tickets {
        let WaiterOutcome::Ready(object) = block_on(ticket) else { panic!("stored") };
        assert!(Arc::ptr_eq(&object, filling.object()));
    }
    assert!(matches!(begin(&cache, "/a"), FetchDecision::Object(_)));
}

#[test]
fn a_fetch_that_is_handed_back_begins_again_for_all() {
    let cache = cache();
    let FetchDecision::Lead(lead) = begin(&cache, "/a") else { panic!("the first fetches") };
    let tickets = [ticket(begin(&cache, "/a")), ticket(begin(&cache, "/a"))];
    lead.hand_back();
    for ticket in tickets {
        assert!(matches!(block_on(ticket), WaiterOutcome::Again));
    }
    let FetchDecision::Lead(_lead) = begin(&cache, "/a") else { panic!("one fetches again") };
    _ = ticket(begin(&cache, "/a"));
}

#[test]
fn waiters_on_other_threads_are_woken() {
    let cache = cache();
    let lead = lead(begin(&cache, "/a"));
    let waiters: Vec<_> = (0..4)
        .map(|_| {
            let ticket = ticket(begin(&cache, "/a"));
            std::thread::spawn(move || matches!(block_on(ticket), WaiterOutcome::Failed))
        })
        .collect();
    lead.fail();
    assert!(waiters.into_iter().all(|waiter| waiter.join().expect("no panic")));
}

#[test]
fn a_lead_dropped_at_any_point_wakes_its_waiters() {
    let cache = cache();
    // Before the head.
    let first = lead(begin(&cache, "/a"));
    let mut waiting = ticket(begin(&cache, "/a"));
    assert!(poll_once(&mut waiting).is_pending());
    drop(first);
    assert!(matches!(block_on(waiting), WaiterOutcome::Failed));
    // With the head, before the body.
    let second = lead(begin(&cache, "/a"));
    let waiting = ticket(begin(&cache, "/a"));
    drop(second.store(permit(), head(Some(3)), None));
    let WaiterOutcome::Ready(object) = block_on(waiting) else { panic!("the head came") };
    assert_eq!(read_all(object.reader()), Err(IncompleteBody));
    drop(object);
    // In the middle of the body.
    let third = lead(begin(&cache, "/a"));
    let waiting = ticket(begin(&cache, "/a"));
    let mut filling = third.store(permit(), head(Some(3)), None);
    assert_eq!(filling.push(b"ab"), PushOutcome::Ok);
    let WaiterOutcome::Ready(object) = block_on(waiting) else { panic!("the head came") };
    let mut reader = object.reader();
    drop(filling);
    assert_eq!(read_once(&mut reader), Some(Ok(Some(b"ab"[..].into()))));
    assert_eq!(read_once(&mut reader), Some(Err(IncompleteBody)));
    drop((object, reader));
    // As a refresh.
    let object = put(&cache, "/a", b"a");
    let refresh = cache.begin_refresh(&key("/a"), &object).expect("no fetch is under way");
    let options = BeginOptions { rejected: Some(&object), ..BeginOptions::default() };
    let waiting = ticket(cache.begin(&key("/a"), &mut plain, options, 0));
    drop(refresh);
    assert!(matches!(block_on(waiting), WaiterOutcome::Failed));
    assert!(object.is_live());
    // After a panic.
    let last = lead(begin(&cache, "/b"));
    let waiting = ticket(begin(&cache, "/b"));
    let panicking = std::thread::spawn(move || {
        let _last = last;
        std::panic::resume_unwind(Box::new(()));
    });
    assert!(panicking.join().is_err());
    assert!(matches!(block_on(waiting), WaiterOutcome::Failed));
    drop(object);
    cache.clear();
    assert_eq!(cache.stats().bytes, 0);
}

#[test]
fn a_dropped_ticket_leaves_no_trace() {
    let cache = cache();
    let lead = lead(begin(&cache, "/a"));
    let before = cache.stats().bytes;
    let mut waiting = ticket(begin(&cache, "/a"));
    assert!(poll_once(&mut waiting).is_pending());
    assert!(cache.stats().bytes > before, "a waiter is counted");
    drop(waiting);
    assert!(!lead.is_watched());
    assert_eq!(cache.stats().bytes, before);
    drop(lead);
    cache.clear();
    assert_eq!(cache.stats().bytes, 0);
}

#[test]
fn more_than_the_limit_may_not_wait() {
    let cache = cache();
    cache.set_config(Config { waiters_max: 2, ..cache.config() });
    let lead = lead(begin(&cache, "/a"));
    let one = ticket(begin(&cache, "/a"));
    let _two = ticket(begin(&cache, "/a"));
    assert!(matches!(begin(&cache, "/a"), FetchDecision::Full));
    drop(one);
    let _three = ticket(begin(&cache, "/a"));
    lead.fail();
}

#[test]
fn a_refusal_makes_all_waiters_fetch_and_later_requests_too_for_a_time() {
    let cache = cache();
    let lead = lead(begin(&cache, "/a"));
    let waiting = ticket(begin(&cache, "/a"));
    lead.refuse(Some(500));
    assert!(matches!(block_on(waiting), WaiterOutcome::Refused));
    let at = |now| cache.begin(&key("/a"), &mut plain, BeginOptions::default(), now);
    assert!(matches!(cache.lookup(&key("/a"), &mut plain, 499), CacheLookup::HitForMiss));
    assert!(matches!(cache.lookup(&key("/a"), &mut plain, 500), CacheLookup::Nothing));
    let (FetchDecision::Alone(one), FetchDecision::Alone(two)) = (at(400), at(499)) else {
        panic!("no waiting")
    };
    assert!(!one.is_watched());
    // A storable response ends it.
    assert!(two.store(permit(), head(Some(0)), None).finish());
    assert!(found(&cache, "/a").is_some());
    drop(one);
    cache.invalidate(&key("/a"));
    assert!(matches!(at(400), FetchDecision::Lead(_)), "an invalidation forgets it");
}

#[test]
fn a_refusal_that_is_not_remembered_concerns_those_who_waited_only() {
    let cache = cache();
    let first = lead(begin(&cache, "/a"));
    let waiting = ticket(begin(&cache, "/a"));
    first.refuse(None);
    assert!(matches!(block_on(waiting), WaiterOutcome::Refused));
    assert!(matches!(begin(&cache, "/a"), FetchDecision::Lead(_)));
}

#[test]
fn without_collapsing_no_request_waits() {
    let cache = cache();
    let alone = BeginOptions { coalesce: false, rejected: None };
    let FetchDecision::Alone(one) = cache.begin(&key("/a"), &mut plain, alone, 0) else {
        panic!("alone")
    };
    assert!(
        matches!(begin(&cache, "/a"), FetchDecision::Lead(_)),
        "such a fetch is not waited for"
    );
    assert!(one.store(permit(), head(Some(0)), None).stored(), "and may be stored");
}

#[test]
fn a_rejected_object_is_not_offered_again_but_a_new_one_is() {
    let cache = cache();
    let old = put(&cache, "/a", b"old");
    let options = BeginOptions { rejected: Some(&old), ..BeginOptions::default() };
    let lead = lead(cache.begin(&key("/a"), &mut plain, options, 0));
    let waiting = ticket(cache.begin(&key("/a"), &mut plain, options, 0));
    assert!(matches!(begin(&cache, "/a"), FetchDecision::Object(_)));
    assert!(lead.store(permit(), head(Some(0)), None).finish());
    let FetchDecision::Object(new) = cache.begin(&key("/a"), &mut plain, options, 0) else {
        panic!("appeared meanwhile")
    };
    assert!(!Arc::ptr_eq(&new, &old));
    drop(waiting);
}

#[test]
fn requests_wait_for_the_first_fetch_until_its_vary_is_known() {
    let cache = cache();
    let begin_as =
        |value: &str| cache.begin(&key("/a"), &mut of(value), BeginOptions::default(), 0);
    let gzip = lead(begin_as("gzip"));
    let waiting = ticket(begin_as("br"));
    let vary = Some(Variant { spec: b"accept-encoding", signature: b"gzip" });
    assert!(gzip.store(permit(), head(Some(0)), vary).finish());
    let WaiterOutcome::Ready(object) = block_on(waiting) else { panic!("stored") };
    assert!(!object.matches(&mut of("br")));
    // Now its Vary is known.
    let br = lead(begin_as("br"));
    let zstd = lead(begin_as("zstd"));
    let waiting = ticket(begin_as("br"));
    drop(zstd);
    br.fail();
    assert!(matches!(block_on(waiting), WaiterOutcome::Failed));
    assert!(matches!(begin_as("gzip"), FetchDecision::Object(_)));
}

#[test]
fn a_refresh_is_waited_for_by_requests_of_its_variant_only() {
    let cache = cache();
    let gzip = put_variant(&cache, "/a", head(None), "accept-encoding", "gzip");
    let refresh = cache.begin_refresh(&key("/a"), &gzip).expect("no fetch is under way");
    let options = BeginOptions { rejected: Some(&gzip), ..BeginOptions::default() };
    let waiting = ticket(cache.begin(&key("/a"), &mut of("gzip"), options, 0));
    let br = lead(cache.begin(&key("/a"), &mut of("br"), options, 0));
    let vary = gzip.vary();
    let fresh = refresh.freshen(permit(), &gzip, head(None), vary);
    let WaiterOutcome::Ready(object) = block_on(waiting) else { panic!("confirmed") };
    assert!(Arc::ptr_eq(&object, &fresh));
    drop(br);
    assert!(cache.begin_refresh(&key("/a"), &gzip).is_none(), "it has left the index");
}

#[test]
fn without_memory_requests_fetch_alone_and_store_nothing() {
    let cache = Cache::new(config(64));
    let FetchDecision::Alone(lead) = begin(&cache, "/a") else {
        panic!("no memory to be waited for")
    };
    let mut filling = lead.store(permit(), head(Some(3)), None);
    assert!(!filling.stored() && filling.is_window());
    let reader = filling.object().reader();
    assert_eq!(filling.push(b"abc"), PushOutcome::Ok);
    assert!(filling.finish());
    assert_eq!(read_all(reader).expect("complete"), b"abc");
    assert_eq!(cache.stats().bytes, 0);
}

/// The lead that renews `old`, which is stored as `/a`.
fn renewal(cache: &Arc<Cache>, old: &Arc<Object>) -> Lead {
    let mut lead = cache.begin_refresh(&key("/a"), old).expect("there and idle");
    lead.renews(old);
    lead
}

#[test]
fn a_superseded_object_is_gone_and_its_waiters_are_refused() {
    let cache = cache();
    let old = put(&cache, "/a", b"old");
    let lead = renewal(&cache, &old);
    let options = BeginOptions { rejected: Some(&old), ..BeginOptions::default() };
    let waiting = ticket(cache.begin(&key("/a"), &mut plain, options, 0));
    lead.supersede(None);
    assert!(!old.is_live() && found(&cache, "/a").is_none());
    assert!(matches!(block_on(waiting), WaiterOutcome::Refused));
    // An invalidation in between takes effect: later responses stay.
    let old = put(&cache, "/a", b"old");
    let lead = renewal(&cache, &old);
    cache.invalidate(&key("/a"));
    let new = put(&cache, "/a", b"new");
    lead.supersede(None);
    assert!(new.is_live());
    // With a time, later requests do not wait for each other.
    renewal_of(&cache, b"other").supersede(Some(1000));
    assert!(matches!(cache.lookup(&key("/a"), &mut plain, 999), CacheLookup::HitForMiss));
    let alone = cache.begin(&key("/a"), &mut plain, BeginOptions::default(), 999);
    assert!(matches!(alone, FetchDecision::Alone(_)));
}

fn renewal_of(cache: &Arc<Cache>, body: &[u8]) -> Lead {
    let old = put(cache, "/a", body);
    renewal(cache, &old)
}

#[test]
fn a_refused_response_leaves_what_it_was_to_renew() {
    let cache = cache();
    renewal_of(&cache, b"old").refuse(Some(1000));
    assert!(found(&cache, "/a").is_some());
    renewal_of(&cache, b"old").fail();
    assert!(found(&cache, "/a").is_some());
}

#[test]
fn a_renewed_response_leaves_whatever_the_new_one_varies_by() {
    let cache = cache();
    let old = put(&cache, "/a", b"old");
    let vary = Some(Variant { spec: b"x", signature: b"1" });
    assert!(renewal(&cache, &old).store(permit(), head(Some(0)), vary).finish());
    assert!(!old.is_live(), "it would be chosen for those whom the new one is not for");
    let mark = NewObject { flags: Flags { hit_for_miss: true, ..Flags::default() }, ..head(None) };
    let old = cache.lookup(&key("/a"), &mut of("1"), 0);
    let CacheLookup::Object(old) = old else { panic!("the new one") };
    renewal(&cache, &old).mark(mark, None);
    let CacheLookup::Object(mark) = cache.lookup(&key("/a"), &mut of("1"), 0) else {
        panic!("a mark")
    };
    assert!(mark.flags().is_mark() && mark.head().is_empty() && !old.is_live());
}

#[test]
fn a_head_that_is_laid_over_is_for_one_and_in_no_index() {
    for ends in [false, true] {
        let cache = cache();
        let old = put(&cache, "/a", b"body");
        let before = cache.stats().bytes;
        let lead = cache.begin_refresh(&key("/a"), &old).expect("there and idle");
        let options = BeginOptions { rejected: Some(&old), ..BeginOptions::default() };
        let waiting = ticket(cache.begin(&key("/a"), &mut plain, options, 0));
        let new = NewObject { head: (*b"for one").into(), etag: None, ..head(None) };
        let once = lead.confirm_for_one(&old, &new, ends, None);
        assert_eq!((once.head(), read_all(once.reader())), (&b"for one"[..], Ok(b"body".to_vec())));
        assert!(!once.is_live() && old.is_live() != ends);
        assert!(matches!(block_on(waiting), WaiterOutcome::Refused));
        let there = found(&cache, "/a");
        assert_eq!(there.as_ref().is_some_and(|there| Arc::ptr_eq(there, &old)), !ends);
        drop((there, once, old));
        let after = cache.stats().bytes;
        assert_eq!((after == before, after < before), (!ends, ends));
    }
}
