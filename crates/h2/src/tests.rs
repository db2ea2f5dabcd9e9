//! Tests of the engine from a client's view: frames in, events and frames out.

mod forwarding;

use base::{HashSeed, Limit, Limits};
use message::{HeaderId, Request, Scheme, Trailers};
use proptest::prelude::*;

use crate::connection::{Connection, Event, Settings, StreamHandle};
use crate::error::{Code, ConnectionError};
use crate::frame::{self, FrameHead, HEAD_BYTES, flag, kind, setting};
use crate::{Decoder, RequestError};

/// An event, without borrowed bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    Request(u32, String, bool),
    Refused(Option<u32>, RequestError),
    Data(u32, Vec<u8>),
    End(u32),
    Trailed(u32, Vec<u8>),
    Reset(u32, bool),
}

struct Server {
    engine: Connection,
    request: Request,
    out: Vec<u8>,
    now_ms: u64,
}

fn limits() -> Limits {
    Limits::default()
}

impl Server {
    fn new(limits: &Limits) -> Self {
        let mut out = Vec::new();
        let settings = Settings::from(limits);
        let seed = HashSeed::from_u64(7);
        let engine = Connection::new(settings, Scheme::Http, seed, 0, &mut out);
        Self { engine, request: Request::new(), out, now_ms: 0 }
    }

    /// A connection after the handshake, without the frames of the handshake.
    fn ready() -> Self {
        let mut server = Self::new(&limits());
        assert_eq!(server.read(&hello()), Ok(vec![]));
        server.out.clear();
        server
    }

    fn read(&mut self, mut bytes: &[u8]) -> Result<Vec<Seen>, ConnectionError> {
        let mut seen = Vec::new();
        while let Some(event) =
            self.engine.next(&mut bytes, &mut self.request, &mut self.out, self.now_ms)?
        {
            seen.push(match event {
                Event::Request { stream, ends } => {
                    let target = String::from_utf8_lossy(&self.request.target).into_owned();
                    Seen::Request(stream.id, target, ends)
                }
                Event::Refused { stream, error } => Seen::Refused(stream.map(|at| at.id), error),
                Event::Data { stream, bytes } => Seen::Data(stream.id, bytes.to_vec()),
                Event::End { stream, trailers: None } => Seen::End(stream.id),
                Event::End { stream, trailers: Some(trailers) } => {
                    Seen::Trailed(stream.id, trailers.lines().to_vec())
                }
                Event::Reset { stream, by_client } => Seen::Reset(stream.id, by_client),
            });
        }
        assert!(bytes.is_empty());
        Ok(seen)
    }

    fn at(&self, id: u32) -> StreamHandle {
        StreamHandle { place: self.engine.streams.find(id).expect("an open stream"), id }
    }

    /// Sends a response head, and offers `bytes` of its body.
    fn answer(&mut self, id: u32, bytes: u64) {
        let at = self.at(id);
        self.engine.begin_head(200, &mut self.out);
        self.engine.end_head(at, bytes == 0, &mut self.out);
        if bytes > 0 {
            self.engine.offer(at, bytes, true);
        }
    }

    /// Sends what the windows permit; returns stream and length of each piece, in order.
    fn pump(&mut self) -> Vec<(u32, usize)> {
        let mut sent = Vec::new();
        while let Some(grant) = self.engine.grant(1 << 20, &mut self.out) {
            self.out.resize(self.out.len() + grant.bytes, b'.');
            sent.push((grant.stream.id, grant.bytes));
            if grant.ends {
                self.engine.sent_all(grant.stream, &mut self.out);
            }
        }
        sent
    }

    /// The frames sent since the last call.
    fn frames(&mut self) -> Vec<(FrameHead, Vec<u8>)> {
        let out = std::mem::take(&mut self.out);
        let (mut rest, mut frames) = (&out[..], Vec::new());
        while let Some(head) = rest.first_chunk() {
            let head = FrameHead::read(head);
            let whole = HEAD_BYTES + head.length;
            frames.push((head, rest[HEAD_BYTES..whole].to_vec()));
            rest = &rest[whole..];
        }
        assert!(rest.is_empty());
        frames
    }

    fn kinds(&mut self) -> Vec<(u8, u32)> {
        self.frames().into_iter().map(|(head, _)| (head.kind, head.stream)).collect()
    }
}

fn framed(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    frame::write(&mut out, kind, flags, stream, payload);
    out
}

fn hello() -> Vec<u8> {
    let mut out = Connection::PREFACE.to_vec();
    frame::write(&mut out, kind::SETTINGS, 0, 0, &[]);
    out
}

/// A field that uses no table.
fn literal(name: &str, value: &str) -> Vec<u8> {
    let mut out = vec![0];
    for text in [name, value] {
        crate::encode::integer(text.len(), 7, 0, &mut out);
        out.extend_from_slice(text.as_bytes());
    }
    out
}

