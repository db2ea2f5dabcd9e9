//! The layout of a volume: the encoding of the superblock, of segments' headers and footers, and of
//! records. The head comment of the crate has the tables. A change here is a new format.

use crate::checksum::{self, Binding, SUM_BYTES, seed_of};

/// Records begin at multiples of this.
pub(crate) const UNIT: u32 = 64;

/// The file of the two superblocks.
pub(crate) const SUPERBLOCK: &str = "superblock";

/// The format that this program writes, and the only one that it reads.
pub(crate) const FORMAT: u32 = 1;

/// Bytes of one of the two copies of the superblock: a page, so that none shares a sector.
pub(crate) const SUPER_BYTES: usize = 4096;

/// Bytes of a superblock in use.
const SUPER_USED: usize = 112;

/// Bytes of a segment's header, and of its footer.
pub(crate) const FRAME_BYTES: u32 = UNIT;

/// Bytes of a record's header.
pub(crate) const HEADER_BYTES: usize = 88;

/// Bytes of a row of a footer's table.
pub(crate) const ROW_BYTES: usize = 32;

/// Bytes of one part in the list of a record in parts.
pub(crate) const PART_BYTES: usize = 24;

const SUPER_MAGIC: [u8; 8] = *b"LARDERVS";
const SEGMENT_MAGIC: u32 = u32::from_le_bytes(*b"LSEG");
const FOOTER_MAGIC: u32 = u32::from_le_bytes(*b"LEND");
const RECORD_MAGIC: u32 = u32::from_le_bytes(*b"LREC");

/// Numbers that distinguish the kinds of checksums of a volume.
const OF_SEGMENT: u64 = 1;
const OF_FOOTER: u64 = 2;
const OF_TABLE: u64 = 3;

/// Reads numbers from bytes, one after the other. Behind the end it reads zeros.
struct Numbers<'a>(&'a [u8]);

impl Numbers<'_> {
    fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.take())
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }

    fn take<const N: usize>(&mut self) -> [u8; N] {
        let Some((chunk, rest)) = self.0.split_first_chunk() else { return [0; N] };
        self.0 = rest;
        *chunk
    }
}

/// A volume as its superblock describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Superblock {
    pub(crate) id: [u8; 16],
    pub(crate) owner: [u8; 32],
    pub(crate) segment_bytes: u32,
    pub(crate) block_bytes: u32,
    pub(crate) segments: u32,
    pub(crate) segments_per_file: u32,
    /// The number of times that the volume was opened.
    pub(crate) session: u64,
    /// Epochs below this number are void.
    pub(crate) valid_from: u64,
    /// The generation of this session's first journal; 0 in the first session, or if unknown.
    pub(crate) generation: u64,
}

/// The state of one copy of the superblock.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SuperblockCopy {
    /// An intact copy.
    Sound(Superblock),
    /// A copy of another format.
    Format(u32),
    /// A damaged copy.
    Damaged,
    /// Foreign bytes.
    Foreign,
    /// An empty copy.
    Empty,
}

impl Superblock {
    /// The key of the volume's checksums.
    pub(crate) fn key(&self) -> u64 {
        checksum::sum(0, &self.id)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(SUPER_BYTES);
        out.extend_from_slice(&SUPER_MAGIC);
        out.extend_from_slice(&FORMAT.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&self.id);
        out.extend_from_slice(&self.owner);
        let shape = [self.segment_bytes, self.block_bytes, self.segments, self.segments_per_file];
        out.extend(shape.into_iter().flat_map(u32::to_le_bytes));
        let numbers = [self.session, self.valid_from, self.generation];
        out.extend(numbers.into_iter().flat_map(u64::to_le_bytes));
        out.resize(SUPER_USED - SUM_BYTES, 0);
        out.extend_from_slice(&checksum::sum(0, &out).to_le_bytes());
        out.resize(SUPER_BYTES, 0);
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> SuperblockCopy {
        if bytes.iter().all(|byte| *byte == 0) {
            return SuperblockCopy::Empty;
        }
        let Some(rest) = bytes.strip_prefix(&SUPER_MAGIC) else { return SuperblockCopy::Foreign };
        let Some(used) = bytes.get(..SUPER_USED) else { return SuperblockCopy::Damaged };
        let mut numbers = Numbers(rest);
        let format = numbers.u32();
        if format != FORMAT {
            return SuperblockCopy::Format(format);
        }
        numbers.u32();
        let (encoded, stored) = used.split_at(SUPER_USED - SUM_BYTES);
        if checksum::sum(0, encoded).to_le_bytes() != stored {
            return SuperblockCopy::Damaged;
        }
        let found = Self {
            id: numbers.take(),
            owner: numbers.take(),
            segment_bytes: numbers.u32(),
            block_bytes: numbers.u32(),
            segments: numbers.u32(),
            segments_per_file: numbers.u32(),
            session: numbers.u64(),
            valid_from: numbers.u64(),
            generation: numbers.u64(),
        };
        SuperblockCopy::Sound(found)
    }
}

/// The header of a segment, with its epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) epoch: u64,
}

