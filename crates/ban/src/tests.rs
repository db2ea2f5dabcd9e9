//! Tests of reading, printing and evaluating ban expressions.

use proptest::prelude::*;

use super::*;

/// A stored page of a shop.
struct Page;

impl BanSubject for Page {
    fn url(&self) -> &[u8] {
        b"/shop/cart.png?a=b c"
    }

    fn host(&self) -> &[u8] {
        b"example.org"
    }

    fn status(&self) -> u16 {
        404
    }

    fn age_ms(&self) -> u64 {
        90_000
    }

    fn ttl_ms(&self) -> u64 {
        600_000
    }

    fn grace_ms(&self) -> u64 {
        0
    }

    fn keep_ms(&self) -> u64 {
        86_400_000
    }

    fn any_value(&self, name: &str, test: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        name.eq_ignore_ascii_case("x-kind") && (test(b"one") || test(b"two \"quoted\""))
    }
}

#[test]
fn conditions_hold_or_do_not() {
    for (text, holds) in [
        ("req.url ~ ^/shop/", true),
        ("req.url !~ ^/shop/", false),
        ("req.url == /shop/cart.png", false),
        ("req.url ~ \"a=b c\"", true),
        ("req.url ~ \\\\.png", true),
        ("req.url ~ (?i)SHOP", true),
        ("req.url ~ SHOP", false),
        ("req.http.Host == example.org", true),
        ("req.http.host != example.org", false),
        ("obj.status == 404", true),
        ("obj.status ~ ^5", false),
        ("obj.status != 404 && req.url ~ .", false),
        ("obj.http.X-Kind == one", true),
        ("obj.http.x-kind ~ ^two", true),
        ("obj.http.x-kind != one", false),
        ("obj.http.x-kind == \"two \\\"quoted\\\"\"", true),
        ("obj.http.x-none == one", false),
        ("obj.http.x-none ~ .", false),
        ("obj.http.x-none != one", true),
        ("obj.http.x-none !~ .", false),
        ("obj.http.x-kind !~ one", false),
        ("obj.http.x-kind !~ three", true),
        ("obj.age > 1m", true),
        ("obj.age > 1.5m", false),
        ("obj.age >= 1.5m && obj.age <= 90s && obj.age == 90000ms", true),
        ("obj.age < 2m && obj.age != 1m", true),
        ("obj.ttl == 10m && obj.grace < 1s && obj.keep >= 1d", true),
    ] {
        let expression = Expression::parse(text).expect(text);
        assert_eq!(expression.matches(&Page), holds, "{text}");
    }
}

