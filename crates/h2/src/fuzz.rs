//! Fuzz targets: arbitrary bytes are parsed, and every accepted request is checked. They panic on a
//! violation; only tests and fuzzers may call them.

use std::collections::BTreeMap;

use base::{HashSeed, Limits};
use message::{HeaderId, Request, Response, Scheme, Status, class, header, target};

use crate::client::{ClientConnection, ClientEvent, ClientSettings};
use crate::connection::{Connection, Event, Settings, StreamHandle};
use crate::decode::Decoder;
use crate::encode::Encoder;
use crate::error::Code;
use crate::frame::{self, FrameHead, HEAD_BYTES, flag, kind};
use crate::priority;
use crate::request::{Collector, ListLimits, RequestError};

/// Parses `fields` as those of a request's block. `ends`: the request has no body.
///
/// # Errors
/// Those of a connection's engine.
pub fn request<'a>(
    fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
    scheme: Scheme,
    ends: bool,
) -> Result<Request, RequestError> {
    let (mut collector, mut request) = (Collector::default(), Request::new());
    let limits = ListLimits::from(&Limits::default());
    collector.start(scheme, &mut request);
    for (name, value) in fields {
        collector.field(HeaderId::of(name), name, value, &limits, &mut request);
    }
    collector.finish(ends, &mut request)?;
    assert_canonical(&request);
    assert!(!collector.is_extended() || request.headers.contains(HeaderId::Upgrade));
    Ok(request)
}

/// Parses the fields of a trailer section.
///
/// # Errors
/// Those of a connection's engine.
pub fn trailer<'a>(
    fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
) -> Result<(), RequestError> {
    let mut collector = Collector::default();
    let limits = ListLimits::from(&Limits::default());
    collector.start_trailer();
    for (name, value) in fields {
        collector.trailer(HeaderId::of(name), name, value, &limits);
    }
    collector.finish_trailer().map(drop)
}

/// Parses a field block, as received in frames, as a request and as a trailer section. The lowest
/// bits of the first byte select whether there is a body, and whether the connection uses TLS.
pub fn block(data: &[u8]) -> Option<Request> {
    let (first, block) = data.split_first()?;
    let mut fields = Vec::new();
    let decoded = Decoder::new(4096).block(block, |_, name, value| {
        fields.push((name.to_vec(), value.to_vec()));
        true
    });
    decoded.ok()?;
    let fields = fields.iter().map(|(name, value)| (&name[..], &value[..]));
    let scheme = if first & 2 == 0 { Scheme::Http } else { Scheme::Https };
    let read = request(fields.clone(), scheme, first & 1 != 0);
    // A block accepted as a request is never accepted as trailers.
    assert!(read.is_err() || trailer(fields).is_err());
    read.ok()
}

/// Parses a Priority field.
pub fn priority_field(value: &[u8]) {
    assert!(priority::priority(value).urgency <= 7);
}

/// Runs a client that sends anything against a server that answers what it accepts. `data` selects
/// the steps of both: a byte for the kind of step, then its arguments.
pub fn connection(data: &[u8]) {
    let limits =
        Limits { h2_streams: 4, h2_resets: 20, h2_control_frames: 200, ..Limits::default() };
    let mut out = Vec::new();
    let (settings, seed) = (Settings::from(&limits), HashSeed::from_u64(1));
    let mut engine = Connection::new(settings, Scheme::Https, seed, 0, &mut out);
    let mut request = Request::new();
    let mut open: Vec<StreamHandle> = Vec::new();
    let mut output = ServerOutput::default();
    let mut sent = Connection::PREFACE.to_vec();
    frame::write(&mut sent, kind::SETTINGS, 0, 0, &[]);
    let mut rest = data;
    loop {
        let mut input = &sent[..];
        loop {
            match engine.next(&mut input, &mut request, &mut out, 0) {
                Ok(Some(event)) => note(&event, &mut open),
                Ok(None) => break,
                Err(fatal) => {
                    engine.end(&fatal, &mut out);
                    return output.take(&mut out);
                }
            }
        }
        let is_over = |place: &usize| engine.streams.get(*place).early_response.is_some();
        let over = engine.streams.places().filter(is_over).count();
        assert!(input.is_empty() && open.len() + over == engine.streams());
        output.take(&mut out);
        sent.clear();
        let Some((step, after)) = rest.split_first() else { return };
        rest = step_of(*step, after, &mut engine, &mut open, &mut sent, &mut out);
    }
}

