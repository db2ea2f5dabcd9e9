//! The entry points of the fuzz targets.

use std::sync::Arc;

use base::Now;
use bytes::Bytes;

use crate::layout::{SUPERBLOCK, Superblock};
use crate::owner::{FoundRecord, Owner, VolumeCondition};
use crate::record_address::RecordAddress;
use crate::record_request::RecordRequest;
use crate::vfs::MemoryDirectory;
use crate::{Body, Clock, Config, Disk, Entry, OpenedStore, VolumeConfig};

/// An owner without effects.
struct NullOwner;

impl Owner for NullOwner {
    fn found(&self, _: &[FoundRecord]) {}

    fn moved(&self, _: u64, _: RecordAddress, _: RecordAddress) -> bool {
        true
    }

    fn dropped(&self, _: u64, _: RecordAddress) {}

    fn changed(&self, _: usize, _: VolumeCondition) {}
}

fn open(vfs: &MemoryDirectory) -> Option<Disk> {
    let volume = VolumeConfig {
        segment_bytes: 4096,
        block_bytes: 512,
        ..VolumeConfig::new(Arc::new(vfs.clone()), 6 * 4096)
    };
    let sizes = Config { part_bytes: 700, journal_bytes: 1024, ..Config::new(vec![volume]) };
    let config = Config { threads: false, ..sizes };
    let clock: Clock = Arc::new(|| Now { mono_ms: 1000, unix_ms: 1_700_000_000_000 });
    let OpenedStore { disk, .. } = Disk::open(config, Arc::new(NullOwner), clock).ok()?;
    disk.settle();
    Some(disk)
}

fn body(hash: u64) -> Vec<u8> {
    (0..hash * 300).map(|at| (at ^ hash) as u8).collect()
}

/// A new volume with reproducible bytes, so that its checksums fit another run.
fn new_volume() -> MemoryDirectory {
    let superblock = Superblock {
        id: *b"always the same.",
        owner: [0; 32],
        segment_bytes: 4096,
        block_bytes: 512,
        segments: 6,
        segments_per_file: 4,
        session: 1,
        valid_from: 0,
        generation: 0,
    };
    MemoryDirectory::with([(SUPERBLOCK.to_owned(), superblock.encode().repeat(2))])
}

/// A volume with a few records, stopped or not, and their addresses.
fn volume(stopped: bool) -> (MemoryDirectory, Vec<(u64, RecordAddress)>) {
    let vfs = new_volume();
    let mut places = Vec::new();
    if let Some(disk) = open(&vfs) {
        for hash in 0..6 {
            let (head, body) = (Bytes::from_static(b"head"), Body::Bytes(body(hash).into()));
            let entry = Entry { hash, passed: 0, expires_ms: u64::MAX, order: None, head, body };
            places.extend(disk.put(entry).map(|place| (hash, place)));
            disk.settle();
        }
        drop(disk.append(Bytes::from_static(b"all of it")));
        if stopped {
            disk.stop();
        }
    }
    (vfs, places)
}

/// Seeds for [`recovery`]: pieces of a volume's files, in their place, in another place or in
/// another file.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for stopped in [true, false] {
        let files: Vec<Vec<u8>> = volume(stopped).0.contents().into_values().collect();
        for (file, bytes) in (0_u8..).zip(&files) {
            for (number, piece) in (0_u16..).zip(bytes.chunks(192)) {
                let there = number * 192;
                let orders = [(file, there), (file, there ^ 4096), (file ^ 1, there)];
                if piece.iter().all(|byte| *byte == 0) {
                    continue;
                }
                seeds.extend(orders.map(|(file, at)| {
                    let [high, low] = at.to_be_bytes();
                    let order = [u8::from(!stopped), file, high, low, piece.len() as u8];
                    [&order, piece].concat()
                }));
            }
        }
    }
    seeds
}

/// Opens a volume over which `data` has been written, as a file's number, an offset, a length and
/// bytes. A record that is found must be one that was put.
pub fn recovery(data: &[u8]) {
    let (vfs, places) = volume(data.first().is_some_and(|byte| byte % 2 == 0));
    let names: Vec<String> = vfs.contents().into_keys().collect();
    let mut rest = data.get(1..).unwrap_or_default();
    while let [file, high, low, len, later @ ..] = rest {
        let (bytes, later) = later.split_at(later.len().min(usize::from(*len)));
        let name = &names[usize::from(*file) % names.len()];
        vfs.damage(name, |old| {
            let at = usize::from(u16::from_be_bytes([*high, *low])) % old.len().max(1);
            let end = old.len().min(at + bytes.len());
            old[at..end].copy_from_slice(&bytes[..end - at]);
        });
        rest = later;
    }
    let Some(disk) = open(&vfs) else { return };
    for (hash, place) in places {
        if let Some(answer) = disk.read_now(place, hash, &RecordRequest::whole()) {
            assert!(answer.body.concat() == body(hash), "wrong bytes of {hash}");
        }
    }
    disk.stop();
    drop(open(&vfs));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_a_volume_are_sound_in_another_run() {
        for stopped in [true, false] {
            let [one, other] = [volume(stopped), volume(stopped)];
            assert_eq!(one.1.len(), 6);
            assert!(one.0.contents() == other.0.contents());
        }
        seeds().iter().for_each(|seed| recovery(seed));
    }
}
