//! Many small responses over a disk: they take nothing of the budget, all are found again, and a
//! full index blocks nothing. The memory used is printed, not asserted. The suite runs few;
//! `OBJECTS=20000000 cargo test --profile quick -p cache --test below -- --nocapture` runs as many
//! as 256 MiB of memory should serve, with about 8 GB of temporary files.
#![cfg(not(loom))]

use std::fs::{read_to_string, remove_dir_all};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use base::clock::System;
use base::{HashSeed, KeyBuf};
use bytes::Bytes;
use cache::{
    BeginOptions, Cache, Config, FetchDecision, Flags, Lower, NewObject, Object, PushOutcome,
    Record, Tags,
};
use disk::vfs::RealDirectory;
use disk::{
    Body, Disk, Entry, FoundRecord, OpenedStore, Owner, RecordAddress, RecordData, RecordRequest,
    VolumeCondition, VolumeConfig,
};
use message::store::{Permit, Ruling};
use message::{HeaderBlock, Status};

/// Responses in the suite.
const OBJECTS: u64 = 30_000;
const BODY: [u8; 100] = [b'x'; 100];
/// Responses that are looked up again.
const LOOKED_FOR: u64 = 5_000;

/// A disk as the lower tier, which accepts everything.
#[derive(Debug, Default)]
struct Below(OnceLock<Disk>);

impl Below {
    fn disk(&self) -> &Disk {
        self.0.get().expect("it has been opened")
    }

    fn read(&self, place: RecordAddress, hash: u64) -> Option<RecordData> {
        if let Some(answer) = self.disk().read_now(place, hash, &RecordRequest::whole()) {
            return Some(answer);
        }
        let (tell, told) = std::sync::mpsc::channel();
        let done = Box::new(move |answer| _ = tell.send(answer));
        self.disk().read(place, hash, RecordRequest::whole(), u64::MAX, done);
        told.recv().expect("every read is answered").ok()
    }
}

impl Lower for Below {
    type Place = RecordAddress;

    fn demote(&self, object: &Arc<Object>) -> Option<RecordAddress> {
        let mut head = Vec::new();
        object.encode(System.now(), &mut head);
        let body = object.whole()?.pieces().collect::<Vec<_>>().concat();
        self.disk().put(Entry {
            hash: KeyBuf::of_bytes(object.key(), &seed()).hash(),
            passed: object.passed(),
            expires_ms: u64::MAX,
            order: None,
            head: head.into(),
            body: Body::Bytes(Bytes::from(body)),
        })
    }

    fn forget(&self, place: RecordAddress) {
        self.disk().forget(place);
    }

    fn passed(&self) -> Option<u32> {
        None
    }
}

fn seed() -> HashSeed {
    HashSeed::from_u64(1)
}

/// The index for the disk's callbacks.
#[derive(Default)]
struct Index(OnceLock<Weak<Cache<Below>>>);

impl Index {
    fn cache(&self) -> Option<Arc<Cache<Below>>> {
        self.0.get()?.upgrade()
    }
}

impl Owner for Index {
    fn found(&self, records: &[FoundRecord]) {
        assert!(records.is_empty(), "the volume is new");
    }

    fn moved(&self, hash: u64, old: RecordAddress, new: RecordAddress) -> bool {
        self.cache().is_some_and(|cache| cache.move_cold(hash, old, new))
    }

    fn dropped(&self, hash: u64, place: RecordAddress) {
        _ = self.cache().is_some_and(|cache| cache.drop_cold(hash, place));
    }

    fn changed(&self, _: usize, condition: VolumeCondition) {
        panic!("the volume is {condition:?}");
    }
}

/// A directory that is removed when dropped.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        _ = remove_dir_all(&self.0);
    }
}

/// A cache with some 13 bytes for each response, over a disk with room for all of them and an index
/// of `index_bytes`.
fn over(folder: &Folder, objects: u64, index_bytes: u64) -> Arc<Cache<Below>> {
    let index = Arc::new(Index::default());
    let cache = Cache::with_lower(
        Arc::new(Below::default()),
        Config {
            budget_bytes: (objects * 134 / 10).max(1 << 20),
            held_bytes_max: 0,
            max_variants: 4,
            object_bytes_max: 1 << 20,
            waiters_max: 100,
            window_bytes: 65_536,
            hit_for_miss_ms: 120_000,
            bans_max: 100,
            index_bytes,
        },
    );
    index.0.set(Arc::downgrade(&cache)).expect("once");
    let vfs = Arc::new(RealDirectory::new(&folder.0).expect("a directory"));
    let volume = VolumeConfig::new(vfs, (objects * 512).max(64 << 20));
    let settings =
        disk::Config { index: Arc::clone(cache.index()), ..disk::Config::new(vec![volume]) };
    let OpenedStore { disk, .. } =
        Disk::open(settings, index, Arc::new(|| System.now())).expect("a volume");
    disk.find();
    while !disk.has_found() {
        std::thread::sleep(Duration::from_millis(1));
    }
    cache.lower().0.set(disk).expect("once");
    cache
}

fn key_of(n: u64) -> KeyBuf {
    let mut key = KeyBuf::new();
    key.field(&n.to_be_bytes());
    key.finish(&seed());
    key
}

