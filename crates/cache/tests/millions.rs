//! Ten million small objects: the longest lookup while the store grows, while it evicts at its
//! budget, and while a purge by tag removes a tenth of it. The times are printed, not asserted. It
//! takes about 6 GiB: `LARDER_TEST_FULL=1 cargo test --release -p cache --test millions --
//! --nocapture`
#![cfg(not(loom))]

use std::fmt;
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

const OBJECTS: usize = 10_000_000;
const BODY: [u8; 100] = [b'x'; 100];
const HEAD: [u8; 64] = [b'h'; 64];
/// The tag of every tenth object.
const TAG: u64 = 7;
/// The longest time that a hit may wait for a lock.
const LONG: Duration = Duration::from_millis(1);

fn config(budget_bytes: u64) -> Config {
    Config {
        budget_bytes,
        held_bytes_max: 0,
        max_variants: 4,
        object_bytes_max: 1 << 20,
        waiters_max: 100,
        window_bytes: 65_536,
        hit_for_miss_ms: 1000,
        bans_max: 1000,
        index_bytes: 64 << 20,
    }
}

fn write_key(key: &mut KeyBuf, n: usize) {
    key.clear();
    key.field(b"example.org");
    key.field(&n.to_be_bytes());
    key.finish(&HashSeed::from_u64(1));
}

/// A permit to store anything.
fn permit() -> Permit {
    let ruling = Ruling { passed: false, uncacheable: false, findable: true };
    Permit::by_program(ruling, &HeaderBlock::new()).expect("nothing forbids it")
}

fn put(cache: &Arc<Cache>, key: &mut KeyBuf, n: usize) {
    write_key(key, n);
    let begun = cache.begin(key, &mut |_, _| (), BeginOptions::default(), 0);
    let (FetchDecision::Lead(lead) | FetchDecision::Alone(lead)) = begun else {
        panic!("it is not there yet")
    };
    let tags = if n.is_multiple_of(10) { Tags::new(vec![TAG]) } else { Tags::default() };
    let new = NewObject {
        status: Status::OK,
        head: HEAD.into(),
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
    if filling.stored() {
        assert_eq!(filling.push(&BODY), PushOutcome::Ok);
        filling.finish();
    }
}

/// Lookups by duration, in buckets of a sixteenth of a doubling.
struct Times {
    buckets: Vec<u64>,
    max: Duration,
    long: u64,
}

impl Times {
    fn add(&mut self, time: Duration) {
        let nanos = (time.as_nanos() as u64).max(16);
        let top = 63 - nanos.leading_zeros() as usize;
        self.buckets[top * 16 + (nanos >> (top - 4) & 15) as usize] += 1;
        self.max = self.max.max(time);
        self.long += u64::from(time > LONG);
    }

    fn at(&self, part: f64) -> Duration {
        let all: u64 = self.buckets.iter().sum();
        let mut left = (all as f64 * part) as u64;
        for (at, count) in self.buckets.iter().enumerate() {
            if *count > left {
                return Duration::from_nanos((16 + at as u64 % 16) << (at / 16 - 4));
            }
            left -= count;
        }
        self.max
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [p50, p99, p9999] = [0.5, 0.99, 0.9999].map(|part| self.at(part));
        let (count, max, long) = (self.buckets.iter().sum::<u64>(), self.max, self.long);
        write!(
            f,
            "{count} hits: p50 {p50:?}, p99 {p99:?}, p99.99 {p9999:?}, longest {max:?}, {long} > {LONG:?}"
        )
    }
}

/// Looks up the first `filled` objects in turn until `done`.
fn hits(cache: &Cache, done: &AtomicBool, filled: &AtomicUsize) -> Times {
    let mut times = Times { buckets: vec![0; 64 * 16], max: Duration::ZERO, long: 0 };
    let (mut key, mut n) = (KeyBuf::new(), 17_usize);
    while !done.load(Ordering::Relaxed) {
        n = n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        write_key(&mut key, (n >> 20) % filled.load(Ordering::Relaxed).max(1));
        let begun = Instant::now();
        let found = cache.lookup(&key, &mut |_, _| (), 0);
        times.add(begun.elapsed());
        drop(found);
    }
    times
}

/// Runs `work` beside a thread of hits, and prints the times of both.
fn beside_hits(cache: &Arc<Cache>, what: &str, filled: &AtomicUsize, work: impl FnOnce()) {
    let done = AtomicBool::new(false);
    let (took, times) = std::thread::scope(|scope| {
        let reader = scope.spawn(|| hits(cache, &done, filled));
        let begun = Instant::now();
        work();
        done.store(true, Ordering::Relaxed);
        (begun.elapsed(), reader.join().expect("no panic"))
    });
    let stats = cache.stats();
    println!("{what}, {took:.1?}: {times}");
    println!(
        "    {} objects, {} MiB, {} evicted, {} not stored",
        stats.objects,
        stats.bytes >> 20,
        stats.evictions,
        stats.refused
    );
}

#[test]
fn hits_beside_ten_million_objects() {
    if std::env::var_os("LARDER_TEST_FULL").is_none_or(|value| value != "1") {
        return;
    }
    let objects = OBJECTS;
    let cache = Cache::new(config(objects as u64 * 700));
    let filled = AtomicUsize::new(0);
    let mut key = KeyBuf::new();
    let mut fill = |from: usize, to: usize| {
        for n in from..to {
            put(&cache, &mut key, n);
            filled.store(n, Ordering::Relaxed);
        }
    };
    beside_hits(&cache, "growth", &filled, || fill(0, objects));
    beside_hits(&cache, "a spinning neighbour", &filled, || {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(3) {
            std::hint::spin_loop();
        }
    });
    cache.set_config(config(cache.stats().bytes));
    beside_hits(&cache, "eviction", &filled, || fill(objects, objects + objects / 5));
    beside_hits(&cache, "purge by tag", &filled, || {
        let ban = cache.ban(NewBan {
            number: 0,
            data: Box::default(),
            text: "tag".into(),
            which: BanSelector { tags: Some(Tags::new(vec![TAG])), test: None },
            soft: false,
            now_ms: 0,
        });
        cache.sweep(ban.number(), 0, &mut || ());
        println!("{} purged", ban.objects());
    });
    let gone = |found| matches!(found, CacheLookup::Nothing);
    write_key(&mut key, objects);
    assert!(gone(cache.lookup(&key, &mut |_, _| (), 0)), "it has the tag");
}