fn note(event: &Event<'_>, open: &mut Vec<StreamHandle>) {
    match event {
        Event::Request { stream, .. } | Event::Refused { stream: Some(stream), .. } => {
            open.push(*stream);
        }
        Event::Reset { stream, .. } => open.retain(|own| own != stream),
        _ => {}
    }
}

/// Runs one step; returns the rest of `data`.
fn step_of<'a>(
    step: u8,
    data: &'a [u8],
    engine: &mut Connection,
    open: &mut Vec<StreamHandle>,
    sent: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> &'a [u8] {
    let Some(([a, b], rest)) = data.split_first_chunk() else { return &[] };
    let at = open.get(usize::from(*a) % open.len().max(1)).copied();
    match (step % 8, at) {
        (0, _) => {
            let (bytes, rest) = rest.split_at(rest.len().min(usize::from(*a)));
            sent.extend_from_slice(bytes);
            return rest;
        }
        (1 | 2, _) => {
            let (kind, flags) = (a % 18, step >> 3);
            let (payload, rest) = rest.split_at(rest.len().min(usize::from(*b)));
            frame::write(sent, kind, flags, u32::from(a / 18), payload);
            return rest;
        }
        (3, Some(at)) => {
            engine.begin_head(200, out);
            engine.field(HeaderId::Server, b"Server", &[b'a'; 255][..usize::from(*b)], out);
            engine.end_head(at, *b == 0, out);
            engine.offer(at, u64::from(*b) * 300, b % 2 == 0);
        }
        (4, Some(at)) => engine.offer(at, u64::from(*b), true),
        (5, Some(at)) => {
            engine.reset(at, Code::Cancel, out);
        }
        (6, Some(at)) => engine.refuse_body(at, out),
        (7, _) if *a == 0 => _ = engine.nudge_ends(u64::from(*b) * 100, 5_000, out),
        (7, _) => _ = engine.announce_end(out),
        _ => {}
    }
    while let Some(grant) = engine.grant(usize::from(*b) * 100, out) {
        out.resize(out.len() + grant.bytes, 0);
        if grant.ends {
            engine.sent_all(grant.stream, out);
        }
    }
    open.retain(|at| engine.has(*at));
    rest
}

/// The server's output so far, which must be valid for a client.
#[derive(Default)]
struct ServerOutput {
    ended: Vec<u32>,
}

impl ServerOutput {
    fn take(&mut self, out: &mut Vec<u8>) {
        let mut rest = &out[..];
        while let Some(head) = rest.first_chunk() {
            let head = FrameHead::read(head);
            let whole = HEAD_BYTES + head.length;
            assert!(head.length <= Connection::FRAME_BYTES && rest.len() >= whole);
            rest = &rest[whole..];
            let speaks = matches!(head.kind, kind::DATA | kind::HEADERS);
            assert!(!(speaks && self.ended.contains(&head.stream)), "spoken after its end");
            if head.kind == kind::RST_STREAM || speaks && head.has(flag::END_STREAM) {
                self.ended.push(head.stream);
            }
        }
        assert!(rest.is_empty());
        out.clear();
    }
}

/// Decodes a block to its fields, in order; `None` if it is malformed.
pub fn decode(block: &[u8]) -> Option<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut fields = Vec::new();
    let read = Decoder::new(4096).block(block, |_, name, value| {
        fields.push((name.to_vec(), value.to_vec()));
        true
    });
    read.ok().map(|()| fields)
}

/// Encodes the fields twice, as two responses of one connection.
pub fn encode(fields: &[(Vec<u8>, Vec<u8>)]) -> [Vec<u8>; 2] {
    let mut encoder = Encoder::new(HashSeed::from_u64(1));
    [(); 2].map(|()| {
        let mut out = Vec::new();
        encoder.begin(200, &mut out);
        for (name, value) in fields {
            encoder.field(HeaderId::of(name), name, value, &mut out);
        }
        out
    })
}

