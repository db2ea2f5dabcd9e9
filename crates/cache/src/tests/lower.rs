//! The cache over a lower tier: what is demoted, what is promoted, and what must not be.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use base::Now;
use bytes::Bytes;
use parking_lot::Mutex;

use super::*;

mod properties;

/// A lower tier that keeps records as bytes, as a disk does.
#[derive(Debug)]
struct RecordTier {
    kept: Mutex<BTreeMap<u64, Kept>>,
    /// The number of responses that it accepts.
    room: AtomicUsize,
    clock: Mutex<Now>,
    /// The hashes passed to `discard_hash`.
    struck: Mutex<Vec<u32>>,
}

#[derive(Clone, Debug)]
struct Kept {
    hash: u64,
    passed: u32,
    record: Bytes,
    body: Bytes,
}

const START: Now = Now { mono_ms: 50_000, unix_ms: 1_700_000_000_000 };

impl RecordTier {
    fn new() -> Arc<Self> {
        let room = AtomicUsize::new(usize::MAX);
        Arc::new(Self {
            kept: Mutex::default(),
            room,
            clock: Mutex::new(START),
            struck: Mutex::default(),
        })
    }

    fn len(&self) -> usize {
        self.kept.lock().len()
    }

    fn read(&self, place: u64) -> Option<(Record, Bytes)> {
        let kept = self.kept.lock().get(&place).cloned()?;
        Some((Record::decode(&kept.record, *self.clock.lock())?, kept.body))
    }

    /// Another process over this tier's responses, after this time.
    fn restart(&self, stopped_ms: u64) -> (Arc<Self>, Arc<Cache<Self>>) {
        let unix_ms = self.clock.lock().unix_ms + stopped_ms;
        let clock = Mutex::new(Now { mono_ms: 1000, unix_ms });
        let room = AtomicUsize::new(usize::MAX);
        let kept = Mutex::new(self.kept.lock().clone());
        let tier = Arc::new(Self { kept, room, clock, struck: Mutex::default() });
        let cache = Cache::with_lower(Arc::clone(&tier), config(64 * MIB));
        let kept = tier.kept.lock().clone();
        assert!(kept.iter().all(|(place, kept)| cache.add_cold(kept.hash, *place, |_| true)));
        (tier, cache)
    }
}

impl Lower for RecordTier {
    type Place = u64;

    fn demote(&self, object: &Arc<Object>) -> Option<u64> {
        let mut kept = self.kept.lock();
        if kept.len() >= self.room.load(Ordering::Relaxed) {
            return None;
        }
        let mut record = Vec::new();
        object.encode(*self.clock.lock(), &mut record);
        let body = object.whole()?.pieces().collect::<Vec<_>>().concat();
        let hash = KeyBuf::of_bytes(object.key(), &HashSeed::from_u64(1)).hash();
        let place = kept.last_key_value().map_or(0, |(place, _)| place + 1);
        let passed = object.passed();
        kept.insert(place, Kept { hash, passed, record: record.into(), body: body.into() });
        Some(place)
    }

    fn forget(&self, place: u64) {
        assert!(self.kept.lock().remove(&place).is_some(), "it was kept until now");
    }

    fn discard_hash(&self, h32: u32) {
        self.struck.lock().push(h32);
    }

    fn passed(&self) -> Option<u32> {
        self.kept.lock().values().map(|kept| kept.passed).min()
    }
}

fn over(budget: u64) -> (Arc<RecordTier>, Arc<Cache<RecordTier>>) {
    let tier = RecordTier::new();
    (Arc::clone(&tier), Cache::with_lower(tier, config(budget)))
}

/// Copies everything to the tier.
fn copy(cache: &Cache<RecordTier>) -> usize {
    cache.copy_down(&mut IndexWalk::default(), usize::MAX, &|_| true, &mut || ())
}

/// Evicts all that it can.
fn press(cache: &Cache<RecordTier>) {
    let budget = cache.config().budget_bytes;
    cache.resize(0, 0);
    cache.resize(budget, 0);
}

