//! Tests of the order of DATA (RFC 9218). A closed window of the connection makes it visible: what
//! is sent when it opens was the server's choice.

use testkit::h2::{Frame, Manners, Request, setting};
use testkit::origin::Script;

use crate::support::h2::{Plain, greeted, stage};
use crate::support::{Stage, pattern};

const BODY: usize = 400_000;

/// A client whose connection window is used up by another stream's response.
async fn held_up() -> (Stage, Plain) {
    let stage = stage().await;
    let body = String::from_utf8(pattern(BODY)).expect("letters");
    for path in ["/first", "/a", "/b", "/c"] {
        stage.origin.on(path, Script::cacheable(&body));
        stage.get(path).await;
    }
    let settings = [(setting::INITIAL_WINDOW_SIZE, 1 << 20)];
    let mut client = greeted(&stage.daemon, Manners::OWN_WINDOWS, &settings).await;
    let request = Request::get("/first").field("priority", "u=3");
    let stream = client.ask(&request, true).await.expect("sent");
    let full =
        client.until(|judge| judge.exchange(stream).is_some_and(|e| e.body.len() == 65_535)).await;
    assert!(full);
    client.send_frame(&Frame::reset(stream, 8)).await.expect("sent");
    assert!(client.ping().await);
    (stage, client)
}

async fn ask(client: &mut Plain, path: &str, priority: &str) -> u32 {
    let mut request = Request::get(path);
    if !priority.is_empty() {
        request = request.field("priority", priority);
    }
    client.ask(&request, true).await.expect("sent")
}

/// Opens the connection's window by `bytes` and returns how many of them went to each of `streams`.
async fn shares<const N: usize>(client: &mut Plain, bytes: usize, streams: [u32; N]) -> [usize; N] {
    let lengths = |client: &Plain| {
        streams.map(|stream| client.judge().exchange(stream).map_or(0, |e| e.body.len()))
    };
    assert!(client.ping().await && client.ping().await, "all heads are there");
    let before = lengths(client);
    let wanted = before.iter().sum::<usize>() + bytes;
    client.send_frame(&Frame::window_update(0, bytes as u32)).await.expect("sent");
    let came = client
        .until(|judge| {
            let all = streams.iter().filter_map(|stream| judge.exchange(*stream));
            all.map(|exchange| exchange.body.len()).sum::<usize>() >= wanted
        })
        .await;
    assert!(came, "{before:?} to {:?}", lengths(client));
    let after = lengths(client);
    std::array::from_fn(|at| after[at] - before[at])
}

#[tokio::test]
async fn the_more_urgent_answer_goes_first() {
    let (_stage, mut client) = held_up().await;
    let late = ask(&mut client, "/a", "u=7").await;
    let usual = ask(&mut client, "/b", "").await;
    let urgent = ask(&mut client, "/c", "u=0").await;
    let order = [urgent, usual, late];
    assert_eq!(shares(&mut client, 100_000, order).await, [100_000, 0, 0]);
    assert_eq!(shares(&mut client, 300_000, order).await, [300_000, 0, 0]);
    assert_eq!(shares(&mut client, 400_000, order).await, [0, 400_000, 0]);
    assert_eq!(shares(&mut client, 10, order).await, [0, 0, 10]);
}

#[tokio::test]
async fn of_equals_the_first_goes_first_unless_they_are_of_use_in_parts() {
    let (_stage, mut client) = held_up().await;
    let order = [ask(&mut client, "/a", "u=2").await, ask(&mut client, "/b", "u=2").await];
    assert_eq!(shares(&mut client, 200_000, order).await, [200_000, 0]);
    let (_stage, mut client) = held_up().await;
    let parts = [
        ask(&mut client, "/a", "u=2, i").await,
        ask(&mut client, "/b", "u=2, i").await,
        ask(&mut client, "/c", "u=2, i").await,
    ];
    let shared = shares(&mut client, 300_000, parts).await;
    let [least, most] = [shared.iter().min(), shared.iter().max()].map(|n| n.copied().unwrap_or(0));
    assert!(least >= 60_000 && most <= 140_000, "{shared:?}");
}

#[tokio::test]
async fn a_client_may_change_its_mind() {
    let (_stage, mut client) = held_up().await;
    let first = ask(&mut client, "/a", "u=1").await;
    let second = ask(&mut client, "/b", "u=5").await;
    assert_eq!(shares(&mut client, 50_000, [first, second]).await, [50_000, 0]);
    client.send_frame(&Frame::priority_update(second, "u=0")).await.expect("sent");
    assert_eq!(shares(&mut client, 50_000, [first, second]).await, [0, 50_000]);
    client.send_frame(&Frame::priority_update(second, "u=6")).await.expect("sent");
    assert_eq!(shares(&mut client, 50_000, [first, second]).await, [50_000, 0]);
}

/// RFC 9218 7.1: it may come before its request.
#[tokio::test]
async fn a_wish_may_come_before_its_request() {
    let (_stage, mut client) = held_up().await;
    let first = ask(&mut client, "/a", "").await;
    client.send_frame(&Frame::priority_update(first + 2, "u=0")).await.expect("sent");
    let second = ask(&mut client, "/b", "").await;
    assert_eq!(second, first + 2);
    assert_eq!(shares(&mut client, 50_000, [first, second]).await, [0, 50_000]);
}

/// A malformed priority counts as the default, and is no error.
#[tokio::test]
async fn priorities_that_make_no_sense_are_ignored() {
    let (_stage, mut client) = held_up().await;
    let first = ask(&mut client, "/a", "u=99, ;;").await;
    let second = ask(&mut client, "/b", "frob").await;
    client.send_frame(&Frame::priority_update(second, "\"")).await.expect("sent");
    // PRIORITY frames of RFC 7540 are ignored.
    client.send_frame(&Frame::priority(second, 0, 255)).await.expect("sent");
    client.send_frame(&Frame::priority(first, second, 0)).await.expect("sent");
    assert_eq!(shares(&mut client, 50_000, [first, second]).await, [50_000, 0]);
    let announced = client.judge().setting(setting::NO_RFC7540_PRIORITIES);
    assert_eq!(announced, Some(1), "clients are told which kind counts");
}

/// A small urgent response does not wait behind large ones.
#[tokio::test]
async fn a_small_urgent_answer_passes_large_ones() {
    let (stage, mut client) = held_up().await;
    stage.origin.on("/small", Script::cacheable("small"));
    stage.get("/small").await;
    let mut streams = Vec::new();
    for path in ["/a", "/b", "/c"] {
        streams.push(ask(&mut client, path, "u=5").await);
    }
    let [a, b, c] = streams[..] else { panic!("three") };
    shares(&mut client, 100_000, [a, b, c]).await;
    let small = ask(&mut client, "/small", "u=0").await;
    assert!(client.ping().await && client.ping().await);
    client.send_frame(&Frame::window_update(0, 5)).await.expect("sent");
    assert_eq!(client.outcome(small).await.answer("/small").text(), "small");
}
