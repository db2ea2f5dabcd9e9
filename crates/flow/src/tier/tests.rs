//! Tests of the tier over a disk in memory, step by step.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use base::{HashSeed, KeyBuf};
use bytes::Bytes;
use cache::{BeginOptions, Config, ExternalBodyReader, Flags, NewObject, Object};
use disk::vfs::{FaultyDirectory, InjectedFault, MemoryDirectory, Vfs};
use disk::{Body, Disk, Entry, RecordAddress, VolumeConfig};
use message::Status;

use super::*;
use crate::invalidate::{Invalidation, InvalidationTarget, ResponseSelector, Sites};
use crate::state::shared::SharedState;
use crate::state::tier::{BodyPrefix, DiskBody, MissStep};
use crate::vcl::tests::bare_live;
use crate::verdict::permit;

const BANS_MAX: usize = 20;

/// An empty cache of 16 MiB without a disk.
pub(crate) fn small_cache(bans_max: usize) -> Arc<Cache> {
    memory_only(Config {
        budget_bytes: 16 << 20,
        held_bytes_max: 8 << 20,
        max_variants: 4,
        object_bytes_max: 1 << 20,
        waiters_max: 10,
        window_bytes: 1 << 16,
        hit_for_miss_ms: 1_000,
        bans_max,
        index_bytes: 64 << 20,
    })
}

/// A store over the content of `vfs`, completely recovered, and the result of the start.
fn over(vfs: &(impl Vfs + Clone)) -> (Arc<SharedState>, DiskStartOutcome) {
    let cache = small_cache(BANS_MAX);
    let volume = VolumeConfig::new(Arc::new(vfs.clone()), 64 << 20);
    let config = disk::Config { threads: false, ..disk::Config::new(vec![volume]) };
    let opened = open(&cache, config, DiskRules { admit_all: true }).expect("a disk");
    let shared = SharedState::with_seed(cache, bare_live(), opened.seed());
    let taken_up = opened.take_up(&shared.invalidator, rt::now());
    settle(&shared);
    assert!(disk(&shared).has_found());
    shared.cache.lower().found.end();
    (shared, taken_up)
}

fn disk(shared: &SharedState) -> &Disk {
    shared.cache.lower().disk().expect("a disk")
}

fn settle(shared: &SharedState) {
    disk(shared).settle();
}

/// Does the chores of a second.
fn chores(shared: &SharedState) {
    let tier = shared.cache.lower();
    tier.store.get().expect("a disk").drop_needless(tier, &shared.cache);
    settle(shared);
}

/// Invalidates `what`, recorded in the journal.
async fn invalidate(shared: &Arc<SharedState>, what: InvalidationTarget) {
    let now = rt::now();
    let one: Invalidation = shared.invalidator.invalidation(what, false, Sites::Every, now);
    shared.invalidator.invalidate(None, [one], now, 10_000).await.expect("it takes effect");
}

fn key(shared: &SharedState, path: &str) -> KeyBuf {
    let mut key = KeyBuf::new();
    key.field(path.as_bytes());
    key.finish(&shared.seed);
    key
}

fn tag(tag: &str) -> InvalidationTarget {
    InvalidationTarget::Many(ResponseSelector::Tags(vec![tag.as_bytes().to_vec()]))
}

