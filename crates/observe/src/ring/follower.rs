//! A follower of all cores' rings: one stream of records, across restarts of the daemon.

use std::io;
use std::path::{Path, PathBuf};

use super::core_file;
use super::reader::Reader;
use crate::record::Record;

/// Largest number of cores. A header with more is damaged.
const CORES_MAX: u32 = 4096;

/// The position at which a follower starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FollowStart {
    /// At the oldest record.
    Oldest,
    /// At the next record that is written.
    Now,
}

/// The result of one poll of the rings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PollOutcome {
    /// Number of delivered records.
    pub records: u64,
    /// Number of records that were overwritten or not written before they were read.
    pub lost: u64,
    /// The daemon has restarted.
    pub restarted: bool,
    /// The daemon has ended, and all its records are read.
    pub ended: bool,
}

/// A reader of all rings of a daemon. The daemon does not notice it.
#[derive(Debug)]
pub struct RingFollower {
    folder: PathBuf,
    readers: Vec<Reader>,
    lost_before: u64,
    bytes: Vec<u8>,
}

impl RingFollower {
    /// Opens the rings in `folder`.
    ///
    /// # Errors
    /// No rings ([`io::ErrorKind::NotFound`]), no permission, or rings of another version
    /// ([`io::ErrorKind::InvalidData`]).
    pub fn open(folder: &Path, from: FollowStart) -> io::Result<Self> {
        let mut readers = open_all(folder)?;
        if from == FollowStart::Now {
            readers.iter_mut().try_for_each(Reader::skip_to_now)?;
        }
        Ok(Self { folder: folder.to_owned(), readers, lost_before: 0, bytes: Vec::new() })
    }

    /// The request fields whose values records keep, in order.
    pub fn names(&self) -> &[String] {
        self.readers.first().map_or(&[], |reader| &reader.head.names)
    }

    /// Start of the daemon, in milliseconds since 1970 UTC.
    pub fn started_unix_ms(&self) -> u64 {
        self.readers.first().map_or(0, |reader| reader.head.started_unix_ms)
    }

    /// The daemon's process id.
    pub fn pid(&self) -> u32 {
        self.readers.first().map_or(0, |reader| reader.head.pid)
    }

    /// Gives `sink` the records that were written since the last call, in the order in which their
    /// transactions ended. One call reads at most a megabyte per core, so that the caller can
    /// handle its keyboard.
    ///
    /// # Errors
    /// A ring that cannot be read.
    pub fn poll(&mut self, sink: &mut dyn FnMut(&Record<'_>)) -> io::Result<PollOutcome> {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        let mut more = false;
        for reader in &mut self.readers {
            more |= reader.next(&mut bytes)?;
        }
        let mut records = Vec::new();
        let mut rest = &bytes[..];
        while let Some((record, after)) = Record::read(rest) {
            records.push(record);
            rest = after;
        }
        records.sort_by_key(|record| (record.end_us(), record.id));
        records.iter().for_each(sink);
        let mut polled = PollOutcome { records: records.len() as u64, ..PollOutcome::default() };
        drop(records);
        self.bytes = bytes;
        let ended = !more && self.readers.iter().all(|reader| reader.ended);
        let lost: u64 = self.readers.iter().map(|reader| reader.lost).sum();
        polled.lost = lost - self.lost_before;
        self.lost_before = lost;
        polled.restarted = !more && self.go_over();
        polled.ended = ended && !polled.restarted;
        Ok(polled)
    }

    /// Switches to the beginning of the next daemon's rings, if they exist, so that no record is
    /// missed.
    fn go_over(&mut self) -> bool {
        let first = core_file(&self.folder, 0);
        if !self.readers.first().is_some_and(|reader| reader.is_replaced(&first)) {
            return false;
        }
        // Some rings may not exist yet: the next poll finds them.
        let Ok(mut readers) = open_all(&self.folder) else { return false };
        readers.iter_mut().for_each(Reader::count_all);
        self.readers = readers;
        self.lost_before = 0;
        true
    }
}

fn open_all(folder: &Path) -> io::Result<Vec<Reader>> {
    let first = Reader::open(&core_file(folder, 0))?;
    let (cores, started) = (first.head.cores, first.head.started_unix_ms);
    if cores == 0 || cores > CORES_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a damaged log ring"));
    }
    let mut readers = vec![first];
    for core in 1..cores as usize {
        let reader = Reader::open(&core_file(folder, core))?;
        if reader.head.started_unix_ms != started {
            // The daemon is just creating the rings.
            return Err(io::Error::new(io::ErrorKind::NotFound, "the daemon is just starting"));
        }
        readers.push(reader);
    }
    Ok(readers)
}
