//! Tests of event streams, long polls and other responses that arrive in pieces.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::time::timeout;

use super::ends::{End, Next, Scene};
use crate::support::tls::{Authority, Kind};
use crate::support::{PATIENCE, pause};

const STREAM: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
                      Transfer-Encoding: chunked\r\n\r\n";

fn get(target: &str, fields: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: larder.test\r\n{fields}\r\n")
}

fn event(number: usize) -> String {
    let data = format!("data: {number}\n\n");
    format!("{:x}\r\n{data}\r\n", data.len())
}

/// Asserts that the head, each event and the end are forwarded at once.
async fn follows<C, O>(client: &mut End<C>, origin: &mut End<O>, head: &str)
where
    C: AsyncRead + AsyncWrite + Unpin,
    O: AsyncRead + AsyncWrite + Unpin,
{
    origin.head().await;
    origin.send(head).await;
    let got = client.head().await;
    assert!(got.starts_with("HTTP/1.1 200 ") && got.contains("chunked"), "{got}");
    for number in 0..20 {
        origin.send(event(number)).await;
        client.expect(event(number)).await;
    }
    origin.send("0\r\n\r\n").await;
    client.expect("0\r\n\r\n").await;
}

#[tokio::test]
async fn each_piece_reaches_the_client_at_once_however_it_is_asked_for() {
    let control = |value: &str| {
        STREAM.replacen("\r\n\r\n", &format!("\r\nCache-Control: {value}\r\n\r\n"), 1)
    };
    let plain = STREAM.replace("text/event-stream", "text/plain");
    for (site, fields, head) in [
        ("", "", STREAM.to_owned()),
        ("", "Accept: text/event-stream\r\n", STREAM.to_owned()),
        ("", "Cookie: sid=1\r\n", STREAM.to_owned()),
        ("", "", control("no-cache")),
        ("", "", control("no-store")),
        ("", "", control("max-age=60")),
        ("", "", plain.clone()),
        ("", "", plain.replacen("\r\n\r\n", "\r\nCache-Control: max-age=60\r\n\r\n", 1)),
        ("cache = false", "", STREAM.to_owned()),
        ("cache = { ttl = { any = \"1m\" } }", "", STREAM.to_owned()),
        ("response_headers = { set = { X-A = \"b\" } }", "", STREAM.to_owned()),
    ] {
        let scene = Scene::with("", site).await;
        let mut client = scene.client().await;
        client.send(get("/events", fields)).await;
        let mut origin = scene.origin().await;
        follows(&mut client, &mut origin, &head).await;
    }
}

#[tokio::test]
async fn an_answer_that_is_all_there_leaves_in_one_write() {
    let scene = Scene::new().await;
    let mut client = scene.client().await;
    client.send(get("/page", "")).await;
    let mut origin = scene.origin().await;
    origin.head().await;
    origin.send(format!("{STREAM}{}0\r\n\r\n", event(1))).await;
    let mut answer = vec![0; 65_536];
    let read = timeout(PATIENCE, client.stream.read(&mut answer)).await;
    let read = read.expect("in time").expect("an answer");
    let answer = String::from_utf8_lossy(&answer[..read]);
    assert!(answer.ends_with(&format!("{}0\r\n\r\n", event(1))), "{answer}");
}

#[tokio::test]
async fn over_tls_too() {
    let authority = Authority::new();
    authority.sign("site", &["larder.test"], Kind::Elliptic);
    let pair = authority.pair("site");
    let top = format!("tls = {{ {pair} }}");
    let scene = Scene::listening("127.0.0.1:0 tls", &top).await;
    let connection = authority.client().connect(scene.daemon.addr(), "larder.test").await;
    let mut client = End::new(connection.stream);
    client.send(get("/events", "")).await;
    let mut origin = scene.origin().await;
    follows(&mut client, &mut origin, STREAM).await;
}

#[tokio::test]
async fn each_client_of_a_stream_has_its_own() {
    let stream = STREAM.replacen("\r\n\r\n", "\r\nCache-Control: public, max-age=60\r\n\r\n", 1);
    let scene = Scene::new().await;
    let mut streams = Vec::new();
    for number in 0..4 {
        let mut client = scene.client().await;
        client.send(get("/events", "")).await;
        // While the others' continue.
        let mut origin = scene.origin().await;
        origin.head().await;
        origin.send(&stream).await;
        assert!(client.head().await.starts_with("HTTP/1.1 200 "));
        origin.send(event(number)).await;
        client.expect(event(number)).await;
        streams.push((client, origin));
    }
    for (number, (client, origin)) in streams.iter_mut().enumerate() {
        origin.send(event(100 + number)).await;
        client.expect(event(100 + number)).await;
    }
}

#[tokio::test]
async fn who_asks_for_events_does_not_wait_for_anothers_first() {
    let scene = Scene::new().await;
    let ask = get("/events", "Accept: text/event-stream\r\n");
    let (mut first, mut second) = (scene.client().await, scene.client().await);
    first.send(&ask).await;
    let mut silent = scene.origin().await;
    silent.head().await;
    second.send(&ask).await;
    let mut origin = scene.origin().await;
    follows(&mut second, &mut origin, STREAM).await;
    follows_head_only(&mut first, &mut silent).await;
}

async fn follows_head_only<S: AsyncRead + AsyncWrite + Unpin>(
    client: &mut End<S>,
    origin: &mut End<S>,
) {
    origin.send(STREAM).await;
    assert!(client.head().await.starts_with("HTTP/1.1 200 "));
}

#[tokio::test]
async fn a_stream_lives_as_long_as_something_comes() {
    let scene = Scene::with(
        "between_bytes_timeout = \"1s\"\ntotal_timeout = \"1500ms\"\nsend_timeout = \"1s\"",
        "",
    )
    .await;
    let mut client = scene.client().await;
    client.send(get("/events", "")).await;
    let mut origin = scene.origin().await;
    origin.head().await;
    origin.send(STREAM).await;
    client.head().await;
    for number in 0..8 {
        pause(400).await;
        origin.send(event(number)).await;
        client.expect(event(number)).await;
    }
    // Silence ends it, in a way that cannot pass for its end.
    assert_eq!(client.next().await, Next::Reset);
    assert_eq!(origin.next().await, Next::Closed);
    scene.daemon.assert_limit_count("between_bytes_timeout", 1).await;
    assert_eq!(scene.limit_hits("total_timeout").await, 0);
}

#[tokio::test]
async fn a_long_poll_is_answered_when_there_is_an_answer() {
    let scene = Scene::new().await;
    let mut client = scene.client().await;
    for number in 0..3 {
        client.send(get(&format!("/poll/{number}"), "Cookie: sid=1\r\n")).await;
        let mut origin = scene.origin().await;
        origin.head().await;
        assert_eq!(client.next_within(Duration::from_millis(700)).await, Next::Silence);
        origin.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok").await;
        client.head().await;
        client.expect("ok").await;
    }
}
