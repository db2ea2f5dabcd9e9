//! Whole, truncated and malformed replies are distinguished.

use super::*;

fn seen(bytes: &str, end: ConnectionEnd) -> Option<ReplyOutcome> {
    read_reply(bytes.as_bytes(), "GET", end).map(|(seen, _)| seen)
}

#[test]
fn a_cut_body_is_truncated_whatever_its_framing() {
    for cut in [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n",
    ] {
        assert_eq!(seen(cut, ConnectionEnd::Open), None, "{cut}");
        for end in [ConnectionEnd::Closed, ConnectionEnd::Reset] {
            let Some(ReplyOutcome::Truncated(reply)) = seen(cut, end) else {
                panic!("whole: {cut}")
            };
            assert!(reply.body.starts_with(b"hel"));
        }
    }
}

#[test]
fn a_closing_connection_ends_a_body_of_unsaid_length_and_a_reset_cuts_it() {
    let bytes = "HTTP/1.1 200 OK\r\n\r\nhello";
    assert_eq!(seen(bytes, ConnectionEnd::Open), None);
    let Some(ReplyOutcome::Complete(reply)) = seen(bytes, ConnectionEnd::Closed) else {
        panic!("not whole")
    };
    assert_eq!((reply.text().as_str(), reply.ending), ("hello", Ending::Close));
    assert!(matches!(seen(bytes, ConnectionEnd::Reset), Some(ReplyOutcome::Truncated(_))));
}

#[test]
fn interim_responses_are_counted_apart() {
    let bytes = "HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 204 No Content\r\n\r\nrest";
    let (seen, used) = read_reply(bytes.as_bytes(), "GET", ConnectionEnd::Open).expect("whole");
    let ReplyOutcome::Complete(reply) = seen else { panic!("not whole") };
    assert_eq!((reply.interim.as_slice(), reply.status), (&[103][..], 204));
    assert_eq!(&bytes[used..], "rest");
}

#[test]
fn a_head_request_has_no_body_whatever_the_length_says() {
    let bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
    let (seen, used) = read_reply(bytes, "HEAD", ConnectionEnd::Open).expect("whole");
    assert_eq!(used, bytes.len());
    assert!(seen.complete().is_some_and(|reply| reply.ending == Ending::NoBody));
}

#[test]
fn what_is_no_response_is_malformed() {
    for (bytes, fault) in [
        ("HTTP/2 200\r\n\r\n", MessageFault::StartLine),
        ("HTTP/1.1 20 OK\r\n\r\n", MessageFault::StartLine),
        ("HTTP/1.1 200 OK\nA: b\n\n", MessageFault::BareLf),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            MessageFault::ContentLength,
        ),
        ("HTTP/1.1 204 OK\r\nTransfer-Encoding: chunked\r\n\r\n", MessageFault::TransferEncoding),
    ] {
        assert_eq!(
            seen(bytes, ConnectionEnd::Open),
            Some(ReplyOutcome::Malformed(fault)),
            "{bytes}"
        );
    }
    assert_eq!(seen("HTTP/1.1 2", ConnectionEnd::Closed), Some(ReplyOutcome::Nothing));
}

#[test]
fn closing_is_read_from_version_and_connection_field() {
    let closes = |bytes: &str| {
        seen(bytes, ConnectionEnd::Closed).and_then(|seen| seen.complete().map(Reply::closes))
    };
    assert_eq!(closes("HTTP/1.1 204 \r\n\r\n"), Some(false));
    assert_eq!(closes("HTTP/1.1 204 \r\nConnection: x, Close\r\n\r\n"), Some(true));
    assert_eq!(closes("HTTP/1.0 204 \r\n\r\n"), Some(true));
    assert_eq!(closes("HTTP/1.0 204 \r\nConnection: keep-alive\r\n\r\n"), Some(false));
}
