//! Queue for the limited exchanges of one server.

use base::Limit;
use message::Method;
use origin::{Error, RequestBody, TimeoutStep};

use crate::kit::*;

#[tokio::test]
async fn requests_beyond_the_bound_wait_for_their_turn() {
    let server = Scripted::answering(OK).await;
    let client = Client::new(&[&server.url], |config| config.max_connections = 1);
    let get = request(Method::Get);
    let mut first = client.send(&get, RequestBody::None).await.expect("a response");
    let waiting = client.get();
    tokio::pin!(waiting);
    let early = tokio::time::timeout(std::time::Duration::from_millis(50), &mut waiting).await;
    assert!(early.is_err(), "the only connection is taken");
    assert_eq!(client.origin.servers()[0].waiting, 1);
    assert_eq!(read(&mut first).await.expect("a body"), "ok");
    assert_eq!(waiting.await.expect("a response"), "ok");
    assert_eq!(client.origin.servers()[0].waiting, 0);
    assert_eq!(server.connections(), 1, "the second one got the first one's connection");
}

#[tokio::test]
async fn a_full_queue_refuses() {
    let server = Scripted::answering(OK).await;
    let client = Client::new(&[&server.url], |config| {
        config.max_connections = 1;
        config.queue = 0;
    });
    let get = request(Method::Get);
    let first = client.send(&get, RequestBody::None).await.expect("a response");
    let error = client.get().await.expect_err("no room");
    assert!(matches!(error, Error::QueueFull { .. }), "{error}");
    assert_eq!((error.status().code(), error.limit()), (503, Some(Limit::OriginQueue)));
    assert_eq!(client.origin.servers()[0].failures, 0, "being busy is no failure");
    drop(first);
    client.get().await.expect("a response");
}

#[tokio::test]
async fn waiting_in_the_queue_has_an_end() {
    let server = Scripted::answering(OK).await;
    let client = Client::new(&[&server.url], |config| {
        config.max_connections = 1;
        config.queue_timeout_ms = 50;
    });
    let get = request(Method::Get);
    let _first = client.send(&get, RequestBody::None).await.expect("a response");
    let error = client.get().await.expect_err("no room");
    assert!(matches!(error, Error::Timeout { step: TimeoutStep::Queue, .. }), "{error}");
    assert_eq!(error.status().code(), 503);
    assert!(error.to_string().contains("(origin_queue_timeout)"), "{error}");
    assert_eq!(client.origin.servers()[0].waiting, 0);
}

#[tokio::test]
async fn the_bound_holds_over_all_cores() {
    let server = Scripted::answering(OK).await;
    let one = Client::new(&[&server.url], |config| {
        config.max_connections = 1;
        config.queue = 0;
    });
    let mut other = Client::new(&[&server.url], |_| {});
    other.origin = std::sync::Arc::clone(&one.origin);
    let held = one.send(&request(Method::Get), RequestBody::None).await.expect("a response");
    assert!(matches!(other.get().await, Err(Error::QueueFull { .. })));
    drop(held);
    other.get().await.expect("a response");
}

#[tokio::test]
async fn idle_connections_do_not_count() {
    let server = Scripted::answering(OK).await;
    let one = Client::new(&[&server.url], |config| config.max_connections = 1);
    one.get().await.expect("a response");
    assert_eq!(one.pool.idle_connections(), 1);
    let mut other = Client::new(&[&server.url], |_| {});
    other.origin = std::sync::Arc::clone(&one.origin);
    other.get().await.expect("a response");
}

#[tokio::test]
async fn a_busy_server_is_passed_over() {
    let (a, b) = (Scripted::answering(OK).await, Scripted::answering(OK).await);
    let client = Client::new(&[&a.url, &b.url], |config| {
        config.max_connections = 1;
        config.queue = 0;
    });
    let get = request(Method::Get);
    let first = client.send(&get, RequestBody::None).await.expect("a response");
    let second = client.send(&get, RequestBody::None).await.expect("a response");
    assert_ne!(first.server, second.server);
    drop(first);
    let third = client.send(&get, RequestBody::None).await.expect("a response");
    assert_ne!(third.server, second.server);
}
