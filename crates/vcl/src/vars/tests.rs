//! Tests of variables against reads and writes in varnishd 7.1.1.

use std::collections::HashSet;

use super::*;
use crate::state::value::{Header, Value, VclMessage};
use crate::sub::{Action, Sub, Subs};
use crate::testing::{SubroutineFixture, compile};

/// The value of `expression` in `sub`, read from a header; `None` if it fails.
fn eval(sub: Sub, message: &str, statements: &str, expression: &str) -> Option<String> {
    let text = format!(
        "vcl 4.1; import std; backend default none; sub own {{ return; }} unused own; \
         sub {} {{ {statements} set {message}.http.r = {expression}; }}",
        sub.name()
    );
    let mut fixture = SubroutineFixture::of(&text).unwrap_or_else(|e| panic!("{e}"));
    if matches!(fixture.run(sub), Action::Fail(_)) {
        return None;
    }
    let mut ctx = fixture.ctx(sub);
    let message = if message == "resp" { VclMessage::Resp } else { VclMessage::Beresp };
    let block = crate::headers::block_mut(&mut ctx, message)?;
    let value = block.value_named(b"r").unwrap_or_default();
    Some(String::from_utf8_lossy(value).into_owned())
}

fn deliver(statements: &str, expression: &str) -> Option<String> {
    eval(Sub::Deliver, "resp", statements, expression)
}

fn response(statements: &str, expression: &str) -> Option<String> {
    eval(Sub::BackendResponse, "beresp", statements, expression)
}

#[test]
fn no_version_has_a_name_twice() {
    for version in [40, 41] {
        let mut names = HashSet::new();
        for var in all().filter(|var| (var.since..=var.until).contains(&version)) {
            assert!(names.insert(var.name), "{} of {version}", var.name);
        }
    }
}

#[test]
fn what_can_be_set_or_unset_says_how() {
    for var in all() {
        assert_eq!(var.set.is_some(), var.write != Subs::NONE, "{}", var.name);
        assert_eq!(var.remove.is_some(), var.unset != Subs::NONE, "{}", var.name);
    }
}

#[test]
fn names_are_found_by_version_and_by_nearness() {
    assert!(matches!(find("req.url", 41), Lookup::Found(var) if var.name == "req.url"));
    assert!(matches!(find("req.esi", 41), Lookup::OtherVersion(40, 40)));
    assert!(matches!(find("sess.xid", 40), Lookup::OtherVersion(41, 41)));
    assert!(matches!(find("req.urll", 41), Lookup::Unknown(Some("req.url"))));
    assert!(matches!(find("utterly.different", 41), Lookup::Unknown(None)));
    // A variable that differs between versions has an entry for each.
    let writable =
        |version| matches!(find("req.proto", version), Lookup::Found(var) if var.set.is_some());
    assert!(writable(40) && !writable(41));
}

#[test]
fn headers_and_storages_are_variables_too() {
    let found = header("beresp.http.X-y").expect("a header");
    assert_eq!((found.message, found.name), (VclMessage::Beresp, "X-y"));
    assert!(found.write.has(Sub::BackendError) && !found.write.has(Sub::Deliver));
    assert!(header("obj.http.x").is_some_and(|h| h.write == Subs::NONE && h.read.has(Sub::Hit)));
    assert!(header("req.url").is_none() && header("foo.http.x").is_none());
    let found = storage("storage.s0.free_space").expect("a fact");
    assert_eq!((found.storage, found.fact), ("s0", StorageFact::FreeSpace));
    assert!(storage("storage.s0.nothing").is_none());
}

