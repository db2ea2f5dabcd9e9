//! Delta codings `dcz` and `dcb` (RFC 9842 4 and 5): Zstandard or brotli with a dictionary that the
//! client holds, behind a header with the dictionary's hash. The dictionary is raw content. Bodies
//! are coded in one call, on threads that may block, never on a core.

use zstd_safe::zstd_sys::ZSTD_ErrorCode as Code;
use zstd_safe::{CCtx, CParameter, is_error_kind};

use crate::br::{self, BrotliDecoder, BrotliEncoder};
use crate::dictionary::{DeltaCoding, DictionaryHash, HASH_BYTES};
use crate::error::Error;
use crate::step::{FlushMode, STEP_BYTES};
use crate::zst;

/// The beginning of a `dcz` body: a skippable frame that holds the hash (RFC 9842 5).
const DCZ_MAGIC: &[u8] = &[0x5e, 0x2a, 0x4d, 0x18, 0x20, 0, 0, 0];
/// The beginning of a `dcb` body (RFC 9842 4); hash and stream follow.
const DCB_MAGIC: &[u8] = &[0xff, b'D', b'C', b'B'];

/// Most bytes of content and dictionary together that are coded at the highest level: half a second
/// of one core, measured. Larger ones use a middle level, ten times as fast.
const SMALL_BYTES: usize = 1 << 20;

/// Bytes of a window that brotli leaves unused (RFC 7932 9.1).
const WINDOW_GAP: usize = 16;

const fn magic(coding: DeltaCoding) -> &'static [u8] {
    match coding {
        DeltaCoding::Dcz => DCZ_MAGIC,
        DeltaCoding::Dcb => DCB_MAGIC,
    }
}

/// Level, and base-2 logarithm of a window over `dictionary_bytes` and `plain_bytes`. The window
/// stays within what every client takes: 8 MiB in `dcz`, 16 MiB in `dcb` (RFC 9842 4 and 5).
fn settings(coding: DeltaCoding, dictionary_bytes: usize, plain_bytes: usize) -> (u8, u8) {
    let all = dictionary_bytes.saturating_add(plain_bytes).saturating_add(WINDOW_GAP);
    let bits = all.checked_next_power_of_two().map_or(u8::MAX, |bytes| bytes.ilog2() as u8);
    let is_small = all <= SMALL_BYTES;
    let (small, middle, windows) = match coding {
        DeltaCoding::Dcz => (19, 12, zst::WINDOW_BITS),
        // Levels 5 to 8 find little in so large a window (see `br`), and 9 takes twice the memory.
        DeltaCoding::Dcb => (11, 4, br::WINDOW_BITS),
    };
    (if is_small { small } else { middle }, bits.clamp(*windows.start(), *windows.end()))
}

/// Upper bound of the memory in bytes that [`encode`] takes, beside a result of `most` bytes.
pub fn most_memory(coding: DeltaCoding, dictionary_bytes: usize, plain_bytes: usize) -> usize {
    let (level, bits) = settings(coding, dictionary_bytes, plain_bytes);
    match coding {
        DeltaCoding::Dcz => zst::encoder_bytes(level, bits),
        DeltaCoding::Dcb => {
            let decoder = br::decoder_bytes(bits) + dictionary_bytes;
            let length = (dictionary_bytes + plain_bytes) as u64;
            br::encoder_bytes(level, bits, Some(length)).max(decoder) + STEP_BYTES
        }
    }
}

/// Codes `plain` with the dictionary of this hash. `None` if the result would exceed `most` bytes,
/// or if it does not decode to `plain`: the brotli library fails so for one in fifty bodies below a
/// KiB, and was never seen to for longer ones.
///
/// # Errors
/// [`Error::Library`].
pub fn encode(
    coding: DeltaCoding,
    plain: &[u8],
    dictionary: &[u8],
    hash: &DictionaryHash,
    most: usize,
) -> Result<Option<Vec<u8>>, Error> {
    let header_bytes = magic(coding).len() + HASH_BYTES;
    let Some(room) = most.checked_sub(header_bytes).filter(|room| *room > 0) else {
        return Ok(None);
    };
    let made = match coding {
        DeltaCoding::Dcz => zstd(plain, dictionary, room)?,
        DeltaCoding::Dcb => brotli(plain, dictionary, room)?,
    };
    let Some(made) = made else { return Ok(None) };
    let mut whole = Vec::with_capacity(header_bytes + made.len());
    whole.extend_from_slice(magic(coding));
    whole.extend_from_slice(hash);
    whole.extend_from_slice(&made);
    Ok(Some(whole))
}

