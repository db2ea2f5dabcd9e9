//! Tests of messages between clients, daemon and origin: versions, framing, pipelining, uploads.

use crate::support;

use std::time::Duration;

use support::h2::{H2C, client};
use support::{PATIENCE, Setup, Stage, pattern, whole};
use testkit::client::{WriteSplit, request};
use testkit::h2::{Request, RequestOutcome};
use testkit::origin::Script;
use testkit::reply::{ConnectionEnd, Ending, ReplyOutcome};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

const TEXT: &str = "0123456789abcdefghij";
const LARGE: usize = 8 << 20;

fn old_request(target: &str, fields: &str) -> Vec<u8> {
    format!("GET {target} HTTP/1.0\r\nHost: larder.test\r\n{fields}\r\n").into_bytes()
}

#[tokio::test]
async fn a_client_of_1_0_is_kept_only_when_it_asks() {
    let stage = Stage::new().await;
    stage.origin.on("/page", Script::cacheable(TEXT));
    stage.get("/page").await;
    let mut plain = stage.connect().await;
    plain.send(&old_request("/page", ""), WriteSplit::Whole).await.expect("sent");
    let reply = whole(plain.reply("GET").await, "HTTP/1.0");
    assert_eq!((reply.text().as_str(), reply.closes()), (TEXT, true));
    assert_eq!(plain.rest().await, (Vec::new(), ConnectionEnd::Closed));

    let mut kept = stage.connect().await;
    for _ in 0..3 {
        let asks = old_request("/page", "Connection: keep-alive\r\n");
        kept.send(&asks, WriteSplit::Whole).await.expect("sent");
        let reply = whole(kept.reply("GET").await, "HTTP/1.0 kept");
        assert_eq!(reply.text(), TEXT);
        let connection = reply.field("connection").map(|c| c.to_ascii_lowercase());
        assert_eq!(connection.as_deref(), Some("keep-alive"));
    }
}

#[tokio::test]
async fn a_client_of_1_1_may_ask_for_the_end() {
    let stage = Stage::new().await;
    stage.origin.on("/page", Script::cacheable(TEXT));
    for _ in 0..2 {
        let mut raw = stage.connect().await;
        raw.send(&request("GET", "/page", "Connection: close\r\n"), WriteSplit::Whole)
            .await
            .expect("sent");
        let reply = whole(raw.reply("GET").await, "Connection: close");
        assert_eq!((reply.text().as_str(), reply.closes()), (TEXT, true));
        assert_eq!(raw.rest().await, (Vec::new(), ConnectionEnd::Closed));
    }
}

#[tokio::test]
async fn a_body_of_unknown_length_is_chunked_for_1_1_and_ended_by_closing_for_1_0() {
    let stage = Stage::new().await;
    let chunked = "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nTransfer-Encoding: chunked\r\n\r\n\
                   a\r\n0123456789\r\na\r\nabcdefghij\r\n0\r\n\r\n";
    stage.origin.on("/page", Script::respond(chunked));
    let new = stage.get("/page").await;
    assert_eq!((new.text().as_str(), new.ending), (TEXT, Ending::LastChunk));
    for fields in ["", "Connection: keep-alive\r\n"] {
        let old = stage.exchange("GET", &old_request("/page", fields)).await;
        assert_eq!((old.text().as_str(), old.ending), (TEXT, Ending::Close), "{fields}");
        assert_eq!(old.field("transfer-encoding"), None);
    }
    // The framing of chunks is no content.
    stage.daemon.assert_metric("larder_response_body_bytes_total", 3 * TEXT.len() as u64).await;
}

#[tokio::test]
async fn a_body_that_only_closing_ends_is_passed_on_and_not_stored() {
    let stage = Stage::new().await;
    let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=300\r\n\r\n";
    stage.origin.on("/page", Script::respond(format!("{head}{TEXT}")).close());
    // Without framing it cannot be known to be complete.
    for count in 1..=3 {
        let reply = stage.get("/page").await;
        assert_eq!((reply.text().as_str(), reply.ending), (TEXT, Ending::LastChunk));
        assert_eq!(stage.origin.seen("/page"), count);
    }
}

