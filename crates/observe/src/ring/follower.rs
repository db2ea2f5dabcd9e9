//! All cores' rings as one stream of records, over restarts of the daemon.

use std::io;
use std::path::{Path, PathBuf};

use super::core_file;
use super::reader::Reader;
use crate::record::Record;

/// Cores there can be; beyond it a ring's head is damaged.
const CORES_MAX: u32 = 4096;

/// From where on records are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FollowStart {
    /// The oldest that are still there.
    Oldest,
    /// Those that are written from now on.
    Now,
}

/// The outcome of one look at the rings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PollOutcome {
    /// Records told.
    pub records: u64,
    /// Records that were overwritten, or could not be written, before they were read.
    pub lost: u64,
    /// The daemon was started anew.
    pub restarted: bool,
    /// It has ended, and everything it left is read.
    pub ended: bool,
}

/// Reads what a daemon's cores write, without their knowing.
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
    /// None there ([`io::ErrorKind::NotFound`]), not allowed to, or not to be read by this version
    /// ([`io::ErrorKind::InvalidData`]).
    pub fn open(folder: &Path, from: FollowStart) -> io::Result<Self> {
        let mut readers = open_all(folder)?;
        if from == FollowStart::Now {
            readers.iter_mut().try_for_each(Reader::skip_to_now)?;
        }
        Ok(Self { folder: folder.to_owned(), readers, lost_before: 0, bytes: Vec::new() })
    }

    /// The request fields whose values records have, in their order.
    pub fn names(&self) -> &[String] {
        self.readers.first().map_or(&[], |reader| &reader.head.names)
    }

    /// When the daemon started, milliseconds since 1970 UTC.
    pub fn started_unix_ms(&self) -> u64 {
        self.readers.first().map_or(0, |reader| reader.head.started_unix_ms)
    }

    /// The daemon's process id.
    pub fn pid(&self) -> u32 {
        self.readers.first().map_or(0, |reader| reader.head.pid)
    }

    /// Tells `sink` what was written since the last call, in the order in which transactions ended.
    /// Never more than a megabyte per core at once, so that whoever calls it gets to look at its
    /// keyboard.
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

    /// Goes over to the rings of the next daemon, if there are any; to their beginning, so that
    /// nothing is left out.
    fn go_over(&mut self) -> bool {
        let first = core_file(&self.folder, 0);
        if !self.readers.first().is_some_and(|reader| reader.is_replaced(&first)) {
            return false;
        }
        // They may not all be there yet: the next look finds them.
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
            // The daemon is just about to make them.
            return Err(io::Error::new(io::ErrorKind::NotFound, "the daemon is just starting"));
        }
        readers.push(reader);
    }
    Ok(readers)
}
