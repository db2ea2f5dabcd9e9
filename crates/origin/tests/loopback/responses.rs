//! Responses of malicious servers, and interim responses.

use std::time::Duration;

use base::{Counter, Limit};
use message::{Framing, HeaderId, Method, Response};
use origin::{Error, Events, RequestBody};
use tokio::sync::watch;

use crate::kit::*;

/// The result of `response` if the server closes the connection after it.
async fn outcome(response: &'static str) -> Result<String, Error> {
    let server = Scripted::new(move |_, mut conn| async move {
        conn.head().await;
        conn.send(response).await;
    })
    .await;
    let client = Client::new(&[&server.url], |_| {});
    let outcome = client.get().await;
    assert_eq!(client.origin.servers()[0].in_flight, 0);
    let failed = u64::from(outcome.is_err());
    assert_eq!(client.count(Counter::FetchFailures), failed);
    if failed == 1 {
        assert_eq!(client.pool.idle_connections(), 0);
        assert_eq!(server.connections(), 1, "an answer is never asked for again");
        assert!(client.origin.servers()[0].last_error.is_some());
    }
    outcome
}

#[tokio::test]
async fn a_body_cut_short_is_never_a_whole_one() {
    for response in [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhalf",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n0\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    ] {
        let error = outcome(response).await.expect_err(response);
        assert!(matches!(error, Error::Truncated { .. }), "{response:?}: {error}");
        assert_eq!(error.status().code(), 502);
    }
}

#[tokio::test]
async fn a_body_without_length_ends_with_the_connection() {
    assert_eq!(outcome("HTTP/1.1 200 OK\r\n\r\nall of it").await.expect("a body"), "all of it");
    assert_eq!(outcome("HTTP/1.0 200 OK\r\n\r\n").await.expect("a body"), "");
}

#[tokio::test]
async fn broken_framing_is_refused() {
    for head in [
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok",
        "HTTP/1.1 302 Found\r\nContent-Length: -2\r\n\r\nok",
        "HTTP/2 200 OK\r\n\r\n",
        "SSH-2.0-OpenSSH\r\n",
        "\0\0\0\0\0\0\0\0",
    ] {
        let error = outcome(head).await.expect_err(head);
        assert!(matches!(error, Error::Response { .. }), "{head:?}: {error}");
    }
    let chunk = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n";
    assert!(matches!(outcome(chunk).await, Err(Error::Body { .. })));
}

#[tokio::test]
async fn a_head_beyond_its_limit_is_refused() {
    let long: &'static str = format!(
        "HTTP/1.1 200 OK\r\n{}\r\n",
        "X-Long: 0123456789012345678901234567890123456789\r\n".repeat(2_000)
    )
    .leak();
    let error = outcome(long).await.expect_err("too long");
    assert!(
        matches!(error.limit(), Some(Limit::ResponseHeaderBytes | Limit::HeaderCount)),
        "{error}"
    );
}

#[tokio::test]
async fn interim_responses_are_told_before_the_final_one_and_100_is_not() {
    // The final head is held back until the hints have arrived.
    let (heard, hearing) = watch::channel(0);
    let server = Scripted::new(move |_, mut conn| {
        let mut hearing = hearing.clone();
        async move {
            for turn in 1.. {
                if conn.head().await.is_none() {
                    return;
                }
                conn.send("HTTP/1.1 100 Continue\r\n\r\n").await;
                conn.send("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n").await;
                hearing.wait_for(|heard| *heard == turn).await.expect("the listener");
                conn.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
            }
        }
    })
    .await;
    let client = Client::new(&[&server.url], |_| {});
    let mut hints = Hints { heard, seen: Vec::new() };
    for _ in 0..2 {
        let get = request(Method::Get);
        let caller = origin::OriginRequestContext::default();
        let (pool, origin) = (&client.pool, &client.origin);
        let sending = pool.send(origin, &get, RequestBody::None, 0, &caller, &mut hints);
        let mut exchange = sending.await.expect("a response");
        assert_eq!(exchange.response.status.code(), 200);
        assert!(!exchange.response.headers.contains(HeaderId::Link));
        assert_eq!(read(&mut exchange).await.expect("a body"), "ok");
    }
    assert_eq!(server.connections(), 1);
    let seen: Vec<_> = hints.seen.iter().map(|hint| hint.status.code()).collect();
    assert_eq!(seen, [103, 103]);
    assert_eq!(hints.seen[0].headers.value(HeaderId::Link), Some(&b"</a>"[..]));
}

