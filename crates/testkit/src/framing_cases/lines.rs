//! Start lines, hosts, line ends, control bytes, names, limits.

use super::table::{FramingTable, SMUGGLED, get};

pub(super) fn add(table: &mut FramingTable) {
    request_line(table);
    host(table);
    bare_lf_cr(table);
    control(table);
    header_name(table);
    obs_fold(table);
    limits(table);
}

fn request_line(table: &mut FramingTable) {
    for (name, line) in [
        ("two spaces before the target", &b"GET  / HTTP/1.1"[..]),
        ("two spaces before the version", b"GET /  HTTP/1.1"),
        ("tab for space", b"GET\t/ HTTP/1.1"),
        ("tab before the version", b"GET /\tHTTP/1.1"),
        ("vertical tab for space", b"GET\x0b/ HTTP/1.1"),
        ("form feed for space", b"GET /\x0cHTTP/1.1"),
        ("space after the version", b"GET / HTTP/1.1 "),
        ("tab after the version", b"GET / HTTP/1.1\t"),
        ("leading space", b" GET / HTTP/1.1"),
        ("leading tab", b"\tGET / HTTP/1.1"),
        ("no version", b"GET /"),
        ("no version but its space", b"GET / "),
        ("no target", b"GET HTTP/1.1"),
        ("empty target", b"GET  HTTP/1.1"),
        ("method alone", b"GET"),
        ("method not a token", b"G(T / HTTP/1.1"),
        ("method with colon", b"GET: / HTTP/1.1"),
        ("method with NUL", b"G\0ET / HTTP/1.1"),
        ("method beyond ASCII", b"G\xc3\x8bT / HTTP/1.1"),
        ("method of 33 bytes", b"GETGETGETGETGETGETGETGETGETGETGET / HTTP/1.1"),
        ("version in lower case", b"GET / http/1.1"),
        ("version of another protocol", b"GET / HTCPCP/1.1"),
        ("version 0.9", b"GET / HTTP/0.9"),
        ("version 2.0", b"GET / HTTP/2.0"),
        ("version 3.0", b"GET / HTTP/3.0"),
        ("version 9.9", b"GET / HTTP/9.9"),
        ("version without minor", b"GET / HTTP/1"),
        ("version with two digits", b"GET / HTTP/1.10"),
        ("version with leading zero", b"GET / HTTP/01.1"),
        ("version with comma", b"GET / HTTP/1,1"),
        ("version with letter", b"GET / HTTP/1.x"),
        ("version with space inside", b"GET / HTTP/ 1.1"),
        ("version twice", b"GET / HTTP/1.1 HTTP/1.1"),
        ("HTTP/2 preface", b"PRI * HTTP/2.0"),
        ("space in the target", b"GET /a b HTTP/1.1"),
        ("fragment in the target", b"GET /a#b HTTP/1.1"),
        ("NUL in the target", b"GET /a\0b HTTP/1.1"),
        ("control byte in the target", b"GET /a\x01b HTTP/1.1"),
        ("DEL in the target", b"GET /a\x7fb HTTP/1.1"),
        ("a byte that is not UTF-8 in the target", b"GET /\xe9 HTTP/1.1"),
        ("encoded NUL in the path", b"GET /a%00b HTTP/1.1"),
        ("relative target", b"GET index.html HTTP/1.1"),
        ("target begins with a query", b"GET ?a=b HTTP/1.1"),
        ("asterisk for GET", b"GET * HTTP/1.1"),
        ("asterisk and more", b"OPTIONS *a HTTP/1.1"),
        ("authority for GET", b"GET example.com:80 HTTP/1.1"),
        ("CONNECT", b"CONNECT example.com:443 HTTP/1.1"),
        ("absolute target of another scheme", b"GET ftp://example.com/ HTTP/1.1"),
        ("absolute target with one slash", b"GET http:/example.com/ HTTP/1.1"),
        ("absolute target without authority", b"GET http:///a HTTP/1.1"),
        ("absolute target with user", b"GET http://user@example.com/ HTTP/1.1"),
        ("absolute target with bad port", b"GET http://example.com:x/ HTTP/1.1"),
        ("absolute target with backslash", b"GET http://example.com\\@evil.example/ HTTP/1.1"),
        ("absolute target with fragment", b"GET http://example.com/#a HTTP/1.1"),
    ] {
        let bytes = [line, b"\r\nHost: example.com\r\n\r\n", SMUGGLED].concat();
        table.reject("request-line", name, bytes);
    }
    let blank = [b"\r\n\r\n\r\n", &get(b"")[..]].concat();
    table.accept("request-line", "three blank lines before", 1, blank);
    table.reject(
        "request-line",
        "no HTTP at all",
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..],
    );
    table.reject("request-line", "a field for a request line", &b"Host: example.com\r\n\r\n"[..]);
}

