//! A response head: read alike however it is cut, and taken apart again as it was stored.
#![no_main]

use base::Limits;
use h1::{
    HeadLimits, Progress, ResponseError, ResponseHead, ResponseReader, encode, parse_stored_head,
};
use libfuzzer_sys::fuzz_target;
use message::{Framing, HeaderId, Method, Response, Status, header};

type Read = Result<Progress<ResponseHead>, ResponseError>;

fn read(data: &[u8], step: usize, method: &Method, lenient: bool) -> (Read, Response) {
    let limits = HeadLimits { head_bytes: 2048, ..HeadLimits::from(&Limits::default()) };
    let (mut reader, mut response) = (ResponseReader::new(), Response::new(Status::OK));
    reader.take_line_feeds(lenient);
    let mut arrived = step.min(data.len());
    loop {
        let read = reader.read(&data[..arrived], &limits, method, &mut response);
        if read != Ok(Progress::Partial) || arrived == data.len() {
            return (read, response);
        }
        arrived = (arrived + step).min(data.len());
    }
}

fn stored(response: &Response) -> Vec<u8> {
    let mut head = Vec::new();
    encode::stored_head(&mut head, response.status, &response.reason, &response.headers);
    head
}

fuzz_target!(|input: &[u8]| {
    let Some((first, data)) = input.split_first() else { return };
    // As it may come out of damaged memory: an error, or what can be written again.
    let mut damaged = Response::new(Status::OK);
    damaged.headers.push(HeaderId::Age, b"left over");
    match parse_stored_head(data, &mut damaged) {
        Ok(()) => damaged.headers.iter().for_each(|field| assert!(field.name.len() <= data.len())),
        Err(_) => assert_eq!(damaged.headers.iter().count(), 0),
    }
    let method = if first & 1 == 0 { Method::Get } else { Method::Head };
    let lenient = first & 2 != 0;
    let (whole, response) = read(data, usize::MAX, &method, lenient);
    let (cut, same) = read(data, usize::from(first >> 2).max(1), &method, lenient);
    assert_eq!(whole, cut);
    let Ok(Progress::Complete(head)) = whole else { return };
    assert_eq!(format!("{response:?}"), format!("{same:?}"));
    assert!(head.line_feeds || data[..head.consumed].ends_with(b"\r\n\r\n"));
    assert!(lenient || !head.line_feeds);
    assert!(head.framing == Framing::None || !response.status.has_no_body());
    assert!(!(head.keep_alive && head.framing == Framing::UntilClose));
    for field in response.headers.iter() {
        assert!(header::is_token(field.name) && header::is_value(field.value));
    }
    let kept = stored(&response);
    let mut again = Response::new(Status::OK);
    parse_stored_head(&kept, &mut again).expect("what was written is well-formed");
    assert_eq!(again.status, response.status);
    assert!(!again.headers.contains(HeaderId::ContentLength));
    assert_eq!(stored(&again), kept);
});