fn zstd(plain: &[u8], dictionary: &[u8], room: usize) -> Result<Option<Vec<u8>>, Error> {
    let (level, bits) = settings(DeltaCoding::Dcz, dictionary.len(), plain.len());
    let mut context = CCtx::try_create().ok_or(Error::Library)?;
    for parameter in
        [CParameter::CompressionLevel(i32::from(level)), CParameter::WindowLog(u32::from(bits))]
    {
        context.set_parameter(parameter).map_err(|_| Error::Library)?;
    }
    context.ref_prefix(dictionary).map_err(|_| Error::Library)?;
    let mut frame: Vec<u8> = Vec::with_capacity(room);
    match context.compress2(&mut frame, plain) {
        Ok(_) => Ok(Some(frame)),
        Err(code) if is_error_kind(code, Code::ZSTD_error_dstSize_tooSmall) => Ok(None),
        Err(_) => Err(Error::Library),
    }
}

/// Codes in brotli with the dictionary in the library's window, as if it had been sent before. The
/// distances equal those of a shared dictionary while the window still holds all of it. The library
/// avoids matches across the dictionary's end, except in some short bodies; the result is therefore
/// decoded and compared before any client gets it.
fn brotli(plain: &[u8], dictionary: &[u8], room: usize) -> Result<Option<Vec<u8>>, Error> {
    let (level, bits) = settings(DeltaCoding::Dcb, dictionary.len(), plain.len());
    if dictionary.len() + plain.len() + WINDOW_GAP > 1 << bits {
        return Ok(None);
    }
    let mut encoder = BrotliEncoder::with_dictionary(level, bits, plain.len(), dictionary);
    let mut output = vec![0; STEP_BYTES];
    let (mut stream, mut at) = (Vec::new(), 0);
    loop {
        let step = encoder.step(&plain[at..], &mut output, FlushMode::Finish)?;
        at += step.taken;
        if stream.len() + step.made > room {
            return Ok(None);
        }
        stream.extend_from_slice(&output[..step.made]);
        if step.done {
            break;
        }
    }
    drop(encoder);
    let mut decoder = BrotliDecoder::with_dictionary(bits, dictionary)?;
    match is_decoded_to(&mut decoder, &stream, plain, &mut output) {
        Ok(true) => Ok(Some(stream)),
        Ok(false) | Err(Error::Corrupt) => Ok(None),
        Err(other) => Err(other),
    }
}

/// Returns true if `stream` decodes to exactly `plain`.
fn is_decoded_to(
    decoder: &mut BrotliDecoder,
    stream: &[u8],
    plain: &[u8],
    output: &mut [u8],
) -> Result<bool, Error> {
    let (mut at, mut rest) = (0, plain);
    loop {
        let step = decoder.step(&stream[at..], output)?;
        at += step.taken;
        let Some(left) = rest.strip_prefix(&output[..step.made]) else { return Ok(false) };
        rest = left;
        if step.done {
            return Ok(rest.is_empty() && decoder.is_whole());
        }
    }
}

