//! The scripted origin against the raw client: each sees what the other does.

use super::*;
use crate::client::{RawClient, WriteSplit, get, request};
use crate::reply::{ConnectionEnd, ReplyOutcome};

#[tokio::test]
async fn a_script_answers_its_target_and_the_connection_goes_on() {
    let origin = ScriptedOrigin::start().await.expect("a port");
    origin.on("/a", Script::cacheable("one"));
    let mut client = RawClient::connect(origin.addr()).await.expect("connected");
    for target in ["/a?query", "/missing"] {
        let seen = client.get(target).await.expect("sent");
        let reply = seen.complete().expect("whole").clone();
        assert_eq!(reply.status, if target == "/missing" { 404 } else { 200 });
    }
    assert_eq!((origin.seen("/a?query"), origin.seen("/a")), (1, 0));
    let recorded = origin.recorded();
    assert_eq!((recorded.len(), recorded[0].requests), (1, 2));
    assert_eq!(reference_reader::read_requests(&recorded[0].bytes).map(|all| all.len()), Ok(2));
}

#[tokio::test]
async fn a_reset_is_seen_as_reset_and_a_close_as_close() {
    let origin = ScriptedOrigin::start().await.expect("a port");
    origin.on("/reset", Script::respond("HTTP/1.1 200 OK\r\n\r\nab").delay_ms(20).reset());
    origin.on("/close", Script::respond("HTTP/1.1 200 OK\r\n\r\nab").close());
    let reset = get(origin.addr(), "/reset").await.expect("sent");
    assert!(matches!(reset, ReplyOutcome::Truncated(reply) if reply.body == b"ab"));
    let close = get(origin.addr(), "/close").await.expect("sent");
    assert!(matches!(close, ReplyOutcome::Complete(reply) if reply.body == b"ab"));
}

#[tokio::test]
async fn every_way_of_cutting_arrives_as_the_same_bytes() {
    for pieces in WriteSplit::ALL {
        let origin = ScriptedOrigin::start().await.expect("a port");
        origin.on("/p", Script::ok("", "read"));
        let sent = b"POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbody";
        let mut client = RawClient::connect(origin.addr()).await.expect("connected");
        client.send(sent, pieces).await.expect("sent");
        assert!(client.reply("POST").await.complete().is_some(), "{pieces:?}");
        assert_eq!(origin.recorded()[0].bytes, sent, "{pieces:?}");
    }
}

#[tokio::test]
async fn a_greeting_comes_before_any_request() {
    let origin = ScriptedOrigin::start().await.expect("a port");
    origin.on_accept(0, Script::respond("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").close());
    let mut client = RawClient::connect(origin.addr()).await.expect("connected");
    let (bytes, end) = client.rest().await;
    assert!(bytes.ends_with(b"hi"));
    assert_eq!(end, ConnectionEnd::Closed);
    assert!(origin.targets().is_empty());
}

#[tokio::test]
async fn a_body_may_be_left_unread_until_the_script_reads_it() {
    let origin = ScriptedOrigin::start().await.expect("a port");
    let script = Script::respond("HTTP/1.1 100 Continue\r\n\r\n").without_reading_body();
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    origin.on("/p", script.then(Action::ReadRequest).send(answer));
    let mut client = RawClient::connect(origin.addr()).await.expect("connected");
    let head = request("POST", "/p", "Expect: 100-continue\r\nContent-Length: 3\r\n");
    client.send(&head, WriteSplit::Whole).await.expect("sent");
    sleep(Duration::from_millis(10)).await;
    client.send(b"abc", WriteSplit::Whole).await.expect("sent");
    let seen = client.reply("POST").await;
    assert_eq!(seen.complete().map(|reply| reply.interim.clone()), Some(vec![100]));
}

#[tokio::test]
async fn what_is_no_http_is_recorded_to_the_last_byte() {
    let origin = ScriptedOrigin::start().await.expect("a port");
    let mut client = RawClient::connect(origin.addr()).await.expect("connected");
    client.send(b"nonsense\r\n\r\nGET /smuggled", WriteSplit::Whole).await.expect("sent");
    client.finish().await.expect("finished");
    assert_eq!(client.rest().await, (Vec::new(), ConnectionEnd::Closed));
    assert!(origin.recorded()[0].bytes.ends_with(b"/smuggled"));
}

#[tokio::test]
async fn a_mirror_shows_the_request_and_numbers_its_answers() {
    let origin = ScriptedOrigin::start().await.expect("a port");
    origin.otherwise(Script::mirror("Set-Cookie: sid={n}\r\n"));
    let sent = b"POST /p HTTP/1.1\r\nHost: h\r\nCookie: a=b\r\nContent-Length: 4\r\n\r\nbody";
    let mut client = RawClient::connect(origin.addr()).await.expect("connected");
    client.send(sent, WriteSplit::Whole).await.expect("sent");
    let first = client.reply("POST").await.complete().expect("whole").clone();
    let text = first.text();
    assert!(text.starts_with("answer 1\nPOST /p\n") && text.ends_with("\nbody"), "{text}");
    assert!(text.contains("\nCookie: a=b\n"), "{text}");
    client.send(&request("HEAD", "/p", ""), WriteSplit::Whole).await.expect("sent");
    let second = client.reply("HEAD").await.complete().expect("whole").clone();
    assert_eq!(second.field("set-cookie").as_deref(), Some("sid=2"));
}