fn fetching(cache: &Arc<Cache<RecordTier>>, name: &str) -> Lead<RecordTier> {
    let old = match cache.lookup(&key(name), &mut of("a"), 0) {
        CacheLookup::Object(object) => Some(object),
        _ => None,
    };
    let options = BeginOptions { coalesce: false, rejected: old.as_ref() };
    match cache.begin(&key(name), &mut of("a"), options, 0) {
        FetchDecision::Lead(lead) | FetchDecision::Alone(lead) => lead,
        other => panic!("expected to fetch, not {other:?}"),
    }
}

fn store(cache: &Arc<Cache<RecordTier>>, name: &str, new: NewObject, body: &[u8]) {
    let new = NewObject { length: Some(body.len() as u64), ..new };
    let mut filling = fetching(cache, name).store(permit(), new, None);
    assert_eq!(filling.push(body), PushOutcome::Ok);
    assert!(filling.finish());
}

/// Promotes the lower tier's response of the key to memory. `None` if it has no usable one.
fn raise(cache: &Arc<Cache<RecordTier>>, tier: &RecordTier, name: &str) -> Option<Arc<Object>> {
    let mut lead = fetching(cache, name);
    for place in lead.cold().to_vec() {
        let Some((record, body)) = tier.read(place) else { continue };
        if record.key() != key(name).bytes() || !record.matches(&mut of("a")) {
            lead.spare(place);
            continue;
        }
        match lead.refill(permit(), place, record, body.len() as u64) {
            Ok(mut filling) => {
                assert_eq!(filling.push(&body), PushOutcome::Ok);
                let object = Arc::clone(filling.object());
                return (filling.stored() && filling.finish()).then_some(object);
            }
            Err(goes_on) => lead = goes_on,
        }
    }
    None
}

/// Serves the lower tier's response of the key from below. `None` if it has no usable one.
fn serve_below(
    cache: &Arc<Cache<RecordTier>>,
    tier: &RecordTier,
    name: &str,
) -> Option<Arc<Object>> {
    let mut lead = fetching(cache, name);
    for place in lead.cold().to_vec() {
        let Some((record, body)) = tier.read(place) else { continue };
        if record.key() != key(name).bytes() || !record.matches(&mut of("a")) {
            continue;
        }
        let (first, second) = (body.slice(..body.len() / 2), body.slice(body.len() / 2..));
        match lead.serve_from_lower(
            permit(),
            place,
            record,
            LowerTierBody::Whole(vec![first, second]),
            None,
        ) {
            Ok(lent) => return lent,
            Err(goes_on) => lead = goes_on,
        }
    }
    None
}

fn is_in_memory(cache: &Cache<RecordTier>, name: &str) -> bool {
    matches!(cache.lookup(&key(name), &mut of("a"), 0), CacheLookup::Object(_))
}

#[test]
fn an_evicted_response_is_promoted_unchanged() {
    let (tier, cache) = over(MIB);
    let tagged = |n: u64| NewObject { tags: Tags::new(vec![n, 7]), ..head(None) };
    for n in 0..3000 {
        store(&cache, &n.to_string(), tagged(n), &pattern(n as usize));
    }
    let stats = cache.stats();
    assert_eq!(stats.objects + tier.len() as u64, 3000);
    assert!(stats.evictions > 2000 && stats.bytes <= MIB, "{stats:?}");
    cache.check();
    for n in (0..3000).rev().step_by(7) {
        let name = n.to_string();
        if is_in_memory(&cache, &name) {
            continue;
        }
        let object = raise(&cache, &tier, &name).expect("it has sunk");
        assert!(bytes_of(&object).expect("complete") == pattern(n as usize));
        assert_eq!((object.head(), object.etag()), (&*head(None).head, Some(&b"\"x\""[..])));
        assert_eq!(object.tags(), tagged(n).tags);
        assert_eq!((object.born_ms(), object.fresh_until_ms()), (0, 10_000));
        assert!(is_in_memory(&cache, &name));
    }
    cache.check();
    // Promoted objects have copies below, and count once.
    assert_eq!(cache.clear(), 3000);
    assert_eq!((tier.len(), cache.stats().bytes), (0, 0));
}

