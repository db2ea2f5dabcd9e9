//! Filters hold for the records they describe, and mistakes in them are explained.

use proptest::prelude::*;

use super::*;
use crate::record::{Phases, Served};

fn fields() -> FieldPositions {
    FieldPositions::new(&["Referer", "User-Agent"].map(str::to_owned))
}

fn query(text: &str) -> Query {
    Query::parse(text, &fields()).unwrap_or_else(|error| panic!("{error}"))
}

/// The record of a failed request for an API.
fn bytes() -> Vec<u8> {
    let record = Record {
        id: 0x1f,
        status: 503,
        served: Served::Pass,
        client: Some([10, 1, 2, 3].into()),
        method: b"POST",
        host: b"api.example.com",
        target: b"/api/v1?q=\"x\"",
        site: b"example.com",
        error: b"connect_timeout",
        body_out: 2048,
        ttl_s: Some(-5),
        phases: Phases { reply: Some(1_000), end: 1_500_000, ..Phases::default() },
        ..Record::default()
    };
    let mut out = Vec::new();
    record.with_derived_flags().write([None, Some(&b"Testbot/1"[..])], &mut out);
    out
}

fn holds(text: &str) -> bool {
    let bytes = bytes();
    let (record, _) = Record::read(&bytes).expect("a record");
    query(text).matches(&record)
}

#[test]
fn comparisons_mean_what_they_say() {
    for text in [
        "resp.status >= 500 and req.url ~ \"^/api\"",
        "resp.status == 503",
        "resp.status != 200 && resp.status<504",
        "req.method == POST",
        "req.method == 'POST'",
        "req.url == \"/api/v1?q=\\\"x\\\"\"",
        "req.url !~ \"\\.html$\"",
        "req.host ~ example",
        "req.http.User-Agent ~ \"(?i)testBOT\"",
        "not req.http.referer",
        "client.ip == 10.0.0.0/8",
        "client.ip != 192.0.2.1",
        "client.ip == 10.1.2.3",
        "time.total > 1.4s and time.total <= 1500ms",
        "time.ttfb == 1000us",
        "resp.bytes == 2KiB",
        "resp.bytes > 2KB and resp.bytes < 0.1MiB",
        "served == pass and served == PASS",
        "served ~ \"^PA\" and not served ~ hitt",
        "kind != fragment and dictionary != unknown",
        "ttl < 0s and ttl == -5s",
        "error and not limit",
        "age != 0s and not age >= 0s",
        "(served == hit or served == pass) and !(resp.status == 200)",
        "served == hit or served == miss or site == example.com",
        "RESP.STATUS == 503",
        "id == 1f and id != 1e and id == 1F",
    ] {
        assert!(holds(text), "{text}");
        assert!(!holds(&format!("not ({text})")), "{text}");
    }
}

#[test]
fn and_binds_more_than_or_and_not_more_than_both() {
    assert!(holds("error or limit and limit"));
    assert!(!holds("(error or limit) and limit"));
    assert!(holds("not limit and error"));
}