/// The coding of `body`, and the hash of the dictionary that it needs; `None` if it is in neither
/// coding.
pub fn needs(body: &[u8]) -> Option<(DeltaCoding, &DictionaryHash)> {
    DeltaCoding::ALL.into_iter().find_map(|coding| {
        let hash = body.strip_prefix(magic(coding))?.first_chunk()?;
        Some((coding, hash))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fuzz::{HASH, may_fail, undone};

    fn coded(coding: DeltaCoding, plain: &[u8], dictionary: &[u8]) -> Vec<u8> {
        let most = plain.len() + 1024;
        encode(coding, plain, dictionary, &HASH, most).expect("memory").expect("room")
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
        for (coding, len) in DeltaCoding::ALL
            .into_iter()
            .flat_map(|coding| [10_000, 300_000, 3_000_000].map(|len| (coding, len)))
        {
            let old = noise(len, 1);
            let mut new = old.clone();
            new.splice(len / 2..len / 2 + 5, *b"other words");
            let delta = coded(coding, &new, &old);
            assert!(delta.len() < 600, "{coding:?} {len}: {}", delta.len());
            assert_eq!(undone(&delta, &old, new.len()), new);
        }
    }

    #[test]
    fn what_is_not_shorter_is_not_made() {
        for coding in DeltaCoding::ALL {
            let of = |new: &[u8], old: &[u8], most| encode(coding, new, old, &HASH, most);
            let (old, new) = (noise(5000, 1), noise(5000, 2));
            assert_eq!(of(&new, &old, 4900), Ok(None));
            for most in 0..60 {
                assert_eq!(of(&new, &old, most), Ok(None));
            }
            let exact = coded(coding, &new, &old).len();
            assert_eq!(of(&new, &old, exact + 64).map(|made| made.is_some()), Ok(true));
            assert_eq!(of(&new, &old, exact - 1), Ok(None));
        }
    }

    #[test]
    fn a_dictionary_with_the_magic_of_a_trained_one_is_content_all_the_same() {
        for (coding, magic) in
            [(DeltaCoding::Dcz, &[0x37, 0xa4, 0x30, 0xec][..]), (DeltaCoding::Dcb, &[0x91, 0])]
        {
            let old = [magic, &noise(2000, 3)].concat();
            let new = [b"x", &old[..]].concat();
            let delta = coded(coding, &new, &old);
            assert!(delta.len() < 100, "{}", delta.len());
            assert_eq!(undone(&delta, &old, new.len()), new);
        }
    }

    #[test]
    fn no_match_runs_across_the_dictionarys_end() {
        // Such a body has only distances that the window holds, and no decoder follows them from
        // the dictionary into the content.
        for (coding, len) in
            DeltaCoding::ALL.into_iter().flat_map(|coding| [500, 700_000].map(|len| (coding, len)))
        {
            let old = noise(len, 5);
            let new = old.repeat(2);
            assert_eq!(undone(&coded(coding, &new, &old), &old, new.len()), new);
            let new = [&old[len - 100..], &old[len - 100..], &old[..]].concat();
            assert_eq!(undone(&coded(coding, &new, &old), &old, new.len()), new);
        }
    }

    #[test]
    fn what_the_library_gets_wrong_is_not_made() {
        let (old, new) = (b"?.\x8d", b"?.\x8d?.\x8d");
        assert_eq!(encode(DeltaCoding::Dcb, new, old, &HASH, 1024), Ok(None));
    }

    #[test]
    fn only_what_begins_so_has_a_hash() {
        assert_eq!(needs(b""), None);
        assert_eq!(needs(&[0; 100]), None);
        for coding in DeltaCoding::ALL {
            assert_eq!(needs(magic(coding)), None);
            let body = [magic(coding), &HASH].concat();
            assert_eq!(needs(&body), Some((coding, &HASH)));
        }
    }

    #[test]
    fn memory_stays_within_its_bound() {
        for (coding, old, new) in DeltaCoding::ALL.into_iter().flat_map(|coding| {
            let sizes =
                [(0, 1), (1000, 1000), (100_000, 500_000), (500_000, 500_000), (1, 4 << 20)];
            sizes.map(|(old, new)| (coding, old, new))
        }) {
            let (old, new) = (noise(old, 1), noise(new, 2));
            let most = new.len() + (new.len() >> 8) + 1024;
            let taken = allocation_counter::measure(|| {
                encode(coding, &new, &old, &HASH, most).expect("memory").expect("room");
            });
            // A growing buffer takes up to three times its length for a moment.
            let bound = most_memory(coding, old.len(), new.len()) + 3 * most;
            assert!(taken.bytes_max <= bound as u64, "{coding:?} {} {bound}", taken.bytes_max);
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
            // Part of the old body, its end before its beginning, so that matches cross that
            // boundary.
            let cut = cut.min(old.len());
            let new = [&old[cut..], &own[..], &old[..cut]].concat();
            for (a, b) in [(&old, &new), (&new, &own), (&own, &old)] {
                for coding in DeltaCoding::ALL {
                    let made = encode(coding, b, a, &HASH, b.len() + 1024).expect("memory");
                    match made {
                        Some(made) => prop_assert_eq!(&undone(&made, a, b.len()), b),
                        None => prop_assert!(may_fail(coding, b), "{coding:?} {}", b.len()),
                    }
                }
            }
        }
    }
}
