//! Fuzzing entry points of the crate: each feeds arbitrary bytes to one part, and panics if the
//! result breaks an invariant. Only fuzz targets and tests call them.

use zstd_safe::{DCtx, DParameter};

use crate::br::BrotliDecoder;
use crate::delta;
use crate::dictionary::{
    DeltaCoding, DictionaryHash, HASH_BYTES, MatchPattern, UseAsDictionary, available, taken,
};
use crate::{
    Accept, Coding, Codings, DecodeLimits, Decoder, EncodeSettings, Encoder, Error, FlushMode,
};

const LIMITS: DecodeLimits =
    DecodeLimits { size_bytes: 1 << 20, ratio: u64::MAX, free_bytes: 0, window_bits: 20 };

/// Decoding gives one result however the stream is cut, and stays within its limits. The first two
/// bytes select the coding and the cuts.
pub fn decode(data: &[u8]) {
    let [first, second, stream @ ..] = data else { return };
    let coding = Coding::ALL[usize::from(first % 4)];
    let whole = decoded(coding, stream, stream.len().max(1), 1 << 16);
    let cut = decoded(coding, stream, usize::from(first / 4) + 1, usize::from(*second) + 1);
    assert_eq!(whole.is_ok(), cut.is_ok(), "{whole:?} {cut:?}");
    if let (Ok(whole), Ok(cut)) = (whole, cut) {
        assert!(whole == cut);
        assert!(whole.len() as u64 <= LIMITS.size_bytes);
    }
}

/// Decoding inverts encoding, for each level, window and cut.
pub fn round_trip(data: &[u8]) {
    let [first, level, cut, room, plain @ ..] = data else { return };
    let coding = Coding::CODED[usize::from(first % 3)];
    let levels = EncodeSettings::levels(coding);
    let level = levels.start() + level % (levels.end() - levels.start() + 1);
    let settings = EncodeSettings::new(coding, level).expect("a level");
    let bits = 8 + first / 3 % 12;
    let settings = settings.with_window_bits(bits).unwrap_or(settings);
    let coded = encoded(&settings, plain, usize::from(*cut) + 1, usize::from(*room) + 1);
    assert_eq!(decoded(coding, &coded, 1 + usize::from(*room), 999).as_deref(), Ok(plain));
}

/// The chosen form is acceptable to the client, and only the set of acceptable codings is kept.
pub fn accept_encoding(data: &[u8]) {
    let accept = Accept::of(data.split(|b| *b == b'\n'));
    let taken = accept.codings();
    assert_eq!(Codings::of_bits(taken.bits()), Some(taken));
    for bits in 0..16 {
        let offered = Codings::of_bits(bits).expect("below 16");
        let best = accept.best(offered.iter());
        assert_eq!(best.is_none(), offered.both(taken).is_empty());
        assert!(best.is_none_or(|coding| offered.both(taken).contains(coding)));
    }
}

/// The fields of dictionaries, one on each line: a target, an Available-Dictionary, an
/// Accept-Encoding and Use-As-Dictionary. A parsed hash is printed as it was read; a pattern and a
/// plain search agree.
pub fn dictionary(data: &[u8]) {
    let mut lines = data.splitn(4, |b| *b == b'\n');
    let mut line = || lines.next().unwrap_or_default();
    let (target, hash, accept, field) = (line(), line(), line(), line());
    if let Some(hash) = available([hash]) {
        assert_eq!(available([spelled(&hash).as_bytes()]), Some(hash));
    }
    let token = taken([accept]).map(|coding| coding.token().as_bytes());
    assert!(token.is_none_or(|token| {
        accept.windows(token.len()).any(|part| part.eq_ignore_ascii_case(token))
    }));
    let origin = b"https://example.com";
    if let Some(pattern) = MatchPattern::parse(field, origin, target) {
        assert_eq!(pattern.matches(target), pattern.matches_plainly(target));
    }
    if let Some(found) = UseAsDictionary::parse([field], origin, target) {
        let is_for = found.is_for(target, None);
        assert!(!is_for || found.is_for(target, Some(b"document")), "for all, so for one");
        assert!(found.memory() < 16 << 10);
    }
}

/// An Available-Dictionary with this hash.
fn spelled(hash: &DictionaryHash) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bit = |at: usize| hash.get(at / 8).map_or(0, |byte| usize::from(byte >> (7 - at % 8) & 1));
    let digit = |at: usize| char::from(DIGITS[(0..6).fold(0, |n, b| n << 1 | bit(at * 6 + b))]);
    let digits: String = (0..(HASH_BYTES * 8).div_ceil(6)).map(digit).collect();
    format!(":{digits}=:")
}

