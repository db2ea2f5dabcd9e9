//! Tests of encoders and decoders: against each other, against other implementations, and at their
//! limits.

use std::io::{Read, Write};

use proptest::prelude::*;

use crate::fuzz::{self, decoded, encoded};
use crate::*;

mod memory;

/// `len` bytes of text like a page's.
fn page(len: usize) -> Vec<u8> {
    let mut page = Vec::new();
    for n in 0.. {
        if page.len() >= len {
            break;
        }
        let item = n * 7919 % 1000;
        write!(page, "<li class=\"item{}\"><a href=\"/p/{item}.html\">", n % 7).expect("memory");
        writeln!(page, "Product {item} of {}</a></li>", item * item % 611).expect("memory");
    }
    page.truncate(len);
    page
}

fn all_settings() -> impl Iterator<Item = EncodeSettings> {
    Coding::CODED.into_iter().flat_map(|coding| {
        EncodeSettings::levels(coding)
            .map(move |level| EncodeSettings::new(coding, level).expect("a level"))
    })
}

fn fast(coding: Coding) -> EncodeSettings {
    EncodeSettings::new(coding, 1).expect("every coding has level 1")
}

pub(crate) fn compress(coding: Coding, plain: &[u8]) -> Vec<u8> {
    encoded(&fast(coding), plain, usize::MAX, 1 << 16)
}

pub(crate) fn outcome(coding: Coding, coded: &[u8]) -> Result<Vec<u8>, Error> {
    let whole = decoded(coding, coded, usize::MAX, 1 << 16);
    assert_eq!(whole, decoded(coding, coded, 1, 100), "however it is cut");
    whole
}

/// Decodes by another implementation.
fn by_others(coding: Coding, coded: &[u8], len: usize) -> Vec<u8> {
    let mut plain = Vec::new();
    match coding {
        Coding::Identity => plain.extend_from_slice(coded),
        Coding::Gzip => {
            let mut decoder = flate2::bufread::GzDecoder::new(coded);
            decoder.read_to_end(&mut plain).expect("gzip");
        }
        Coding::Brotli => {
            brotli::BrotliDecompress(&mut &coded[..], &mut plain).expect("brotli");
        }
        Coding::Zstd => {
            plain.resize(len, 0);
            let made = zstd_safe::decompress(&mut plain[..], coded).expect("zstd");
            assert_eq!(made, len);
        }
    }
    plain
}

/// Encodes by another implementation.
fn from_others(coding: Coding, plain: &[u8]) -> Vec<u8> {
    let mut coded = Vec::new();
    match coding {
        Coding::Identity => coded.extend_from_slice(plain),
        Coding::Gzip => {
            let builder = flate2::GzBuilder::new().filename("a").comment("b").extra("c").mtime(9);
            let mut encoder = builder.write(&mut coded, flate2::Compression::best());
            encoder.write_all(plain).expect("memory");
            encoder.finish().expect("memory");
        }
        Coding::Brotli => {
            let parameters =
                brotli::enc::BrotliEncoderParams { quality: 4, lgwin: 20, ..Default::default() };
            brotli::BrotliCompress(&mut &plain[..], &mut coded, &parameters).expect("memory");
        }
        Coding::Zstd => {
            coded.resize(zstd_safe::compress_bound(plain.len()), 0);
            let mut context = zstd_safe::CCtx::create();
            let checksum = zstd_safe::CParameter::ChecksumFlag(true);
            context.set_parameter(checksum).expect("a parameter");
            let made = context.compress2(&mut coded[..], plain).expect("room");
            coded.truncate(made);
        }
    }
    coded
}

#[test]
fn every_level_makes_what_others_read() {
    let plain = page(40_000);
    for settings in all_settings() {
        let settings = settings.for_length(plain.len() as u64);
        let coded = encoded(&settings, &plain, 5000, 3000);
        assert!(coded.len() < plain.len() / 3, "{settings:?} {}", coded.len());
        assert!(by_others(settings.coding(), &coded, plain.len()) == plain, "{settings:?}");
        assert!(outcome(settings.coding(), &coded).as_deref() == Ok(&plain[..]), "{settings:?}");
    }
}

