//! Measures a store in a directory: the cost of a put, a read and a start, and the bytes for a
//! record.
//!
//!     cargo run --profile quick -p disk --example measure -- DIRECTORY [RECORDS] [BYTES]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::clock::System;
use bytes::Bytes;
use disk::vfs::RealDirectory;
use disk::{
    Body, Clock, Config, Disk, Entry, FoundRecord, OpenedStore, Owner, RecordAddress,
    RecordRequest, VolumeCondition,
};
use disk::{VolumeConfig, tools};
use parking_lot::Mutex;

/// Keeps addresses, as an index does.
#[derive(Default)]
struct Notes {
    found: Mutex<Vec<(u64, RecordAddress)>>,
    count: AtomicU64,
}

impl Owner for Notes {
    fn found(&self, records: &[FoundRecord]) {
        self.count.fetch_add(records.len() as u64, Ordering::Relaxed);
        self.found.lock().extend(records.iter().map(|found| (found.hash, found.place)));
    }

    fn moved(&self, _: u64, _: RecordAddress, _: RecordAddress) -> bool {
        true
    }

    fn dropped(&self, _: u64, _: RecordAddress) {}

    fn changed(&self, _: usize, _: VolumeCondition) {}
}

fn open(path: &Path, bytes: u64) -> Result<(Disk, Arc<Notes>), Box<dyn std::error::Error>> {
    let volume = VolumeConfig::new(Arc::new(RealDirectory::new(path)?), bytes);
    let notes = Arc::new(Notes::default());
    let clock: Clock = Arc::new(|| System.now());
    let config = Config::new(vec![volume]);
    let OpenedStore { disk, .. } = Disk::open(config, Arc::clone(&notes) as _, clock)?;
    disk.find();
    while !disk.has_found() {
        std::thread::yield_now();
    }
    Ok((disk, notes))
}

/// Puts all records, and prints the cost.
fn put_all(disk: &Disk, records: u64, len: usize) -> Vec<(u64, RecordAddress)> {
    let (head, body) = (Bytes::from(vec![b'h'; 300]), Bytes::from(vec![b'b'; len]));
    let (begin, mut put_us, mut places) = (System.micros(), 0, Vec::new());
    for hash in 0..records {
        let entry = || Entry {
            hash,
            passed: 0,
            expires_ms: u64::MAX,
            order: None,
            head: head.clone(),
            body: Body::Bytes(body.clone()),
        };
        let place = loop {
            let at = System.micros();
            if let Some(place) = disk.put(entry()) {
                put_us += System.micros() - at;
                break place;
            }
            std::thread::yield_now();
        };
        places.push((hash, place));
    }
    while disk.stats().queued_bytes > 0 {
        std::thread::yield_now();
    }
    let wrote_us = System.micros() - begin;
    let stats = disk.stats();
    let (own, written) = ((records * (len + 300) as u64) as f64, stats.written_bytes as f64);
    println!("put {:.0} ns", put_us as f64 * 1000.0 / records as f64);
    println!("written {:.0} MB/s", written / wrote_us as f64);
    println!("on disk {:.4} of its length", written / own);
    println!("index {:.1} bytes a record", stats.index_bytes as f64 / records as f64);
    places
}

fn read_all(disk: &Disk, places: &[(u64, RecordAddress)]) {
    let (begin, mut there) = (System.micros(), 0_u64);
    for (hash, place) in places {
        there += u64::from(disk.read_now(*place, *hash, &RecordRequest::whole()).is_some());
    }
    let read_ns = (System.micros() - begin) as f64 * 1000.0 / places.len() as f64;
    println!("read at once {read_ns:.0} ns, {there} of {}", places.len());
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("name a directory for the volume")?;
    let path = Path::new(&path);
    let records: u64 = arguments.next().map_or(Ok(100_000), |text| text.parse())?;
    let len: usize = arguments.next().map_or(Ok(10_240), |text| text.parse())?;
    let room = (records * (len as u64 + 600) * 5 / 4).max(512 << 20);
    let (disk, _) = open(path, room)?;
    let places = put_all(&disk, records, len);
    read_all(&disk, &places);
    let begin = System.micros();
    for number in 0..200_u64 {
        drop(disk.append(Bytes::copy_from_slice(&number.to_le_bytes()))?);
    }
    println!("append {:.0} us, one by one", (System.micros() - begin) as f64 / 200.0);
    disk.stop();

    let begin = System.micros();
    let (disk, notes) = open(path, room)?;
    let all_us = System.micros() - begin;
    let found = notes.count.load(Ordering::Relaxed);
    println!("found {found} in {:.0} ms", all_us as f64 / 1000.0);
    drop(disk);
    let begin = System.micros();
    let vfs: Arc<dyn disk::vfs::Vfs> = Arc::new(RealDirectory::new(path)?);
    let clock: Clock = Arc::new(|| System.now());
    let checked = tools::check(&vfs, &clock)?;
    println!("checked {} in {:.0} ms", checked.sound, (System.micros() - begin) as f64 / 1000.0);
    Ok(())
}
