//! Targets and hosts: invalid paths of HTTP/1's request line, and two names of one host (RFC 9113
//! 8.3.1).

use super::super::Request;
use super::case::{DowngradeExpectation, ForwardedRequest};
use super::table::{DowngradeTable, forwarded, get};

pub(super) fn add(table: &mut DowngradeTable) {
    paths(table);
    kept_paths(table);
    authorities(table);
    hosts(table);
}

fn paths(table: &mut DowngradeTable) {
    for (name, path) in [
        ("a space", &b"/a b"[..]),
        ("a space at the end", b"/a "),
        ("a fragment", b"/a#b"),
        ("a fragment alone", b"#b"),
        ("absolute, own host", b"http://larder.test/"),
        ("absolute, other host", b"http://evil.test/smuggled"),
        ("absolute, other scheme", b"https://larder.test/"),
        ("no slash", b"smuggled"),
        ("a query alone", b"?a"),
        ("a dot", b"."),
        ("asterisk of a GET", b"*"),
        ("asterisk and more", b"*/smuggled"),
        ("an authority", b"evil.test:80"),
        ("an at sign", b"@evil.test/smuggled"),
        ("a backslash first", b"\\smuggled"),
        ("a backslash", b"/a\\b"),
        ("Latin-1", b"/\xe9"),
        ("an overlong slash", b"/\xc0\xaf"),
        ("a high byte in the query", b"/?\xff"),
        ("an encoded NUL", b"/a%00b"),
        ("an encoded line end", b"/a%0d%0aX-Evil:%201"),
    ] {
        table.head("path", name, get().set(":path", path), DowngradeExpectation::Refused);
    }
    let long = get().set(":path", format!("/{}", "a".repeat(9_000)));
    table.head("path", "nine thousand letters", long, DowngradeExpectation::Status(414));
    let asterisk = get().set(":method", "OPTIONS").set(":path", "*");
    let expect = DowngradeExpectation::Forwarded(forwarded("OPTIONS", "*", &[], b""));
    table.head("path", "asterisk of OPTIONS", asterisk, expect);
}

/// Unusual paths that a proxy must forward.
fn kept_paths(table: &mut DowngradeTable) {
    for path in [
        "//evil.test/a",
        "/a//b",
        "/a/../b",
        "/a%20HTTP/1.1",
        "/a%2Fb",
        "/a?b?c",
        "/a?",
        "/?http://evil.test/",
        "/a|b",
        "/a{b}\"c\"<d>^`",
        "/@evil.test",
        "/a;b=c",
        "/HTTP/1.1",
    ] {
        let expect = DowngradeExpectation::Forwarded(forwarded("GET", path, &[], b""));
        table.head("path kept", path, get().set(":path", path), expect);
    }
    for (path, spelt) in [("/é?é", "/%C3%A9?%C3%A9"), ("/a%2fb%7e?%2f", "/a%2Fb~?%2f")] {
        let expect = DowngradeExpectation::Forwarded(forwarded("GET", spelt, &[], b""));
        table.head("path spelt", path, get().set(":path", path), expect);
    }
}

fn authorities(table: &mut DowngradeTable) {
    for authority in [
        "user@larder.test",
        "user:secret@larder.test",
        "evil.test@larder.test",
        "larder.test, evil.test",
        "larder.test evil.test",
        "larder.test/smuggled",
        "larder.test?a",
        "larder.test#a",
        "larder.test:0",
        "larder.test:65536",
        "larder.test:80:80",
        "larder.test:8x",
        "larder.test:-1",
        "larder%2etest",
        "larder.test\\evil.test",
        "larder..test",
        ".larder.test",
        ":80",
        "[::1",
        "[]",
        "::1",
        "http://larder.test",
        "lärder.test",
        "larder.test;evil.test",
        "larder\"test",
    ] {
        let request = get().set(":authority", authority);
        table.head("authority", authority, request, DowngradeExpectation::Refused);
    }
    for (authority, host) in [
        ("LARDER.Test", "larder.test"),
        ("larder.test.", "larder.test"),
        ("larder.test:80", "larder.test"),
        ("larder.test:8080", "larder.test:8080"),
        ("[0:0::1]:8080", "[::1]:8080"),
    ] {
        let expect = DowngradeExpectation::Forwarded(to(host));
        table.head("authority", authority, get().set(":authority", authority), expect);
    }
}

/// Host beside `:authority`: the same host, or malformed.
fn hosts(table: &mut DowngradeTable) {
    for (name, host) in [
        ("another", "evil.test"),
        ("another port", "larder.test:8080"),
        ("a subdomain", "www.larder.test"),
        ("user information", "larder.test@evil.test"),
        ("a list", "larder.test, evil.test"),
        ("empty", ""),
        ("a path behind it", "larder.test/smuggled"),
    ] {
        table.head("host", name, get().field("host", host), DowngradeExpectation::Refused);
    }
    let twice = get().field("host", "larder.test").field("host", "larder.test");
    table.head("host", "twice beside the authority", twice, DowngradeExpectation::Refused);
    let same = get().field("host", "larder.test");
    table.head("host", "the same", same, DowngradeExpectation::Forwarded(to("larder.test")));
    for host in ["LARDER.TEST", "larder.test:80"] {
        let expect = DowngradeExpectation::RefusedOr(to("larder.test"));
        table.head("host", &format!("the same as {host}"), get().field("host", host), expect);
    }
    let alone = |host: &str| get().without(":authority").field("host", host);
    table.head(
        "host",
        "alone",
        alone("larder.test"),
        DowngradeExpectation::Forwarded(to("larder.test")),
    );
    for host in ["", "user@larder.test", "larder.test, evil.test", "larder.test/a"] {
        table.head(
            "host",
            &format!("alone as {host:?}"),
            alone(host),
            DowngradeExpectation::Refused,
        );
    }
    let twice: Request = alone("larder.test").field("host", "evil.test");
    table.head("host", "alone and twice", twice, DowngradeExpectation::Refused);
}

fn to(host: &str) -> ForwardedRequest {
    ForwardedRequest { host: host.to_owned(), ..forwarded("GET", super::table::TARGET, &[], b"") }
}
