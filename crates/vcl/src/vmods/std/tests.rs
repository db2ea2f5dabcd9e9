//! Tests of the functions against varnishd 7.1.1, expression by expression.

use std::collections::HashMap;

use bytes::Bytes;
use message::HeaderId;
use proptest::prelude::*;

use super::*;
use crate::sub::Sub;
use crate::tag::Tag;
use crate::testing::SubroutineFixture;

/// Value of `expression` in `vcl_synth`; `None` if it fails.
fn eval(expression: &str) -> Option<String> {
    eval_with(expression, |_| {})
}

fn eval_with(expression: &str, prepare: impl FnOnce(&mut SubroutineFixture)) -> Option<String> {
    let text = format!(
        "vcl 4.1; import std; backend default none; \
         sub vcl_synth {{ set resp.http.r = {expression}; return (deliver); }}"
    );
    // Some failures are found when the program is compiled.
    let mut fixture = SubroutineFixture::of(&text).ok()?;
    prepare(&mut fixture);
    match fixture.run(Sub::Synth) {
        crate::sub::Action::Deliver => {
            let value = fixture.resp.headers.value_named(b"r").unwrap_or_default();
            Some(String::from_utf8_lossy(value).into_owned())
        }
        _ => None,
    }
}

/// Runs `statements` in `vcl_recv`.
fn run(statements: &str) -> SubroutineFixture {
    let text = format!(
        "vcl 4.1; import std; backend default none; \
         sub vcl_recv {{ {statements} return (synth(200)); }}"
    );
    let mut fixture = SubroutineFixture::of(&text).unwrap_or_else(|e| panic!("{e}"));
    fixture.run(Sub::Recv);
    fixture
}

fn header(fixture: &SubroutineFixture, name: &str) -> Option<String> {
    let value = fixture.req.headers.value_named(name.as_bytes())?;
    Some(String::from_utf8_lossy(value).into_owned())
}

/// Expressions with varnishd 7.1.1's results: `=` and the string, or `!` for a failure.
const VARNISH: &str = include_str!("varnish.txt");

#[test]
fn expressions_come_to_what_varnish_makes_of_them() {
    let mut differing = Vec::new();
    for line in VARNISH.lines() {
        let (expression, expected) = line.split_once('\t').expect("two columns");
        let expected = expected.strip_prefix('=');
        // Leading blanks of a header's value are skipped.
        let got = eval(expression);
        if got.as_deref() != expected.map(str::trim_ascii_start) {
            differing.push(format!("{expression}\n  Varnish {expected:?}\n  ours    {got:?}"));
        }
    }
    assert!(differing.is_empty(), "{} differ:\n{}", differing.len(), differing.join("\n"));
}

#[test]
fn the_environment_and_files_are_read() {
    let prepare = |fixture: &mut SubroutineFixture| {
        fixture.environment.env.insert("HOME".into(), Bytes::from_static(b"/root"));
        fixture.environment.files.insert("/f".into(), Bytes::from_static(b"text"));
    };
    for (expression, expected) in [
        ("std.getenv(\"HOME\")", "/root"),
        ("std.getenv(\"NOPE\")", ""),
        ("std.fileread(\"/f\")", "text"),
        ("std.fileread(\"/g\")", ""),
        ("std.file_exists(\"/f\")", "true"),
        ("std.file_exists(\"/g\")", "false"),
    ] {
        assert_eq!(eval_with(expression, prepare).as_deref(), Some(expected), "{expression}");
    }
}

#[test]
fn a_host_name_is_looked_up_unless_that_is_forbidden() {
    let prepare = |fixture: &mut SubroutineFixture| {
        let addr = ([192, 0, 2, 9], 80).into();
        fixture.environment.hosts = HashMap::from([("host".to_string(), vec![addr])]);
    };
    let ip = |expression| eval_with(expression, prepare);
    assert_eq!(ip("std.ip(\"host\", \"9.9.9.9\")").as_deref(), Some("192.0.2.9"));
    assert_eq!(ip("std.ip(\"host\", \"9.9.9.9\", resolve=false)").as_deref(), Some("9.9.9.9"));
    assert_eq!(ip("std.port(std.ip(\"host:81\"))").as_deref(), Some("81"));
}

#[test]
fn random_lies_between_its_bounds() {
    let of =
        |random| eval_with("std.random(2.0, 4.0)", |fixture| fixture.environment.random = random);
    assert_eq!(of(0.0).as_deref(), Some("2.000"));
    assert_eq!(of(0.75).as_deref(), Some("3.500"));
}

