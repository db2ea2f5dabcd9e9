//! Tests of the client's side: against hand-written frames, and against the server's side.

use base::{HashSeed, Limits};
use message::{Framing, HeaderId, Method, Request, Response, Scheme, Status, Trailers};
use proptest::prelude::*;

use super::{ClientConnection, ClientEvent, ClientSettings, ResponseError};
use crate::connection::{Connection, Event, Settings, StreamHandle};
use crate::encode::Encoder;
use crate::error::{Code, ConnectionError};
use crate::frame::{self, FrameHead, HEAD_BYTES, flag, kind, setting};

/// An event, without borrowed bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    Head(u32, u16, Framing),
    Data(u32, Vec<u8>),
    End(u32, Option<Vec<u8>>),
    Reset(u32, u32),
    Rejected(u32, ResponseError),
    Leaves(u32),
    Room,
}

struct Client {
    engine: ClientConnection,
    response: Response,
    out: Vec<u8>,
    unread: Vec<u8>,
}

impl Client {
    fn new(limits: &Limits) -> Self {
        let mut out = Vec::new();
        let settings = ClientSettings::from(limits);
        let engine = ClientConnection::new(settings, HashSeed::from_u64(3), 0, &mut out);
        let response = Response::new(Status::OK);
        Self { engine, response, out, unread: Vec::new() }
    }

    /// A connection whose server has sent empty settings.
    fn ready() -> Self {
        let mut client = Self::new(&Limits::default());
        assert_eq!(client.read(&written(kind::SETTINGS, 0, 0, &[])), Ok(vec![Seen::Room]));
        client.out.clear();
        client
    }

    /// A ready connection with one GET.
    fn asked() -> Self {
        let mut client = Self::ready();
        assert_eq!(client.start(&get(), true), Some(1));
        client.out.clear();
        client
    }

    fn start(&mut self, request: &Request, ends: bool) -> Option<u32> {
        self.engine.start(request, Scheme::Http, ends, &mut self.out)
    }

    fn read(&mut self, bytes: &[u8]) -> Result<Vec<Seen>, ConnectionError> {
        self.unread.extend_from_slice(bytes);
        let unread = std::mem::take(&mut self.unread);
        let (mut rest, mut seen) = (&unread[..], Vec::new());
        while let Some(event) = self.engine.next(&mut rest, &mut self.response, &mut self.out, 0)? {
            seen.push(match event {
                ClientEvent::Head { stream, framing } => {
                    Seen::Head(stream, self.response.status.code(), framing)
                }
                ClientEvent::Data { stream, bytes } => Seen::Data(stream, bytes.to_vec()),
                ClientEvent::End { stream, trailers } => {
                    Seen::End(stream, trailers.map(|trailers| trailers.lines().to_vec()))
                }
                ClientEvent::Reset { stream, code } => Seen::Reset(stream, code),
                ClientEvent::Rejected { stream, error } => Seen::Rejected(stream, error),
                ClientEvent::Leaves { last } => Seen::Leaves(last),
                ClientEvent::Room => Seen::Room,
            });
        }
        self.unread = rest.to_vec();
        Ok(seen)
    }

    /// The kinds of frames sent since the last call.
    fn sent(&mut self) -> Vec<u8> {
        frames(&std::mem::take(&mut self.out)).iter().map(|(head, _)| head.kind).collect()
    }
}

fn get() -> Request {
    let mut request = Request::new();
    (request.host, request.target) = (b"a.test".to_vec(), b"/".to_vec());
    request
}

fn written(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    frame::write(&mut out, kind, flags, stream, payload);
    out
}

fn frames(mut bytes: &[u8]) -> Vec<(FrameHead, Vec<u8>)> {
    let mut frames = Vec::new();
    while let Some(head) = bytes.first_chunk() {
        let head = FrameHead::read(head);
        frames.push((head, bytes[HEAD_BYTES..HEAD_BYTES + head.length].to_vec()));
        bytes = &bytes[HEAD_BYTES + head.length..];
    }
    assert!(bytes.is_empty());
    frames
}

/// HEADERS with fields that no table is needed for.
fn fields(stream: u32, ends: bool, fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            block.push(text.len() as u8);
            block.extend_from_slice(text.as_bytes());
        }
    }
    let flags = flag::END_HEADERS | if ends { flag::END_STREAM } else { 0 };
    written(kind::HEADERS, flags, stream, &block)
}

