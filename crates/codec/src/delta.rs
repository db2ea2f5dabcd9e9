//! Bodies in `dcz` (RFC 9842 5): Zstandard with a dictionary that the client has, behind a header
//! that names it. The dictionary is raw content: whatever its bytes are, a prefix of the body.
//!
//! Bodies are made at once, on threads that may block.

use zstd_safe::zstd_sys::ZSTD_ErrorCode as Code;
use zstd_safe::{CCtx, CParameter, is_error_kind};

use crate::dictionary::{DictionaryHash, HASH_BYTES};
use crate::error::Error;
use crate::zst;

/// The beginning of a body: a frame that decoders skip, with the hash in it (RFC 9842 5).
const MAGIC: [u8; 8] = [0x5e, 0x2a, 0x4d, 0x18, 0x20, 0, 0, 0];
const HEADER_BYTES: usize = MAGIC.len() + HASH_BYTES;

/// Content and dictionary of so many bytes together are worked on at the greatest level: half a
/// second of one core, as measured; larger ones at [`MIDDLE_LEVEL`], ten times as fast.
const SMALL_BYTES: usize = 1 << 20;
const GREATEST_LEVEL: u8 = 19;
const MIDDLE_LEVEL: u8 = 12;

/// Level, and the logarithm of a window that spans `dictionary_bytes` and `plain_bytes`: no more
/// than the 8 MiB that every client takes (RFC 9842 5).
fn settings(dictionary_bytes: usize, plain_bytes: usize) -> (u8, u8) {
    let all = dictionary_bytes.saturating_add(plain_bytes).max(1);
    let level = if all <= SMALL_BYTES { GREATEST_LEVEL } else { MIDDLE_LEVEL };
    let bits = all.checked_next_power_of_two().map_or(u8::MAX, |bytes| bytes.ilog2() as u8);
    (level, bits.clamp(*zst::WINDOW_BITS.start(), *zst::WINDOW_BITS.end()))
}

/// The most bytes of memory that [`encode`] takes, beside its result of `most` bytes.
pub fn most_memory(dictionary_bytes: usize, plain_bytes: usize) -> usize {
    let (level, bits) = settings(dictionary_bytes, plain_bytes);
    zst::encoder_bytes(level, bits)
}

/// Codes `plain` with the dictionary that has this hash. `None` if the whole would be longer than
/// `most` bytes.
///
/// # Errors
/// [`Error::Library`].
pub fn encode(
    plain: &[u8],
    dictionary: &[u8],
    hash: &DictionaryHash,
    most: usize,
) -> Result<Option<Vec<u8>>, Error> {
    let Some(room) = most.checked_sub(HEADER_BYTES).filter(|room| *room > 0) else {
        return Ok(None);
    };
    let (level, bits) = settings(dictionary.len(), plain.len());
    let mut context = CCtx::try_create().ok_or(Error::Library)?;
    for parameter in
        [CParameter::CompressionLevel(i32::from(level)), CParameter::WindowLog(u32::from(bits))]
    {
        context.set_parameter(parameter).map_err(|_| Error::Library)?;
    }
    context.ref_prefix(dictionary).map_err(|_| Error::Library)?;
    let mut frame: Vec<u8> = Vec::with_capacity(room);
    match context.compress2(&mut frame, plain) {
        Ok(_) => {}
        Err(code) if is_error_kind(code, Code::ZSTD_error_dstSize_tooSmall) => return Ok(None),
        Err(_) => return Err(Error::Library),
    }
    let mut whole = Vec::with_capacity(HEADER_BYTES + frame.len());
    whole.extend_from_slice(&MAGIC);
    whole.extend_from_slice(hash);
    whole.extend_from_slice(&frame);
    Ok(Some(whole))
}