fn block(method: &str, path: &str, more: &[(&str, &str)]) -> Vec<u8> {
    let first =
        [(":method", method), (":scheme", "http"), (":authority", "a.test"), (":path", path)];
    first.iter().chain(more).flat_map(|(name, value)| literal(name, value)).collect()
}

fn get(stream: u32, path: &str) -> Vec<u8> {
    let flags = flag::END_HEADERS | flag::END_STREAM;
    framed(kind::HEADERS, flags, stream, &block("GET", path, &[]))
}

fn post(stream: u32, more: &[(&str, &str)]) -> Vec<u8> {
    framed(kind::HEADERS, flag::END_HEADERS, stream, &block("POST", "/", more))
}

fn data(stream: u32, bytes: &[u8], ends: bool) -> Vec<u8> {
    framed(kind::DATA, u8::from(ends), stream, bytes)
}

fn window(stream: u32, more: u32) -> Vec<u8> {
    framed(kind::WINDOW_UPDATE, 0, stream, &more.to_be_bytes())
}

fn asked(stream: u32, path: &str, ends: bool) -> Seen {
    Seen::Request(stream, path.to_owned(), ends)
}

#[test]
fn it_begins_with_settings_and_acknowledges_the_clients_before_anything_else() {
    let mut server = Server::new(&limits());
    assert_eq!(server.kinds(), [(kind::SETTINGS, 0)]);
    assert_eq!(server.read(&hello()), Ok(vec![]));
    let [(head, payload), (window, _)] = &server.frames()[..] else { panic!("two frames") };
    assert!(head.kind == kind::SETTINGS && head.has(flag::ACK) && payload.is_empty());
    assert_eq!((window.kind, window.stream), (kind::WINDOW_UPDATE, 0));
    let ping = framed(kind::PING, 0, 0, b"12345678");
    assert_eq!(server.read(&ping), Ok(vec![]));
    assert_eq!(server.frames()[0].1, b"12345678");
}

#[test]
fn a_request_is_answered_and_its_stream_is_gone() {
    let mut server = Server::ready();
    assert_eq!(server.read(&get(1, "/a")), Ok(vec![asked(1, "/a", true)]));
    assert_eq!(server.engine.streams(), 1);
    server.answer(1, 3);
    assert_eq!(server.pump(), [(1, 3)]);
    let frames = server.frames();
    assert_eq!(frames[0].0.kind, kind::HEADERS);
    assert!(frames[1].0.kind == kind::DATA && frames[1].0.has(flag::END_STREAM));
    assert!(server.engine.is_idle());
    server.read(&get(3, "/b")).expect("a request");
    server.answer(3, 0);
    assert!(server.engine.is_idle());
}

#[test]
fn an_idle_connection_keeps_little_of_many_streams_and_knows_them_still() {
    let mut server = Server::ready();
    let ids = || (0..100).map(|n| 2 * n + 1);
    let gone: Vec<_> = ids()
        .map(|id| {
            server.read(&get(id, "/a")).expect("a request");
            server.at(id)
        })
        .collect();
    server.engine.fit();
    assert_eq!(server.engine.streams.places_kept(), 100, "it is not idle");
    ids().for_each(|id| server.answer(id, 0));
    server.engine.fit();
    assert_eq!(server.engine.streams.places_kept(), 0);
    server.out.clear();
    // A client that does not know yet that a stream has ended may still send frames for it.
    for at in gone {
        server.engine.used(at, 1, &mut server.out);
        server.engine.refuse_body(at, &mut server.out);
        server.engine.offer(at, 1, true);
        server.engine.offer_trailers(at);
        server.engine.sent_all(at, &mut server.out);
        server.engine.reset(at, Code::Cancel, &mut server.out);
        assert!(!server.engine.take(at, 1) && !server.engine.has(at));
        assert!(!server.engine.is_held_back(at) && !server.engine.is_shut_to(at));
    }
    assert_eq!(server.kinds(), []);
    let late = framed(kind::WINDOW_UPDATE, 0, 199, &[0, 0, 0, 1]);
    assert_eq!(server.read(&late), Ok(vec![]), "it is remembered");
    assert_eq!(server.read(&get(201, "/b")), Ok(vec![asked(201, "/b", true)]));
}

#[test]
fn a_block_may_come_in_pieces_and_with_padding_and_priority() {
    let whole = block("GET", "/long", &[("x-a", "1")]);
    let (first, rest) = whole.split_at(20);
    let mut padded = vec![3, 0, 0, 0, 0, 16];
    padded.extend_from_slice(first);
    padded.extend_from_slice(&[0; 3]);
    let flags = flag::END_STREAM | flag::PADDED | flag::PRIORITY;
    let mut bytes = framed(kind::HEADERS, flags, 1, &padded);
    let (second, third) = rest.split_at(5);
    bytes.extend(framed(kind::CONTINUATION, 0, 1, second));
    bytes.extend(framed(kind::CONTINUATION, flag::END_HEADERS, 1, third));
    assert_eq!(Server::ready().read(&bytes), Ok(vec![asked(1, "/long", true)]));
}