/// Values in varnishd 7.1.1.
#[test]
fn variables_read_as_in_varnish() {
    for (expression, expected) in [
        ("req.grace", "-1.000"),
        ("req.ttl", "-1.000"),
        ("req.transport", "HTTP/1"),
        ("req.proto", "HTTP/1.1"),
        ("local.socket", "a0"),
        ("client.identity", "192.0.2.7"),
        ("client.ip", "192.0.2.7"),
        ("req.xid", "1001"),
        ("req.xid + 1", "1002"),
        ("req.xid > sess.xid", "true"),
        ("req.max_age", "-1.000"),
        ("std.now() > now", "true"),
        ("std.timed_call(own)", "1.000"),
        ("sess.xid", "1000"),
        ("resp.reason", "OK"),
        ("now", "Sun, 06 Nov 1994 08:49:37 GMT"),
        ("req.time", "Sun, 06 Nov 1994 08:49:36 GMT"),
        ("req.restarts", "0"),
        ("req.esi_level", "0"),
        ("req.can_gzip", "false"),
        ("req.storage", ""),
        ("req.url", "/path?q=1"),
        ("req_top.url", "/path?q=1"),
        ("obj.hits", "3"),
        ("obj.ttl", "113.000"),
        ("resp.status", "200"),
        ("storage.s0.free_space", "1000"),
        ("storage.s0.used_space", "24"),
        ("server.hostname", "host.example"),
        ("server.identity", "larder"),
        ("resp.filters", ""),
    ] {
        assert_eq!(deliver("", expression).as_deref(), Some(expected), "{expression}");
    }
}

/// Results of varnishd 7.1.1.
#[test]
fn setting_has_varnishs_effects() {
    for (statements, expression, expected) in [
        ("set req.grace = -5s;", "req.grace", Some("0.000")),
        ("set req.ttl = 5s;", "req.ttl", Some("5.000")),
        ("set req.max_age = 5s;", "req.ttl", Some("5.000")),
        ("set req.ttl = 5s; unset req.max_age;", "req.ttl", Some("-1.000")),
        ("set req.grace = 5s; unset req.grace;", "req.grace", Some("-1.000")),
        (
            "set sess.timeout_idle = 5s; unset sess.timeout_idle;",
            "sess.timeout_idle",
            Some("0.000"),
        ),
        ("set sess.timeout_idle = -5s;", "sess.timeout_idle", Some("0.000")),
        ("set client.identity = req.http.nope;", "client.identity", Some("")),
        ("set req.url = \"\";", "req.url", None),
        ("set req.url = req.http.nope;", "req.url", None),
        ("set req.url = \"a b\";", "req.url", Some("a b")),
        ("set req.method = \"\";", "req.method", None),
        ("set resp.reason = \"\";", "resp.reason", None),
        ("set resp.reason = \"x y\";", "resp.reason", Some("x y")),
        ("set resp.status = 1000;", "resp.status", None),
        ("set resp.status = 65536;", "resp.status", None),
        ("set resp.status = 12404;", "resp.status + resp.reason", Some("12404Not Found")),
        ("set resp.status = 413;", "resp.reason", Some("Request Entity Too Large")),
        ("set resp.status = 299;", "resp.reason", Some("Unknown HTTP Status")),
        (
            "set resp.reason = \"Foo\"; set resp.status = 500;",
            "resp.reason",
            Some("Internal Server Error"),
        ),
        ("set resp.filters = \"\"; set resp.do_esi = true;", "resp.filters", None),
        ("set resp.filters = \"foo\";", "resp.filters", Some("foo")),
        ("set req.http.Range = \"bytes=0-0\";", "resp.filters", Some("range")),
        ("unset resp.http.x-resp;", "resp.http.X-RESP + \"|\"", Some("|")),
    ] {
        assert_eq!(deliver(statements, expression).as_deref(), expected, "{statements}");
    }
}

/// Results of varnishd 7.1.1.
#[test]
fn the_times_of_a_response_have_varnishs_bounds() {
    for (statements, expression, expected) in [
        ("set beresp.ttl = -50s;", "beresp.ttl", "0.000"),
        ("set beresp.ttl = 5s;", "beresp.ttl", "5.000"),
        ("set beresp.grace = -1s;", "beresp.grace", "0.000"),
        ("set beresp.keep = -1s;", "beresp.keep", "0.000"),
        ("", "bereq.connect_timeout", "0.000"),
        ("set bereq.connect_timeout = -1s;", "bereq.connect_timeout", "0.000"),
        ("set bereq.connect_timeout = 3s;", "bereq.connect_timeout", "3.000"),
        (
            "set beresp.uncacheable = true; set beresp.uncacheable = false;",
            "beresp.uncacheable",
            "true",
        ),
        ("set beresp.do_gzip = true;", "beresp.filters", "gzip"),
        ("set beresp.do_gzip = true; set beresp.do_esi = true;", "beresp.filters", "esi_gzip"),
        ("set beresp.do_gunzip = true;", "beresp.filters", ""),
        ("set beresp.http.Content-Encoding = \"gzip\";", "beresp.filters", "testgunzip"),
        (
            "set beresp.http.Content-Encoding = \"gzip\"; set beresp.do_gunzip = true;",
            "beresp.filters",
            "gunzip",
        ),
    ] {
        assert_eq!(response(statements, expression).as_deref(), Some(expected), "{statements}");
    }
    let mut fixture = SubroutineFixture::bare();
    fixture.beresp_state.age = 10.0;
    let mut ctx = fixture.ctx(Sub::BackendResponse);
    let Lookup::Found(ttl) = find("beresp.ttl", 41) else { panic!("there is beresp.ttl") };
    let set = ttl.set.expect("it can be set");
    set(&mut ctx, Value::Duration(-50.0)).expect("it is a duration");
    assert_eq!(fixture.beresp_state.ttl, -10.0);
}

