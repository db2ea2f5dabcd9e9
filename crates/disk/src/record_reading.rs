//! Record reading. Every block must be verified before any of its bytes leaves this file.

use std::io::{self, ErrorKind};
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use crate::checksum;
use crate::error::{Damage, Error};
use crate::health::OperationFailure;
use crate::journal::JournalItem;
use crate::layout::{Header, IS_LISTED, IS_PART, LISTED, Row};
use crate::part_record::PartRecord;
use crate::record_address::RecordAddress;
use crate::record_request::{ReadContinuation, RecordData, RecordRequest};
use crate::segment::{Segment, Usage};
use crate::stats::add;
use crate::sync::Mutex;
use crate::vfs::{File, read_all};
use crate::volume::{QueuedRecord, Volume};

/// Failed reads of a segment that end its use, as many as for a disk.
const SEGMENT_ERRORS_MAX: u32 = 3;

/// The mode of a read: from memory at once, or waiting for the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadMode {
    Now,
    Wait,
}

/// The reason why a read failed.
enum ReadFailure {
    /// The bytes are not in memory.
    Away,
    Damaged(Damage),
    Failed,
}

impl From<Damage> for ReadFailure {
    fn from(damage: Damage) -> Self {
        Self::Damaged(damage)
    }
}

/// The extent of a record, and the binding of its checksums.
#[derive(Clone, Copy)]
struct RecordExtent {
    segment: u32,
    epoch: u64,
    offset: u32,
    len: u32,
    hash: u64,
    /// It has been written.
    is_written: bool,
}

/// Blocks of a record that were read and verified.
struct VerifiedBlocks {
    header: Header,
    seed: u64,
    /// The bytes from the beginning of the record.
    bytes: Bytes,
}

impl ReadContinuation {
    fn new(extent: &RecordExtent, sound: &VerifiedBlocks) -> Option<Self> {
        let RecordExtent { segment, epoch, offset, .. } = *extent;
        let VerifiedBlocks { header, seed, .. } = *sound;
        (header.flags & IS_LISTED == 0).then_some(Self { segment, epoch, offset, header, seed })
    }

    fn is_of(&self, extent: &RecordExtent) -> bool {
        let place = (extent.segment, extent.epoch, extent.offset, extent.hash);
        (self.segment, self.epoch, self.offset, self.header.hash) == place
    }
}

impl Volume {
    /// Reads a record. `None` if it is not in memory and `mode` does not wait.
    pub(crate) fn load(
        &self,
        mode: ReadMode,
        place: RecordAddress,
        hash: u64,
        ask: &RecordRequest,
    ) -> Result<Option<RecordData>, Error> {
        let answer = self.load_part(mode, place, hash, ask, ask.part);
        let Some(answer) = answer.inspect_err(|error| self.end_listed(place, error))? else {
            return Ok(None);
        };
        add(&self.tallies.reads, 1);
        add(&self.tallies.read_bytes, answer.size());
        Ok(Some(answer))
    }

    /// Drops a record that has lost a part.
    fn end_listed(&self, place: RecordAddress, error: &Error) {
        let ends = matches!(error, Error::Gone | Error::Unreadable | Error::Damaged(_));
        let listed = |row: &Row| row.is(LISTED);
        let row = |segment: &Mutex<Segment>| {
            let mut segment = segment.lock();
            if segment.row(place).is_some_and(listed) { segment.kill(place) } else { None }
        };
        if ends && let Some(row) = self.segment(place).and_then(row) {
            self.end_record(place, row);
            self.report_dropped(place, &row);
        }
    }

