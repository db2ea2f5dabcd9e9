//! Tests of many requests on one connection.

use testkit::h2::{Frame, Request, RequestOutcome, error, kind, setting};
use testkit::origin::Script;

use super::ends::{Next, Scene};
use crate::support::eventually;
use crate::support::h2::{client, limited, stage};

const UNCACHED: &str = "Cache-Control: no-store\r\n";
const LISTEN: &str = "127.0.0.1:0 h2c";

/// Numbers in shuffled order: every one of `0..count` once, when `count` is 100.
fn shuffled(count: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |n| (n * 37 + 11) % count)
}

#[tokio::test]
async fn a_hundred_at_once_get_their_own_answers() {
    let stage = stage().await;
    stage.origin.otherwise(Script::mirror(UNCACHED));
    stage.origin.on("/hit", Script::cacheable("stored"));
    let mut client = client(&stage.daemon).await;
    client.get("/hit").await.answer("/hit");
    // All in one write; every third a hit.
    let mut streams = Vec::new();
    let mut bytes = Vec::new();
    for n in 0..100 {
        let path = if n % 3 == 0 { "/hit".to_owned() } else { format!("/own/{n}") };
        let stream = client.new_stream();
        bytes.extend(Request::get(&path).bytes(stream, true));
        streams.push((stream, path));
    }
    client.send(&bytes).await.expect("sent");
    for n in shuffled(100) {
        let (stream, path) = &streams[n];
        let text = client.outcome(*stream).await.answer(path).text();
        let own =
            if n % 3 == 0 { text == "stored" } else { text.contains(&format!("GET {path}\n")) };
        assert!(own, "{path}: {text}");
    }
    assert_eq!(stage.origin.seen("/hit"), 1);
}

#[tokio::test]
async fn requests_find_room_beside_the_bodies_of_others() {
    let stage = limited("h2_memory = \"512KiB\"\n").await;
    stage.origin.otherwise(Script::ok(UNCACHED, &"x".repeat(30_000)));
    let mut client = client(&stage.daemon).await;
    for round in 0..3 {
        let mut streams = Vec::new();
        for n in 0..100 {
            let request = Request::get(&format!("/{round}/{n}"));
            streams.push(client.ask(&request, true).await.expect("sent"));
        }
        for stream in streams {
            let reply = client.outcome(stream).await.answer("/");
            assert_eq!((reply.status, reply.text().len()), (200, 30_000));
        }
    }
}

#[tokio::test]
async fn bodies_may_come_in_any_order_and_mixed() {
    let stage = stage().await;
    stage.origin.otherwise(Script::mirror(UNCACHED));
    let mut client = client(&stage.daemon).await;
    let mut streams = Vec::new();
    for n in 0..50 {
        let request = Request::post(&format!("/up/{n}"));
        streams.push(client.ask(&request, false).await.expect("sent"));
    }
    for part in ["first-", "second-", ""] {
        for n in shuffled(50) {
            let body = if part.is_empty() { format!("of {n}") } else { part.to_owned() };
            let end = part.is_empty();
            let frame = Frame::data(streams[n], body.as_bytes(), end);
            client.send_frame(&frame).await.expect("sent");
        }
    }
    for (n, stream) in streams.iter().enumerate() {
        let text = client.outcome(*stream).await.answer("/up").text();
        assert!(text.contains(&format!("POST /up/{n}\n")), "{text}");
        assert!(text.ends_with(&format!("first-second-of {n}")), "{text}");
    }
}

#[tokio::test]
async fn streams_may_be_left_out_and_are_then_gone() {
    let stage = stage().await;
    stage.origin.otherwise(Script::mirror(UNCACHED));
    let mut client = client(&stage.daemon).await;
    for stream in [7, 9, 101, 0x7fff_fff1] {
        client.send(&Request::get("/page").bytes(stream, true)).await.expect("sent");
        assert_eq!(client.outcome(stream).await.answer("/page").status, 200);
    }
    // RFC 9113 5.1.1: a new stream has a higher number than all before it.
    client.send(&Request::get("/late").bytes(11, true)).await.expect("sent");
    let ending = client.rest().await.expect("no fault");
    assert!(
        matches!(ending.code, Some(error::PROTOCOL_ERROR | error::STREAM_CLOSED)),
        "{ending:?}"
    );
    assert_eq!(stage.origin.seen("/late"), 0);
}

