//! A chunked body: the same data and the same end however it is cut.
#![no_main]

use h1::{BodyError, BodyReader};
use libfuzzer_sys::fuzz_target;
use message::Framing;

/// The body's data, and how many bytes it took or why it was refused.
fn read(mut body: BodyReader, data: &[u8], step: usize) -> (Vec<u8>, Result<usize, BodyError>) {
    let (mut read, mut at) = (Vec::new(), 0);
    while at < data.len() && !body.is_done() {
        let piece = &data[at..data.len().min(at.saturating_add(step))];
        match body.read(piece) {
            Ok(step) => {
                assert!(step.data.end <= step.consumed && step.consumed <= piece.len());
                assert!(step.consumed > 0, "no progress");
                assert_eq!(step.done, body.is_done());
                read.extend_from_slice(&piece[step.data]);
                at += step.consumed;
            }
            Err(error) => {
                assert_eq!(body.at_eof(), Err(error));
                return (read, Err(error));
            }
        }
    }
    let end = body.at_eof().map(|()| at);
    (read, end)
}

fuzz_target!(|input: &[u8]| {
    let Some((first, data)) = input.split_first() else { return };
    let step = usize::from(first >> 1).max(1);
    let strict = BodyReader::new(Framing::Chunked, 100);
    let lenient = BodyReader::for_response(Framing::Chunked, 100);
    let whole = read(strict.clone(), data, usize::MAX);
    assert_eq!(read(strict, data, step), whole);
    let from_origin = read(lenient.clone(), data, usize::MAX);
    assert_eq!(read(lenient, data, step), from_origin);
    // Leniency takes more, and never takes anything in another way.
    if whole.1.is_ok() {
        assert_eq!(whole, from_origin);
    }
});