#[test]
fn bodies_come_as_they_are_and_their_windows_are_given_back_when_they_are_used() {
    let mut server = Server::ready();
    server.read(&post(1, &[])).expect("a request");
    let at = server.at(1);
    let most = server.engine.settings.stream_window as usize;
    let mut padded = vec![2];
    padded.extend_from_slice(b"abc\0\0");
    let frame = framed(kind::DATA, flag::PADDED, 1, &padded);
    assert_eq!(server.read(&frame), Ok(vec![Seen::Data(1, b"abc".to_vec())]));
    let mut sent = 6;
    while sent + 16_000 < most {
        server.read(&data(1, &[b'x'; 16_000], false)).expect("data");
        sent += 16_000;
    }
    assert_eq!(server.frames(), []);
    server.engine.used(at, sent - 3, &mut server.out);
    let frames = server.frames();
    assert!(frames.iter().any(|(head, more)| {
        (head.kind, head.stream) == (kind::WINDOW_UPDATE, 1)
            && **more == (sent as u32).to_be_bytes()
    }));
    assert_eq!(server.read(&data(1, b"", true)), Ok(vec![Seen::End(1)]));
}

#[test]
fn what_a_stream_held_is_given_back_to_the_connection_with_its_end() {
    let mut server = Server::ready();
    let body = [b'x'; 16_000];
    let most = server.engine.settings.connection_window as usize;
    // No byte of it is reported as used.
    for number in 0..=(2 * most / body.len()) as u32 {
        let id = 2 * number + 1;
        server.read(&post(id, &[])).expect("a request");
        server.read(&data(id, &body, true)).expect("room in the connection's window");
        server.answer(id, 0);
    }
    assert!(server.kinds().contains(&(kind::WINDOW_UPDATE, 0)));
}

#[test]
fn trailers_end_a_body_and_come_with_its_end() {
    let mut server = Server::ready();
    server.read(&post(1, &[])).expect("a request");
    let flags = flag::END_HEADERS | flag::END_STREAM;
    let trailers = framed(kind::HEADERS, flags, 1, &literal("x-sum", "1"));
    assert_eq!(server.read(&trailers), Ok(vec![Seen::Trailed(1, b"x-sum: 1\r\n".to_vec())]));
    server.read(&post(7, &[])).expect("a request");
    let dropped = framed(kind::HEADERS, flags, 7, &literal("set-cookie", "1"));
    assert_eq!(server.read(&dropped), Ok(vec![Seen::End(7)]));
    let mut server = Server::ready();
    server.read(&post(3, &[])).expect("a request");
    let trailers = framed(kind::HEADERS, flags, 3, &literal(":path", "/"));
    assert_eq!(server.read(&trailers), Ok(vec![Seen::Reset(3, false)]));
    server.read(&post(5, &[])).expect("a request");
    let unending = framed(kind::HEADERS, flag::END_HEADERS, 5, &literal("x-sum", "1"));
    assert_eq!(server.read(&unending), Ok(vec![Seen::Reset(5, false)]));
}

#[test]
fn trailers_end_an_answer_in_place_of_its_last_frame() {
    for body in [0, 5] {
        let mut server = Server::ready();
        server.read(&get(1, "/")).expect("a request");
        let at = server.at(1);
        server.engine.begin_head(200, &mut server.out);
        server.engine.end_head(at, false, &mut server.out);
        server.engine.offer(at, body, false);
        server.engine.offer_trailers(at);
        let mut trailers = Trailers::default();
        trailers.push(b"X-Sum", b"1");
        while let Some(grant) = server.engine.grant(1 << 20, &mut server.out) {
            server.out.resize(server.out.len() + grant.bytes, b'.');
            if grant.ends {
                server.engine.trailers(at, &trailers, &mut server.out);
            }
        }
        assert_eq!(server.engine.streams(), 0);
        let frames = server.frames();
        let shape: Vec<_> = frames.iter().map(|(head, _)| (head.kind, head.flags)).collect();
        let ends = (kind::HEADERS, flag::END_HEADERS | flag::END_STREAM);
        let (head, data) = ((kind::HEADERS, flag::END_HEADERS), (kind::DATA, 0));
        let expected = if body > 0 { vec![head, data, ends] } else { vec![head, ends] };
        assert_eq!(shape, expected);
        let (mut decoder, mut fields) = (Decoder::new(4096), Vec::new());
        for (_, block) in frames.iter().filter(|(head, _)| head.kind == kind::HEADERS) {
            fields.clear();
            let read = decoder.block(block, |_, name, value| {
                fields.push((name.to_vec(), value.to_vec()));
                true
            });
            assert!(read.is_ok());
        }
        assert_eq!(fields, [(b"x-sum".to_vec(), b"1".to_vec())]);
    }
}