pub(crate) const HASH: DictionaryHash = [7; HASH_BYTES];

/// Any body coded with any dictionary decodes to itself. The first byte selects the coding, the
/// second the dictionary's end.
pub fn delta(data: &[u8]) {
    let [first, second, rest @ ..] = data else { return };
    let (old, new) = rest.split_at(rest.len() * usize::from(*second) / 256);
    // The body repeats a part of the dictionary, so that matches reach its ends.
    let new = [new, &old[old.len() * usize::from(first / 2) / 128..]].concat();
    let coding = DeltaCoding::ALL[usize::from(first % 2)];
    let most = new.len() + 1024;
    let made = delta::encode(coding, &new, old, &HASH, most).expect("memory, and a true library");
    match made {
        Some(made) => assert_eq!(undone(&made, old, new.len()), new),
        None => assert!(may_fail(coding, &new), "{coding:?} {}", new.len()),
    }
}

/// Returns true if the library may code this `plain` wrongly.
pub(crate) fn may_fail(coding: DeltaCoding, plain: &[u8]) -> bool {
    coding == DeltaCoding::Dcb && plain.len() < 4096
}

/// The content of `body`, decoded with the smallest windows that a client must take.
pub(crate) fn undone(body: &[u8], dictionary: &[u8], most: usize) -> Vec<u8> {
    let (coding, hash) = delta::needs(body).expect("a header");
    assert_eq!(hash, &HASH);
    let mut plain = Vec::with_capacity(most);
    match coding {
        DeltaCoding::Dcz => {
            let mut context = DCtx::try_create().expect("memory");
            context.set_parameter(DParameter::WindowLogMax(23)).expect("a parameter");
            context.ref_prefix(dictionary).expect("a prefix");
            // Decoders skip the header, so the body is passed as a whole.
            context.decompress(&mut plain, body).expect("decodes");
        }
        DeltaCoding::Dcb => {
            let mut decoder = BrotliDecoder::with_dictionary(24, dictionary).expect("memory");
            let (mut at, mut output, mut done) = (4 + HASH_BYTES, [0; 1000], false);
            while !done {
                let step = decoder.step(&body[at..], &mut output).expect("decodes");
                at += step.taken;
                plain.extend_from_slice(&output[..step.made]);
                done = step.done;
            }
            assert!(decoder.is_whole());
        }
    }
    plain
}

/// Encodes `plain` in pieces of `piece_bytes`, flushes every third, and takes at most `room` bytes
/// of output at a time.
pub(crate) fn encoded(
    settings: &EncodeSettings,
    plain: &[u8],
    piece_bytes: usize,
    room: usize,
) -> Vec<u8> {
    let mut encoder = Encoder::new(settings).expect("memory");
    let (mut coded, mut output) = (Vec::new(), vec![0; room]);
    let mut run = |piece: &[u8], goal: FlushMode| {
        let mut at = 0;
        loop {
            let step = encoder.step(&piece[at..], &mut output, goal).expect("memory");
            assert!(step.done || step.taken + step.made > 0, "a step does something");
            at += step.taken;
            coded.extend_from_slice(&output[..step.made]);
            if step.done {
                break assert_eq!(at, piece.len());
            }
        }
    };
    for (at, piece) in plain.chunks(piece_bytes).enumerate() {
        run(piece, if at % 3 == 2 { FlushMode::Flush } else { FlushMode::Gather });
    }
    run(b"", FlushMode::Finish);
    assert!(encoder.memory() <= settings.most_memory());
    coded
}

/// Decodes `coded` in pieces of `piece_bytes`, with at most `room` bytes of output at a time.
pub(crate) fn decoded(
    coding: Coding,
    coded: &[u8],
    piece_bytes: usize,
    room: usize,
) -> Result<Vec<u8>, Error> {
    let mut decoder = Decoder::new(coding, LIMITS)?;
    let (mut plain, mut output) = (Vec::new(), vec![0; room]);
    for piece in coded.chunks(piece_bytes) {
        let mut at = 0;
        loop {
            let step = decoder.step(&piece[at..], &mut output)?;
            assert!(step.done || step.taken + step.made > 0, "a step does something");
            at += step.taken;
            plain.extend_from_slice(&output[..step.made]);
            if step.done {
                break assert_eq!(at, piece.len());
            }
        }
        assert!(decoder.memory() <= LIMITS.most_memory(coding), "{}", decoder.memory());
    }
    decoder.finish()?;
    Ok(plain)
}
