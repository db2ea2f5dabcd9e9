//! Bodies in both directions.

use std::sync::Arc;

use base::Counter;
use message::{Framing, Method};
use origin::{Error, RequestBody, RequestBodyError, SourceError};
use parking_lot::Mutex;

use crate::kit::*;

/// A server that answers after it has read `body` bytes behind the head; with all bytes read.
async fn receiving(body: usize) -> (Scripted, Arc<Mutex<String>>) {
    let seen = Arc::new(Mutex::new(String::new()));
    let log = Arc::clone(&seen);
    let server = Scripted::new(move |_, mut conn| {
        let log = Arc::clone(&log);
        async move {
            while let Some(head) = conn.head().await {
                let body = String::from_utf8(conn.bytes(body).await).expect("a text");
                *log.lock() = head + &body;
                conn.send(OK).await;
            }
        }
    })
    .await;
    (server, seen)
}

#[tokio::test]
async fn the_head_is_sent_in_canonical_form() {
    let (server, seen) = receiving(0).await;
    let client = Client::new(&[&server.url], |_| {});
    client.get().await.expect("a response");
    assert_eq!(*seen.lock(), "GET /a?b HTTP/1.1\r\nHost: www.example\r\n\r\n");
}

#[tokio::test]
async fn the_origin_may_have_a_host_of_its_own() {
    let (server, seen) = receiving(0).await;
    let own = Some("backend:8080".to_owned());
    let client = Client::new(&[&server.url], |config| config.host_header = own);
    client.get().await.expect("a response");
    assert_eq!(*seen.lock(), "GET /a?b HTTP/1.1\r\nHost: backend:8080\r\n\r\n");
}

