//! Tests of both engines against each other, and against replacements of varnishd 7.1.1.

use std::borrow::Cow;

use proptest::prelude::*;

use super::*;

fn room() -> Workspace {
    Workspace::unbounded()
}

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern, Limits::default()).expect(pattern)
}

/// The pattern on PCRE2 only.
fn by_pcre2(pattern: &str) -> Regex {
    let pcre2 = OnceLock::from(BacktrackingRegex::new("", pattern, LOOSE).expect(pattern));
    let not_empty = OnceLock::new();
    Regex { pattern: pattern.into(), limits: LOOSE, linear: None, pcre2, not_empty }
}

const LOOSE: Limits = Limits { matches: 10_000_000, depth: 10_000_000 };

fn sub(subject: &str, pattern: &str, replacement: &str, all: bool) -> String {
    let of = |regex: &Regex| {
        let out = regex.replace(subject.as_bytes(), replacement.as_bytes(), all, &room());
        String::from_utf8_lossy(&out.expect("no limit is reached")).into_owned()
    };
    let out = of(&regex(pattern));
    assert_eq!(out, of(&by_pcre2(pattern)), "{pattern}");
    out
}

/// Results of varnishd 7.1.1.
#[test]
fn regsub_replaces_as_varnish_does() {
    for (subject, pattern, replacement, expected) in [
        ("abc", "b", r"[\0]", "a[b]c"),
        ("abc", "b", r"[\&]", "a[&]c"),
        ("abc", "b", r"[\1]", "a[]c"),
        ("abc", "(b)(x)?", r"[\2]", "a[]c"),
        ("abc", "b", r"[\\]", r"a[\]c"),
        ("abc", "b", r"x\", r"ax\c"),
        ("abc", "b", r"[\n]", "a[n]c"),
        ("abc", "(b)", r"\10", "ab0c"),
        ("abc", "(a)(b)", r"\2\1\3\9", "bac"),
        ("", "^$", "-", "-"),
        ("a", "a", "", ""),
        ("abc", "x", "y", "abc"),
    ] {
        assert_eq!(sub(subject, pattern, replacement, false), expected, "{pattern}");
    }
}

/// Results of varnishd 7.1.1.
#[test]
fn regsuball_replaces_as_varnish_does() {
    for (subject, pattern, replacement, expected) in [
        ("aaa", "^a", "b", "baa"),
        ("abc", "", "-", "-abc"),
        ("abc", "x*", "-", "-abc"),
        ("aaa", "a*", "-", "-"),
        ("baac", "a*", "-", "-b-c"),
        ("abab", "(?<=a)b", "x", "axax"),
        ("aXbX", "X|$", "-", "a-b-"),
        ("", "", "-", "-"),
        ("", "x*", "-", "-"),
        ("aaa", "a*?", "-", "----"),
        ("a,b,,c", "[^,]*", r"<\0>", "<a>,<b>,,<c>"),
        ("foo bar", r"\b", "|", "|foo bar"),
        ("abc", "(?=b)", "|", "a|bc"),
        ("abcabc", "a|(?=b)", "|", "|bc|bc"),
        ("aab", "a*(?=b)|b", r"<\0>", "<aa><b>"),
        ("xay", "(?:)|a", r"<\0>", "<>x<a>y"),
        ("xay", "|a", r"<\0>", "<>x<a>y"),
        ("aa", r"\Ga", "x", "xx"),
        ("ab", r"a\K", "x", "axb"),
        ("ABC", "(?i)b", "x", "AxC"),
        ("äö", "[^a]", "x", "xxxx"),
    ] {
        assert_eq!(sub(subject, pattern, replacement, true), expected, "{pattern}");
    }
}

#[test]
fn a_pattern_that_does_not_match_costs_no_copy() {
    let out = regex("b+").replace(b"aaa", b"c", true, &room()).expect("no limit");
    assert!(matches!(out, Cow::Borrowed(b"aaa")));
}

#[test]
fn a_dollar_also_stands_before_a_newline_at_the_end() {
    assert!(regex("a$").is_match(b"a\n").expect("no limit"));
    assert!(!regex("a$").is_match(b"a\n\n").expect("no limit"));
    assert_eq!(sub("a\n", "a$", "x", false), "x\n");
    assert_eq!(sub("a\n", "$", "x", true), "ax\n");
}

#[test]
fn patterns_of_real_programs_are_linear() {
    for pattern in [
        "^/wp-(login|admin)",
        "(?i)\\.(jpe?g|png|gif|ico|css|js|woff2?)(\\?.*)?$",
        "^([^:]+):[0-9]+$",
        "(^|;\\s*)(_[_a-z]+|has_js)=[^;]*",
        "^;\\s*",
        "[?|&]+$",
        "^(?i)/admin",
        "(?:utm_[a-z]+|gclid)=[-_A-Za-z0-9+()%.]+&?",
        "\\s{2,}",
        "^\\s*$",
        "",
    ] {
        assert_eq!(regex(pattern).engine(), Engine::Linear, "{pattern}");
    }
}

#[test]
fn what_the_engines_read_differently_goes_to_pcre2() {
    for pattern in [
        "(?!a)b",
        "(a)\\1",
        "a++",
        "a{2}+",
        "\\v",
        "\\<a",
        "\\b{start}",
        "[[a]]",
        "[a&&b]",
        "[]a]",
        "a{,3}",
        "x{",
        "\\Z",
        "(?x)a b",
        "(?m)^a",
        "\\Qa.b\\E",
        "(a*)*",
        "é",
        "(?P<n>a)",
        "\\x41",
        "[\\b]",
        "(?#c)a",
        "a\\z\\K",
    ] {
        assert_eq!(regex(pattern).engine(), Engine::Pcre2, "{pattern}");
    }
}

#[test]
fn a_faulty_pattern_is_reported_with_its_offset() {
    let fault = |pattern| Regex::new(pattern, Limits::default()).expect_err(pattern);
    assert_eq!(
        fault("ab(c"),
        PatternError { at: 4, message: "missing closing parenthesis".to_string() }
    );
    assert_eq!(fault("a**b)").at, 2);
    assert_eq!(fault("[a").to_string(), "missing terminating ] for character class at byte 2");
}

#[test]
fn a_limit_that_is_reached_fails_with_varnishs_words() {
    let subject = [&[b'a'; 40][..], b"b"].concat();
    let regex = regex("(?=a)(a+)+[cd]");
    let failure = |text: &str| ProgramFailure::new(text);
    assert_eq!(
        regex.is_match(&subject),
        Err(failure("Regexp matching failed: match limit exceeded"))
    );
    assert_eq!(
        regex.replace(&subject, b"x", false, &room()),
        Err(failure("regsub: Regexp matching returned -47"))
    );
}

/// Patterns of meaningful pieces, most of them valid.
fn pattern() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "a",
        "b",
        "c",
        ".",
        "[ab]",
        "[^a]",
        "\\w",
        "\\W",
        "\\s",
        "\\d",
        "^",
        "$",
        "\\b",
        "\\B",
        "\\.",
        " ",
        "\\n",
        "[a-b\\s]",
        "[[:alpha:]]",
        "\\A",
        "",
        "-",
        "[.-]",
        "\\x",
        "[b-]",
        "(?i)",
        "(?-i)",
        "(?s)",
    ])
    .prop_map(str::to_string);
    leaf.prop_recursive(5, 40, 4, |inner| {
        let some = prop::collection::vec(inner.clone(), 1..4);
        let repeats = prop::sample::select(vec![
            "*", "+", "?", "*?", "+?", "??", "{2}", "{1,}", "{0,2}", "{1,2}?", "*+", "**",
        ]);
        prop_oneof![
            some.clone().prop_map(|parts| parts.concat()),
            some.prop_map(|parts| parts.join("|")),
            inner.clone().prop_map(|part| format!("({part})")),
            inner.clone().prop_map(|part| format!("(?i:{part})")),
            (inner.clone(), repeats.clone()).prop_map(|(part, r)| format!("(?:{part}){r}")),
            (inner.clone(), repeats.clone()).prop_map(|(part, r)| format!("({part}){r}")),
            (inner, repeats).prop_map(|(part, r)| format!("{part}{r}")),
        ]
    })
}

