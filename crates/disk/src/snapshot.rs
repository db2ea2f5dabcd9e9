//! The snapshot of a volume: which records of its segments are dead, and which were read. It
//! replaces all journals before its generation. The records themselves are in the footers of the
//! segments.

use std::io;

use hashbrown::HashMap;

use crate::checksum::{self, SUM_BYTES, seed_of};
use crate::layout::{ASKED, LIVE, Row};
use crate::segment::{Segment, Usage};
use crate::vfs::{Vfs, read_file, replace};

const MAGIC: u32 = u32::from_le_bytes(*b"LSNP");

/// Distinguishes the checksums of snapshots.
const OF_SNAPSHOT: u64 = 5;

/// The longest snapshot: four bytes for each marked record, and 24 for each segment.
const SNAPSHOT_BYTES_MAX: u64 = 1 << 34;

const PREFIX: &str = "snapshot-";

/// The marks of one segment's records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SegmentMarks {
    pub(crate) epoch: u64,
    /// True if the segment has no live records.
    pub(crate) freed: bool,
    /// Units of marked records with their marks, in order.
    marks: Vec<u32>,
}

/// A decoded snapshot.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) generation: u64,
    /// The newest durable invalidation.
    pub(crate) sealed: u64,
    pub(crate) segments: HashMap<u32, SegmentMarks>,
}

/// The mark of a dead record. A live record that was read has [`ASKED`].
const DEAD: u32 = LIVE;

impl SegmentMarks {
    /// The marks of a segment's records.
    pub(crate) fn of(segment: &Segment) -> Self {
        let marks = segment.rows.iter().filter_map(|row| {
            let dead = if row.is(LIVE) { 0 } else { DEAD };
            let asked = if row.is(ASKED) { ASKED } else { 0 };
            (dead | asked != 0).then_some(row.unit() | dead | asked)
        });
        let freed = match segment.usage {
            Usage::Free | Usage::Emptied => true,
            Usage::Bad => segment.rows.is_empty(),
            Usage::Unknown | Usage::Open | Usage::Full | Usage::Sealed => false,
        };
        Self { epoch: segment.epoch, freed, marks: marks.collect() }
    }

    /// Sets the marks of a row.
    pub(crate) fn mark(&self, row: &mut Row) {
        let unit = |mark: &u32| mark & (LIVE - 1);
        if let Ok(index) = self.marks.binary_search_by_key(&row.unit(), unit) {
            if self.marks[index] & DEAD != 0 {
                row.set(LIVE, false);
            }
            row.set(ASKED, self.marks[index] & ASKED != 0);
        }
    }
}

fn file_name(generation: u64) -> String {
    format!("{PREFIX}{generation:016x}")
}

fn seed(key: u64, generation: u64) -> u64 {
    seed_of(key, &[OF_SNAPSHOT, generation])
}

/// Writes a snapshot and returns its bytes.
///
/// # Errors
/// Those of the system.
pub(crate) fn write(
    vfs: &dyn Vfs,
    key: u64,
    generation: u64,
    sealed: u64,
    segments: impl Iterator<Item = (u32, SegmentMarks)>,
) -> io::Result<u64> {
    let mut out = vec![0; SUM_BYTES];
    out.extend_from_slice(&MAGIC.to_le_bytes());
    out.extend_from_slice(&sealed.to_le_bytes());
    for (number, known) in segments {
        let counts = [number, u32::from(known.freed), known.marks.len() as u32];
        out.extend(counts.into_iter().flat_map(u32::to_le_bytes));
        out.extend_from_slice(&known.epoch.to_le_bytes());
        out.extend(known.marks.into_iter().flat_map(u32::to_le_bytes));
    }
    checksum::seal(seed(key, generation), 0, &mut out);
    replace(vfs, &file_name(generation), &out)?;
    Ok(out.len() as u64)
}

