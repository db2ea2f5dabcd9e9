//! Scenarios are parsed as written, and mistakes in them are reported.

use std::collections::BTreeMap;

use super::*;

const TEXT: &str = "\
-- vcl
sub vcl_recv { set req.backend_hint = o2; }
== A name
What it shows.
-- o1
/a
    404 Gone Fishing
    Age: 5
    !delay 20ms
    !if Cookie: a

    body
      indented
POST /b
-- steps
# A comment.
& GET /a after 20ms
GET /b @x from 192.0.2.1
    X-A: b: c
    -Host

    body
wait 2s
await o1 3
cli+ ban req.url ~ .
expect no X-A
expect body: a b
RAW GET
    GET / HTTP/1.1
    Host: x
== Another
-- steps
GET / HTTP/1.0
";

fn read(text: &str) -> Result<Vec<Scenario>, String> {
    scenarios("file", text, &|_| None)
}

#[test]
fn sections_steps_and_answers_are_read() {
    let all = read(TEXT).expect("a text");
    let [one, two] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!((one.name.as_str(), one.line), ("A name", 3));
    assert_eq!(one.vcl, two.vcl);
    let answers = &one.origins["o1"];
    assert_eq!(answers[0].status, "404 Gone Fishing");
    assert_eq!(answers[0].body, "body\n  indented");
    assert_eq!(answers[0].manner.delay_ms, 20);
    assert_eq!(answers[0].needs, [("Cookie".to_owned(), Some("a".to_owned()))]);
    assert_eq!(answers[1].method.as_deref(), Some("POST"));
    let steps: Vec<&ScenarioStep> = one.steps.iter().map(|(_, step)| step).collect();
    let ScenarioStep::Ask(group) = steps[0] else { panic!("{steps:?}") };
    assert_eq!((group[0].after_ms, group[1].after_ms), (20, 0));
    assert_eq!((group.len(), group[1].connection.as_str()), (2, "x"));
    assert_eq!(group[1].fields[0], ("X-A".to_owned(), Some("b: c".to_owned())));
    assert_eq!(group[1].fields[1], ("Host".to_owned(), None));
    assert_eq!(group[1].body.as_deref(), Some("body"));
    assert_eq!(*steps[1], ScenarioStep::Wait(2000));
    assert_eq!(*steps[2], ScenarioStep::Await("o1".to_owned(), 3));
    assert_eq!(*steps[4], ScenarioStep::Expect(ScenarioExpectation::NoField("X-A".to_owned())));
    assert_eq!(*steps[5], ScenarioStep::Expect(ScenarioExpectation::Body("a b".to_owned())));
    let ScenarioStep::Ask(raw) = steps[6] else { panic!("{steps:?}") };
    assert_eq!(raw[0].raw.as_deref(), Some("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
}

#[test]
fn mistakes_are_reported_with_their_line() {
    for (text, what) in [
        ("== A\n-- steps\nwait soon\n", "file: 3: no time"),
        ("== A\n-- steps\nget /\n", "file: 3: no request"),
        ("== A\n-- o1\n/\n    !dance\n", "file: 3: !dance"),
        ("== A\n-- nothing\n", "file: no section"),
        ("== A\n-- allows\nall of it\n", "file: 3: not allowed"),
        ("== A\n-- allows\norder\n", "file: 3: no reason"),
        ("== A\n-- steps\n& GET /\n", "file: `&` joins"),
        ("== A\n", "file:1: nothing is done"),
        ("== A\n-- steps\nGET /\n== A\n-- steps\nGET /\n", "file:4: the name is taken"),
        ("== A\n-- vcl missing.vcl\n", "file: no template missing.vcl"),
    ] {
        let error = read(text).expect_err(text);
        assert!(error.starts_with(what), "{text:?}: {error}");
    }
}

#[test]
fn a_program_gets_the_backends_it_names() {
    let values = BTreeMap::from([("o1".to_owned(), "1".to_owned()), ("o2".into(), "2".into())]);
    let text = scenario_parser::program("sub vcl_recv { set req.backend_hint = o2; }", &values);
    assert!(text.contains("backend o1 { .host = \"127.0.0.1\"; .port = \"1\"; }"), "{text}");
    assert!(text.contains("backend o2") && !text.contains("backend o3"), "{text}");
    let own = scenario_parser::program(
        "vcl 4.0;\nbackend a { .host = \"x\"; .port = \"${o2}\"; }",
        &values,
    );
    assert_eq!(own, "vcl 4.0;\nbackend a { .host = \"x\"; .port = \"2\"; }");
}
