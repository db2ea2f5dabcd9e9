//! Tests of the dictionary fields, and of patterns against a plain search.

use proptest::prelude::*;

use super::*;

const ORIGIN: &[u8] = b"https://example.com";

fn read(field: &str) -> Option<UseAsDictionary> {
    UseAsDictionary::parse([field.as_bytes()], ORIGIN, b"/js/app.v1.js?x=1")
}

fn pattern(text: &str) -> Option<MatchPattern> {
    MatchPattern::parse(text.as_bytes(), ORIGIN, b"/js/app.v1.js?x=1")
}

#[test]
fn the_examples_of_the_rfc_are_read() {
    let one = read("match=\"/product/*\", match-dest=(\"document\")").expect("a dictionary");
    assert!(one.is_for(b"/product/1", Some(b"document")));
    assert!(!one.is_for(b"/product/1", Some(b"script")));
    assert!(!one.is_for(b"/product/1", None));
    assert!(!one.is_for(b"/other", Some(b"document")));
    let two = read("match=\"/app/*/main.js\"").expect("a dictionary");
    assert!(two.is_for(b"/app/v2/main.js", None));
    assert!(read("id=\"dictionary-12345\", match=\"/x\", type=raw, new=?0").is_some());
    assert!(read("match=\"/x\", match-dest=()").expect("all").is_for(b"/x", None));
}

#[test]
fn what_is_malformed_is_no_dictionary() {
    for field in [
        "",
        "match",
        "match=/x",
        "match=\"/x",
        "match=\"/x\";",
        "match=(\"/x\")",
        "id=\"x\"",
        "match=\"/x\", type=trained",
        "match=\"/x\", type=\"raw\"",
        "match=\"/x\", id=x",
        "match=\"/x\", match-dest=\"script\"",
        "match=\"/x\", match-dest=(script)",
        "match=\"/x(a|b)\"",
        "match=\"https://other.example/*\"",
        "match=\"http://example.com/*\"",
        "match=\"https://example.com:8443/*\"",
        "match=\"https://*/\"",
        "match=\"/x\", match=1",
    ] {
        assert_eq!(read(field), None, "{field}");
    }
    assert!(read(&format!("match=\"/\", id=\"{}\"", "x".repeat(1024))).is_some());
    assert!(read(&format!("match=\"/\", id=\"{}\"", "x".repeat(1025))).is_none());
    let with = |names: &str| read(&format!("match=\"/\", match-dest=({names})")).is_some();
    assert!(with(&"\"image\" ".repeat(32)) && with(&format!("\"{}\"", "x".repeat(32))));
    assert!(!with(&"\"image\" ".repeat(33)) && !with(&format!("\"{}\"", "x".repeat(33))));
}

#[test]
fn patterns_match_as_url_patterns_do() {
    for (text, target, expected) in [
        ("/js/app.*.js", "/js/app.v2.js", true),
        ("/js/app.*.js", "/js/app.v2.js?y", true),
        ("/js/app.*.js", "/js/app.js", false),
        ("/js/app.*.js", "/js/app.a/b.js", true),
        ("/js/app.*.js", "/js/app.v2.jsx", false),
        ("app.*.js", "/js/app.v2.js", true),
        ("app.*.js", "/app.v2.js", false),
        ("*", "/js/x", true),
        ("*", "/x", false),
        ("/*", "/", true),
        ("https://example.com/*", "/x", true),
        ("/:version/app.js", "/v2/app.js", true),
        ("/:version/app.js", "//app.js", false),
        ("/:version/app.js", "/a/b/app.js", false),
        ("/a{b}c", "/abc", true),
        ("/a\\*", "/a*", true),
        ("/a\\*", "/ab", false),
        ("/a?x=*", "/a?x=1", true),
        ("/a?x=*", "/a", false),
        ("/a?x=*", "/a?y=1", false),
        ("/a\\?x=*", "/a?x=1", true),
        ("/a?", "/a", true),
        ("/a?", "/a?x", false),
        ("?x=*", "/js/app.v1.js?x=2", true),
        ("?x=*", "/js/app.v2.js?x=2", false),
        ("/A", "/a", false),
    ] {
        let found = pattern(text).expect(text).matches(target.as_bytes());
        assert_eq!(found, expected, "{text} {target}");
    }
}