#[test]
fn a_byte_that_every_match_has_is_known() {
    for (pattern, byte) in [
        (r"\?$", Some(b'?')),
        (":[0-9]+$", Some(b':')),
        (r"^[^?]*\.(css|js)(\?.*)?$", Some(b'.')),
        (r"(\?|&)(gclid|cx)=", Some(b'=')),
        ("(a=|b=)c", Some(b'=')),
        ("(?i)(-x)+", Some(b'-')),
        ("(a=|b)c", None),
        ("a=*", None),
        ("[=&]", None),
        ("^/(wp-admin|user)", None),
        (r"\.", None),
    ] {
        assert_eq!(common::facts(pattern).and_then(|facts| facts.needs), byte, "{pattern}");
    }
    assert_eq!(regex(r"\.css").is_match(b"/a_css"), Ok(false));
    assert_eq!(regex(r"(?i)\.CSS").is_match(b"/a.css"), Ok(true));
}

/// Patterns with many atomic groups and comments.
fn atomic() -> impl Strategy<Value = String> {
    let item = prop_oneof![
        Just("a".to_owned()),
        Just("b".to_owned()),
        Just("[ab]".to_owned()),
        Just(".".to_owned()),
        Just("(?#(a)".to_owned()),
        Just("\\b".to_owned()),
        Just("ab?".to_owned()),
    ];
    let part = item.prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a}{b}")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("(?>{a}|{b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}|{b})")),
            inner.clone().prop_map(|a| format!("(?>{a})")),
            inner.prop_map(|a| format!("(?:{a}1)+")),
        ]
    });
    (any::<bool>(), part, any::<bool>()).prop_map(|(ignores_case, part, ends)| {
        format!("{}{part}{}", if ignores_case { "(?i)" } else { "" }, if ends { "$" } else { "" })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn both_engines_find_the_same(
        pattern in pattern(),
        ignores_case: bool,
        subjects in prop::collection::vec("[abcA1 .\n-]{0,8}", 4),
    ) {
        let pattern = if ignores_case { format!("(?i){pattern}") } else { pattern };
        let Ok(regex) = Regex::new(&pattern, LOOSE) else { return Ok(()) };
        if regex.engine() == Engine::Pcre2 {
            return Ok(());
        }
        let other = by_pcre2(&pattern);
        for subject in &subjects {
            let subject = subject.as_bytes();
            prop_assert_eq!(regex.is_match(subject), other.is_match(subject));
            for all in [false, true] {
                let replacement = br"<\0|\1|\2>";
                prop_assert_eq!(
                    regex.replace(subject, replacement, all, &room()),
                    other.replace(subject, replacement, all, &room()),
                    "{} in {:?}", &pattern, subject
                );
            }
        }
    }

    /// Bans use only the linear engine; the atomic groups that it accepts have PCRE2's meaning.
    #[test]
    fn atomic_groups_mean_the_same_to_both_engines(
        pattern in atomic(),
        subjects in prop::collection::vec("[abcAB1]{0,8}", 4),
    ) {
        let Ok(regex) = Linear::new(&pattern, Options::default()) else { return Ok(()) };
        let other = by_pcre2(&pattern);
        for subject in &subjects {
            let subject = subject.as_bytes();
            let is_match = regex.is_match(subject);
            prop_assert_eq!(Ok(is_match), other.is_match(subject), "{} {:?}", &pattern, subject);
        }
    }

    #[test]
    fn what_is_compiled_never_panics(pattern in "\\PC{0,12}", subject: Vec<u8>, all: bool) {
        if let Ok(regex) = Regex::new(&pattern, Limits::default()) {
            let _ = regex.is_match(&subject);
            let _ = regex.replace(&subject, br"\0\1", all, &room());
        }
    }
}
