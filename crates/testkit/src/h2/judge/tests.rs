//! Every kind of fault alone, and windows to the byte.

use super::super::{FieldBlock, Request, error};
use super::*;

/// A judge after both prefaces, with one GET on stream 1.
fn asked() -> Judge {
    let mut judge = Judge::new();
    judge.sent(PREFACE);
    judge.sent(&Frame::settings(&[]).bytes());
    judge.sent(&Request::get("/").bytes(1, true));
    judge.received(&Frame::settings(&[])).expect("a greeting");
    judge.received(&Frame::settings_ack()).expect("an answer to ours");
    judge
}

fn answer(fields: &[(&str, &str)], end: bool) -> Frame {
    let block = FieldBlock::new().literal(":status", "200");
    let block = fields.iter().fold(block, |block, (name, value)| block.literal(name, value));
    Frame::headers(1, block, end)
}

#[test]
fn an_answer_is_read_with_its_interim_one_and_its_trailers() {
    let mut judge = asked();
    let hint = FieldBlock::new().literal(":status", "103").literal("link", "</a>");
    let trailers = FieldBlock::new().literal("x-sum", "1");
    for frame in [
        Frame::headers(1, hint, false),
        answer(&[("content-length", "4")], false),
        Frame::data(1, b"bo", false),
        Frame::padded_data(1, b"dy", 9, false),
        Frame::headers(1, trailers, true),
    ] {
        judge.received(&frame).expect("in order");
    }
    let exchange = judge.exchange(1).expect("stream 1");
    assert!(exchange.whole && exchange.over());
    assert_eq!(exchange.interim, [(103, vec![("link".to_owned(), b"</a>".to_vec())])]);
    assert_eq!((exchange.status, exchange.text()), (200, "body".to_owned()));
    assert_eq!(exchange.data, [2, 2]);
    assert_eq!(exchange.trailers, [("x-sum".to_owned(), b"1".to_vec())]);
    assert_eq!(exchange.field("content-length").as_deref(), Some("4"));
}

