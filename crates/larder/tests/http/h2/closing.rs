//! The end of a connection in good order: GOAWAY (RFC 9113 6.8).

use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};
use testkit::h2::{Farewell, Frame, Manners, Request, RequestOutcome, error, kind, setting};
use testkit::larder::{Daemon, binary};
use testkit::origin::Script;
use testkit::reply::ConnectionEnd;

use super::ends::Scene;
use crate::support::h2::{Plain, client, greeted, limited, stage};
use crate::support::{Stage, pattern, pause};

const LISTEN: &str = "127.0.0.1:0 h2c";
const LARGE: usize = 4 << 20;
const IN_ORDER: Farewell = Farewell { code: Some(error::NO_ERROR), end: ConnectionEnd::Closed };

fn terminate(daemon: &Daemon) {
    let pid = Pid::from_raw(daemon.pid() as i32).expect("a process id");
    kill_process(pid, Signal::TERM).expect("our own child");
}

/// Two GOAWAYs: one that only warns, and one that names the last stream served.
fn warned_and_told(client: &Plain, last: u32) {
    assert_eq!(client.judge().goaways(), [(0x7fff_ffff, error::NO_ERROR), (last, error::NO_ERROR)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_lets_streams_finish_and_says_so_twice() {
    let scene = Scene::listening(LISTEN, "").await;
    let mut idle = client(&scene.daemon).await;
    assert!(idle.ping().await);
    let mut busy = client(&scene.daemon).await;
    let stream = busy.ask(&Request::get("/slow"), true).await.expect("sent");
    let mut origin = scene.origin().await;
    origin.head().await;
    origin.send("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nslow").await;
    terminate(&scene.daemon);
    assert!(busy.until(|judge| judge.count(kind::GOAWAY) > 0).await, "a warning");
    assert!(busy.ping().await, "it still listens");
    origin.send("page").await;
    assert_eq!(busy.outcome(stream).await.answer("/slow").text(), "slowpage");
    assert_eq!(busy.rest().await, Ok(IN_ORDER));
    warned_and_told(&busy, stream);
    assert_eq!(idle.rest().await, Ok(IN_ORDER));
    assert_eq!(idle.judge().goaways().last(), Some(&(0, error::NO_ERROR)));
    let mut daemon = scene.daemon;
    let ended = tokio::task::spawn_blocking(move || daemon.wait()).await.expect("no panic");
    assert!(ended.expect("it ends").success());
}

/// A request that was on its way when the warning went out is served, not lost.
#[tokio::test(flavor = "multi_thread")]
async fn what_crosses_the_warning_is_served() {
    let scene = Scene::listening(LISTEN, "").await;
    let mut busy = client(&scene.daemon).await;
    let first = busy.ask(&Request::get("/1"), true).await.expect("sent");
    let mut origin = scene.origin().await;
    origin.head().await;
    terminate(&scene.daemon);
    assert!(busy.until(|judge| judge.count(kind::GOAWAY) > 0).await, "a warning");
    let crossed = busy.ask(&Request::get("/2").field("cookie", "a=1"), true).await.expect("sent");
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let mut other = scene.origin().await;
    other.head().await;
    other.send(answer).await;
    assert_eq!(busy.outcome(crossed).await.answer("/2").text(), "ok");
    origin.send(answer).await;
    assert_eq!(busy.outcome(first).await.answer("/1").text(), "ok");
    assert_eq!(busy.rest().await, Ok(IN_ORDER));
    warned_and_told(&busy, crossed);
}

#[tokio::test]
async fn a_reload_loses_nothing() {
    let scene = Scene::listening(LISTEN, "").await;
    let mut busy = client(&scene.daemon).await;
    let stream = busy.ask(&Request::get("/slow"), true).await.expect("sent");
    let mut origin = scene.origin().await;
    origin.head().await;
    let socket = scene.daemon.admin_socket();
    let reload = move || {
        let program = binary().expect("it is there");
        Command::new(program).args(["reload", "--admin-socket"]).arg(socket).status()
    };
    let status = tokio::task::spawn_blocking(reload).await.expect("it ran").expect("it started");
    assert!(status.success());
    origin.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nslow").await;
    assert_eq!(busy.outcome(stream).await.answer("/slow").text(), "slow");
    // The connection goes on, or ends as it should and another is opened.
    let mut next = match busy.judge().count(kind::GOAWAY) {
        0 => busy,
        _ => client(&scene.daemon).await,
    };
    let stream = next.ask(&Request::get("/next"), true).await.expect("sent");
    let mut origin = scene.origin().await;
    origin.head().await;
    origin.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnext").await;
    assert_eq!(next.outcome(stream).await.answer("/next").text(), "next");
}

#[tokio::test]
async fn an_idle_connection_ends_in_order() {
    let stage = limited("idle_timeout = \"300ms\"").await;
    stage.origin.on("/page", Script::cacheable("page"));
    let mut client = client(&stage.daemon).await;
    for _ in 0..2 {
        assert_eq!(client.get("/page").await.answer("/page").text(), "page");
    }
    assert_eq!(client.rest().await, Ok(IN_ORDER));
    assert_eq!(client.judge().goaways().last(), Some(&(3, error::NO_ERROR)));
}

/// The origin responds after the client has sent nothing for a while.
#[tokio::test]
async fn an_idle_connection_ends_after_an_answer_that_took_its_time() {
    let stage = limited("idle_timeout = \"300ms\"").await;
    let page = Script::default()
        .delay_ms(50)
        .send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\nCache-Control: no-store\r\n\r\npage");
    stage.origin.on("/page", page);
    let mut client = client(&stage.daemon).await;
    assert_eq!(client.get("/page").await.answer("/page").text(), "page");
    assert_eq!(client.rest().await, Ok(IN_ORDER));
}

/// A client that ignores the first GOAWAY, and does not answer the PING behind it.
#[tokio::test]
async fn a_client_that_overhears_the_warning_is_left_all_the_same() {
    let stage = limited("keepalive_requests = 5").await;
    stage.origin.on("/page", Script::cacheable("page"));
    let mut client = greeted(&stage.daemon, Manners::NONE, &[]).await;
    for n in 0..500 {
        let Ok(stream) = client.ask(&Request::get("/page"), true).await else { break };
        let RequestOutcome::Answered(_) = client.outcome(stream).await else { break };
        assert!(n < 499, "it goes on for ever");
        pause(10).await;
    }
    assert_eq!(client.judge().goaways().len(), 2);
}

#[tokio::test]
async fn a_connection_serves_so_many_requests_and_then_ends_in_order() {
    let stage = limited("keepalive_requests = 5").await;
    stage.origin.on("/page", Script::cacheable("page"));
    let mut client = client(&stage.daemon).await;
    for n in 0..5 {
        assert_eq!(client.get("/page").await.answer("/page").text(), "page", "{n}");
    }
    assert_eq!(client.rest().await, Ok(IN_ORDER));
}

/// A client with windows for all of `/large`, which it has requested and does not read.
async fn slow_reader(stage: &Stage) -> (Plain, u32) {
    let body = String::from_utf8(pattern(LARGE)).expect("letters");
    stage.origin.on("/large", Script::cacheable(&body));
    stage.get("/large").await;
    let settings = [(setting::INITIAL_WINDOW_SIZE, 8 << 20)];
    let mut client = greeted(&stage.daemon, Manners::GOOD, &settings).await;
    client.send_frame(&Frame::window_update(0, 8 << 20)).await.expect("sent");
    assert!(client.ping().await);
    let stream = client.ask(&Request::get("/large"), true).await.expect("sent");
    (client, stream)
}

/// Reads on, late, and asserts that all of it is there.
async fn reads_late(mut client: Plain, stream: u32) {
    for _ in 0..10 {
        pause(50).await;
        client.send_frame(&Frame::window_update(0, 1_024)).await.expect("sent");
    }
    let answer = client.outcome(stream).await.answer("/large");
    assert!(answer.body == pattern(LARGE));
    assert_eq!(client.rest().await, Ok(IN_ORDER));
}

/// A server that has sent everything still reads and discards its client's data. A reset would
/// destroy the end of the response.
#[tokio::test]
async fn a_slow_reader_gets_everything_before_the_end() {
    let stage = limited("keepalive_requests = 1").await;
    let (client, stream) = slow_reader(&stage).await;
    reads_late(client, stream).await;
}

#[tokio::test]
async fn a_slow_reader_gets_everything_before_a_stop() {
    let stage = stage().await;
    let (mut client, stream) = slow_reader(&stage).await;
    let begun = client.until(|judge| judge.exchange(stream).is_some_and(|e| e.status > 0)).await;
    assert!(begun);
    terminate(&stage.daemon);
    reads_late(client, stream).await;
}

#[tokio::test]
async fn a_client_that_says_goodbye_still_gets_its_answers() {
    let stage = stage().await;
    let head = "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 4\r\n\r\n";
    let slow = Script::default().delay_ms(300).send(format!("{head}slow"));
    stage.origin.on("/slow", slow);
    let mut client = client(&stage.daemon).await;
    let stream = client.ask(&Request::get("/slow"), true).await.expect("sent");
    client.send_frame(&Frame::goaway(0, error::NO_ERROR, b"bye")).await.expect("sent");
    assert_eq!(client.outcome(stream).await.answer("/slow").text(), "slow");
    let ending = client.rest().await.expect("no fault");
    assert_eq!(ending.end, ConnectionEnd::Closed);
    assert!(matches!(ending.code, None | Some(error::NO_ERROR)), "{ending:?}");
}

/// A client may end its sending side behind its last request, as with HTTP/1.
#[tokio::test]
async fn a_half_closed_connection_gets_its_answers() {
    let stage = stage().await;
    stage.origin.on("/page", Script::cacheable("page"));
    let mut client = client(&stage.daemon).await;
    client.get("/page").await.answer("/page");
    let stream = client.ask(&Request::get("/page"), true).await.expect("sent");
    client.finish().await.expect("half closed");
    assert_eq!(client.outcome(stream).await.answer("/page").text(), "page");
    assert_eq!(client.rest().await.expect("no fault").end, ConnectionEnd::Closed);
}
