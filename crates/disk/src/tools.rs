//! Tools for a volume that no store has open: check, stat, export and empty. They must never write
//! to a volume, except to empty it.

use std::sync::Arc;

use bytes::Bytes;

use crate::config::{Clock, Config, VolumeConfig};
use crate::error::Error;
use crate::journal::StoreBaseline;
use crate::layout::{LIVE, PART, Row};
use crate::opening::{self, Purpose, look};
use crate::owner::{FoundRecord, Owner, Reason, VolumeCondition};
use crate::record_address::RecordAddress;
use crate::record_reading::ReadMode;
use crate::record_request::{RecordData, RecordRequest};
use crate::sequence::SequenceCounter;
use crate::stats::Stats;
use crate::sync::Mutex;
use crate::vfs::Vfs;
use crate::volume::{StoreContext, Volume};

/// Space in the settings of a volume that is only examined: its own size counts.
const ANY_BYTES: u64 = 1 << 40;

/// The summary of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Its name.
    pub volume: String,
    /// The approximate number of times that it was opened.
    pub session: u64,
    /// The generation of its newest journal; `None` without one.
    pub generation: Option<u64>,
    /// The approximate times of the oldest and the newest record, in milliseconds since 1970;
    /// `None` without records.
    pub written_ms: Option<(u64, u64)>,
    /// Bytes of a segment.
    pub segment_bytes: u32,
    /// The most bytes of a block.
    pub block_bytes: u32,
    /// Invalidations in its journal.
    pub invalidations: u64,
    /// The reason why it was taken out, if it was.
    pub out: Option<Reason>,
    /// False if the journal lost something, so that a store would begin empty.
    pub trusted: bool,
    /// Its counters and gauges, including damage.
    pub stats: Stats,
}

/// A record that is damaged or unreadable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// The number of the segment, from 0.
    pub segment: u32,
    /// The offset of the record in the segment.
    pub offset: u32,
    /// The hash of its key.
    pub hash: u64,
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckReport {
    /// The summary, after everything was read.
    pub summary: Summary,
    /// The number of intact records.
    pub sound: u64,
    /// The damaged or unreadable records.
    pub flaws: Vec<Flaw>,
}

/// A record to be exported.
#[derive(Clone, Debug)]
pub struct ExportedRecord {
    /// Hash, address and times.
    pub found: FoundRecord,
    /// The head.
    pub head: Bytes,
    /// Bytes of the whole body.
    pub length: u64,
}

/// Collects the records that are found.
#[derive(Debug, Default)]
struct RecordCollector(Mutex<Vec<FoundRecord>>);

impl Owner for RecordCollector {
    fn found(&self, records: &[FoundRecord]) {
        self.0.lock().extend_from_slice(records);
    }

    fn moved(&self, _: u64, _: RecordAddress, _: RecordAddress) -> bool {
        false
    }

    fn dropped(&self, _: u64, _: RecordAddress) {}

    fn changed(&self, _: usize, _: VolumeCondition) {}
}

/// A volume with all its records.
struct OfflineVolume {
    volume: Volume,
    found: Vec<FoundRecord>,
    generation: Option<u64>,
    out: Option<Reason>,
    trusted: bool,
}

impl OfflineVolume {
    fn open(vfs: &Arc<dyn Vfs>, clock: &Clock) -> Result<Self, Error> {
        let settings = VolumeConfig::new(Arc::clone(vfs), ANY_BYTES);
        let seen = look(&settings, None)?;
        let Some(superblock) = &seen.superblock else {
            let why = "there is no volume here".to_owned();
            return Err(Error::Config { volume: vfs.name(), why });
        };
        let mut all = StoreBaseline { owner: superblock.owner, ..StoreBaseline::default() };
        all.session = superblock.session;
        all.add(&seen.past.keep);
        let (out, generation) = (seen.marker, seen.past.generation);
        let trusted = !seen.is_broken();
        let notes = Arc::new(RecordCollector::default());
        let shared = StoreContext {
            config: Config { threads: false, ..Config::new(vec![settings]) },
            owner: Arc::clone(&notes) as _,
            clock: Arc::clone(clock),
            began: 0,
            order: SequenceCounter::of_session(all.session + 1),
            taken_out: Mutex::default(),
            buffers: Arc::default(),
        };
        let volume = seen.start(0, &all, Purpose::Look, 0, &Arc::new(shared))?;
        while volume.find_turn() {}
        let trusted = trusted && volume.health.is_in();
        let found = std::mem::take(&mut *notes.0.lock());
        Ok(Self { volume, found, generation, out, trusted })
    }