#[test]
fn a_body_of_another_length_than_its_request_says_is_no_body() {
    for (pieces, seen) in [
        (vec![data(1, b"abc", true)], vec![Seen::Data(1, b"abc".to_vec()), Seen::End(1)]),
        (vec![data(1, b"abcd", false)], vec![Seen::Reset(1, false)]),
        (
            vec![data(1, b"ab", false), data(1, b"", true)],
            vec![Seen::Data(1, b"ab".to_vec()), Seen::Reset(1, false)],
        ),
    ] {
        let mut server = Server::ready();
        server.read(&post(1, &[("content-length", "3")])).expect("a request");
        assert_eq!(server.read(&pieces.concat()), Ok(seen));
    }
}

#[test]
fn what_was_sent_to_a_stream_before_it_was_known_to_be_reset_is_let_pass() {
    let mut server = Server::ready();
    server.read(&post(1, &[])).expect("a request");
    server.read(&data(1, b"abc", false)).expect("data");
    server.engine.reset(server.at(1), Code::Cancel, &mut server.out);
    let flags = flag::END_HEADERS | flag::END_STREAM;
    let mut late = data(1, b"def", false);
    late.extend(framed(kind::HEADERS, flags, 1, &literal("x-sum", "1")));
    late.extend(window(1, 5000));
    late.extend(framed(kind::RST_STREAM, 0, 1, &[0, 0, 0, 8]));
    assert_eq!(server.read(&late), Ok(vec![]));
    // A half-received frame when the stream ends.
    server.read(&post(3, &[])).expect("a request");
    let frame = data(3, &[b'x'; 100], false);
    server.read(&frame[..50]).expect("data");
    server.engine.reset(server.at(3), Code::Cancel, &mut server.out);
    assert_eq!(server.read(&frame[50..]), Ok(vec![]));
    let held = i64::from(server.engine.settings.connection_window) - server.engine.receive_window;
    assert_eq!(held, i64::from(server.engine.used), "everything is given back");
}

/// A client that is still uploading when it gets the response, and the PING that shows that it has
/// read the response.
fn answered_early() -> (Server, Vec<u8>) {
    let mut server = Server::ready();
    server.read(&post(1, &[("content-length", "40000")])).expect("a request");
    server.read(&data(1, b"some", false)).expect("data");
    server.answer(1, 0);
    let mut frames = server.frames();
    let kinds: Vec<_> = frames.iter().map(|(head, _)| (head.kind, head.stream)).collect();
    assert_eq!(kinds, [(kind::HEADERS, 1), (kind::PING, 0)]);
    (server, frames.pop().expect("a PING").1)
}

#[test]
fn a_client_that_has_read_an_answer_before_its_requests_end_is_asked_to_stop() {
    let (mut server, mark) = answered_early();
    assert_eq!(server.read(&data(1, &[b'x'; 16_000], false)), Ok(vec![]), "the body is dropped");
    assert_eq!((server.kinds(), server.engine.streams()), (vec![], 1), "nor lets more come");
    let ack = framed(kind::PING, flag::ACK, 0, &mark);
    assert_eq!(server.read(&ack), Ok(vec![]));
    assert_eq!(server.frames(), [(FrameHead::read(&[0, 0, 4, 3, 0, 0, 0, 0, 1]), vec![0; 4])]);
    assert_eq!(server.engine.streams(), 0);
    assert_eq!(server.read(&data(1, b"more", true)), Ok(vec![]));
    server.read(&ack).expect("a PING of another's");
    assert_eq!(server.kinds(), []);
    let held = i64::from(server.engine.settings.connection_window) - server.engine.receive_window;
    assert_eq!(held, i64::from(server.engine.used), "everything is given back");
}

#[test]
fn a_client_that_ends_its_request_behind_the_answer_is_not_asked_to_stop() {
    for last in [
        data(1, b"of another length", true),
        framed(kind::RST_STREAM, 0, 1, &[0, 0, 0, 8]),
        framed(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, 1, &literal("x-sum", "1")),
    ] {
        let (mut server, mark) = answered_early();
        server.read(&last).expect("its end");
        assert_eq!(server.engine.streams(), 0);
        server.read(&framed(kind::PING, flag::ACK, 0, &mark)).expect("an answer to a PING");
        assert_eq!(server.kinds(), []);
    }
}

#[test]
fn a_client_that_does_not_say_that_it_has_read_an_answer_is_asked_to_stop_after_a_time() {
    let (mut server, _) = answered_early();
    let mut tire = |now_ms| {
        let tired = server.engine.nudge_ends(now_ms, 5_000, &mut server.out);
        (tired, server.kinds())
    };
    assert_eq!((tire(1_000), tire(5_999)), ((0, vec![]), (0, vec![])));
    assert_eq!((tire(6_000), tire(9_000)), ((1, vec![(kind::RST_STREAM, 1)]), (0, vec![])));
}

