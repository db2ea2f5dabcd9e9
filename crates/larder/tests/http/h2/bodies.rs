//! Tests of bodies in both directions: large, slow, and truncated ones.

use testkit::h2::{
    ConnectionEvent, Frame, Judge, Manners, Request, RequestOutcome, error, flag, kind, setting,
};
use testkit::origin::Script;

use super::ends::{Next, Scene};
use crate::support::h2::{client, greeted, limited, stage};
use crate::support::pattern;

const UNCACHED: &str = "Cache-Control: no-store\r\n";
const LARGE: usize = 5 << 20;

/// The listener of these tests, in the form of [`Scene`].
const LISTEN: &str = "127.0.0.1:0 h2c";

fn large() -> String {
    String::from_utf8(pattern(LARGE)).expect("letters")
}

#[tokio::test]
async fn large_bodies_arrive_whole_stored_or_not() {
    let stage = stage().await;
    stage.origin.on("/stored", Script::cacheable(&large()));
    stage.origin.on("/passed", Script::ok(UNCACHED, &large()));
    let chunk = format!("{:x}\r\n{}\r\n", LARGE, large());
    let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n";
    stage.origin.on("/unknown", Script::respond(format!("{head}{chunk}0\r\n\r\n")));
    let mut client = client(&stage.daemon).await;
    for path in ["/stored", "/stored", "/passed", "/unknown", "/unknown"] {
        let answer = client.get(path).await.answer(path);
        assert!(answer.body == pattern(LARGE), "{path}: {} bytes", answer.body.len());
    }
    // Frames up to a client's limit are optional, larger ones forbidden: the judge checks.
    let settings = [(setting::MAX_FRAME_SIZE, 1 << 18), (setting::INITIAL_WINDOW_SIZE, 1 << 24)];
    let mut client = greeted(&stage.daemon, Manners::GOOD, &settings).await;
    assert!(client.get("/stored").await.answer("/stored").body == pattern(LARGE));
}

#[tokio::test]
async fn what_the_origin_has_sent_so_far_is_on_its_way() {
    let scene = Scene::listening(LISTEN, "").await;
    for (number, framing) in ["Transfer-Encoding: chunked", "Content-Length: 8"].iter().enumerate()
    {
        let mut client = client(&scene.daemon).await;
        let stream = client.ask(&Request::get(&format!("/{number}")), true).await.expect("sent");
        let mut origin = scene.origin().await;
        origin.head().await;
        let chunked = framing.starts_with("Transfer");
        origin.send(format!("HTTP/1.1 200 OK\r\nConnection: close\r\n{framing}\r\n\r\n")).await;
        let headed = |judge: &Judge| judge.exchange(stream).is_some_and(|e| e.status == 200);
        assert!(client.until(headed).await, "the head alone");
        for part in ["some", "more"] {
            let sent = if chunked { format!("4\r\n{part}\r\n") } else { part.to_owned() };
            origin.send(sent).await;
            let arrived = |judge: &Judge| {
                judge.exchange(stream).is_some_and(|e| e.body.ends_with(part.as_bytes()))
            };
            assert!(client.until(arrived).await, "{part}");
        }
        if chunked {
            origin.send("0\r\n\r\n").await;
        }
        assert_eq!(client.outcome(stream).await.answer("stream").text(), "somemore");
    }
}

#[tokio::test]
async fn a_body_that_breaks_off_is_reset_and_not_ended() {
    let stage = stage().await;
    let sized = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 100\r\n\r\nhalf";
    let chunked = "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nTransfer-Encoding: chunked\r\n\r\n\
                   4\r\nhalf\r\n";
    for (path, head) in [("/sized", sized), ("/chunked", chunked)] {
        stage.origin.on(path, Script::respond(head).delay_ms(50).close());
    }
    let mut client = client(&stage.daemon).await;
    for path in ["/sized", "/chunked", "/sized"] {
        match client.get(path).await {
            RequestOutcome::Reset(code, exchange) => {
                assert!("half".starts_with(&exchange.text()), "{path}: {exchange:?}");
                assert_eq!(code, error::INTERNAL_ERROR, "{path}");
            }
            RequestOutcome::Answered(answer) if answer.status == 502 => {}
            other => panic!("{path}: {other:?}"),
        }
    }
    assert!(client.ping().await, "the connection goes on");
}

