//! Framing: lengths, codings, connection fields and trailers, which frame messages in HTTP/1 and
//! not in HTTP/2 (RFC 9113 8.1.1 and 8.2.2).

use super::super::Request;
use super::case::DowngradeExpectation;
use super::table::{DowngradeTable, SMUGGLED, TARGET, forwarded, get};

pub(super) fn add(table: &mut DowngradeTable) {
    lengths(table);
    length_values(table);
    padded(table);
    connection_fields(table);
    lookalikes(table);
    expectations(table);
    trailers(table);
}

fn post(length: &str) -> Request {
    Request::post(TARGET).field("content-length", length)
}

fn lengths(table: &mut DowngradeTable) {
    let five: &[&[u8]] = &[b"12345"];
    let class = "content-length";
    for (name, length, data) in [
        ("one too many", "4", five),
        ("one too few", "6", five),
        ("none said to come", "0", five),
        ("many more said to come", "100000", five),
        ("said to come and none comes", "5", &[]),
        ("said to come and an empty frame comes", "5", &[b""]),
        ("too many in a second frame", "5", &[b"12345", b"6"]),
        ("a request behind the body", "5", &[b"12345", SMUGGLED]),
        ("a request as the body of none", "0", &[SMUGGLED]),
    ] {
        table.push(class, name, post(length), data, DowngradeExpectation::Reset);
    }
    let get = get().field("content-length", "5");
    table.head(class, "of a GET without body", get, DowngradeExpectation::Reset);
    let late =
        table.push(class, "too few before trailers", post("6"), five, DowngradeExpectation::Reset);
    late.trailers = Some(Request::of(&[(b"x-sum", b"1")]).fields);
    let whole = |body: &[u8]| DowngradeExpectation::Forwarded(forwarded("POST", TARGET, &[], body));
    table.push(class, "right", post("5"), five, whole(b"12345"));
    table.push(
        class,
        "right in five frames",
        post("5"),
        &[b"1", b"2", b"", b"34", b"5"],
        whole(b"12345"),
    );
    table.push(
        class,
        "right with an empty last frame",
        post("5"),
        &[b"12345", b""],
        whole(b"12345"),
    );
    table.push(class, "none, and none comes", post("0"), &[], whole(b""));
    table.push(class, "none, and an empty frame", post("0"), &[b""], whole(b""));
    table.push(class, "unsaid", Request::post(TARGET), five, whole(b"12345"));
    table.push(
        class,
        "unsaid, with a request as body",
        Request::post(TARGET),
        &[SMUGGLED],
        whole(SMUGGLED),
    );
    let chunks: &[&[u8]] = &[b"0\r\n\r\n", SMUGGLED];
    table.push(
        class,
        "unsaid, with a last chunk as body",
        Request::post(TARGET),
        chunks,
        whole(&chunks.concat()),
    );
}

fn length_values(table: &mut DowngradeTable) {
    for value in [
        "five",
        "",
        "+5",
        "-5",
        "0x5",
        "5.0",
        "5,5",
        "5, 5",
        "5;5",
        "5 5",
        "\"5\"",
        "9223372036854775808",
        "18446744073709551621",
        "100000000000000000000000000000000000005",
    ] {
        let name = format!("value {value:?}");
        table.push(
            "content-length",
            &name,
            post(value),
            &[b"12345"],
            DowngradeExpectation::Refused,
        );
    }
    for (name, second) in [("twice", "5"), ("two of them", "0"), ("a second is larger", "50")] {
        let request = post("5").field("content-length", second);
        table.push("content-length", name, request, &[b"12345"], DowngradeExpectation::Refused);
    }
}

/// Padding is not part of the body (RFC 9113 6.1).
fn padded(table: &mut DowngradeTable) {
    let whole = DowngradeExpectation::Forwarded(forwarded("POST", TARGET, &[], b"12345"));
    let mut add = |name, length, pieces: &[(&[u8], Option<u8>)], expect| {
        let case = table.push("padding", name, post(length), &[], expect);
        case.data = pieces.iter().map(|(body, padding)| (body.to_vec(), *padding)).collect();
    };
    add("is not counted", "5", &[(b"12345", Some(200))], whole.clone());
    add("of nothing", "5", &[(b"12345", Some(0))], whole.clone());
    add("alone in a frame", "5", &[(b"123", Some(3)), (b"", Some(9)), (b"45", None)], whole);
    add("does not fill a length", "10", &[(b"12345", Some(5))], DowngradeExpectation::Reset);
    add("with its length byte neither", "11", &[(b"12345", Some(5))], DowngradeExpectation::Reset);
}

