//! Tests of invalidations as values, in journals, and on twins of a store.

use std::sync::Arc;

use base::{KeyBuf, Now};
use cache::{BeginOptions, CacheLookup, FetchDecision, NewObject};
use message::Status;
use parking_lot::Mutex;
use policy::ConnectionPeer;
use proptest::prelude::*;

use super::*;
use crate::key::begin_key;
use crate::state::invalidate::InvalidationMode;
use crate::state::shared::SharedState;
use crate::tier::tests::small_cache;
use crate::vcl::tests::bare_live;
use crate::verdict::permit;

const NOW: Now = Now { mono_ms: 100_000, unix_ms: 1_700_000_000_000 };

fn shared() -> Arc<SharedState> {
    SharedState::with_seed(small_cache(100), bare_live(), base::HashSeed::random())
}

fn key(shared: &SharedState, path: &str) -> KeyBuf {
    let mut key = KeyBuf::new();
    let request = message::Request {
        host: b"example.com".to_vec(),
        target: path.as_bytes().to_vec(),
        ..message::Request::new()
    };
    begin_key(&request, &mut key);
    key.finish(&shared.seed);
    key
}

const PATHS: [&str; 6] = ["/a", "/b", "/a/b", "/c?d", "/shop/1", "/shop/2"];

/// Stores a page for each path: every second with the tag `even`, each with its path as a further
/// tag.
fn store_all(shared: &SharedState) {
    for (at, path) in PATHS.iter().enumerate() {
        let mut tags = vec![crate::tags::hash(path.as_bytes())];
        if at % 2 == 0 {
            tags.push(crate::tags::hash(b"even"));
        }
        let key = key(shared, path);
        let options = BeginOptions::default();
        let FetchDecision::Lead(lead) =
            shared.cache.begin(&key, &mut |_, _| (), options, NOW.mono_ms)
        else {
            panic!("nothing is stored under {path}");
        };
        let filling = lead.store(
            permit(),
            NewObject {
                status: Status::OK,
                head: head(path),
                etag: None,
                last_modified: None,
                date: None,
                born_ms: NOW.mono_ms as i64 - 1_000 * at as i64,
                lifetime_ms: 60_000,
                grace_ms: 10_000 * at as u64,
                stale_if_error_ms: 5_000,
                stale_if_unreachable_ms: 5_000,
                flags: Default::default(),
                tags: cache::Tags::new(tags),
                note: Box::default(),
                length: Some(0),
            },
            None,
        );
        filling.finish();
    }
}

fn head(path: &str) -> Box<[u8]> {
    let (mut headers, mut head) = (message::HeaderBlock::new(), Vec::new());
    headers.push_named(b"X-Path", path.as_bytes());
    h1::encode::stored_head(&mut head, Status::OK, b"", &headers);
    head.into()
}

/// Returns the lookups of all paths: absent, or the remaining times.
fn answers(shared: &SharedState) -> Vec<Option<(i64, u64, u64)>> {
    let look =
        |path: &&str| match shared.cache.lookup(&key(shared, path), &mut |_, _| (), NOW.mono_ms) {
            CacheLookup::Object(object) => {
                Some((object.fresh_until_ms(), object.grace_ms(), object.stale_if_error_ms()))
            }
            CacheLookup::HitForMiss | CacheLookup::Nothing => None,
        };
    PATHS.iter().map(look).collect()
}

fn expression(text: &str) -> InvalidationTarget {
    let expression = ban::Expression::parse(text).expect(text);
    InvalidationTarget::Many(ResponseSelector::of_expression(expression).expect(text))
}

