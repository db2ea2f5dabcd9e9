//! Fuzz targets: arbitrary bytes as heads and bodies, and requests that are forwarded and read
//! again. They panic on a violation; only tests and fuzzers may call them.

use base::Limits;
use message::{
    Framing, HeaderId, Method, Request, Response, Scheme, Status, Upgrade, Version, header,
};

use crate::{
    BodyError, BodyReader, HeadLimits, ReadProgress, RequestError, RequestReader, ResponseError,
    ResponseHead, ResponseReader, encode, parse_stored_head,
};

/// The fields that an origin gets, without framing.
fn end_to_end(request: &Request) -> Vec<(&[u8], &[u8])> {
    let ours = |id: HeaderId| {
        id.is_hop_by_hop()
            || matches!(id, HeaderId::ContentLength | HeaderId::Host | HeaderId::Expect)
    };
    request.headers.iter().filter(|f| !ours(f.id)).map(|f| (f.name, f.value)).collect()
}

/// Encodes `received` as for an origin, parses it again, and compares both.
pub fn forward(received: &Request) {
    let mut sent = Vec::new();
    encode::request_head(&mut sent, received);
    // `A: b` takes two bytes that are not in the fields, and there are additional lines.
    let limits = HeadLimits {
        head_bytes: 1 << 20,
        field_bytes: 1 << 20,
        field_count: 1 << 20,
        ..HeadLimits::from(&Limits::default())
    };
    let mut again = Request::new();
    let read = RequestReader::new().read(&sent, &limits, received.scheme, &mut again);
    assert_eq!(read, Ok(ReadProgress::Complete(sent.len())), "{}", sent.escape_ascii());
    assert_eq!(again.method, received.method);
    assert_eq!(again.target, received.target);
    assert_eq!((&again.host, again.port), (&received.host, received.port));
    let awaits_body = matches!(received.method, Method::Post | Method::Put | Method::Patch);
    match received.framing {
        Framing::None if awaits_body => assert_eq!(again.framing, Framing::Length(0)),
        framing => assert_eq!(again.framing, framing),
    }
    assert_eq!(end_to_end(&again), end_to_end(received));
    assert!(again.keep_alive && again.upgrade == Upgrade::None);
}

/// Parses a request and forwards it, if it names a host. A request of HTTP/1.0 without one gets the
/// origin's name before it is sent.
pub fn round_trip(data: &[u8]) {
    // As loose as those that it is read by again.
    let limits = HeadLimits {
        head_bytes: 1 << 20,
        field_bytes: 1 << 20,
        field_count: 1 << 20,
        ..HeadLimits::from(&Limits::default())
    };
    let mut received = Request::new();
    let read = RequestReader::new().read(data, &limits, Scheme::Http, &mut received);
    // From HTTP/1.0 comes a request without a host; the origin's name is filled in before it is
    // sent.
    if matches!(read, Ok(ReadProgress::Complete(_))) && !received.host.is_empty() {
        forward(&received);
    }
}

fn read_request(data: &[u8], step: usize) -> (Result<ReadProgress<usize>, RequestError>, Request) {
    let limits = HeadLimits { head_bytes: 2048, ..HeadLimits::from(&Limits::default()) };
    let (mut reader, mut request) = (RequestReader::new(), Request::new());
    let mut arrived = step.min(data.len());
    loop {
        let read = reader.read(&data[..arrived], &limits, Scheme::Http, &mut request);
        if read != Ok(ReadProgress::Partial) || arrived == data.len() {
            return (read, request);
        }
        arrived = (arrived + step).min(data.len());
    }
}