fn data(stream: u32, ends: bool, bytes: &[u8]) -> Vec<u8> {
    written(kind::DATA, if ends { flag::END_STREAM } else { 0 }, stream, bytes)
}

const OK: &[(&str, &str)] = &[(":status", "200")];

#[test]
fn a_response_comes_with_interim_ones_before_and_trailers_behind() {
    let mut client = Client::asked();
    let bytes = [
        fields(1, false, &[(":status", "103"), ("link", "</a>")]),
        fields(1, false, &[(":status", "200"), ("x-a", "b")]),
        data(1, false, b"body"),
        fields(1, true, &[("grpc-status", "0"), ("cookie", "no")]),
    ]
    .concat();
    // Byte by byte: frames are complete only at their end.
    let seen: Vec<_> =
        bytes.iter().flat_map(|b| client.read(&[*b]).expect("valid frames")).collect();
    assert_eq!(
        seen,
        [
            Seen::Head(1, 103, Framing::None),
            Seen::Head(1, 200, Framing::Chunked),
            Seen::Data(1, b"body".to_vec()),
            Seen::End(1, Some(b"grpc-status: 0\r\n".to_vec())),
        ]
    );
    assert_eq!(client.engine.streams(), 0);
    assert_eq!(client.response.headers.value_named(b"x-a"), Some(&b"b"[..]));
}

#[test]
fn framing_is_known_from_the_head_and_the_streams_end() {
    for (method, ends, head, framing) in [
        (Method::Get, true, vec![(":status", "200")], Framing::Length(0)),
        (Method::Get, false, vec![(":status", "200"), ("content-length", "3")], Framing::Length(3)),
        (Method::Head, true, vec![(":status", "200"), ("content-length", "3")], Framing::None),
        (Method::Get, true, vec![(":status", "304"), ("content-length", "3")], Framing::None),
        (Method::Get, false, vec![(":status", "204")], Framing::None),
    ] {
        let mut client = Client::ready();
        let mut request = get();
        request.method = method;
        assert_eq!(client.start(&request, true), Some(1));
        let seen = client.read(&fields(1, ends, &head)).expect("a head");
        assert!(matches!(seen[0], Seen::Head(1, _, read) if read == framing), "{head:?}");
        assert_eq!(seen.contains(&Seen::End(1, None)), ends, "{head:?}");
    }
}

#[test]
fn a_malformed_response_ends_its_stream_only() {
    for head in [
        &[("x", "y")][..],
        &[(":status", "20")],
        &[(":status", "101")],
        &[(":status", "200"), (":status", "200")],
        &[(":path", "/"), (":status", "200")],
        &[("x", "y"), (":status", "200")],
        &[(":status", "200"), ("Big", "x")],
        &[(":status", "200"), ("x", " y")],
        &[(":status", "200"), ("connection", "close")],
        &[(":status", "200"), ("transfer-encoding", "chunked")],
        &[(":status", "200"), ("content_length", "1")],
        &[(":status", "200"), ("content-length", "1"), ("content-length", "2")],
        &[(":status", "200"), ("content-length", "x")],
    ] {
        let mut client = Client::asked();
        let seen = client.read(&fields(1, false, head)).expect("the connection stays");
        assert!(matches!(seen[..], [Seen::Rejected(1, _)]), "{head:?}: {seen:?}");
        assert_eq!((client.sent(), client.engine.streams()), (vec![kind::RST_STREAM], 0));
        assert_eq!(client.start(&get(), true), Some(3));
        assert_eq!(client.read(&fields(3, true, OK)).map(|seen| seen.len()), Ok(2));
    }
}

#[test]
fn a_body_is_as_long_as_its_head_says() {
    let head = fields(1, false, &[(":status", "200"), ("content-length", "3")]);
    for (body, seen) in [
        (data(1, true, b"abc"), Seen::End(1, None)),
        (data(1, true, b"ab"), Seen::Rejected(1, ResponseError::Length)),
        (data(1, false, b"abcd"), Seen::Rejected(1, ResponseError::Length)),
        (fields(1, true, &[("x", "y")]), Seen::Rejected(1, ResponseError::Length)),
        (fields(1, false, &[("x", "y")]), Seen::Rejected(1, ResponseError::Order)),
    ] {
        let mut client = Client::asked();
        assert_eq!(client.read(&head).map(|seen| seen.len()), Ok(1));
        assert_eq!(client.read(&body).expect("the connection stays").last(), Some(&seen));
    }
    let mut client = Client::asked();
    let early = client.read(&data(1, false, b"abc"));
    assert_eq!(early, Ok(vec![Seen::Rejected(1, ResponseError::Order)]));
    let mut client = Client::asked();
    let ended = client.read(&fields(1, true, &[(":status", "103")]));
    assert_eq!(ended, Ok(vec![Seen::Rejected(1, ResponseError::Interim)]));
}

