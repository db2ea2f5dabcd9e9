//! A part record: one part of a long body, stored as a record of its own.

use bytes::Bytes;

use crate::layout::PART_BYTES;
use crate::record_address::RecordAddress;

/// A part of a body, stored as a record of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartRecord {
    pub(crate) place: RecordAddress,
    pub(crate) seq: u64,
    pub(crate) len: u64,
}

impl PartRecord {
    /// The address of the record.
    pub fn place(&self) -> RecordAddress {
        self.place
    }

    pub(crate) fn encode(parts: &[Self]) -> Bytes {
        let numbers = parts.iter().flat_map(|part| [part.place.on(0).bits(), part.seq, part.len]);
        numbers.flat_map(u64::to_le_bytes).collect::<Vec<u8>>().into()
    }

    pub(crate) fn decode(bytes: &[u8], volume: u8) -> Vec<Self> {
        let (parts, _) = bytes.as_chunks::<PART_BYTES>();
        let numbers = parts.iter().map(|part| {
            let number = |at: usize| part[at..at + 8].try_into().map_or(0, u64::from_le_bytes);
            [number(0), number(8), number(16)]
        });
        let part = |[place, seq, len]: [u64; 3]| Self {
            place: RecordAddress::of_bits(place).on(volume),
            seq,
            len,
        };
        numbers.map(part).collect()
    }
}