#[test]
fn mistakes_are_pointed_at() {
    for (text, expected) in [
        (
            "resp.staus == 200",
            "^^^^^^^^^^ there is no field `resp.staus`; did you mean `resp.status`?",
        ),
        ("resp.status = 200", "            ^ equality is written `==`"),
        ("resp.status >= abc", "               ^^^ a number belongs here"),
        ("resp.status ~ 5", "            ^ numbers are compared by"),
        ("time.total > 5", "             ^ a time belongs here, with its unit: 500us, 250ms, 1.5s"),
        ("time.total > 1..5s", "             ^^^^^ `1..5` is not a number that fits here"),
        ("req.url > b", "        ^ texts are compared by"),
        ("req.url ~ \"(\"", "          ^^^ not a pattern: "),
        ("req.url ~ \"abc", "          ^^^^ this text has no end: a quote is missing"),
        ("(error", "^ this parenthesis is not closed"),
        ("error)", "     ^ this parenthesis was not opened"),
        ("error limit", "      ^^^^^ `and` or `or` belongs before this"),
        ("error and", "         ^ a comparison is missing here"),
        ("and error", "^^^ a comparison is missing before this"),
        ("", "^ a comparison is missing here"),
        ("error ==", "        ^ a value is missing here"),
        ("error == )", "         ^ a value belongs here"),
        ("\"error\" == x", "^^^^^^^ a field's name belongs here, without quotes"),
        ("id == xyz", "      ^^^ a number in hexadecimal digits belongs here"),
        ("client.ip == abc", "             ^^^ an address belongs here"),
        ("client.ip > 10.0.0.1", "          ^ addresses are compared by"),
        (
            "req.http.cookie",
            "^^^^^^^^^^^^^^^ the log ring does not keep `cookie`, only Referer, User-Agent",
        ),
        ("served == hitt", "          ^^^^ it is never `hitt`; did you mean `hit`?"),
        ("served != \"stale_error\"", "          ^^^^^^^^^^^^^ it is never `stale_error`; did you"),
        ("served == cached", "          ^^^^^^ it is never `cached`; there are synth, hit, stale,"),
        ("kind == clients", "        ^^^^^^^ it is never `clients`; did you mean `client`?"),
        ("dictionary == usd", "              ^^^ it is never `usd`; did you mean `used`?"),
        ("req.url ~ §", "          ^ this text needs quotes"),
        (
            "zzzzzzzzz",
            "^^^^^^^^^ there is no field `zzzzzzzzz`; there are req.http.NAME, req.method,",
        ),
    ] {
        let said = Query::parse(text, &fields()).expect_err(text).to_string();
        let line = said.lines().nth(1).unwrap_or_default();
        assert!(line.starts_with(expected), "{said}");
    }
}

#[test]
fn depth_is_limited() {
    let deep = |n: usize| format!("{}error{}", "(".repeat(n), ")".repeat(n));
    assert!(holds(&deep(60)));
    assert!(Query::parse(&deep(5000), &fields()).is_err());
    assert!(Query::parse(&format!("{}error", "not ".repeat(5000)), &fields()).is_err());
}

/// A filter, and the result for the record above by a model without texts.
fn model() -> impl Strategy<Value = (String, bool)> {
    let leaf = prop_oneof![
        (0..700_i32, 0..6_usize).prop_map(|(n, op)| {
            let signs = ["==", "!=", "<", "<=", ">", ">="];
            let holds = [503 == n, 503 != n, 503 < n, 503 <= n, 503 > n, 503 >= n];
            (format!("resp.status {} {n}", signs[op]), holds[op])
        }),
        "[a-z]{1,4}".prop_map(|word| {
            let holds = "example.com".contains(&word);
            (format!("site ~ \"{word}\""), holds)
        }),
        any::<bool>().prop_map(|on| (if on { "error" } else { "limit" }.to_owned(), on)),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone())
                .prop_map(|(a, b)| (format!("({}) and ({})", a.0, b.0), a.1 && b.1)),
            (inner.clone(), inner.clone())
                .prop_map(|(a, b)| (format!("({}) or ({})", a.0, b.0), a.1 || b.1)),
            inner.prop_map(|a| (format!("not ({})", a.0), !a.1)),
        ]
    })
}

proptest! {
    #[test]
    fn filters_hold_when_their_model_does((text, expected) in model()) {
        prop_assert_eq!(holds(&text), expected, "{}", text);
    }

    #[test]
    fn no_text_makes_it_fail(text in ".{0,60}") {
        crate::fuzz::query(text.as_bytes());
    }

    #[test]
    fn nearly_filters_do_not_either(
        words in proptest::collection::vec(prop_oneof![
            Just("and"), Just("or"), Just("not"), Just("("), Just(")"), Just("=="), Just("~"),
            Just("resp.status"), Just("req.url"), Just("5ms"), Just("\"a"), Just("\"b\""),
            Just("-1"),
        ], 0..20),
    ) {
        crate::fuzz::query(words.join(" ").as_bytes());
    }
}