fn targets() -> impl Strategy<Value = InvalidationTarget> {
    let path = || prop::sample::select(PATHS.to_vec());
    let times = (
        prop::option::of(-5_000..50_000_i64),
        prop::option::of(0..50_000_u64),
        prop::option::of(0..50_000_u64),
    );
    let client = prop::sample::select(vec![
        ConnectionPeer::Local,
        ConnectionPeer::Host("192.0.2.1".parse().expect("an address")),
        ConnectionPeer::Unnamed(None),
        ConnectionPeer::Unnamed(Some("2001:db8::1".parse().expect("an address"))),
    ]);
    prop_oneof![
        path().prop_map(|path| InvalidationTarget::key(&key(&shared(), path))),
        (path(), times).prop_map(|(path, (ttl_ms, grace_ms, keep_ms))| {
            let key = key(&shared(), path);
            InvalidationTarget::Retime(key.bytes().into(), NewTimes { ttl_ms, grace_ms, keep_ms })
        }),
        (path(), prop::option::of(any::<u16>()), client).prop_map(|(path, port, client)| {
            let (host, target) = (b"example.com".to_vec(), path.as_bytes().to_vec());
            InvalidationTarget::Url(Url { host, port, target, client })
        }),
        prop::collection::vec(prop::sample::select(vec!["/a", "even", "none"]), 0..3).prop_map(
            |tags| {
                let tags = tags.into_iter().map(|tag| tag.as_bytes().to_vec());
                InvalidationTarget::Many(ResponseSelector::Tags(tags.collect()))
            }
        ),
        prop::sample::select(vec![
            "req.url ~ ^/shop/",
            "req.url == /c?d && obj.status == 200",
            "obj.age > 2s",
            "obj.grace >= 20s",
            "obj.http.X-Path ~ \"[ab]$\"",
            "obj.http.xkey == even && req.url ~ a",
            "req.http.host != example.com",
        ])
        .prop_map(expression),
        Just(InvalidationTarget::Many(ResponseSelector::Listed(
            ban::regex("GET-.*/b$").expect("a pattern")
        ))),
        Just(InvalidationTarget::Many(ResponseSelector::Everything)),
    ]
}

fn sites() -> impl Strategy<Value = Sites> {
    prop_oneof![Just(Sites::Every), Just(Sites::one("example.com"))]
}

/// An invalidation to be made.
#[derive(Debug)]
struct Wish {
    what: InvalidationTarget,
    soft: bool,
    sites: Sites,
    age_ms: u64,
}

fn one() -> impl Strategy<Value = Wish> {
    let parts = (targets(), any::<bool>(), sites(), 0..4_000_u64);
    parts.prop_map(|(what, soft, sites, age_ms)| Wish { what, soft, sites, age_ms })
}

/// A list of wishes.
fn some() -> impl Strategy<Value = Vec<Wish>> {
    prop::collection::vec(one(), 1..8)
}

fn make(shared: &SharedState, wish: Wish) -> Invalidation {
    let then = Now { unix_ms: NOW.unix_ms - wish.age_ms, ..NOW };
    shared.invalidator.invalidation(wish.what, wish.soft, wish.sites, then)
}

fn do_it(shared: &Arc<SharedState>, one: Invalidation) -> Result<Outcome, InvalidationError> {
    shared.invalidator.invalidate_at_once(None, [one], NOW, InvalidationMode::Counted)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn encoded_and_decoded_it_is_the_same(
        of in one(),
    ) {
        let made = make(&shared(), of);
        let bytes = made.encode();
        let read = Invalidation::decode(&bytes).expect("what was encoded");
        prop_assert_eq!((read.id, read.soft), (made.id, made.soft));
        prop_assert_eq!(read.at_unix_ms, made.at_unix_ms);
        prop_assert_eq!(&read.sites, &made.sites);
        prop_assert_eq!(read.encode(), bytes);
        let text = serde_json::to_string(&made).expect("it is serialisable");
        let read: Invalidation = serde_json::from_str(&text).expect("what was serialised");
        prop_assert_eq!(read.encode(), made.encode());
    }

    #[test]
    fn replayed_on_a_twin_it_leaves_the_same_answers(list in some()) {
        let (store, twin) = (shared(), shared());
        store_all(&store);
        store_all(&twin);
        for one in list {
            let made = make(&store, one);
            let record = made.encode();
            let done = do_it(&store, made).expect("there is no journal");
            let replayed = twin.invalidator.replay(&record, 0, NOW).expect("what was encoded");
            prop_assert_eq!(answers(&store), answers(&twin));
            prop_assert!(replayed.objects <= done.objects);
            // The second application does nothing.
            let bans = twin.cache.bans().len();
            prop_assert_eq!(twin.invalidator.replay(&record, 0, NOW), Ok(Outcome::default()));
            prop_assert_eq!(twin.cache.bans().len(), bans);
        }
    }

    #[test]
    fn bans_are_copied_to_another_store_with_their_numbers(list in some()) {
        let (store, twin) = (shared(), shared());
        store_all(&twin);
        for one in list.into_iter().filter(|one| matches!(one.what, InvalidationTarget::Many(_))) {
            do_it(&store, make(&store, one)).expect("there is no journal");
        }
        store_all(&store);
        let listed = |shared: &SharedState| -> Vec<(u32, String, bool)> {
            let bans = shared.cache.bans();
            let one = |listed: &cache::BanListing| {
                (listed.ban.number(), listed.ban.text().to_owned(), listed.ban.is_soft())
            };
            bans.iter().map(one).collect()
        };
        for copied in store.cache.bans() {
            let (data, number) = (copied.ban.data(), copied.ban.number());
            twin.invalidator.restore_ban(data, number, NOW).expect("its data");
        }
        prop_assert_eq!(listed(&store), listed(&twin));
        // Responses stored afterwards remain; those of before are tested.
        prop_assert!(answers(&store).iter().all(Option::is_some));
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        purge::fuzz::invalidation(&bytes);
        purge::fuzz::invalidation(&[&[1], &bytes[..]].concat());
    }
}

