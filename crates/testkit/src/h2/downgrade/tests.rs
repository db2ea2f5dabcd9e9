//! The table of cases, and the check that distinguishes right from wrong results.

use std::collections::HashSet;

use super::super::{
    Exchange, Farewell, FieldBlock, Frame, ProtocolFault, Request, RequestOutcome, error, frames,
    kind,
};
use super::table::{TARGET, forwarded, get};
use super::*;
use crate::reference_reader::{ParsedRequest, read_requests};
use crate::reply::ConnectionEnd;

fn answered(status: u16) -> RequestOutcome {
    let status = status.to_string();
    let mut judge = super::super::Judge::new();
    judge.sent(frames::PREFACE);
    judge.sent(&get().bytes(1, true));
    judge.received(&Frame::settings(&[])).expect("a greeting");
    let head = FieldBlock::new().literal(":status", status);
    judge.received(&Frame::headers(1, head, true)).expect("an answer");
    RequestOutcome::Answered(judge.exchange(1).cloned().expect("stream 1"))
}

fn reset(code: u32) -> RequestOutcome {
    RequestOutcome::Reset(code, Exchange::default())
}

fn sent(text: &str) -> Vec<ParsedRequest> {
    read_requests(text.as_bytes()).expect("requests")
}

fn case(expect: DowngradeExpectation) -> Case {
    let mut table = DowngradeTable { cases: Vec::new() };
    table.head("test", "case", get(), expect);
    table.cases.remove(0)
}

#[test]
fn the_table_has_names_of_its_own_and_every_kind_of_end() {
    let all = cases();
    assert!(all.len() >= 250, "{} cases", all.len());
    let names: HashSet<_> = all.iter().map(|case| &case.name).collect();
    assert_eq!(names.len(), all.len(), "each name once");
    let refused = all.iter().filter(|case| case.forwarded().is_none()).count();
    assert!(refused >= 180 && all.len() - refused >= 50, "{refused} refused");
}

#[test]
fn frames_are_those_of_the_case() {
    let mut table = DowngradeTable { cases: Vec::new() };
    table.trailers("x", &[(b"a", b"b")], DowngradeExpectation::Reset).data[0].1 = Some(1);
    let post = Request::post(TARGET).block();
    let wanted = [
        Frame::headers(7, post, false),
        Frame::padded_data(7, b"body", 1, false),
        Frame::headers(7, FieldBlock::new().literal("a", "b"), true),
    ];
    let wanted: Vec<u8> = wanted.iter().flat_map(Frame::bytes).collect();
    assert_eq!(table.cases[0].bytes(7), wanted);
    table.cases[0].ended = false;
    let open = Frame::headers(7, FieldBlock::new().literal("a", "b"), false).bytes();
    assert!(table.cases[0].bytes(7).ends_with(&open));
}

#[test]
fn refusals_are_distinguished() {
    let over = RequestOutcome::Over(Farewell { code: None, end: ConnectionEnd::Closed });
    let faulty = RequestOutcome::Faulty(ProtocolFault::FirstFrame(kind::PING));
    for (expect, right, wrong) in [
        (
            DowngradeExpectation::Reset,
            vec![reset(error::PROTOCOL_ERROR)],
            vec![reset(error::CANCEL), answered(400), over.clone(), faulty.clone()],
        ),
        (
            DowngradeExpectation::Refused,
            vec![reset(error::PROTOCOL_ERROR), answered(400)],
            vec![reset(error::CANCEL), answered(200), over.clone()],
        ),
        (
            DowngradeExpectation::Denied,
            vec![reset(error::REFUSED_STREAM), answered(501)],
            vec![answered(200), over.clone(), faulty],
        ),
        (
            DowngradeExpectation::Status(417),
            vec![answered(417)],
            vec![answered(400), reset(1), over],
        ),
    ] {
        let case = case(expect);
        for outcome in right {
            assert_eq!(case.check(&outcome, &[]), Ok(()), "{outcome:?}");
            let leaked = sent("GET / HTTP/1.1\r\nHost: larder.test\r\n\r\n");
            assert!(case.check(&outcome, &leaked).is_err(), "{outcome:?} and forwarded");
        }
        for outcome in wrong {
            assert!(case.check(&outcome, &[]).is_err(), "{outcome:?}");
        }
    }
}

#[test]
fn what_is_forwarded_is_exactly_the_request() {
    let fields = [("x-a", "1")];
    let case = case(DowngradeExpectation::Forwarded(forwarded("POST", "/p", &fields, b"body")));
    let head = "POST /p HTTP/1.1\r\nHost: larder.test\r\n";
    let right = format!("{head}X-A: 1\r\nVia: 2 x\r\nContent-Length: 4\r\n\r\nbody");
    assert_eq!(case.check(&answered(200), &sent(&right)), Ok(()));
    assert!(case.check(&answered(502), &sent(&right)).is_err());
    assert!(case.check(&answered(200), &[]).is_err());
    assert!(case.check(&reset(error::PROTOCOL_ERROR), &[]).is_err());
    assert!(case.check(&answered(200), &sent(&format!("{right}{right}"))).is_err());
    for (from, to) in [
        ("POST", "PUT"),
        ("/p", "/q"),
        ("larder.test", "evil.test"),
        ("X-A: 1", "X-A: 2"),
        ("X-A: 1", "X-B: 1"),
        ("X-A: 1", "X-A: 1\r\nX-Evil: 1"),
        ("body", "Body"),
    ] {
        let wrong = sent(&right.replacen(from, to, 1));
        assert!(case.check(&answered(200), &wrong).is_err(), "{from} as {to}");
    }
}
