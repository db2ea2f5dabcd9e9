//! The log ring of one core: a file of fixed size that the core writes records into, and that
//! readers of other processes follow.
//!
//! Access is by `pread` and `pwrite`, never by mapping, which is `unsafe` in Rust because another
//! process may change the file. A core writes about a hundred records with one call. The file
//! belongs on a file system in memory, so that writes do not block. There are no locks: a file has
//! one writer, and a reader checks after reading that nothing was overwritten meanwhile.
//!
//! The first page is the header: a cursor that the writer renews with every block, and fixed
//! values. [`RingHeader::capacity`] bytes of blocks follow. A block is a header and records.
//! Positions only grow; modulo the capacity they are offsets.
//!
//! | cursor, at | bytes | content |
//! |---|---|---|
//! | 0 | 8 | position behind the newest block |
//! | 8 | 8 | position of the oldest block that stays whole while the next one is written |
//! | 16 | 8 | records written and lost so far |
//! | 24 | 8 | 1 once the writer has ended |
//! | 32 | 8 | checksum of the above |
//!
//! | block, at | bytes | content |
//! |---|---|---|
//! | 0 | 4 | bytes of records that follow the header |
//! | 4 | 4 | number of these records |
//! | 8 | 8 | its position |
//! | 16 | 8 | number of records before it |

mod follower;
mod location;
mod reader;
mod writer;

#[cfg(test)]
mod tests;

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::record::{RECORD_MAX, VALUES_MAX, VERSION};

pub use follower::{FollowStart, PollOutcome, RingFollower};
pub use location::folders;
pub use writer::{InheritedLock, Options, Ring, Writer};

/// Bytes of records that a writer collects for one write.
pub const BATCH: usize = 32 * 1024;
/// The largest block.
const BLOCK_MAX: u64 = (BLOCK_HEAD + BATCH + RECORD_MAX) as u64;
/// Smallest ring of one core: some blocks besides the one that is being written.
pub const CAPACITY_MIN: u64 = 4 * BLOCK_MAX.next_power_of_two();
/// Offset of the first block.
const HEAD_BYTES: usize = 4096;
const CURSOR_BYTES: usize = 40;
/// Offset of the fixed values in the header.
const FIXED_AT: usize = 64;
const BLOCK_HEAD: usize = 24;
const MAGIC: &[u8; 8] = b"LARDRING";
/// Longest name of a kept field; all names fit the header.
pub const NAME_MAX: usize = 190;

const _: () = assert!(FIXED_AT + 64 + VALUES_MAX * (NAME_MAX + 1) < HEAD_BYTES);

/// The path of a core's ring.
fn core_file(folder: &Path, core: usize) -> PathBuf {
    folder.join(format!("core-{core}"))
}

/// The state of a ring that changes with every block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Cursor {
    head: u64,
    tail: u64,
    records: u64,
    ended: bool,
}

impl Cursor {
    fn bytes(self) -> [u8; CURSOR_BYTES] {
        let words = [self.head, self.tail, self.records, u64::from(self.ended)];
        let mut bytes = [0; CURSOR_BYTES];
        for (word, place) in words.into_iter().chain([check(words)]).zip(bytes.as_chunks_mut().0) {
            *place = word.to_le_bytes();
        }
        bytes
    }

    /// Reads a cursor; `None` if the writer was just renewing it.
    fn of(bytes: [u8; CURSOR_BYTES]) -> Option<Self> {
        let mut words = bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
        let mut word = || words.next().unwrap_or(0);
        let own = [word(), word(), word(), word()];
        let [head, tail, records, ended] = own;
        let cursor = Self { head, tail, records, ended: ended != 0 };
        (word() == check(own) && tail <= head).then_some(cursor)
    }

    fn read(file: &File) -> io::Result<Option<Self>> {
        let mut bytes = [0; CURSOR_BYTES];
        file.read_exact_at(&mut bytes, 0)?;
        Ok(Self::of(bytes))
    }
}

/// The checksum that detects a cursor that is half old, half new. It is no protection from forgery.
fn check(words: [u64; 4]) -> u64 {
    words.iter().fold(0x9e37_79b9_7f4a_7c15, |sum, word| {
        (sum ^ word).wrapping_mul(0xff51_afd7_ed55_8ccd).rotate_left(29)
    })
}

/// The fixed values of a ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingHeader {
    /// Total bytes of the blocks.
    pub capacity: u64,
    /// The core's number.
    pub core: u32,
    /// The number of cores.
    pub cores: u32,
    /// The daemon's process id.
    pub pid: u32,
    /// Start of the daemon, in milliseconds since 1970 UTC.
    pub started_unix_ms: u64,
    /// The request fields whose values records keep, in order.
    pub names: Vec<String>,
}

impl RingHeader {
    fn bytes(&self) -> Vec<u8> {
        let mut out = vec![0; FIXED_AT];
        out.extend_from_slice(MAGIC);
        for number in [VERSION, self.core, self.cores, self.pid] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&self.capacity.to_le_bytes());
        out.extend_from_slice(&self.started_unix_ms.to_le_bytes());
        out.push(self.names.len() as u8);
        for name in &self.names {
            out.push(name.len() as u8);
            out.extend_from_slice(name.as_bytes());
        }
        out.resize(HEAD_BYTES, 0);
        out
    }

    fn of(bytes: &[u8]) -> Result<Self, &'static str> {
        let mut rest = bytes.get(FIXED_AT..).unwrap_or_default();
        if take(&mut rest, 8) != Some(&MAGIC[..]) {
            return Err("not a log ring");
        }
        if number(&mut rest, 4) != Some(u64::from(VERSION)) {
            return Err("written by another version of Larder: read it with that one");
        }
        Self::of_rest(rest).ok_or("a damaged log ring")
    }

    fn of_rest(mut rest: &[u8]) -> Option<Self> {
        let rest = &mut rest;
        let (core, cores) = (number(rest, 4)? as u32, number(rest, 4)? as u32);
        let pid = number(rest, 4)? as u32;
        let (capacity, started_unix_ms) = (number(rest, 8)?, number(rest, 8)?);
        let mut names = Vec::new();
        for _ in 0..number(rest, 1)? {
            let length = number(rest, 1)? as usize;
            names.push(String::from_utf8_lossy(take(rest, length)?).into_owned());
        }
        let sound = (CAPACITY_MIN..1 << 48).contains(&capacity);
        sound.then_some(Self { capacity, core, cores, pid, started_unix_ms, names })
    }
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(taken)
}

fn number(rest: &mut &[u8], length: usize) -> Option<u64> {
    let bytes = take(rest, length)?;
    Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// A block's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BlockHead {
    length: u32,
    count: u32,
    position: u64,
    before: u64,
}

impl BlockHead {
    fn bytes(self) -> [u8; BLOCK_HEAD] {
        let mut bytes = [0; BLOCK_HEAD];
        bytes[..4].copy_from_slice(&self.length.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.count.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.position.to_le_bytes());
        bytes[16..].copy_from_slice(&self.before.to_le_bytes());
        bytes
    }

    /// Reads the header at the beginning of `rest`, and removes it from `rest`.
    fn of(rest: &mut &[u8]) -> Option<Self> {
        Some(Self {
            length: number(rest, 4)? as u32,
            count: number(rest, 4)? as u32,
            position: number(rest, 8)?,
            before: number(rest, 8)?,
        })
    }
}