#[test]
fn version_1_stays_readable() {
    let made = Invalidation {
        id: Id { node: 3, sequence: 300 },
        at_unix_ms: 5,
        sites: Sites::one("a.b"),
        soft: true,
        what: expression("req.url ~ x"),
        cause: Cause::default(),
    };
    let bytes = b"\x01\x03\xac\x02\x05\x01\x01\x01\x03a.b\x03\x0breq.url ~ x\x00";
    assert_eq!(made.encode(), bytes);
    for (what, bytes) in [
        (InvalidationTarget::Key(Box::new(*b"k")), &b"\x00\x01k"[..]),
        (
            InvalidationTarget::Url(Url {
                host: b"h".to_vec(),
                port: Some(8080),
                target: b"/".to_vec(),
                client: ConnectionPeer::Host("192.0.2.1".parse().expect("an address")),
            }),
            b"\x01\x01h\x01\x90\x3f\x01/\x01\x00\xc0\x00\x02\x01",
        ),
        (InvalidationTarget::Many(ResponseSelector::Tags(vec![b"t".to_vec()])), b"\x02\x01\x01t"),
        (
            InvalidationTarget::Retime(
                Box::new(*b"k"),
                NewTimes { ttl_ms: Some(-1), ..NewTimes::default() },
            ),
            b"\x04\x01k\x01\x01\x00\x00",
        ),
        (
            InvalidationTarget::Many(ResponseSelector::Listed(ban::regex("s").expect("a pattern"))),
            b"\x05\x01s",
        ),
        (InvalidationTarget::Many(ResponseSelector::Everything), b"\x06"),
    ] {
        let one = Invalidation { sites: Sites::Every, soft: false, what, ..made.clone() };
        let bytes = [b"\x01\x03\xac\x02\x05\x00\x00", bytes].concat();
        assert_eq!(one.encode(), bytes);
        assert!(Invalidation::decode(&bytes).is_ok());
    }
}

#[test]
fn what_cannot_be_read_is_refused_by_name() {
    let shared = shared();
    let good = shared
        .invalidator
        .invalidation(expression("req.url ~ x"), false, Sites::Every, NOW)
        .encode();
    let mut longer = good.clone();
    longer.push(0);
    let mut wrong = good.clone();
    let at = wrong.len() - 4;
    wrong[at] = b'?';
    for (bytes, error) in [
        (vec![], InvalidationDecodeError::Empty),
        (vec![2, 0], InvalidationDecodeError::Version(2)),
        (good[..good.len() - 1].to_vec(), InvalidationDecodeError::Malformed),
        (longer, InvalidationDecodeError::Trailing(1)),
    ] {
        assert_eq!(shared.invalidator.replay(&bytes, 0, NOW), Err(error.into()));
    }
    let error = Invalidation::decode(&wrong).expect_err("no operator");
    assert!(matches!(error, InvalidationDecodeError::Expression(_)), "{error}");
    let stray = shared.invalidator.invalidation(
        InvalidationTarget::Many(ResponseSelector::Everything),
        false,
        Sites::one("elsewhere.example"),
        NOW,
    );
    let error = shared.invalidator.replay(&stray.encode(), 0, NOW).expect_err("no such site");
    assert!(error.to_string().contains("`elsewhere.example`"), "{error}");
}

/// A journal that keeps each record with the store's state at that time, or refuses.
struct Notebook {
    store: Mutex<Option<Arc<SharedState>>>,
    kept: Mutex<Vec<Vec<u8>>>,
    stored_then: Mutex<Vec<usize>>,
    refuses: bool,
    number: Option<u32>,
}

impl Notebook {
    fn of(shared: &Arc<SharedState>, refuses: bool, number: Option<u32>) -> Arc<Self> {
        let notebook = Arc::new(Self {
            store: Mutex::new(Some(Arc::clone(shared))),
            kept: Mutex::default(),
            stored_then: Mutex::default(),
            refuses,
            number,
        });
        assert!(shared.invalidator.record_invalidations(Arc::clone(&notebook) as Arc<dyn Journal>));
        notebook
    }
}