    fn summary(&self) -> Summary {
        let superblock = &self.volume.superblock;
        let mut stats = Stats::default();
        self.volume.add_stats(&mut stats);
        // After the counters, which must not include these reads.
        let written_ms = self.written_ms();
        Summary {
            volume: self.volume.name.clone(),
            session: superblock.session,
            generation: self.generation,
            written_ms,
            segment_bytes: superblock.segment_bytes,
            block_bytes: superblock.block_bytes,
            invalidations: self.volume.journal.kept(),
            out: self.out,
            trusted: self.trusted,
            stats,
        }
    }
}

impl OfflineVolume {
    /// The times of the oldest and the newest record. Segments are written in order, so the first
    /// and the last record of each suffice.
    fn written_ms(&self) -> Option<(u64, u64)> {
        let mut span: Option<(u64, u64)> = None;
        for (number, slot) in (0..).zip(&self.volume.segments) {
            let (epoch, rows) = {
                let segment = slot.lock();
                let whole = |row: &&Row| row.is(LIVE) && !row.is(PART);
                let mut live = segment.rows.iter().filter(whole).copied();
                let (first, last) = (live.next(), live.next_back());
                (segment.epoch, first.into_iter().chain(last))
            };
            for row in rows {
                let place = self.volume.place(number, epoch, &row);
                let read =
                    self.volume.load(ReadMode::Wait, place, row.hash, &RecordRequest::head());
                let Ok(Some(RecordData { written_ms, .. })) = read else { continue };
                let (oldest, newest) = span.unwrap_or((written_ms, written_ms));
                span = Some((oldest.min(written_ms), newest.max(written_ms)));
            }
        }
        span
    }
}

/// Summarises a volume by its tables.
///
/// # Errors
/// Those of [`crate::Disk::open`], and a missing volume.
pub fn stat(vfs: &Arc<dyn Vfs>, clock: &Clock) -> Result<Summary, Error> {
    Ok(OfflineVolume::open(vfs, clock)?.summary())
}

/// Reads every block of every live record of a volume.
///
/// # Errors
/// Those of [`crate::Disk::open`], and a missing volume.
pub fn check(vfs: &Arc<dyn Vfs>, clock: &Clock) -> Result<CheckReport, Error> {
    let exhibit = OfflineVolume::open(vfs, clock)?;
    let volume = &exhibit.volume;
    let (mut sound, mut flaws) = (0, Vec::new());
    for (number, slot) in (0..).zip(&volume.segments) {
        let (epoch, rows) = {
            let segment = slot.lock();
            (segment.epoch, segment.rows.to_vec())
        };
        for row in rows.iter().filter(|row| row.is(LIVE)) {
            let read = volume.read_record(volume.place(number, epoch, row));
            match read {
                Some(_) => sound += u64::from(!row.is(PART)),
                None => flaws.push(Flaw { segment: number, offset: row.offset(), hash: row.hash }),
            }
        }
    }
    Ok(CheckReport { summary: exhibit.summary(), sound, flaws })
}

/// Calls `each` with every live record of a volume, and a reader that returns the chunks of its
/// body, then `None`: at the end, or if the rest cannot be read. Returns the number of records, and
/// the number of records whose beginning cannot be read.
///
/// # Errors
/// Those of [`crate::Disk::open`], and a missing volume.
pub fn export(
    vfs: &Arc<dyn Vfs>,
    clock: &Clock,
    mut each: impl FnMut(ExportedRecord, &mut dyn FnMut() -> Option<Bytes>),
) -> Result<(u64, u64), Error> {
    let exhibit = OfflineVolume::open(vfs, clock)?;
    let volume = &exhibit.volume;
    let (mut brought, mut missed) = (0, 0);
    for found in &exhibit.found {
        let load = |ask| volume.load(ReadMode::Wait, found.place, found.hash, &ask).ok().flatten();
        let Some(answer) = load(RecordRequest::head()) else {
            missed += 1;
            continue;
        };
        let length = answer.length;
        let mut at = 0;
        let mut body = || {
            let answer =
                load(RecordRequest::range(at..length)).filter(|answer| answer.size() > 0)?;
            at += answer.size();
            Some(answer.body.concat().into())
        };
        each(ExportedRecord { found: *found, head: answer.head, length }, &mut body);
        brought += 1;
    }
    Ok((brought, missed))
}

/// Removes all files of a volume, of any format, and its marker. The next start creates it again.
///
/// # Errors
/// [`Error::Locked`], [`Error::Foreign`], and those of the system.
pub fn empty(vfs: &Arc<dyn Vfs>) -> Result<(), Error> {
    opening::empty(&**vfs)
}