#[test]
fn a_response_that_the_tier_rejects_is_gone() {
    let (tier, cache) = over(MIB);
    tier.room.store(10, Ordering::Relaxed);
    (0..100).for_each(|n| store(&cache, &n.to_string(), head(None), b"x"));
    press(&cache);
    assert_eq!((tier.len(), cache.keys(), cache.stats().objects), (10, 10, 0));
}

#[test]
fn purged_superseded_or_expired_objects_are_not_demoted() {
    let (tier, cache) = over(MIB);
    for name in ["purged", "banned", "over", "superseded"] {
        store(&cache, name, head(None), b"old");
    }
    assert_eq!(cache.invalidate(&key("purged")), 1);
    store(&cache, "superseded", head(None), b"new");
    let over = |object: &Object| object.key() == key("over").bytes();
    cache.drop_expired(&mut IndexWalk::default(), usize::MAX, &over, &mut || ());
    assert_eq!(tier.len(), 0);
    let banned = |record: &Record| record.key() == key("banned").bytes();
    ban(&cache, banned, 0);
    press(&cache);
    assert_eq!(tier.len(), 1);
    let object = raise(&cache, &tier, "superseded").expect("it has sunk");
    assert_eq!(bytes_of(&object).as_deref(), Some(&b"new"[..]));
}

/// Adds a ban with `test`, and sweeps.
fn ban(cache: &Cache<RecordTier>, test: fn(&Record) -> bool, number: u32) {
    #[derive(Debug)]
    struct By(fn(&Record) -> bool);
    impl Test for By {
        fn matches(&self, record: &Record) -> bool {
            (self.0)(record)
        }
    }
    let which = BanSelector { tags: None, test: Some(Arc::new(By(test))) };
    let text = cache.stats().bans.to_string().into();
    let ban = cache.ban(NewBan { number, text, which, ..NewBan::default() });
    cache.sweep(ban.number(), 0, &mut || ());
}

#[test]
fn every_invalidation_of_a_key_reaches_what_has_sunk() {
    let (tier, cache) = over(MIB);
    let retime = LifetimeUpdate { grace_ms: Some(1), ..LifetimeUpdate::default() };
    let ways: [fn(&Cache<RecordTier>, &LifetimeUpdate) -> usize; 3] = [
        |cache, _| cache.invalidate(&key("/a")),
        |cache, _| cache.soft_invalidate(&key("/a"), 0),
        |cache, times| cache.retime(&key("/a"), times),
    ];
    for invalidate in ways {
        store(&cache, "/a", head(None), b"x");
        press(&cache);
        assert_eq!((tier.len(), is_in_memory(&cache, "/a")), (1, false));
        assert_eq!(invalidate(&cache, &retime), 1);
        assert_eq!((tier.len(), cache.keys()), (0, 0));
        assert!(raise(&cache, &tier, "/a").is_none());
    }
}

/// Events after which an earlier read of "/a" must not be used.
const OVERTAKING: [fn(&Arc<Cache<RecordTier>>); 3] = [
    |cache| _ = cache.invalidate(&key("/a")),
    |cache| _ = cache.clear(),
    |cache| store(cache, "/a", head(None), b"newer"),
];

#[test]
fn an_earlier_read_is_not_promoted_after_a_purge_or_a_newer_response() {
    let (tier, cache) = over(MIB);
    for overtake in OVERTAKING {
        store(&cache, "/a", head(None), b"older");
        press(&cache);
        let lead = fetching(&cache, "/a");
        let [place] = *lead.cold() else { panic!("it has sunk") };
        let (record, body) = tier.read(place).expect("kept");
        overtake(&cache);
        let mut filling = lead.refill(permit(), place, record, 5).expect("its key");
        assert_eq!(filling.refused(), Some(StoreRefusal::Invalidated));
        assert_eq!(filling.push(&body), PushOutcome::Ok);
        assert!(filling.finish());
        if let CacheLookup::Object(object) = cache.lookup(&key("/a"), &mut of("a"), 0) {
            assert_eq!(bytes_of(&object).as_deref(), Some(&b"newer"[..]));
        }
        cache.check();
    }
}

