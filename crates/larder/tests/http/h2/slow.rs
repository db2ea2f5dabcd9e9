//! Clients that take or send almost nothing: their streams end, whatever they keep moving.

use testkit::h2::{Farewell, Frame, Manners, Request, RequestOutcome, error, setting};
use testkit::origin::Script;
use testkit::reply::ConnectionEnd;

use crate::support::h2::{Plain, client, greeted, limited};
use crate::support::{PATIENCE, Stage, eventually, pattern, pause};

/// Steps of a drip; by then everything here is long over.
const DROPS: usize = 600;
const DROP_MS: u64 = 50;

/// A stage where clients may be slow for a second and a half, with a large page that is not stored.
async fn stage(more: &str) -> Stage {
    let leeway = "send_rate_leeway = \"1500ms\"\nbody_rate_leeway = \"1500ms\"\n";
    let stage = limited(&format!("{leeway}{more}")).await;
    let body = String::from_utf8(pattern(400_000)).expect("letters");
    stage.origin.on("/large", Script::ok("Cache-Control: no-store\r\n", &body));
    stage.origin.on("/form", Script::ok("", "thanks"));
    stage
}

/// Sends `frame` again and again until `over`; whether it came to that.
async fn drip(client: &mut Plain, frame: &Frame, over: impl Fn(&Plain) -> bool) -> bool {
    for _ in 0..DROPS {
        if over(client) {
            return true;
        }
        // After the end of its stream or connection it has no effect.
        _ = client.send_frame(frame).await;
        client.ping().await;
        pause(DROP_MS).await;
    }
    false
}

fn is_over(client: &Plain, stream: u32) -> bool {
    client.judge().exchange(stream).is_some_and(|exchange| exchange.over())
}

/// Waits until no exchange with the origin is under way.
async fn origin_is_free(stage: &Stage) {
    eventually("the origin's connection to be free", async || {
        stage.metric("larder_server_in_flight").await == 0
    })
    .await;
}

#[tokio::test]
async fn a_stream_whose_window_opens_byte_by_byte_ends_and_frees_its_origin_connection() {
    let stage = stage("").await;
    let settings = [(setting::INITIAL_WINDOW_SIZE, 1)];
    let mut client = greeted(&stage.daemon, Manners::OWN_WINDOWS, &settings).await;
    let stream = client.ask(&Request::get("/large"), true).await.expect("sent");
    let more = Frame::window_update(stream, 1);
    assert!(drip(&mut client, &more, |client| is_over(client, stream)).await);
    let exchange = client.judge().exchange(stream).expect("a stream");
    assert_eq!(exchange.reset, Some(error::CANCEL));
    stage.daemon.assert_limit_count("send_min_rate", 1).await;
    origin_is_free(&stage).await;
    assert!(client.ping().await, "the connection goes on");
}

#[tokio::test]
async fn a_small_answer_frees_its_origin_before_its_client_reads_it() {
    let stage = limited("").await;
    let body = pattern(50_000);
    let text = String::from_utf8(body.clone()).expect("letters");
    stage.origin.on("/small", Script::ok("Cache-Control: no-store\r\n", &text));
    let settings = [(setting::INITIAL_WINDOW_SIZE, 1)];
    let mut client = greeted(&stage.daemon, Manners::OWN_WINDOWS, &settings).await;
    let stream = client.ask(&Request::get("/small"), true).await.expect("sent");
    eventually("it is asked for", async || stage.origin.seen("/small") == 1).await;
    origin_is_free(&stage).await;
    let got = |judge: &testkit::h2::Judge| judge.exchange(stream).map_or(0, |seen| seen.body.len());
    assert!(got(client.judge()) <= 1, "it waits for its client");
    for of in [0, stream] {
        client.send_frame(&Frame::window_update(of, 1 << 20)).await.expect("sent");
    }
    let RequestOutcome::Answered(answer) = client.outcome(stream).await else {
        panic!("no answer")
    };
    assert!(answer.body == body, "whole");
}

#[tokio::test]
async fn a_connection_whose_window_opens_byte_by_byte_ends() {
    let stage = stage("").await;
    let settings = [(setting::INITIAL_WINDOW_SIZE, 1 << 20)];
    let mut client = greeted(&stage.daemon, Manners::OWN_WINDOWS, &settings).await;
    client.ask(&Request::get("/large"), true).await.expect("sent");
    let ended = |client: &Plain| client.ending().end != ConnectionEnd::Open;
    assert!(drip(&mut client, &Frame::window_update(0, 1), ended).await);
    stage.daemon.assert_limit_count("send_min_rate", 1).await;
    origin_is_free(&stage).await;
}

#[tokio::test]
async fn a_stream_that_is_taken_fast_enough_stays() {
    let stage = stage("send_min_rate = \"100\"").await;
    let settings = [(setting::INITIAL_WINDOW_SIZE, 1_000)];
    let mut client = greeted(&stage.daemon, Manners::OWN_WINDOWS, &settings).await;
    let stream = client.ask(&Request::get("/large"), true).await.expect("sent");
    let more = Frame::window_update(stream, 1_000);
    for _ in 0..80 {
        client.send_frame(&more).await.expect("sent");
        assert!(client.ping().await && !is_over(&client, stream));
        pause(DROP_MS).await;
    }
    assert_eq!(stage.limit_hits("send_min_rate").await, 0);
}

#[tokio::test]
async fn a_response_ends_after_its_time_in_all() {
    let stage = stage("response_time = \"1s\"\nsend_min_rate = \"0\"").await;
    let settings = [(setting::INITIAL_WINDOW_SIZE, 1)];
    let mut client = greeted(&stage.daemon, Manners::OWN_WINDOWS, &settings).await;
    let stream = client.ask(&Request::get("/large"), true).await.expect("sent");
    let more = Frame::window_update(stream, 100);
    assert!(drip(&mut client, &more, |client| is_over(client, stream)).await);
    stage.daemon.assert_limit_count("response_time", 1).await;
    origin_is_free(&stage).await;
}

#[tokio::test]
async fn a_body_that_comes_byte_by_byte_is_refused() {
    for buffered in ["16KiB", "0"] {
        let stage = stage(&format!("body_buffer_bytes = \"{buffered}\"")).await;
        let mut client = client(&stage.daemon).await;
        let stream = client.ask(&Request::post("/form"), false).await.expect("sent");
        let more = Frame::data(stream, b"x", false);
        assert!(drip(&mut client, &more, |client| is_over(client, stream)).await, "{buffered}");
        let exchange = client.judge().exchange(stream).expect("a stream");
        assert_eq!(exchange.status, 408, "{buffered}");
        stage.daemon.assert_limit_count("body_min_rate", 1).await;
        origin_is_free(&stage).await;
        assert!(client.ping().await, "the connection goes on");
    }
}

#[tokio::test]
async fn a_ping_does_not_keep_an_idle_connection() {
    let stage = limited("idle_timeout = \"1s\"").await;
    stage.origin.on("/page", Script::cacheable("page"));
    let mut client = client(&stage.daemon).await;
    assert!(matches!(client.get("/page").await, RequestOutcome::Answered(_)));
    let begun = std::time::Instant::now();
    while client.ping().await {
        assert!(begun.elapsed() < PATIENCE, "the connection is kept");
        pause(DROP_MS).await;
    }
    let in_order = Farewell { code: Some(error::NO_ERROR), end: client.ending().end };
    assert_eq!(client.ending(), in_order);
    stage.daemon.assert_limit_count("idle_timeout", 1).await;
}