#[test]
fn violations_end_the_connection() {
    for (bytes, code) in [
        (written(kind::PUSH_PROMISE, flag::END_HEADERS, 1, &[0, 0, 0, 2, 0x88]), Code::Protocol),
        (fields(2, true, OK), Code::Protocol),
        (fields(3, true, OK), Code::Protocol),
        (data(3, true, b"x"), Code::Protocol),
        (data(0, true, b"x"), Code::Protocol),
        (written(kind::DATA, flag::PADDED, 1, &[9, 0]), Code::Protocol),
        (written(kind::WINDOW_UPDATE, 0, 0, &[0; 4]), Code::Protocol),
        (written(kind::WINDOW_UPDATE, 0, 0, &[0x7f, 255, 255, 255]), Code::FlowControl),
        (written(kind::WINDOW_UPDATE, 0, 5, &[0, 0, 0, 1]), Code::Protocol),
        (written(kind::RST_STREAM, 0, 1, &[0; 3]), Code::FrameSize),
        (written(kind::PING, 0, 0, &[0; 7]), Code::FrameSize),
        (written(kind::GOAWAY, 0, 0, &[0; 7]), Code::FrameSize),
        (written(kind::SETTINGS, 0, 0, &[0; 5]), Code::FrameSize),
        (written(kind::SETTINGS, 0, 0, &[0, 2, 0, 0, 0, 1]), Code::Protocol),
        (written(kind::CONTINUATION, 0, 1, &[]), Code::Protocol),
        ([written(kind::HEADERS, 0, 1, &[]), data(1, false, b"")].concat(), Code::Protocol),
        ([fields(1, true, OK), data(1, true, b"")].concat(), Code::None),
        (written(kind::HEADERS, flag::END_HEADERS, 1, &[0x80]), Code::Compression),
    ] {
        let read = Client::asked().read(&bytes);
        match code {
            // A frame on a stream that has ended may have been on its way.
            Code::None => assert!(read.is_ok(), "{bytes:?}"),
            code => assert_eq!(read.map_err(|fatal| fatal.code), Err(code), "{bytes:?}"),
        }
    }
    let mut client = Client::new(&Limits::default());
    assert!(client.read(&written(kind::PING, 0, 0, &[0; 8])).is_err(), "settings come first");
    let mut client = Client::asked();
    let large = vec![0; 16_385];
    assert!(client.read(&data(1, false, &large)).is_err());
}

#[test]
fn a_server_cannot_send_more_than_the_window_nor_frames_without_end() {
    let mut client = Client::asked();
    assert!(client.read(&fields(1, false, OK)).is_ok());
    let piece = data(1, false, &[0; 16_384]);
    let window = Limits::default().origin_h2_window as usize;
    let mut wide = Client::asked();
    assert!(wide.read(&fields(1, false, OK)).is_ok());
    wide.engine.widen(1, &mut wide.out);
    wide.engine.widen(1, &mut wide.out);
    for (mut client, window) in [(client, 64 << 10), (wide, window)] {
        for _ in 0..window / 16_384 {
            assert!(client.read(&piece).is_ok());
        }
        assert!(client.read(&piece).is_err_and(|fatal| fatal.code == Code::FlowControl));
    }

    let limits = Limits { origin_h2_control_frames: 5, ..Limits::default() };
    let mut client = Client::new(&limits);
    assert!(client.read(&written(kind::SETTINGS, 0, 0, &[])).is_ok());
    let ping = written(kind::PING, 0, 0, &[0; 8]);
    let read: Vec<_> = (0..5).map(|_| client.read(&ping).is_ok()).collect();
    assert_eq!(read, [true, true, true, true, false]);

    // Small window updates count, too, and bodies of ended streams.
    for spends in [written(kind::WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1]), data(1, false, b"late")] {
        let mut client = Client::new(&limits);
        assert!(client.read(&written(kind::SETTINGS, 0, 0, &[])).is_ok());
        assert_eq!(client.start(&get(), true), Some(1));
        client.engine.reset(1, Code::Cancel, &mut client.out);
        let read: Vec<_> = (0..6).map(|_| client.read(&spends).is_ok()).collect();
        assert_eq!(read, [true, true, true, true, true, false]);
    }
}

