//! Many small records on a real file system: the cost of a start, of a purge of all, and of many
//! invalidations. Times and memory are printed, not asserted: `DISK_RECORDS=10000000
//! DISK_PURGED=1000000 DISK_INVALIDATIONS=1000000 cargo test --release -p disk tests::many_records
//! -- --nocapture --test-threads 1`

use std::fs::{read_to_string, remove_dir_all};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use base::clock::System;

use super::*;
use crate::vfs::RealDirectory;

/// Records in the suite; `DISK_RECORDS` sets another number.
const RECORDS: u64 = 20_000;

/// Records in the suite that one purge removes; `DISK_PURGED` sets another number.
const PURGED: u64 = 20_000;

/// Invalidations in the suite; `DISK_INVALIDATIONS` sets another number.
const INVALIDATIONS: u64 = 5_000;

/// One record of this many is forgotten.
const FORGOTTEN_EACH: u64 = 10;

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |number| number.parse().unwrap())
}

/// A directory that is removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("larder-disk-{name}-{}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = remove_dir_all(&self.0);
    }
}

/// Places by hash, eight bytes each: small compared with the measured memory.
struct Places {
    places: Mutex<Vec<Option<FoundRecord>>>,
    count: AtomicU64,
    first: Mutex<Option<(FoundRecord, Instant)>>,
}

impl Places {
    fn new(records: u64) -> Arc<Self> {
        let places = Mutex::new(vec![None; records as usize]);
        Arc::new(Self { places, count: AtomicU64::new(0), first: Mutex::new(None) })
    }
}

impl Owner for Places {
    fn found(&self, records: &[FoundRecord]) {
        let mut first = self.first.lock();
        if let (None, Some(record)) = (&*first, records.first()) {
            *first = Some((*record, Instant::now()));
        }
        drop(first);
        let mut places = self.places.lock();
        for record in records {
            let before = places[record.hash as usize].replace(*record);
            assert_eq!(before, None, "{} is found twice", record.hash);
        }
        self.count.fetch_add(records.len() as u64, Ordering::Relaxed);
    }

    fn moved(&self, hash: u64, old: RecordAddress, new: RecordAddress) -> bool {
        panic!("{hash} moved from {old:?} to {new:?}, though there is room");
    }

    fn dropped(&self, hash: u64, place: RecordAddress) {
        panic!("{hash} is dropped from {place:?}, though there is room");
    }

    fn changed(&self, volume: usize, condition: VolumeCondition) {
        panic!("volume {volume} is {condition:?}");
    }
}

fn open(folder: &Folder, records: u64) -> (OpenedStore, Arc<Places>) {
    let owner = Places::new(records);
    (open_for(folder, records, &owner), owner)
}

fn open_for(folder: &Folder, records: u64, owner: &Arc<Places>) -> OpenedStore {
    // For many segments even with few records.
    let segment_bytes = if records < 1_000_000 { 1 << 20 } else { 64 << 20 };
    let vfs = Arc::new(RealDirectory::new(&folder.0).unwrap());
    let room = (records * 320).next_multiple_of(segment_bytes) + 16 * segment_bytes;
    let volume =
        VolumeConfig { segment_bytes: segment_bytes as u32, ..VolumeConfig::new(vfs, room) };
    let config = Config { append_ms: 60_000, ..Config::new(vec![volume]) };
    let clock: Clock = Arc::new(|| System.now());
    Disk::open(config, Arc::clone(owner) as _, clock).unwrap()
}