#[test]
fn answers_to_our_own_pings_are_no_flood() {
    let mut server = Server::ready();
    let most = limits().h2_control_frames as u32;
    for n in 0..=most {
        let id = 2 * n + 1;
        server.read(&post(id, &[])).expect("a request");
        server.answer(id, 0);
        let (_, mark) = server.frames().pop().expect("a PING");
        assert_eq!(server.read(&framed(kind::PING, flag::ACK, 0, &mark)), Ok(vec![]));
        assert_eq!(server.kinds(), [(kind::RST_STREAM, id)]);
    }
}

#[test]
fn breaking_the_protocol_ends_the_connection_with_the_code_of_the_rfc() {
    let headers = |flags| framed(kind::HEADERS, flags, 1, &block("GET", "/", &[]));
    let whole = flag::END_HEADERS | flag::END_STREAM;
    let settings = |name: u16, value: u32| {
        let payload = [&name.to_be_bytes()[..], &value.to_be_bytes()].concat();
        framed(kind::SETTINGS, 0, 0, &payload)
    };
    let mut over = framed(kind::DATA, 0, 1, &[]);
    over[0..3].copy_from_slice(&[0, 0x40, 1]);
    let on_itself = [&[0, 0, 0, 1, 9][..], &block("GET", "/", &[])].concat();
    for (name, bytes, code) in [
        ("DATA on 0", data(0, b"x", false), Code::Protocol),
        ("DATA on an idle stream", data(1, b"x", false), Code::Protocol),
        ("DATA after the end", [headers(whole), data(1, b"", true)].concat(), Code::StreamClosed),
        ("HEADERS on 0", framed(kind::HEADERS, whole, 0, &[]), Code::Protocol),
        ("HEADERS on 2", framed(kind::HEADERS, whole, 2, &[]), Code::Protocol),
        ("HEADERS after the end", [headers(whole), headers(whole)].concat(), Code::StreamClosed),
        ("a lower stream", [get(5, "/"), get(3, "/")].concat(), Code::Protocol),
        ("no CONTINUATION", [headers(1), get(3, "/")].concat(), Code::Protocol),
        ("CONTINUATION alone", framed(kind::CONTINUATION, 4, 1, &[]), Code::Protocol),
        ("a bad block", framed(kind::HEADERS, whole, 1, &[0x80]), Code::Compression),
        ("padding", framed(kind::HEADERS, whole | flag::PADDED, 1, &[9]), Code::Protocol),
        ("no padding", framed(kind::DATA, flag::PADDED, 1, &[]), Code::Protocol),
        ("on itself", framed(kind::HEADERS, whole | flag::PRIORITY, 1, &on_itself), Code::Protocol),
        ("PRIORITY", framed(kind::PRIORITY, 0, 1, &[0, 0, 0, 1, 9]), Code::Protocol),
        ("PRIORITY length", framed(kind::PRIORITY, 0, 1, &[0; 4]), Code::FrameSize),
        ("RST_STREAM idle", framed(kind::RST_STREAM, 0, 1, &[0; 4]), Code::Protocol),
        ("RST_STREAM length", [get(1, "/"), framed(3, 0, 1, &[0; 3])].concat(), Code::FrameSize),
        ("SETTINGS on 1", framed(kind::SETTINGS, 0, 1, &[]), Code::Protocol),
        ("SETTINGS length", framed(kind::SETTINGS, 0, 0, &[0; 5]), Code::FrameSize),
        ("SETTINGS ack", framed(kind::SETTINGS, flag::ACK, 0, &[0; 6]), Code::FrameSize),
        ("push", settings(setting::ENABLE_PUSH, 2), Code::Protocol),
        ("window", settings(setting::INITIAL_WINDOW_SIZE, 1 << 31), Code::FlowControl),
        ("frame size", settings(setting::MAX_FRAME_SIZE, 16_383), Code::Protocol),
        ("PUSH_PROMISE", framed(kind::PUSH_PROMISE, 4, 1, &[0; 4]), Code::Protocol),
        ("PING on 1", framed(kind::PING, 0, 1, &[0; 8]), Code::Protocol),
        ("PING length", framed(kind::PING, 0, 0, &[0; 7]), Code::FrameSize),
        ("GOAWAY on 1", framed(kind::GOAWAY, 0, 1, &[0; 8]), Code::Protocol),
        ("WINDOW_UPDATE 0", window(0, 0), Code::Protocol),
        ("WINDOW_UPDATE", framed(kind::WINDOW_UPDATE, 0, 0, &[0; 3]), Code::FrameSize),
        ("WINDOW_UPDATE idle", window(1, 1), Code::Protocol),
        ("WINDOW_UPDATE overflow", window(0, 0x7fff_ffff), Code::FlowControl),
        ("PRIORITY_UPDATE on 1", framed(kind::PRIORITY_UPDATE, 0, 1, &[0; 4]), Code::Protocol),
        ("PRIORITY_UPDATE of 0", framed(kind::PRIORITY_UPDATE, 0, 0, &[0; 4]), Code::Protocol),
        ("too large a frame", over, Code::FrameSize),
    ] {
        let error = Server::ready().read(&bytes).expect_err(name);
        assert_eq!(error.code, code, "{name}: {error}");
    }
    let mut server = Server::new(&limits());
    let error = server.read(b"GET / HTTP/1.1\r\n").expect_err("no preface");
    assert_eq!(error.code, Code::Protocol);
    let mut server = Server::new(&limits());
    let first = [Connection::PREFACE, &get(1, "/")[..]].concat();
    assert_eq!(server.read(&first).expect_err("no SETTINGS").code, Code::Protocol);
}

