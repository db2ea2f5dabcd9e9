//! Tests of clients that leave while they wait, and of those that only seem to.

use rustix::process::{Pid, Signal, kill_process};
use tokio::net::TcpStream;

use super::ends::{End, Next, Scene};
use crate::support::tls::{Authority, Kind};
use crate::support::{eventually, pause};

const STREAM: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
/// A delay in which a client's half-close is not joined with its request.
const LATER_MS: u64 = 1_200;

fn get(fields: &str) -> String {
    format!("GET /page HTTP/1.1\r\nHost: larder.test\r\n{fields}\r\n")
}

fn reset(client: End<TcpStream>) {
    client.stream.set_zero_linger().expect("an option");
}

#[tokio::test]
async fn a_silent_origin_is_left_when_the_client_of_its_stream_has_gone() {
    for (resets, wait_ms) in [(true, 0), (false, LATER_MS)] {
        let scene = Scene::new().await;
        let mut client = scene.client().await;
        client.send(get("")).await;
        let mut origin = scene.origin().await;
        origin.head().await;
        origin.send(STREAM).await;
        client.head().await;
        pause(wait_ms).await;
        match resets {
            true => reset(client),
            false => drop(client),
        }
        assert_eq!(origin.next().await, Next::Closed);
        eventually("its end", async || scene.metric("larder_connections_open").await == 0).await;
        scene.daemon.assert_metric("larder_responses_aborted_total", 1).await;
    }
}

#[tokio::test]
async fn no_request_waits_for_the_response_of_a_client_that_left() {
    let ways = [("cache = false", ""), ("", "Cookie: sid=1\r\n")];
    for (site, fields) in ways {
        for (resets, wait_ms) in [(true, 0), (false, LATER_MS)] {
            let scene = Scene::with("", site).await;
            let mut client = scene.client().await;
            client.send(get(fields)).await;
            let mut origin = scene.origin().await;
            origin.head().await;
            pause(wait_ms).await;
            match resets {
                true => reset(client),
                false => drop(client),
            }
            assert_eq!(origin.next().await, Next::Closed, "{site} {fields}");
        }
    }
}

#[tokio::test]
async fn over_tls_too() {
    let authority = Authority::new();
    authority.sign("site", &["larder.test"], Kind::Elliptic);
    let top = format!("tls = {{ {} }}", authority.pair("site"));
    let scene = Scene::listening("127.0.0.1:0 tls", &top).await;
    for announced in [true, false] {
        let connection = authority.client().connect(scene.daemon.addr(), "larder.test").await;
        let mut client = End::new(connection.stream);
        client.send(get("Cookie: sid=1\r\n")).await;
        let mut origin = scene.origin().await;
        origin.head().await;
        origin.send(STREAM).await;
        client.head().await;
        pause(LATER_MS).await;
        if announced {
            client.finish().await;
        }
        drop(client);
        assert_eq!(origin.next().await, Next::Closed);
    }
}

#[tokio::test]
async fn who_ends_its_side_together_with_the_request_gets_its_answer() {
    let scene = Scene::new().await;
    for fields in ["", "Cookie: sid=1\r\n"] {
        let mut client = scene.client().await;
        client.send(get(fields)).await;
        client.finish().await;
        let mut origin = scene.origin().await;
        origin.head().await;
        pause(LATER_MS).await;
        origin
            .send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nCache-Control: no-store\r\n\r\nok")
            .await;
        assert!(client.head().await.starts_with("HTTP/1.1 200 "));
        client.expect("ok").await;
        assert_eq!(client.next().await, Next::Closed);
    }
}

#[tokio::test]
async fn a_fetch_that_others_gain_by_goes_on() {
    let scene = Scene::new().await;
    let (mut client, mut other) = (scene.client().await, scene.client().await);
    client.send(get("")).await;
    let mut origin = scene.origin().await;
    origin.head().await;
    reset(client);
    pause(100).await;
    other.send(get("")).await;
    origin
        .send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\nCache-Control: max-age=60\r\n\r\npage")
        .await;
    other.head().await;
    other.expect("page").await;
    assert!(scene.origin_is_silent().await, "one fetch for both");
}

#[tokio::test]
async fn what_a_request_changed_is_no_longer_served_though_its_client_left() {
    let scene = Scene::new().await;
    let stored = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nCache-Control: max-age=60\r\n\r\nold";
    let mut client = scene.client().await;
    client.send(get("")).await;
    let mut origin = scene.origin().await;
    origin.head().await;
    origin.send(stored).await;
    client.head().await;
    client.expect("old").await;
    drop(origin);
    pause(50).await;
    let mut leaver = scene.client().await;
    leaver.send(get("").replacen("GET", "DELETE", 1)).await;
    let mut origin = scene.origin().await;
    origin.head().await;
    reset(leaver);
    pause(200).await;
    origin.send("HTTP/1.1 204 No Content\r\n\r\n").await;
    let removed = async || scene.metric("larder_invalidations_total").await == 1;
    eventually("the invalidation", removed).await;
}

#[tokio::test]
async fn requests_sent_ahead_are_kept_while_the_first_is_answered() {
    let scene = Scene::new().await;
    let mut client = scene.client().await;
    client.send(get("")).await;
    let mut origin = scene.origin().await;
    origin.head().await;
    // More than is read while the first waits.
    let ahead = 4_000;
    let more = get(&format!("X-Filler: {}\r\n", "x".repeat(40))).repeat(ahead);
    let (mut reads, mut writes) = client.stream.into_split();
    let write = tokio::spawn(async move {
        tokio::io::AsyncWriteExt::write_all(&mut writes, more.as_bytes()).await.map(|()| writes)
    });
    pause(300).await;
    origin
        .send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\nCache-Control: max-age=60\r\n\r\npage")
        .await;
    let mut received = Vec::new();
    let count = |bytes: &[u8]| bytes.windows(8).filter(|w| *w == b"\r\n\r\npage").count();
    let mut answers = 0;
    while answers < ahead + 1 {
        let read = tokio::io::AsyncReadExt::read_buf(&mut reads, &mut received).await;
        assert!(read.expect("bytes") > 0, "{answers} answers");
        answers += count(&received);
        let keep = received.len().min(7);
        let tail = received.split_off(received.len() - keep);
        received = tail;
    }
    write.await.expect("no panic").expect("sent");
}

#[tokio::test]
async fn the_log_says_who_left() {
    let folder = std::env::temp_dir().join(format!("larder-leaving-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let log = folder.join("access.log");
    let top = format!("access_log = {:?}", log.display().to_string());
    let mut scene = Scene::with_top(&top, "", "").await;
    let mut client = scene.client().await;
    client.send(get("Cookie: sid=1\r\n")).await;
    let mut origin = scene.origin().await;
    origin.head().await;
    reset(client);
    assert_eq!(origin.next().await, Next::Closed);
    let pid = Pid::from_raw(scene.daemon.pid().cast_signed()).expect("a process");
    kill_process(pid, Signal::TERM).expect("signalled");
    scene.daemon.wait().expect("an end");
    let text = std::fs::read_to_string(&log).expect("a log");
    std::fs::remove_dir_all(&folder).expect("it is there");
    assert!(text.contains("\"GET /page HTTP/1.1\" 499 0 "), "{text}");
}
