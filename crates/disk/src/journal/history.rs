//! The history of a volume: what its journals contain at the start. A gap must be detected, because
//! a lost invalidation would bring old records back.

use std::collections::BTreeSet;
use std::io;

use hashbrown::HashMap;

use super::carryover::JournalCarryover;
use super::frame::{FRAME_ALIGN, FRAME_BYTES, FRAME_MAGIC, OF_JOURNAL, encode_frame, file_name};
use super::item::JournalItem;
use crate::checksum::{self, SUM_BYTES, seed_of};
use crate::record_address::RecordAddress;
use crate::vfs::{Vfs, read_file, write_all};

/// The longest journal: a longer one was not written by this program.
const JOURNAL_BYTES_MAX: u64 = 1 << 32;

/// The completeness of the journals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chain {
    /// Everything since the beginning, or since a snapshot.
    Whole,
    /// No snapshot exists, and the journals before it are gone: earlier forgets are lost.
    Cut,
    /// A durable item is missing.
    Broken,
}

/// The contents of all journals.
#[derive(Debug)]
pub(crate) struct JournalHistory {
    pub(crate) chain: Chain,
    pub(crate) keep: JournalCarryover,
    /// Forgotten records by segment, with volume 0.
    pub(crate) forgotten: HashMap<u32, Vec<RecordAddress>>,
    /// Segments without live records of this epoch.
    pub(crate) freed: HashMap<u32, u64>,
    pub(crate) wall_ms: u64,
    /// The newest journal.
    pub(crate) generation: Option<u64>,
    /// The intact bytes of it; `None` if it was closed.
    torn_at: Option<u64>,
    newest: u64,
}

/// The frames of one journal.
struct Frames {
    /// The end of the last intact frame.
    end: usize,
    wall_ms: u64,
    /// The last item closes the journal.
    closed: bool,
    /// An intact frame follows a damaged one.
    broken: bool,
}

/// The payload and the wall clock of the frame at `at`; `None` if it is not intact.
fn frame(key: u64, generation: u64, bytes: &[u8], at: usize) -> Option<(&[u8], u64)> {
    let rest = bytes.get(at..)?;
    let (head, payload) = rest.split_at_checked(FRAME_BYTES)?;
    let number = |from: usize| head[from..from + 4].try_into().map(u32::from_le_bytes);
    if number(SUM_BYTES).ok()? != FRAME_MAGIC {
        return None;
    }
    let payload = payload.get(..number(SUM_BYTES + 4).ok()? as usize)?;
    let seed = seed_of(key, &[OF_JOURNAL, generation, at as u64]);
    if !checksum::is_sound(seed, 0, &rest[..FRAME_BYTES + payload.len()]) {
        return None;
    }
    let wall_ms = head.last_chunk().map(|wall| u64::from_le_bytes(*wall))?;
    Some((payload, wall_ms))
}

/// Reads frames, and calls `tell` with each item in them.
fn frames(key: u64, generation: u64, bytes: &[u8], mut tell: impl FnMut(JournalItem)) -> Frames {
    let mut found = Frames { end: 0, wall_ms: 0, closed: false, broken: false };
    while let Some((mut payload, wall_ms)) = frame(key, generation, bytes, found.end) {
        found.end = (found.end + FRAME_BYTES + payload.len()).next_multiple_of(FRAME_ALIGN);
        // The clock may go back, so the last time counts.
        found.wall_ms = wall_ms;
        while !payload.is_empty() {
            let Some(item) = JournalItem::decode(&mut payload) else {
                found.broken = true;
                return found;
            };
            found.closed = item == JournalItem::Closed;
            tell(item);
        }
    }
    let bytes = &bytes[..used(bytes).max(found.end.min(bytes.len()))];
    let mut later = (found.end + FRAME_ALIGN..bytes.len()).step_by(FRAME_ALIGN);
    found.broken |= later.any(|at| frame(key, generation, bytes, at).is_some());
    found
}