fn decode(key: u64, generation: u64, bytes: &[u8]) -> Option<Snapshot> {
    if !checksum::is_sound(seed(key, generation), 0, bytes) {
        return None;
    }
    let mut rest = &bytes[SUM_BYTES..];
    if short(&mut rest)? != MAGIC {
        return None;
    }
    let mut snapshot = Snapshot { generation, sealed: long(&mut rest)?, segments: HashMap::new() };
    while !rest.is_empty() {
        let [number, freed, marks] = [short(&mut rest)?, short(&mut rest)?, short(&mut rest)?];
        let epoch = long(&mut rest)?;
        let (encoded, later) = rest.split_at_checked(marks as usize * 4)?;
        rest = later;
        let marks = encoded.as_chunks().0.iter().map(|mark| u32::from_le_bytes(*mark)).collect();
        snapshot.segments.insert(number, SegmentMarks { epoch, freed: freed != 0, marks });
    }
    Some(snapshot)
}

fn short(bytes: &mut &[u8]) -> Option<u32> {
    let (number, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u32::from_le_bytes(*number))
}

fn long(bytes: &mut &[u8]) -> Option<u64> {
    let (number, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u64::from_le_bytes(*number))
}

/// The newest intact snapshot, and the number of damaged ones.
///
/// # Errors
/// Those of the system.
pub(crate) fn read(vfs: &dyn Vfs, key: u64) -> io::Result<(Option<Snapshot>, u64)> {
    let mut damaged = 0;
    let mut generations = generations(vfs)?;
    generations.sort_unstable();
    for generation in generations.into_iter().rev() {
        let bytes = read_file(vfs, &file_name(generation), SNAPSHOT_BYTES_MAX)?;
        let snapshot = bytes.and_then(|bytes| decode(key, generation, &bytes));
        if snapshot.is_some() {
            return Ok((snapshot, damaged));
        }
        damaged += 1;
    }
    Ok((None, damaged))
}

/// The generations of all snapshots.
fn generations(vfs: &dyn Vfs) -> io::Result<Vec<u64>> {
    let names = vfs.list()?;
    let numbers = names.iter().filter_map(|name| name.strip_prefix(PREFIX));
    Ok(numbers.filter_map(|number| u64::from_str_radix(number, 16).ok()).collect())
}

/// Removes all journals and snapshots before `generation`, and incomplete files.
///
/// # Errors
/// Those of the system.
pub(crate) fn remove_before(vfs: &dyn Vfs, generation: u64) -> io::Result<()> {
    for name in vfs.list()? {
        let number = name.strip_prefix(PREFIX).or_else(|| name.strip_prefix("journal-"));
        let old = number.is_some_and(|number| {
            u64::from_str_radix(number, 16)
                .map_or_else(|_| number.ends_with(".new"), |at| at < generation)
        });
        if old {
            vfs.remove(&name)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vfs::MemoryDirectory;

    #[test]
    fn the_newest_whole_snapshot_is_read() {
        let vfs = MemoryDirectory::new();
        let known = |epoch| SegmentMarks { epoch, freed: false, marks: vec![3 | DEAD, 9 | ASKED] };
        for generation in [4, 5] {
            let segments = [(7, known(generation))].into_iter();
            write(&vfs, 1, generation, 77, segments).unwrap();
        }
        let (snapshot, damaged) = read(&vfs, 1).unwrap();
        let snapshot = snapshot.unwrap();
        assert_eq!((snapshot.generation, snapshot.sealed, damaged), (5, 77, 0));
        assert_eq!(snapshot.segments[&7], known(5));
        vfs.damage(&file_name(5), |bytes| bytes[20] ^= 4);
        let (snapshot, damaged) = read(&vfs, 1).unwrap();
        assert_eq!((snapshot.unwrap().generation, damaged), (4, 1));
        assert!(read(&vfs, 2).unwrap().0.is_none(), "another volume's");
        remove_before(&vfs, 5).unwrap();
        assert_eq!(vfs.list().unwrap(), [file_name(5)]);
    }
}