fn assert_canonical(request: &Request) {
    assert!(header::is_token(request.method.token()));
    assert_eq!(target::check(request), Ok(()));
    assert!(!request.host.is_empty());
    assert_eq!(request.headers.iter().next().map(|field| field.id), Some(HeaderId::Host));
    for id in [HeaderId::Host, HeaderId::Cookie, HeaderId::ContentLength] {
        assert!(request.headers.values(id).count() <= 1);
    }
    for field in request.headers.iter() {
        let lower = class::all(field.name, class::LOWER) && !field.name.is_empty();
        assert!(lower || !matches!(field.id, HeaderId::Other));
        assert!(header::is_value(field.value));
        assert_eq!(message::list::trim(field.value), field.value);
    }
}

/// Runs a server that sends anything against a client with four requests. `data` selects the
/// frames: a byte for the kind, one for flags and stream, one for the length of the payload that
/// follows.
pub fn client(data: &[u8]) {
    let limits = Limits { origin_h2_control_frames: 200, ..Limits::default() };
    let (settings, seed, mut out) =
        (ClientSettings::from(&limits), HashSeed::from_u64(1), Vec::new());
    let mut engine = ClientConnection::new(settings, seed, 0, &mut out);
    let mut request = Request::new();
    (request.host, request.target) = (b"a".to_vec(), b"/".to_vec());
    for _ in 0..4 {
        engine.start(&request, Scheme::Http, false, &mut out);
    }
    let mut response = Response::new(Status::OK);
    let mut sent = Vec::new();
    frame::write(&mut sent, kind::SETTINGS, 0, 0, &[]);
    let mut rest = data;
    let mut open = BTreeMap::from([1, 3, 5, 7].map(|id| (id, ResponseCourse::default())));
    loop {
        let mut input = &sent[..];
        loop {
            match engine.next(&mut input, &mut response, &mut out, 0) {
                Ok(Some(event)) => course_of(&event, &mut open, &response),
                Ok(None) => break,
                Err(fatal) => return engine.end(&fatal, &mut out),
            }
        }
        let at = sent.len() - input.len();
        sent.drain(..at);
        let Some(([step, flags, length], after)) = rest.split_first_chunk() else { return };
        let (payload, after) = after.split_at(after.len().min(usize::from(*length)));
        rest = after;
        match step % 13 {
            kind @ 0..=10 => {
                frame::write(&mut sent, kind, flags & 0x2d, u32::from(flags >> 6) * 2 + 1, payload);
            }
            11 => frame::write(&mut sent, kind::SETTINGS, 0, 0, payload),
            _ => sent.extend_from_slice(payload),
        }
        let id = u32::from(flags & 7);
        match engine.send_room(id) {
            Some(room) => engine.data(id, &vec![0; room.min(100)], flags & 8 != 0, &mut out),
            None if flags & 16 != 0 => engine.reset(id, Code::Cancel, &mut out),
            None => engine.used(id, 0, &mut out),
        }
        out.clear();
    }
}

/// The parts of a response that have been reported.
#[derive(Default)]
struct ResponseCourse {
    answered: bool,
    due: Option<u64>,
}

/// Checks that events come in the order of a response, and that bodies have their length.
fn course_of(
    event: &ClientEvent<'_>,
    open: &mut BTreeMap<u32, ResponseCourse>,
    response: &Response,
) {
    match event {
        ClientEvent::Head { stream, framing } => {
            let course = open.get_mut(stream).expect("an open stream");
            assert!(!course.answered, "a second head");
            course.answered = !response.status.is_interim();
            course.due = framing.length();
            assert!(response.headers.iter().all(|field| header::is_value(field.value)));
        }
        ClientEvent::Data { stream, bytes } => {
            let course = open.get_mut(stream).expect("an open stream");
            assert!(course.answered, "a body without a head");
            if let Some(due) = &mut course.due {
                *due = due.checked_sub(bytes.len() as u64).expect("no more than announced");
            }
        }
        ClientEvent::End { stream, .. } => {
            let course = open.remove(stream).expect("an open stream");
            assert!(course.answered && course.due.unwrap_or(0) == 0, "a body cut short");
        }
        ClientEvent::Reset { stream, .. } | ClientEvent::Rejected { stream, .. } => {
            open.remove(stream);
        }
        ClientEvent::Leaves { .. } | ClientEvent::Room => {}
    }
}