#[tokio::test]
async fn a_body_that_breaks_off_before_its_first_byte_is_a_page_in_either_protocol() {
    let stage = stage().await;
    let chunked = "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nTransfer-Encoding: chunked\r\n\r\n\
                   no chunk\r\n";
    stage.origin.on("/chunked", Script::respond(chunked).close());
    let page = "ended before the first byte";
    let answer = client(&stage.daemon).await.get("/chunked").await.answer("/chunked");
    assert!(answer.status == 502 && answer.text().contains(page), "{answer:?}");
    let reply = stage.get("/chunked").await;
    assert!(reply.status == 502 && reply.text().contains(page), "{reply:?}");
}

#[tokio::test]
async fn uploads_arrive_whole_whether_or_not_their_length_is_said() {
    let stage = stage().await;
    stage.origin.otherwise(Script::mirror(UNCACHED));
    let mut client = client(&stage.daemon).await;
    for size in [0, 1, 5_000, 16_384, 65_535, 65_536, 300_000, LARGE] {
        let body = pattern(size);
        for said in [true, false] {
            let mut request = Request::post("/form");
            if said {
                request = request.field("content-length", size.to_string());
            }
            let stream = client.ask(&request, false).await.expect("sent");
            let taken = client.upload(stream, &body).await;
            assert!(taken.is_ok(), "{size}, said: {said}: {taken:?}");
            let answer = client.outcome(stream).await.answer("/form");
            assert!(answer.body.ends_with(&body), "{size}, said: {said}");
            let received = stage.received();
            assert!(received.len() == 1 && received[0].body == body, "{size}, said: {said}");
            stage.origin.forget();
        }
    }
}

/// Together they exceed the connection's window; each is less than what is gathered before an
/// origin is asked, or than what is returned at once.
#[tokio::test]
async fn many_uploads_side_by_side_do_not_stop_each_other() {
    let stage = stage().await;
    stage.origin.otherwise(Script::mirror(UNCACHED));
    for (piece, pieces) in [(5_000, 5), (16_000, 4)] {
        let mut client = client(&stage.daemon).await;
        let mut streams = Vec::new();
        for _ in 0..90 {
            streams.push(client.ask(&Request::post("/up"), false).await.expect("sent"));
        }
        for number in 1..=pieces {
            for stream in &streams {
                let room = client.until(|judge| judge.may_send(*stream) >= piece as i64).await;
                assert!(room, "piece {number} of stream {stream}");
                let part = Frame::data(*stream, &pattern(piece), number == pieces);
                client.send_frame(&part).await.expect("sent");
            }
        }
        for stream in streams {
            let answer = client.outcome(stream).await.answer("/up");
            assert!(answer.body.ends_with(&pattern(piece).repeat(pieces)), "{stream}");
        }
    }
}

#[tokio::test]
async fn an_upload_too_large_is_refused_and_the_rest_of_the_connection_goes_on() {
    let stage = limited("request_body_bytes = \"64KiB\"").await;
    stage.origin.otherwise(Script::mirror(UNCACHED));
    let mut client = client(&stage.daemon).await;
    for request in [Request::post("/said").field("content-length", "100000"), Request::post("/")] {
        let stream = client.ask(&request, false).await.expect("sent");
        // The response may come before the end.
        _ = client.upload(stream, &pattern(100_000)).await;
        let answer = client.outcome(stream).await.answer("refused");
        assert_eq!(answer.status, 413);
        let answer = client.get("/next").await.answer("/next");
        assert!(answer.text().contains("GET /next"), "{}", answer.text());
    }
}