#[test]
fn a_response_served_from_below_stays_there_and_returns_its_memory() {
    let (tier, cache) = over(MIB);
    store(&cache, "/a", head(None), b"body");
    press(&cache);
    let before = cache.stats();
    let lent = serve_below(&cache, &tier, "/a").expect("it has sunk");
    assert_eq!(bytes_of(&lent).as_deref(), Some(&b"body"[..]));
    assert!(cache.stats().bytes >= before.bytes + lent.memory(), "it is charged");
    assert!(!lent.is_live() && !is_in_memory(&cache, "/a"));
    assert_eq!(lent.hits(), 1, "as one that is looked up");
    drop(lent);
    assert_eq!((cache.stats().bytes, tier.len()), (before.bytes, 1));
    // A read of it before does not count as its own.
    assert!(raise(&cache, &tier, "/a").is_some());
    cache.check();
}

#[test]
fn an_earlier_read_is_not_served_after_a_purge_a_ban_or_a_newer_response() {
    let (tier, cache) = over(MIB);
    let banned: fn(&Arc<Cache<RecordTier>>) = |cache| ban(cache, |_| true, 0);
    for overtake in OVERTAKING.into_iter().chain([banned]) {
        store(&cache, "/a", head(None), b"older");
        press(&cache);
        let lead = fetching(&cache, "/a");
        let [place] = *lead.cold() else { panic!("it has sunk") };
        let (record, body) = tier.read(place).expect("kept");
        overtake(&cache);
        let lent =
            lead.serve_from_lower(permit(), place, record, LowerTierBody::Whole(vec![body]), None);
        assert!(!matches!(lent, Ok(Some(_))));
        drop(lent);
        cache.check();
        cache.clear();
    }
}

#[test]
fn waiters_get_a_response_served_from_below() {
    let (tier, cache) = over(MIB);
    store(&cache, "/a", head(None), b"body");
    press(&cache);
    let begin = || cache.begin(&key("/a"), &mut of("a"), BeginOptions::default(), 0);
    let (FetchDecision::Lead(lead), FetchDecision::Wait(mut ticket)) = (begin(), begin()) else {
        panic!("one leads")
    };
    let [place] = *lead.cold() else { panic!("it has sunk") };
    let (record, body) = tier.read(place).expect("kept");
    let lent = lead
        .serve_from_lower(permit(), place, record, LowerTierBody::Whole(vec![body]), None)
        .expect("its key")
        .expect("there");
    match poll_once(&mut ticket) {
        Poll::Ready(WaiterOutcome::Ready(object)) => assert!(Arc::ptr_eq(&object, &lent)),
        other => panic!("expected what is lent, not {other:?}"),
    }
}

#[test]
fn popular_responses_are_promoted_and_all_are_while_memory_is_free() {
    let (_, cache) = over(MIB);
    let names: Vec<_> = (0..64).map(|n| n.to_string()).collect();
    names.iter().for_each(|name| store(&cache, name, head(None), b"body"));
    press(&cache);
    assert!(fetching(&cache, "1").should_promote(), "nothing is in memory");
    (100..2000).for_each(|n| store(&cache, &n.to_string(), head(None), &pattern(n)));
    let rise = |name: &str| fetching(&cache, name).should_promote();
    let before = names.iter().filter(|name| rise(name)).count();
    assert!(before < names.len(), "memory is full");
    let again = |name: &&String| [rise(name), rise(name)][1];
    assert!(names.iter().all(|name| again(&name)), "it was asked for just before");
}