/// The invalidations that another start over this disk would replay.
fn replayed(vfs: &MemoryDirectory) -> usize {
    over(&vfs.copy()).1.invalidations
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_replays_no_forgotten_key_and_each_ban_once() {
    let vfs = MemoryDirectory::new();
    let (shared, _) = over(&vfs);
    for round in 0..3 {
        for page in 0..50 {
            invalidate(
                &shared,
                InvalidationTarget::key(&key(&shared, &format!("/{round}/{page}"))),
            )
            .await;
        }
        for name in ["shop", "news"] {
            invalidate(&shared, tag(name)).await;
        }
    }
    assert_eq!(replayed(&vfs), 3 * 52, "before the chores all records remain");
    chores(&shared);
    assert_eq!(replayed(&vfs), 2, "the ban repeats those before it");
    disk(&shared).close();
    assert_eq!(replayed(&vfs), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_more_bans_than_there_may_be_a_start_knows_the_newest_and_nothing_older_is_used() {
    let vfs = MemoryDirectory::new();
    let (shared, _) = over(&vfs);
    let entry = |hash| {
        let body = Body::Bytes(Bytes::from_static(b"page"));
        Entry { hash, passed: 0, expires_ms: u64::MAX, order: None, head: Bytes::new(), body }
    };
    disk(&shared).put(entry(1)).expect("it is taken");
    for n in 0..10 * BANS_MAX {
        invalidate(&shared, tag(&n.to_string())).await;
    }
    disk(&shared).put(Entry { passed: shared.cache.newest_ban(), ..entry(2) }).expect("taken");
    settle(&shared);
    // As after a kill before the chores.
    let (again, taken) = over(&vfs.copy());
    assert_eq!(taken.invalidations, 10 * BANS_MAX);
    assert!(again.cache.bans().len() <= BANS_MAX);
    chores(&again);
    chores(&shared);
    let (again, taken) = over(&vfs.copy());
    assert!((1..=BANS_MAX).contains(&taken.invalidations), "{}", taken.invalidations);
    assert_eq!(disk(&again).stats().records, 1, "the one that all bans have been tested against");
}

/// The head of a response with this lifetime.
fn head_of(length: usize, lifetime_ms: u64) -> NewObject {
    NewObject {
        status: Status::OK,
        head: b"HTTP/1.1 200 OK\r\n\r\n"[..].into(),
        etag: None,
        last_modified: None,
        date: None,
        born_ms: rt::now().mono_ms as i64,
        lifetime_ms,
        grace_ms: 0,
        stale_if_error_ms: 0,
        stale_if_unreachable_ms: 0,
        flags: Default::default(),
        tags: cache::Tags::default(),
        note: Box::default(),
        length: Some(length as u64),
    }
}

/// A large response in the index whose body is on disk; its address; its bytes.
fn large(shared: &Arc<SharedState>, path: &str) -> (Arc<Object>, (u64, RecordAddress), Bytes) {
    let key = key(shared, path);
    let bytes = Bytes::from((0..1_500_000_u32).flat_map(u32::to_le_bytes).collect::<Vec<u8>>());
    let (head, body) = (Bytes::new(), Body::Bytes(bytes.clone()));
    let entry =
        Entry { hash: key.hash(), passed: 0, expires_ms: u64::MAX, order: None, head, body };
    let at = (key.hash(), disk(shared).put(entry).expect("it is taken"));
    settle(shared);
    let cache = &shared.cache;
    assert!(cache.add_cold(at.0, at.1, |_| true));
    let body = DiskBody::at(cache, at.0, at.1, bytes.len() as u64, BodyPrefix::default());
    let options = BeginOptions::default();
    let MissStep::Lead(mut lead) = cache.begin(&key, &mut |_, _| (), options, rt::now().mono_ms)
    else {
        panic!("something is stored under {path}");
    };
    lead.spare(at.1);
    let new = head_of(bytes.len(), 60_000);
    let (object, refused) = lead.store_elsewhere(permit(), &new, None, Arc::clone(&body) as _);
    assert_eq!(refused, None);
    body.stands_for(&object);
    assert!(object.is_live());
    (object, at, bytes)
}

/// The next bytes of a read; `None` at its end.
fn next(shared: &SharedState, reading: &mut dyn ExternalBodyReader) -> Option<Bytes> {
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..10 {
        match reading.poll_next(None, &mut cx) {
            Poll::Ready(next) => return next.ok().flatten(),
            Poll::Pending => _ = disk(shared).serve(),
        }
    }
    panic!("the disk does not answer");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purge_cuts_off_no_reader_of_a_body_that_was_promoted_twice() {
    let vfs = MemoryDirectory::new();
    let (shared, _) = over(&vfs);
    let (object, at, bytes) = large(&shared, "/film");
    let first = Arc::clone(object.elsewhere().expect("a body on disk"));
    let mut slow = first.open();
    let begun = next(&shared, &mut *slow).expect("bytes");
    // It is demoted, promoted and purged.
    shared.cache.withdraw(at.0, &object);
    drop(object);
    let second = DiskBody::at(&shared.cache, at.0, at.1, bytes.len() as u64, BodyPrefix::default());
    invalidate(&shared, InvalidationTarget::key(&key(&shared, "/film"))).await;
    drop(second);
    chores(&shared);
    assert_eq!(replayed(&vfs), 1, "the record is there yet");
    let mut read = begun.to_vec();
    while let Some(piece) = next(&shared, &mut *slow) {
        read.extend_from_slice(&piece);
    }
    assert!(read == bytes, "{} bytes of {}", read.len(), bytes.len());
    drop(slow);
    settle(&shared);
    assert_eq!(disk(&shared).stats().records, 0, "it goes with its last reader");
    chores(&shared);
    assert_eq!(replayed(&vfs), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_body_whose_volume_is_out_leaves_the_index() {
    let broken = Arc::new(AtomicBool::new(false));
    let is = Arc::clone(&broken);
    let vfs = FaultyDirectory::new(MemoryDirectory::new(), move |_, _| {
        is.load(Ordering::Relaxed).then_some(InjectedFault::Broken)
    });
    let (shared, _) = over(&vfs);
    let (object, ..) = large(&shared, "/film");
    let mut reading = Arc::clone(object.elsewhere().expect("a body on disk")).open();
    assert!(next(&shared, &mut *reading).is_some());
    broken.store(true, Ordering::Relaxed);
    disk(&shared).append(Bytes::from_static(b"x")).expect_err("the journal fails");
    assert!(object.is_live());
    while next(&shared, &mut *reading).is_some() {}
    assert!(!object.is_live(), "later requests fetch anew");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_body_that_has_just_gone_has_no_readers_and_leaves_the_index() {
    let (shared, _) = over(&MemoryDirectory::new());
    let (object, at, _) = large(&shared, "/film");
    assert!(disk(&shared).forget(at.1));
    let reader = object.reader();
    assert!(reader.is_behind() && !reader.is_beyond());
    assert!(!object.is_live(), "later requests fetch anew");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_body_that_its_origin_confirms_is_on_disk_under_its_new_head() {
    let vfs = MemoryDirectory::new();
    let (shared, _) = over(&vfs);
    let (old, at, bytes) = large(&shared, "/film");
    let cache = &shared.cache;
    let mut early = Arc::clone(old.elsewhere().expect("a body on disk")).open();
    let begun = next(&shared, &mut *early).expect("bytes");
    let lead = cache.begin_refresh(&key(&shared, "/film"), &old).expect("no other request fetches");
    let new = lead.freshen(permit(), &old, head_of(bytes.len(), 3_600_000), None);
    assert!(new.is_live() && !old.is_live());
    drop(old);
    assert!(cache.copy(at.0, &new), "what the chores do");
    assert!(cache.copy(at.0, &new), "and once is enough");
    settle(&shared);
    assert_eq!(disk(&shared).stats().records, 1 + 6, "one head, and its parts");
    let mut read = begun.to_vec();
    while let Some(piece) = next(&shared, &mut *early) {
        read.extend_from_slice(&piece);
    }
    assert!(read == bytes, "earlier readers go on: {}", read.len());
    drop((new, early));

    let (again, _) = over(&vfs.copy());
    let key = key(&again, "/film");
    let options = BeginOptions::default();
    let MissStep::Lead(lead) = again.cache.begin(&key, &mut |_, _| (), options, rt::now().mono_ms)
    else {
        panic!("it is in memory");
    };
    let [place] = *lead.cold() else { panic!("{:?}", lead.cold()) };
    let store = again.cache.lower().store.get().expect("a disk");
    let answer =
        store.disk.read_now(place, key.hash(), &disk::RecordRequest::whole()).expect("all of it");
    let raised = store.decode(&answer, rt::now()).expect("a response");
    assert_eq!(raised.record.lifetime_ms(), 3_600_000);
    // One read fetches some 4 MiB.
    let body = answer.body.concat();
    assert_eq!(answer.length, bytes.len() as u64);
    assert!(body.len() >= 4 << 20 && bytes.starts_with(&body), "{} bytes", body.len());
}

#[test]
fn only_what_answers_by_itself_from_where_it_lies_is_lent() {
    let cache = small_cache(0);
    let lent = |flags: Flags, is_whole: bool, later_ms: u64| {
        let mut key = KeyBuf::new();
        key.finish(&HashSeed::from_u64(1));
        let now_ms = rt::now().mono_ms;
        let begun = cache.begin(&key, &mut |_, _| (), BeginOptions::default(), now_ms);
        let MissStep::Lead(lead) = begun else { panic!("something is stored") };
        let filling = lead.store(permit(), NewObject { flags, ..head_of(0, 1_000_000) }, None);
        let may = promotion::may_lend(filling.object(), is_whole, now_ms + later_ms);
        filling.abort();
        may
    };
    let plain = Flags::default();
    assert!(lent(plain, true, 0) && lent(plain, false, 0));
    assert!(!lent(plain, true, 2_000_000), "it is stale");
    assert!(!lent(Flags { must_validate: true, ..plain }, true, 0), "it is to be confirmed");
    let negotiated = Flags { negotiated: true, ..plain };
    assert!(lent(negotiated, true, 0) && !lent(negotiated, false, 0));
}