#[test]
fn what_is_not_understood_is_no_pattern() {
    let long = format!("/{}", "x".repeat(300));
    for text in [
        "/(a)",
        "/a#b",
        "/:name?",
        "/{a}?",
        "/{a}*",
        "/**",
        "/*+",
        "/{a",
        "/a}",
        "/{{a}}",
        "/{a?b}",
        "/a\\",
        "/a?b?c(",
        "mailto:/x",
        "/x?:name",
        &long,
    ] {
        assert_eq!(pattern(text), None, "{text}");
    }
}

#[test]
fn a_hostile_pattern_costs_a_step_for_each_byte() {
    let text = format!("/{}b", "*a".repeat(126));
    let found = pattern(&text).expect("254 steps");
    let target = format!("/{}", "a".repeat(100_000));
    assert!(!found.matches(target.as_bytes()));
    assert!(found.matches(format!("{target}b").as_bytes()));
}

#[test]
fn one_hash_is_read_and_nothing_else() {
    let text = ":pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG4=:";
    let hash = available([text.as_bytes()]).expect("the RFC's");
    assert_eq!(hash[..4], [0xa5, 0x91, 0xa6, 0xd4]);
    for text in [
        "",
        "::",
        ":AAAA:",
        "pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG4=",
        ":pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG5=:",
        ":pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG4:",
        ":pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG4==:",
        ":pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2f-G4=:",
    ] {
        assert_eq!(available([text.as_bytes()]), None, "{text}");
    }
    assert_eq!(available([text.as_bytes(), text.as_bytes()]), None);
    assert_eq!(available([]), None);
}

#[test]
fn the_coding_must_be_named_and_liked_as_well_as_others() {
    use DeltaCoding::{Dcb, Dcz};
    for (field, expected) in [
        ("gzip, deflate, br, zstd, dcb, dcz", Some(Dcz)),
        ("dcz", Some(Dcz)),
        ("DCZ;q=0.5, gzip;q=0.5", Some(Dcz)),
        ("dcz;q=0.5, gzip", None),
        ("dcz;q=0", None),
        ("gzip, br, dcb", Some(Dcb)),
        ("gzip;q=0.3, dcb, dcz;q=0.9", Some(Dcb)),
        ("dcb;q=0.5, dcz;q=0.5, gzip", None),
        ("*", None),
        ("", None),
    ] {
        assert_eq!(taken([field.as_bytes()]), expected, "{field}");
    }
    assert_eq!(taken([&b"gzip"[..], b"dcz"]), Some(Dcz));
    assert_eq!(taken([]), None);
}

/// Match by brute force: each alternative of the pattern, one after the other.
fn plainly(text: &[u8], target: &[u8]) -> bool {
    match text {
        [] => target.is_empty(),
        [b'*', rest @ ..] => (0..=target.len()).any(|at| plainly(rest, &target[at..])),
        [b':', b'n', rest @ ..] => {
            let end = target.iter().position(|b| *b == b'/').unwrap_or(target.len());
            (1..=end).any(|at| plainly(rest, &target[at..]))
        }
        [byte, rest @ ..] => target.first() == Some(byte) && plainly(rest, &target[1..]),
    }
}

proptest! {
    #[test]
    fn patterns_match_as_a_plain_search_does(
        text in "/([ab/]|/[*]/|:n/){0,8}[*]?", target in "/[ab/]{0,10}",
    ) {
        let found = pattern(&text).expect("understood");
        let expected = plainly(text.as_bytes(), target.as_bytes());
        prop_assert_eq!(found.matches(target.as_bytes()), expected);
    }

    #[test]
    fn any_pattern_matches_as_a_plain_search_does(
        text in "[/a:n*?{}.\\\\-]{0,30}", target in "/[/an?.-]{0,30}",
    ) {
        if let Some(found) = MatchPattern::parse(text.as_bytes(), ORIGIN, target.as_bytes()) {
            let target = target.as_bytes();
            prop_assert_eq!(found.matches(target), found.matches_plainly(target));
        }
    }

    #[test]
    fn any_lines_are_read(data in any::<Vec<u8>>(), hash in "[A-Za-z0-9+/]{43}=") {
        crate::fuzz::dictionary(&data);
        let hash = format!("/\n:{hash}:\ngzip, dcb\nmatch=\"/*\"");
        crate::fuzz::dictionary(hash.as_bytes());
    }

    #[test]
    fn any_field_is_judged(field in any::<Vec<u8>>(), target in "/[!-~]{0,20}") {
        if let Some(found) = UseAsDictionary::parse([&field[..]], ORIGIN, target.as_bytes()) {
            found.is_for(target.as_bytes(), None);
        }
        available([&field[..]]);
        taken([&field[..]]);
    }
}