/// A record in the notebook, with the number that it gives.
struct Written(Option<u32>);

impl JournalWrite for Written {
    fn least_ban(&self) -> Option<u32> {
        self.0
    }

    fn wait(self: Box<Self>) -> Result<(), String> {
        Ok(())
    }
}

impl Journal for Notebook {
    fn name(&self) -> &str {
        "notebook"
    }

    fn record(&self, batch: &[&Invalidation]) -> Result<Box<dyn JournalWrite>, String> {
        if self.refuses {
            return Err("it is full".to_owned());
        }
        if let Some(store) = &*self.store.lock() {
            self.stored_then.lock().push(answers(store).iter().flatten().count());
        }
        self.kept.lock().extend(batch.iter().map(|one| one.encode()));
        Ok(Box::new(Written(self.number)))
    }

    fn wait(&self) -> Result<(), String> {
        Ok(())
    }
}

fn every_kind(shared: &SharedState) -> Vec<Invalidation> {
    let url = Url {
        host: b"example.com".to_vec(),
        port: None,
        target: b"/b".to_vec(),
        client: ConnectionPeer::Local,
    };
    [
        InvalidationTarget::key(&key(shared, "/a")),
        InvalidationTarget::Url(url),
        InvalidationTarget::Retime(key(shared, "/a/b").bytes().into(), NewTimes::default()),
        InvalidationTarget::Many(ResponseSelector::Tags(vec![b"/c?d".to_vec()])),
        expression("req.url == /shop/1"),
        InvalidationTarget::Many(ResponseSelector::Everything),
    ]
    .map(|what| shared.invalidator.invalidation(what, false, Sites::Every, NOW))
    .into()
}

#[test]
fn it_is_recorded_before_it_takes_effect_and_the_record_makes_it_again() {
    let (store, twin) = (shared(), shared());
    store_all(&store);
    store_all(&twin);
    let notebook = Notebook::of(&store, false, Some(70));
    for one in every_kind(&store) {
        assert_eq!(do_it(&store, one).expect("it is recorded").objects, 1);
    }
    assert_eq!(*notebook.stored_then.lock(), [6, 5, 4, 3, 2, 1]);
    let numbers: Vec<u32> = store.cache.bans().iter().map(|one| one.ban.number()).collect();
    assert_eq!(numbers, [70, 71, 72]);
    let records = std::mem::take(&mut *notebook.kept.lock());
    for record in &records {
        twin.invalidator.replay(record, 0, NOW).expect("a record");
    }
    assert_eq!(answers(&twin), [None; 6]);
    // A batch that returns to its store does nothing, and is not recorded again.
    store_all(&store);
    for record in &records {
        assert_eq!(store.invalidator.replay(record, 0, NOW), Ok(Outcome::default()));
    }
    assert!(answers(&store).iter().all(Option::is_some) && notebook.kept.lock().is_empty());
    *notebook.store.lock() = None;
}

#[test]
fn a_journal_that_refuses_refuses_by_name_and_nothing_is_half_done() {
    let store = shared();
    store_all(&store);
    let before = answers(&store);
    let notebook = Notebook::of(&store, true, None);
    let refused =
        Err(InvalidationError::Refused { journal: "notebook".into(), why: "it is full".into() });
    for one in every_kind(&store) {
        assert_eq!(do_it(&store, one), refused);
    }
    let batch = every_kind(&store);
    assert_eq!(
        store.invalidator.invalidate_at_once(None, batch, NOW, InvalidationMode::Counted),
        refused
    );
    assert_eq!((answers(&store), store.cache.bans().len()), (before, 0));
    assert_eq!(store.counters.sum(base::Counter::InvalidationsRefused), 12);
    // The origin has changed already: the cache follows (RFC 9111 4.4), recorded or not.
    let one = store.invalidator.invalidation(
        InvalidationTarget::key(&key(&store, "/a")),
        false,
        Sites::Every,
        NOW,
    );
    let done = store.invalidator.invalidate_at_once(None, [one], NOW, InvalidationMode::Regardless);
    assert_eq!(done.map(|done| done.objects), Ok(1));
    *notebook.store.lock() = None;
}

type ToldAt = Arc<Mutex<Vec<(Vec<u8>, Option<Level>)>>>;

/// Other caches that note what they receive.
#[derive(Default)]
struct Neighbours {
    told: ToldAt,
    refuses: bool,
    silent: bool,
}

