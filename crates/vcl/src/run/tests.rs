//! Tests of programs from source text to effects.

use crate::headers;
use crate::state::value::{Header, VclMessage};
use crate::sub::{Action, Sub, SyntheticStatus};
use crate::testing::SubroutineFixture;

/// A fixture of `vcl 4.1;`, a backend `b`, some VMODs, and `text`.
fn fixture(text: &str) -> SubroutineFixture {
    let head = "vcl 4.1;\nimport std;\nbackend b { .host = \"127.0.0.1\"; }\n";
    SubroutineFixture::of(&format!("{head}{text}")).unwrap_or_else(|said| panic!("{said}"))
}

/// The header that `set req.http.R = expression;` makes; `None` if absent.
fn text_of(expression: &str) -> Option<String> {
    let mut fixture = fixture(&format!("sub vcl_recv {{ set req.http.R = {expression}; }}"));
    assert_ne!(action_name(&fixture.run(Sub::Recv)), "fail", "{:?}", fixture.environment.log);
    let ctx = fixture.ctx(Sub::Recv);
    let value = headers::get(&ctx, &Header::new(VclMessage::Req, "R"));
    value.map(|value| String::from_utf8_lossy(value).into_owned())
}

/// Returns true if `condition` holds.
fn holds(condition: &str) -> bool {
    let text = format!("sub vcl_recv {{ if ({condition}) {{ return (pass); }} return (pipe); }}");
    match fixture(&text).run(Sub::Recv) {
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
    let mut fixture = fixture("");
    assert_eq!(fixture.run(Sub::Recv), Action::Hash);
    assert_eq!(fixture.run(Sub::Hash), Action::Lookup);
    assert_eq!(fixture.run(Sub::Deliver), Action::Deliver);
    assert_eq!(fixture.run(Sub::Miss), Action::Fetch);
}

#[test]
fn a_return_of_ones_own_comes_before_the_builtin() {
    let mut fixture = fixture("sub vcl_recv { return (synth(404, \"no \" + req.url)); }");
    let said = SyntheticStatus { status: 404, reason: Some(b"no /path?q=1".as_slice().into()) };
    assert_eq!(fixture.run(Sub::Recv), Action::Synth(said));
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

/// Strings that Varnish 7.1.1 made of these values in a header.
#[test]
fn values_are_written_as_varnish_writes_them() {
    let cases = [
        ("\"[\" + req.http.none + \"]\" + (req.http.e == \"\")", "[]false"),
        ("regsub(req.http.none, \"^$\", \"was empty\")", "was empty"),
        ("regsub(req.http.none, \"x\", \"y\")", ""),
        ("1.5 + 1", "2.500"),
        ("7 / 2", "3"),
        ("-7 / 2", "-3"),
        ("-7 % 3", "-1"),
        ("5s", "5.000"),
        ("100ms", "0.100"),
        ("1w", "604800.000"),
        ("-5s", "-5.000"),
        ("5s * 1.5", "7.500"),
        ("1.0 / 3.0", "0.333"),
        ("b", "b"),
        ("storage.Transient", "storage.Transient"),
        ("client.ip", "192.0.2.7"),
        ("now - now", "0.000"),
        ("now", "Sun, 06 Nov 1994 08:49:37 GMT"),
        ("true + \"x\" + false", "truexfalse"),
        ("\"a\tb\"", "a\tb"),
        ("req.http.none", ""),
        ("req.http.none.lower()", ""),
        ("\"AbC\".lower() + \"AbC\".upper()", "abcABC"),
        ("client.ip == remote.ip", "true"),
    ];
    for (expression, wanted) in cases {
        assert_eq!(text_of(expression).as_deref(), Some(wanted), "{expression}");
    }
}

#[test]
fn what_counts_as_true() {
    for (condition, wanted) in [
        ("req.restarts", false),
        ("req.restarts - 1", true),
        ("0s * 1", false),
        ("req.ttl - 100000s", false),
        ("req.ttl + 100000s", true),
        ("b", true),
        ("\"\"", true),
        ("req.http.none", false),
        ("req.http.none.lower()", false),
    ] {
        assert_eq!(holds(condition), wanted, "{condition}");
    }
}

#[test]
fn a_return_in_a_called_sub_ends_the_whole_and_a_bare_one_goes_back() {
    let text = "sub inner { if (req.http.stop) { return (pipe); } return; }
        sub vcl_recv { call inner; set req.http.stop = \"1\"; call inner; return (pass); }";
    let mut fixture = fixture(text);
    assert_eq!(fixture.run(Sub::Recv), Action::Pipe);
}

#[test]
fn subs_of_one_name_follow_each_other() {
    let text = "sub vcl_recv { set req.http.a = \"1\"; }
        sub vcl_recv { set req.http.a = req.http.a + \"2\"; return (pipe); }
        sub vcl_recv { return (pass); }";
    let mut fixture = fixture(text);
    assert_eq!(fixture.run(Sub::Recv), Action::Pipe);
    assert_eq!(fixture.req.headers.value_named(b"a"), Some(&b"12"[..]));
}

#[test]
fn the_budget_of_steps_ends_a_program() {
    let mut fixture = fixture("");
    fixture.task.steps = 3;
    let Action::Fail(reason) = fixture.run(Sub::Recv) else { panic!("it went on") };
    assert!(reason.contains("vcl_steps"), "{reason}");
    assert_eq!(*fixture.environment.limits.borrow(), [base::Limit::VclSteps]);
}

#[test]
fn strings_that_outgrow_the_workspace_fail_the_program_before_they_are_made() {
    let grow = "set req.http.X = regsuball(req.http.X, \".\", req.http.X);";
    for (sub, body, limit) in [
        (Sub::Recv, format!("set req.http.X = \"0123456789\"; {}", grow.repeat(9)), true),
        (
            Sub::Recv,
            "set req.http.X = \"0123456789\"; set req.http.X = req.http.X + \"a\";".into(),
            false,
        ),
        (Sub::Recv, format!("var.set(\"a\", {{\"{}\"}} + now);", "x".repeat(65_536)), true),
        (
            Sub::Recv,
            format!(
                "set req.http.X = blob.encode(encoding = HEX, blob = \
            blob.decode(encoded = {{\"{}\"}}));",
                "x".repeat(40_000)
            ),
            true,
        ),
        (
            Sub::Synth,
            format!(
                "synthetic({{\"{}\"}} + now); set resp.body = {{\"{}\"}} + now;",
                "x".repeat(65_536),
                "y".repeat(65_536)
            ),
            false,
        ),
    ] {
        let text = format!(
            "vcl 4.1; import var; import blob; backend default none; sub {} {{ {body} }}",
            sub.name()
        );
        let mut fixture = SubroutineFixture::of(&text).expect("it compiles");
        let action = fixture.run(sub);
        assert_eq!(matches!(&action, Action::Fail(why) if &**why == "Workspace overflow"), limit);
        let limits: &[_] = if limit { &[base::Limit::VclWorkspaceClient] } else { &[] };
        assert_eq!(*fixture.environment.limits.borrow(), limits, "{body:.60}");
    }
}

#[test]
fn a_line_break_gets_into_no_header() {
    let mut fixture = fixture("sub vcl_recv { set req.http.a = {\"a\r\nb: c\"}; }");
    let Action::Fail(reason) = fixture.run(Sub::Recv) else { panic!("it was set") };
    assert!(reason.starts_with("Bad header a"), "{reason}");
}

#[test]
fn a_status_that_no_answer_can_have_fails_the_program() {
    let mut fixture = fixture("sub vcl_recv { return (synth(req.restarts)); }");
    assert!(matches!(fixture.run(Sub::Recv), Action::Fail(_)));
}

#[test]
fn synthetic_and_body_assignments_make_the_body() {
    let text = "sub vcl_synth { set resp.body = \"a\"; synthetic(\"b\" + 1); \
                set resp.body += \"c\"; return (deliver); }";
    let mut fixture = fixture(text);
    assert_eq!(fixture.run(Sub::Synth), Action::Deliver);
    assert_eq!(fixture.resp_state.body, b"ab1c");
}

#[test]
fn numbers_that_overflow_fail_the_program() {
    let text = "sub vcl_recv { set req.http.x = (req.restarts + 999999999999999) * 99999; }";
    assert!(matches!(fixture(text).run(Sub::Recv), Action::Fail(_)));
}

#[test]
fn the_statement_that_ended_a_subroutine_is_known_by_its_place() {
    let text = "sub vcl_recv {\n  if (req.url ~ \"q\") {\n    call deeper;\n  }\n}\n\
                sub deeper {\n  call deepest;\n}\n\
                sub deepest {\n  return\n    (pass);\n}\n\
                sub vcl_deliver {\n  set resp.http.X = std.real(\"x\");\n}";
    let mut fixture = fixture(text);
    fixture.run(Sub::Recv);
    assert_eq!(fixture.place(), "test.vcl:13");
    fixture.run(Sub::Pass);
    let (file, line) = fixture
        .place()
        .rsplit_once(':')
        .map(|(f, l)| (f.to_owned(), l.to_owned()))
        .expect("a place");
    let builtin = crate::parse::BUILTIN.lines().nth(line.parse::<usize>().expect("a number") - 1);
    assert_eq!((file.as_str(), builtin), ("<builtin>", Some("    return (fetch);")));
    assert!(matches!(fixture.run(Sub::Deliver), Action::Fail(_)));
    assert_eq!(fixture.place(), "test.vcl:17");
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
    assert!(holds("req.http.none >= \"abc\""));
    assert!(holds("\"abc\" > req.http.none"));
    assert!(holds("\"B\" < \"a\""));
    assert!(holds("req.http.none ~ \"^$\""));
    assert!(holds("req.restarts == 0 && (req.url || req.http.none)"));
    assert!(holds("client.ip == \"192.0.2.7\""));
    assert!(holds("now - 5s < now"));
}

#[test]
fn a_failure_ends_the_program_and_says_where() {
    let mut fixture = fixture("sub vcl_recv {\n  set req.http.x = 5 / req.restarts;\n}");
    assert_eq!(fixture.run(Sub::Recv), Action::Fail("division by zero".into()));
    let log = fixture.environment.log.borrow();
    let line = String::from_utf8_lossy(&log[0].1).into_owned();
    assert!(line.starts_with("division by zero (test.vcl line 5)"), "{line}");
}