/// An early response: the client is asked to stop the upload (RFC 9113 8.1).
#[tokio::test]
async fn an_early_answer_ends_an_upload_in_order() {
    let stage = stage().await;
    let refusal =
        format!("HTTP/1.1 403 No\r\n{UNCACHED}Connection: close\r\nContent-Length: 2\r\n\r\nno");
    stage.origin.on("/up", Script::respond(refusal).without_reading_body().close());
    let mut client = client(&stage.daemon).await;
    let stream = client.ask(&Request::post("/up"), false).await.expect("sent");
    let part = Frame::data(stream, &pattern(16_384), false);
    for _ in 0..3 {
        client.send_frame(&part).await.expect("sent");
    }
    let answer = client.outcome(stream).await.answer("/up");
    assert_eq!((answer.status, answer.text().as_str()), (403, "no"));
    let told = client
        .until(|judge| judge.exchange(stream).is_some_and(|e| e.reset == Some(error::NO_ERROR)))
        .await;
    assert!(told, "RST_STREAM with NO_ERROR");
    assert!(client.ping().await);
    assert_eq!(client.get("/next").await.answer("/next").status, 404);
}

/// curl before 8.0 fails if it reads RST_STREAM together with the response.
#[tokio::test]
async fn an_early_answer_has_been_read_before_the_upload_is_ended() {
    let stage = limited("request_body_bytes = \"64KiB\"").await;
    let manners = Manners { acknowledges: false, ..Manners::GOOD };
    let mut client = greeted(&stage.daemon, manners, &[]).await;
    let request = Request::post("/up").field("content-length", "100000");
    let stream = client.ask(&request, false).await.expect("sent");
    let asked = loop {
        match client.step().await {
            ConnectionEvent::Frame(frame) if frame.kind == kind::PING => break frame,
            ConnectionEvent::Frame(_) => {}
            other => panic!("{other:?}"),
        }
    };
    let answer = client.outcome(stream).await.answer("/up");
    assert_eq!((answer.status, answer.reset), (413, None));
    client.send_frame(&Frame::data(stream, &pattern(16_384), false)).await.expect("sent");
    assert!(client.ping().await);
    let reset = |judge: &Judge| judge.exchange(stream).and_then(|exchange| exchange.reset);
    assert_eq!(reset(client.judge()), None, "the client has not said that it read the answer");
    let read = Frame::new(kind::PING, flag::ACK, 0, asked.payload);
    client.send_frame(&read).await.expect("sent");
    assert!(client.until(|judge| reset(judge) == Some(error::NO_ERROR)).await);
}

/// A client that sends no window update is asked to stop all the same.
#[tokio::test]
async fn an_unread_early_answer_ends_the_upload_after_a_time() {
    let stage = limited("request_body_bytes = \"64KiB\"\nlinger_timeout = \"50ms\"").await;
    let manners = Manners { acknowledges: false, ..Manners::GOOD };
    let mut client = greeted(&stage.daemon, manners, &[]).await;
    let request = Request::post("/up").field("content-length", "100000");
    let stream = client.ask(&request, false).await.expect("sent");
    assert_eq!(client.outcome(stream).await.answer("/up").status, 413);
    let reset = |judge: &Judge| judge.exchange(stream).and_then(|exchange| exchange.reset);
    assert!(client.until(|judge| reset(judge) == Some(error::NO_ERROR)).await);
    stage.daemon.assert_limit_count("linger_timeout", 1).await;
}

#[tokio::test]
async fn a_request_without_end_reaches_the_origin_piece_by_piece() {
    let scene = Scene::listening(LISTEN, "").await;
    let mut client = client(&scene.daemon).await;
    let stream = client.ask(&Request::post("/up"), false).await.expect("sent");
    client.send_frame(&Frame::data(stream, &pattern(16_384), false)).await.expect("sent");
    client.send_frame(&Frame::data(stream, &pattern(16_384), false)).await.expect("sent");
    let mut origin = scene.origin().await;
    let head = origin.head().await;
    assert!(head.to_lowercase().contains("transfer-encoding: chunked\r\n"), "{head}");
    origin.some().await;
    // The client aborts: no last chunk, and the connection ends.
    client.send_frame(&Frame::reset(stream, error::CANCEL)).await.expect("sent");
    let mut last = Vec::new();
    loop {
        match origin.next().await {
            Next::Bytes(bytes) => last.extend(bytes),
            Next::Silence => panic!("the origin is kept waiting"),
            Next::Closed | Next::Reset => break,
        }
    }
    assert!(!last.ends_with(b"0\r\n\r\n"), "a broken request must not look whole");
    assert!(client.ping().await, "and the client's connection goes on");
    assert_eq!(client.judge().count(kind::GOAWAY), 0);
}
