//! The items of a journal, and their encoding.

use bytes::Bytes;

use crate::record_address::RecordAddress;

/// An item of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum JournalItem {
    /// The record at this place is forgotten.
    Forget(RecordAddress),
    /// An invalidation with this number.
    Invalidation(u64, Bytes),
    /// Invalidations up to this number are released.
    Released(u64),
    /// The clock went back by this many milliseconds when this number was next.
    Shift(u64, u64),
    /// The segment is not to be written again.
    Quarantine(u32),
    /// The volume of this identity was taken out when this number was next.
    Out([u8; 16], u64),
    /// The segment has no live records of this epoch.
    Freed(u32, u64),
    /// The volume was stopped, or another journal follows.
    Closed,
    /// The invalidation with this number is obsolete: the records that it matches have been
    /// forgotten before this item.
    Obsolete(u64),
    /// Records of a lower order are discarded, and invalidations up to this number released.
    Discarded(u64),
}

impl JournalItem {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let mut put = |kind: u8, numbers: &[u64]| {
            out.push(kind);
            out.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        };
        match self {
            Self::Forget(place) => put(1, &[place.on(0).bits()]),
            Self::Invalidation(number, bytes) => {
                put(2, &[*number, bytes.len() as u64]);
                out.extend_from_slice(bytes);
            }
            Self::Released(number) => put(3, &[*number]),
            Self::Shift(number, ms) => put(4, &[*number, *ms]),
            Self::Quarantine(segment) => put(5, &[u64::from(*segment)]),
            Self::Out(id, number) => {
                put(6, &[*number]);
                out.extend_from_slice(id);
            }
            Self::Freed(segment, epoch) => put(7, &[u64::from(*segment), *epoch]),
            Self::Closed => put(8, &[]),
            Self::Obsolete(number) => put(9, &[*number]),
            Self::Discarded(number) => put(10, &[*number]),
        }
    }

    /// Decodes and removes the first item of `bytes`; `None` if it is malformed.
    pub(super) fn decode(bytes: &mut &[u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        *bytes = rest;
        let mut number = || {
            let (number, rest) = bytes.split_first_chunk()?;
            *bytes = rest;
            Some(u64::from_le_bytes(*number))
        };
        let item = match kind {
            1 => Self::Forget(RecordAddress::of_bits(number()?)),
            2 => {
                let (number, len) = (number()?, number()?);
                let (encoded, rest) = bytes.split_at_checked(usize::try_from(len).ok()?)?;
                *bytes = rest;
                Self::Invalidation(number, Bytes::copy_from_slice(encoded))
            }
            3 => Self::Released(number()?),
            4 => Self::Shift(number()?, number()?),
            5 => Self::Quarantine(u32::try_from(number()?).ok()?),
            6 => {
                let number = number()?;
                let (id, rest) = bytes.split_first_chunk()?;
                *bytes = rest;
                Self::Out(*id, number)
            }
            7 => Self::Freed(u32::try_from(number()?).ok()?, number()?),
            8 => Self::Closed,
            9 => Self::Obsolete(number()?),
            10 => Self::Discarded(number()?),
            _ => return None,
        };
        Some(item)
    }
}