/// Records interim responses, and sends their number.
struct Hints {
    heard: watch::Sender<usize>,
    seen: Vec<Response>,
}

impl Events for Hints {
    fn interim(&mut self, response: Response) {
        self.seen.push(response);
        self.heard.send_replace(self.seen.len());
    }
}

#[tokio::test]
async fn a_flood_of_interim_responses_is_refused() {
    let server = Scripted::new(|_, mut conn| async move {
        conn.head().await;
        for _ in 0..100_000 {
            conn.send("HTTP/1.1 100 Continue\r\n\r\n").await;
        }
    })
    .await;
    let client = Client::new(&[&server.url], |_| {});
    let error = client.get().await.expect_err("no final response");
    assert!(matches!(error, Error::TooManyInterim { .. }), "{error}");
    assert_eq!(error.limit(), Some(Limit::InterimResponses));
}

#[tokio::test]
async fn a_switch_of_protocols_nobody_asked_for_is_refused() {
    let error = outcome("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n").await;
    assert!(matches!(error, Err(Error::UnexpectedUpgrade { .. })));
}

#[tokio::test]
async fn a_head_that_trickles_in_is_read_whole() {
    let server = Scripted::new(|_, mut conn| async move {
        conn.head().await;
        for byte in "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
            .split_inclusive(|_| true)
        {
            conn.send(byte).await;
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        conn.hang().await;
    })
    .await;
    let client = Client::new(&[&server.url], |_| {});
    assert_eq!(client.get().await.expect("a response"), "ok");
}

#[tokio::test]
async fn an_early_response_stops_the_request_and_ends_the_connection() {
    for framing in [Framing::Length(1 << 30), Framing::Chunked] {
        let server = Scripted::new(|_, mut conn| async move {
            conn.head().await;
            conn.send("HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno").await;
            conn.hang().await;
        })
        .await;
        let client = Client::new(&[&server.url], |_| {});
        let mut source = Pieces { open: true, ..Pieces::of(&["a", "b"]) };
        let request = upload(Method::Post, framing);
        let mut exchange = client.send(&request, stream(&mut source)).await.expect("a response");
        assert_eq!(exchange.response.status.code(), 413);
        assert_eq!(read(&mut exchange).await.expect("a body"), "no");
        assert_eq!(client.pool.idle_connections(), 0, "it still waits for the body");
    }
}

#[tokio::test]
async fn an_early_response_is_read_even_when_the_server_stopped_reading() {
    let server = Scripted::new(|_, mut conn| async move {
        conn.head().await;
        conn.send("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno").await;
    })
    .await;
    let client = Client::new(&[&server.url], |_| {});
    let piece: &'static str = "x".repeat(1 << 16).leak();
    let mut source = Pieces::of(&[piece; 1_000]);
    let request = upload(Method::Post, Framing::Chunked);
    let exchange = client.send(&request, stream(&mut source)).await;
    // The reset may overtake the response; a hang or a repeat must not happen.
    match exchange {
        Ok(exchange) => assert_eq!(exchange.response.status.code(), 403),
        Err(error) => assert!(error.is_unreachable(), "{error}"),
    }
    assert_eq!(server.connections(), 1);
    assert_eq!(client.pool.idle_connections(), 0);
}