#[test]
fn used_bytes_come_back_to_the_servers_windows() {
    let mut client = Client::asked();
    assert!(client.read(&fields(1, false, OK)).is_ok());
    client.engine.widen(1, &mut client.out);
    client.out.clear();
    let window = Limits::default().origin_h2_window as usize;
    let half = window / 2;
    for _ in 0..20 {
        for _ in 0..half / 16_384 {
            assert!(client.read(&data(1, false, &[0; 16_384])).is_ok());
        }
        client.engine.used(1, half, &mut client.out);
    }
    let updates = frames(&client.out);
    let of = |id| updates.iter().filter(|(head, _)| head.stream == id).count();
    assert_eq!((of(1), of(0)), (20, 10));
}

#[test]
fn a_request_waits_for_windows_and_for_streams() {
    let mut client = Client::new(&Limits::default());
    let one = [0, 3, 0, 0, 0, 1, 0, 4, 0, 0, 0, 5];
    assert!(client.read(&written(kind::SETTINGS, 0, 0, &one)).is_ok());
    let mut post = get();
    (post.method, post.framing) = (Method::Post, Framing::Chunked);
    assert_eq!(client.start(&post, false), Some(1));
    assert!(!client.engine.has_room() && client.start(&get(), true).is_none());
    assert_eq!(client.engine.send_room(1), Some(5));
    client.engine.data(1, b"abcde", false, &mut client.out);
    assert_eq!(client.engine.send_room(1), Some(0));
    assert_eq!(
        client.read(&written(kind::WINDOW_UPDATE, 0, 1, &[0, 0, 0, 7])),
        Ok(vec![Seen::Room])
    );
    assert_eq!(client.engine.send_room(1), Some(7));
    // A smaller first window may make the present ones negative (RFC 9113 6.9.2).
    let smaller = [0, 4, 0, 0, 0, 0, 0, 3, 0, 0, 0, 2];
    assert!(client.read(&written(kind::SETTINGS, 0, 0, &smaller)).is_ok());
    assert_eq!(client.engine.send_room(1), Some(2));
    client.engine.data(1, b"", true, &mut client.out);
    assert_eq!(client.engine.send_room(1), None);
    assert_eq!(client.start(&get(), true), Some(3));
}

#[test]
fn streams_above_the_last_of_a_farewell_are_gone() {
    let mut client = Client::asked();
    assert_eq!(client.start(&get(), true), Some(3));
    let goaway = written(kind::GOAWAY, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 0]);
    assert_eq!(client.read(&goaway), Ok(vec![Seen::Leaves(1)]));
    assert!(client.engine.leaves() && client.start(&get(), true).is_none());
    assert_eq!(client.read(&fields(1, true, OK)).map(|seen| seen.len()), Ok(2));
    assert_eq!(client.engine.streams(), 0);
}

#[test]
fn frames_on_their_way_to_a_reset_stream_are_dropped_and_keep_the_tables() {
    let mut client = Client::asked();
    client.engine.reset(1, Code::Cancel, &mut client.out);
    assert_eq!(client.sent(), [kind::RST_STREAM]);
    let mut encoder = Encoder::new(HashSeed::from_u64(9));
    let mut head = |stream| {
        let mut block = Vec::new();
        encoder.begin(200, &mut block);
        encoder.field(HeaderId::Server, b"server", b"indexed", &mut block);
        written(kind::HEADERS, flag::END_HEADERS, stream, &block)
    };
    let (late, next) = (head(1), head(3));
    assert_eq!(client.read(&[late, data(1, true, b"late")].concat()), Ok(vec![]));
    assert_eq!(client.start(&get(), true), Some(3));
    assert_eq!(client.read(&next), Ok(vec![Seen::Head(3, 200, Framing::Chunked)]));
    assert_eq!(client.response.headers.value(HeaderId::Server), Some(&b"indexed"[..]));
}

