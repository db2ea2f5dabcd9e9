//! Programs from their text to what they do.

use crate::headers;
use crate::sub::{Action, Said, Sub};
use crate::testing::Bench;
use crate::value::{Header, Place};

/// A bench for `vcl 4.1;`, a backend `b`, some modules, and `text`.
fn bench(text: &str) -> Bench {
    let head = "vcl 4.1;\nimport std;\nbackend b { .host = \"127.0.0.1\"; }\n";
    Bench::of(&format!("{head}{text}")).unwrap_or_else(|said| panic!("{said}"))
}

/// What `set req.http.R = expression;` makes of the header; none when there is none.
fn text_of(expression: &str) -> Option<String> {
    let mut bench = bench(&format!("sub vcl_recv {{ set req.http.R = {expression}; }}"));
    assert_ne!(action_name(&bench.run(Sub::Recv)), "fail", "{:?}", bench.world.log);
    let ctx = bench.ctx(Sub::Recv);
    let value = headers::get(&ctx, &Header::new(Place::Req, "R"));
    value.map(|value| String::from_utf8_lossy(value).into_owned())
}

/// Whether `condition` holds.
fn holds(condition: &str) -> bool {
    let text = format!("sub vcl_recv {{ if ({condition}) {{ return (pass); }} return (pipe); }}");
    match bench(&text).run(Sub::Recv) {
        Action::Pass(_) => true,
        Action::Pipe => false,
        other => panic!("{other:?}"),
    }
}

fn action_name(action: &Action) -> &'static str {
    match action {
        Action::Fail(_) => "fail",
        _ => "other",
    }
}

#[test]
fn the_builtin_program_hashes_a_plain_get() {
    let mut bench = bench("");
    assert_eq!(bench.run(Sub::Recv), Action::Hash);
    assert_eq!(bench.run(Sub::Hash), Action::Lookup);
    assert_eq!(bench.run(Sub::Deliver), Action::Deliver);
    assert_eq!(bench.run(Sub::Miss), Action::Fetch);
}

#[test]
fn a_return_of_ones_own_comes_before_the_builtin() {
    let mut bench = bench("sub vcl_recv { return (synth(404, \"no \" + req.url)); }");
    let said = Said { status: 404, reason: Some(b"no /path?q=1".as_slice().into()) };
    assert_eq!(bench.run(Sub::Recv), Action::Synth(said));
}

#[test]
fn strings_are_put_together() {
    assert_eq!(text_of("\"a\" + req.url + 1 + 2").as_deref(), Some("a/path?q=112"));
    assert_eq!(text_of("1 + 2 + \"a\" + 1 + 2").as_deref(), Some("3a12"));
    assert_eq!(text_of("7 / 2").as_deref(), Some("3"));
    assert_eq!(text_of("1.5 + 1").as_deref(), Some("2.500"));
    assert_eq!(text_of("req.http.none + \"x\"").as_deref(), Some("x"));
    assert_eq!(text_of("(req.url == \"a\")").as_deref(), Some("false"));
    assert_eq!(text_of("\"AbC\".lower() + req.http.x-req.upper()").as_deref(), Some("abcASKED"));
}

#[test]
fn conditions_hold_or_do_not() {
    assert!(holds("req.url ~ \"^/path\""));
    assert!(!holds("!req.url ~ \"^/path\""));
    assert!(holds("req.http.x-req == \"asked\""));
    assert!(holds("!req.http.none"));
    assert!(!holds("req.http.none == \"\""));
    assert!(holds("req.http.none != \"\""));
    assert!(!holds("req.http.none == req.http.never"));
    assert!(holds("req.http.none != req.http.never"));
    assert!(!holds("req.http.none <= req.http.never"));
    assert!(holds("\"B\" < \"a\""));
    assert!(holds("req.http.none ~ \"^$\""));
    assert!(holds("req.restarts == 0 && (req.url || req.http.none)"));
    assert!(holds("client.ip == \"192.0.2.7\""));
    assert!(holds("now - 5s < now"));
}

#[test]
fn a_failure_ends_the_program_and_says_where() {
    let mut bench = bench("sub vcl_recv {\n  set req.http.x = 5 / req.restarts;\n}");
    assert_eq!(bench.run(Sub::Recv), Action::Fail("division by zero".into()));
    let log = bench.world.log.borrow();
    let line = String::from_utf8_lossy(&log[0].1).into_owned();
    assert!(line.starts_with("division by zero (test.vcl line 5)"), "{line}");
}