#[tokio::test]
async fn pipelined_hits_are_answered_in_order_and_in_one_go() {
    let stage = Stage::new().await;
    let targets = ["/a", "/b", "/c", "/a", "/c"];
    for target in targets {
        stage.origin.on(target, Script::cacheable(&format!("body of {target}")));
        stage.get(target).await;
    }
    let mut stream = TcpStream::connect(stage.daemon.addr()).await.expect("a connection");
    let asked: Vec<u8> = targets.iter().flat_map(|t| request("GET", t, "")).collect();
    stream.write_all(&asked).await.expect("sent");
    let mut answers = vec![0; 64 * 1024];
    let read = timeout(PATIENCE, stream.read(&mut answers)).await.expect("in time").expect("read");
    answers.truncate(read);
    let text = String::from_utf8(answers).expect("ASCII");
    let bodies: Vec<_> =
        text.match_indices("body of /").map(|(at, _)| &text[at + 8..at + 10]).collect();
    assert_eq!(bodies, targets, "{text}");
}

#[tokio::test]
async fn pipelined_requests_of_every_kind_are_answered_in_order() {
    let stage = Stage::new().await;
    stage.origin.on("/hit", Script::cacheable("hit"));
    stage.get("/hit").await;
    stage.origin.on(
        "/slow",
        Script::default()
            .delay_ms(200)
            .send("HTTP/1.1 200 OK\r\nCache-Control: max-age=300\r\nContent-Length: 4\r\n\r\nslow"),
    );
    stage.origin.on("/form", Script::ok("", "form"));
    let large = String::from_utf8(pattern(300_000)).expect("letters");
    stage.origin.on("/large", Script::cacheable(&large));
    let mut asked = Vec::new();
    asked.extend(request("GET", "/hit", ""));
    asked.extend(request("GET", "/slow", ""));
    asked.extend(request("POST", "/form", "Content-Length: 5\r\n"));
    asked.extend_from_slice(b"hello");
    asked.extend(request("GET", "/large", ""));
    asked.extend(request("GET", "/hit", ""));
    asked.extend(request("GET", "/large", ""));
    asked.extend(request("HEAD", "/large", ""));
    asked.extend(request("GET", "/slow", ""));
    let mut raw = stage.connect().await;
    raw.send(&asked, WriteSplit::Whole).await.expect("sent");
    for (method, body) in [
        ("GET", "hit"),
        ("GET", "slow"),
        ("POST", "form"),
        ("GET", large.as_str()),
        ("GET", "hit"),
        ("GET", large.as_str()),
        ("HEAD", ""),
        ("GET", "slow"),
    ] {
        let reply = whole(raw.reply(method).await, body.get(..4).unwrap_or(body));
        assert!(reply.text() == body, "{method}: {} bytes", reply.body.len());
    }
}

#[tokio::test]
async fn a_client_that_expects_it_gets_a_100() {
    let stage = Stage::new().await;
    stage.origin.on("/form", Script::ok("", TEXT));
    let mut stream = TcpStream::connect(stage.daemon.addr()).await.expect("a connection");
    let head = request("POST", "/form", "Content-Length: 5\r\nExpect: 100-continue\r\n");
    stream.write_all(&head).await.expect("sent");
    let mut told = vec![0; 25];
    timeout(PATIENCE, stream.read_exact(&mut told)).await.expect("in time").expect("read");
    assert_eq!(told, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"hello").await.expect("sent");
    let mut answer = [0; 15];
    timeout(PATIENCE, stream.read_exact(&mut answer)).await.expect("in time").expect("read");
    assert_eq!(&answer, b"HTTP/1.1 200 OK");
    let sent = stage.sole_request("/form");
    assert_eq!(sent.body, b"hello");
    assert!(sent.values("expect").is_empty());
}