    /// Reads a record, or its part with number `seq`.
    fn load_part(
        &self,
        mode: ReadMode,
        place: RecordAddress,
        hash: u64,
        ask: &RecordRequest,
        seq: Option<u64>,
    ) -> Result<Option<RecordData>, Error> {
        // Parts count for the value of their record.
        let Some(extent) = self.extent_for(place, seq.is_none()) else {
            add(&self.tallies.reads_gone, 1);
            return Err(Error::Gone);
        };
        if extent.hash != hash {
            self.tallies.damaged(Damage::Other);
            return Err(Error::Damaged(Damage::Other));
        }
        let queued = || self.front.lock().pending.get(&place).cloned();
        if let Some(queued) = if extent.is_written { None } else { queued() } {
            add(&self.tallies.reads_queued, 1);
            return self.answer_queued(mode, &queued, ask);
        }
        let known = ask.known.filter(|seal| seal.is_of(&extent) && !ask.head);
        let sound = match known {
            Some(ReadContinuation { header, seed, .. }) => {
                Ok(VerifiedBlocks { header, seed, bytes: Bytes::new() })
            }
            None => self.read_extent(mode, extent, ask),
        };
        let read = sound.and_then(|sound| {
            let part = sound.header.flags & IS_PART != 0;
            if part != seq.is_some() || seq.is_some_and(|seq| seq != sound.header.seq) {
                return Err(Damage::Other.into());
            }
            self.answer(mode, extent, sound, ask)
        });
        match read {
            Ok((answer, parts)) => self.add_parts(mode, hash, answer, &parts, ask),
            Err(ReadFailure::Away) => Ok(None),
            Err(missed) => Err(self.missed(place, extent, missed)),
        }
    }

    fn extent(&self, place: RecordAddress) -> Option<RecordExtent> {
        self.extent_for(place, false)
    }

    /// The extent of a record, which is marked as read if `asked`.
    fn extent_for(&self, place: RecordAddress, asked: bool) -> Option<RecordExtent> {
        let mut segment = self.segment(place)?.lock();
        let (epoch, is_written) = (segment.epoch, segment.usage == Usage::Sealed);
        let row = if asked { segment.ask(place) } else { segment.row(place) }?;
        Some(RecordExtent {
            segment: place.segment(),
            epoch,
            is_written,
            offset: row.offset(),
            len: row.len,
            hash: row.hash,
        })
    }

    /// Counts a failed read, and drops the record if it is damaged.
    fn missed(&self, place: RecordAddress, extent: RecordExtent, missed: ReadFailure) -> Error {
        // If the segment has been reclaimed meanwhile, other bytes are no damage.
        let Some(row) = self
            .extent(place)
            .filter(|now| now.epoch == extent.epoch)
            .and_then(|_| self.kill(place))
        else {
            add(&self.tallies.reads_gone, 1);
            return Error::Gone;
        };
        self.end_record(place, row);
        let error = match missed {
            ReadFailure::Damaged(damage) => {
                self.tallies.damaged(damage);
                Error::Damaged(damage)
            }
            ReadFailure::Away | ReadFailure::Failed => {
                add(&self.tallies.errors_read, 1);
                self.note_read_error(extent.segment);
                Error::Unreadable
            }
        };
        self.report_dropped(place, &row);
        error
    }

    fn note_read_error(&self, segment: u32) {
        let mut known = self.segments[segment as usize].lock();
        known.errors += 1;
        let ends = known.errors >= SEGMENT_ERRORS_MAX && known.usage == Usage::Sealed;
        if ends {
            known.usage = Usage::Bad;
        }
        drop(known);
        if ends {
            self.journal.push(JournalItem::Quarantine(segment));
        }
        self.trouble(OperationFailure::Error);
    }

    /// Reads the beginning of a record, or all of it if it is requested and short.
    fn read_extent(
        &self,
        mode: ReadMode,
        extent: RecordExtent,
        ask: &RecordRequest,
    ) -> Result<VerifiedBlocks, ReadFailure> {
        let (len, block) = (u64::from(extent.len), u64::from(self.blocks.bytes));
        let most = self.shared.config.read_bytes;
        let whole = ask.body.start < block && ask.body.end >= len && len <= most + block;
        let bytes = match ask.is_opening {
            true => ask.body.end.min(most).next_multiple_of(block).max(block).min(len),
            false if whole => len,
            false => len.min(block),
        };
        let bytes = self.read_bytes(mode, extent, 0..bytes as u32)?;
        let header = Header::decode(&bytes).ok_or(Damage::Header)?;
        if header.hash != extent.hash {
            return Err(Damage::Other.into());
        }
        if self.blocks.record_len(header.payload()) != u64::from(extent.len) {
            return Err(Damage::Header.into());
        }
        let seed = self.binding(extent.segment, extent.epoch, extent.offset, &header).seed();
        self.check_blocks(seed, 0, &bytes)?;
        Ok(VerifiedBlocks { header, seed, bytes })
    }

