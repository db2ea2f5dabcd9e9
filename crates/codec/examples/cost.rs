//! Cost of an encoder's steps compared with its library alone: the beginnings of files, the best of
//! many rounds each.
//!
//! ```text
//!     cargo run --release -p codec --example cost -- docs/guide/*.md
//! ```

use std::hint::black_box;

use base::clock::System;
use codec::{Coding, EncodeSettings, Encoder, FlushMode, STEP_BYTES};
use flate2::{Compress, Compression, FlushCompress};

const TURNS: usize = 400;

/// Encodes `plain` by the library alone, in one call and into a prepared buffer; returns the
/// length.
fn alone(coding: Coding, level: u8, plain: &[u8], output: &mut Vec<u8>) -> usize {
    output.clear();
    match coding {
        Coding::Gzip => {
            let mut coder = Compress::new_gzip(Compression::new(u32::from(level)), 15);
            coder.compress_vec(plain, output, FlushCompress::Finish).expect("room");
        }
        Coding::Zstd => {
            zstd_safe::compress(output, plain, i32::from(level)).expect("room");
        }
        Coding::Brotli => {
            let params = brotli::enc::BrotliEncoderParams {
                quality: i32::from(level),
                lgwin: 19,
                size_hint: plain.len(),
                ..Default::default()
            };
            brotli::BrotliCompress(&mut &plain[..], output, &params).expect("room");
        }
        Coding::Identity => output.extend_from_slice(plain),
    }
    output.len()
}

/// Encodes `plain` by the steps of an [`Encoder`], as for a stored body; returns the length.
fn in_steps(coding: Coding, level: u8, plain: &[u8], output: &mut [u8]) -> usize {
    let settings =
        EncodeSettings::new(coding, level).expect("a level").for_length(plain.len() as u64);
    let mut coder = Encoder::new(&settings).expect("memory");
    let mut made = 0;
    let mut pieces = plain.chunks(STEP_BYTES).peekable();
    while let Some(piece) = pieces.next() {
        let goal = if pieces.peek().is_some() { FlushMode::Gather } else { FlushMode::Finish };
        let mut at = 0;
        loop {
            let step = coder.step(&piece[at..], output, goal).expect("memory");
            (at, made) = (at + step.taken, made + step.made);
            if step.done {
                break;
            }
        }
    }
    made
}

/// Microseconds that `work` takes, and its result.
fn timed(work: impl FnOnce() -> usize) -> (u64, usize) {
    let began = System.micros();
    let made = black_box(work());
    (System.micros() - began, made)
}

fn main() -> std::io::Result<()> {
    let files = std::env::args().skip(1).map(std::fs::read).collect::<Result<Vec<_>, _>>()?;
    let text = files.concat();
    println!("| coding | page | library | steps | ratio | bytes |");
    println!("|---|---|---|---|---|---|");
    for (coding, level) in [(Coding::Gzip, 6), (Coding::Brotli, 5), (Coding::Zstd, 3)] {
        for bytes in [2 << 10, 20 << 10, 256 << 10] {
            let plain = &text[..bytes.min(text.len())];
            let mut room = Vec::with_capacity(bytes + (1 << 16));
            let mut output = vec![0; STEP_BYTES];
            let (mut library, mut steps, mut sizes) = (u64::MAX, u64::MAX, (0, 0));
            for _ in 0..TURNS {
                let (time, made) = timed(|| alone(coding, level, black_box(plain), &mut room));
                (library, sizes.0) = (library.min(time), made);
                let (time, made) = timed(|| in_steps(coding, level, black_box(plain), &mut output));
                (steps, sizes.1) = (steps.min(time), made);
            }
            let ratio = steps as f64 / library as f64;
            println!(
                "| {coding:?} {level} | {} KiB | {library} us | {steps} us | {ratio:.3} | {} / {} |",
                plain.len() >> 10,
                sizes.0,
                sizes.1
            );
        }
    }
    Ok(())
}