#[tokio::test]
async fn an_expectation_that_cannot_be_met_is_refused_at_once() {
    let stage =
        Setup { limits: "request_body_bytes = \"64KiB\"", ..Setup::default() }.start().await;
    let head = request("POST", "/form", "Content-Length: 100000\r\nExpect: 100-continue\r\n");
    let reply = stage.exchange("POST", &head).await;
    assert_eq!((reply.status, reply.interim.as_slice()), (413, &[][..]));
    assert_eq!(stage.origin.seen("/form"), 0);
}

const HINTS: &str = "HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n";

#[tokio::test]
async fn interim_responses_are_forwarded_to_1_1_and_not_to_1_0() {
    let stage = Stage::new().await;
    for (target, control) in [("/pass", "no-store"), ("/store", "max-age=300")] {
        let answer = format!(
            "{HINTS}HTTP/1.1 200 OK\r\nCache-Control: {control}\r\nContent-Length: 2\r\n\r\nok"
        );
        stage.origin.on(target, Script::respond(answer.clone()));
        let new = stage.get(target).await;
        assert_eq!((new.status, new.interim.as_slice()), (200, &[103][..]), "{target}");
        stage.origin.on("/old", Script::respond(answer));
        let old = stage.exchange("GET", &old_request("/old", "")).await;
        assert_eq!((old.status, old.interim.as_slice(), old.text().as_str()), (200, &[][..], "ok"));
    }
    assert_eq!(stage.get("/store").await.interim, [0; 0], "they are not stored");
}

#[tokio::test]
async fn interim_responses_do_not_wait_for_the_final_one() {
    let stage = Stage::new().await;
    stage.origin.otherwise(Script::respond(HINTS).hang());
    let form = [request("POST", "/form", "Content-Length: 5\r\n"), b"hello".to_vec()].concat();
    let own = request("GET", "/own", "Authorization: Basic eA==\r\n");
    for asked in [request("GET", "/page", ""), own, form] {
        let mut stream = TcpStream::connect(stage.daemon.addr()).await.expect("a connection");
        stream.write_all(&asked).await.expect("sent");
        let mut told = vec![0; HINTS.len()];
        timeout(PATIENCE, stream.read_exact(&mut told)).await.expect("in time").expect("read");
        assert_eq!(String::from_utf8_lossy(&told), HINTS);
    }
}

#[tokio::test]
async fn interim_responses_come_before_an_error_too() {
    let stage = Stage::new().await;
    stage.origin.on("/page", Script::respond(HINTS).close());
    let reply = stage.get("/page").await;
    assert_eq!((reply.status, reply.interim.as_slice()), (502, &[103][..]));
}

#[tokio::test]
async fn interim_responses_are_for_the_request_that_leads_the_fetch() {
    let stage = Stage::new().await;
    let last = "HTTP/1.1 200 OK\r\nCache-Control: max-age=300\r\nContent-Length: 2\r\n\r\nok";
    stage.origin.on("/page", Script::respond(HINTS).delay_ms(500).send(last));
    let mut first = stage.connect().await;
    first.send(&request("GET", "/page", ""), WriteSplit::Whole).await.expect("sent");
    let asked = async || stage.origin.seen("/page") == 1;
    support::eventually("the fetch", asked).await;
    let (first, second) = tokio::join!(first.reply("GET"), stage.get("/page"));
    assert_eq!(whole(first, "/page").interim, [103]);
    assert_eq!((second.interim.as_slice(), second.text().as_str()), (&[][..], "ok"));
    assert_eq!(stage.origin.seen("/page"), 1);
}