#[test]
fn more_than_a_window_ends_the_connection() {
    let mut server = Server::ready();
    server.read(&post(1, &[])).expect("a request");
    let mut left = server.engine.settings.stream_window as usize;
    while left > 0 {
        let bytes = left.min(16_384);
        server.read(&data(1, &vec![b'x'; bytes], false)).expect("within the window");
        left -= bytes;
    }
    let error = server.read(&data(1, b"x", false)).expect_err("beyond it");
    assert_eq!(error.code, Code::FlowControl);
}

#[test]
fn malformed_requests_end_their_streams_only() {
    let mut server = Server::ready();
    let bad = framed(kind::HEADERS, 5, 1, &block("GET", "/", &[("Upper", "x")]));
    let seen = server.read(&bad).expect("a stream error");
    assert!(matches!(seen[..], [Seen::Refused(None, RequestError::Malformed(_))]), "{seen:?}");
    let frames = server.frames();
    assert_eq!((frames[0].0.kind, &frames[0].1[..]), (kind::RST_STREAM, &[0, 0, 0, 1][..]));
    let large = "x".repeat(limits().target_bytes as usize);
    let seen = server.read(&get(3, &format!("/{large}"))).expect("an answer");
    assert_eq!(seen, [Seen::Refused(Some(3), RequestError::Limit(Limit::TargetBytes))]);
    assert_eq!(server.read(&get(5, "/")), Ok(vec![asked(5, "/", true)]));
}

#[test]
fn budgets_end_connections() {
    let mut low = limits();
    (low.h2_resets, low.h2_control_frames, low.h2_continuations, low.h2_streams) = (2, 3, 1, 2);
    let reset = |id| framed(kind::RST_STREAM, 0, id, &[0, 0, 0, 8]);
    let bad = |id| framed(kind::HEADERS, 5, id, &block("GET", "", &[]));
    let open = framed(kind::HEADERS, 0, 1, &[]);
    let more = framed(kind::CONTINUATION, 0, 1, &[]);
    let ping = framed(kind::PING, 0, 0, &[0; 8]);
    let empty = data(1, b"", false);
    let pairs: Vec<_> = (0..3).map(|n| [get(n * 2 + 1, "/"), reset(n * 2 + 1)].concat()).collect();
    for (name, pieces, limit) in [
        ("rapid reset", pairs, Limit::H2Resets),
        ("malformed", vec![bad(1), bad(3), bad(5)], Limit::H2Resets),
        ("refused", (0..5).map(|n| get(n * 2 + 1, "/")).collect(), Limit::H2Resets),
        ("CONTINUATION", vec![open, more.clone(), more], Limit::H2Continuations),
        ("PING", vec![ping; 3], Limit::H2ControlFrames),
        // The request takes back what SETTINGS has spent.
        ("DATA", [vec![post(1, &[])], vec![empty; 4]].concat(), Limit::H2ControlFrames),
        ("small windows", vec![window(0, 1); 3], Limit::H2ControlFrames),
        ("unknown", vec![framed(77, 0, 0, b""); 3], Limit::H2ControlFrames),
        ("PRIORITY", vec![framed(kind::PRIORITY, 0, 1, &[0; 5]); 3], Limit::H2ControlFrames),
    ] {
        let mut server = Server::new(&low);
        server.read(&hello()).expect("SETTINGS");
        let error = server.read(&pieces.concat()).expect_err(name);
        assert_eq!((error.code, error.limit), (Code::EnhanceYourCalm, Some(limit)), "{name}");
    }
}

#[test]
fn a_list_far_too_large_is_not_read_to_its_end() {
    let mut server = Server::ready();
    // A large entry, then thousands of references to it, one byte each.
    let mut bomb = block("GET", "/", &[]);
    bomb.push(0x40);
    for text in ["x-bomb", &"x".repeat(3000)] {
        crate::encode::integer(text.len(), 7, 0, &mut bomb);
        bomb.extend_from_slice(text.as_bytes());
    }
    bomb.resize(16_000, 0x80 | 62);
    let error = server.read(&framed(kind::HEADERS, 5, 1, &bomb)).expect_err("a bomb");
    assert_eq!((error.code, error.limit), (Code::EnhanceYourCalm, Some(Limit::HeaderBytes)));
}