#[test]
fn a_ban_is_kept_while_a_promoted_response_may_match_it() {
    let (tier, cache) = over(MIB);
    ["/a", "/b"].iter().for_each(|name| store(&cache, name, head(None), b"x"));
    press(&cache);
    ban(&cache, |record| record.key() == key("/a").bytes(), 0);
    // Long after everything in memory has passed it.
    cache.sweep(u32::MAX, 10_000_000, &mut || ());
    assert!(cache.has_bans());
    assert!(raise(&cache, &tier, "/a").is_none());
    assert!(raise(&cache, &tier, "/b").is_some());
    let [place] = *fetching(&cache, "/a").cold() else { panic!("it is still there") };
    tier.kept.lock().clear();
    assert!(cache.drop_cold(key("/a").hash(), place) && cache.keys() == 2);
    cache.sweep(u32::MAX, 10_000_000, &mut || ());
    assert!(!cache.has_bans());
    // A ban that has been forgotten counts as matching.
    store(&cache, "/c", head(None), b"x");
    press(&cache);
    (0..200).for_each(|_| ban(&cache, |_| false, 0));
    assert!(raise(&cache, &tier, "/c").is_none());
}

#[test]
fn variants_and_keys_of_one_hash_do_not_drive_each_other_out() {
    let (tier, cache) = over(MIB);
    for signature in ["a", "b"] {
        let lead = match cache.begin(&key("/a"), &mut of("none"), BeginOptions::default(), 0) {
            FetchDecision::Lead(lead) => lead,
            other => panic!("expected to fetch, not {other:?}"),
        };
        let vary = Variant { spec: b"x", signature: signature.as_bytes() };
        let mut filling =
            lead.store(permit(), NewObject { length: Some(1), ..head(None) }, Some(vary));
        assert_eq!(filling.push(signature.as_bytes()), PushOutcome::Ok);
        assert!(filling.finish());
    }
    store(&cache, "/b", head(None), b"y");
    press(&cache);
    // As if the hashes of both keys were equal.
    let [place] = *fetching(&cache, "/b").cold() else { panic!("it has sunk") };
    assert!(cache.add_cold(key("/a").hash(), place, |_| true));
    assert!(fetching(&cache, "/a").cold().contains(&place));
    let (record, _) = tier.read(place).expect("kept");
    assert!(fetching(&cache, "/a").refill(permit(), place, record, 1).is_err(), "another key's");
    let object = raise(&cache, &tier, "/a").expect("it has sunk");
    assert_eq!(bytes_of(&object).as_deref(), Some(&b"a"[..]));
    assert!(raise(&cache, &tier, "/b").is_some());
    assert_eq!(cache.stats().objects, 2);
    // The other variant is still there, even if the first one is fetched from an origin.
    assert_eq!(tier.len(), 3);
    let mut lead = fetching(&cache, "/a");
    let other = |place: &u64| tier.read(*place).is_some_and(|(record, _)| record.vary().is_some());
    let others: Vec<_> = lead.cold().iter().copied().filter(other).collect();
    others.iter().for_each(|place| lead.spare(*place));
    assert!(cache.drop_cold(key("/a").hash(), place), "the one by chance");
    let vary = Variant { spec: b"x", signature: b"a" };
    assert!(lead.store(permit(), NewObject { length: Some(0), ..head(None) }, Some(vary)).finish());
    assert_eq!((tier.len(), cache.stats().objects), (2, 2), "the copy of the older one has left");
    cache.check();
}