impl SegmentHeader {
    pub(crate) fn encode(self, key: u64, segment: u32) -> Vec<u8> {
        let mut out = vec![0; SUM_BYTES];
        out.extend([SEGMENT_MAGIC, segment].into_iter().flat_map(u32::to_le_bytes));
        out.extend_from_slice(&self.epoch.to_le_bytes());
        out.resize(FRAME_BYTES as usize, 0);
        checksum::seal(seed_of(key, &[OF_SEGMENT, u64::from(segment)]), 0, &mut out);
        out
    }

    pub(crate) fn decode(key: u64, segment: u32, bytes: &[u8]) -> Option<Self> {
        if !checksum::is_sound(seed_of(key, &[OF_SEGMENT, u64::from(segment)]), 0, bytes) {
            return None;
        }
        let mut numbers = Numbers(bytes.get(SUM_BYTES..)?);
        let named = numbers.u32() == SEGMENT_MAGIC && numbers.u32() == segment;
        named.then(|| Self { epoch: numbers.u64() })
    }
}

/// The end of a full segment, with the checksum of its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Footer {
    pub(crate) rows: u32,
    /// The newest durable invalidation when the segment's records were written.
    pub(crate) sealed: u64,
    table_sum: u64,
}

impl Footer {
    /// The table's rows and the footer: the last bytes of the segment.
    pub(crate) fn encode(key: u64, segment: u32, epoch: u64, sealed: u64, rows: &[Row]) -> Vec<u8> {
        let mut out = Vec::with_capacity(rows.len() * ROW_BYTES + FRAME_BYTES as usize);
        for row in rows {
            row.encode(&mut out);
        }
        let table_sum = checksum::sum(seed_of(key, &[OF_TABLE, u64::from(segment), epoch]), &out);
        let at = out.len();
        out.extend_from_slice(&[0; SUM_BYTES]);
        out.extend([FOOTER_MAGIC, rows.len() as u32].into_iter().flat_map(u32::to_le_bytes));
        out.extend([sealed, table_sum].into_iter().flat_map(u64::to_le_bytes));
        out.resize(at + FRAME_BYTES as usize, 0);
        checksum::seal(seed_of(key, &[OF_FOOTER, u64::from(segment), epoch]), 0, &mut out[at..]);
        out
    }

    /// Decodes the footer in the last bytes of a segment; `None` if there is no intact one of this
    /// epoch.
    pub(crate) fn decode(key: u64, segment: u32, epoch: u64, bytes: &[u8]) -> Option<Self> {
        if !checksum::is_sound(seed_of(key, &[OF_FOOTER, u64::from(segment), epoch]), 0, bytes) {
            return None;
        }
        let mut numbers = Numbers(bytes.get(SUM_BYTES..)?);
        if numbers.u32() != FOOTER_MAGIC {
            return None;
        }
        Some(Self { rows: numbers.u32(), sealed: numbers.u64(), table_sum: numbers.u64() })
    }