#[test]
fn what_is_wrong_with_an_answer_is_named() {
    let name = |name: &str| ProtocolFault::FieldName(name.to_owned());
    for (frames, fault) in [
        (vec![answer(&[("Upper", "1")], true)], name("Upper")),
        (vec![answer(&[("sp ace", "1")], true)], name("sp ace")),
        (vec![answer(&[("a", "b\r\nc")], true)], ProtocolFault::FieldValue("a".into())),
        (vec![answer(&[("a", " b")], true)], ProtocolFault::FieldValue("a".into())),
        (
            vec![answer(&[("connection", "close")], true)],
            ProtocolFault::ConnectionField("connection".into()),
        ),
        (vec![answer(&[(":status", "200")], true)], ProtocolFault::PseudoField(":status".into())),
        (
            vec![Frame::headers(1, FieldBlock::new().literal("a", "b"), true)],
            ProtocolFault::PseudoField(":status".into()),
        ),
        (
            vec![Frame::headers(1, FieldBlock::new().literal(":status", "101"), false)],
            ProtocolFault::Status("101".into()),
        ),
        (vec![Frame::data(1, b"x", false)], ProtocolFault::Body),
        (
            vec![answer(&[], false), answer(&[], false)],
            ProtocolFault::PseudoField(":status".into()),
        ),
        (
            vec![answer(&[("content-length", "2")], false), Frame::data(1, b"x", true)],
            ProtocolFault::ContentLength { declared: "2".into(), came: 1 },
        ),
        (
            vec![answer(&[], true), Frame::data(1, b"", true)],
            ProtocolFault::AfterEnd { kind: kind::DATA, stream: 1 },
        ),
        (vec![Frame::headers(3, [], true)], ProtocolFault::Idle { kind: kind::HEADERS, stream: 3 }),
        (
            vec![Frame::open_headers(1, [], true), Frame::ping([0; 8])],
            ProtocolFault::Interrupted(kind::PING),
        ),
        (vec![Frame::continuation(1, [], true)], ProtocolFault::LoneContinuation),
        (
            vec![Frame::new(kind::DATA, 0, 0, [])],
            ProtocolFault::Stream { kind: kind::DATA, stream: 0 },
        ),
        (vec![Frame::new(kind::PING, 0, 0, [1])], ProtocolFault::Length { kind: kind::PING }),
        (vec![Frame::new(kind::PING, flag::ACK, 0, [1; 8])], ProtocolFault::UnaskedAck),
        (vec![Frame::settings_ack()], ProtocolFault::UnaskedAck),
        (vec![Frame::new(kind::DATA, flag::PADDED, 1, [4, 0])], ProtocolFault::Padding),
        (vec![Frame::window_update(0, 0)], ProtocolFault::WindowIncrement),
        (
            vec![Frame::settings(&[(setting::MAX_FRAME_SIZE, 1)])],
            ProtocolFault::Setting { id: setting::MAX_FRAME_SIZE, value: 1 },
        ),
        (
            vec![Frame::goaway(1, 0, b""), Frame::goaway(3, 0, b"")],
            ProtocolFault::RaisedLastStream(3),
        ),
        (vec![Frame::new(kind::PUSH_PROMISE, 4, 1, [])], ProtocolFault::Push),
        (vec![Frame::new(0xbe, 0, 0, vec![0; 16_385])], ProtocolFault::FrameBytes(16_385)),
    ] {
        let mut judge = asked();
        let verdicts: Vec<_> = frames.iter().map(|frame| judge.received(frame)).collect();
        let (last, before) = verdicts.split_last().expect("frames");
        assert!(before.iter().all(Result::is_ok), "{fault:?}: {before:?}");
        assert_eq!(last, &Err(fault));
    }
    let mut judge = Judge::new();
    assert_eq!(judge.received(&Frame::ping([0; 8])), Err(ProtocolFault::FirstFrame(kind::PING)));
    assert!(matches!(
        asked().received(&Frame::headers(1, FieldBlock::new().indexed(99), true)),
        Err(ProtocolFault::Compression(_))
    ));
}

#[test]
fn windows_are_kept_to_the_byte() {
    let mut judge = asked();
    judge.sent(&Frame::settings(&[(setting::INITIAL_WINDOW_SIZE, 10)]).bytes());
    judge.received(&answer(&[], false)).expect("a head");
    // Before the acknowledgement the old window holds; after it the stream has 5 bytes too many.
    judge.received(&Frame::data(1, &[0; 15], false)).expect("within the old window");
    judge.received(&Frame::settings_ack()).expect("asked for");
    judge.received(&Frame::data(1, b"", false)).expect("nothing fits a negative window");
    judge.sent(&Frame::window_update(1, 6).bytes());
    judge.received(&Frame::data(1, b"x", false)).expect("one byte is left");
    let over = ProtocolFault::StreamWindow { stream: 1, by: 1 };
    assert_eq!(judge.received(&Frame::data(1, b"x", false)), Err(over));
}

#[test]
fn a_larger_window_may_be_used_before_its_acknowledgement() {
    let mut judge = asked();
    judge.sent(&Frame::settings(&[(setting::INITIAL_WINDOW_SIZE, 70_000)]).bytes());
    judge.sent(&Frame::window_update(0, 100_000).bytes());
    judge.received(&answer(&[], false)).expect("a head");
    for _ in 0..7 {
        judge.received(&Frame::data(1, &[0; 10_000], false)).expect("within the window");
    }
    judge.received(&Frame::settings_ack()).expect("asked for");
    let over = ProtocolFault::StreamWindow { stream: 1, by: 1 };
    assert_eq!(judge.received(&Frame::data(1, b"x", false)), Err(over));
}

