//! Tests of an origin that is down: one log line with the reason, and a plain page for visitors.

use crate::support;

use std::net::SocketAddr;

use support::console;
use support::{Setup, Stage, whole};
use testkit::client::RawClient;
use testkit::larder::Daemon;
use testkit::origin::{Script, ScriptedOrigin};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// A daemon with an origin whose port has no listener; the returned socket keeps it bound.
async fn without_origin() -> (Daemon, SocketAddr, socket2::Socket) {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None);
    let socket = socket.expect("a socket");
    let any: SocketAddr = ([127, 0, 0, 1], 0).into();
    socket.bind(&any.into()).expect("a port");
    let address = socket.local_addr().expect("an address").as_socket().expect("an address");
    let text = Setup::default().file(&ScriptedOrigin::start().await.expect("a port"));
    let server = text.lines().find(|line| line.starts_with("servers")).expect("servers");
    let text = text.replace(server, &format!("servers = \"http://{address}\""));
    (Daemon::start(&text).expect("larder starts"), address, socket)
}

async fn ask(daemon: &Daemon, target: &str) -> (u16, String) {
    let mut raw =
        RawClient::connect(daemon.addr()).await.expect("a connection").patience(support::PATIENCE);
    let reply = whole(raw.get(target).await.expect("sent"), target);
    (reply.status, reply.text())
}

#[tokio::test(flavor = "multi_thread")]
async fn visitors_see_a_plain_page_and_operators_the_cause_by_its_number() {
    let (daemon, address, _kept) = without_origin().await;
    let (status, page) = ask(&daemon, "/page").await;
    assert_eq!(status, 502);
    let plain = "The server behind this site cannot be reached, or did not answer properly.";
    assert!(page.contains(plain), "{page}");
    for head in ["name=\"viewport\"", "name=\"color-scheme\"", "<html lang=\"en\">"] {
        assert!(page.contains(head), "{head}: {page}");
    }
    let port = address.port().to_string();
    for word in ["127.0.0.1", &port, "refused", "os error", "connect"] {
        assert!(!page.contains(word), "{word}: {page}");
    }
    let (_, number) = page.split_once("<p>Request ").expect("a number");
    let (number, _) = number.split_once('<').expect("its end");
    let filter = format!("id == {number}");
    let lines = async || {
        let (done, said, why) =
            console::run(&daemon, &["log", "--once", "--json", "-q", &filter]).await;
        assert!(done, "{why}");
        said
    };
    // The record follows the page.
    support::eventually("the record", async || !lines().await.is_empty()).await;
    let record: serde_json::Value = serde_json::from_str(&lines().await).expect("one record");
    assert_eq!(record["id"], number);
    let error = record["error"].as_str().expect("an error");
    assert!(error.contains(&address.to_string()) && error.contains("refused"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeout_s_page_names_the_limit_and_no_server() {
    let limits = "first_byte_timeout = \"300ms\"";
    let stage = Setup { limits, ..Setup::default() }.start().await;
    stage.origin.on("/slow", Script::default().hang());
    let reply = stage.get("/slow").await;
    let page = reply.text();
    assert_eq!(reply.status, 504);
    let words = "The server behind this site took too long to answer. (limit: first_byte_timeout)";
    assert!(page.contains(words) && !page.contains("127.0.0.1"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waited_for_a_fetch_that_failed_sees_the_same_page() {
    let stage = Stage::new().await;
    // The origin closes without a response once both wait.
    stage.origin.on("/page", Script::default().delay_ms(500).close());
    let (one, two) = tokio::join!(stage.get("/page"), stage.get("/page"));
    for reply in [one, two] {
        assert_eq!(reply.status, 502);
        let page = reply.text();
        assert!(page.contains("The server behind this site cannot be reached"), "{page}");
        assert!(!page.contains("127.0.0.1") && page.contains("<p>Request "), "{page}");
    }
}

/// Serves every request on `listener` with a page that may not be stored.
async fn answer_all(listener: tokio::net::TcpListener) {
    while let Ok((mut stream, _)) = listener.accept().await {
        tokio::spawn(async move {
            let mut head = [0; 4096];
            while stream.read(&mut head).await.is_ok_and(|bytes| bytes > 0) {
                let page =
                    "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 4\r\n\r\nback";
                if stream.write_all(page.as_bytes()).await.is_err() {
                    return;
                }
            }
        });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_and_a_recovery_are_logged_once_each() {
    let (daemon, address, socket) = without_origin().await;
    for _ in 0..30 {
        assert_eq!(ask(&daemon, "/page").await.0, 502);
    }
    let gone = format!("larder: origin app, server {address} fails: ");
    let log = daemon.assert_logged(&gone).await;
    let line = log.lines().find(|line| line.starts_with(&gone)).expect("a line");
    assert!(line.contains("cannot connect") && line.contains("refused"), "{line}");
    for _ in 0..30 {
        assert_eq!(ask(&daemon, "/page").await.0, 502);
    }
    socket.listen(16).and_then(|()| socket.set_nonblocking(true)).expect("it listens");
    let listener = tokio::net::TcpListener::from_std(socket.into()).expect("a listener");
    let origin = tokio::spawn(answer_all(listener));
    support::eventually("an answer", async || {
        ask(&daemon, "/page").await == (200, "back".to_owned())
    })
    .await;
    let log = daemon
        .assert_logged(&format!("larder: origin app, server {address} answers again, after "))
        .await;
    assert_eq!(log.lines().filter(|line| line.starts_with(&gone)).count(), 1, "{log}");
    origin.abort();
}