/// The hash of the dictionary that `body` needs. `None` if it is not in `dcz`.
pub fn hash_of(body: &[u8]) -> Option<&DictionaryHash> {
    body.strip_prefix(&MAGIC)?.first_chunk()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use zstd_safe::{DCtx, DParameter};

    use super::*;

    const HASH: DictionaryHash = [7; HASH_BYTES];

    /// The content of `body`, as a client decodes it that takes windows of 8 MiB.
    fn decoded(body: &[u8], dictionary: &[u8], most: usize) -> Vec<u8> {
        assert_eq!(hash_of(body), Some(&HASH));
        let mut context = DCtx::try_create().expect("memory");
        context.set_parameter(DParameter::WindowLogMax(23)).expect("a parameter");
        context.ref_prefix(dictionary).expect("a prefix");
        let mut plain = Vec::with_capacity(most);
        // The whole, its header with it: decoders skip that.
        context.decompress(&mut plain, body).expect("decodes");
        plain
    }

    fn coded(plain: &[u8], dictionary: &[u8]) -> Vec<u8> {
        encode(plain, dictionary, &HASH, plain.len() + 1024).expect("memory").expect("room")
    }

    /// Text without long repetitions.
    fn noise(len: usize, mut seed: u32) -> Vec<u8> {
        let byte = |_| {
            seed = seed.wrapping_mul(0x0019_660d).wrapping_add(0x3c6e_f35f);
            (seed >> 24) as u8
        };
        (0..len).map(byte).collect()
    }

    #[test]
    fn a_new_version_is_little_more_than_what_differs() {
        for len in [10_000, 300_000, 3_000_000] {
            let old = noise(len, 1);
            let mut new = old.clone();
            new.splice(len / 2..len / 2 + 5, *b"other words");
            let delta = coded(&new, &old);
            assert!(delta.len() < 600, "{len}: {}", delta.len());
            assert_eq!(decoded(&delta, &old, new.len()), new);
        }
    }

    #[test]
    fn what_is_not_shorter_is_not_made() {
        let (old, new) = (noise(5000, 1), noise(5000, 2));
        assert_eq!(encode(&new, &old, &HASH, 4900), Ok(None));
        for most in 0..60 {
            assert_eq!(encode(&new, &old, &HASH, most), Ok(None));
        }
        let exact = coded(&new, &old);
        assert_eq!(
            encode(&new, &old, &HASH, exact.len() + 64).map(|made| made.is_some()),
            Ok(true)
        );
    }

    #[test]
    fn a_dictionary_with_the_magic_of_a_trained_one_is_content_all_the_same() {
        let mut old = vec![0x37, 0xa4, 0x30, 0xec];
        old.extend(noise(2000, 3));
        let new = [b"x", &old[..]].concat();
        let delta = coded(&new, &old);
        assert!(delta.len() < 100, "{}", delta.len());
        assert_eq!(decoded(&delta, &old, new.len()), new);
    }

    #[test]
    fn only_what_begins_so_has_a_hash() {
        assert_eq!(hash_of(b""), None);
        assert_eq!(hash_of(&MAGIC), None);
        assert_eq!(hash_of(&[0; 100]), None);
    }

    #[test]
    fn memory_stays_within_its_bound() {
        for (old, new) in
            [(0, 1), (1000, 1000), (100_000, 500_000), (600_000, 600_000), (1, 4 << 20)]
        {
            let (old, new) = (noise(old, 1), noise(new, 2));
            let most = new.len() + (new.len() >> 8) + 1024;
            let taken = allocation_counter::measure(|| {
                encode(&new, &old, &HASH, most).expect("memory").expect("room");
            });
            let bound = most_memory(old.len(), new.len()) + 2 * most;
            assert!(taken.bytes_max <= bound as u64, "{} {bound}", taken.bytes_max);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn any_two_bodies_decode_to_the_second(
            old in proptest::collection::vec(0..4_u8, 0..3000),
            own in any::<Vec<u8>>(),
            cut in 0..3000_usize,
        ) {
            // Partly the old one, its end before its beginning, so that matches cross that.
            let cut = cut.min(old.len());
            let new = [&old[cut..], &own[..], &old[..cut]].concat();
            for (a, b) in [(&old, &new), (&new, &own), (&own, &old)] {
                prop_assert_eq!(&decoded(&coded(b, a), a, b.len()), b);
            }
        }
    }
}