#[test]
fn a_request_has_no_fields_of_http_1() {
    let mut request = get();
    request.port = Some(8080);
    request.headers.push(HeaderId::Host, b"a.test:8080");
    for (name, value) in [
        ("Connection", "keep-alive"),
        ("Keep-Alive", "5"),
        ("TE", "gzip"),
        ("Transfer-Encoding", "chunked"),
        ("Upgrade", "h2c"),
        ("Trailer", "x"),
        ("X-Kept", "Yes"),
        ("Authorization", "secret"),
    ] {
        request.headers.push_named(name.as_bytes(), value.as_bytes());
    }
    let read = |request: &Request| {
        let mut client = Client::ready();
        assert_eq!(client.start(request, true), Some(1));
        let (head, block) = frames(&client.out).remove(0);
        assert!(head.has(flag::END_STREAM) && head.has(flag::END_HEADERS));
        let fields = crate::fuzz::decode(&block).expect("a block");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        fields.iter().map(|(name, value)| format!("{}: {}", text(name), text(value))).collect()
    };
    let plain = [
        ":method: GET",
        ":scheme: http",
        ":authority: a.test:8080",
        ":path: /",
        "x-kept: Yes",
        "authorization: secret",
    ];
    let all: Vec<String> = read(&request);
    assert_eq!(all, plain);
    (request.passes_trailers, request.framing) = (true, Framing::Length(4));
    let all: Vec<String> = read(&request);
    assert_eq!(all[plain.len()..], ["te: trailers", "content-length: 4"]);
}

/// A request and its response, for both engines.
#[derive(Clone, Debug)]
struct Call {
    upload: Vec<u8>,
    interim: bool,
    body: Vec<u8>,
    trailer: Option<String>,
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..40_000);
    let call = (bytes(), any::<bool>(), bytes(), prop::option::of("[a-z]{1,9}"));
    let call =
        call.prop_map(|(upload, interim, body, trailer)| Call { upload, interim, body, trailer });
    prop::collection::vec(call, 1..5)
}

/// A server that answers each call once it has the whole request.
struct Peer {
    engine: Connection,
    request: Request,
    out: Vec<u8>,
    uploads: Vec<(StreamHandle, Vec<u8>)>,
    bodies: Vec<(StreamHandle, Call, usize)>,
}

impl Peer {
    fn new() -> Self {
        let mut out = Vec::new();
        let settings = Settings::from(&Limits::default());
        let engine = Connection::new(settings, Scheme::Http, HashSeed::from_u64(5), 0, &mut out);
        Self { engine, request: Request::new(), out, uploads: Vec::new(), bodies: Vec::new() }
    }

    fn read(&mut self, mut input: &[u8], calls: &[Call]) {
        while let Some(event) =
            self.engine.next(&mut input, &mut self.request, &mut self.out, 0).expect("valid")
        {
            match event {
                Event::Request { stream, ends } => {
                    assert_eq!(self.request.target, format!("/{}", stream.id / 2).into_bytes());
                    self.uploads.push((stream, Vec::new()));
                    assert!(!ends);
                }
                Event::Data { stream, bytes } => {
                    let upload = self.uploads.iter_mut().find(|(at, _)| *at == stream);
                    upload.expect("an open request").1.extend_from_slice(bytes);
                    self.engine.used(stream, bytes.len(), &mut self.out);
                }
                Event::End { stream, .. } => self.answer(stream, calls),
                other => panic!("{other:?}"),
            }
        }
        self.send();
    }

    fn answer(&mut self, stream: StreamHandle, calls: &[Call]) {
        let call = &calls[stream.id as usize / 2];
        let at = self.uploads.iter().position(|(at, _)| *at == stream).expect("a request");
        assert_eq!(self.uploads.remove(at).1, call.upload);
        if call.interim {
            self.engine.begin_head(103, &mut self.out);
            self.engine.end_head(stream, false, &mut self.out);
        }
        self.engine.begin_head(200, &mut self.out);
        self.engine.field(HeaderId::Server, b"Server", b"peer", &mut self.out);
        self.engine.end_head(stream, false, &mut self.out);
        self.bodies.push((stream, call.clone(), 0));
        self.engine.offer(stream, call.body.len() as u64, call.trailer.is_none());
        if call.trailer.is_some() {
            self.engine.offer_trailers(stream);
        }
    }