#[tokio::test]
async fn one_stream_too_many_is_refused_and_no_other() {
    let stage = limited("h2_streams = 10").await;
    stage.origin.on(
        "/slow",
        Script::default()
            .delay_ms(1_500)
            .send(format!("HTTP/1.1 200 OK\r\n{UNCACHED}Content-Length: 4\r\n\r\nslow")),
    );
    let mut client = client(&stage.daemon).await;
    assert!(client.ping().await);
    assert_eq!(client.judge().setting(setting::MAX_CONCURRENT_STREAMS), Some(10));
    let mut streams = Vec::new();
    for n in 0..12 {
        let request = Request::get(&format!("/slow?{n}"));
        streams.push(client.ask(&request, true).await.expect("sent"));
    }
    for (n, stream) in streams.into_iter().enumerate() {
        let outcome = client.outcome(stream).await;
        match n {
            0..10 => assert_eq!(outcome.answer("/slow").text(), "slow"),
            _ => assert_eq!(outcome.reset(), Some(error::REFUSED_STREAM), "{n}"),
        }
    }
    assert_eq!(client.get("/slow?again").await.answer("again").text(), "slow");
    stage.daemon.assert_limit_count("h2_streams", 2).await;
    assert_eq!(stage.origin.seen("/slow?10") + stage.origin.seen("/slow?11"), 0);
}

#[tokio::test]
async fn settings_and_pings_are_answered() {
    let stage = stage().await;
    let mut client = client(&stage.daemon).await;
    for value in [0, 1, 100_000, 0x7fff_ffff, 65_535] {
        let frame = Frame::settings(&[
            (setting::INITIAL_WINDOW_SIZE, value),
            // Unknown ones are ignored (RFC 9113 6.5.2).
            (0xfafa, value),
        ]);
        client.send_frame(&frame).await.expect("sent");
    }
    client.send_frame(&Frame::ping(*b"\0\xff234567")).await.expect("sent");
    assert!(client.ping().await);
    assert!(client.judge().settings_acknowledged(), "every SETTINGS has its acknowledgement");
    assert!(!client.judge().awaits_ping(*b"\0\xff234567"));
    // Unknown frames are ignored wherever they come (RFC 9113 5.5).
    client.send_frame(&Frame::new(0xbe, 0xff, 0, b"grease".to_vec())).await.expect("sent");
    client.send_frame(&Frame::new(0xbe, 0xff, 77, b"grease".to_vec())).await.expect("sent");
    assert_eq!(client.get("/page").await.answer("/page").status, 404);
}

/// RFC 7541 4.2: the server's table never exceeds the client's setting, and every change is
/// announced. The judge decodes each block with a table of exactly that size.
#[tokio::test]
async fn header_tables_are_as_large_as_the_client_says() {
    let stage = stage().await;
    let long = "v".repeat(300);
    stage
        .origin
        .on("/page", Script::ok(&format!("Cache-Control: max-age=9\r\nX-A: {long}\r\n"), ""));
    let mut client = client(&stage.daemon).await;
    for bytes in [4_096, 0, 100, 1 << 20, 1, 4_096, 0] {
        let frame = Frame::settings(&[(setting::HEADER_TABLE_SIZE, bytes)]);
        client.send_frame(&frame).await.expect("sent");
        assert!(client.until(|judge| judge.settings_acknowledged()).await, "acknowledged");
        for _ in 0..3 {
            let answer = client.get("/page").await.answer("/page");
            assert_eq!(answer.field("x-a").as_deref(), Some(&*long), "{bytes}");
        }
    }
    // Two changes between two blocks: the smaller one counts too.
    for bytes in [0, 4_096] {
        let frame = Frame::settings(&[(setting::HEADER_TABLE_SIZE, bytes)]);
        client.send_frame(&frame).await.expect("sent");
    }
    for _ in 0..3 {
        let answer = client.get("/page").await.answer("/page");
        assert_eq!(answer.field("x-a").as_deref(), Some(&*long));
    }
}