fn wait(is: impl Fn() -> bool) {
    while !is() {
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// A store that has found all its records.
fn found(folder: &Folder, records: u64) -> (OpenedStore, Arc<Places>) {
    let (opened, owner) = open(folder, records);
    opened.disk.find();
    wait(|| opened.disk.has_found());
    (opened, owner)
}

fn length(hash: u64) -> usize {
    20 + hash as usize % 100
}

/// Puts records of 132 to 231 bytes, and waits until they are written.
fn put_all(disk: &Disk, records: u64) -> Vec<RecordAddress> {
    let put = |hash| {
        loop {
            match disk.put(entry(hash, 1, length(hash))) {
                Some(place) => return place,
                // The writer needs the processor more.
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    };
    let places = (0..records).map(put).collect();
    wait(|| disk.stats().queued_bytes == 0);
    places
}

/// Waits until a commit has made all forgets durable.
fn commit(disk: &Disk) {
    disk.begun().wait().unwrap();
}

fn read(disk: &Disk, place: RecordAddress, hash: u64) -> Result<RecordData, Error> {
    let (tell, told) = std::sync::mpsc::channel();
    let done = Box::new(move |answer| tell.send(answer).unwrap());
    disk.read(place, hash, RecordRequest::whole(), u64::MAX, done);
    told.recv().unwrap()
}

/// Resident memory of the process in bytes, as the system reports it.
fn resident() -> u64 {
    let status = read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// Starts over `folder`, and fails unless it finds all records except the forgotten ones.
fn start(folder: &Folder, records: u64, how: &str) -> Disk {
    let forgotten = records.div_ceil(FORGOTTEN_EACH);
    let owner = Places::new(records);
    let before = resident();
    let begin = Instant::now();
    let OpenedStore { disk, .. } = open_for(folder, records, &owner);
    let opened = begin.elapsed();
    disk.find();
    wait(|| owner.first.lock().is_some());
    let (first, at) = owner.first.lock().unwrap();
    let answer = read(&disk, first.place, first.hash).unwrap();
    let hit = begin.elapsed();
    check(first.hash, &answer);
    wait(|| disk.has_found());
    let all = begin.elapsed();
    let stats = disk.stats();
    let grown = resident().saturating_sub(before);
    println!(
        "{how}: opened after {:.1} ms, first found {:.1}, first read {:.1}, all {} found {:.0}; \
         index {:.1} bytes a record, resident {:.1}",
        ms(opened),
        ms(at - begin),
        ms(hit),
        stats.records,
        ms(all),
        stats.index_bytes as f64 / stats.records as f64,
        grown as f64 / stats.records as f64,
    );
    assert_eq!((stats.records, stats.found), (records - forgotten, records - forgotten));
    assert!(stats.index_bytes <= stats.records * 64, "{} bytes", stats.index_bytes);
    let places = owner.places.lock();
    for (hash, place) in (0..).zip(&*places) {
        assert_eq!(place.is_none(), hash % FORGOTTEN_EACH == 0, "{hash}");
    }
    for _ in 0..2000 {
        let hash = fastrand::u64(..records);
        if let Some(found) = &places[hash as usize] {
            check(hash, &read(&disk, found.place, hash).unwrap());
        }
    }
    drop(places);
    disk
}

#[test]
fn a_start_over_many_records_finds_all_but_those_forgotten() {
    let records = number("DISK_RECORDS", RECORDS);
    let folder = Folder::new("many");
    let (OpenedStore { disk, .. }, _) = found(&folder, records);
    let begin = Instant::now();
    let places = put_all(&disk, records);
    println!("{records} put after {:.0} ms", ms(begin.elapsed()));
    for place in places.iter().step_by(FORGOTTEN_EACH as usize) {
        assert!(disk.forget(*place));
    }
    drop(places);
    commit(&disk);
    // As after a kill: the newest segment has no table, and the journal no end.
    drop(disk);
    start(&folder, records, "after a kill").stop();
    start(&folder, records, "after a stop").stop();
}

#[test]
fn a_purge_of_many_records_is_durable_and_none_is_served_after() {
    let records = number("DISK_PURGED", PURGED);
    let folder = Folder::new("purged");
    let (OpenedStore { disk, .. }, _) = found(&folder, records);
    let places = put_all(&disk, records);
    let begin = Instant::now();
    let (effect, durability) = disk.begin_append(Bytes::from_static(b"all of them")).unwrap();
    let purge = effect.number();
    for place in &places {
        assert!(disk.forget(*place));
    }
    drop(effect);
    let effected = begin.elapsed();
    durability.wait().unwrap();
    println!(
        "{records} purged: no more served after {:.0} ms, durable after {:.0}",
        ms(effected),
        ms(begin.elapsed())
    );
    for (hash, place) in (0..).zip(&places) {
        assert_eq!(disk.read_now(*place, hash, &RecordRequest::head()), None);
    }
    assert!(matches!(read(&disk, places[0], 0), Err(Error::Gone)));
    // As after a kill before a commit: the records that come back are older than the purge.
    drop(disk);
    let begin = Instant::now();
    let (OpenedStore { disk, invalidations, .. }, owner) = found(&folder, records);
    let numbers: Vec<u64> = invalidations.iter().map(|known| known.number).collect();
    assert_eq!(numbers, [purge]);
    let back: Vec<FoundRecord> = owner.places.lock().iter().flatten().copied().collect();
    assert!(back.iter().all(|found| found.order < purge));
    for found in &back {
        assert!(disk.forget(found.place));
    }
    commit(&disk);
    let (back, took) = (back.len(), begin.elapsed());
    println!("after a kill: {back} came back, purged once more after {:.0} ms", ms(took));
    drop(disk);
    let (OpenedStore { disk, .. }, owner) = found(&folder, records);
    assert_eq!((owner.count.load(Ordering::Relaxed), disk.stats().records), (0, 0));
    disk.stop();
}

#[test]
fn many_invalidations_that_are_needed_no_more_are_no_burden_of_a_start() {
    let many = number("DISK_INVALIDATIONS", INVALIDATIONS);
    let folder = Folder::new("needless");
    let (OpenedStore { disk, .. }, _) = found(&folder, 100);
    let places = put_all(&disk, 100);
    let begin = Instant::now();
    let mut begun = Vec::new();
    for at in 0..many {
        let (effect, _) = disk.begin_append(format!("/a/page/of/a/site/{at}").into()).unwrap();
        begun.push(effect.number());
        drop(effect);
        if begun.len() == 1000 || at + 1 == many {
            // As it runs in the background, each second.
            disk.begun().wait().unwrap();
            disk.drop_invalidations(&std::mem::take(&mut begun));
        }
    }
    wait(|| disk.stats().invalidations == 0);
    commit(&disk);
    println!("{many} invalidations, none of them kept, after {:.0} ms", ms(begin.elapsed()));
    drop(disk);
    for how in ["after a kill", "after a stop"] {
        let begin = Instant::now();
        let (OpenedStore { disk, invalidations, .. }, owner) = open(&folder, 100);
        let opened = begin.elapsed();
        disk.find();
        wait(|| disk.has_found());
        let (opened, found) = (ms(opened), ms(begin.elapsed()));
        println!("{how}: opened after {opened:.1} ms, all found {found:.1}");
        assert_eq!(invalidations, []);
        assert_eq!(owner.count.load(Ordering::Relaxed), places.len() as u64);
        disk.stop();
    }
}

#[test]
fn many_invalidations_are_kept_until_they_are_released() {
    let many = number("DISK_INVALIDATIONS", INVALIDATIONS);
    let folder = Folder::new("invalidations");
    let (OpenedStore { disk, .. }, _) = found(&folder, 100);
    let places = put_all(&disk, 100);
    let begin = Instant::now();
    for at in 0..many {
        let text = format!("obj.http.x-url == /a/page/of/a/site/{at}");
        drop(disk.begin_append(text.into()).unwrap());
    }
    let begun = begin.elapsed();
    disk.begun().wait().unwrap();
    println!(
        "{many} invalidations: begun after {:.0} ms, durable after {:.0}, journal {} bytes",
        ms(begun),
        ms(begin.elapsed()),
        disk.stats().journal_bytes
    );
    drop(disk);
    for (how, more) in [("after a kill", 0), ("after a stop", 1)] {
        let begin = Instant::now();
        let (OpenedStore { disk, invalidations, .. }, owner) = open(&folder, 100);
        let opened = begin.elapsed();
        disk.find();
        wait(|| disk.has_found());
        println!(
            "{how}: opened after {:.1} ms, all found {:.1}, resident {:.0} bytes each",
            ms(opened),
            ms(begin.elapsed()),
            resident() as f64 / many as f64
        );
        assert_eq!(invalidations.len() as u64, many + more);
        assert!(invalidations.is_sorted_by_key(|known| known.number));
        assert_eq!(owner.count.load(Ordering::Relaxed), places.len() as u64);
        let (begin, place) = (Instant::now(), owner.places.lock()[7].unwrap().place);
        drop(disk.append(Bytes::from_static(b"one more")).unwrap());
        println!("{how}: one more is durable after {:.1} ms", ms(begin.elapsed()));
        check(7, &read(&disk, place, 7).unwrap());
        disk.stop();
    }
    let (OpenedStore { disk, .. }, _) = found(&folder, 100);
    disk.release(u64::MAX);
    disk.stop();
    let (OpenedStore { invalidations, disk, .. }, _) = open(&folder, 100);
    assert_eq!(invalidations, []);
    disk.stop();
}