    fn send(&mut self) {
        while let Some(grant) = self.engine.grant(16_384, &mut self.out) {
            let at = self.bodies.iter().position(|(at, ..)| *at == grant.stream).expect("a body");
            let (stream, call, sent) = &mut self.bodies[at];
            self.out.extend_from_slice(&call.body[*sent..*sent + grant.bytes]);
            *sent += grant.bytes;
            if grant.ends {
                match &call.trailer {
                    Some(value) => {
                        let mut trailers = Trailers::default();
                        trailers.push(b"x-end", value.as_bytes());
                        self.engine.trailers(*stream, &trailers, &mut self.out);
                    }
                    None => self.engine.sent_all(*stream, &mut self.out),
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn both_sides_understand_each_other(
        calls in calls(),
        cuts in prop::collection::vec(1..9000_usize, 1..9),
    ) {
        let (mut client, mut peer) = (Client::new(&Limits::default()), Peer::new());
        let mut left = Vec::new();
        for (n, call) in calls.iter().enumerate() {
            let mut request = get();
            request.target = format!("/{n}").into_bytes();
            (request.method, request.framing) = (Method::Post, Framing::Chunked);
            let id = client.start(&request, false).expect("room");
            left.push((id, &call.upload[..]));
        }
        let mut bodies = vec![Vec::new(); calls.len()];
        let mut ends = vec![None; calls.len()];
        let mut interims = 0;
        for turn in 0..10_000 {
            let cut = cuts[turn % cuts.len()];
            left.retain_mut(|(id, rest)| {
                let room = client.engine.send_room(*id).unwrap_or(0).min(rest.len()).min(cut);
                let (piece, after) = rest.split_at(room);
                let is_last = after.is_empty();
                if room > 0 || is_last {
                    client.engine.data(*id, piece, is_last, &mut client.out);
                }
                *rest = after;
                !is_last
            });
            let sent = std::mem::take(&mut client.out);
            sent.chunks(cut).for_each(|piece| peer.read(piece, &calls));
            let answered = std::mem::take(&mut peer.out);
            if sent.is_empty() && answered.is_empty() {
                break;
            }
            for piece in answered.chunks(cut) {
                for seen in client.read(piece).expect("valid frames") {
                    match seen {
                        Seen::Head(_, 103, _) => interims += 1,
                        Seen::Head(_, status, framing) => {
                            prop_assert_eq!((status, framing), (200, Framing::Chunked));
                        }
                        Seen::Data(id, bytes) => {
                            bodies[id as usize / 2].extend_from_slice(&bytes);
                            client.engine.used(id, bytes.len(), &mut client.out);
                        }
                        Seen::End(id, trailers) => ends[id as usize / 2] = Some(trailers),
                        Seen::Room => {}
                        other => prop_assert!(false, "{:?}", other),
                    }
                }
            }
        }
        prop_assert_eq!(interims, calls.iter().filter(|call| call.interim).count());
        for (at, call) in calls.iter().enumerate() {
            prop_assert!(bodies[at] == call.body);
            let line = |value: &String| format!("x-end: {value}\r\n").into_bytes();
            let line = call.trailer.as_ref().map(line);
            prop_assert_eq!(&ends[at], &Some(line));
        }
        prop_assert_eq!((client.engine.streams(), peer.engine.streams()), (0, 0));
    }

    #[test]
    fn no_bytes_make_it_panic(data: Vec<u8>) {
        crate::fuzz::client(&data);
    }
}

#[test]
fn a_servers_settings_are_kept() {
    let mut client = Client::new(&Limits::default());
    let none = [0, setting::MAX_CONCURRENT_STREAMS as u8, 0, 0, 0, 0];
    assert!(client.read(&written(kind::SETTINGS, 0, 0, &none)).is_ok());
    assert!(client.engine.is_greeted() && !client.engine.has_room());
}

#[test]
fn a_server_says_how_large_a_head_may_be() {
    let mut client = Client::new(&Limits::default());
    let mut large = get();
    assert!(client.engine.takes(&large));
    assert!(client.read(&written(kind::SETTINGS, 0, 0, &[0, 6, 0, 0, 1, 44])).is_ok());
    assert!(client.engine.takes(&large), "of 300 bytes");
    large.headers.push_named(b"x-large", &[b'x'; 100]);
    assert!(!client.engine.takes(&large));
}