#[test]
fn what_others_make_is_read() {
    let plain = page(300_000);
    for coding in Coding::ALL {
        let coded = from_others(coding, &plain);
        assert!(outcome(coding, &coded).as_deref() == Ok(&plain[..]), "{coding:?}");
    }
}

#[test]
fn long_bodies_go_through_blocks_and_windows() {
    let plain = page(900_000);
    for (coding, level) in [(Coding::Gzip, 6), (Coding::Brotli, 5), (Coding::Zstd, 3)] {
        let settings = EncodeSettings::new(coding, level).expect("a level");
        let settings = settings.with_window_bits(if coding == Coding::Gzip { 9 } else { 17 });
        let settings = settings.expect("a window");
        let coded = encoded(&settings, &plain, usize::MAX, 10_000);
        assert!(by_others(coding, &coded, plain.len()) == plain, "{coding:?}");
    }
}

#[test]
fn the_same_input_makes_the_same_bytes_without_time_or_name() {
    let plain = page(10_000);
    for settings in all_settings() {
        let coded = encoded(&settings, &plain, 2000, 1000);
        assert!(coded == encoded(&settings, &plain, 2000, 1), "{settings:?}");
        if settings.coding() == Coding::Gzip {
            // ID1 ID2 CM FLG MTIME (RFC 1952 2.3).
            assert_eq!(coded[..8], [0x1f, 0x8b, 8, 0, 0, 0, 0, 0]);
        }
    }
}

/// Encodes pieces of `piece_bytes` without a flush.
fn unflushed(settings: &EncodeSettings, plain: &[u8], piece_bytes: usize, room: usize) -> Vec<u8> {
    let mut encoder = Encoder::new(settings).expect("memory");
    let (mut coded, mut output) = (Vec::new(), vec![0; room]);
    let mut left = plain;
    loop {
        let piece = &left[..left.len().min(piece_bytes)];
        let goal = if piece.len() == left.len() { FlushMode::Finish } else { FlushMode::Gather };
        let step = encoder.step(piece, &mut output, goal).expect("memory");
        left = &left[step.taken..];
        coded.extend_from_slice(&output[..step.made]);
        if step.done && goal == FlushMode::Finish {
            return coded;
        }
    }
}

#[test]
fn it_does_not_matter_how_the_input_is_cut() {
    let plain = page(3 * STEP_BYTES);
    for settings in all_settings() {
        let whole = unflushed(&settings, &plain, usize::MAX, 1 << 16);
        for (piece_bytes, room) in [(777, 1 << 16), (STEP_BYTES, 1 << 16), (20_000, 10)] {
            let coded = unflushed(&settings, &plain, piece_bytes, room);
            assert!(coded == whole, "{settings:?} {piece_bytes} {room}");
        }
    }
}

#[test]
fn a_flush_makes_all_that_was_fed_decodable() {
    for settings in all_settings() {
        let mut encoder = Encoder::new(&settings).expect("memory");
        let mut decoder = Decoder::new(settings.coding(), DecodeLimits::default()).expect("memory");
        let (mut output, mut plain) = ([0; 4096], [0; 4096]);
        for word in ["<html>", "<p>Hello", ", hello</p>"] {
            let step =
                encoder.step(word.as_bytes(), &mut output, FlushMode::Flush).expect("memory");
            assert!(step.done && step.taken == word.len(), "{settings:?}");
            let read = decoder.step(&output[..step.made], &mut plain).expect("our own");
            assert_eq!(&plain[..read.made], word.as_bytes(), "{settings:?}");
            let again = encoder.step(b"", &mut output, FlushMode::Flush).expect("memory");
            assert_eq!(
                again,
                CodingProgress { done: true, ..CodingProgress::default() },
                "there is nothing new"
            );
        }
        assert_eq!(decoder.finish(), Err(Error::Truncated));
        let step = encoder.step(b"", &mut output, FlushMode::Finish).expect("memory");
        assert!(step.done);
        decoder.step(&output[..step.made], &mut plain).expect("our own");
        assert_eq!(decoder.finish(), Ok(()));
        let late = encoder.step(b"late", &mut output, FlushMode::Finish).expect("finished");
        assert_eq!((late.taken, late.made, late.done), (0, 0, true));
    }
}