    /// Verifies blocks from number `first` on.
    pub(crate) fn check_blocks(&self, seed: u64, first: u32, bytes: &[u8]) -> Result<(), Damage> {
        let blocks = bytes.chunks(self.blocks.bytes as usize);
        let sound =
            (first..).zip(blocks).all(|(number, block)| checksum::is_sound(seed, number, block));
        if sound { Ok(()) } else { Err(Damage::Sum) }
    }

    /// The bytes of a record, not verified.
    fn read_bytes(
        &self,
        mode: ReadMode,
        extent: RecordExtent,
        range: Range<u32>,
    ) -> Result<Bytes, ReadFailure> {
        let (file, base) = self.file(extent.segment);
        let at = base + u64::from(extent.offset) + u64::from(range.start);
        let mut buffer = self.shared.buffers.take((range.end - range.start) as usize);
        match read(mode, &**file, buffer.bytes_mut(), at) {
            Ok(true) => Ok(buffer.into_bytes()),
            Ok(false) => Err(ReadFailure::Away),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Err(Damage::Cut.into()),
            Err(_) => Err(ReadFailure::Failed),
        }
    }

    /// Bytes of head and body, by their offset in both.
    fn section(
        &self,
        mode: ReadMode,
        extent: RecordExtent,
        sound: &VerifiedBlocks,
        range: Range<u64>,
    ) -> Result<Vec<Bytes>, ReadFailure> {
        let mut pieces = Vec::new();
        if range.is_empty() {
            return Ok(pieces);
        }
        let block_bytes = self.blocks.bytes;
        let ((first, _), (last, _)) =
            (self.blocks.find(range.start), self.blocks.find(range.end - 1));
        let end = (u64::from(last) + 1) * u64::from(block_bytes);
        let end = end.min(u64::from(extent.len)) as u32;
        let (start, bytes) = if end as usize <= sound.bytes.len() {
            (0, sound.bytes.clone())
        } else {
            let start = first * block_bytes;
            let bytes = self.read_bytes(mode, extent, start..end)?;
            self.check_blocks(sound.seed, first, &bytes)?;
            (start, bytes)
        };
        let mut at = range.start;
        while at < range.end {
            let (block, within) = self.blocks.find(at);
            let from = (block * block_bytes - start) as usize + within;
            let rest = block_bytes as usize - within;
            let take = rest.min((range.end - at) as usize);
            pieces.push(bytes.slice(from..from + take));
            at += take as u64;
        }
        Ok(pieces)
    }

    /// Takes the requested bytes from a record. Its parts are read later.
    fn answer(
        &self,
        mode: ReadMode,
        extent: RecordExtent,
        sound: VerifiedBlocks,
        ask: &RecordRequest,
    ) -> Result<(RecordData, Vec<PartRecord>), ReadFailure> {
        let Header { flags, head_len, body_len, .. } = sound.header;
        let (head_len, body_len) = (u64::from(head_len), u64::from(body_len));
        let mut answer = RecordData::of(&sound.header, self.journal.shift_of(sound.header.order));
        answer.seal = ReadContinuation::new(&extent, &sound);
        if ask.head {
            answer.head = joined(self.section(mode, extent, &sound, 0..head_len)?);
        }
        if flags & IS_LISTED != 0 {
            let body = head_len..head_len + body_len;
            let list = joined(self.section(mode, extent, &sound, body)?);
            return Ok((answer, PartRecord::decode(&list, self.number)));
        }
        let mut body = self.clip(&ask.body, body_len);
        if ask.is_opening {
            let come = self.blocks.payload_in(sound.bytes.len() as u64);
            body = 0..come.saturating_sub(head_len).min(body_len);
        }
        let body = head_len + body.start..head_len + body.end;
        answer.body = self.section(mode, extent, &sound, body)?;
        Ok((answer, Vec::new()))
    }

    /// The part of a range that one read returns.
    fn clip(&self, range: &Range<u64>, length: u64) -> Range<u64> {
        let start = range.start.min(length);
        let end = range.end.min(length).min(start.saturating_add(self.shared.config.read_bytes));
        start..end.max(start)
    }

