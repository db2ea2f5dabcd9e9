//! Tests of flow control to the byte (RFC 9113 6.9). The judge counts every byte against both
//! windows; these tests check that all of a window is used, and when.

use testkit::h2::{Frame, Manners, Request, setting};
use testkit::origin::Script;

use crate::support::Stage;
use crate::support::h2::{Plain, greeted, stage};
use crate::support::pattern;

const BODY: usize = 200_000;

async fn stored() -> Stage {
    let stage = stage().await;
    let body = String::from_utf8(pattern(BODY)).expect("letters");
    for path in ["/a", "/b"] {
        stage.origin.on(path, Script::cacheable(&body));
        stage.get(path).await;
    }
    stage
}

/// A client that controls its windows, `initial` for each stream.
async fn careful(stage: &Stage, initial: u32) -> Plain {
    let settings = [(setting::INITIAL_WINDOW_SIZE, initial)];
    greeted(&stage.daemon, Manners::OWN_WINDOWS, &settings).await
}

fn received(client: &Plain, stream: u32) -> usize {
    client.judge().exchange(stream).map_or(0, |exchange| exchange.body.len())
}

/// Waits until `stream` has `bytes` of body, and checks that no more come.
async fn exactly(client: &mut Plain, stream: u32, bytes: usize) {
    let there = client
        .until(|judge| {
            judge.exchange(stream).is_some_and(|e| e.body.len() >= bytes && e.status > 0)
        })
        .await;
    assert!(there, "{} of {bytes} bytes: {:?}", received(client, stream), client.step().await);
    // Twice: what a first PING overtook has arrived before the second.
    assert!(client.ping().await && client.ping().await, "the server answers");
    assert_eq!(received(client, stream), bytes);
}

async fn open(client: &mut Plain, stream: u32, bytes: u32) {
    client.send_frame(&Frame::window_update(stream, bytes)).await.expect("sent");
}

#[tokio::test]
async fn a_window_of_one_byte_is_used_byte_by_byte() {
    let stage = stored().await;
    let mut client = careful(&stage, 1).await;
    let stream = client.ask(&Request::get("/a"), true).await.expect("sent");
    for bytes in 1..20 {
        exactly(&mut client, stream, bytes).await;
        open(&mut client, stream, 1).await;
    }
    exactly(&mut client, stream, 20).await;
    open(&mut client, stream, 7).await;
    exactly(&mut client, stream, 27).await;
    let exchange = client.judge().exchange(stream).expect("a stream");
    assert!(pattern(BODY).starts_with(&exchange.body));
    assert!(!exchange.whole);
}

#[tokio::test]
async fn a_shut_window_lets_the_head_through_and_opens_by_settings() {
    let stage = stored().await;
    let mut client = careful(&stage, 0).await;
    let stream = client.ask(&Request::get("/a"), true).await.expect("sent");
    exactly(&mut client, stream, 0).await;
    for window in [10, 1_000, 5_000] {
        let frame = Frame::settings(&[(setting::INITIAL_WINDOW_SIZE, window)]);
        client.send_frame(&frame).await.expect("sent");
        exactly(&mut client, stream, window as usize).await;
    }
    // An empty response needs no window.
    stage.origin.on("/empty", Script::cacheable(""));
    client.send_frame(&Frame::settings(&[(setting::INITIAL_WINDOW_SIZE, 0)])).await.expect("sent");
    assert_eq!(client.get("/empty").await.answer("/empty").status, 200);
}

#[tokio::test]
async fn a_window_may_become_negative_and_comes_back() {
    let stage = stored().await;
    let mut client = careful(&stage, 1_000).await;
    let stream = client.ask(&Request::get("/a"), true).await.expect("sent");
    exactly(&mut client, stream, 1_000).await;
    let less = Frame::settings(&[(setting::INITIAL_WINDOW_SIZE, 10)]);
    client.send_frame(&less).await.expect("sent");
    // A window of -990 bytes.
    open(&mut client, stream, 989).await;
    exactly(&mut client, stream, 1_000).await;
    open(&mut client, stream, 1).await;
    exactly(&mut client, stream, 1_000).await;
    open(&mut client, stream, 5).await;
    exactly(&mut client, stream, 1_005).await;
    let more = Frame::settings(&[(setting::INITIAL_WINDOW_SIZE, 20)]);
    client.send_frame(&more).await.expect("sent");
    exactly(&mut client, stream, 1_015).await;
}

#[tokio::test]
async fn the_connections_window_is_shared_by_its_streams() {
    let stage = stored().await;
    let mut client = careful(&stage, 1 << 20).await;
    let first = client.ask(&Request::get("/a"), true).await.expect("sent");
    let second = client.ask(&Request::get("/b"), true).await.expect("sent");
    let all = |client: &Plain| received(client, first) + received(client, second);
    for (more, sum) in [(0, 65_535), (1, 65_536), (10_000, 75_536), (64_464, 140_000)] {
        if more > 0 {
            open(&mut client, 0, more).await;
        }
        let there = client
            .until(|judge| {
                let both = [first, second].into_iter().filter_map(|stream| judge.exchange(stream));
                both.map(|exchange| exchange.body.len()).sum::<usize>() >= sum
            })
            .await;
        assert!(there && client.ping().await && client.ping().await);
        assert_eq!(all(&client), sum);
    }
    open(&mut client, 0, 1 << 20).await;
    for stream in [first, second] {
        assert!(client.outcome(stream).await.answer("whole").body == pattern(BODY));
    }
}

#[tokio::test]
async fn one_stream_without_window_does_not_hold_up_the_others() {
    let stage = stored().await;
    let mut client = careful(&stage, 0).await;
    let stuck = client.ask(&Request::get("/a"), true).await.expect("sent");
    exactly(&mut client, stuck, 0).await;
    for _ in 0..3 {
        let stream = client.ask(&Request::get("/b"), true).await.expect("sent");
        open(&mut client, stream, BODY as u32).await;
        open(&mut client, 0, BODY as u32).await;
        assert!(client.outcome(stream).await.answer("/b").body == pattern(BODY));
    }
    assert_eq!(received(&client, stuck), 0);
    open(&mut client, stuck, BODY as u32).await;
    open(&mut client, 0, BODY as u32).await;
    assert!(client.outcome(stuck).await.answer("/a").body == pattern(BODY));
}

#[tokio::test]
async fn windows_may_be_as_large_as_they_get() {
    let stage = stored().await;
    let mut client = careful(&stage, 0x7fff_ffff).await;
    open(&mut client, 0, 0x7fff_ffff - 65_535).await;
    for path in ["/a", "/b"] {
        assert!(client.get(path).await.answer(path).body == pattern(BODY));
    }
}