fn check_request(request: &Request) {
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

/// Parses a request's head: it is equal however it is cut, and canonical if it is accepted. The
/// first byte sets the cut.
pub fn request_head(input: &[u8]) {
    let Some((step, data)) = input.split_first() else { return };
    let (whole, request) = read_request(data, usize::MAX);
    let (cut, same) = read_request(data, usize::from(*step).max(1));
    assert_eq!(whole, cut);
    if let Ok(ReadProgress::Complete(len)) = whole {
        assert!(len <= data.len() && data[..len].ends_with(b"\r\n\r\n"));
        check_request(&request);
        assert_eq!(format!("{request:?}"), format!("{same:?}"));
    } else {
        assert!(request.headers.is_empty());
    }
}

type ResponseRead = Result<ReadProgress<ResponseHead>, ResponseError>;

fn read_response(
    data: &[u8],
    step: usize,
    method: &Method,
    lenient: bool,
) -> (ResponseRead, Response) {
    let limits = HeadLimits { head_bytes: 2048, ..HeadLimits::from(&Limits::default()) };
    let (mut reader, mut response) = (ResponseReader::new(), Response::new(Status::OK));
    reader.take_line_feeds(lenient);
    let mut arrived = step.min(data.len());
    loop {
        let read = reader.read(&data[..arrived], &limits, method, &mut response);
        if read != Ok(ReadProgress::Partial) || arrived == data.len() {
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

/// Parses a response's head, and as a stored head from damaged memory: it is equal however it is
/// cut, and can be stored and parsed again. The first byte sets method, leniency and cut.
pub fn response_head(input: &[u8]) {
    let Some((first, data)) = input.split_first() else { return };
    let mut damaged = Response::new(Status::OK);
    damaged.headers.push(HeaderId::Age, b"left over");
    match parse_stored_head(data, &mut damaged) {
        Ok(()) => damaged.headers.iter().for_each(|field| assert!(field.name.len() <= data.len())),
        Err(_) => assert_eq!(damaged.headers.iter().count(), 0),
    }
    let method = if first & 1 == 0 { Method::Get } else { Method::Head };
    let lenient = first & 2 != 0;
    let (whole, response) = read_response(data, usize::MAX, &method, lenient);
    let (cut, same) = read_response(data, usize::from(first >> 2).max(1), &method, lenient);
    assert_eq!(whole, cut);
    let Ok(ReadProgress::Complete(head)) = whole else { return };
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
}

/// The body's data, and how many bytes it took or why it was refused.
fn read_body(
    mut body: BodyReader,
    data: &[u8],
    step: usize,
) -> (Vec<u8>, Result<usize, BodyError>) {
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

/// Decodes a chunked body: data and end are equal however it is cut, and leniency accepts more but
/// decodes nothing differently. The first byte sets the cut.
pub fn chunked_body(input: &[u8]) {
    let Some((first, data)) = input.split_first() else { return };
    let step = usize::from(first >> 1).max(1);
    let strict = BodyReader::new(Framing::Chunked, 100);
    let lenient = BodyReader::for_response(Framing::Chunked, 100);
    let whole = read_body(strict.clone(), data, usize::MAX);
    assert_eq!(read_body(strict, data, step), whole);
    let from_origin = read_body(lenient.clone(), data, usize::MAX);
    assert_eq!(read_body(lenient, data, step), from_origin);
    // Leniency takes more, and never takes anything in another way.
    if whole.1.is_ok() {
        assert_eq!(whole, from_origin);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Lines of fields, most of them well-formed.
    const LINES: &str =
        "((Host|Content-Length|Transfer-Encoding|X-[a-z]{1,4}): ?[0-9a-z ,]{0,8}\r?\n){0,5}";

    proptest! {
        #[test]
        fn any_head_is_accepted_or_refused_however_it_is_cut(
            first in any::<u8>(),
            start in "(GET|POST|[A-Z]{1,5}) [/*][ -~]{0,12} HTTP/1.[01]\r\n",
            status in "HTTP/1.[01] [0-9]{3} ?[a-z]{0,5}\r?\n",
            lines in LINES,
            rest in prop::collection::vec(any::<u8>(), 0..12),
        ) {
            for start in [start, status] {
                let head = [&[first][..], start.as_bytes(), lines.as_bytes(), b"\r\n"].concat();
                for input in [[&head[..], &rest].concat(), [&head[..12], &rest].concat()] {
                    request_head(&input);
                    response_head(&input);
                    round_trip(&input[1..]);
                }
            }
        }

        #[test]
        fn any_chunks_are_decoded_or_refused_however_they_are_cut(
            first in any::<u8>(),
            chunks in "([0-9a-fA-F]{1,2}(;[a-z=]{0,5})?\r?\n[a-z]{0,6}\r?\n){0,4}(0\r\n\r\n)?",
            rest in prop::collection::vec(any::<u8>(), 0..6),
        ) {
            chunked_body(&[&[first][..], chunks.as_bytes(), &rest].concat());
        }
    }
}
