//! Octets with a meaning in HTTP/1 text, in every kind of field (RFC 9113 8.2.1).

use super::super::Request;
use super::case::DowngradeExpectation;
use super::table::{DowngradeTable, SMUGGLED, TARGET, get};

pub(super) fn add(table: &mut DowngradeTable) {
    values(table);
    names(table);
    pseudo_fields(table);
    requests_within(table);
}

/// Bytes that are invalid in values.
const FORBIDDEN: [(&str, &[u8]); 5] = [
    ("CR", b"a\rb"),
    ("LF", b"a\nb"),
    ("CRLF", b"a\r\nb"),
    ("NUL", b"a\0b"),
    ("a line of its own", b"a\r\nx-evil: 1"),
];

fn values(table: &mut DowngradeTable) {
    for (name, value) in FORBIDDEN {
        table.head("value", name, get().field("x-a", value), DowngradeExpectation::Reset);
    }
    for (name, value) in [
        ("CR at the end", &b"a\r"[..]),
        ("LF at the end", b"a\n"),
        ("LF at the start", b"\na"),
        ("CRLF alone", b"\r\n"),
        ("an end of the head", b"a\r\n\r\n"),
        ("NUL alone", b"\0"),
        ("space before", b" a"),
        ("space after", b"a "),
        ("tab before", b"\ta"),
        ("tab after", b"a\t"),
        ("space alone", b" "),
    ] {
        table.head("value", name, get().field("x-a", value), DowngradeExpectation::Reset);
    }
    for byte in [0x01, 0x08, 0x0b, 0x0c, 0x1b, 0x1f, 0x7f] {
        let value = [b'a', byte, b'b'];
        let name = format!("byte {byte:#04x}");
        table.head("value", &name, get().field("x-a", value), DowngradeExpectation::Refused);
    }
    for (name, field) in [("in a cookie", "cookie"), ("in a user agent", "user-agent")] {
        let request = get().field(field, "a=b\r\nx-evil: 1");
        table.head("value", name, request, DowngradeExpectation::Reset);
    }
    let request = get().field("host", "larder.test\r\nx-evil: 1");
    table.head("value", "in Host", request, DowngradeExpectation::Reset);
    let request = Request::post(TARGET).field("content-length", "0\r\n\r\n");
    table.head("value", "in Content-Length", request, DowngradeExpectation::Reset);
}

fn names(table: &mut DowngradeTable) {
    for (what, name) in [
        ("upper case", &b"X-Upper"[..]),
        ("one capital at the end", b"x-uppeR"),
        ("CR", b"x\ra"),
        ("LF", b"x\na"),
        ("CRLF", b"x\r\ny"),
        ("NUL", b"x\0a"),
        ("space inside", b"x a"),
        ("space before", b" x"),
        ("space after", b"x "),
        ("tab after", b"x\t"),
        ("colon inside", b"x:y"),
        ("colon after", b"x:"),
        ("value and CRLF", b"x-a: b\r\nx-evil"),
        ("a head's end", b"x-a: b\r\n\r\nGET /smuggled HTTP/1.1\r\nx"),
        ("DEL", b"x\x7f"),
        ("high byte", b"x\xe9"),
        ("UTF-8", "x-é".as_bytes()),
        ("control byte", b"x\x01"),
        ("Content-Length in capitals", b"Content-Length"),
        ("Transfer-Encoding in capitals", b"Transfer-Encoding"),
        ("Host in capitals", b"Host"),
    ] {
        table.head("name", what, get().field(name, "0"), DowngradeExpectation::Reset);
    }
    for byte in b"\"(),/;<=>?@[\\]{}" {
        let name = [b'x', *byte, b'y'];
        let what = format!("byte {}", byte.escape_ascii());
        table.head("name", &what, get().field(name, "1"), DowngradeExpectation::Refused);
    }
    table.head("name", "empty", get().field("", "1"), DowngradeExpectation::Refused);
}

/// These bytes in every pseudo-field.
fn pseudo_fields(table: &mut DowngradeTable) {
    for (field, before) in
        [(":method", "GET"), (":scheme", "http"), (":authority", "larder.test"), (":path", "/")]
    {
        for (what, bytes) in
            [("CR", &b"\r"[..]), ("LF", b"\n"), ("CRLF", b"\r\n"), ("NUL", b"\0"), ("tab", b"\t")]
        {
            let value = [before.as_bytes(), bytes, b"x"].concat();
            let expect = if bytes == b"\t" {
                DowngradeExpectation::Refused
            } else {
                DowngradeExpectation::Reset
            };
            let name = format!("{what} in {field}");
            table.head("pseudo-field bytes", &name, get().set(field, value), expect);
        }
        for (what, byte) in [("space", b' '), ("control byte", 1), ("DEL", 0x7f), ("high", 0xe9)] {
            let value = [before.as_bytes(), &[byte], b"x"].concat();
            let name = format!("{what} in {field}");
            table.head(
                "pseudo-field bytes",
                &name,
                get().set(field, value),
                DowngradeExpectation::Refused,
            );
        }
    }
}

/// Whole requests within a field.
fn requests_within(table: &mut DowngradeTable) {
    let ending = [b" HTTP/1.1\r\nHost: larder.test\r\n\r\n", SMUGGLED].concat();
    let behind = |before: &[u8]| [before, &ending].concat();
    for (name, request) in [
        ("in the path", get().set(":path", behind(b"/"))),
        ("in the method", get().set(":method", behind(b"GET /"))),
        ("in the scheme", get().set(":scheme", behind(b"http://evil.test/"))),
        ("in the authority", get().set(":authority", behind(b"larder.test"))),
        ("in a value", get().field("x-a", behind(b"1"))),
        ("in a name", get().field(behind(b"x-a: 1"), "1")),
    ] {
        table.head("request within", name, request, DowngradeExpectation::Reset);
    }
    for (name, request) in [
        ("path and version", get().set(":path", "/ HTTP/1.1")),
        ("path, version and a field", get().set(":path", "/ HTTP/1.1 Host: evil.test")),
        ("method and target", get().set(":method", "GET /smuggled HTTP/1.1")),
        ("method and absolute target", get().set(":method", "GET http://evil.test/")),
    ] {
        table.head("request within", name, request, DowngradeExpectation::Refused);
    }
}