/// The bytes up to the last that is not zero: a journal reserves space behind its last frame.
fn used(bytes: &[u8]) -> usize {
    let mut end = bytes.len();
    for piece in bytes.rchunks(4096) {
        // Without an early exit, so that many bytes are compared at once.
        if piece.iter().fold(0, |all, byte| all | byte) != 0 {
            return end - piece.iter().rev().take_while(|byte| **byte == 0).count();
        }
        end -= piece.len();
    }
    end
}

impl JournalHistory {
    /// Reads all journals from generation `snapshot` on, or all without a snapshot.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn read(vfs: &dyn Vfs, key: u64, snapshot: Option<u64>) -> io::Result<Self> {
        let mut past = Self {
            chain: Chain::Whole,
            keep: JournalCarryover::default(),
            forgotten: HashMap::new(),
            freed: HashMap::new(),
            wall_ms: 0,
            generation: None,
            torn_at: None,
            newest: 0,
        };
        let from = snapshot.unwrap_or(0);
        let there: BTreeSet<u64> = generations(vfs)?.into_iter().filter(|at| *at >= from).collect();
        let mut expected = None;
        for generation in there {
            if expected.is_none() && generation != from {
                past.chain = if snapshot.is_some() { Chain::Broken } else { Chain::Cut };
            }
            if expected.is_some_and(|expected| expected != generation) || past.torn_at.is_some() {
                past.chain = Chain::Broken;
            }
            past.add(vfs, key, generation)?;
            expected = Some(generation + 1);
        }
        if expected.is_none() && snapshot.is_some() {
            past.chain = Chain::Broken;
        }
        Ok(past)
    }

    fn add(&mut self, vfs: &dyn Vfs, key: u64, generation: u64) -> io::Result<()> {
        self.generation = Some(generation);
        let bytes = read_file(vfs, &file_name(generation), JOURNAL_BYTES_MAX)?.unwrap_or_default();
        let found = frames(key, generation, &bytes, |item| self.apply(item));
        // The first frame was durable before the file got its name.
        if found.broken || found.end == 0 {
            self.chain = Chain::Broken;
        }
        self.wall_ms = found.wall_ms;
        self.torn_at = (!found.closed).then_some(found.end as u64);
        Ok(())
    }

    fn apply(&mut self, item: JournalItem) {
        match &item {
            JournalItem::Forget(place) => {
                self.forgotten.entry(place.segment()).or_default().push(*place);
            }
            JournalItem::Freed(segment, epoch) => {
                let known = self.freed.entry(*segment).or_default();
                *known = (*known).max(*epoch);
            }
            JournalItem::Invalidation(number, _)
            | JournalItem::Released(number)
            | JournalItem::Obsolete(number)
            | JournalItem::Discarded(number) => self.newest = self.newest.max(*number),
            _ => {}
        }
        self.keep.apply(item);
    }

    /// The newest invalidation in them.
    pub(crate) fn newest(&self) -> u64 {
        self.newest
    }

    /// Closes the newest journal if a crash left it open, so that another one can follow.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn repair(&mut self, vfs: &dyn Vfs, key: u64) -> io::Result<()> {
        let (Some(generation), Some(at)) = (self.generation, self.torn_at) else { return Ok(()) };
        let file = vfs.open(&file_name(generation), false)?;
        file.truncate(at)?;
        let mut payload = Vec::new();
        JournalItem::Closed.encode(&mut payload);
        write_all(&*file, &encode_frame(key, generation, at, self.wall_ms, &payload), at)?;
        file.sync()?;
        self.torn_at = None;
        Ok(())
    }
}

/// The generations of all journals.
///
/// # Errors
/// Those of the system.
pub(crate) fn generations(vfs: &dyn Vfs) -> io::Result<Vec<u64>> {
    let names = vfs.list()?;
    let numbers = names.iter().filter_map(|name| name.strip_prefix("journal-"));
    Ok(numbers.filter_map(|number| u64::from_str_radix(number, 16).ok()).collect())
}
