//! Response cases: the accepted ones with their framing, and the rejected ones.

use h1::{BodyError, FieldError, FramingError, ResponseError};
use message::Method;

use crate::support::{Connection, Cuts, Ended, read_lenient, read_responses};

type Answer = Connection<ResponseError>;

fn read(bytes: &[u8], method: &Method) -> Answer {
    let whole = read_responses(bytes, Cuts::None, method);
    for cuts in [Cuts::EveryByte, Cuts::AfterCr, Cuts::AfterLf] {
        let cut = read_responses(bytes, cuts, method);
        assert_eq!(cut, whole, "{}, {cuts:?}", bytes.escape_ascii());
    }
    whole
}

fn ok(fields: &[u8], rest: &[u8]) -> Vec<u8> {
    [b"HTTP/1.1 200 OK\r\n", fields, b"\r\n", rest].concat()
}

fn chunked(body: &[u8]) -> Vec<u8> {
    ok(b"Transfer-Encoding: chunked\r\n", body)
}

#[test]
fn well_formed_responses_are_framed() {
    for (bytes, said, body) in [
        (
            &b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"[..],
            "Length(2), keep_alive: true",
            "hi",
        ),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "Length(0), keep_alive: true", ""),
        (b"HTTP/1.1 200 OK\r\nContent-Length:  2  \r\n\r\nhi", "Length(2), keep_alive: true", "hi"),
        (b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nhi", "Length(2), keep_alive: true", "hi"),
        (b"HTTP/1.1 200 \r\nContent-Length: 2\r\n\r\nhi", "Length(2), keep_alive: true", "hi"),
        (b"HTTP/1.1 200 All is\twell \xfc\r\nContent-Length: 2\r\n\r\nhi", "Length(2)", "hi"),
        (b"HTTP/1.1 799 Odd\r\nContent-Length: 2\r\n\r\nhi", "Length(2)", "hi"),
        (b"HTTP/1.2 200 OK\r\nContent-Length: 2\r\n\r\nhi", "Length(2), keep_alive: true", "hi"),
        (b"HTTP/1.1 200 OK\r\n\r\nhi", "UntilClose, keep_alive: false", "hi"),
        (b"HTTP/1.0 200 OK\r\n\r\nhi", "UntilClose, keep_alive: false", "hi"),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi", "Length(2), keep_alive: false", "hi"),
        (
            b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\nConnection: Keep-Alive\r\n\r\nhi",
            "Length(2), keep_alive: true",
            "hi",
        ),
        (
            b"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\n\r\nhi",
            "UntilClose, keep_alive: false",
            "hi",
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi",
            "Length(2), keep_alive: false",
            "hi",
        ),
        (
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: CHUNKED\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
            "Chunked, keep_alive: true",
            "hi",
        ),
        (b"HTTP/1.1 204 No Content\r\n\r\n", "None, keep_alive: true", ""),
        (b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", "None, keep_alive: true", ""),
        (b"HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\n", "None, keep_alive: false", ""),
        (
            b"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n",
            "None, keep_alive: false",
            "",
        ),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", "None, keep_alive: true", ""),
        (
            b"HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n",
            "None, keep_alive: true",
            "",
        ),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: a\r\n\r\n", "None", ""),
        (b"HTTP/1.1 100 Continue\r\nContent-Length: 0\r\n\r\n", "None", ""),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\n", "Length(922", ""),
    ] {
        let answer = read(bytes, &Method::Get);
        let [(head, got)] = &answer.messages[..] else {
            panic!("{}: {answer:?}", bytes.escape_ascii());
        };
        assert!(head.contains(said), "{}: {head}", bytes.escape_ascii());
        assert_eq!(got, body.as_bytes(), "{}", bytes.escape_ascii());
    }
}

#[test]
fn a_response_to_head_has_no_body() {
    for fields in ["Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n", ""] {
        let bytes = ok(fields.as_bytes(), b"");
        let answer = read(&bytes, &Method::Head);
        assert_eq!(answer.ended, Ended::Clean);
        assert!(answer.messages[0].0.contains("framing: None, keep_alive: true"), "{answer:?}");
    }
}

#[test]
fn interim_responses_come_out_one_by_one() {
    let bytes = [
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n",
        &ok(b"Content-Length: 2\r\n", b"hi")[..],
    ]
    .concat();
    let answer = read(&bytes, &Method::Get);
    assert_eq!(answer.ended, Ended::Clean);
    assert_eq!(answer.messages.len(), 3);
    assert_eq!(answer.messages[2].1, b"hi");
}

#[test]
fn malformed_heads_are_refused() {
    use FieldError::{
        BareCr, BareLf, Control, EmptyName, LeadingSpace, Name, ObsFold, SpaceBeforeColon,
    };
    use ResponseError::{Field, StatusLine};
    for (bytes, error) in [
        (&b"http/1.1 200 OK\r\n\r\n"[..], StatusLine),
        (b"HTTP/2.0 200 OK\r\n\r\n", StatusLine),
        (b"HTTP/0.9 200 OK\r\n\r\n", StatusLine),
        (b"HTTP/1.10 200 OK\r\n\r\n", StatusLine),
        (b"HTTP/1 200 OK\r\n\r\n", StatusLine),
        (b"HTTP/1.x 200 OK\r\n\r\n", StatusLine),
        (b"ICY 200 OK\r\n\r\n", StatusLine),
        (b" HTTP/1.1 200 OK\r\n\r\n", StatusLine),
        (b"\r\nHTTP/1.1 200 OK\r\n\r\n", StatusLine),
        (b"HTTP/1.1  200 OK\r\n\r\n", StatusLine),
        (b"HTTP/1.1\t200 OK\r\n\r\n", StatusLine),
        (b"HTTP/1.1 20 OK\r\n\r\n", StatusLine),
        (b"HTTP/1.1 2000 OK\r\n\r\n", StatusLine),
        (b"HTTP/1.1 099 OK\r\n\r\n", StatusLine),
        (b"HTTP/1.1 000 OK\r\n\r\n", StatusLine),
        (b"HTTP/1.1 2x0 OK\r\n\r\n", StatusLine),
        (b"HTTP/1.1 +20 OK\r\n\r\n", StatusLine),
        (b"HTTP/1.1 200OK\r\n\r\n", StatusLine),
        (b"HTTP/1.1 200\tOK\r\n\r\n", StatusLine),
        (b"HTTP/1.1 OK\r\n\r\n", StatusLine),
        (b"HTTP/1.1\r\n\r\n", StatusLine),
        (b"<html>hello</html>", StatusLine),
        (b"HTTP/1.1 200 O\0K\r\n\r\n", Field(Control)),
        (b"HTTP/1.1 200 O\x1bK\r\n\r\n", Field(Control)),
        (b"HTTP/1.1 200 OK\n\n", Field(BareLf)),
        (b"HTTP/1.1 200\n\n", Field(BareLf)),
        (b"HTTP/1.1 200 OK\rA: b\r\n\r\n", Field(BareCr)),
        (b"HTTP/1.1 200 OK\r\r\n\r\n", Field(BareCr)),
        (b"HTTP/1.1 200 OK\r\nA: b\n\r\n", Field(BareLf)),
        (b"HTTP/1.1 200 OK\r\nA: b\r\n\n", Field(BareLf)),
        (b"HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n", Field(BareCr)),
        (b"HTTP/1.1 200 OK\r\n\r\r\n", Field(BareCr)),
        (b"HTTP/1.1 200 OK\r\nA : b\r\n\r\n", Field(SpaceBeforeColon)),
        (b"HTTP/1.1 200 OK\r\n: b\r\n\r\n", Field(EmptyName)),
        (b"HTTP/1.1 200 OK\r\nA\r\n\r\n", Field(Name)),
        (b"HTTP/1.1 200 OK\r\nA(b): c\r\n\r\n", Field(Name)),
        (b"HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n", Field(ObsFold)),
        (b"HTTP/1.1 200 OK\r\n\tA: b\r\n\r\n", Field(LeadingSpace)),
        (b"HTTP/1.1 200 OK\r\nA: \0\r\n\r\n", Field(Control)),
        (b"HTTP/1.1 200 OK\r\nA: b\x7f\r\n\r\n", Field(Control)),
    ] {
        assert_eq!(read(bytes, &Method::Get).ended, Ended::Head(error), "{}", bytes.escape_ascii());
    }
}

#[test]
fn the_same_length_said_again_is_one() {
    for fields in [
        &b"Content-Length: 2\r\nA: b\r\nContent-Length: 2\r\n"[..],
        b"Content-Length: 2, 2\r\nA: b\r\n",
        b"Content-Length: 2 ,\t02\r\nA: b\r\nContent-Length: 2\r\n",
    ] {
        let answer = read(&ok(fields, b"hi"), &Method::Get);
        let (said, body) = &answer.messages[0];
        assert_eq!((&body[..], answer.ended), (&b"hi"[..], Ended::Clean));
        assert!(said.contains("Length(2)"), "{said}");
        assert_eq!(said.matches("id: ContentLength").count(), 1, "{said}");
        assert!(said.contains("value_at: 16, value_len: 1"), "{said}");
    }
}

#[test]
fn line_feeds_end_lines_of_lenient_origins_only() {
    for bytes in [
        &b"HTTP/1.1 200 OK\nContent-Length: 2\nA: b\n\nhi"[..],
        b"HTTP/1.1 200\nContent-Length: 2\nA: b\n\nhi",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\nA: b \r\n\nhi",
        b"HTTP/1.1 200 OK\nContent-Length: 2\r\nA: b\n\r\nhi",
        b"HTTP/1.1 103 Early\nX: y\n\nHTTP/1.1 200 OK\nContent-Length: 2\nA: b\n\nhi",
    ] {
        let answer = read_lenient(bytes, Cuts::None, &Method::Get);
        let (said, body) = answer.messages.last().expect("a response");
        assert_eq!((&body[..], answer.ended), (&b"hi"[..], Ended::Clean), "{said}");
        assert!(said.contains("line_feeds: true") && said.contains("keep_alive: true"), "{said}");
        for cuts in [Cuts::EveryByte, Cuts::AfterCr, Cuts::AfterLf] {
            assert_eq!(read_lenient(bytes, cuts, &Method::Get), answer, "{}", bytes.escape_ascii());
        }
        let strict = read(bytes, &Method::Get).ended;
        assert_eq!(strict, Ended::Head(ResponseError::Field(FieldError::BareLf)));
    }
    let usual = read_lenient(&ok(b"Content-Length: 0\r\n", b""), Cuts::None, &Method::Get);
    assert!(usual.messages[0].0.contains("line_feeds: false"), "{:?}", usual.messages);
}

#[test]
fn a_lenient_reader_is_strict_about_all_else() {
    use FieldError::{BareCr, LeadingSpace, Name, ObsFold};
    for (bytes, error) in [
        (&b"HTTP/1.1 200 OK\nA: b\rc\n\n"[..], BareCr),
        (b"HTTP/1.1 200 OK\nA: b\n\r\r\n", BareCr),
        (b"HTTP/1.1 200 OK\nA\n\n", Name),
        (b"HTTP/1.1 200 OK\nA: b\n c\n\n", ObsFold),
        (b"HTTP/1.1 200 OK\n A: b\n\n", LeadingSpace),
    ] {
        let ended = read_lenient(bytes, Cuts::None, &Method::Get).ended;
        let refused = Ended::Head(ResponseError::Field(error));
        assert_eq!(ended, refused, "{}", bytes.escape_ascii());
    }
}

#[test]
fn doubtful_framing_is_refused() {
    use FramingError::{
        Connection, ContentLength, DuplicateContentLength, LengthAndCoding, Lookalike,
        TransferEncoding, TransferEncodingForbidden, UnknownCoding,
    };
    for (fields, error) in [
        (&b"Content-Length: 5\r\nContent-Length: 6\r\n"[..], DuplicateContentLength),
        (b"Content-Length: 5, 6\r\n", DuplicateContentLength),
        (b"Content-Length: 5, 5\r\nContent-Length: 6\r\n", DuplicateContentLength),
        (b"Content-Length: 5,\r\n", ContentLength),
        (b"Content-Length: 5\r\nContent-Length:\r\n", ContentLength),
        (b"Content-Length: 5, 5\r\nTransfer-Encoding: chunked\r\n", LengthAndCoding),
        (b"Content-Length: +5\r\n", ContentLength),
        (b"Content-Length: -1\r\n", ContentLength),
        (b"Content-Length: 0x5\r\n", ContentLength),
        (b"Content-Length: \r\n", ContentLength),
        (b"Content-Length: five\r\n", ContentLength),
        (b"Content-Length: 9223372036854775808\r\n", ContentLength),
        (b"Content_Length: 5\r\n", Lookalike),
        (b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", LengthAndCoding),
        (b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", LengthAndCoding),
        (b"Transfer-Encoding: gzip, chunked\r\n", TransferEncoding),
        (b"Transfer-Encoding: chunked, chunked\r\n", TransferEncoding),
        (b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", TransferEncoding),
        (b"Transfer-Encoding:\r\n", TransferEncoding),
        (b"Transfer-Encoding: chunked;a=b\r\n", TransferEncoding),
        (b"Transfer-Encoding: gzip\r\n", UnknownCoding),
        (b"Transfer-Encoding: identity\r\n", UnknownCoding),
        (b"Connection: transfer-encoding\r\n", Connection),
    ] {
        let answer = read(&ok(fields, b"0\r\n\r\n"), &Method::Get);
        let refused = Ended::Head(ResponseError::Framing(error));
        assert_eq!(answer.ended, refused, "{}", fields.escape_ascii());
    }
    for bytes in [
        &b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"[..],
        b"HTTP/1.1 100 Continue\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\nContent-Length: 5\r\n\r\n",
    ] {
        let refused = Ended::Head(ResponseError::Framing(TransferEncodingForbidden));
        assert_eq!(read(bytes, &Method::Get).ended, refused, "{}", bytes.escape_ascii());
    }
}

#[test]
fn padded_chunk_sizes_are_taken_from_origins_only() {
    for body in [
        &b"5  \r\nhello\r\n0\r\n\r\n"[..],
        b"5\t\r\nhello\r\n0 \r\n\r\n",
        b"5 ;a=b\r\nhello\r\n0\r\nA: b\r\n\r\n",
    ] {
        let answer = read(&chunked(body), &Method::Get);
        assert_eq!(answer.ended, Ended::Clean, "{}", body.escape_ascii());
        assert_eq!(answer.messages[0].1, b"hello");
    }
    for (body, error) in [
        (&b" 5\r\nhello\r\n"[..], BodyError::ChunkSize),
        (b"5 5\r\nhello\r\n", BodyError::ChunkSize),
        (b"0x5\r\nhello\r\n", BodyError::ChunkSize),
        (b"5\nhello\r\n", BodyError::ChunkEnd),
        (b"5 \nhello\r\n", BodyError::ChunkSize),
        (b"5\r\nhello0\r\n\r\n", BodyError::ChunkEnd),
        (b"10000000000000000\r\n", BodyError::ChunkSize),
        (b"0\r\nContent-Length: 5\r\n\r\n", BodyError::TrailerForbidden),
        (b"0\r\nA : b\r\n\r\n", BodyError::Trailer(FieldError::SpaceBeforeColon)),
    ] {
        let answer = read(&chunked(body), &Method::Get);
        assert_eq!(answer.ended, Ended::Body(error), "{}", body.escape_ascii());
    }
    let padding = [b"5", &b" ".repeat(5000)[..], b"\r\nhello\r\n0\r\n\r\n"].concat();
    let answer = read(&chunked(&padding), &Method::Get);
    assert_eq!(answer.ended, Ended::Body(BodyError::ChunkExtensionBytes));
}

#[test]
fn a_body_cut_short_is_never_whole() {
    let truncated = Ended::InBody(Err(BodyError::Truncated));
    for bytes in [
        ok(b"Content-Length: 5\r\n", b"hell"),
        ok(b"Content-Length: 5\r\n", b""),
        chunked(b""),
        chunked(b"5"),
        chunked(b"5\r\nhel"),
        chunked(b"5\r\nhello"),
        chunked(b"5\r\nhello\r\n"),
        chunked(b"5\r\nhello\r\n0\r\n"),
        chunked(b"5\r\nhello\r\n0\r\nA: b\r\n"),
        chunked(b"5\r\nhello\r\n0\r\n\r"),
    ] {
        assert_eq!(read(&bytes, &Method::Get).ended, truncated, "{}", bytes.escape_ascii());
    }
    assert_eq!(read(&ok(b"", b"hell"), &Method::Get).ended, Ended::InBody(Ok(())));
}

#[test]
fn bytes_behind_the_body_are_not_of_it() {
    let answer = read(&ok(b"Content-Length: 2\r\n", b"hi!"), &Method::Get);
    assert_eq!(answer.messages[0].1, b"hi");
    assert_eq!(answer.ended, Ended::Head(ResponseError::StatusLine));
}
