//! The head of a CGI response: read alike however it is cut, and never with framing of its own.
#![no_main]

use base::Limits;
use fastcgi::{Head, HeadError, HeadLimits, HeadReader};
use libfuzzer_sys::fuzz_target;
use message::{HeaderId, Response, Status, header};

fn read(data: &[u8], step: usize) -> (Result<Option<Head>, HeadError>, Response) {
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

fuzz_target!(|input: &[u8]| {
    let Some((first, data)) = input.split_first() else { return };
    let (whole, response) = read(data, usize::MAX);
    let (cut, same) = read(data, usize::from(*first).max(1));
    assert_eq!(whole, cut);
    let Ok(Some(head)) = whole else { return };
    assert_eq!(format!("{response:?}"), format!("{same:?}"));
    assert!(data[..head.consumed].ends_with(b"\n"));
    assert!(!response.status.is_interim() && header::is_value(&response.reason));
    for field in response.headers.iter() {
        assert!(header::is_token(field.name) && header::is_value(field.value));
        assert!(!field.id.is_hop_by_hop() && field.id != HeaderId::ContentLength);
    }
});
