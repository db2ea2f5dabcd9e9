//! Tests of errors that end a connection, with their codes (RFC 9113 5.4.1): the cases that
//! attackers use first. The suite of h2spec covers the rest.

use testkit::h2::{FieldBlock, Frame, PREFACE, Request, error, flag, kind, setting};
use testkit::reply::ConnectionEnd;

use crate::support::h2::{client, silent, stage};

#[tokio::test]
async fn bytes_that_are_no_http2_get_an_error_and_end() {
    let stage = stage().await;
    let get = || Request::get("/").block();
    for (name, frames, code) in [
        ("DATA on the connection", vec![Frame::data(0, b"x", false)], error::PROTOCOL_ERROR),
        ("DATA on an idle stream", vec![Frame::data(1, b"x", true)], error::PROTOCOL_ERROR),
        ("HEADERS on an even stream", vec![Frame::headers(2, get(), true)], error::PROTOCOL_ERROR),
        ("a push", vec![Frame::new(kind::PUSH_PROMISE, 4, 1, [0; 4])], error::PROTOCOL_ERROR),
        ("a lone CONTINUATION", vec![Frame::continuation(1, [], true)], error::PROTOCOL_ERROR),
        (
            "a PING within a block",
            vec![Frame::open_headers(1, [], true), Frame::ping([0; 8])],
            error::PROTOCOL_ERROR,
        ),
        (
            "another stream's CONTINUATION",
            vec![Frame::open_headers(1, [], true), Frame::continuation(3, [], true)],
            error::PROTOCOL_ERROR,
        ),
        ("a short PING", vec![Frame::new(kind::PING, 0, 0, [0; 7])], error::FRAME_SIZE_ERROR),
        (
            "SETTINGS of five bytes",
            vec![Frame::new(kind::SETTINGS, 0, 0, [0; 5])],
            error::FRAME_SIZE_ERROR,
        ),
        ("SETTINGS on a stream", vec![Frame::new(kind::SETTINGS, 0, 1, [])], error::PROTOCOL_ERROR),
        (
            "an acknowledgement with content",
            vec![Frame::new(kind::SETTINGS, flag::ACK, 0, [0; 6])],
            error::FRAME_SIZE_ERROR,
        ),
        (
            "a window beyond all windows",
            vec![Frame::settings(&[(setting::INITIAL_WINDOW_SIZE, 1 << 31)])],
            error::FLOW_CONTROL_ERROR,
        ),
        (
            "frames too small",
            vec![Frame::settings(&[(setting::MAX_FRAME_SIZE, 100)])],
            error::PROTOCOL_ERROR,
        ),
        (
            "a frame too large",
            vec![Frame::new(kind::PING, 0, 0, vec![0; 16_385])],
            error::FRAME_SIZE_ERROR,
        ),
        ("a window update of zero", vec![Frame::window_update(0, 0)], error::PROTOCOL_ERROR),
        (
            "a window opened too far",
            vec![Frame::window_update(0, 0x7fff_ffff)],
            error::FLOW_CONTROL_ERROR,
        ),
        (
            "an unknown index",
            vec![Frame::headers(1, get().indexed(4_000), true)],
            error::COMPRESSION_ERROR,
        ),
        ("index 0", vec![Frame::headers(1, get().raw(&[0x80]), true)], error::COMPRESSION_ERROR),
        (
            "a table larger than allowed",
            vec![Frame::headers(1, FieldBlock::new().table_size(1 << 20), true)],
            error::COMPRESSION_ERROR,
        ),
        (
            "a block cut short",
            vec![Frame::headers(1, get().raw(&[0x00, 0x05, b'a']), true)],
            error::COMPRESSION_ERROR,
        ),
        (
            "a number without end",
            vec![Frame::headers(1, get().raw(&[0xff; 20]), true)],
            error::COMPRESSION_ERROR,
        ),
        (
            "padding longer than its frame",
            vec![Frame::headers(1, get(), false), Frame::new(kind::DATA, flag::PADDED, 1, [9, 0])],
            error::PROTOCOL_ERROR,
        ),
    ] {
        let mut client = client(&stage.daemon).await;
        let bytes: Vec<u8> = frames.iter().flat_map(Frame::bytes).collect();
        client.send(&bytes).await.expect("sent");
        let ending = client.rest().await.unwrap_or_else(|fault| panic!("{name}: {fault}"));
        assert_eq!(ending.code, Some(code), "{name}");
        assert_ne!(ending.end, ConnectionEnd::Open, "{name}: the connection ends");
    }
    assert_eq!(stage.origin.targets(), Vec::<String>::new(), "nothing was forwarded");
}

/// RFC 9113 3.4: a wrong preface. Any response is permitted but that to a request.
#[tokio::test]
async fn a_wrong_preface_ends_the_connection() {
    let stage = stage().await;
    let settings = Frame::settings(&[]).bytes();
    let mut other = PREFACE.to_vec();
    other[20] = b'X';
    for (name, bytes) in [
        ("one byte wrong", [&other[..], &settings].concat()),
        ("a PING first", [PREFACE, &Frame::ping([0; 8]).bytes()].concat()),
        ("an acknowledgement first", [PREFACE, &Frame::settings_ack().bytes()].concat()),
        ("twice", [PREFACE, &settings, PREFACE].concat()),
    ] {
        let mut client = silent(&stage.daemon).await;
        client.send(&bytes).await.expect("sent");
        client.send(&Request::get("/page").bytes(1, true)).await.ok();
        // Text of HTTP/1 is no fault here: its sender is no HTTP/2 client.
        let ended = client.rest().await;
        assert!(ended.is_err() || ended.is_ok_and(|e| e.end != ConnectionEnd::Open), "{name}");
    }
    assert_eq!(stage.origin.seen("/page"), 0);
}

#[tokio::test]
async fn half_a_preface_waits_for_its_other_half_and_not_for_ever() {
    let stage = crate::support::h2::limited("header_timeout = \"500ms\"").await;
    let mut client = silent(&stage.daemon).await;
    let greeting = [PREFACE, &Frame::settings(&[]).bytes()].concat();
    for byte in &greeting {
        client.send(&[*byte]).await.expect("sent");
        tokio::task::yield_now().await;
    }
    assert_eq!(client.get("/page").await.answer("/page").status, 404);
    let mut slow = silent(&stage.daemon).await;
    slow.send(&greeting[..10]).await.expect("sent");
    let ended = slow.rest().await;
    assert!(ended.is_err() || ended.is_ok_and(|e| e.end != ConnectionEnd::Open), "it is not kept");
}