#[test]
fn a_step_takes_and_makes_no_more_than_it_may() {
    let plain = vec![7; 10 * STEP_BYTES];
    for settings in all_settings() {
        let mut encoder = Encoder::new(&settings).expect("memory");
        let step = encoder.step(&plain, &mut [0; 100], FlushMode::Finish).expect("memory");
        assert!(step.taken == STEP_BYTES && step.made <= 100 && !step.done, "{settings:?}");
    }
    for coding in Coding::ALL {
        let coded = compress_any(coding, &plain);
        let mut decoder = Decoder::new(coding, DecodeLimits::default()).expect("memory");
        let step = decoder.step(&coded, &mut [0; 100]).expect("our own");
        assert!(step.taken <= STEP_BYTES && step.made == 100 && !step.done, "{coding:?}");
    }
}

fn compress_any(coding: Coding, plain: &[u8]) -> Vec<u8> {
    if coding == Coding::Identity { plain.to_vec() } else { compress(coding, plain) }
}

#[test]
fn an_empty_body_is_a_stream_and_no_byte_is_none() {
    for settings in all_settings() {
        let coded = encoded(&settings, b"", 1, 100);
        assert_eq!(outcome(settings.coding(), &coded).as_deref(), Ok(&b""[..]), "{settings:?}");
    }
    for coding in Coding::CODED {
        assert_eq!(outcome(coding, b""), Err(Error::Truncated));
    }
    assert_eq!(outcome(Coding::Identity, b""), Ok(vec![]));
}

#[test]
fn truncated_streams_are_errors() {
    let plain = page(3000);
    for coding in Coding::CODED {
        let coded = compress(coding, &plain);
        for len in 0..coded.len() {
            assert_eq!(outcome(coding, &coded[..len]), Err(Error::Truncated), "{coding:?} {len}");
        }
    }
}

#[test]
fn bytes_behind_a_stream_are_errors() {
    for coding in Coding::CODED {
        for rest in [&b"x"[..], b"\0", b"garbage and more garbage"] {
            let coded = [&compress(coding, b"plain"), rest].concat();
            assert_eq!(outcome(coding, &coded), Err(Error::Trailing), "{coding:?} {rest:?}");
        }
    }
    let twice = compress(Coding::Brotli, b"plain").repeat(2);
    assert_eq!(outcome(Coding::Brotli, &twice), Err(Error::Trailing));
}

#[test]
fn members_and_frames_in_a_row_are_one_stream() {
    for coding in [Coding::Gzip, Coding::Zstd] {
        let coded = [compress(coding, b"one "), compress(coding, b""), compress(coding, b"two")];
        assert_eq!(outcome(coding, &coded.concat()).as_deref(), Ok(&b"one two"[..]));
        let cut = [&coded[0][..], &coded[2][..coded[2].len() - 1]].concat();
        assert_eq!(outcome(coding, &cut), Err(Error::Truncated));
    }
    // A skippable frame (RFC 8878 3.1.2).
    let skipped = [&b"\x50\x2a\x4d\x18\x03\0\0\0abc"[..], &compress(Coding::Zstd, b"x")].concat();
    assert_eq!(outcome(Coding::Zstd, &skipped).as_deref(), Ok(&b"x"[..]));
}

#[test]
fn other_bytes_and_wrong_checksums_are_corrupt() {
    assert_eq!(outcome(Coding::Gzip, b"<html>"), Err(Error::Corrupt));
    assert_eq!(outcome(Coding::Zstd, b"<html>"), Err(Error::Corrupt));
    for coding in [Coding::Gzip, Coding::Zstd] {
        let mut coded = from_others(coding, &page(1000));
        let last = coded.len() - if coding == Coding::Gzip { 5 } else { 1 };
        coded[last] ^= 1;
        assert_eq!(outcome(coding, &coded), Err(Error::Corrupt), "{coding:?}");
    }
}

