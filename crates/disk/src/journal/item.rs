//! The things that a journal says, and their form.

use bytes::Bytes;

use crate::record_address::RecordAddress;

/// One thing that a journal says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum JournalItem {
    /// The record at the place is not wanted any more.
    Forget(RecordAddress),
    /// An invalidation of this number.
    Invalidation(u64, Bytes),
    /// Invalidations up to this number are needed no more.
    Released(u64),
    /// The clock went back by so many milliseconds when this number was next.
    Shift(u64, u64),
    /// Nothing is to be written to this segment.
    Quarantine(u32),
    /// The volume of this identity was taken out when this number was next.
    Out([u8; 16], u64),
    /// The segment holds nothing of this epoch that is wanted.
    Freed(u32, u64),
    /// The volume was stopped, or another journal goes on.
    Closed,
    /// The invalidation of this number is needed no more: what it met is forgotten before this.
    Needless(u64),
    /// Records of a lower order are void, and invalidations up to this number needed no more.
    Void(u64),
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
            Self::Needless(number) => put(9, &[*number]),
            Self::Void(number) => put(10, &[*number]),
        }
    }

    /// The first item of `bytes`, which it is taken from; `None` if it makes no sense.
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
                let (told, rest) = bytes.split_at_checked(usize::try_from(len).ok()?)?;
                *bytes = rest;
                Self::Invalidation(number, Bytes::copy_from_slice(told))
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
            9 => Self::Needless(number()?),
            10 => Self::Void(number()?),
            _ => return None,
        };
        Some(item)
    }
}
