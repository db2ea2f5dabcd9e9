//! Reuse of connections: permitted and forbidden cases.

use std::time::Duration;

use base::{Counter, clock};
use message::{Framing, Method};
use origin::RequestBody;

use crate::kit::*;

/// Sends two requests one after the other; returns the number of connections.
async fn connections_for_two(response: &'static str) -> usize {
    let server = Scripted::answering(response).await;
    let client = Client::new(&[&server.url], |_| {});
    for _ in 0..2 {
        client.get().await.expect("a response");
    }
    server.connections()
}

#[tokio::test]
async fn a_clean_exchange_leaves_its_connection_to_the_next() {
    let server = Scripted::answering(OK).await;
    let client = Client::new(&[&server.url], |_| {});
    for n in 0..5 {
        let mut exchange =
            client.send(&request(Method::Get), RequestBody::None).await.expect("a response");
        assert_eq!(exchange.reused, n > 0);
        assert_eq!(exchange.tries, 1);
        assert_eq!(read(&mut exchange).await.expect("a body"), "ok");
    }
    assert_eq!(server.connections(), 1);
    assert_eq!(client.count(Counter::OriginConnects), 1);
    assert_eq!(client.count(Counter::OriginReuse), 4);
    assert_eq!(client.count(Counter::Fetches), 5);
    assert_eq!(client.count(Counter::OriginBytesIn), 5 * OK.len() as u64);
}

#[tokio::test]
async fn responses_without_a_body_free_their_connection_at_once() {
    for response in
        ["HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"]
    {
        let server = Scripted::answering(response).await;
        let client = Client::new(&[&server.url], |_| {});
        for _ in 0..2 {
            let exchange = client.send(&request(Method::Get), RequestBody::None).await;
            assert!(exchange.is_ok());
            assert_eq!(client.pool.idle_connections(), 1);
        }
        assert_eq!(server.connections(), 1);
    }
}

#[tokio::test]
async fn a_head_request_is_answered_without_a_body() {
    let server = Scripted::answering("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n").await;
    let client = Client::new(&[&server.url], |_| {});
    for _ in 0..2 {
        let exchange = client.send(&request(Method::Head), RequestBody::None).await;
        assert_eq!(exchange.expect("a response").framing, Framing::None);
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn a_chunked_body_ends_by_itself() {
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
    assert_eq!(connections_for_two(chunked).await, 1);
}

#[tokio::test]
async fn surplus_bytes_end_the_connection() {
    assert_eq!(connections_for_two("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok!").await, 2);
    assert_eq!(
        connections_for_two("HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\n\r\n").await,
        2
    );
}

#[tokio::test]
async fn connection_close_is_obeyed() {
    let close = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";
    assert_eq!(connections_for_two(close).await, 2);
}

#[tokio::test]
async fn http_1_0_is_kept_only_when_it_says_so() {
    let plain = "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok";
    assert_eq!(connections_for_two(plain).await, 2);
    let kept = "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok";
    assert_eq!(connections_for_two(kept).await, 1);
}

#[tokio::test]
async fn an_exchange_dropped_before_its_end_closes_the_connection() {
    let server = Scripted::answering(OK).await;
    let client = Client::new(&[&server.url], |_| {});
    drop(client.send(&request(Method::Get), RequestBody::None).await.expect("a response"));
    assert_eq!(client.pool.idle_connections(), 0);
    assert_eq!(client.origin.servers()[0].in_flight, 0);
    client.get().await.expect("a response");
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn bytes_that_arrive_while_idle_end_the_connection() {
    let server = Scripted::new(|number, mut conn| async move {
        conn.head().await;
        conn.send(OK).await;
        if number == 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
            conn.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil").await;
        }
        conn.hang().await;
    })
    .await;
    let client = Client::new(&[&server.url], |_| {});
    assert_eq!(client.get().await.expect("a response"), "ok");
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(client.get().await.expect("a response"), "ok");
    assert_eq!(server.connections(), 2);
    assert_eq!(client.count(Counter::OriginRetries), 0);
}

#[tokio::test]
async fn a_connection_closed_while_idle_is_seen_before_it_is_used() {
    let server = Scripted::new(|_, mut conn| async move {
        conn.head().await;
        conn.send(OK).await;
    })
    .await;
    let client = Client::new(&[&server.url], |_| {});
    for _ in 0..3 {
        client.get().await.expect("a response");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(server.connections(), 3);
    assert_eq!(client.count(Counter::OriginReuse), 0);
    assert_eq!(client.count(Counter::OriginRetries), 0);
}

#[tokio::test]
async fn the_connection_used_last_is_used_first() {
    let server = Scripted::new(|number, mut conn| async move {
        while conn.head().await.is_some() {
            let response = format!("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{number}");
            conn.send(&response).await;
        }
    })
    .await;
    let client = Client::new(&[&server.url], |_| {});
    let get = request(Method::Get);
    let mut first = client.send(&get, RequestBody::None).await.expect("a response");
    let mut second = client.send(&get, RequestBody::None).await.expect("a response");
    assert_eq!(read(&mut second).await.expect("a body"), "1");
    assert_eq!(read(&mut first).await.expect("a body"), "0");
    for _ in 0..3 {
        assert_eq!(client.get().await.expect("a response"), "0");
    }
}

#[tokio::test]
async fn no_more_connections_are_kept_than_allowed() {
    let server = Scripted::answering(OK).await;
    let client = Client::new(&[&server.url], |config| config.idle_max = 2);
    let get = request(Method::Get);
    let mut open = Vec::new();
    for _ in 0..4 {
        open.push(client.send(&get, RequestBody::None).await.expect("a response"));
    }
    for exchange in &mut open {
        read(exchange).await.expect("a body");
    }
    assert_eq!(client.pool.idle_connections(), 2);
}

#[tokio::test]
async fn a_sweep_closes_what_was_idle_for_too_long() {
    let server = Scripted::answering(OK).await;
    let client = Client::new(&[&server.url], |config| config.idle_timeout_ms = 5_000);
    client.get().await.expect("a response");
    let now_ms = clock::System.now().mono_ms;
    client.pool.sweep(now_ms);
    assert_eq!(client.pool.idle_connections(), 1);
    client.pool.sweep(now_ms + 6_000);
    assert_eq!(client.pool.idle_connections(), 0);
}

#[tokio::test]
async fn a_sweep_closes_what_the_server_has_closed() {
    let server = Scripted::new(|_, mut conn| async move {
        conn.head().await;
        conn.send(OK).await;
    })
    .await;
    let client = Client::new(&[&server.url], |_| {});
    client.get().await.expect("a response");
    eventually(|| {
        client.pool.sweep(clock::System.now().mono_ms);
        client.pool.idle_connections() == 0
    })
    .await;
}