fn limited(coding: Coding, coded: &[u8], limits: DecodeLimits) -> (u64, Result<(), Error>) {
    let mut decoder = Decoder::new(coding, limits).expect("memory");
    let mut output = [0; 4096];
    let (mut at, mut made) = (0, 0);
    loop {
        match decoder.step(&coded[at..], &mut output) {
            Err(error) => return (made, Err(error)),
            Ok(step) if step.done => return (made + step.made as u64, decoder.finish()),
            Ok(step) => (at, made) = (at + step.taken, made + step.made as u64),
        }
    }
}

#[test]
fn bombs_stop_at_their_limits() {
    let zeros = vec![0; 4 << 20];
    let limits = DecodeLimits { size_bytes: 1 << 20, ratio: u64::MAX, ..DecodeLimits::default() };
    for coding in Coding::CODED {
        let bomb = from_others(coding, &zeros);
        assert!(bomb.len() < zeros.len() / 200, "{coding:?}");
        let size = limited(coding, &bomb, limits);
        assert_eq!(size, (1 << 20, Err(Error::Limit(DecodeLimit::Size))), "{coding:?}");
        let limits =
            DecodeLimits { size_bytes: u64::MAX, ratio: 100, free_bytes: 1 << 18, ..limits };
        let (made, ratio) = limited(coding, &bomb, limits);
        assert_eq!(ratio, Err(Error::Limit(DecodeLimit::Ratio)), "{coding:?}");
        assert!(made >= 1 << 18 && made < zeros.len() as u64 / 2, "{coding:?} {made}");
        let limits = DecodeLimits { ratio: 200_000, ..limits };
        assert_eq!(limited(coding, &bomb, limits), (4 << 20, Ok(())), "{coding:?}");
    }
}

#[test]
fn a_stream_of_the_size_that_is_allowed_passes() {
    let plain = page(5000);
    for coding in Coding::ALL {
        let limits = DecodeLimits { size_bytes: 5000, ..DecodeLimits::default() };
        let coded = compress_any(coding, &plain);
        assert_eq!(limited(coding, &coded, limits), (5000, Ok(())), "{coding:?}");
        let limits = DecodeLimits { size_bytes: 4999, ..limits };
        let (_, stopped) = limited(coding, &coded, limits);
        assert_eq!(stopped, Err(Error::Limit(DecodeLimit::Size)), "{coding:?}");
    }
}

#[test]
fn windows_beyond_the_limit_are_refused() {
    let beyond = Err(Error::Limit(DecodeLimit::Window));
    let limits = |window_bits| DecodeLimits { window_bits, ..DecodeLimits::default() };
    for coding in [Coding::Brotli, Coding::Zstd] {
        let settings = fast(coding).with_window_bits(19).expect("a window");
        let coded = encoded(&settings, &page(100), 10, 1000);
        assert_eq!(limited(coding, &coded, limits(18)), (0, beyond), "{coding:?}");
        assert_eq!(limited(coding, &coded, limits(19)), (100, Ok(())), "{coding:?}");
    }
    // Magic number, no content size, a window of 16 MiB (RFC 8878 3.1.1.1.2).
    let large = b"\x28\xb5\x2f\xfd\x00\x70\x01\0\0";
    assert_eq!(limited(Coding::Zstd, large, limits(30)).1, beyond);
    // The reserved mark of large windows (RFC 7932 9.1).
    assert_eq!(limited(Coding::Brotli, b"\x11\x1c\0\0", limits(30)).1, beyond);
}

#[test]
fn coders_may_move_to_other_threads() {
    fn is_send<T: Send>() {}
    is_send::<Encoder>();
    is_send::<Decoder>();
}

