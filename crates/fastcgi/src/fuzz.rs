//! Fuzz targets: arbitrary bytes as records, and as the head of a CGI response. They panic on a
//! violation; only tests and fuzzers may call them.

use base::Limits;
use message::{HeaderId, Response, Status, header};

use crate::{
    Event, Head, HeadError, HeadLimits, HeadReader, RecordError, RecordReader, RequestEnd,
};

/// STDOUT, STDERR, and how it ended: with what, and after how many bytes.
type Streams = (Vec<u8>, Vec<u8>, Result<Option<(RequestEnd, usize)>, RecordError>);

fn read_records(data: &[u8], step: usize) -> Streams {
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

/// Decodes records: the streams and their end are equal however the bytes are cut. The first byte
/// sets the cut.
pub fn records(input: &[u8]) {
    let Some((first, data)) = input.split_first() else { return };
    let whole = read_records(data, usize::MAX);
    assert_eq!(read_records(data, usize::from(*first).max(1)), whole);
    assert!(whole.0.len() + whole.1.len() <= data.len());
}

fn read_head(data: &[u8], step: usize) -> (Result<Option<Head>, HeadError>, Response) {
    let limits = Limits::default();
    let limits = HeadLimits {
        head_bytes: 2048,
        field_bytes: 256,
        field_count: limits.header_count as usize,
        tag_bytes: 512,
    };
    let (mut reader, mut response) = (HeadReader::new(), Response::new(Status::OK));
    let mut arrived = step.min(data.len());
    loop {
        let read = reader.read(&data[..arrived], &limits, &mut response);
        if read != Ok(None) || arrived == data.len() {
            return (read, response);
        }
        arrived = arrived.saturating_add(step).min(data.len());
    }
}

/// Decodes the head of a CGI response: it is equal however it is cut, and never has framing of its
/// own. The first byte sets the cut.
pub fn head(input: &[u8]) {
    let Some((first, data)) = input.split_first() else { return };
    let (whole, response) = read_head(data, usize::MAX);
    let (cut, same) = read_head(data, usize::from(*first).max(1));
    assert_eq!(whole, cut);
    let Ok(Some(head)) = whole else { return };
    assert_eq!(format!("{response:?}"), format!("{same:?}"));
    assert!(data[..head.consumed].ends_with(b"\n"));
    assert!(!response.status.is_interim() && header::is_value(&response.reason));
    for field in response.headers.iter() {
        assert!(header::is_token(field.name) && header::is_value(field.value));
        assert!(!field.id.is_hop_by_hop() && field.id != HeaderId::ContentLength);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_bytes_are_records_or_an_error(
            start in prop::sample::select(vec![
                &b""[..],
                b"\x01\x01\x06\0\x01\0\x02\0\0ok",
                b"\x01\x01\x07\0\x01\0\x01\x01\0!-",
                b"\x01\x01\x03\0\x01\0\x08\0\0\0\0\0\0\0\0\0\0",
            ]),
            rest in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            records(&[start, &rest].concat());
        }

        #[test]
        fn any_bytes_are_a_head_or_an_error(
            lines in prop::collection::vec(
                "(Status: [0-9]{3} ?[a-z]*|[A-Za-z-]{1,8}: ?[ -~]{0,8})?\r?\n",
                0..6,
            ),
            rest in prop::collection::vec(any::<u8>(), 1..20),
        ) {
            head(&[&rest[..1], lines.concat().as_bytes(), &rest].concat());
        }
    }
}
