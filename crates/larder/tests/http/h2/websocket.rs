//! Tests of WebSocket over HTTP/2 (RFC 8441): CONNECT with a protocol on one side, the HTTP/1
//! handshake on the other, where an unmodified library speaks WebSocket.

use futures_util::{SinkExt, StreamExt};
use testkit::h2::{Frame, Request, RequestOutcome, error, setting};
use testkit::larder::Daemon;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_tungstenite::accept_async;

use super::ends::{Next, Scene};
use crate::support::h2::{H2C, Plain, client};
use crate::support::{eventually, pattern};

/// An origin that echoes every message.
struct Chat {
    daemon: Daemon,
    server: JoinHandle<()>,
}

impl Drop for Chat {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Chat {
    async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let origin = listener.local_addr().expect("an address");
        let server = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let Ok(mut socket) = accept_async(stream).await else { return };
                    while let Some(Ok(message)) = socket.next().await {
                        if message.is_text() || message.is_binary() {
                            _ = socket.send(message).await;
                        }
                    }
                });
            }
        });
        let config = format!(
            "{H2C}\nworkers = 2\n[[origin]]\nname = \"app\"\nservers = \"http://{origin}\"\n\
             [[site]]\nhost = \"*\"\norigin = \"app\"\n"
        );
        Self { daemon: Daemon::start(&config).expect("larder starts"), server }
    }
}

fn opening() -> Request {
    let request = Request::new("CONNECT", "/chat");
    let mut fields = request.fields;
    fields.insert(1, (b":protocol".to_vec(), b"websocket".to_vec()));
    Request { fields }.field("sec-websocket-version", "13").field("origin", "http://larder.test")
}