fn connection_fields(table: &mut DowngradeTable) {
    for (field, value) in [
        ("connection", "close"),
        ("connection", "keep-alive"),
        ("connection", "upgrade"),
        ("connection", "x-forwarded-for"),
        ("connection", "content-length"),
        ("connection", ""),
        ("keep-alive", "timeout=5"),
        ("proxy-connection", "keep-alive"),
        ("transfer-encoding", "chunked"),
        ("transfer-encoding", "identity"),
        ("transfer-encoding", "gzip, chunked"),
        ("transfer-encoding", ""),
        ("upgrade", "h2c"),
        ("upgrade", "websocket"),
        ("te", "gzip"),
        ("te", "trailers, gzip"),
        ("te", "chunked"),
    ] {
        let name = format!("{field} {value:?}");
        table.head(
            "connection fields",
            &name,
            get().field(field, value),
            DowngradeExpectation::Reset,
        );
    }
    let coded = post("5").field("transfer-encoding", "chunked");
    let body: &[&[u8]] = &[b"0\r\n\r\n", SMUGGLED];
    table.push(
        "connection fields",
        "coding against length",
        coded,
        body,
        DowngradeExpectation::Reset,
    );
    let coded = Request::post(TARGET).field("transfer-encoding", "chunked");
    table.push("connection fields", "coding and chunks", coded, body, DowngradeExpectation::Reset);
    // Trailers are stored, so the origin gets the TE field.
    let (te, sent_te) = (get().field("te", "trailers"), [("connection", "TE"), ("te", "trailers")]);
    let expect = DowngradeExpectation::Forwarded(forwarded("GET", TARGET, &sent_te, b""));
    table.head("connection fields", "te \"trailers\" may stand", te, expect);
}

/// Names that CGI confuses with other names.
fn lookalikes(table: &mut DowngradeTable) {
    for (name, value) in [
        ("content_length", "50"),
        ("transfer_encoding", "chunked"),
        ("content.length", "50"),
        ("transfer-encoding_", "chunked"),
    ] {
        let request = post("5").field(name, value);
        let expect = match name.contains('_') && !name.ends_with('_') {
            true => DowngradeExpectation::Refused,
            false => DowngradeExpectation::RefusedOr(forwarded(
                "POST",
                TARGET,
                &[(name, value)],
                b"12345",
            )),
        };
        table.push("lookalikes", name, request, &[b"12345"], expect);
    }
    let forged = get().field("x_real_ip", "203.0.113.1").field("x-original-url", "/smuggled");
    let expect = DowngradeExpectation::Forwarded(forwarded("GET", TARGET, &[], b""));
    table.head("lookalikes", "what proxies say is dropped", forged, expect);
}

fn expectations(table: &mut DowngradeTable) {
    for value in ["200-ok", "100-continue, x", ""] {
        let request = post("5").field("expect", value);
        let name = format!("expect {value:?}");
        table.push("expect", &name, request, &[b"12345"], DowngradeExpectation::Status(417));
    }
    let request = post("5").field("expect", "100-continue");
    let expect = DowngradeExpectation::Forwarded(forwarded("POST", TARGET, &[], b"12345"));
    table.push("expect", "a body that comes anyhow", request, &[b"12345"], expect);
}

fn trailers(table: &mut DowngradeTable) {
    for (name, field, value) in [
        ("a path", &b":path"[..], &b"/smuggled"[..]),
        ("a status", b":status", b"200"),
        ("an unknown pseudo-field", b":x", b"1"),
        ("Transfer-Encoding", b"transfer-encoding", b"chunked"),
        ("Connection", b"connection", b"close"),
        ("upper case", b"X-Sum", b"1"),
        ("CRLF in a value", b"x-sum", b"1\r\n\r\nGET /smuggled HTTP/1.1"),
        ("CRLF in a name", b"x-sum: 1\r\nx-evil", b"1"),
        ("NUL", b"x-sum", b"\0"),
        ("a blank before the value", b"x-sum", b" 1"),
    ] {
        table.trailers(name, &[(field, value)], DowngradeExpectation::Reset);
    }
    let whole = || forwarded("POST", TARGET, &[], b"body");
    // RFC 9110 6.5.1: such trailers must be rejected or ignored.
    for (name, field, value) in [
        ("Content-Length", &b"content-length"[..], &b"0"[..]),
        ("Host", b"host", b"evil.test"),
        ("Authorization", b"authorization", b"Basic eA=="),
        ("Cookie", b"cookie", b"a=evil"),
    ] {
        table.trailers(name, &[(field, value)], DowngradeExpectation::RefusedOr(whole()));
    }
    table.trailers(
        "an ordinary one",
        &[(b"x-sum", b"1")],
        DowngradeExpectation::Forwarded(whole()),
    );
    table.trailers("none in the block", &[], DowngradeExpectation::Forwarded(whole()));
    table.trailers("not the end", &[(b"x-sum", b"1")], DowngradeExpectation::Reset).ended = false;
}
