//! Accepted cases: requests of real clients. A server must not reject any of them.

use super::super::Request;
use super::case::DowngradeExpectation;
use super::table::{DowngradeTable, forwarded, get};

pub(super) fn add(table: &mut DowngradeTable) {
    cookies(table);
    values(table);
    browsers(table);
}

/// Cookies may be split into several fields, which the proxy joins (RFC 9113 8.2.3).
fn cookies(table: &mut DowngradeTable) {
    for (name, crumbs, whole) in [
        ("one", &["a=1"][..], "a=1"),
        ("two crumbs", &["a=1", "b=2"], "a=1; b=2"),
        ("crumbs of several", &["a=1; b=2", "c=3"], "a=1; b=2; c=3"),
        ("five crumbs", &["a=1", "b=2", "c=3", "d=4", "e=5"], "a=1; b=2; c=3; d=4; e=5"),
    ] {
        let request = crumbs.iter().fold(get(), |request, crumb| request.field("cookie", crumb));
        let expect =
            DowngradeExpectation::Forwarded(forwarded("GET", "/", &[("cookie", whole)], b""));
        table.head("cookies", name, request, expect);
    }
    let apart = get().field("cookie", "a=1").field("x-a", "1").field("cookie", "b=2");
    let kept = [("cookie", "a=1; b=2"), ("x-a", "1")];
    let expect = DowngradeExpectation::Forwarded(forwarded("GET", "/", &kept, b""));
    table.head("cookies", "crumbs with others between", apart, expect);
}

fn values(table: &mut DowngradeTable) {
    for (name, value) in [
        ("empty", ""),
        ("tab and spaces inside", "a\tb  c"),
        ("UTF-8", "żółć"),
        ("colons and commas", "a: b, c: d"),
        ("a request line", "GET /smuggled HTTP/1.1"),
        ("quotes", "\"a\\\"b\""),
        ("four thousand letters", &"v".repeat(4_000)),
    ] {
        let expect = DowngradeExpectation::Forwarded(forwarded("GET", "/", &[("x-a", value)], b""));
        table.head("values", name, get().field("x-a", value), expect);
    }
    let several = get().field("x-a", "1").field("x-a", "2").field("x-a", "");
    let kept = [("x-a", "1"), ("x-a", "2"), ("x-a", "")];
    let expect = DowngradeExpectation::Forwarded(forwarded("GET", "/", &kept, b""));
    table.head("values", "three lines of one name", several, expect);
    let odd = "x!#$%&'*+.^_`|~9";
    let expect = DowngradeExpectation::Forwarded(forwarded("GET", "/", &[(odd, "1")], b""));
    table.head("names", "every byte of a token", get().field(odd, "1"), expect);
}

fn browsers(table: &mut DowngradeTable) {
    // Chrome omits Host and sends client hints.
    let fields = [
        ("sec-ch-ua", "\"Chromium\";v=\"131\", \"Not_A Brand\";v=\"24\""),
        ("sec-ch-ua-mobile", "?0"),
        ("upgrade-insecure-requests", "1"),
        ("user-agent", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/131.0.0.0"),
        ("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
        ("sec-fetch-site", "none"),
        ("accept-language", "de-DE,de;q=0.9,en;q=0.8"),
        ("priority", "u=0, i"),
    ];
    let add_all = |request: Request| {
        fields.iter().fold(request, |request, (name, value)| request.field(name, value))
    };
    let target = "/style.css?v=1.2%203";
    let expect = DowngradeExpectation::Forwarded(forwarded("GET", target, &fields, b""));
    table.head("clients", "a browser's GET", add_all(Request::get(target)), expect);
    let form = add_all(Request::post("/form"))
        .field("content-type", "application/x-www-form-urlencoded")
        .field("content-length", "7");
    let mut kept = fields.to_vec();
    kept.push(("content-type", "application/x-www-form-urlencoded"));
    let expect = DowngradeExpectation::Forwarded(forwarded("POST", "/form", &kept, b"a=b&c=d"));
    table.push("clients", "a browser's form", form, &[b"a=b&c=d"], expect);
    // grpc-web and curl with a pipe send no length. The origin gets the TE field.
    let sent_te = [("connection", "TE"), ("te", "trailers")];
    let pipe = Request::new("PUT", "/file").field("te", "trailers");
    let expect = DowngradeExpectation::Forwarded(forwarded("PUT", "/file", &sent_te, b"abc"));
    table.push("clients", "an upload of unknown length", pipe, &[b"a", b"bc", b""], expect);
}