#[test]
fn the_most_urgent_goes_first_and_who_takes_turns_takes_them() {
    let ask = |id, priority: &str| {
        framed(kind::HEADERS, 5, id, &block("GET", "/", &[("priority", priority)]))
    };
    let order = |asked: &[(u32, &str)], update: Option<(u32, &str)>| {
        let mut server = Server::ready();
        for (id, priority) in asked {
            server.read(&ask(*id, priority)).expect("a request");
            server.answer(*id, 20_000);
        }
        if let Some((id, value)) = update {
            let payload = [&id.to_be_bytes()[..], value.as_bytes()].concat();
            server.read(&framed(kind::PRIORITY_UPDATE, 0, 0, &payload)).expect("an update");
        }
        server.read(&window(0, 1 << 20)).expect("a window");
        server.pump().into_iter().map(|(id, _)| id).collect::<Vec<_>>()
    };
    assert_eq!(order(&[(1, "u=7"), (3, "u=0")], None), [3, 3, 1, 1]);
    assert_eq!(order(&[(1, "u=3"), (3, "u=3")], None), [1, 1, 3, 3]);
    assert_eq!(order(&[(1, "i"), (3, "i")], None), [1, 3, 1, 3]);
    assert_eq!(order(&[(1, "u=3"), (3, "u=3")], Some((3, "u=1"))), [3, 3, 1, 1]);
    // Sent before the stream has begun.
    let mut server = Server::ready();
    let payload = [&3_u32.to_be_bytes()[..], b"u=0"].concat();
    server.read(&framed(kind::PRIORITY_UPDATE, 0, 0, &payload)).expect("an update");
    for id in [1, 3] {
        server.read(&ask(id, "u=2")).expect("a request");
        server.answer(id, 10);
    }
    assert_eq!(server.pump(), [(3, 10), (1, 10)]);
}

#[test]
fn an_end_without_bytes_waits_for_no_window() {
    let mut server = Server::ready();
    for id in [1, 3] {
        server.read(&get(id, "/")).expect("a request");
    }
    server.answer(1, 100_000);
    assert_eq!(server.pump().iter().map(|(_, bytes)| bytes).sum::<usize>(), 65_535);
    let at = server.at(3);
    server.engine.begin_head(200, &mut server.out);
    server.engine.end_head(at, false, &mut server.out);
    server.engine.offer(at, 0, true);
    assert_eq!(server.pump(), [(3, 0)]);
    assert!(server.engine.is_held_back(server.at(1)) && !server.engine.has_turn());
}

#[test]
fn windows_change_while_bytes_are_under_way() {
    let mut server = Server::ready();
    server.read(&window(0, 1 << 20)).expect("a window");
    server.read(&get(1, "/")).expect("a request");
    server.answer(1, 100_000);
    assert_eq!(server.pump().iter().map(|(_, bytes)| bytes).sum::<usize>(), 65_535);
    let size = |value: u32| {
        let name = setting::INITIAL_WINDOW_SIZE.to_be_bytes();
        framed(kind::SETTINGS, 0, 0, &[&name[..], &value.to_be_bytes()].concat())
    };
    // Below zero: sent bytes stay sent (RFC 9113 6.9.2).
    server.read(&size(10)).expect("settings");
    server.read(&window(1, 65_525)).expect("a window");
    assert_eq!(server.pump(), []);
    server.read(&window(1, 1)).expect("a window");
    assert_eq!(server.pump(), [(1, 1)]);
    server.read(&size(100_000)).expect("settings");
    assert_eq!(server.pump().iter().map(|(_, bytes)| bytes).sum::<usize>(), 34_464);
    assert!(server.engine.is_idle());
}

#[test]
fn a_long_head_goes_on_in_continuations() {
    let mut server = Server::ready();
    server.read(&get(1, "/")).expect("a request");
    let at = server.at(1);
    let value = vec![b'!'; 40_000];
    server.engine.begin_head(200, &mut server.out);
    server.engine.field(HeaderId::Other, b"x-long", &value, &mut server.out);
    server.engine.end_head(at, true, &mut server.out);
    let frames = server.frames();
    let kinds: Vec<_> = frames.iter().map(|(head, _)| (head.kind, head.flags)).collect();
    assert_eq!(kinds[0], (kind::HEADERS, flag::END_STREAM));
    assert_eq!(kinds[1], (kind::CONTINUATION, 0));
    assert_eq!(kinds[2], (kind::CONTINUATION, flag::END_HEADERS));
    let block: Vec<u8> = frames.into_iter().flat_map(|(_, payload)| payload).collect();
    let mut read = Vec::new();
    let decoded = Decoder::new(4096).block(&block, |_, name, value| {
        read.push((name.to_vec(), value.len()));
        true
    });
    assert_eq!(decoded, Ok(()));
    assert_eq!(read, [(b":status".to_vec(), 3), (b"x-long".to_vec(), 40_000)]);
}