#[test]
fn req_hash_is_the_sha_256_of_the_key() {
    let mut key = base::KeyBuf::new();
    key.field(KEY_MARK);
    key.field(b"/x");
    key.field(b"h");
    let hex: String = digest(key.bytes()).iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(hex, "bd369994b035286f7f451ae2df6a44c1d03995a2f9e3664626818dd6c6b520a4");
}

#[test]
fn no_value_gets_a_line_of_its_own_into_a_head() {
    let mut fixture = SubroutineFixture::bare();
    let mut ctx = fixture.ctx(Sub::Deliver);
    let header = Header::new(VclMessage::Resp, "X-A");
    for bad in [&b"a\r\nb: c"[..], b"a\nb", b"a\0", b"\x7f"] {
        assert!(crate::headers::set(&mut ctx, &header, bad).is_err(), "{}", bad.escape_ascii());
    }
    crate::headers::set(&mut ctx, &header, b" a\tb\xff ").expect("it is fine");
    assert_eq!(crate::headers::get(&ctx, &header), Some(&b"a\tb\xff "[..]));
    for statement in ["set req.url = {\"/\n\"};", "set req.method = {\"G\nT\"};"] {
        assert_eq!(deliver(statement, "req.url"), None, "{statement}");
    }
}

#[test]
fn names_of_headers_keep_to_the_rules() {
    use crate::headers::check_name;
    assert!(check_name("X-A").is_ok() && check_name("a.b").is_ok());
    assert!(check_name("").is_err() && check_name("a b").is_err() && check_name("a:").is_err());
    assert!(check_name(&"a".repeat(125)).is_ok() && check_name(&"a".repeat(126)).is_err());
}

#[test]
fn a_stored_head_is_read_where_it_lies() {
    use crate::headers::{stored_line, stored_value};
    let head = b"HTTP/1.1 404 Not Here\r\nA: 1\r\nb:2\r\na: 3\r\n";
    assert_eq!(stored_value(head, b"a"), Some(&b"1"[..]));
    assert_eq!(stored_value(head, b"B"), Some(&b"2"[..]));
    assert_eq!(stored_value(head, b"c"), None);
    assert_eq!(stored_line(head), (&b"HTTP/1.1"[..], &b"Not Here"[..]));
    assert_eq!(stored_line(b""), (&b""[..], &b""[..]));
}

#[test]
fn bodies_are_set_and_added_to() {
    let text = "vcl 4.1; backend default none; sub vcl_synth { set resp.body = \"a\"; \
                set resp.body += \"b\"; synthetic(\"c\"); return (deliver); }";
    let mut fixture = SubroutineFixture::of(text).unwrap_or_else(|e| panic!("{e}"));
    fixture.run(Sub::Synth);
    assert_eq!(fixture.resp_state.body, b"abc");
}

#[test]
fn what_may_not_be_done_there_is_refused() {
    for (sub, statement) in [
        ("vcl_recv", "set resp.status = 1;"),
        ("vcl_deliver", "set obj.ttl = 1s;"),
        ("vcl_deliver", "set req.xid = \"1\";"),
        ("vcl_recv", "set req.proto = \"HTTP/1.0\";"),
        ("vcl_backend_response", "unset bereq.body;"),
        ("vcl_recv", "set req_top.http.x = \"1\";"),
        ("vcl_recv", "set client.ip = \"1.2.3.4\";"),
    ] {
        let text = format!("vcl 4.1; backend default none; sub {sub} {{ {statement} }}");
        assert!(compile(&text).is_err(), "{sub}: {statement}");
    }
}
