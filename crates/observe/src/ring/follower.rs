//! A follower of all cores' rings: one stream of records, across restarts of the daemon.

use std::io;
use std::path::{Path, PathBuf};

use super::core_file;
use super::reader::Reader;
use crate::record::Record;

/// Largest number of cores. A header with more is damaged.
const CORES_MAX: u32 = 4096;

/// Most replaced rings that are still followed. Those of a daemon that was killed never end.
const LEAVING_MAX: usize = 256;

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
    /// Readers of replaced rings whose daemon still finishes requests.
    leaving: Vec<Reader>,
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
        let (leaving, bytes) = (Vec::new(), Vec::new());
        Ok(Self { folder: folder.to_owned(), readers, leaving, lost_before: 0, bytes })
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
        for reader in self.leaving.iter_mut().chain(&mut self.readers) {
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
        let lost: u64 = self.all().map(|reader| reader.lost).sum();
        polled.lost = lost - self.lost_before;
        let ended = !more && self.all().all(|reader| reader.ended);
        polled.restarted = !more && self.go_over();
        if !more {
            self.leaving.retain(|reader| !reader.ended);
        }
        self.lost_before = self.all().map(|reader| reader.lost).sum();
        polled.ended = ended && !polled.restarted;
        Ok(polled)
    }

    fn all(&self) -> impl Iterator<Item = &Reader> {
        self.leaving.iter().chain(&self.readers)
    }

    /// Switches to the beginning of the next daemon's rings, if they exist, so that no record is
    /// missed. Rings that have not ended are followed until they do.
    fn go_over(&mut self) -> bool {
        let first = core_file(&self.folder, 0);
        if !self.readers.first().is_some_and(|reader| reader.is_replaced(&first)) {
            return false;
        }
        // Some rings may not exist yet: the next poll finds them.
        let Ok(mut readers) = open_all(&self.folder) else { return false };
        readers.iter_mut().for_each(Reader::count_all);
        let names = readers[0].head.names.clone();
        let before = std::mem::replace(&mut self.readers, readers);
        // Records of both need one meaning of their fields.
        self.leaving.extend(before.into_iter().filter(|reader| reader.head.names == names));
        self.leaving.drain(..self.leaving.len().saturating_sub(LEAVING_MAX));
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