#[tokio::test]
async fn interim_responses_a_client_does_not_read_stay_whole_and_in_order() {
    let stage = Stage::new().await;
    let link = format!("Link: </{}>; rel=preload\r\n", "x".repeat(7_000));
    let hints = format!("HTTP/1.1 103 Early Hints\r\n{}\r\n", link.repeat(4)).repeat(10);
    let last = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n";
    stage.origin.on("/page", Script::respond(hints.clone() + last).delay_ms(300).send("ok"));
    let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(4 * 1024).expect("a small buffer");
    let mut stream = socket.connect(stage.daemon.addr()).await.expect("a connection");
    let asked = request("GET", "/page", "Connection: close\r\n");
    stream.write_all(&asked).await.expect("sent");
    support::pause(500).await;
    let mut received = String::new();
    let read = timeout(PATIENCE, stream.read_to_string(&mut received)).await;
    read.expect("in time").expect("read");
    assert!(received.starts_with(&hints), "{} bytes", received.len());
    assert!(received[hints.len()..].starts_with("HTTP/1.1 200 OK\r\n"));
}

#[tokio::test]
async fn options_go_as_far_as_they_may() {
    let stage = Stage::new().await;
    stage.origin.otherwise(Script::ok("", "origin"));
    for (field, sent) in [
        ("Max-Forwards: 1\r\n", "0"),
        ("Max-Forwards: 12\r\n", "11"),
        ("Max-Forwards: many\r\n", "many"),
        ("", ""),
    ] {
        assert_eq!(stage.ask("OPTIONS", "/page", field).await.text(), "origin");
        assert_eq!(support::sent_field(&stage.sole_request("/page"), "max-forwards"), sent);
        stage.origin.forget();
    }
    let mut raw = stage.connect().await;
    for fields in ["", "Content-Length: 5\r\n"] {
        let asked = request("OPTIONS", "/page", &format!("Max-Forwards: 0\r\n{fields}"));
        raw.send(&asked, WriteSplit::Whole).await.expect("sent");
        raw.send(&b"hello"[..if fields.is_empty() { 0 } else { 5 }], WriteSplit::Whole)
            .await
            .expect("sent");
        let reply = whole(raw.reply("OPTIONS").await, "Max-Forwards: 0");
        assert_eq!((reply.status, reply.closes()), (204, false));
        assert!(reply.field("allow").is_some_and(|allow| allow.contains("OPTIONS")));
    }
    // TRACE is always rejected; other methods ignore the field.
    for hops in 0..=1 {
        let field = format!("Max-Forwards: {hops}\r\n");
        assert_eq!(stage.ask("TRACE", "/page", &field).await.status, 405);
    }
    assert_eq!(stage.origin.targets(), Vec::<String>::new());
    assert_eq!(stage.ask("GET", "/page", "Max-Forwards: 0\r\n").await.text(), "origin");
    assert_eq!(support::sent_field(&stage.sole_request("/page"), "max-forwards"), "0");
}

/// `body` as chunks of different sizes.
fn chunks(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len() + 64 * 1024);
    let mut rest = body;
    let mut size = 1;
    while !rest.is_empty() {
        let (chunk, after) = rest.split_at(size.min(rest.len()));
        out.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        out.extend_from_slice(chunk);
        out.extend_from_slice(b"\r\n");
        rest = after;
        size = size * 3 % 100_003;
    }
    out.extend_from_slice(b"0\r\n\r\n");
    out
}

#[tokio::test]
async fn large_uploads_arrive_byte_for_byte() {
    let stage = Stage::new().await;
    let body = pattern(LARGE);
    for (target, framing, sent) in [
        ("/length", format!("Content-Length: {LARGE}\r\n"), body.clone()),
        ("/chunked", "Transfer-Encoding: chunked\r\n".to_owned(), chunks(&body)),
    ] {
        stage.origin.on(target, Script::ok("", "thanks"));
        let mut raw = stage.connect().await;
        raw.send(&request("POST", target, &framing), WriteSplit::Whole).await.expect("sent");
        raw.send(&sent, WriteSplit::Whole).await.expect("sent");
        let reply = whole(raw.reply("POST").await, target);
        assert_eq!((reply.status, reply.text().as_str()), (200, "thanks"));
        let received = stage.sole_request(target);
        assert!(received.body == body, "{target}: {} bytes arrived", received.body.len());
        stage.origin.forget();
        // The connection goes on.
        assert_eq!(whole(raw.get(target).await.expect("sent"), "after it").text(), "thanks");
        stage.origin.forget();
    }
}

