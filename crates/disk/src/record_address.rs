//! The address of a record, in eight bytes. A late reader with an old address must never get
//! another record.

use std::fmt;

use crate::layout::UNIT;

/// The address of a record: volume (6 bits), segment (20), a tag of the segment's epoch (18) and
/// the unit of 64 bytes within the segment (20). The tag makes addresses of an earlier use of the
/// segment invalid.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordAddress(u64);

const UNIT_BITS: u32 = 20;
const TAG_BITS: u32 = 18;
const SEGMENT_BITS: u32 = 20;

impl RecordAddress {
    pub(crate) fn new(volume: u8, segment: u32, epoch: u64, offset: u32) -> Self {
        let fields = [
            (u64::from(segment), SEGMENT_BITS),
            (u64::from(tag(epoch)), TAG_BITS),
            (u64::from(offset / UNIT), UNIT_BITS),
        ];
        let bits = fields.into_iter().fold(u64::from(volume), |bits, (field, width)| {
            bits << width | field & ((1 << width) - 1)
        });
        Self(bits)
    }

    /// The address with these [`RecordAddress::bits`].
    pub fn of_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The address as a number.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// The number of the volume in the settings.
    pub fn volume(self) -> usize {
        (self.0 >> (UNIT_BITS + TAG_BITS + SEGMENT_BITS)) as usize
    }

    pub(crate) fn segment(self) -> u32 {
        (self.0 >> (UNIT_BITS + TAG_BITS)) as u32 & ((1 << SEGMENT_BITS) - 1)
    }

    pub(crate) fn tag(self) -> u32 {
        (self.0 >> UNIT_BITS) as u32 & ((1 << TAG_BITS) - 1)
    }

    pub(crate) fn unit(self) -> u32 {
        self.0 as u32 & ((1 << UNIT_BITS) - 1)
    }

    /// This address on the volume with this number.
    pub(crate) fn on(self, volume: u8) -> Self {
        let shift = UNIT_BITS + TAG_BITS + SEGMENT_BITS;
        Self(self.0 & ((1 << shift) - 1) | u64::from(volume) << shift)
    }
}

/// A tag that differs between epochs of a segment, nearly always.
pub(crate) fn tag(epoch: u64) -> u32 {
    // Sessions count from bit 40 on, and numbers within a session from bit 0 on.
    let mixed = epoch ^ (epoch >> 40).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    (mixed ^ mixed >> TAG_BITS) as u32 & ((1 << TAG_BITS) - 1)
}

impl fmt::Debug for RecordAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (volume, segment, tag) = (self.volume(), self.segment(), self.tag());
        write!(f, "{volume}:{segment}.{tag:x}+{}", self.unit() * UNIT)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_address_has_its_parts(
            volume in 0_u8..64,
            segment in 0_u32..1 << 20,
            epoch in any::<u64>(),
            unit in 0_u32..1 << 20,
        ) {
            let place = RecordAddress::new(volume, segment, epoch, unit * UNIT);
            prop_assert_eq!(place.volume(), usize::from(volume));
            prop_assert_eq!(place.segment(), segment);
            prop_assert_eq!(place.tag(), tag(epoch));
            prop_assert_eq!(place.unit(), unit);
            prop_assert_eq!(place.on(9).on(volume), place);
            prop_assert_eq!(RecordAddress::of_bits(place.bits()), place);
        }

        #[test]
        fn epochs_that_follow_each_other_have_other_tags(
            epoch in any::<u64>(),
            steps in 1..100_u64,
        ) {
            prop_assert_ne!(tag(epoch), tag(epoch.wrapping_add(steps)));
        }
    }
}