fn host(table: &mut FramingTable) {
    for (name, fields) in [
        ("missing", &b""[..]),
        ("empty", b"Host:\r\n"),
        ("only white space", b"Host:  \t\r\n"),
        ("twice", b"Host: example.com\r\nHost: evil.example\r\n"),
        ("twice the same", b"Host: example.com\r\nHost: example.com\r\n"),
        ("twice in different case", b"Host: example.com\r\nhost: example.com\r\n"),
        ("list", b"Host: example.com, evil.example\r\n"),
        ("list without space", b"Host: example.com,evil.example\r\n"),
        ("space inside", b"Host: example.com evil.example\r\n"),
        ("tab inside", b"Host: example.com\tevil.example\r\n"),
        ("user", b"Host: user@example.com\r\n"),
        ("user and password", b"Host: user:secret@example.com\r\n"),
        ("path", b"Host: example.com/path\r\n"),
        ("query", b"Host: example.com?query\r\n"),
        ("fragment", b"Host: example.com#fragment\r\n"),
        ("backslash", b"Host: example.com\\evil.example\r\n"),
        ("scheme", b"Host: http://example.com\r\n"),
        ("port not a number", b"Host: example.com:80x\r\n"),
        ("port with sign", b"Host: example.com:+80\r\n"),
        ("port zero", b"Host: example.com:0\r\n"),
        ("port too large", b"Host: example.com:65536\r\n"),
        ("two ports", b"Host: example.com:80:81\r\n"),
        ("port alone", b"Host: :80\r\n"),
        ("dot alone", b"Host: .\r\n"),
        ("empty label", b"Host: example..com\r\n"),
        ("two trailing dots", b"Host: example.com..\r\n"),
        ("percent-encoding", b"Host: example%2ecom\r\n"),
        ("NUL", b"Host: example.com\0evil.example\r\n"),
        ("high byte", b"Host: ex\xc3\xa4mple.com\r\n"),
        ("quotes", b"Host: \"example.com\"\r\n"),
        ("IPv6 without brackets", b"Host: ::1\r\n"),
        ("IPv6 not closed", b"Host: [::1\r\n"),
        ("IPv6 with zone", b"Host: [fe80::1%25eth0]\r\n"),
        ("IPv6 and more", b"Host: [::1]evil.example\r\n"),
        ("brackets around a name", b"Host: [example.com]\r\n"),
        ("folded", b"Host:\r\n example.com\r\n"),
        ("space before the colon", b"Host : example.com\r\n"),
    ] {
        table.reject("host", name, [b"GET / HTTP/1.1\r\n", fields, b"\r\n", SMUGGLED].concat());
    }
    for (name, head) in [
        ("missing beside an absolute target", &b"GET http://example.com/ HTTP/1.1\r\n"[..]),
        ("invalid beside an absolute target", b"GET http://example.com/ HTTP/1.1\r\nHost: a b\r\n"),
        (
            "twice beside an absolute target",
            b"GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\nHost: example.com\r\n",
        ),
        ("invalid in HTTP/1.0", b"GET / HTTP/1.0\r\nHost: a,b\r\n"),
        ("twice in HTTP/1.0", b"GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n"),
    ] {
        table.reject("host", name, [head, b"\r\n"].concat());
    }
}

