//! Pseudo-fields: missing, repeated, misplaced, unknown (RFC 9113 8.3), and CONNECT with its
//! extension (RFC 9113 8.5, RFC 8441).

use super::super::Request;
use super::case::Verdict;
use super::table::{TARGET, Table, forwarded, get};

pub(super) fn add(table: &mut Table) {
    presence(table);
    order(table);
    unknown(table);
    methods(table);
    connect(table);
    extended_connect(table);
}

fn presence(table: &mut Table) {
    for field in [":method", ":scheme", ":path"] {
        let name = format!("no {field}");
        table.head("pseudo-field", &name, get().without(field), Verdict::Reset);
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
        table.head("pseudo-field", &format!("{field} twice, {again}"), request, Verdict::Reset);
    }
    table.head("pseudo-field", "empty :path", get().set(":path", ""), Verdict::Reset);
    for field in [":method", ":scheme", ":authority"] {
        let name = format!("empty {field}");
        table.head("pseudo-field", &name, get().set(field, ""), Verdict::Refused);
    }
    let none = get().without(":authority");
    table.head("pseudo-field", "no authority and no Host", none, Verdict::Refused);
    let none = Request::of(&[]);
    table.head("pseudo-field", "no field at all", none, Verdict::Reset);
    let none = Request::of(&[(b"x-a", b"1")]);
    table.head("pseudo-field", "ordinary fields only", none, Verdict::Reset);
}

fn order(table: &mut Table) {
    for field in [":method", ":scheme", ":authority", ":path"] {
        let value = get().value(field).unwrap_or_default().to_vec();
        let late = get().without(field).field("x-a", "1").field(field, value);
        table.head("pseudo-field", &format!("{field} after others"), late, Verdict::Reset);
    }
    let again = get().field("x-a", "1").field(":path", "/smuggled");
    table.head("pseudo-field", "a second path after others", again, Verdict::Reset);
}

fn unknown(table: &mut Table) {
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
        table.head("pseudo-field", &format!("unknown {name:?}"), request, Verdict::Reset);
    }
}

fn methods(table: &mut Table) {
    for method in ["G\"T", "GET,POST", "(GET)", "GET:", "GÉT"] {
        let request = get().set(":method", method);
        table.head("method", method, request, Verdict::Refused);
    }
    let long = get().set(":method", "M".repeat(1_000));
    table.head("method", "a thousand letters", long, Verdict::Denied);
    for method in ["PATCH", "REPORT"] {
        let expect = Verdict::Forwarded(forwarded(method, TARGET, &[], b""));
        table.head("method", method, get().set(":method", method), expect);
    }
}

fn connect(table: &mut Table) {
    let plain = Request::of(&[(b":method", b"CONNECT"), (b":authority", b"evil.test:443")]);
    table.head("connect", "to another host", plain.clone(), Verdict::Denied);
    let own = plain.clone().set(":authority", "larder.test:80");
    table.head("connect", "to this host", own, Verdict::Denied);
    let none = plain.clone().without(":authority");
    table.head("connect", "to nowhere", none, Verdict::Reset);
    let mut pathed = plain.clone();
    pathed.fields.push((b":path".to_vec(), b"/".to_vec()));
    table.head("connect", "with a path alone", pathed, Verdict::Reset);
    let mut schemed = plain;
    schemed.fields.push((b":scheme".to_vec(), b"http".to_vec()));
    table.head("connect", "with a scheme alone", schemed, Verdict::Reset);
    let full = get().set(":method", "CONNECT");
    table.head("connect", "with everything but a protocol", full, Verdict::Reset);
}

fn extended_connect(table: &mut Table) {
    let mut full = get().set(":method", "CONNECT");
    full.fields.insert(1, (b":protocol".to_vec(), b"websocket".to_vec()));
    for (name, request, expect) in [
        ("without path", full.clone().without(":path"), Verdict::Reset),
        ("without scheme", full.clone().without(":scheme"), Verdict::Reset),
        ("without authority", full.clone().without(":authority"), Verdict::Refused),
        ("empty protocol", full.clone().set(":protocol", ""), Verdict::Denied),
        ("unknown protocol", full.clone().set(":protocol", "frob"), Verdict::Denied),
        ("h2c as protocol", full.clone().set(":protocol", "h2c"), Verdict::Denied),
        ("list of protocols", full.clone().set(":protocol", "websocket, h2c"), Verdict::Denied),
        (
            "a line in the protocol",
            full.clone().set(":protocol", "websocket\r\nx-evil: 1"),
            Verdict::Reset,
        ),
        ("with Upgrade", full.clone().field("upgrade", "websocket"), Verdict::Reset),
        ("with Connection", full.clone().field("connection", "upgrade"), Verdict::Reset),
        ("path with a space", full.clone().set(":path", "/a b"), Verdict::Refused),
        ("foreign Host", full.clone().field("host", "evil.test"), Verdict::Refused),
    ] {
        table.head("extended connect", name, request, expect);
    }
    let mut twice = full;
    twice.fields.insert(2, (b":protocol".to_vec(), b"websocket".to_vec()));
    table.head("extended connect", "protocol twice", twice, Verdict::Reset);
}