#[tokio::test]
async fn a_small_upload_takes_no_connection_to_the_origin_before_it_is_whole() {
    for (framing, first, rest) in [
        ("Content-Length: 10\r\n", "hello", "world"),
        ("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n", "5\r\nworld\r\n0\r\n\r\n"),
    ] {
        let stage = Stage::new().await;
        stage.origin.on("/form", Script::ok("", "thanks"));
        let mut gone = stage.connect().await;
        let mut stays = stage.connect().await;
        for raw in [&mut gone, &mut stays] {
            raw.send(&request("POST", "/form", framing), WriteSplit::Whole).await.expect("sent");
            raw.send(first.as_bytes(), WriteSplit::Whole).await.expect("sent");
        }
        let asked = async || stage.metric("larder_requests_total").await == 2;
        support::eventually("both requests", asked).await;
        drop(gone);
        let left = async || stage.metric("larder_connections_open").await == 1;
        support::eventually("one left", left).await;
        assert_eq!(stage.metric("larder_origin_requests_total").await, 0);
        assert!(stage.origin.recorded().is_empty());
        stays.send(rest.as_bytes(), WriteSplit::Whole).await.expect("sent");
        assert_eq!(whole(stays.reply("POST").await, framing).text(), "thanks");
        assert_eq!(stage.sole_request("/form").body, b"helloworld");
    }
}

#[tokio::test]
async fn a_larger_upload_reaches_the_origin_while_it_comes() {
    let stage = Stage::new().await;
    stage.origin.on("/form", Script::ok("", "thanks"));
    let body = pattern(100_000);
    let framing = format!("Content-Length: {}\r\n", body.len());
    let mut raw = stage.connect().await;
    raw.send(&request("POST", "/form", &framing), WriteSplit::Whole).await.expect("sent");
    raw.send(&body[..20_000], WriteSplit::Whole).await.expect("sent");
    let begun = async || stage.origin.recorded().iter().any(|r| r.bytes.len() > 20_000);
    support::eventually("the first part", begun).await;
    raw.send(&body[20_000..], WriteSplit::Whole).await.expect("sent");
    assert_eq!(whole(raw.reply("POST").await, "/form").text(), "thanks");
    assert!(stage.sole_request("/form").body == body);
}

#[tokio::test]
async fn a_buffer_larger_than_the_window_holds_nothing_up() {
    let limits = "body_buffer_bytes = \"1MiB\"\nwindow_bytes = \"16KiB\"";
    let stage = Setup { limits, ..Setup::default() }.start().await;
    stage.origin.on("/form", Script::ok("", "thanks"));
    let body = pattern(300_000);
    let mut asked = request("POST", "/form", &format!("Content-Length: {}\r\n", body.len()));
    asked.extend_from_slice(&body);
    assert_eq!(stage.exchange("POST", &asked).await.text(), "thanks");
    assert!(stage.sole_request("/form").body == body);
}

#[tokio::test]
async fn an_upload_beyond_the_limit_is_refused_and_never_complete_at_the_origin() {
    let limits = "request_body_bytes = \"64KiB\"";
    let stage = Setup { limits, ..Setup::default() }.start().await;
    stage.origin.on("/form", Script::ok("", "accepted"));
    let fits = pattern(64 << 10);
    let mut whole_request =
        request("POST", "/form", &format!("Content-Length: {}\r\n", fits.len()));
    whole_request.extend_from_slice(&fits);
    assert_eq!(stage.exchange("POST", &whole_request).await.text(), "accepted");
    stage.origin.forget();

    let beyond = pattern(70 << 10);
    let mut declared = request("POST", "/form", &format!("Content-Length: {}\r\n", beyond.len()));
    declared.extend_from_slice(&beyond);
    let mut counted = request("POST", "/form", "Transfer-Encoding: chunked\r\n");
    counted.extend(chunks(&beyond));
    for bytes in [declared, counted] {
        let reply = stage.exchange("POST", &bytes).await;
        assert_eq!((reply.status, reply.closes()), (413, true));
        assert!(reply.text().contains("request_body_bytes"), "{}", reply.text());
    }
    let complete: usize = stage
        .origin
        .recorded()
        .iter()
        .map(|r| {
            testkit::reference_reader::read_requests(&r.bytes)
                .map_or_else(|v| v.before.len(), |r| r.len())
        })
        .sum();
    assert_eq!(complete, 0);
    stage.daemon.assert_limit_count("request_body_bytes", 2).await;
}