#[test]
fn in_a_program_quotes_and_backslashes_are_bytes() {
    for (text, holds) in [
        (r"req.url ~ \.png\?", true),
        (r"req.url ~ cart\\.png", false),
        ("\treq.url  ~\n^/shop/\x0b", true),
        (r#"req.http.host == "example.org""#, false),
        (r#"obj.http.x-kind ~ "quoted""#, true),
    ] {
        let expression = Expression::of_program(text).expect(text);
        assert_eq!(expression.matches(&Page), holds, "{text}");
    }
    for (text, at, kind) in [
        ("", 0, ErrorKind::Empty),
        ("req.url == \"a b\"", 14, ErrorKind::And("b\"".into())),
        ("req.url ~ é && nothing", 16, ErrorKind::Field("nothing".into())),
        ("req.url ~ a && ", 15, ErrorKind::Field("".into())),
    ] {
        assert_eq!(Expression::of_program(text).err(), Some(Error { at, kind }), "{text}");
    }
}

#[test]
fn an_expression_is_listed_in_the_letters_it_was_written_in() {
    let text = r#"obj.http.X-Kind ~ "\.png$ && req.http.host == a\\b && obj.age > 1.5m"#;
    assert_eq!(Expression::of_program(text).expect("an expression").listed(), text);
}

#[test]
fn words_that_were_cut_elsewhere_are_as_they_are() {
    let words = ["req.url", "~", "a=b c\"?$", "&&", "req.url", "~", "\\.png"];
    let expression = Expression::of_words(words).expect("well-formed");
    assert!(expression.matches(&Page));
    assert_eq!(expression.to_string(), r#"req.url ~ "a=b c\"?$" && req.url ~ "\\.png""#);
    assert_eq!(Expression::of_words(["req.url", "~"]).err(), Some(ErrorKind::Argument));
}

#[test]
fn an_error_says_what_is_wrong_and_where() {
    for (text, at, kind) in [
        ("", 0, ErrorKind::Empty),
        ("  ", 2, ErrorKind::Empty),
        ("client.ip == 1", 0, ErrorKind::Field("client.ip".into())),
        (" req.http.cookie ~ a", 1, ErrorKind::RequestField("req.http.cookie".into())),
        ("req.url", 7, ErrorKind::Operator { found: "".into(), expected: EQUALITY }),
        ("req.url > 5", 8, ErrorKind::Operator { found: ">".into(), expected: EQUALITY }),
        ("obj.age ~ 1s", 8, ErrorKind::Operator { found: "~".into(), expected: ORDER }),
        ("req.url ==", 10, ErrorKind::Argument),
        ("req.url ~ \"\"", 10, ErrorKind::Argument),
        ("obj.age > 5", 10, ErrorKind::Duration("5".into())),
        ("req.url == a || req.url == b", 13, ErrorKind::And("||".into())),
        ("req.url == a &&", 15, ErrorKind::Field("".into())),
        ("req.url ~ (", 10, ErrorKind::Regex("unclosed group".into())),
        ("req.url == \"a", 11, ErrorKind::Quote),
        ("req.url == \"a\"b", 14, ErrorKind::Quote),
        ("req.url ~ a\\.b", 11, ErrorKind::Escape),
    ] {
        assert_eq!(Expression::parse(text).err(), Some(Error { at, kind }), "{text}");
    }
}

#[test]
fn expressions_that_would_need_backtracking_or_much_memory_are_refused() {
    for text in ["req.url ~ (?=a)b", "req.url ~ (a)\\\\1", "req.url ~ (((a{99}){99}){99}){99}"] {
        let refused = Expression::parse(text).expect_err(text);
        assert!(matches!(refused.kind, ErrorKind::Regex(_)), "{refused}");
    }
}

#[test]
fn a_built_expression_is_read_back() {
    let host = Term::equal(Field::Host, false, "example.org");
    let url = Term::matches(Field::Url, false, regex("^/a b\\.").expect("an expression"));
    let built = Expression::all(vec![host, url]);
    assert_eq!(built.to_string(), "req.http.host == example.org && req.url ~ \"^/a b\\\\.\"");
    let read = Expression::parse(&built.to_string()).expect("what it writes");
    assert_eq!(read.to_string(), built.to_string());
}

#[test]
fn whatever_was_built_is_read_back_from_its_text() {
    let strange = |name: &str| Field::Header(name.to_owned());
    for (built, text) in [
        (Expression::all(Vec::new()), ""),
        (Expression::all(vec![Term::equal(Field::Url, true, "")]), r#"req.url != """#),
        (Expression::all(vec![Term::equal(strange("a b"), false, "x")]), r#""obj.http.a b" == x"#),
        (Expression::all(vec![Term::equal(strange("a\\"), false, "x")]), r#""obj.http.a\\" == x"#),
    ] {
        assert_eq!(built.to_string(), text);
        let read = Expression::of_text(text).expect("what it writes");
        assert_eq!(read.listed(), built.listed());
    }
    assert!(Expression::of_text("req.url").is_err());
}

#[test]
fn conditions_on_chosen_fields_can_be_taken_out() {
    let text = "obj.http.xkey ~ a && req.url ~ b && obj.http.xkey != c && obj.http.x == d";
    let mut expression = Expression::parse(text).expect("an expression");
    let taken = expression.take_headers(|name| name == "xkey");
    let xkey = || "xkey".to_owned();
    assert_eq!(
        taken,
        [(xkey(), FieldRequirement::Match("a".into())), (xkey(), FieldRequirement::Not)]
    );
    assert_eq!(expression.to_string(), "req.url ~ b && obj.http.x == d");
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,60}") {
        crate::fuzz::expressions(text.as_bytes());
    }

    #[test]
    fn any_list_of_words_is_read_or_refused(words in prop::collection::vec(
        prop::sample::select(vec![
            "req.url", "req.http.host", "obj.status", "obj.http.x", "obj.age", "obj.ttl", "==",
            "!=", "~", "!~", ">", "<=", "&&", "1h", ".5s", "a b", "\"a b\"", "\\\\.", "\"\\x41\"",
        ]), 0..12,
    )) {
        crate::fuzz::expressions(words.join(" ").as_bytes());
        crate::fuzz::expressions(words.join("\u{1f}").as_bytes());
    }
}
