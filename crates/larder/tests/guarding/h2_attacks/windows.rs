//! Tests of clients that request much and read little (CVE-2019-9511, -9517): buffered data is
//! bounded, and does not wait for ever.

use std::time::Duration;

use testkit::h2::{Client, Frame, Manners, Request, setting};
use testkit::reply::ConnectionEnd;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::siege::{Siege, stream};
use crate::support::figures::count;
use crate::support::pause;

const PATIENCE: Duration = Duration::from_secs(20);

/// A client that has requested `path` on `streams` streams with closed windows.
async fn shut(siege: &Siege, path: &str, streams: u32) -> Client<TcpStream> {
    let client = Client::connect(siege.stage.daemon.addr()).await.expect("a connection");
    let mut client = client.patience(PATIENCE).manners(Manners::OWN_WINDOWS);
    client.greet(&[(setting::INITIAL_WINDOW_SIZE, 0)]).await.expect("sent");
    let requests: Vec<u8> =
        (0..streams).flat_map(|n| Request::get(path).bytes(stream(n), true)).collect();
    client.send(&requests).await.expect("sent");
    client
}

/// Opens many such connections, keeps them while the clean client works, and waits for the end of
/// their streams.
async fn stalled(name: &'static str, path: &'static str, connections: usize, streams: u32) {
    let siege = Siege::start("h2_stall_timeout = \"2s\"").await;
    let mut attackers = JoinSet::new();
    for _ in 0..connections {
        let mut client = shut(&siege, path, streams).await;
        attackers.spawn(async move {
            // Streams are reset or the connection ends: nothing is kept for them.
            let over = client
                .until(|judge| {
                    let mut all = (0..streams).map(|n| judge.exchange(stream(n)));
                    all.all(|exchange| exchange.is_none_or(|exchange| exchange.over()))
                })
                .await;
            let bytes = (0..streams).filter_map(|n| client.judge().exchange(stream(n)));
            let bytes = bytes.map(|exchange| exchange.body.len()).sum::<usize>();
            (over || client.ending().end != ConnectionEnd::Open, bytes)
        });
    }
    let ends = siege.beside(name, attackers).await;
    assert!(ends.iter().all(|(over, _)| *over), "{name}: streams are kept for ever");
    assert!(ends.iter().all(|(_, bytes)| *bytes == 0), "{name}: a shut window was not heeded");
    siege.reached(name, &["h2_stall_timeout"], connections as u64).await;
    siege.end(name, connections as u64).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shut_windows_before_stored_pages() {
    stalled("zero windows, hits", "/large", count(500, 20), 100).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shut_windows_before_what_passes_through() {
    stalled("zero windows, passing", "/passed", count(9, 6), 100).await;
}

/// Connections with one request, and then nothing.
#[tokio::test(flavor = "multi_thread")]
async fn idle_connections() {
    let name = "idle connections";
    let siege = Siege::start("idle_timeout = \"10m\"").await;
    let connections = count(5_000, 200);
    let mut attackers = JoinSet::new();
    for _ in 0..connections {
        let mut client = crate::support::h2::client(&siege.stage.daemon).await;
        assert_eq!(client.get("/page").await.answer("/page").status, 200);
        attackers.spawn(async move {
            pause(3_000).await;
            client.ping().await
        });
    }
    let alive = siege.beside(name, attackers).await;
    assert!(alive.into_iter().all(|alive| alive), "{name}: all were there to the end");
    siege.end(name, connections as u64).await;
}

/// Just enough to look alive.
#[tokio::test(flavor = "multi_thread")]
async fn windows_opened_by_a_byte_now_and_then() {
    let name = "a byte now and then";
    let siege = Siege::start("h2_stall_timeout = \"2s\"").await;
    let mut attackers = JoinSet::new();
    let connections = count(100, 10);
    for _ in 0..connections {
        let mut client = shut(&siege, "/large", 100).await;
        attackers.spawn(async move {
            for round in 0..count(700, 20) as u32 {
                let frame = Frame::window_update(stream(round % 100), 1);
                if client.send_frame(&frame).await.is_err() {
                    break;
                }
                pause(100).await;
            }
        });
    }
    siege.beside(name, attackers).await;
    siege.end(name, connections as u64).await;
}

/// Uploads that the origin does not read: buffered data is bounded, and the windows stay closed.
#[tokio::test(flavor = "multi_thread")]
async fn unread_uploads() {
    let name = "uploads that nobody reads";
    let siege = Siege::start("body_buffer_bytes = \"64KiB\"").await;
    let unread = testkit::origin::Script::default().without_reading_body().delay_ms(60_000);
    siege.stage.origin.on("/unread", unread);
    let mut attackers = JoinSet::new();
    let connections = count(9, 3);
    for _ in 0..connections {
        let client = Client::connect(siege.stage.daemon.addr()).await.expect("a connection");
        let mut client = client.patience(Duration::from_millis(500));
        attackers.spawn(async move {
            client.greet(&[]).await.expect("sent");
            let mut sent = 0;
            for n in 0..100 {
                let request = Request::post("/unread").bytes(stream(n), false);
                client.send(&request).await.expect("sent");
            }
            // As much as the windows ever permit.
            loop {
                let open = (0..100).map(stream).find(|s| client.judge().may_send(*s) > 0);
                let Some(open) = open else {
                    if client.until(|judge| (0..100).any(|n| judge.may_send(stream(n)) > 0)).await {
                        continue;
                    }
                    break;
                };
                let some = client.judge().may_send(open).min(16_384) as usize;
                let frame = Frame::data(open, &vec![b'x'; some], false);
                client.send_frame(&frame).await.expect("sent");
                sent += some;
                assert!(sent < 64 << 20, "windows without end");
            }
            sent
        });
    }
    let sent = siege.beside(name, attackers).await;
    // Most of it is in the system's buffers; the daemon's part was measured.
    println!("{name}: {sent:?} bytes were taken on each connection");
    siege.end(name, connections as u64).await;
}