    /// The rows of its table; `None` if their checksum does not fit.
    pub(crate) fn table(
        &self,
        key: u64,
        segment: u32,
        epoch: u64,
        bytes: &[u8],
    ) -> Option<Vec<Row>> {
        let seed = seed_of(key, &[OF_TABLE, u64::from(segment), epoch]);
        if checksum::sum(seed, bytes) != self.table_sum {
            return None;
        }
        Some(bytes.as_chunks().0.iter().map(Row::decode).collect())
    }
}

/// The row of a record, in memory and in footers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) hash: u64,
    /// Invalidations with higher numbers have not been tested against it.
    pub(crate) order: u64,
    /// The unit at which the record begins, and flags.
    bits: u32,
    /// Bytes of the record.
    pub(crate) len: u32,
    /// Expiry in seconds since 1970, rounded down.
    pub(crate) expires_s: u32,
    pub(crate) passed: u32,
}

/// The record has not been forgotten.
pub(crate) const LIVE: u32 = 1 << 20;
/// The record was read since it was written.
pub(crate) const ASKED: u32 = 1 << 21;
/// The record is a part of another record's body.
pub(crate) const PART: u32 = 1 << 22;
/// The record's body is a list of parts.
pub(crate) const LISTED: u32 = 1 << 23;

/// The value for no expiry.
const NEVER_S: u32 = u32::MAX;

impl Row {
    pub(crate) fn new(header: &Header, offset: u32, len: u32) -> Self {
        Self {
            hash: header.hash,
            order: header.order,
            bits: (offset / UNIT) | LIVE | (u32::from(header.flags) << 22 & (PART | LISTED)),
            len,
            expires_s: match header.expires_ms {
                u64::MAX => NEVER_S,
                ms => u32::try_from(ms / 1000).unwrap_or(NEVER_S),
            },
            passed: header.passed,
        }
    }

    pub(crate) fn unit(&self) -> u32 {
        self.bits & (LIVE - 1)
    }

    pub(crate) fn offset(&self) -> u32 {
        self.unit() * UNIT
    }

    pub(crate) fn is(&self, mark: u32) -> bool {
        self.bits & mark != 0
    }

    pub(crate) fn set(&mut self, mark: u32, on: bool) {
        if on {
            self.bits |= mark;
        } else {
            self.bits &= !mark;
        }
    }

    /// [`IS_PART`] and [`IS_LISTED`].
    pub(crate) fn flags(&self) -> u16 {
        ((self.bits & (PART | LISTED)) >> 22) as u16
    }

    /// Bytes that the record takes in its segment.
    pub(crate) fn room(&self) -> u32 {
        self.len.next_multiple_of(UNIT)
    }

    /// The time of expiry, in milliseconds since 1970; `u64::MAX` for never.
    pub(crate) fn expires_ms(&self) -> u64 {
        if self.expires_s == NEVER_S { u64::MAX } else { u64::from(self.expires_s) * 1000 }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend([self.hash, self.order].into_iter().flat_map(u64::to_le_bytes));
        let rest = [self.bits, self.len, self.expires_s, self.passed];
        out.extend(rest.into_iter().flat_map(u32::to_le_bytes));
    }

    fn decode(bytes: &[u8; ROW_BYTES]) -> Self {
        let mut numbers = Numbers(bytes);
        Self {
            hash: numbers.u64(),
            order: numbers.u64(),
            bits: numbers.u32(),
            len: numbers.u32(),
            expires_s: numbers.u32(),
            passed: numbers.u32(),
        }
    }
}

/// A record's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// [`IS_PART`] and [`IS_LISTED`].
    pub(crate) flags: u16,
    pub(crate) seq: u64,
    pub(crate) hash: u64,
    pub(crate) order: u64,
    pub(crate) expires_ms: u64,
    pub(crate) written_ms: u64,
    pub(crate) passed: u32,
    pub(crate) head_len: u32,
    /// Bytes of the body, or of the list of parts, in this record.
    pub(crate) body_len: u32,
    /// The newest durable invalidation when the record was written.
    pub(crate) sealed: u64,
    /// Bytes of the whole body, including its parts.
    pub(crate) total: u64,
}

pub(crate) const IS_PART: u16 = (PART >> 22) as u16;
pub(crate) const IS_LISTED: u16 = (LISTED >> 22) as u16;