    /// Reads the requested bytes from the parts of a body.
    fn add_parts(
        &self,
        mode: ReadMode,
        hash: u64,
        mut answer: RecordData,
        parts: &[PartRecord],
        ask: &RecordRequest,
    ) -> Result<Option<RecordData>, Error> {
        if ask.is_opening {
            return Ok(Some(answer));
        }
        let wanted = self.clip(&ask.body, answer.length);
        let mut at = 0;
        for part in parts {
            let end = at + part.len;
            let from = wanted.start.clamp(at, end) - at;
            let to = wanted.end.clamp(at, end) - at;
            at = end;
            if from >= to {
                continue;
            }
            let ask = RecordRequest::range(from..to);
            let Some(read) = self.load_part(mode, part.place, hash, &ask, Some(part.seq))? else {
                return Ok(None);
            };
            answer.body.extend(read.body);
            if read.length != part.len {
                return Err(Error::Damaged(Damage::Other));
            }
        }
        Ok(Some(answer))
    }

    /// Answers from a record that waits to be written.
    fn answer_queued(
        &self,
        mode: ReadMode,
        queued: &Arc<QueuedRecord>,
        ask: &RecordRequest,
    ) -> Result<Option<RecordData>, Error> {
        let mut answer = RecordData::of(&queued.header, self.journal.shift_of(queued.header.order));
        if ask.head {
            answer.head = queued.head.clone();
        }
        if queued.header.flags & IS_LISTED != 0 {
            let parts = PartRecord::decode(&queued.body.copy(queued.range.clone()), self.number);
            return self.add_parts(mode, queued.header.hash, answer, &parts, ask);
        }
        let start = queued.range.start;
        let body = self.clip(&ask.body, queued.range.end - start);
        if !body.is_empty() {
            answer.body.push(queued.body.copy(start + body.start..start + body.end));
        }
        Ok(Some(answer))
    }

    /// The parts that a record lists; `None` if it cannot be read.
    pub(crate) fn read_list(&self, place: RecordAddress) -> Option<Vec<PartRecord>> {
        let extent = self.extent(place)?;
        let sound = self.read_extent(ReadMode::Wait, extent, &RecordRequest::head()).ok()?;
        let listed = sound.header.flags & IS_LISTED != 0;
        let (_, parts) =
            self.answer(ReadMode::Wait, extent, sound, &RecordRequest::range(0..0)).ok()?;
        listed.then_some(parts)
    }

    /// A record: its header, its head, and the chunks of its body or list.
    pub(crate) fn read_record(&self, place: RecordAddress) -> Option<(Header, Bytes, Vec<Bytes>)> {
        let queued = self.front.lock().pending.get(&place).cloned();
        if let Some(queued) = queued {
            let body = vec![queued.body.copy(queued.range.clone())];
            return Some((queued.header, queued.head.clone(), body));
        }
        let extent = self.extent(place)?;
        let whole = |extent| {
            let sound = self.read_extent(ReadMode::Wait, extent, &RecordRequest::whole())?;
            let head_len = u64::from(sound.header.head_len);
            let head = joined(self.section(ReadMode::Wait, extent, &sound, 0..head_len)?);
            let body = head_len..sound.header.payload();
            let body = self.section(ReadMode::Wait, extent, &sound, body)?;
            Ok((sound.header, head, body))
        };
        match whole(extent) {
            Ok(read) => Some(read),
            Err(missed) => {
                self.missed(place, extent, missed);
                None
            }
        }
    }
}

/// Fills `into`. Returns false if the bytes are not in memory and `mode` does not wait.
fn read(mode: ReadMode, file: &dyn File, into: &mut [u8], at: u64) -> io::Result<bool> {
    match mode {
        ReadMode::Wait => read_all(file, into, at).map(|()| true),
        // At the end of the file or of the cached bytes, a blocking read finds out which.
        ReadMode::Now => file.read_now_at(into, at).map(|read| read == Some(into.len())),
    }
}

/// Joins chunks; most bodies are one chunk.
fn joined(mut pieces: Vec<Bytes>) -> Bytes {
    match pieces.len() {
        0 | 1 => pieces.pop().unwrap_or_default(),
        _ => pieces.concat().into(),
    }
}
