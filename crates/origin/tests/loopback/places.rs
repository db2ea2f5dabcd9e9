//! Places of servers: unix sockets and names.

use std::path::PathBuf;
use std::sync::Arc;

use message::Method;
use origin::{Error, RequestBody, run_background};

use crate::kit::*;

/// A path for a socket that is removed with this value.
struct SocketPath(PathBuf);

impl SocketPath {
    fn new(name: &str) -> Self {
        let file = format!("larder-{}-{name}.sock", std::process::id());
        Self(std::env::temp_dir().join(file))
    }
}

impl Drop for SocketPath {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[tokio::test]
async fn a_unix_socket_is_as_good_as_a_port() {
    let path = SocketPath::new("answers");
    let server = Scripted::unix(&path.0, |_, conn| Box::pin(conn.answer_all(OK))).await;
    let client = Client::new(&[&server.url], |_| {});
    for n in 0..3 {
        let mut exchange =
            client.send(&request(Method::Get), RequestBody::None).await.expect("a response");
        assert_eq!(exchange.reused, n > 0);
        assert_eq!(&*exchange.server_name, server.url);
        assert_eq!(read(&mut exchange).await.expect("a body"), "ok");
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn a_socket_closed_while_idle_is_seen_before_it_is_used() {
    let path = SocketPath::new("closes");
    let server = Scripted::unix(&path.0, |_, mut conn| {
        Box::pin(async move {
            conn.head().await;
            conn.send(OK).await;
        })
    })
    .await;
    let client = Client::new(&[&server.url], |_| {});
    for _ in 0..2 {
        client.get().await.expect("a response");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn a_socket_that_is_not_there_is_named() {
    let path = SocketPath::new("missing");
    let url = format!("unix:{}", path.0.display());
    let client = Client::new(&[&url], |_| {});
    let error = client.get().await.expect_err("no socket");
    assert!(matches!(error, Error::Connect { .. }), "{error}");
    assert!(error.to_string().starts_with(&url), "{error}");
}

#[tokio::test]
async fn a_name_is_resolved_and_requests_wait_for_its_first_answer() {
    let server = Scripted::answering(OK).await;
    let url = server.url.replace("127.0.0.1", "localhost");
    let client = Client::new(&[&url], |config| config.timeouts.connect_ms = 20_000);
    assert!(client.origin.servers()[0].addresses.is_empty());
    let background = tokio::spawn(run_background(Arc::clone(&client.origin), None));
    assert_eq!(client.get().await.expect("a response"), "ok");
    assert!(client.origin.servers()[0].addresses.iter().all(|a| a.ip().is_loopback()));
    background.abort();
}

#[tokio::test]
async fn a_name_without_an_answer_fails_in_time() {
    let client = Client::new(&["http://nowhere.invalid"], |config| {
        config.timeouts.connect_ms = 50;
        config.retries = 0;
    });
    let error = client.get().await.expect_err("no address");
    assert!(matches!(error, Error::Resolve { .. }), "{error}");
    assert_eq!(error.status().code(), 503);
}

#[tokio::test]
async fn literals_need_no_background() {
    let server = Scripted::answering(OK).await;
    let client = Client::new(&[&server.url], |_| {});
    assert_eq!(client.origin.servers()[0].addresses.len(), 1);
    run_background(Arc::clone(&client.origin), None).await;
}