#[tokio::test]
async fn who_writes_far_too_much_before_it_reads_still_reads_why() {
    let limits = "request_body_bytes = \"64KiB\"";
    let stage = Setup { limits, ..Setup::default() }.start().await;
    stage.origin.on("/form", Script::ok("", "accepted"));
    let body = pattern(64 << 20);
    let counted = chunks(&body);
    let length = format!("Content-Length: {}\r\n", body.len());
    for (count, (framing, body)) in
        [(length.as_str(), &body), ("Transfer-Encoding: chunked\r\n", &counted)].iter().enumerate()
    {
        let mut raw = stage.connect().await;
        raw.send(&request("POST", "/form", framing), WriteSplit::Whole).await.expect("sent");
        raw.send(body, WriteSplit::Whole).await.expect("all of it is taken");
        let reply = whole(raw.reply("POST").await, framing);
        assert_eq!((reply.status, reply.closes()), (413, true), "{framing}");
        assert_eq!(raw.rest().await, (Vec::new(), ConnectionEnd::Closed), "{framing}");
        stage.daemon.assert_metric("larder_lingers_total", count as u64 + 1).await;
    }
}

#[tokio::test]
async fn requests_sent_after_the_last_one_do_not_reset_its_answer() {
    let stage = Setup { limits: "keepalive_requests = 1", ..Setup::default() }.start().await;
    stage.origin.on("/hit", Script::cacheable("hit"));
    stage.origin.on("/form", Script::ok("", "form"));
    stage.get("/hit").await;
    let form = [request("POST", "/form", "Content-Length: 5\r\n"), b"hello".to_vec()].concat();
    for (method, first) in [("GET", request("GET", "/hit", "")), ("POST", form)] {
        let mut raw = stage.connect().await;
        let asked = [first, request("GET", "/hit", "").repeat(100_000)].concat();
        raw.send(&asked, WriteSplit::Whole).await.expect("all of it is taken");
        let reply = whole(raw.reply(method).await, method);
        assert_eq!((reply.status, reply.closes()), (200, true));
        assert_eq!(raw.rest().await, (Vec::new(), ConnectionEnd::Closed));
    }
}