fn plain() -> impl Strategy<Value = Vec<u8>> {
    let any_bytes = prop::collection::vec(any::<u8>(), 0..2000);
    let few_bytes = prop::collection::vec(0..3u8, 0..5000);
    let repeated = (prop::collection::vec(any::<u8>(), 1..50), 0..500usize)
        .prop_map(|(part, times)| part.repeat(times));
    prop_oneof![any_bytes, few_bytes, repeated, (0..30_000usize).prop_map(page)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn decoding_undoes_encoding(
        plain in plain(),
        at in any::<prop::sample::Index>(),
        pieces in (1..5000usize, 1..5000usize, 1..5000usize, 1..5000usize),
        length in prop::option::of(0..100_000u64),
    ) {
        let all: Vec<EncodeSettings> = all_settings().collect();
        let mut settings = *at.get(&all);
        if let Some(length) = length {
            settings = settings.for_length(length);
        }
        let coded = encoded(&settings, &plain, pieces.0, pieces.1);
        prop_assert!(decoded(settings.coding(), &coded, pieces.2, pieces.3).as_ref() == Ok(&plain));
        prop_assert!(by_others(settings.coding(), &coded, plain.len()) == plain);
    }

    #[test]
    fn flipped_bits_end_in_the_same_way_however_they_are_cut(
        plain in plain(),
        coding in 0..4u8,
        cuts in (0..64u8, any::<u8>()),
        flips in prop::collection::vec((any::<prop::sample::Index>(), 0..8u8), 1..4),
    ) {
        let mut coded = from_others(Coding::ALL[usize::from(coding)], &plain);
        for (at, bit) in flips.iter().filter(|_| !plain.is_empty()) {
            *at.get_mut(&mut coded) ^= 1 << bit;
        }
        fuzz::decode(&[&[coding + 4 * cuts.0, cuts.1], &coded[..]].concat());
    }
}

proptest! {
    #[test]
    fn any_bytes_are_judged(data in prop::collection::vec(any::<u8>(), 0..300)) {
        fuzz::decode(&data);
        fuzz::accept_encoding(&data);
    }

    #[test]
    fn any_bytes_come_back(data in prop::collection::vec(any::<u8>(), 0..300)) {
        fuzz::round_trip(&data);
        fuzz::delta(&data);
    }
}

#[test]
fn what_no_encoder_made_has_no_segment() {
    let stream = compress(Coding::Gzip, &page(3000));
    assert!(segment(&stream).is_some());
    for cut in [0, 1, 17, 18, stream.len() - 1] {
        assert_eq!(segment(&stream[..cut]), None, "{cut}");
    }
    assert_eq!(segment(&from_others(Coding::Gzip, b"x")), None, "it has a name in its head");
    assert_eq!(segment(&compress(Coding::Zstd, &page(3000))), None);
}

proptest! {
    /// Segments, concatenated between one header and one end, are a stream of all their contents.
    #[test]
    fn segments_stand_beside_each_other_in_one_stream(
        parts in proptest::collection::vec((0..40_000usize, any::<u8>(), 1..=9u8), 1..5),
        (cut, room) in (1..20_000usize, 1..20_000usize),
    ) {
        let (mut all, mut stream) = (Vec::new(), Vec::new());
        for (len, first, level) in parts {
            let mut plain = page(len);
            plain.extend(std::iter::repeat_n(first, len % 7));
            let settings = EncodeSettings::new(Coding::Gzip, level).expect("a level");
            let coded = encoded(&settings, &plain, cut, room);
            let inside = segment(&coded).expect("made here");
            let mut crc = flate2::Crc::new();
            crc.update(&plain);
            prop_assert_eq!((inside.crc, inside.length), (crc.sum(), plain.len() as u32));
            prop_assert_eq!(inside.blocks.end, coded.len() - 10);
            if stream.is_empty() {
                stream.extend_from_slice(&coded[..inside.blocks.start]);
            }
            stream.extend_from_slice(&coded[inside.blocks]);
            all.extend_from_slice(&plain);
        }
        let mut crc = flate2::Crc::new();
        crc.update(&all);
        stream.extend_from_slice(&[3, 0]);
        stream.extend_from_slice(&crc.sum().to_le_bytes());
        stream.extend_from_slice(&(all.len() as u32).to_le_bytes());
        prop_assert!(outcome(Coding::Gzip, &stream).as_deref() == Ok(&all[..]));
        prop_assert!(by_others(Coding::Gzip, &stream, all.len()) == all);
    }
}
