//! Checksums that are bound to their address: equal bytes have different checksums in another
//! volume, segment, epoch, record or block. So old or moved bytes can never be accepted as current
//! ones.

use rapidhash::v3::{RapidSecrets, rapidhash_v3_seeded};

/// Bytes of a checksum.
pub(crate) const SUM_BYTES: usize = 8;

/// Makes the seeds of blocks distinct: an odd number without a pattern.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The checksum of `bytes` under `seed`: rapidhash V3, which is equal on all platforms and fixed.
pub(crate) fn sum(seed: u64, bytes: &[u8]) -> u64 {
    rapidhash_v3_seeded(bytes, &RapidSecrets::seed_cpp(seed))
}

/// A seed made of identifying numbers.
pub(crate) fn seed_of(key: u64, numbers: &[u64]) -> u64 {
    let mut bytes = [0; 64];
    for (place, number) in bytes.as_chunks_mut().0.iter_mut().zip(numbers) {
        *place = number.to_le_bytes();
    }
    sum(key, &bytes[..numbers.len() * 8])
}

/// The identity of a record, to which its checksums are bound.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Binding {
    /// The volume's key.
    pub(crate) key: u64,
    pub(crate) segment: u32,
    pub(crate) epoch: u64,
    /// The offset of the record within the segment, in bytes.
    pub(crate) offset: u32,
    pub(crate) seq: u64,
    pub(crate) hash: u64,
}

impl Binding {
    /// The seed of the record's checksums.
    pub(crate) fn seed(&self) -> u64 {
        let place = u64::from(self.segment) << 32 | u64::from(self.offset);
        seed_of(self.key, &[place, self.epoch, self.seq, self.hash])
    }
}

/// The checksum of block `number` of a record with this seed.
pub(crate) fn block_sum(seed: u64, number: u32, bytes: &[u8]) -> u64 {
    sum(seed ^ u64::from(number).wrapping_mul(STEP), bytes)
}

/// Writes the checksum of `block` into its first bytes.
pub(crate) fn seal(seed: u64, number: u32, block: &mut [u8]) {
    let (place, bytes) = block.split_at_mut(SUM_BYTES);
    place.copy_from_slice(&block_sum(seed, number, bytes).to_le_bytes());
}

/// Returns true if `block` begins with the checksum of the rest.
pub(crate) fn is_sound(seed: u64, number: u32, block: &[u8]) -> bool {
    let Some((stored, bytes)) = block.split_first_chunk::<SUM_BYTES>() else { return false };
    u64::from_le_bytes(*stored) == block_sum(seed, number, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BINDING: Binding = Binding { key: 1, segment: 2, epoch: 3, offset: 64, seq: 5, hash: 6 };

    #[test]
    fn the_sums_are_these_for_good() {
        // Another number here is a change of the format.
        assert_eq!(sum(0, b"larder"), 4_087_105_218_275_026_666);
        assert_eq!(BINDING.seed(), 155_250_990_249_090_651);
    }

    #[test]
    fn a_block_is_sound_in_its_place_alone() {
        let mut block = vec![7; 100];
        seal(BINDING.seed(), 3, &mut block);
        assert!(is_sound(BINDING.seed(), 3, &block));
        assert!(!is_sound(BINDING.seed(), 4, &block));
        assert!(!is_sound(BINDING.seed(), 3, &block[..99]));
        for other in [
            Binding { key: 9, ..BINDING },
            Binding { segment: 9, ..BINDING },
            Binding { epoch: 9, ..BINDING },
            Binding { offset: 128, ..BINDING },
            Binding { seq: 9, ..BINDING },
            Binding { hash: 9, ..BINDING },
        ] {
            assert!(!is_sound(other.seed(), 3, &block), "{other:?}");
        }
    }

    #[test]
    fn any_flipped_bit_is_found() {
        let mut block: Vec<u8> = (0..=255).collect();
        seal(BINDING.seed(), 0, &mut block);
        for bit in 0..block.len() * 8 {
            block[bit / 8] ^= 1 << (bit % 8);
            assert!(!is_sound(BINDING.seed(), 0, &block), "bit {bit}");
            block[bit / 8] ^= 1 << (bit % 8);
        }
        block.fill(0);
        assert!(!is_sound(BINDING.seed(), 0, &block));
    }
}