impl Header {
    /// Appends the header, with an empty checksum.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[0; SUM_BYTES]);
        out.extend_from_slice(&RECORD_MAGIC.to_le_bytes());
        out.extend_from_slice(&self.flags.to_le_bytes());
        out.extend_from_slice(&[0; 2]);
        let times = [self.seq, self.hash, self.order, self.expires_ms, self.written_ms];
        out.extend(times.into_iter().flat_map(u64::to_le_bytes));
        let lengths = [self.passed, self.head_len, self.body_len, 0];
        out.extend(lengths.into_iter().flat_map(u32::to_le_bytes));
        out.extend([self.sealed, self.total].into_iter().flat_map(u64::to_le_bytes));
    }

    /// Decodes a header. Only its magic number is checked.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(SUM_BYTES..HEADER_BYTES)?;
        let mut numbers = Numbers(bytes);
        if numbers.u32() != RECORD_MAGIC {
            return None;
        }
        let flags = numbers.u16();
        numbers.u16();
        let [seq, hash, order, expires_ms, written_ms] = std::array::from_fn(|_| numbers.u64());
        let [passed, head_len, body_len, _] = std::array::from_fn(|_| numbers.u32());
        let [sealed, total] = std::array::from_fn(|_| numbers.u64());
        Some(Self {
            flags,
            seq,
            hash,
            order,
            expires_ms,
            written_ms,
            passed,
            head_len,
            body_len,
            sealed,
            total,
        })
    }

    /// Bytes of head and body in this record.
    pub(crate) fn payload(&self) -> u64 {
        u64::from(self.head_len) + u64::from(self.body_len)
    }
}

/// The division of a record's bytes into blocks: each begins with its checksum, and the first with
/// the whole header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blocks {
    /// The most bytes of a block.
    pub(crate) bytes: u32,
}

impl Blocks {
    /// Bytes of a record with this much head and body.
    pub(crate) fn record_len(self, payload: u64) -> u64 {
        let first = u64::from(self.bytes) - HEADER_BYTES as u64;
        let later = u64::from(self.bytes) - SUM_BYTES as u64;
        let blocks = payload.saturating_sub(first).div_ceil(later);
        HEADER_BYTES as u64 + payload + blocks * SUM_BYTES as u64
    }

    /// Bytes of head and body in the first `len` bytes of a record: whole blocks, or all of it.
    pub(crate) fn payload_in(self, len: u64) -> u64 {
        let later = len.div_ceil(u64::from(self.bytes)).saturating_sub(1);
        len.saturating_sub(HEADER_BYTES as u64 + later * SUM_BYTES as u64)
    }

    /// The block of byte `at` of head and body, and the byte's offset in the block.
    pub(crate) fn find(self, at: u64) -> (u32, usize) {
        let first = u64::from(self.bytes) - HEADER_BYTES as u64;
        let later = u64::from(self.bytes) - SUM_BYTES as u64;
        if at < first {
            return (0, HEADER_BYTES + at as usize);
        }
        let (block, within) = ((at - first) / later, (at - first) % later);
        (block as u32 + 1, SUM_BYTES + within as usize)
    }