fn bare_lf_cr(table: &mut FramingTable) {
    for (name, bytes) in [
        ("LF ends the request line", &b"GET / HTTP/1.1\nHost: example.com\r\n\r\n"[..]),
        ("LF ends a field", b"GET / HTTP/1.1\r\nHost: example.com\nA: b\r\n\r\n"),
        ("LF ends the head", b"GET / HTTP/1.1\r\nHost: example.com\r\n\n"),
        ("LF everywhere", b"GET / HTTP/1.1\nHost: example.com\n\n"),
        ("LF LF after a field", b"GET / HTTP/1.1\r\nHost: example.com\n\n"),
        ("LF before the request line", b"\nGET / HTTP/1.1\r\nHost: example.com\r\n\r\n"),
        ("LF CR ends a line", b"GET / HTTP/1.1\r\nHost: example.com\n\rA: b\r\n\r\n"),
        ("LF in the method", b"GE\nT / HTTP/1.1\r\nHost: example.com\r\n\r\n"),
        ("LF in the target", b"GET /a\nb HTTP/1.1\r\nHost: example.com\r\n\r\n"),
        ("LF in the version", b"GET / HTTP\n/1.1\r\nHost: example.com\r\n\r\n"),
        ("LF in a name", b"GET / HTTP/1.1\r\nHost: example.com\r\nA\nB: c\r\n\r\n"),
        ("LF after the colon", b"GET / HTTP/1.1\r\nHost: example.com\r\nA:\nB: c\r\n\r\n"),
        ("CR ends the request line", b"GET / HTTP/1.1\rHost: example.com\r\n\r\n"),
        ("CR ends a field", b"GET / HTTP/1.1\r\nHost: example.com\rA: b\r\n\r\n"),
        ("CR everywhere", b"GET / HTTP/1.1\rHost: example.com\r\r"),
        ("CR CR LF ends the head", b"GET / HTTP/1.1\r\nHost: example.com\r\n\r\r\n"),
        ("CR CR LF ends a field", b"GET / HTTP/1.1\r\nHost: example.com\r\r\n\r\n"),
        ("CR CR LF ends the request line", b"GET / HTTP/1.1\r\r\nHost: example.com\r\n\r\n"),
        ("CR before the request line", b"\rGET / HTTP/1.1\r\nHost: example.com\r\n\r\n"),
        ("CR in the target", b"GET /a\rb HTTP/1.1\r\nHost: example.com\r\n\r\n"),
        ("CR in a name", b"GET / HTTP/1.1\r\nHost: example.com\r\nA\rB: c\r\n\r\n"),
        ("CR after the colon", b"GET / HTTP/1.1\r\nHost: example.com\r\nA:\rB: c\r\n\r\n"),
        ("CR at the begin of a line", b"GET / HTTP/1.1\r\nHost: example.com\r\n\rA: b\r\n\r\n"),
    ] {
        table.reject("bare-lf-cr", name, bytes);
    }
}

fn control(table: &mut FramingTable) {
    for b in (0..0x20).chain([0x7f]).filter(|b| !matches!(b, b'\t' | b'\n' | b'\r')) {
        let fields = [b"X: a".as_slice(), &[b], b"b\r\n"].concat();
        table.reject("control", &format!("{b:#04x} in a value"), get(&fields));
    }
    table.reject("control", "NUL begins a value", get(b"X: \0a\r\n"));
    table.reject("control", "NUL ends a value", get(b"X: a\0\r\n"));
    table.reject("control", "NUL begins a line", get(b"\0X: a\r\n"));
    table.reject("control", "NUL between lines", get(b"X: a\r\n\0\r\n"));
    table.reject("control", "NUL for the blank line", get(b"X: a\r\n\0"));
}

