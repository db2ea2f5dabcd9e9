//! Frames that the client sends by itself, and its treatment of a server's frames.

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

use super::super::{FieldBlock, setting};
use super::*;

/// A client, and the server's end of its connection.
fn pair() -> (Client<DuplexStream>, DuplexStream) {
    let (near, far) = duplex(1 << 20);
    (Client::over(near).patience(Duration::from_millis(300)), far)
}

/// All bytes sent to `far` so far.
async fn taken(far: &mut DuplexStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Ok(Ok(1..)) = timeout(Duration::from_millis(20), far.read_buf(&mut bytes)).await {}
    bytes
}

async fn serve(far: &mut DuplexStream, frames: &[Frame]) {
    for frame in frames {
        far.write_all(&frame.bytes()).await.expect("taken");
    }
}

fn ok(stream: u32, end: bool) -> Frame {
    Frame::headers(stream, FieldBlock::new().indexed(8), end)
}

#[tokio::test]
async fn a_polite_client_greets_acknowledges_and_refills() {
    let (mut client, mut far) = pair();
    client.greet(&[(setting::ENABLE_PUSH, 0)]).await.expect("sent");
    let greeting = taken(&mut far).await;
    let settings = greeting.strip_prefix(PREFACE).expect("a preface first");
    assert_eq!(settings, Frame::settings(&[(setting::ENABLE_PUSH, 0)]).bytes());
    let stream = client.ask(&Request::get("/page"), true).await.expect("sent");
    assert_eq!(taken(&mut far).await, Request::get("/page").bytes(1, true));
    serve(
        &mut far,
        &[
            Frame::settings(&[]),
            Frame::settings_ack(),
            Frame::ping(*b"12345678"),
            ok(1, false),
            Frame::data(1, b"some", false),
            Frame::data(1, b"more", true),
        ],
    )
    .await;
    assert_eq!(client.outcome(stream).await.answer("/page").text(), "somemore");
    let polite = [
        Frame::settings_ack(),
        Frame::new(kind::PING, flag::ACK, 0, *b"12345678"),
        Frame::window_update(0, 4),
        Frame::window_update(1, 4),
        Frame::window_update(0, 4),
    ];
    let polite: Vec<u8> = polite.iter().flat_map(Frame::bytes).collect();
    assert_eq!(taken(&mut far).await, polite);
}

#[tokio::test]
async fn a_client_without_manners_sends_nothing_unasked() {
    let (client, mut far) = pair();
    let mut client = client.manners(Manners::NONE);
    client.send(PREFACE).await.expect("sent");
    taken(&mut far).await;
    serve(&mut far, &[Frame::settings(&[]), Frame::ping([0; 8])]).await;
    assert_eq!(client.rest().await, Ok(Farewell { code: None, end: ConnectionEnd::Open }));
    assert_eq!(taken(&mut far).await, b"");
}

#[tokio::test]
async fn outcomes_are_distinguished() {
    let reset = [Frame::settings(&[]), ok(1, false), Frame::reset(1, error::CANCEL)];
    let gone = [Frame::settings(&[]), Frame::goaway(0, error::ENHANCE_YOUR_CALM, b"")];
    let faulty = [Frame::settings(&[]), ok(3, true)];
    let silent = [Frame::settings(&[]), ok(1, false), Frame::data(1, b"half", false)];
    for (frames, close) in [(&reset[..], false), (&gone, true), (&faulty, false), (&silent, false)]
    {
        let (mut client, mut far) = pair();
        client.greet(&[]).await.expect("sent");
        serve(&mut far, frames).await;
        if close {
            far.shutdown().await.expect("closed");
        }
        match client.get("/").await {
            RequestOutcome::Reset(code, exchange) => {
                assert_eq!((code, exchange.status), (error::CANCEL, 200));
                assert_eq!(frames, reset);
            }
            RequestOutcome::Over(Farewell { code, end }) => {
                assert_eq!((code, end), (Some(error::ENHANCE_YOUR_CALM), ConnectionEnd::Closed));
                assert_eq!(frames, gone);
            }
            RequestOutcome::Faulty(fault) => {
                assert_eq!(fault, ProtocolFault::Idle { kind: kind::HEADERS, stream: 3 });
                assert_eq!(frames, faulty);
                assert_eq!(client.step().await, ConnectionEvent::Faulty(fault), "for good");
            }
            RequestOutcome::Silent(exchange) => {
                assert_eq!((exchange.text().as_str(), exchange.whole), ("half", false));
                assert_eq!(frames, silent);
            }
            RequestOutcome::Answered(exchange) => panic!("{exchange:?}"),
        }
    }
}

#[tokio::test]
async fn an_upload_keeps_to_the_windows() {
    let (mut client, mut far) = pair();
    client.greet(&[]).await.expect("sent");
    serve(&mut far, &[Frame::settings(&[(setting::INITIAL_WINDOW_SIZE, 3)])]).await;
    let stream = client.ask(&Request::post("/"), false).await.expect("sent");
    client.step().await;
    taken(&mut far).await;
    let shut = client.upload(stream, b"abcde").await.expect_err("the window is shut");
    assert_eq!(shut.kind(), io::ErrorKind::TimedOut);
    assert_eq!(taken(&mut far).await, Frame::data(1, b"abc", false).bytes());
    serve(&mut far, &[Frame::window_update(1, 1), Frame::window_update(1, 1)]).await;
    client.upload(stream, b"de").await.expect("two more");
    let rest = [Frame::data(1, b"d", false).bytes(), Frame::data(1, b"e", true).bytes()].concat();
    assert_eq!(taken(&mut far).await, rest);
}
