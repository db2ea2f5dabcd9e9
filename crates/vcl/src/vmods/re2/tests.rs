//! Tests of behaviour that no request shows. `vmod_re2.scenario` compares the rest with
//! libvmod-re2.

use super::pattern::Syntax;
use super::*;
use crate::testing::SubroutineFixture;

fn rewritten(pattern: &str) -> Result<String, String> {
    let syntax = Syntax { utf8: false, literal: false, never_capture: false, ignore_case: false };
    pattern::rewrite(pattern.as_bytes(), syntax).map(|rewritten| rewritten.text)
}

fn refusal(init: &str) -> String {
    let program = format!(
        "vcl 4.1; import re2; backend b none;
         sub of_resp {{ set resp.http.A = \"\"; }} sub vcl_deliver {{ call of_resp; }}
         sub vcl_init {{ {init} }}"
    );
    SubroutineFixture::of(&program).err().unwrap_or_default()
}

#[test]
fn what_the_engines_read_differently_is_spelled_out() {
    for (pattern, text) in [
        (r"a.b\.", r"a.b\x2e"),
        (r"[a[&&b]", r"[a\x5b\x26\x26b]"),
        (r"\s[\S]", r"[\t\n\x0c\r\x20][[^\t\n\x0c\r\x20]]"),
        (r"\b{start}", r"(?-u:\b)\x7bstart\x7d"),
        (r"a(?i)*b", r"a*(?i)b"),
        (r"(?P<1st>a)(?:b)", r"(a)(?:b)"),
        (r"\Qa+\E+", r"a\x2b+"),
        ("é", r"\xc3\xa9"),
    ] {
        assert_eq!(rewritten(pattern).as_deref(), Ok(text), "{pattern}");
    }
}

#[test]
fn what_our_engine_has_not_is_refused_by_name() {
    assert!(rewritten(r"\pN").is_err_and(|why| why.contains("classes of Unicode")));
    assert!(rewritten("(?i)é").is_err_and(|why| why.contains("beyond ASCII")));
    assert!(rewritten("(?<name>a)").is_err());
}

#[test]
fn programs_with_what_is_not_supported_are_refused_with_the_reason() {
    for (init, why) in [
        ("new r = re2.regex(\"a\", longest_match=true);", "the first that matches counts"),
        ("new r = re2.regex(\"a\", posix_syntax=true);", "RE2's own syntax"),
        ("new r = re2.regex(\"a\", never_nl=true);", "`never_nl` is not supported here"),
        ("new s = re2.set(); s.add(\"a\", sub=of_resp);", "`sub` is not supported here"),
        ("new s = re2.set(); s.add(\"a\"); s.subroutine();", "would lead to unchecked calls"),
        ("new r = re2.regex(\"(\");", "re2.regex r: re2: cannot compile '(': missing closing )"),
        ("new r = re2.regex(\"a\", max_mem=-1);", "max_mem must not be negative"),
        ("new r = re2.regex(\"[a-z]{900}\", max_mem=1000);", "size limit of 1000 bytes"),
    ] {
        let message = refusal(init);
        assert!(message.contains(why), "{init}: {message}");
    }
    assert_eq!(refusal("new r = re2.regex(\"a\", longest_match=false);"), "");
}

#[test]
fn sets_are_complete_when_vcl_init_ends() {
    for (init, why) in [
        ("", "re2.set x: no patterns were added"),
        ("x.add(\"[\");", "re2.set x: cannot compile '[': missing closing ]"),
        ("x.add(\"a\"); x.compile(); x.compile();", "re2.set x: is compiled twice"),
        ("x.add(\"a\"); x.compile(); x.add(\"b\");", "a pattern is added after compile()"),
        ("x.add(\"a\"); if (x.match(\"a\")) { }", "re2.set x: is not compiled"),
    ] {
        let message = refusal(&format!("new x = re2.set(); {init}"));
        assert!(message.contains(why), "{init}: {message}");
    }
    let late =
        "vcl 4.1; import re2; backend b none; sub vcl_init { new x = re2.set(); x.add(\"a\"); }
        sub vcl_recv { x.add(\"b\"); }";
    let mut fixture = SubroutineFixture::of(late).unwrap_or_else(|why| panic!("{why}"));
    assert!(matches!(fixture.run(crate::sub::Sub::Recv), crate::sub::Action::Fail(_)));
}

#[test]
fn a_group_that_is_negative_fails() {
    let program = "vcl 4.1; import re2; backend b none; sub vcl_init { new r = re2.regex(\"a\"); }
        sub vcl_recv { if (r.match(\"a\")) { set req.http.X = r.backref(-1); } }";
    let mut fixture = SubroutineFixture::of(program).unwrap_or_else(|why| panic!("{why}"));
    let action = fixture.run(crate::sub::Sub::Recv);
    assert!(matches!(&action, crate::sub::Action::Fail(why) if why.contains("no such group")));
}

#[test]
fn what_is_replaced_finds_room_or_fails() {
    let program = "vcl 4.1; import re2; backend b none;
        sub vcl_recv { set req.http.X = re2.suball(\"a?\", req.http.T, \"0123456789\"); }";
    let mut fixture = SubroutineFixture::of(program).unwrap_or_else(|why| panic!("{why}"));
    fixture.req.headers.push_named(b"T", &[b'a'; 1000]);
    fixture.task.workspace = crate::workspace::Workspace::of(5_000);
    let action = fixture.run(crate::sub::Sub::Recv);
    assert!(matches!(&action, crate::sub::Action::Fail(why) if &**why == "Workspace overflow"));
}