fn header_name(table: &mut FramingTable) {
    for (name, fields) in [
        ("empty", &b": b\r\n"[..]),
        ("empty before a framing field", b": b\r\nContent-Length: 5\r\n"),
        ("space before the colon", b"A : b\r\n"),
        ("tab before the colon", b"A\t: b\r\n"),
        ("space inside", b"A B: c\r\n"),
        ("no colon", b"A\r\n"),
        ("no colon but a value", b"A b\r\n"),
        ("equals sign for the colon", b"A=b\r\n"),
        ("slash", b"A/B: c\r\n"),
        ("parenthesis", b"A(B): c\r\n"),
        ("comma", b"A,B: c\r\n"),
        ("semicolon", b"A;B: c\r\n"),
        ("brackets", b"A[0]: c\r\n"),
        ("at sign", b"@A: c\r\n"),
        ("quotes", b"\"A\": c\r\n"),
        ("backslash", b"A\\B: c\r\n"),
        ("braces", b"{A}: c\r\n"),
        ("high byte", b"A\xffB: c\r\n"),
        ("NUL", b"A\0B: c\r\n"),
        ("DEL", b"A\x7fB: c\r\n"),
        ("vertical tab", b"A\x0b: c\r\n"),
        ("byte order mark", b"\xef\xbb\xbfA: b\r\n"),
        ("a second request line", b"GET /b HTTP/1.1\r\n"),
    ] {
        table.reject("header-name", name, get(fields));
    }
}

fn obs_fold(table: &mut FramingTable) {
    for (name, fields) in [
        ("space", &b"A: b\r\n c\r\n"[..]),
        ("tab", b"A: b\r\n\tc\r\n"),
        ("empty first line", b"A:\r\n b\r\n"),
        ("only white space", b"A: b\r\n \r\n"),
        ("only white space before the end", b"A: b\r\n\t\r\n"),
        ("a framing field in it", b"A: b\r\n Content-Length: 5\r\n"),
        ("after Content-Length", b"Content-Length: 1\r\n 0\r\n"),
        ("after Expect", b"Expect: 100-\r\n continue\r\n"),
        ("three lines", b"A: b\r\n c\r\n d\r\n"),
    ] {
        table.reject("obs-fold", name, get(fields));
    }
    for (name, bytes) in [
        ("before the first field", &b"GET / HTTP/1.1\r\n Host: example.com\r\n\r\n"[..]),
        ("tab before the first field", b"GET / HTTP/1.1\r\n\tHost: example.com\r\n\r\n"),
        ("blank before the first field", b"GET / HTTP/1.1\r\n \r\nHost: example.com\r\n\r\n"),
    ] {
        table.reject("obs-fold", name, bytes);
    }
}

/// At and beyond the default limits.
fn limits(table: &mut FramingTable) {
    const KIB: usize = 1024;
    let target = |len: usize| {
        let target = [b"/".as_slice(), &vec![b'a'; len - 1]].concat();
        [b"GET ", &target[..], b" HTTP/1.1\r\nHost: example.com\r\n\r\n"].concat()
    };
    table.accept("limits", "target at its limit", 1, target(8 * KIB));
    table.reject("limits", "target beyond its limit", target(8 * KIB + 1));

    let field = |len: usize| get(&[b"A: ", &vec![b'a'; len - 3][..], b"\r\n"].concat());
    table.accept("limits", "field at its limit", 1, field(8 * KIB));
    table.reject("limits", "field beyond its limit", field(8 * KIB + 1));
    let name = [&vec![b'a'; 8 * KIB][..], b": b\r\n"].concat();
    table.reject("limits", "name beyond its limit", get(&name));
    let padding = [b"A:", &vec![b' '; 8 * KIB][..], b"b\r\n"].concat();
    table.reject("limits", "padding beyond its limit", get(&padding));

    // Host is one more.
    table.accept("limits", "100 fields", 1, get(&b"A: b\r\n".repeat(99)));
    table.reject("limits", "101 fields", get(&b"A: b\r\n".repeat(100)));

    let head = |len: usize| {
        let long = [b"A: ", &vec![b'a'; 7 * KIB][..], b"\r\n"].concat().repeat(4);
        let rest = len - get(&long).len() - b"B: \r\n".len();
        get(&[&long[..], b"B: ", &vec![b'b'; rest], b"\r\n"].concat())
    };
    table.accept("limits", "head at its limit", 1, head(32 * KIB));
    table.reject("limits", "head beyond its limit", head(32 * KIB + 1));
}
