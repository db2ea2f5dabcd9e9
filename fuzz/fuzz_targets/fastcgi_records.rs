//! FastCGI records: the same streams and the same end however they are cut.
#![no_main]

use fastcgi::{End, Event, RecordError, RecordReader};
use libfuzzer_sys::fuzz_target;

/// STDOUT, STDERR, and how it ended: with what, and after how many bytes.
type Heard = (Vec<u8>, Vec<u8>, Result<Option<(End, usize)>, RecordError>);

fn read(data: &[u8], step: usize) -> Heard {
    let (mut stdout, mut stderr, mut at) = (Vec::new(), Vec::new(), 0_usize);
    let mut reader = RecordReader::new();
    loop {
        let piece = &data[at..data.len().min(at.saturating_add(step))];
        let step = match reader.read(piece) {
            Ok(step) => step,
            Err(error) => {
                assert_eq!(reader.read(b""), Err(error));
                return (stdout, stderr, Err(error));
            }
        };
        assert!(step.consumed <= piece.len());
        at += step.consumed;
        match step.event {
            Event::Stdout(range) => {
                assert!(!range.is_empty() && range.end == step.consumed);
                stdout.extend_from_slice(&piece[range]);
            }
            Event::Stderr(range) => {
                assert!(!range.is_empty() && range.end == step.consumed);
                stderr.extend_from_slice(&piece[range]);
            }
            Event::End(end) => return (stdout, stderr, Ok(Some((end, at)))),
            Event::More => {
                assert_eq!(step.consumed, piece.len());
                if at == data.len() {
                    return (stdout, stderr, Ok(None));
                }
            }
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((first, data)) = input.split_first() else { return };
    let whole = read(data, usize::MAX);
    assert_eq!(read(data, usize::from(*first).max(1)), whole);
    assert!(whole.0.len() + whole.1.len() <= data.len());
});