#[test]
fn logs_go_where_they_are_sent() {
    let fixture =
        run("std.log(\"a\" + req.http.nope); std.syslog(9, \"b\"); std.timestamp(\"c\");");
    let log = fixture.environment.log.borrow();
    assert!(log.contains(&(Tag::Log, b"a".to_vec())));
    assert!(log.contains(&(Tag::Timestamp, b"c".to_vec())));
    assert_eq!(*fixture.environment.syslog.borrow(), [(9, b"b".to_vec())]);
}

#[test]
fn a_ban_says_what_is_wrong_with_it_until_the_next_one() {
    let fixture = run("set req.http.a = std.ban(\"foo\"); set req.http.b = std.ban_error(); \
                     set req.http.c = std.ban(\"req.url ~ x\"); set req.http.d = std.ban_error();");
    assert_eq!(header(&fixture, "a").as_deref(), Some("false"));
    assert_eq!(header(&fixture, "b").as_deref(), Some("Expected conditional"));
    assert_eq!(header(&fixture, "c").as_deref(), Some("true"));
    assert_eq!(header(&fixture, "d").as_deref(), Some(""));
    assert_eq!(*fixture.environment.bans.borrow(), ["req.url ~ x"]);
    let fixture = run("std.ban(req.http.nope); set req.http.b = std.ban_error();");
    assert_eq!(header(&fixture, "b").as_deref(), Some("Null argument"));
}

#[test]
fn a_rollback_brings_back_the_request_as_it_came() {
    let fixture = run("set req.url = \"/x\"; set req.method = \"POST\"; unset req.http.x-req; \
                     set req.http.y = \"1\"; std.rollback(req);");
    assert_eq!(fixture.req.target, b"/path?q=1");
    assert_eq!(fixture.req.method.token(), b"GET");
    assert_eq!(header(&fixture, "X-Req").as_deref(), Some("asked"));
    assert_eq!(header(&fixture, "y"), None);
}

#[test]
fn collecting_makes_one_header_of_many() {
    let collect = |statement: &str| {
        let text = format!(
            "vcl 4.1; import std; backend default none; sub vcl_recv {{ {statement} \
             return (synth(200)); }}"
        );
        let mut fixture = SubroutineFixture::of(&text).expect("it is right");
        for value in [&b"1"[..], b"", b"3"] {
            fixture.req.headers.push(HeaderId::Accept, value);
        }
        fixture.run(Sub::Recv);
        let values = fixture.req.headers.values(HeaderId::Accept);
        values.map(|v| String::from_utf8_lossy(v).into_owned()).collect::<Vec<_>>()
    };
    assert_eq!(collect("std.collect(req.http.accept);"), ["1, , 3"]);
    assert_eq!(collect("std.collect(req.http.accept, \"; \");"), ["1; ; 3"]);
    assert_eq!(collect("std.collect(req.http.nope);"), ["1", "", "3"]);
}

#[test]
fn what_is_stored_cannot_be_collected() {
    let mut fixture = SubroutineFixture::of(
        "vcl 4.1; import std; backend default none; \
         sub vcl_hit { std.collect(obj.http.x-obj); return (deliver); }",
    )
    .expect("it is right");
    assert!(matches!(fixture.run(Sub::Hit), crate::sub::Action::Fail(_)));
}

#[test]
fn what_is_asked_of_the_connection_reaches_it() {
    let mut fixture = run("std.late_100_continue(true); std.set_ip_tos(264); \
                         set req.http.a = std.cache_req_body(1KB);");
    assert!(fixture.req_state.late_continue);
    assert_eq!(fixture.connection.tos.get(), 8);
    assert_eq!(header(&fixture, "a").as_deref(), Some("true"));
    fixture.req_state.late_continue = false;
}

#[test]
fn the_version_of_the_program_is_known() {
    assert_eq!(eval("std.syntax(4.1)").as_deref(), Some("true"));
    assert_eq!(eval("std.syntax(4.2)").as_deref(), Some("false"));
}

proptest! {
    #[test]
    fn sorting_a_query_keeps_its_parameters(query in "[ab=&?]{0,20}") {
        let url = format!("/p?{query}");
        let parts = |url: &[u8]| {
            let query = &url[3..];
            let mut parts: Vec<Vec<u8>> =
                query.split(|b| *b == b'&').filter(|p| !p.is_empty()).map(<[u8]>::to_vec).collect();
            parts.sort();
            parts
        };
        let sorted = query_sorted(url.as_bytes());
        prop_assert_eq!(sorted.is_some(), query.contains('&'));
        if let Some(sorted) = sorted {
            prop_assert_eq!(parts(&sorted), parts(url.as_bytes()));
            prop_assert!(!sorted.ends_with(b"&"));
        }
    }
}
