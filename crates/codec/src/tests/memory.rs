//! Tests of the memory that coders take, against their declared bounds.

use super::*;

/// The most bytes that `run` has allocated at one time.
fn peak(run: impl FnOnce()) -> usize {
    allocation_counter::measure(run).bytes_max as usize
}

fn check(settings: &EncodeSettings, plain: &[u8]) {
    let mut output = vec![0; 1 << 16];
    let mut counted = 0;
    let taken = peak(|| {
        let mut encoder = Encoder::new(settings).expect("memory");
        let mut at = 0;
        loop {
            let goal = if at == plain.len() { FlushMode::Finish } else { FlushMode::Gather };
            let step = encoder.step(&plain[at..], &mut output, goal).expect("memory");
            at += step.taken;
            if step.done && goal == FlushMode::Finish {
                break;
            }
        }
        counted = encoder.memory();
    });
    assert!(taken <= counted + counted / 50, "{settings:?}: {taken} and not {counted}");
    let most = settings.most_memory();
    assert!(counted <= most, "{settings:?}: {counted} beyond {most}");
    assert!(most / 4 <= counted + (1 << 20), "{settings:?}: {counted} far below {most}");
}

#[test]
fn encoders_take_what_they_tell() {
    let plain = page(40_000);
    for settings in all_settings() {
        check(&settings, &plain);
        check(&settings.for_length(plain.len() as u64), &plain);
    }
}

#[test]
fn no_window_takes_more_than_its_bound() {
    let plain = page(300_000);
    for (coding, level) in [
        (Coding::Gzip, 1),
        (Coding::Brotli, 1),
        (Coding::Brotli, 3),
        (Coding::Brotli, 4),
        (Coding::Brotli, 5),
        (Coding::Zstd, 1),
        (Coding::Zstd, 4),
        (Coding::Zstd, 9),
    ] {
        let settings = EncodeSettings::new(coding, level).expect("a level");
        for bits in EncodeSettings::windows_bits(coding, level) {
            check(&settings.with_window_bits(bits).expect("a window"), &plain);
        }
    }
    for level in EncodeSettings::levels(Coding::Zstd) {
        let settings = EncodeSettings::new(Coding::Zstd, level).expect("a level");
        for bits in [10, 14, 15, 17, 18, 20, 23] {
            check(&settings.with_window_bits(bits).expect("a window"), &plain[..20_000]);
        }
    }
}

#[test]
fn a_long_body_takes_no_more_than_its_bound() {
    let plain = page(1_200_000);
    for level in [3, 4, 5] {
        let settings = EncodeSettings::new(Coding::Brotli, level).expect("a level");
        check(&settings.for_length(plain.len() as u64), &plain);
    }
}

#[test]
fn decoders_take_what_they_tell() {
    let plain = page(1 << 20);
    let limits = DecodeLimits { window_bits: 20, ..DecodeLimits::default() };
    for coding in Coding::CODED {
        let coded = from_others(coding, &plain);
        let mut output = vec![0; 1 << 16];
        let mut counted = 0;
        let made = peak(|| drop(Decoder::new(coding, limits).expect("memory")));
        assert!(made <= limits.first_memory(coding), "{coding:?}: {made}");
        let taken = peak(|| {
            let mut decoder = Decoder::new(coding, limits).expect("memory");
            let mut at = 0;
            loop {
                let wanted = decoder.wanted_memory(&coded[at..]);
                let step = decoder.step(&coded[at..], &mut output).expect("well-formed");
                assert!(decoder.memory() <= wanted.max(limits.first_memory(coding)), "{coding:?}");
                at += step.taken;
                if step.done {
                    break;
                }
            }
            counted = decoder.memory();
        });
        assert!(taken <= counted + counted / 50, "{coding:?}: {taken} and not {counted}");
        assert!(counted <= limits.most_memory(coding), "{coding:?}: {counted}");
    }
}

#[test]
fn the_window_of_a_stream_is_known_before_it_is_taken() {
    let plain = page(3 << 20);
    let mut output = vec![0; 1 << 16];
    for (coding, level) in [(Coding::Brotli, 3), (Coding::Zstd, 3)] {
        let settings = EncodeSettings::new(coding, level).expect("a level");
        for bits in [10, 14, 18, 20, 22, 23] {
            let settings = settings.with_window_bits(bits).expect("a window");
            for length in [Some(5_000), None] {
                let plain = &plain[..length.unwrap_or(plain.len())];
                let settings = match length {
                    Some(length) => settings.for_length(length as u64),
                    None => settings,
                };
                let coded = encoded(&settings, plain, usize::MAX, 1 << 16);
                let limits = DecodeLimits::default();
                let mut decoder = Decoder::new(coding, limits).expect("memory");
                let wanted = decoder.wanted_memory(&coded);
                assert!(wanted <= limits.most_memory(coding), "{coding:?} {bits}: {wanted}");
                let step = decoder.step(&coded, &mut output).expect("well-formed");
                let taken = decoder.memory();
                assert!(
                    step.taken > 0 && taken <= wanted,
                    "{coding:?} {bits}: {taken} of {wanted}"
                );
            }
        }
    }
    // With an incomplete frame header, the upper bound is asked for.
    let decoder = Decoder::new(Coding::Zstd, DecodeLimits::default()).expect("memory");
    let most = DecodeLimits::default().most_memory(Coding::Zstd);
    assert_eq!(decoder.wanted_memory(&[0x28, 0xb5]), most);
    assert_eq!(decoder.wanted_memory(&[0x28, 0xb5, 0x2f, 0xfd, 0, 0xff]), most);
}
