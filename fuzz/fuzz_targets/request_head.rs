//! A request head: read alike however it is cut, and canonical when it is taken.
#![no_main]

use base::Limits;
use h1::{HeadLimits, Progress, RequestError, RequestReader};
use libfuzzer_sys::fuzz_target;
use message::{Framing, HeaderId, Request, Scheme, Version, header};

fn read(data: &[u8], step: usize) -> (Result<Progress<usize>, RequestError>, Request) {
    let limits = HeadLimits { head_bytes: 2048, ..HeadLimits::from(&Limits::default()) };
    let (mut reader, mut request) = (RequestReader::new(), Request::new());
    let mut arrived = step.min(data.len());
    loop {
        let read = reader.read(&data[..arrived], &limits, Scheme::Http, &mut request);
        if read != Ok(Progress::Partial) || arrived == data.len() {
            return (read, request);
        }
        arrived = (arrived + step).min(data.len());
    }
}

fn check(request: &Request) {
    assert!(request.target.starts_with(b"/") || request.target == b"*");
    assert!(request.target.iter().all(u8::is_ascii_graphic));
    assert!(header::is_token(request.method.token()));
    assert!(!request.host.iter().any(u8::is_ascii_uppercase));
    assert!(!request.host.is_empty() || request.version == Version::Http10);
    assert_ne!(request.port, Some(80));
    for field in request.headers.iter() {
        assert!(header::is_token(field.name) && header::is_value(field.value));
    }
    let count = |id| request.headers.values(id).count();
    let (lengths, codings) = (count(HeaderId::ContentLength), count(HeaderId::TransferEncoding));
    match request.framing {
        Framing::None => assert_eq!((lengths, codings), (0, 0)),
        Framing::Length(_) => assert_eq!((lengths, codings), (1, 0)),
        Framing::Chunked => assert_eq!((lengths, codings), (0, 1)),
        Framing::UntilClose => panic!("a request's body ends by itself"),
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((step, data)) = input.split_first() else { return };
    let (whole, request) = read(data, usize::MAX);
    let (cut, same) = read(data, usize::from(*step).max(1));
    assert_eq!(whole, cut);
    if let Ok(Progress::Complete(len)) = whole {
        assert!(len <= data.len() && data[..len].ends_with(b"\r\n\r\n"));
        check(&request);
        assert_eq!(format!("{request:?}"), format!("{same:?}"));
    } else {
        assert!(request.headers.is_empty());
    }
});
