//! Traffic: replies of origins, and requests of clients.

use std::fmt::Write;

use super::dice::Dice;
use super::words::{HEADERS, PATHS, VALUES};

/// An origin's reply for `path`, and before it a 304 if the reply has a validator.
pub(crate) fn answer(dice: &mut Dice, path: &str) -> String {
    let status = match path {
        "/none" => "404 Not Found",
        _ => dice.pick(&[
            "200 OK",
            "200 OK",
            "200 OK",
            "200 OK",
            "301 Moved",
            "302 Found",
            "500 Own Words",
            "204 No Content",
        ]),
    };
    let etag = dice.one_in(3);
    let modified = dice.one_in(5);
    let mut text = String::new();
    if etag && dice.one_in(2) {
        _ = writeln!(text, "{path}\n    !if If-None-Match: \"e\"\n    304 Not Modified");
        _ = writeln!(text, "    ETag: \"e\"\n    X-C: confirmed");
    }
    _ = writeln!(text, "{path}\n    {status}");
    fields(dice, etag, modified, &mut |line| _ = writeln!(text, "    {line}"));
    if !status.starts_with("204") && !dice.one_in(10) {
        text.push_str("\n    body %n of %t\n");
    }
    text
}

/// The fields of a reply.
fn fields(dice: &mut Dice, etag: bool, modified: bool, add: &mut dyn FnMut(&str)) {
    add(dice.pick(&[
        "Cache-Control: max-age=100",
        "Cache-Control: s-maxage=50, max-age=0",
        "Cache-Control: private",
        "Cache-Control: max-age=0",
        "Cache-Control: public, max-age=200",
        "Cache-Control: no-store",
        "X-Plain: 1",
        "X-Plain: 2",
        "Expires: Wed, 11 Jan 1984 05:00:00 GMT",
        "Surrogate-Control: no-store",
        "Pragma: no-cache",
    ]));
    if dice.one_in(3) {
        // `Vary: *` is left to the builtin program: without it, Varnish takes `*` for a name. Not
        // X-C, which has several lines: Varnish compares only the first.
        add(dice.pick(&[
            "Vary: X-A",
            "Vary: X-B, Cookie",
            "Vary: Cookie",
            "Vary: x-lower,X-Long-Name",
        ]));
    }
    if dice.one_in(4) {
        add("Set-Cookie: sid=1; path=/");
        if dice.one_in(2) {
            add("Set-Cookie: a=2");
        }
    }
    if etag {
        add("ETag: \"e\"");
    }
    if modified {
        add("Last-Modified: Mon, 02 Feb 2026 10:00:00 GMT");
    }
    if dice.one_in(4) {
        add(dice.pick(&["Content-Type: text/html", "Location: /b", "Via: 1.0 x"]));
    }
    for name in HEADERS {
        if dice.one_in(3) {
            add(&format!("{name}: {}", dice.pick(VALUES)));
        }
    }
    if dice.one_in(8) {
        add("X-A: second");
    }
}

/// A request; with a body or a range only if permitted.
pub(crate) fn request(dice: &mut Dice, bodies: bool, ranges: bool) -> String {
    let method = dice.pick(&[
        "GET", "GET", "GET", "GET", "GET", "GET", "HEAD", "HEAD", "POST", "DELETE", "PURGE",
        "OPTIONS",
    ]);
    let query = match dice.below(3) {
        0 => dice.pick(&["?b=2&a=1", "?", "?utm_x=1&id=4", "?a=1&a=0", "?x"]),
        _ => "",
    };
    let body = bodies && method == "POST" && dice.one_in(2);
    let chunked = if body && dice.one_in(3) { " chunked" } else { "" };
    // HTTP/1.0 has no body without a length: Varnish requires one for POST.
    let old = if matches!(method, "GET" | "HEAD") && dice.one_in(20) { " HTTP/1.0" } else { "" };
    let mut text = format!("{method} {}{query}{chunked}{old}\n", dice.pick(PATHS));
    let mut add = |name: &str, value: &str| _ = writeln!(text, "    {name}: {value}");
    for name in HEADERS {
        if dice.one_in(2) {
            add(name, dice.pick(VALUES));
        }
    }
    if dice.one_in(4) {
        add("Cookie", dice.pick(&["a=1", "sid=42; a=1", "_ga=1", "_ga=1; sid=7; b=x y"]));
    }
    for (name, value) in [
        ("Authorization", "Basic eDp5"),
        ("Cache-Control", "no-cache"),
        ("Accept-Encoding", "gzip, br"),
        ("X-Forwarded-For", "192.0.2.1"),
        ("X-C", "again"),
    ] {
        if dice.one_in(16) {
            add(name, value);
        }
    }
    if matches!(method, "GET" | "HEAD") {
        let part = ranges && method == "GET" && dice.one_in(5);
        if dice.one_in(6) {
            // For a range, Varnish compares weak tags against RFC 9110 13.1.2.
            let weak = if part { "\"other\"" } else { "W/\"e\"" };
            add("If-None-Match", dice.pick(&["\"e\"", weak, "\"other\""]));
        }
        if dice.one_in(10) {
            let days = &["Mon, 02 Feb 2026 10:00:00 GMT", "Sun, 01 Feb 2026 10:00:00 GMT"];
            add("If-Modified-Since", dice.pick(days));
        }
        // After a range for HEAD, Varnish closes the connection.
        if part {
            add("Range", dice.pick(&["bytes=0-3", "bytes=2-", "bytes=-4", "bytes=90-99"]));
        }
    }
    if body {
        text.push_str("\n    a=1&b=2\n");
    }
    text
}