/// A message as clients send them, masked (RFC 6455 5.2).
fn masked(opcode: u8, text: &[u8]) -> Vec<u8> {
    let mask = [0x37, 0xfa, 0x21, 0x3d];
    let mut bytes = vec![0x80 | opcode];
    match text.len() {
        short @ 0..126 => bytes.push(0x80 | short as u8),
        long => {
            bytes.push(0x80 | 127);
            bytes.extend((long as u64).to_be_bytes());
        }
    }
    bytes.extend(mask);
    bytes.extend(text.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    bytes
}

/// Waits until the tunnel is open; returns the status.
async fn opened(client: &mut Plain, stream: u32) -> u16 {
    let headed = client
        .until(|judge| judge.exchange(stream).is_some_and(|e| e.status > 0 || e.over()))
        .await;
    assert!(headed, "no answer");
    client.judge().exchange(stream).map_or(0, |exchange| exchange.status)
}

async fn received(client: &mut Plain, stream: u32, bytes: usize) -> Vec<u8> {
    let there =
        client.until(|judge| judge.exchange(stream).is_some_and(|e| e.body.len() >= bytes)).await;
    let body = client.judge().exchange(stream).map(|e| e.body.clone()).unwrap_or_default();
    assert!(there, "{} of {bytes} bytes", body.len());
    body
}

/// Sends on a stream that stays open, within its windows.
async fn send(client: &mut Plain, stream: u32, bytes: &[u8]) {
    let mut rest = bytes;
    while !rest.is_empty() {
        let open = client.judge().may_send(stream).max(0) as usize;
        let (now, later) = rest.split_at(open.min(rest.len()).min(16_384));
        if now.is_empty() {
            assert!(client.until(|judge| judge.may_send(stream) > 0).await, "a window stays shut");
        } else {
            client.send_frame(&Frame::data(stream, now, false)).await.expect("sent");
        }
        rest = later;
    }
}

#[tokio::test]
async fn messages_go_there_and_back_beside_requests() {
    let chat = Chat::new().await;
    let mut client = client(&chat.daemon).await;
    assert!(client.ping().await);
    assert_eq!(client.judge().setting(setting::ENABLE_CONNECT_PROTOCOL), Some(1));
    let stream = client.ask(&opening(), false).await.expect("sent");
    assert_eq!(opened(&mut client, stream).await, 200);
    let answer = client.judge().exchange(stream).expect("a stream");
    assert_eq!(answer.field("sec-websocket-accept"), None, "RFC 8441 5");
    let mut expected = Vec::new();
    for round in 0..100 {
        let text = format!("message {round}");
        send(&mut client, stream, &masked(1, text.as_bytes())).await;
        expected.extend([0x81, text.len() as u8]);
        expected.extend(text.as_bytes());
        assert!(received(&mut client, stream, expected.len()).await == expected, "{round}");
    }
    // Larger than every window.
    let large = pattern(1 << 20);
    send(&mut client, stream, &masked(2, &large)).await;
    expected.extend([0x82, 127]);
    expected.extend((1_u64 << 20).to_be_bytes());
    expected.extend(&large);
    assert!(received(&mut client, stream, expected.len()).await == expected);
    // The close frame comes back and the stream ends.
    client.send_frame(&Frame::data(stream, &masked(8, &[0x03, 0xe8]), true)).await.expect("sent");
    match client.outcome(stream).await {
        RequestOutcome::Answered(exchange) => {
            assert!(exchange.body.ends_with(&[0x88, 2, 0x03, 0xe8]));
        }
        other => panic!("{other:?}"),
    }
    assert!(client.ping().await, "the connection goes on");
    let none =
        async || chat.daemon.metric("larder_tunnels_open", "").await.expect("metrics") == 0.0;
    eventually("its end", none).await;
    for side in ["larder_client_bytes_in_total", "larder_client_bytes_out_total"] {
        let bytes = chat.daemon.metric(side, "").await.expect("metrics");
        assert!(bytes > 1_048_576.0 && bytes < 1_200_000.0, "each byte once: {side} {bytes}");
    }
}

#[tokio::test]
async fn the_origin_sees_the_usual_handshake() {
    let scene = Scene::listening("127.0.0.1:0 h2c", "").await;
    let mut client = client(&scene.daemon).await;
    let request = opening().field("cookie", "a=1").field("sec-websocket-protocol", "chat");
    let stream = client.ask(&request, false).await.expect("sent");
    let mut origin = scene.origin().await;
    let head = origin.head().await;
    assert!(head.starts_with("GET /chat HTTP/1.1\r\nHost: larder.test\r\n"), "{head}");
    let lower = head.to_lowercase();
    for line in [
        "connection: upgrade",
        "upgrade: websocket",
        "sec-websocket-version: 13",
        "sec-websocket-protocol: chat",
        "cookie: a=1",
        "origin: http://larder.test",
    ] {
        assert!(lower.contains(&format!("\r\n{line}\r\n")), "{line}: {head}");
    }
    let key = lower.split("sec-websocket-key: ").nth(1).and_then(|rest| rest.split('\r').next());
    assert_eq!(key.map(str::len), Some(24), "16 bytes in base64: {head}");
    assert!(!lower.contains("content-length") && !lower.contains("transfer-encoding"), "{head}");
    // An origin's refusal is forwarded.
    origin.send("HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno").await;
    let answer = client.outcome(stream).await.answer("/chat");
    assert_eq!((answer.status, answer.text().as_str()), (403, "no"));
}

/// To the client any success means that the tunnel is open.
#[tokio::test]
async fn a_success_that_is_no_tunnel_is_an_error() {
    let scene = Scene::listening("127.0.0.1:0 h2c", "").await;
    let mut client = client(&scene.daemon).await;
    let stream = client.ask(&opening(), false).await.expect("sent");
    let mut origin = scene.origin().await;
    origin.head().await;
    origin.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello").await;
    let answer = client.outcome(stream).await.answer("/chat");
    assert_eq!(answer.status, 502);
    assert!(!answer.text().contains("hello"));
    assert!(client.ping().await, "the connection goes on");
}

#[tokio::test]
async fn a_tunnel_ends_with_either_side() {
    for by_client in [true, false] {
        let chat = Chat::new().await;
        let mut client = client(&chat.daemon).await;
        let stream = client.ask(&opening(), false).await.expect("sent");
        assert_eq!(opened(&mut client, stream).await, 200);
        send(&mut client, stream, &masked(1, b"hello")).await;
        received(&mut client, stream, 7).await;
        if by_client {
            client.send_frame(&Frame::reset(stream, error::CANCEL)).await.expect("sent");
        } else {
            // An invalid frame: the library closes.
            send(&mut client, stream, &masked(0x0b, b"?")).await;
            let over = client.until(|judge| judge.exchange(stream).is_some_and(|e| e.over())).await;
            assert!(over, "the stream ends with the origin's connection");
        }
        let none =
            async || chat.daemon.metric("larder_tunnels_open", "").await.expect("metrics") == 0.0;
        eventually("its end", none).await;
        assert!(client.ping().await, "the connection goes on");
    }
}

/// Bytes that the client sends before the response are no part of a request that could be smuggled.
#[tokio::test]
async fn early_bytes_wait_for_the_origins_response() {
    let scene = Scene::listening("127.0.0.1:0 h2c", "").await;
    let mut client = client(&scene.daemon).await;
    let stream = client.ask(&opening(), false).await.expect("sent");
    let smuggled = b"GET /smuggled HTTP/1.1\r\nHost: evil.test\r\n\r\n";
    client.send_frame(&Frame::data(stream, smuggled, false)).await.expect("sent");
    let mut origin = scene.origin().await;
    origin.head().await;
    assert!(origin.is_silent().await, "nothing behind the handshake");
    origin.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno").await;
    // Not 101: the client's bytes never reach the origin.
    let outcome = client.outcome(stream).await;
    assert!(!matches!(outcome, RequestOutcome::Faulty(_) | RequestOutcome::Over(_)), "{outcome:?}");
    match origin.next_within(std::time::Duration::from_millis(500)).await {
        Next::Closed | Next::Reset | Next::Silence => {}
        Next::Bytes(bytes) => panic!("{}", bytes.escape_ascii()),
    }
}