#[test]
fn the_connection_has_a_window_too() {
    let mut judge = asked();
    judge.sent(&Frame::window_update(1, 1 << 20).bytes());
    judge.received(&answer(&[], false)).expect("a head");
    for size in [16_384, 16_384, 16_384, 16_383] {
        judge.received(&Frame::data(1, &vec![0; size], false)).expect("within the window");
    }
    let verdict = judge.received(&Frame::data(1, b"x", false));
    assert_eq!(verdict, Err(ProtocolFault::ConnectionWindow(1)));
}

#[test]
fn a_smaller_table_is_acknowledged_in_the_next_block() {
    let mut judge = asked();
    judge.sent(&Frame::settings(&[(setting::HEADER_TABLE_SIZE, 0)]).bytes());
    judge.received(&Frame::settings_ack()).expect("asked for");
    assert_eq!(judge.received(&answer(&[], true)), Err(ProtocolFault::TableSize));
    let mut judge = asked();
    judge.sent(&Frame::settings(&[(setting::HEADER_TABLE_SIZE, 0)]).bytes());
    judge.received(&Frame::settings_ack()).expect("asked for");
    let block = FieldBlock::new().table_size(0).literal(":status", "204");
    judge.received(&Frame::headers(1, block, true)).expect("as it should be");
}

#[test]
fn answers_to_head_have_a_length_and_no_body() {
    let head = |frames: &[Frame]| {
        let mut judge = asked();
        judge.sent(&Request::new("HEAD", "/").bytes(3, true));
        let block = FieldBlock::new().literal(":status", "200").literal("content-length", "9");
        judge.received(&Frame::headers(3, block, frames.is_empty())).expect("a head");
        frames.iter().try_for_each(|frame| judge.received(frame))
    };
    assert_eq!(head(&[]), Ok(()));
    assert_eq!(head(&[Frame::data(3, b"", true)]), Ok(()));
    assert_eq!(head(&[Frame::data(3, b"x", false)]), Err(ProtocolFault::Body));
}

#[test]
fn what_the_server_takes_is_known_however_the_bytes_are_cut() {
    let mut judge = Judge::new();
    let greeting = [PREFACE, &Frame::settings(&[]).bytes()].concat();
    let request = Request::post("/").bytes(1, false);
    for byte in [greeting, request].concat() {
        judge.sent(&[byte]);
    }
    judge.received(&Frame::settings(&[(setting::INITIAL_WINDOW_SIZE, 100)])).expect("settings");
    assert_eq!(judge.may_send(1), 100);
    judge.sent(&Frame::padded_data(1, b"1234", 5, false).bytes());
    assert_eq!(judge.may_send(1), 90);
    judge.received(&Frame::settings(&[(setting::INITIAL_WINDOW_SIZE, 0)])).expect("settings");
    assert_eq!(judge.may_send(1), -10);
    judge.received(&Frame::window_update(1, 30)).expect("an update");
    assert_eq!(judge.may_send(1), 20);
    judge.received(&Frame::settings(&[(setting::INITIAL_WINDOW_SIZE, 1 << 20)])).expect("settings");
    assert_eq!(judge.may_send(1), 65_525, "the connection's window");
    let largest = Frame::window_update(0, 0x7fff_ffff);
    assert_eq!(judge.received(&largest), Err(ProtocolFault::WindowIncrement));
}

#[test]
fn a_reset_may_follow_a_whole_answer_and_ends_all_others() {
    let mut judge = asked();
    judge.received(&answer(&[], true)).expect("an answer");
    judge.received(&Frame::reset(1, error::NO_ERROR)).expect("no more of the request, please");
    let exchange = judge.exchange(1).expect("stream 1");
    assert_eq!((exchange.whole, exchange.reset), (true, Some(error::NO_ERROR)));
    let mut judge = asked();
    judge.received(&Frame::reset(1, error::CANCEL)).expect("a reset");
    let after = ProtocolFault::AfterEnd { kind: kind::HEADERS, stream: 1 };
    assert_eq!(judge.received(&answer(&[], true)), Err(after));
}
