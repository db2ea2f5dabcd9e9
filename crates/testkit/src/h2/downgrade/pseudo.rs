//! Pseudo-fields: missing, repeated, misplaced, unknown (RFC 9113 8.3), and CONNECT with its
//! extension (RFC 9113 8.5, RFC 8441).

use super::super::Request;
use super::case::DowngradeExpectation;
use super::table::{DowngradeTable, TARGET, forwarded, get};

pub(super) fn add(table: &mut DowngradeTable) {
    presence(table);
    order(table);
    unknown(table);
    methods(table);
    connect(table);
    extended_connect(table);
}

fn presence(table: &mut DowngradeTable) {
    for field in [":method", ":scheme", ":path"] {
        let name = format!("no {field}");
        table.head("pseudo-field", &name, get().without(field), DowngradeExpectation::Reset);
    }
    for (field, again) in [
        (":method", "GET"),
        (":method", "POST"),
        (":scheme", "http"),
        (":authority", "larder.test"),
        (":authority", "evil.test"),
        (":path", "/"),
        (":path", "/smuggled"),
    ] {
        // Directly behind the first, so that nothing else is wrong.
        let mut request = get();
        request.fields.insert(4, (field.into(), again.into()));
        table.head(
            "pseudo-field",
            &format!("{field} twice, {again}"),
            request,
            DowngradeExpectation::Reset,
        );
    }
    table.head("pseudo-field", "empty :path", get().set(":path", ""), DowngradeExpectation::Reset);
    for field in [":method", ":scheme", ":authority"] {
        let name = format!("empty {field}");
        table.head("pseudo-field", &name, get().set(field, ""), DowngradeExpectation::Refused);
    }
    let none = get().without(":authority");
    table.head("pseudo-field", "no authority and no Host", none, DowngradeExpectation::Refused);
    let none = Request::of(&[]);
    table.head("pseudo-field", "no field at all", none, DowngradeExpectation::Reset);
    let none = Request::of(&[(b"x-a", b"1")]);
    table.head("pseudo-field", "ordinary fields only", none, DowngradeExpectation::Reset);
}

fn order(table: &mut DowngradeTable) {
    for field in [":method", ":scheme", ":authority", ":path"] {
        let value = get().value(field).unwrap_or_default().to_vec();
        let late = get().without(field).field("x-a", "1").field(field, value);
        table.head(
            "pseudo-field",
            &format!("{field} after others"),
            late,
            DowngradeExpectation::Reset,
        );
    }
    let again = get().field("x-a", "1").field(":path", "/smuggled");
    table.head("pseudo-field", "a second path after others", again, DowngradeExpectation::Reset);
}

fn unknown(table: &mut DowngradeTable) {
    for (name, value) in [
        (":status", "200"),
        (":protocol", "websocket"),
        (":host", "evil.test"),
        (":version", "HTTP/1.1"),
        (":Path", "/smuggled"),
        (":", "1"),
        ("::path", "/smuggled"),
        (":path ", "/smuggled"),
    ] {
        let request = get().field(name, value);
        table.head(
            "pseudo-field",
            &format!("unknown {name:?}"),
            request,
            DowngradeExpectation::Reset,
        );
    }
}

fn methods(table: &mut DowngradeTable) {
    for method in ["G\"T", "GET,POST", "(GET)", "GET:", "GÉT"] {
        let request = get().set(":method", method);
        table.head("method", method, request, DowngradeExpectation::Refused);
    }
    let long = get().set(":method", "M".repeat(1_000));
    table.head("method", "a thousand letters", long, DowngradeExpectation::Denied);
    for method in ["PATCH", "REPORT"] {
        let expect = DowngradeExpectation::Forwarded(forwarded(method, TARGET, &[], b""));
        table.head("method", method, get().set(":method", method), expect);
    }
}

fn connect(table: &mut DowngradeTable) {
    let plain = Request::of(&[(b":method", b"CONNECT"), (b":authority", b"evil.test:443")]);
    table.head("connect", "to another host", plain.clone(), DowngradeExpectation::Denied);
    let own = plain.clone().set(":authority", "larder.test:80");
    table.head("connect", "to this host", own, DowngradeExpectation::Denied);
    let none = plain.clone().without(":authority");
    table.head("connect", "to nowhere", none, DowngradeExpectation::Reset);
    let mut pathed = plain.clone();
    pathed.fields.push((b":path".to_vec(), b"/".to_vec()));
    table.head("connect", "with a path alone", pathed, DowngradeExpectation::Reset);
    let mut schemed = plain;
    schemed.fields.push((b":scheme".to_vec(), b"http".to_vec()));
    table.head("connect", "with a scheme alone", schemed, DowngradeExpectation::Reset);
    let full = get().set(":method", "CONNECT");
    table.head("connect", "with everything but a protocol", full, DowngradeExpectation::Reset);
}

fn extended_connect(table: &mut DowngradeTable) {
    let mut full = get().set(":method", "CONNECT");
    full.fields.insert(1, (b":protocol".to_vec(), b"websocket".to_vec()));
    for (name, request, expect) in [
        ("without path", full.clone().without(":path"), DowngradeExpectation::Reset),
        ("without scheme", full.clone().without(":scheme"), DowngradeExpectation::Reset),
        ("without authority", full.clone().without(":authority"), DowngradeExpectation::Refused),
        ("empty protocol", full.clone().set(":protocol", ""), DowngradeExpectation::Denied),
        ("unknown protocol", full.clone().set(":protocol", "frob"), DowngradeExpectation::Denied),
        ("h2c as protocol", full.clone().set(":protocol", "h2c"), DowngradeExpectation::Denied),
        (
            "list of protocols",
            full.clone().set(":protocol", "websocket, h2c"),
            DowngradeExpectation::Denied,
        ),
        (
            "a line in the protocol",
            full.clone().set(":protocol", "websocket\r\nx-evil: 1"),
            DowngradeExpectation::Reset,
        ),
        ("with Upgrade", full.clone().field("upgrade", "websocket"), DowngradeExpectation::Reset),
        (
            "with Connection",
            full.clone().field("connection", "upgrade"),
            DowngradeExpectation::Reset,
        ),
        ("path with a space", full.clone().set(":path", "/a b"), DowngradeExpectation::Refused),
        ("foreign Host", full.clone().field("host", "evil.test"), DowngradeExpectation::Refused),
    ] {
        table.head("extended connect", name, request, expect);
    }
    let mut twice = full;
    twice.fields.insert(2, (b":protocol".to_vec(), b"websocket".to_vec()));
    table.head("extended connect", "protocol twice", twice, DowngradeExpectation::Reset);
}