#[tokio::test]
async fn an_early_answer_reaches_the_client_though_its_upload_goes_on() {
    let refusal = "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno";
    for (limits, sent) in [("", 20_000), ("body_buffer_bytes = \"0\"", 1000)] {
        let stage = Setup { limits, ..Setup::default() }.start().await;
        stage.origin.on("/form", Script::respond(refusal).without_reading_body().hang());
        let mut raw = stage.connect().await.patience(Duration::from_secs(20));
        let head = request("POST", "/form", "Content-Length: 1000000\r\n");
        raw.send(&head, WriteSplit::Whole).await.expect("sent");
        raw.send(&pattern(sent), WriteSplit::Whole).await.expect("sent");
        match raw.reply("POST").await {
            ReplyOutcome::Complete(reply) => {
                assert_eq!((reply.status, reply.text().as_str()), (403, "no"));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_trace_with_a_body_ends_its_connection() {
    let stage = Stage::new().await;
    let head = "TRACE /page HTTP/1.1\r\nHost: larder.test\r\n";
    let inner = request("GET", "/smuggled", "");
    let length = format!("{head}Content-Length: {}\r\n\r\n", inner.len());
    let chunked = format!("{head}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n", inner.len());
    for (before, after) in [(length, ""), (chunked, "\r\n0\r\n\r\n")] {
        let asked = [before.as_bytes(), &inner, after.as_bytes()].concat();
        let mut client = stage.connect().await;
        client.send(&asked, WriteSplit::Whole).await.expect("sent");
        let reply = whole(client.reply("TRACE").await, "TRACE");
        assert_eq!((reply.status, reply.closes()), (405, true));
        assert_eq!(client.rest().await, (Vec::new(), ConnectionEnd::Closed));
    }
    let mut client = stage.connect().await;
    client.send(format!("{head}\r\n").as_bytes(), WriteSplit::Whole).await.expect("sent");
    let reply = whole(client.reply("TRACE").await, "TRACE");
    assert_eq!((reply.status, reply.closes()), (405, false), "without one it goes on");
    assert_eq!(stage.received().len(), 0);
}

#[tokio::test]
async fn a_client_that_ends_within_its_framing_is_closed_at_once() {
    let stage = Stage::new().await;
    stage.origin.on("/page", Script::ok("Cache-Control: no-store\r\n", TEXT));
    let head = "POST /page HTTP/1.1\r\nHost: larder.test\r\nTransfer-Encoding: chunked\r\n\r\n";
    for rest in ["a", "a;ext", "5\r\nhello", "5\r\nhello\r\n0\r\nX-Trailer: val"] {
        let mut stream = TcpStream::connect(stage.daemon.addr()).await.expect("a connection");
        stream.write_all(format!("{head}{rest}").as_bytes()).await.expect("sent");
        stream.shutdown().await.expect("ended");
        let mut received = Vec::new();
        // Limits on slow bodies would end it later than that.
        let read = timeout(Duration::from_secs(20), stream.read_to_end(&mut received)).await;
        assert!(read.is_ok(), "{rest:?}: open still");
    }
}

#[tokio::test]
async fn an_answer_before_the_end_of_a_chunked_body_says_that_the_connection_ends() {
    let stage = Stage::new().await;
    let refused = "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno";
    stage.origin.on("/form", Script::respond(refused).without_reading_body());
    let head = "POST /form HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let piece = format!("9c40\r\n{}\r\n", "x".repeat(40_000));
    for (rest, closes) in [("", true), ("0\r\n\r\n", false)] {
        let mut raw = stage.connect().await;
        let sent = [head, &piece, rest].concat();
        raw.send(sent.as_bytes(), WriteSplit::Whole).await.expect("sent");
        let reply = whole(raw.reply("POST").await, "/form");
        assert_eq!((reply.status, reply.closes()), (403, closes), "{rest:?}");
    }
}

#[tokio::test]
async fn a_page_for_an_answer_without_its_body_says_that_the_connection_ends() {
    let stage = Stage::new().await;
    // The body fails in the piece with the head, before the client gets that.
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nno\r\n";
    stage.origin.on("/cut", Script::respond(head).close());
    let mut raw = stage.connect().await;
    let reply = whole(raw.get("/cut").await.expect("sent"), "/cut");
    assert_eq!((reply.status, reply.closes()), (502, true));
}

#[tokio::test]
async fn a_refusal_of_head_has_no_body() {
    let limits = "request_body_bytes = \"1KiB\"";
    let stage = Setup { limits, ..Setup::default() }.listening(H2C).await;
    let mut raw = stage.connect().await;
    let asked = "HEAD /form HTTP/1.1\r\nHost: a\r\nContent-Length: 5000\r\n\r\n";
    raw.send(asked.as_bytes(), WriteSplit::Whole).await.expect("sent");
    assert_eq!(whole(raw.reply("HEAD").await, "/form").status, 413);
    assert_eq!(raw.rest().await.0, b"", "nothing behind the head");

    let mut client = client(&stage.daemon).await;
    let head = Request::new("HEAD", "/form").field("content-length", "5000");
    let stream = client.ask(&head, false).await.expect("sent");
    // A body would be a fault.
    let RequestOutcome::Answered(answer) = client.outcome(stream).await else {
        panic!("no answer")
    };
    assert_eq!((answer.status, answer.body.len()), (413, 0));
}
