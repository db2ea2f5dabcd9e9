//! Pseudo-fields: missing, repeated, misplaced, unknown (RFC 9113 8.3), and CONNECT with its
//! extension (RFC 9113 8.5, RFC 8441).

use super::{Expect, Request, TARGET, Table, forwarded, get};

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
        table.head("pseudo-field", &name, get().without(field), Expect::Reset);
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
        table.head("pseudo-field", &format!("{field} twice, {again}"), request, Expect::Reset);
    }
    table.head("pseudo-field", "empty :path", get().set(":path", ""), Expect::Reset);
    for field in [":method", ":scheme", ":authority"] {
        let name = format!("empty {field}");
        table.head("pseudo-field", &name, get().set(field, ""), Expect::Refused);
    }
    let none = get().without(":authority");
    table.head("pseudo-field", "no authority and no Host", none, Expect::Refused);
    let none = Request::of(&[]);
    table.head("pseudo-field", "no field at all", none, Expect::Reset);
    let none = Request::of(&[(b"x-a", b"1")]);
    table.head("pseudo-field", "ordinary fields only", none, Expect::Reset);
}

fn order(table: &mut Table) {
    for field in [":method", ":scheme", ":authority", ":path"] {
        let value = get().value(field).unwrap_or_default().to_vec();
        let late = get().without(field).field("x-a", "1").field(field, value);
        table.head("pseudo-field", &format!("{field} after others"), late, Expect::Reset);
    }
    let again = get().field("x-a", "1").field(":path", "/smuggled");
    table.head("pseudo-field", "a second path after others", again, Expect::Reset);
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
        table.head("pseudo-field", &format!("unknown {name:?}"), request, Expect::Reset);
    }
}

fn methods(table: &mut Table) {
    for method in ["G\"T", "GET,POST", "(GET)", "GET:", "GÉT"] {
        let request = get().set(":method", method);
        table.head("method", method, request, Expect::Refused);
    }
    let long = get().set(":method", "M".repeat(1_000));
    table.head("method", "a thousand letters", long, Expect::Denied);
    for method in ["PATCH", "REPORT"] {
        let expect = Expect::Forwarded(forwarded(method, TARGET, &[], b""));
        table.head("method", method, get().set(":method", method), expect);
    }
}

fn connect(table: &mut Table) {
    let plain = Request::of(&[(b":method", b"CONNECT"), (b":authority", b"evil.test:443")]);
    table.head("connect", "to another host", plain.clone(), Expect::Denied);
    let own = plain.clone().set(":authority", "larder.test:80");
    table.head("connect", "to this host", own, Expect::Denied);
    let none = plain.clone().without(":authority");
    table.head("connect", "to nowhere", none, Expect::Reset);
    let mut pathed = plain.clone();
    pathed.fields.push((b":path".to_vec(), b"/".to_vec()));
    table.head("connect", "with a path alone", pathed, Expect::Reset);
    let mut schemed = plain;
    schemed.fields.push((b":scheme".to_vec(), b"http".to_vec()));
    table.head("connect", "with a scheme alone", schemed, Expect::Reset);
    let full = get().set(":method", "CONNECT");
    table.head("connect", "with everything but a protocol", full, Expect::Reset);
}

fn extended_connect(table: &mut Table) {
    let mut full = get().set(":method", "CONNECT");
    full.fields.insert(1, (b":protocol".to_vec(), b"websocket".to_vec()));
    for (name, request, expect) in [
        ("without path", full.clone().without(":path"), Expect::Reset),
        ("without scheme", full.clone().without(":scheme"), Expect::Reset),
        ("without authority", full.clone().without(":authority"), Expect::Refused),
        ("empty protocol", full.clone().set(":protocol", ""), Expect::Denied),
        ("unknown protocol", full.clone().set(":protocol", "frob"), Expect::Denied),
        ("h2c as protocol", full.clone().set(":protocol", "h2c"), Expect::Denied),
        ("list of protocols", full.clone().set(":protocol", "websocket, h2c"), Expect::Denied),
        (
            "a line in the protocol",
            full.clone().set(":protocol", "websocket\r\nx-evil: 1"),
            Expect::Reset,
        ),
        ("with Upgrade", full.clone().field("upgrade", "websocket"), Expect::Reset),
        ("with Connection", full.clone().field("connection", "upgrade"), Expect::Reset),
        ("path with a space", full.clone().set(":path", "/a b"), Expect::Refused),
        ("foreign Host", full.clone().field("host", "evil.test"), Expect::Refused),
    ] {
        table.head("extended connect", name, request, expect);
    }
    let mut twice = full;
    twice.fields.insert(2, (b":protocol".to_vec(), b"websocket".to_vec()));
    table.head("extended connect", "protocol twice", twice, Expect::Reset);
}
