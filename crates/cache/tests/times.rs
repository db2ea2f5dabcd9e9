//! The times of purges over a million objects, and of hits beside them. They are printed, not
//! asserted: `LARDER_TEST_FULL=1 cargo test --release -p cache --test times -- --nocapture`
#![cfg(not(loom))]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use base::{HashSeed, KeyBuf};
use cache::{
    BanSelector, BeginOptions, Cache, CacheLookup, Config, FetchDecision, Flags, NewBan, NewObject,
    PushOutcome, Tags,
};
use message::store::{Permit, Ruling};
use message::{HeaderBlock, Status};

const OBJECTS: usize = 1_000_000;
const BODY: [u8; 1024] = [b'x'; 1024];
/// The tag of every tenth object.
const TAG: u64 = 7;

fn key(n: usize) -> KeyBuf {
    let mut key = KeyBuf::new();
    key.field(b"example.org");
    key.field(format!("/page/{n:07}").as_bytes());
    key.finish(&HashSeed::from_u64(1));
    key
}

/// A permit to store anything.
fn permit() -> Permit {
    let ruling = Ruling { passed: false, uncacheable: false, findable: true };
    Permit::by_program(ruling, &HeaderBlock::new()).expect("nothing forbids it")
}

fn put(cache: &Arc<Cache>, n: usize, tags: Tags) {
    let begun = cache.begin(&key(n), &mut |_, _| (), BeginOptions::default(), 0);
    let (FetchDecision::Lead(lead) | FetchDecision::Alone(lead)) = begun else {
        panic!("it is not there yet")
    };
    let new = NewObject {
        status: Status::OK,
        head: vec![b'h'; 180].into(),
        etag: None,
        last_modified: None,
        date: None,
        born_ms: 0,
        lifetime_ms: 1_000_000,
        grace_ms: 0,
        stale_if_error_ms: 0,
        stale_if_unreachable_ms: 0,
        flags: Flags::default(),
        tags,
        note: Box::default(),
        length: Some(BODY.len() as u64),
    };
    let mut filling = lead.store(permit(), new, None);
    assert_eq!(filling.push(&BODY), PushOutcome::Ok);
    assert!(filling.finish());
}

/// Ten tags, as a shop's page has.
fn tags_of(n: usize) -> Tags {
    let mut tags: Vec<u64> =
        (0..9).map(|at| 1000 + (n * 31 + at * 7919) as u64 % 100_000).collect();
    if n.is_multiple_of(10) {
        tags.push(TAG);
    }
    Tags::new(tags)
}

/// The 99th percentile and the largest.
fn summary(mut times: Vec<Duration>) -> (Duration, Duration) {
    times.sort();
    (times[times.len() * 99 / 100], times[times.len() - 1])
}

/// Times of lookups until `done`.
fn hits(cache: &Cache, done: &AtomicBool, from: usize) -> Vec<Duration> {
    let mut times = Vec::new();
    let mut n = from;
    while !done.load(Ordering::Relaxed) {
        n = (n * 7 + 12_347) % OBJECTS;
        let key = key(n);
        let begun = Instant::now();
        let found = cache.lookup(&key, &mut |_, _| (), 0);
        times.push(begun.elapsed());
        drop(found);
    }
    times
}

/// Runs `work` beside two threads of hits. Returns its result and the times of the hits.
fn under_load<T>(cache: &Arc<Cache>, work: impl FnOnce() -> T) -> (T, Vec<Duration>) {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let done = &done;
        let readers: Vec<_> =
            (0..2).map(|n| scope.spawn(move || hits(cache, done, 17 + n))).collect();
        std::thread::sleep(Duration::from_millis(200));
        let given = work();
        done.store(true, Ordering::Relaxed);
        let times = readers.into_iter().flat_map(|reader| reader.join().expect("no panic"));
        (given, times.collect())
    })
}

#[test]
fn purges_at_a_million_objects() {
    if std::env::var_os("LARDER_TEST_FULL").is_none_or(|value| value != "1") {
        return;
    }
    let cache = Cache::new(Config {
        budget_bytes: 4 << 30,
        held_bytes_max: 2 << 30,
        max_variants: 4,
        object_bytes_max: 1 << 20,
        waiters_max: 100,
        window_bytes: 65_536,
        hit_for_miss_ms: 1000,
        bans_max: 1000,
        index_bytes: 64 << 20,
    });
    (0..OBJECTS).for_each(|n| put(&cache, n, Tags::default()));
    let untagged = cache.stats().bytes;
    cache.clear();
    (0..OBJECTS).for_each(|n| put(&cache, n, tags_of(n)));
    let tagged = cache.stats().bytes;
    println!("bytes per object: {} untagged", untagged as usize / OBJECTS - BODY.len());
    println!("bytes per object: {} with ten tags", tagged as usize / OBJECTS - BODY.len());

    let ((), idle) = under_load(&cache, || std::thread::sleep(Duration::from_secs(2)));
    println!("hits alone: p99 and longest {:?}", summary(idle));

    let (urls, during) = under_load(&cache, || {
        let purge = |n: usize| {
            let begun = Instant::now();
            assert_eq!(cache.invalidate(&key(n * 97 + 1)), 1);
            begun.elapsed()
        };
        (0..10_000).map(purge).collect::<Vec<_>>()
    });
    println!("10,000 purges by key: p99 and longest {:?}", summary(urls));
    println!("hits meanwhile: p99 and longest {:?}", summary(during));

    let pieces = AtomicUsize::new(0);
    let ((forced, answered, objects), during) = under_load(&cache, || {
        let begun = Instant::now();
        let ban = cache.ban(NewBan {
            text: "tag".into(),
            which: BanSelector { tags: Some(Tags::new(vec![TAG])), test: None },
            ..NewBan::default()
        });
        let forced = begun.elapsed();
        cache.sweep(ban.number(), 0, &mut || {
            // As the daemon's sweeps pause.
            if pieces.fetch_add(1, Ordering::Relaxed) % 8 == 7 {
                std::thread::sleep(Duration::from_micros(100));
            }
        });
        (forced, begun.elapsed(), ban.objects())
    });
    println!("purge of {objects} objects by tag: in force after {forced:?}, counted {answered:?}");
    println!("hits meanwhile: p99 and longest {:?}", summary(during));
    let gone = |n| matches!(cache.lookup(&key(n), &mut |_, _| (), 0), CacheLookup::Nothing);
    assert!((0..OBJECTS).step_by(10).all(gone));
}