#[tokio::test]
async fn a_body_of_known_length_is_sent_as_it_comes() {
    let (server, seen) = receiving(8).await;
    let client = Client::new(&[&server.url], |_| {});
    let request = upload(Method::Post, Framing::Length(8));
    for _ in 0..2 {
        let mut source = Pieces::of(&["one", "", "two", "34"]);
        let mut exchange = client.send(&request, stream(&mut source)).await.expect("a response");
        assert_eq!(read(&mut exchange).await.expect("a body"), "ok");
        assert!(seen.lock().ends_with("\r\nContent-Length: 8\r\n\r\nonetwo34"), "{}", seen.lock());
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn a_body_of_unknown_length_is_sent_in_chunks() {
    let coded = "3\r\none\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n";
    let (server, seen) = receiving(coded.len()).await;
    let client = Client::new(&[&server.url], |_| {});
    let request = upload(Method::Post, Framing::Chunked);
    for _ in 0..2 {
        let mut source = Pieces::of(&["one", "", "0123456789abcdef"]);
        let mut exchange = client.send(&request, stream(&mut source)).await.expect("a response");
        assert_eq!(read(&mut exchange).await.expect("a body"), "ok");
        let seen = seen.lock();
        assert!(seen.contains("\r\nTransfer-Encoding: chunked\r\n"), "{seen}");
        assert!(seen.ends_with(&format!("\r\n\r\n{coded}")), "{seen}");
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn an_empty_body_of_unknown_length_is_one_last_chunk() {
    let (server, seen) = receiving(5).await;
    let client = Client::new(&[&server.url], |_| {});
    let request = upload(Method::Post, Framing::Chunked);
    let mut source = Pieces::default();
    client.send(&request, stream(&mut source)).await.expect("a response");
    assert!(seen.lock().ends_with("\r\n\r\n0\r\n\r\n"));
}

#[tokio::test]
async fn a_body_that_does_not_keep_its_word_is_not_sent_as_if_it_did() {
    let too_short: &[&'static str] = &["one"];
    let too_long: &[&'static str] = &["one", "two"];
    for (pieces, long) in [(too_short, false), (too_long, true), (&[][..], false)] {
        let server = Scripted::new(|_, mut conn| async move {
            conn.rest().await;
        })
        .await;
        let client = Client::new(&[&server.url], |_| {});
        let mut source = Pieces::of(pieces);
        let request = upload(Method::Put, Framing::Length(5));
        let error = client.send(&request, stream(&mut source)).await.expect_err("a bad body");
        let right = match &error {
            Error::RequestBody(RequestBodyError::TooLong) => long,
            Error::RequestBody(RequestBodyError::TooShort) => !long,
            _ => false,
        };
        assert!(right, "{error}");
        assert_eq!(client.count(Counter::OriginConnects), 1);
        assert_eq!(client.pool.idle_connections(), 0);
    }
    let server = Scripted::answering(OK).await;
    let client = Client::new(&[&server.url], |_| {});
    let outcome = client.send(&upload(Method::Put, Framing::Length(5)), RequestBody::None).await;
    assert!(matches!(outcome, Err(Error::RequestBody(RequestBodyError::TooShort))));
}

#[tokio::test]
async fn a_source_that_fails_ends_the_connection_before_the_body_does() {
    let seen = Arc::new(Mutex::new(None));
    let log = Arc::clone(&seen);
    let server = Scripted::new(move |_, mut conn| {
        let log = Arc::clone(&log);
        async move {
            conn.head().await;
            *log.lock() = Some(conn.rest().await);
        }
    })
    .await;
    let client = Client::new(&[&server.url], |_| {});
    let failing = Some(SourceError("client went away"));
    let mut source = Pieces { failing, ..Pieces::of(&["part"]) };
    let request = upload(Method::Post, Framing::Chunked);
    let error = client.send(&request, stream(&mut source)).await.expect_err("half a body");
    assert!(matches!(error, Error::RequestBody(RequestBodyError::Source(_))), "{error}");
    assert_eq!(error.status().code(), 400);
    assert!(!error.is_unreachable());
    assert_eq!(client.origin.servers()[0].failures, 0, "the server did nothing wrong");
    eventually(|| seen.lock().is_some()).await;
    let received = seen.lock().take().expect("just seen");
    assert!(!received.ends_with(b"0\r\n\r\n"), "the server saw a whole body");
}

#[tokio::test]
async fn large_bodies_arrive_whole_in_either_framing() {
    let text: &'static str = "0123456789abcdef".repeat(1 << 16).leak();
    let length: &'static str =
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len()).leak();
    let mut coded = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned();
    let mut rest = text;
    for size in (1..).step_by(977) {
        let (chunk, after) = rest.split_at(size.min(rest.len()));
        coded += &format!("{:x}\r\n{chunk}\r\n", chunk.len());
        rest = after;
        if rest.is_empty() {
            break;
        }
    }
    coded += "0\r\nX-Trailer: dropped\r\n\r\n";
    for response in [length, coded.leak()] {
        let server = Scripted::answering(response).await;
        let client = Client::new(&[&server.url], |_| {});
        for _ in 0..2 {
            assert!(client.get().await.expect("a response") == text, "the body was changed");
        }
        assert_eq!(server.connections(), 1);
    }
}

#[tokio::test]
async fn a_cancelled_read_loses_nothing() {
    let server = Scripted::new(|_, mut conn| async move {
        conn.head().await;
        conn.send("HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n").await;
        for _ in 0..10 {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            conn.send("ab").await;
        }
        conn.hang().await;
    })
    .await;
    let client = Client::new(&[&server.url], |_| {});
    let mut exchange =
        client.send(&request(Method::Get), RequestBody::None).await.expect("a response");
    let mut body = Vec::new();
    loop {
        let mut sink = |bytes: &[u8]| body.extend_from_slice(bytes);
        let step = exchange.next(&mut sink);
        match tokio::time::timeout(std::time::Duration::from_millis(2), step).await {
            Ok(Ok(true)) | Err(_) => {}
            Ok(outcome) => break assert!(matches!(outcome, Ok(false)), "{outcome:?}"),
        }
    }
    assert_eq!(body, b"abababababababababab");
    assert_eq!(client.pool.idle_connections(), 1);
}