struct PreparedBatch {
    batch: Vec<Vec<u8>>,
    told: ToldAt,
    silent: bool,
}

impl PreparedPropagation for PreparedBatch {
    fn tell(self: Box<Self>, level: Option<Level>) -> Box<dyn Propagation> {
        self.told.lock().extend(self.batch.into_iter().map(|one| (one, level)));
        let silent = || Err("not applied yet by: n2".to_owned());
        Box::new(Word(if self.silent { silent() } else { Ok(()) }))
    }
}

struct Word(Result<(), String>);

impl Propagation for Word {
    fn wait(self: Box<Self>) -> std::pin::Pin<Box<dyn Future<Output = Result<(), String>> + Send>> {
        Box::pin(std::future::ready(self.0))
    }
}

impl PeerCaches for Neighbours {
    fn prepare(
        &self,
        batch: &[&Invalidation],
    ) -> Result<Option<Box<dyn PreparedPropagation>>, String> {
        if self.refuses {
            return Err("it is too large".to_owned());
        }
        let batch = batch.iter().map(|one| one.encode()).collect();
        let (told, silent) = (Arc::clone(&self.told), self.silent);
        Ok(Some(Box::new(PreparedBatch { batch, told, silent })))
    }

    fn outstanding(&self) -> Option<Box<dyn Propagation>> {
        None
    }
}

#[tokio::test]
async fn only_local_invalidations_are_propagated() {
    let shared = shared();
    store_all(&shared);
    let others = Arc::new(Neighbours::default());
    assert!(shared.invalidator.tell_others(others.clone()));
    assert!(!shared.invalidator.tell_others(others.clone()), "there is a receiver already");
    let list = every_kind(&shared);
    for one in &list {
        let wait = InvalidationWait { count_ms: 1_000, level: Some(Level::All) };
        shared.invalidator.invalidate(None, [one.clone()], NOW, wait).await.expect("done");
    }
    let told = others.told.lock().clone();
    let wanted: Vec<_> = list.iter().map(|one| (one.encode(), Some(Level::All))).collect();
    assert_eq!(told, wanted);
    // A batch that returns, or comes from another node, is not propagated.
    shared.invalidator.apply_told(&list[0].encode(), NOW).expect("done");
    let twin = self::shared();
    store_all(&twin);
    let news = every_kind(&twin);
    news.iter()
        .for_each(|one| _ = shared.invalidator.apply_told(&one.encode(), NOW).expect("done"));
    shared.invalidator.doubt(NOW);
    assert_eq!(others.told.lock().len(), list.len());
}

#[tokio::test]
async fn unreached_caches_are_named_and_an_unpropagated_batch_does_nothing() {
    let (silent, refusing) = (shared(), shared());
    let all = |shared: &SharedState| {
        shared.invalidator.invalidation(
            InvalidationTarget::Many(ResponseSelector::Everything),
            false,
            Sites::Every,
            NOW,
        )
    };
    let neighbours = Neighbours { silent: true, ..Neighbours::default() };
    silent.invalidator.tell_others(Arc::new(neighbours));
    store_all(&silent);
    let why = silent
        .invalidator
        .invalidate(None, [all(&silent)], NOW, 0)
        .await
        .expect_err("n2 is silent");
    assert!(why.to_string().contains("not applied yet by: n2"), "{why}");
    assert!(answers(&silent).iter().all(Option::is_none), "it is in force here");
    refusing
        .invalidator
        .tell_others(Arc::new(Neighbours { refuses: true, ..Neighbours::default() }));
    store_all(&refusing);
    let why = refusing
        .invalidator
        .invalidate(None, [all(&refusing)], NOW, 0)
        .await
        .expect_err("too large");
    assert!(why.to_string().contains("`cluster` refuses: it is too large"), "{why}");
    assert!(answers(&refusing).iter().all(Option::is_some), "nothing was done");
}

#[tokio::test]
async fn what_is_doubted_is_stale_from_then_on() {
    let shared = shared();
    store_all(&shared);
    assert_eq!(shared.invalidator.trust.doubted_ms(), None);
    shared.invalidator.doubt(NOW);
    assert_eq!(shared.invalidator.trust.doubted_ms(), Some(NOW.mono_ms as i64));
    let until = |(fresh_until_ms, ..): &(i64, u64, u64)| *fresh_until_ms;
    let all = answers(&shared);
    assert!(all.iter().flatten().all(|own| until(own) <= NOW.mono_ms as i64), "{all:?}");
    assert!(all.iter().all(Option::is_some), "nothing leaves");
}
