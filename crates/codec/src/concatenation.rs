//! Concatenation of gzip [segments](crate::Segment) and stored blocks to one stream. A CRC-32 is a
//! polynomial over GF(2) modulo the code's: the CRC of `a` followed by `b` is that of `a` times x
//! to the number of bits in `b`, plus that of `b`. So no part is ever decoded again.

use crate::gz::LAST_BLOCK;

/// The code's polynomial; the lowest bit is the highest power.
const POLYNOMIAL: u32 = 0xedb8_8320;
/// The polynomial 1.
const ONE: u32 = 1 << 31;
/// The polynomial x^8.
const BYTE: u32 = 1 << 23;

/// x^8 to the power of 1, 2, 4 and so on.
const POWERS: [u32; u64::BITS as usize] = {
    let mut powers = [BYTE; u64::BITS as usize];
    let mut at = 1;
    while at < powers.len() {
        powers[at] = multiply(powers[at - 1], powers[at - 1]);
        at += 1;
    }
    powers
};

/// A gzip header without optional fields.
pub const HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];

/// Most bytes of one stored block.
pub const STORED_BYTES: usize = u16::MAX as usize;

/// x to the number of bits of some content: the factor of a CRC that this content follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrcShift(u32);

impl CrcShift {
    /// The shift of content of `length` bytes.
    pub fn of(length: u64) -> Self {
        let (mut left, mut product) = (length, ONE);
        while left > 0 {
            product = multiply(POWERS[left.trailing_zeros() as usize], product);
            left &= left - 1;
        }
        Self(product)
    }
}

/// `a` times `b`, modulo the code's polynomial.
const fn multiply(mut a: u32, mut b: u32) -> u32 {
    let mut product = 0;
    // The highest bit of the rest of `a` is its lowest power.
    while a != 0 {
        product ^= b & (a >> (u32::BITS - 1)).wrapping_neg();
        b = b >> 1 ^ POLYNOMIAL & (b & 1).wrapping_neg();
        a <<= 1;
    }
    product
}

/// Builder of a stream's end: CRC-32 and length of the content so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrailerBuilder {
    crc: u32,
    length: u32,
}

impl TrailerBuilder {
    /// Adds content with this CRC-32, `length` (modulo 2^32) and `shift`.
    pub fn add(&mut self, crc: u32, length: u32, shift: CrcShift) {
        self.crc = multiply(shift.0, self.crc) ^ crc;
        self.length = self.length.wrapping_add(length);
    }

    /// The end of the stream: an empty last block, CRC and length (RFC 1952 2.3.1).
    pub fn end(self) -> [u8; 10] {
        let mut end = [0; 10];
        end[..2].copy_from_slice(&LAST_BLOCK);
        end[2..6].copy_from_slice(&self.crc.to_le_bytes());
        end[6..].copy_from_slice(&self.length.to_le_bytes());
        end
    }
}

/// The CRC-32 of content in pieces.
pub fn crc32<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> u32 {
    let mut crc = flate2::Crc::new();
    pieces.into_iter().for_each(|piece| crc.update(piece));
    crc.sum()
}

/// The header of a stored block of `length` bytes that is not the last (RFC 1951 3.2.4). The block
/// before it has to end at a byte boundary.
///
/// # Panics
/// If `length` exceeds [`STORED_BYTES`].
pub fn stored_head(length: usize) -> [u8; 5] {
    let length = u16::try_from(length).expect("no more than a stored block has");
    let ([a, b], [c, d]) = (length.to_le_bytes(), (!length).to_le_bytes());
    [0, a, b, c, d]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tests::{compress, outcome};
    use crate::{Coding, segment};

    proptest! {
        /// A stream of segments and stored blocks decodes to the content of its parts.
        #[test]
        fn what_is_put_together_decodes_to_its_parts(
            parts in prop::collection::vec(
                (any::<bool>(), prop::collection::vec(any::<u8>(), 0..3000)), 0..8),
        ) {
            let (mut stream, mut whole) = (HEAD.to_vec(), Vec::new());
            let mut joined = TrailerBuilder::default();
            for (is_coded, part) in parts {
                whole.extend_from_slice(&part);
                let crc = crc32([&part[..]]);
                if is_coded {
                    let coded = compress(Coding::Gzip, &part);
                    let segment = segment(&coded).expect("it was made here");
                    prop_assert_eq!((segment.crc, segment.length as usize), (crc, part.len()));
                    stream.extend_from_slice(&coded[segment.blocks]);
                } else {
                    stream.extend_from_slice(&stored_head(part.len()));
                    stream.extend_from_slice(&part);
                }
                joined.add(crc, part.len() as u32, CrcShift::of(part.len() as u64));
            }
            stream.extend_from_slice(&joined.end());
            prop_assert_eq!(outcome(Coding::Gzip, &stream), Ok(whole));
        }
    }
}