#[tokio::test]
async fn what_a_client_takes_back_stops_at_the_origin_too() {
    let scene = Scene::listening(LISTEN, "").await;
    let mut client = client(&scene.daemon).await;
    for headed in [false, true] {
        let path = format!("/{headed}");
        // With a cookie no other client can wait for the response.
        let request = Request::get(&path).field("cookie", "sid=1");
        let stream = client.ask(&request, true).await.expect("sent");
        let mut origin = scene.origin().await;
        origin.head().await;
        if headed {
            let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nsome\r\n";
            origin.send(head).await;
            let some = client
                .until(|judge| judge.exchange(stream).is_some_and(|e| e.text() == "some"))
                .await;
            assert!(some, "what there is so far");
        }
        client.send_frame(&Frame::reset(stream, error::CANCEL)).await.expect("sent");
        assert_eq!(origin.next().await, Next::Closed, "headed: {headed}");
        assert!(client.ping().await, "the connection goes on");
    }
}

#[tokio::test]
async fn what_others_wait_for_goes_on_without_the_first() {
    let scene = Scene::listening(LISTEN, "").await;
    let (mut first, mut second) = (client(&scene.daemon).await, client(&scene.daemon).await);
    let asked = first.ask(&Request::get("/page"), true).await.expect("sent");
    let mut origin = scene.origin().await;
    origin.head().await;
    let waiting = second.ask(&Request::get("/page"), true).await.expect("sent");
    assert!(second.ping().await);
    first.send_frame(&Frame::reset(asked, error::CANCEL)).await.expect("sent");
    assert!(first.ping().await);
    let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 4\r\n\r\n";
    origin.send(format!("{head}page")).await;
    assert_eq!(second.outcome(waiting).await.answer("/page").text(), "page");
    assert!(scene.origin_is_silent().await, "one fetch for both");
}

#[tokio::test]
async fn a_client_that_leaves_takes_all_its_requests_with_it() {
    let scene = Scene::listening(LISTEN, "").await;
    let mut client = client(&scene.daemon).await;
    let mut origins = Vec::new();
    for n in 0..5 {
        let request = Request::get(&format!("/{n}")).field("cookie", "sid=1");
        client.ask(&request, true).await.expect("sent");
        let mut origin = scene.origin().await;
        origin.head().await;
        origins.push(origin);
    }
    drop(client);
    for mut origin in origins {
        assert_eq!(origin.next().await, Next::Closed);
    }
    eventually("its end", async || scene.metric("larder_connections_open").await == 0).await;
}

/// RFC 9113 5.4.2: a reset ends one stream only.
#[tokio::test]
async fn a_wrong_request_disturbs_none_of_its_neighbours() {
    let stage = stage().await;
    stage.origin.on(
        "/slow",
        Script::default()
            .delay_ms(300)
            .send(format!("HTTP/1.1 200 OK\r\n{UNCACHED}Content-Length: 4\r\n\r\nslow")),
    );
    let mut client = client(&stage.daemon).await;
    let mut streams = Vec::new();
    for n in 0..20 {
        let path = format!("/slow?{n}");
        let mut request = Request::get(&path);
        if n % 2 == 1 {
            request = request.field("connection", "close");
        }
        streams.push(client.ask(&request, true).await.expect("sent"));
    }
    for (n, stream) in streams.into_iter().enumerate() {
        match client.outcome(stream).await {
            RequestOutcome::Answered(answer) => {
                assert_eq!((n % 2, answer.text().as_str()), (0, "slow"));
            }
            other => assert_eq!((n % 2, other.reset()), (1, Some(error::PROTOCOL_ERROR))),
        }
    }
    assert_eq!(client.judge().count(kind::GOAWAY), 0);
}