fn put(cache: &Arc<Cache<Below>>, n: u64) {
    let begun = cache.begin(&key_of(n), &mut |_, _| (), BeginOptions::default(), 0);
    let FetchDecision::Lead(lead) = begun else {
        panic!("{n} is not fetched as others are: {begun:?}")
    };
    let new = NewObject {
        status: Status::OK,
        head: b"HTTP/1.1 200 OK\r\n\r\n"[..].into(),
        etag: None,
        last_modified: None,
        date: None,
        born_ms: 0,
        lifetime_ms: 1_000_000_000,
        grace_ms: 0,
        stale_if_error_ms: 0,
        stale_if_unreachable_ms: 0,
        flags: Flags::default(),
        tags: Tags::default(),
        note: Box::default(),
        length: Some(BODY.len() as u64),
    };
    let mut filling = lead.store(permit(), new, None);
    assert_eq!((filling.refused(), filling.push(&BODY)), (None, PushOutcome::Ok));
    assert!(filling.finish());
}

/// A permit to store anything.
fn permit() -> Permit {
    let ruling = Ruling { passed: false, uncacheable: false, findable: true };
    Permit::by_program(ruling, &HeaderBlock::new()).expect("nothing forbids it")
}

/// Stores this many responses, and demotes all of them to the disk.
fn fill(cache: &Arc<Cache<Below>>, objects: u64) {
    // What comes while the index is full is not kept: the thread that empties it may be late.
    let catch_up = || {
        while cache.lower().disk().is_behind() || cache.index().is_full() {
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    for n in 0..objects {
        put(cache, n);
        if n.is_multiple_of(64) {
            catch_up();
        }
    }
    let budget = cache.config().budget_bytes;
    while cache.stats().objects > 0 {
        cache.resize(0, 0);
        catch_up();
    }
    cache.resize(budget, 0);
}

/// Returns true if the lower tier has the response, with the right bytes.
fn is_there(cache: &Arc<Cache<Below>>, n: u64) -> bool {
    let key = key_of(n);
    let begun = cache.begin(&key, &mut |_, _| (), BeginOptions::default(), 0);
    let FetchDecision::Lead(lead) = begun else {
        panic!("{n} is not fetched as others are: {begun:?}")
    };
    let answers = lead.cold().iter().filter_map(|place| cache.lower().read(*place, key.hash()));
    let mut records = answers.filter_map(|answer| {
        let record = Record::decode(&answer.head, System.now())?;
        Some((record, answer.body.concat()))
    });
    records.any(|(record, body)| record.key() == key.bytes() && body == BODY)
}

fn resident() -> u64 {
    let status = read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// The part of the responses from number `first` to `objects` that is found.
fn found(cache: &Arc<Cache<Below>>, first: u64, objects: u64) -> f64 {
    let step = ((objects - first) / LOOKED_FOR).max(1) as usize;
    let looked_for: Vec<u64> = (first..objects).step_by(step).collect();
    let there = looked_for.iter().filter(|n| is_there(cache, **n)).count();
    there as f64 / looked_for.len() as f64
}

fn folder(name: &str) -> Folder {
    let name = format!("larder-cache-{name}-{}", std::process::id());
    Folder(std::env::temp_dir().join(name))
}

#[test]
fn all_demoted_responses_are_found_with_little_memory() {
    let objects = std::env::var("OBJECTS").map_or(OBJECTS, |n| n.parse().expect("a number"));
    let folder = folder("below");
    let cache = over(&folder, objects, objects * 64);
    let begun = Instant::now();
    fill(&cache, objects);
    let filled = begun.elapsed();
    let stats = cache.stats();
    assert_eq!((stats.refused, stats.markers, cache.index().refused()), (0, 0, 0));
    let ratio = found(&cache, 0, objects);
    println!(
        "{objects} responses over {} MiB after {filled:.0?}: {:.2} % found, index {:.1} bytes each, \
         resident {} MiB",
        cache.config().budget_bytes >> 20,
        ratio * 100.0,
        cache.index().used() as f64 / objects as f64,
        resident() >> 20
    );
    assert!(ratio == 1.0, "{ratio} found");
    assert!(cache.index().used() < objects * 60, "{} bytes", cache.index().used());
    cache.lower().disk().close();
}

#[test]
fn with_a_full_index_the_newest_are_found_and_service_continues() {
    let folder = folder("full");
    let index_bytes = OBJECTS * 24;
    let cache = over(&folder, OBJECTS, index_bytes);
    fill(&cache, OBJECTS);
    let stats = cache.stats();
    assert_eq!((stats.refused, stats.markers), (0, 0));
    let below = cache.lower().disk().stats();
    assert!(below.dropped_index > 0 && below.free_segments > 0, "{below:?}");
    assert!(cache.index().used() <= index_bytes + index_bytes / 4, "{:?}", cache.index());
    let (old, new) = (found(&cache, 0, OBJECTS / 4), found(&cache, OBJECTS * 9 / 10, OBJECTS));
    assert!(old < 0.5 && new > 0.5, "{old} of the oldest, {new} of the newest");
    cache.lower().disk().close();
}
