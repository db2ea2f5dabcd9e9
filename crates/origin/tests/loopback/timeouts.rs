//! Timeouts: every one fires, names itself, and frees its resources.

use base::Limit;
use message::{Framing, Method};
use origin::{Error, RequestBody, TimeoutStep};

use crate::kit::*;

const SHORT_MS: u64 = 60;

fn step_of(error: &Error) -> Option<TimeoutStep> {
    match error {
        Error::Timeout { step, .. } => Some(*step),
        _ => None,
    }
}

#[tokio::test]
async fn a_server_that_takes_no_connection_in_time() {
    // Full backlogs drop further connection attempts, as a dead host does.
    let listener =
        socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
    let any: std::net::SocketAddr = "127.0.0.1:0".parse().expect("an address");
    listener.bind(&any.into()).expect("a free port");
    listener.listen(0).expect("a listener");
    let address = listener.local_addr().ok().and_then(|a| a.as_socket()).expect("an address");
    let mut waiting = Vec::new();
    loop {
        let filler = tokio::net::TcpStream::connect(address);
        let patience = std::time::Duration::from_millis(300);
        match tokio::time::timeout(patience, filler).await {
            Ok(connected) => waiting.push(connected),
            Err(_) => break,
        }
        assert!(waiting.len() < 10_000, "the backlog has no end");
    }
    let url = format!("http://{address}");
    let client = Client::new(&[&url], |config| config.timeouts.connect_ms = SHORT_MS);
    let error = client.get().await.expect_err("no connection");
    assert_eq!(step_of(&error), Some(TimeoutStep::Connect), "{error}");
    assert_eq!(error.status().code(), 504);
    assert!(error.to_string().contains("60ms (connect_timeout)"), "{error}");
}

#[tokio::test]
async fn a_server_that_sends_no_head_in_time() {
    let server = Scripted::new(|_, mut conn| async move {
        conn.head().await;
        conn.send("HTTP/1.1 200 OK\r\nContent-").await;
        conn.hang().await;
    })
    .await;
    let client = Client::new(&[&server.url], |config| config.timeouts.first_byte_ms = SHORT_MS);
    let error = client.get().await.expect_err("no head");
    assert_eq!(step_of(&error), Some(TimeoutStep::FirstByte), "{error}");
    assert_eq!(error.limit(), Some(Limit::FirstByteTimeout));
    assert!(error.is_unreachable());
    assert!(error.to_string().contains("(first_byte_timeout)"), "{error}");
    assert_eq!(client.origin.servers()[0].in_flight, 0);
}

#[tokio::test]
async fn a_body_that_stops() {
    let server = Scripted::new(|_, mut conn| async move {
        conn.head().await;
        conn.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf").await;
        conn.hang().await;
    })
    .await;
    let client = Client::new(&[&server.url], |config| config.timeouts.between_bytes_ms = SHORT_MS);
    let mut exchange = client.send(&request(Method::Get), RequestBody::None).await.expect("a head");
    let error = read(&mut exchange).await.expect_err("half a body");
    assert_eq!(step_of(&error), Some(TimeoutStep::BetweenBytes), "{error}");
    assert!(!error.is_unreachable());
    assert!(exchange.next(&mut |_| {}).await.is_err(), "a failed body never ends cleanly");
    assert_eq!(client.pool.idle_connections(), 0);
    assert_eq!(client.origin.servers()[0].in_flight, 0);
}

#[tokio::test]
async fn a_body_that_never_ends() {
    let server = Scripted::new(|_, mut conn| async move {
        conn.head().await;
        conn.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await;
        loop {
            conn.send("1\r\nx\r\n").await;
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await;
    let client = Client::new(&[&server.url], |config| config.timeouts.total_ms = 200);
    let error = client.get().await.expect_err("no end");
    assert_eq!(step_of(&error), Some(TimeoutStep::Total), "{error}");
    assert!(error.to_string().contains("(total_timeout)"), "{error}");
}

#[tokio::test]
async fn a_server_that_takes_no_byte_of_the_request() {
    // Without reading, only a part fits the sockets' buffers.
    let server = Scripted::new(|_, conn| async move {
        let _open = conn;
        std::future::pending::<()>().await;
    })
    .await;
    let client = Client::new(&[&server.url], |config| config.timeouts.between_bytes_ms = SHORT_MS);
    let piece: &'static str = "x".repeat(1 << 20).leak();
    let mut source = Pieces::of(&[piece; 64]);
    let request = upload(Method::Put, Framing::Length(64 << 20));
    let error = client.send(&request, stream(&mut source)).await.expect_err("no room");
    assert_eq!(step_of(&error), Some(TimeoutStep::Send), "{error}");
    assert_eq!(error.limit(), Some(Limit::BetweenBytesTimeout));
    assert!(source.taken < 64, "no more was taken from the source than the server took");
}

#[tokio::test]
async fn waiting_for_the_client_is_not_the_servers_fault() {
    let server = Scripted::new(|_, mut conn| async move {
        conn.head().await;
        conn.hang().await;
    })
    .await;
    let client = Client::new(&[&server.url], |config| {
        config.timeouts.first_byte_ms = SHORT_MS;
        config.timeouts.between_bytes_ms = SHORT_MS;
        config.timeouts.total_ms = 400;
    });
    let mut source = Pieces { open: true, ..Pieces::of(&["part"]) };
    let request = upload(Method::Post, Framing::Length(9));
    let error = client.send(&request, stream(&mut source)).await.expect_err("no body");
    assert_eq!(step_of(&error), Some(TimeoutStep::Total), "{error}");
    assert_eq!(client.origin.servers()[0].failures, 0);
}