#[test]
fn it_leaves_in_two_steps_and_finishes_what_was_asked() {
    let mut server = Server::ready();
    server.read(&get(1, "/")).expect("a request");
    server.engine.announce_end(&mut server.out);
    server.engine.announce_end(&mut server.out);
    let frames = server.frames();
    assert_eq!(frames.len(), 2);
    assert_eq!(frames[0].1[..4], 0x7fff_ffff_u32.to_be_bytes());
    // In flight when the client learned of it.
    assert_eq!(server.read(&get(3, "/")), Ok(vec![asked(3, "/", true)]));
    let pong = framed(kind::PING, flag::ACK, 0, &frames[1].1);
    server.read(&pong).expect("an answer");
    assert_eq!(server.frames()[0].1[..4], 3_u32.to_be_bytes());
    // Requested nevertheless: neither parsed nor answered.
    assert_eq!(server.read(&get(5, "/")), Ok(vec![]));
    assert!(!server.engine.is_over());
    server.answer(1, 0);
    server.answer(3, 0);
    assert!(server.engine.is_over());
}

proptest! {
    /// Splitting the bytes does not change their meaning.
    #[test]
    fn pieces_say_what_the_whole_says(cuts in proptest::collection::vec(1..40_usize, 1..60)) {
        let mut bytes = hello();
        bytes.extend(post(1, &[("content-length", "5")]));
        bytes.extend(get(3, "/x"));
        bytes.extend(framed(kind::DATA, flag::PADDED, 1, &[2, b'a', b'b', 0, 0]));
        bytes.extend(framed(kind::PING, 0, 0, &[1; 8]));
        bytes.extend(data(1, b"cde", true));
        bytes.extend(get(5, "/y"));
        let mut server = Server::new(&limits());
        let mut body = Vec::new();
        let mut seen = Vec::new();
        let mut rest = &bytes[..];
        for cut in cuts.iter().cycle() {
            let (now, later) = rest.split_at((*cut).min(rest.len()));
            for one in server.read(now).expect("a good client") {
                match one {
                    Seen::Data(1, bytes) => body.extend(bytes),
                    other => seen.push(other),
                }
            }
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        prop_assert_eq!(body, b"abcde");
        let one = [asked(1, "/", false), asked(3, "/x", true)];
        let two = [Seen::End(1), asked(5, "/y", true)];
        prop_assert_eq!(seen, [one, two].concat());
    }

    /// For any windows of a client, nothing beyond them is sent, and in the end everything is.
    #[test]
    fn windows_hold(
        sizes in proptest::collection::vec(1..90_000_u64, 1..8),
        steps in proptest::collection::vec((0..9_u32, 1..50_000_u32), 0..60)
    ) {
        let mut server = Server::ready();
        let mut left = Vec::new();
        for (at, size) in sizes.iter().enumerate() {
            let id = at as u32 * 2 + 1;
            server.read(&get(id, "/")).expect("a request");
            server.answer(id, *size);
            left.push((65_535_i64, *size as i64));
        }
        let mut all = 65_535_i64;
        let last = [(0, 1_000_000_u32), (9, 0)];
        for (stream, more) in steps.into_iter().chain(last) {
            match stream {
                0 => {
                    server.read(&window(0, more)).expect("a window");
                    all += i64::from(more);
                }
                9 => for (at, (window_left, _)) in left.iter_mut().enumerate() {
                    server.read(&window(at as u32 * 2 + 1, 100_000)).expect("a window");
                    *window_left += 100_000;
                },
                stream => if let Some((window_left, _)) = left.get_mut(stream as usize - 1) {
                    server.read(&window(stream * 2 - 1, more)).expect("a window");
                    *window_left += i64::from(more);
                },
            }
            for (id, bytes) in server.pump() {
                let (window_left, size) = &mut left[(id as usize - 1) / 2];
                let bytes = bytes as i64;
                (*window_left, *size, all) = (*window_left - bytes, *size - bytes, all - bytes);
                prop_assert!(*window_left >= 0 && *size >= 0 && all >= 0);
            }
        }
        prop_assert!(left.iter().all(|(_, size)| *size == 0));
        prop_assert!(server.engine.is_idle());
    }

    #[test]
    fn no_client_makes_it_panic(bytes: Vec<u8>, frames: Vec<(u8, u8, u32, Vec<u8>)>) {
        let mut server = Server::ready();
        _ = server.read(&bytes);
        let mut server = Server::ready();
        for (kind, flags, stream, payload) in frames {
            if server.read(&framed(kind % 18, flags, stream % 6, &payload)).is_err() {
                break;
            }
        }
    }
}