    /// Appends a record to `out`, padded to whole units. `fill` passes head and body to the
    /// function that it is called with.
    pub(crate) fn encode(
        self,
        out: &mut Vec<u8>,
        binding: &Binding,
        header: &Header,
        fill: impl FnOnce(&mut dyn FnMut(&[u8])),
    ) {
        let start = out.len();
        let block = self.bytes as usize;
        header.encode(out);
        fill(&mut |mut bytes: &[u8]| {
            while !bytes.is_empty() {
                let within = (out.len() - start) % block;
                if within == 0 {
                    out.extend_from_slice(&[0; SUM_BYTES]);
                    continue;
                }
                let (now, later) = bytes.split_at(bytes.len().min(block - within));
                out.extend_from_slice(now);
                bytes = later;
            }
        });
        let seed = binding.seed();
        for (number, block) in (0..).zip(out[start..].chunks_mut(block)) {
            checksum::seal(seed, number, block);
        }
        let len = (out.len() - start).next_multiple_of(UNIT as usize);
        out.resize(start + len, 0);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn header(head_len: u32, body_len: u32) -> Header {
        Header {
            flags: IS_LISTED,
            seq: 1,
            hash: 2,
            order: 3,
            expires_ms: 4_999,
            written_ms: 5,
            passed: 6,
            head_len,
            body_len,
            sealed: 7,
            total: 8,
        }
    }

    #[test]
    fn frames_are_read_back_and_only_in_their_place() {
        let found = Superblock {
            id: [1; 16],
            owner: [2; 32],
            segment_bytes: 3,
            block_bytes: 4,
            segments: 5,
            segments_per_file: 6,
            session: 7,
            valid_from: 8,
            generation: 9,
        };
        let mut bytes = found.encode();
        assert_eq!(bytes.len(), SUPER_BYTES);
        assert_eq!(Superblock::decode(&bytes), SuperblockCopy::Sound(found));
        bytes[40] ^= 1;
        assert_eq!(Superblock::decode(&bytes), SuperblockCopy::Damaged);
        bytes[8] = 9;
        assert_eq!(Superblock::decode(&bytes), SuperblockCopy::Format(9));
        bytes[0] = 9;
        assert_eq!(Superblock::decode(&bytes), SuperblockCopy::Foreign);

        let segment = SegmentHeader { epoch: 77 };
        let bytes = segment.encode(1, 2);
        assert_eq!(SegmentHeader::decode(1, 2, &bytes), Some(segment));
        assert_eq!(SegmentHeader::decode(1, 3, &bytes), None);

        let row = Row::new(&header(1, 2), 640, 91);
        let bytes = Footer::encode(1, 2, 77, 6, &[row, row]);
        let (table, footer) = bytes.split_at(2 * ROW_BYTES);
        let read = Footer::decode(1, 2, 77, footer).unwrap();
        assert_eq!((read.rows, read.sealed), (2, 6));
        assert_eq!(read.table(1, 2, 77, table), Some(vec![row, row]));
        assert_eq!(read.table(1, 2, 77, &table[..ROW_BYTES]), None);
        assert_eq!(Footer::decode(1, 2, 78, footer), None);
        assert_eq!((row.offset(), row.room(), row.expires_ms()), (640, 128, 4000));
        assert!(row.is(LISTED) && row.is(LIVE) && !row.is(PART));
    }

    proptest! {
        #[test]
        fn records_have_the_computed_length_and_offsets(
            head_len in 0_u32..2000,
            body_len in 0_u32..5000,
            pieces in 1_usize..700,
        ) {
            let blocks = Blocks { bytes: 512 };
            let binding = Binding { key: 1, segment: 2, epoch: 3, offset: 0, seq: 1, hash: 2 };
            let header = header(head_len, body_len);
            let byte = |n: u32| n as u8 ^ (n >> 8) as u8;
            let payload: Vec<u8> = (0..head_len + body_len).map(byte).collect();
            let mut out = vec![0xff; 64];
            blocks.encode(&mut out, &binding, &header, |put| payload.chunks(pieces).for_each(put));
            let record = &out[64..];
            let len = blocks.record_len(header.payload()) as usize;
            prop_assert_eq!(record.len(), len.next_multiple_of(UNIT as usize));
            prop_assert_eq!(Header::decode(record), Some(header));
            for (number, block) in (0..).zip(record[..len].chunks(512)) {
                prop_assert!(checksum::is_sound(binding.seed(), number, block));
            }
            prop_assert_eq!(blocks.payload_in(len as u64), header.payload());
            for end in (0..=len).step_by(512) {
                let is_before = |at: &u64| {
                    let (block, within) = blocks.find(*at);
                    block as usize * 512 + within < end
                };
                let come = (0..header.payload()).take_while(is_before).count();
                prop_assert_eq!(blocks.payload_in(end as u64), come as u64);
            }
            for (at, byte) in payload.iter().enumerate() {
                let (block, within) = blocks.find(at as u64);
                prop_assert_eq!(record[block as usize * 512 + within], *byte);
            }
        }
    }
}