#[test]
fn a_response_with_its_body_below_is_evicted_without_a_write() {
    #[derive(Debug)]
    struct Lent(Bytes);
    impl ExternalBody for Lent {
        fn length(&self) -> u64 {
            self.0.len() as u64
        }
        fn open(self: Arc<Self>) -> Box<dyn ExternalBodyReader> {
            Box::new(OneRead(self.0.clone()))
        }
    }
    #[derive(Debug)]
    struct OneRead(Bytes);
    impl ExternalBodyReader for OneRead {
        fn seek(&mut self, offset: u64) {
            self.0 = self.0.slice(offset as usize..);
        }
        fn poll_next(
            &mut self,
            _: Option<&Arc<base::Account>>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Result<Option<Bytes>, IncompleteBody>> {
            std::task::Poll::Ready(Ok(Some(std::mem::take(&mut self.0))))
        }
    }
    let (tier, cache) = over(MIB);
    store(&cache, "/a", head(None), b"body");
    press(&cache);
    let raise = |name: &str| {
        let lead = fetching(&cache, name);
        let [place] = *lead.cold() else { panic!("it has sunk") };
        let (record, body) = tier.read(place).expect("kept");
        lead.raise_head(permit(), place, record, Arc::new(Lent(body)), None)
    };
    for _ in 0..2 {
        let object = raise("/a").expect("its key");
        assert_eq!(read_all(object.reader()).as_deref(), Ok(&b"body"[..]));
        assert_eq!((tier.len(), cache.keys(), cache.stats().objects), (1, 2, 1));
        let found = cache.lookup(&key("/a"), &mut of(""), 0);
        assert!(matches!(&found, CacheLookup::Object(found) if Arc::ptr_eq(found, &object)));
        drop((found, object));
        tier.room.store(0, Ordering::Relaxed);
        press(&cache);
        assert_eq!((tier.len(), cache.keys(), cache.stats().objects), (1, 1, 0));
    }
    let object = raise("/a").expect("its key");
    assert_eq!(cache.invalidate(&key("/a")), 1, "what is in both tiers counts once");
    assert_eq!((tier.len(), cache.keys()), (0, 0));
    drop(object);
    tier.room.store(usize::MAX, Ordering::Relaxed);
    store(&cache, "/b", head(None), b"body");
    press(&cache);
    ban(&cache, |_| true, 0);
    assert!(raise("/b").is_err(), "it has been banned");
    cache.check();
}

#[test]
fn a_late_cold_entry_is_added_unless_it_was_discarded_before() {
    let (tier, cache) = over(MIB);
    let hash = |name: &str| key(name).hash();
    for name in ["/purged", "/stored", "/other"] {
        store(&cache, name, head(None), b"x");
    }
    press(&cache);
    let kept = tier.kept.lock().clone();
    drop(cache);
    tier.struck.lock().clear();
    let cache = Cache::with_lower(Arc::clone(&tier), config(64 * MIB));
    assert_eq!(cache.invalidate(&key("/purged")), 0);
    store(&cache, "/stored", head(None), b"newer");
    let told: Vec<bool> = ["/purged", "/stored", "/other"]
        .iter()
        .map(|name| {
            let mut of_it = kept.iter().filter(|(_, kept)| kept.hash == hash(name));
            let (place, _) = of_it.next().expect("it has sunk");
            cache.add_cold(hash(name), *place, |h32| !tier.struck.lock().contains(&h32))
        })
        .collect();
    assert_eq!(told, [false, false, true]);
    assert!(raise(&cache, &tier, "/other").is_some());
    cache.check();
}

#[test]
fn cold_entries_move_and_those_of_a_lost_disk_are_removed() {
    let (tier, cache) = over(MIB);
    for name in ["/a", "/b", "/c"] {
        store(&cache, name, head(None), b"x");
    }
    press(&cache);
    let [place] = *fetching(&cache, "/a").cold() else { panic!("it has sunk") };
    let kept = tier.kept.lock().remove(&place).expect("kept");
    tier.kept.lock().insert(1000, kept);
    assert!(cache.move_cold(key("/a").hash(), place, 1000));
    assert!(!cache.move_cold(key("/a").hash(), place, 1001));
    assert!(raise(&cache, &tier, "/a").is_some());
    cache.drop_cold_where(&|place| place < 1000, &mut || ());
    assert_eq!(cache.keys(), 2, "one in memory, and its copy");
    assert!(fetching(&cache, "/b").cold().is_empty());
    cache.check();
}

#[test]
fn what_has_sunk_outlives_the_process_with_its_age_its_tags_and_its_bans() {
    let (tier, cache) = over(MIB);
    ban(&cache, |_| true, 41);
    for (name, tag) in [("/a", 1), ("/b", 2), ("/c", 3)] {
        let new = NewObject { tags: Tags::new(vec![tag]), born_ms: 48_000, ..head(None) };
        store(&cache, name, new, name.as_bytes());
    }
    press(&cache);
    // A ban that only a journal has when the process ends.
    let tag = |tag| BanSelector { tags: Some(Tags::new(vec![tag])), test: None };
    let lost = NewBan { number: 50, which: tag(2), ..NewBan::default() };
    cache.ban(lost.clone());
    let (tier, cache) = tier.restart(3000);
    assert_eq!(cache.ban(lost).number(), 50, "above all numbers of before");
    let object = raise(&cache, &tier, "/a").expect("it was kept");
    assert_eq!(bytes_of(&object).as_deref(), Some(&b"/a"[..]));
    // Two seconds old when it was demoted, three seconds of rest.
    assert_eq!((object.age_ms(1000), object.fresh_until_ms()), (5000, 6000));
    assert!(raise(&cache, &tier, "/b").is_none(), "banned before the end");
    cache.ban(NewBan { which: tag(3), ..NewBan::default() });
    assert!(raise(&cache, &tier, "/c").is_none(), "banned since");
    assert!(is_in_memory(&cache, "/a"));
}

#[test]
fn a_copy_is_made_once_outlives_memory_and_is_forgotten_with_its_response() {
    let (tier, cache) = over(64 * MIB);
    let names: Vec<String> = (0..300).map(|n| n.to_string()).collect();
    names.iter().for_each(|name| store(&cache, name, head(None), name.as_bytes()));
    assert_eq!((copy(&cache), copy(&cache)), (300, 0));
    assert_eq!((tier.len(), cache.stats().objects), (300, 300));
    // The response in memory answers, and no fetch is directed to its copy.
    assert!(is_in_memory(&cache, "7") && fetching(&cache, "7").cold().is_empty());
    press(&cache);
    assert_eq!((tier.len(), cache.stats().objects), (300, 0));
    let object = raise(&cache, &tier, "7").expect("its copy is there");
    assert_eq!(bytes_of(&object).as_deref(), Some(&b"7"[..]));
    assert_eq!((tier.len(), cache.stats().objects), (300, 1), "what comes up leaves its copy");
    drop(object);
    press(&cache);
    assert_eq!(tier.len(), 300, "and needs no other one");
    raise(&cache, &tier, "7").expect("it is still there");
    store(&cache, "7", head(None), b"newer");
    assert_eq!((tier.len(), cache.stats().objects), (299, 1), "the older one's is forgotten");
    assert_eq!((copy(&cache), cache.invalidate(&key("7"))), (1, 1), "one response, not two");
    raise(&cache, &tier, "8").expect("its copy is there");
    assert_eq!(cache.soft_invalidate(&key("8"), 0), 1);
    assert_eq!((tier.len(), cache.stats().objects), (298, 1), "its copy would be fresh");
    ban(&cache, |record| record.key() == key("8").bytes(), 0);
    raise(&cache, &tier, "9").expect("its copy is there");
    ban(&cache, |record| record.key() == key("9").bytes(), 0);
    assert_eq!((tier.len(), cache.stats().objects), (297, 0));
    names[..50].iter().for_each(|name| _ = raise(&cache, &tier, name));
    cache.check();
    assert_eq!(cache.clear(), 297);
    assert_eq!((tier.len(), cache.stats().objects), (0, 0));
}

#[test]
fn a_variant_that_is_stored_leaves_the_copies_of_others() {
    let (tier, cache) = over(MIB);
    for signature in ["a", "b"] {
        let lead = match cache.begin(&key("/a"), &mut of(signature), BeginOptions::default(), 0) {
            FetchDecision::Lead(lead) => lead,
            other => panic!("expected to fetch, not {other:?}"),
        };
        let vary = Variant { spec: b"x", signature: signature.as_bytes() };
        assert!(
            lead.store(permit(), NewObject { length: Some(0), ..head(None) }, Some(vary)).finish()
        );
        copy(&cache);
    }
    assert_eq!((tier.len(), cache.stats().objects), (2, 2));
    press(&cache);
    assert_eq!((tier.len(), cache.invalidate(&key("/a"))), (2, 2));
    assert_eq!(tier.len(), 0);
}

/// Stores and evicts responses under the names of these numbers.
fn demote_all(cache: &Arc<Cache<RecordTier>>, numbers: std::ops::Range<u32>) {
    numbers.for_each(|n| store(cache, &n.to_string(), head(None), b"x"));
    press(cache);
}

#[test]
fn many_responses_below_take_nothing_of_the_budget() {
    let (tier, cache) = over(MIB);
    demote_all(&cache, 0..30_000);
    assert_eq!((tier.len(), cache.keys()), (30_000, 30_000));
    let stats = cache.stats();
    assert_eq!((stats.refused, stats.markers), (0, 0));
    for n in (0..30_000).step_by(1_000) {
        let name = n.to_string();
        let begun = cache.begin(&key(&name), &mut of("a"), BeginOptions::default(), 0);
        assert!(matches!(&begun, FetchDecision::Lead(lead) if lead.cold().len() == 1), "{begun:?}");
        drop(begun);
        assert!(raise(&cache, &tier, &name).is_some());
    }
    cache.check();
}

#[test]
fn a_full_index_stops_demotions_and_nothing_else() {
    const INDEX_BYTES: u64 = 200 << 10;
    let tier = RecordTier::new();
    let settings = Config { index_bytes: INDEX_BYTES, ..config(MIB) };
    let cache = Cache::with_lower(Arc::clone(&tier), settings);
    demote_all(&cache, 0..10_000);
    let many = tier.len();
    assert!((5_000..9_000).contains(&many), "{many} entries");
    assert!(cache.index().used() <= INDEX_BYTES && cache.index().is_short());
    assert_eq!(cache.index().refused(), 10_000 - many as u64);
    let stats = cache.stats();
    assert_eq!((stats.refused, stats.markers, stats.objects), (0, 0, 0));
    for n in 0..10_000 {
        let begun = cache.begin(&key(&n.to_string()), &mut of("a"), BeginOptions::default(), 0);
        assert!(matches!(begun, FetchDecision::Lead(_)), "{n}: {begun:?}");
    }
    assert!(raise(&cache, &tier, "7").is_some() && is_in_memory(&cache, "7"));
    // Some are removed, and others are added.
    for n in (0..10_000).step_by(2) {
        cache.invalidate(&key(&n.to_string()));
    }
    let left = tier.len();
    assert!(!cache.index().is_short());
    demote_all(&cache, 10_000..12_000);
    assert!(tier.len() > left + 1_500, "{left} and then {}", tier.len());
    assert!(cache.index().used() <= INDEX_BYTES);
    cache.check();
    cache.clear();
    assert_eq!((tier.len(), cache.index().used()), (0, 0));
}

#[test]
fn a_response_below_is_served_without_memory_for_the_fetch() {
    let (tier, cache) = over(MIB);
    store(&cache, "/a", head(None), b"body");
    press(&cache);
    let left = cache.memory().left_to_store();
    assert!(cache.memory().try_store(left));
    let lead = fetching(&cache, "/a");
    assert!(lead.is_detached() && !lead.should_promote());
    let [place] = *lead.cold() else { panic!("it has sunk") };
    cache.memory().release(4_000);
    let (record, body) = tier.read(place).expect("kept");
    let lent = lead
        .serve_from_lower(permit(), place, record, LowerTierBody::Whole(vec![body]), None)
        .expect("its key");
    assert_eq!(bytes_of(&lent.expect("it is there")).as_deref(), Some(&b"body"[..]));
    assert_eq!(cache.stats().markers, 0);
}
