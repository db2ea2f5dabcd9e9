//! The grammar: what is printed is read as the same, and no directive vanishes.

use proptest::prelude::*;

use super::translated;
use crate::{Directive, Place, fuzz, parse, print, say_same};

/// A word of any letters, with those more often that mean something.
fn word() -> impl Strategy<Value = String> {
    let special = prop_oneof![
        Just('\\'),
        Just('"'),
        Just('\''),
        Just('$'),
        Just('{'),
        Just('}'),
        Just(';'),
        Just('#'),
        Just(' '),
        Just('\n'),
        Just('('),
        any::<char>(),
        Just('a'),
        Just('/'),
    ];
    proptest::collection::vec(special, 0..8).prop_map(|letters| letters.into_iter().collect())
}

fn directive() -> impl Strategy<Value = Directive> {
    let leaf = (word(), proptest::collection::vec(word(), 0..4)).prop_map(|(name, args)| {
        Directive { id: 0, file: "x".into(), place: Place::default(), name, args, block: None }
    });
    leaf.prop_recursive(4, 24, 4, |inner| {
        (inner.clone(), proptest::collection::vec(inner, 0..4)).prop_map(|(mut own, block)| {
            own.block = Some(block);
            own
        })
    })
}

/// Lines that mean something, in any order and anywhere.
fn known() -> impl Strategy<Value = String> {
    let names = prop_oneof![
        Just("server"),
        Just("location"),
        Just("http"),
        Just("upstream"),
        Just("if"),
        Just("map"),
        Just("listen"),
        Just("server_name"),
        Just("proxy_pass"),
        Just("fastcgi_pass"),
        Just("return"),
        Just("rewrite"),
        Just("root"),
        Just("alias"),
        Just("try_files"),
        Just("add_header"),
        Just("expires"),
        Just("proxy_cache"),
        Just("proxy_cache_valid"),
        Just("proxy_cache_bypass"),
        Just("set"),
        Just("allow"),
        Just("deny"),
        Just("auth_basic"),
        Just("limit_req"),
        Just("limit_req_zone"),
        Just("error_page"),
        Just("gzip"),
        Just("proxy_set_header"),
        Just("client_max_body_size"),
        Just("auth_request"),
        Just("access_log"),
        Just("types"),
        Just("ssl_certificate"),
        Just("internal"),
        Just("limit_except"),
        Just("geo"),
        Just("default"),
        Just("valid_referers"),
        Just("strange"),
    ];
    let args = prop_oneof![
        Just(""),
        Just("/"),
        Just("~ \\.php$"),
        Just("= /x"),
        Just("^~ /a/"),
        Just("80"),
        Just("443 ssl"),
        Just("a.test"),
        Just("http://127.0.0.1:1"),
        Just("http://a/b/"),
        Just("301 https://$host$request_uri"),
        Just("all"),
        Just("127.0.0.1"),
        Just("$x"),
        Just("$skip 1"),
        Just("200 10m"),
        Just("zone=a"),
        Just("($host = a)"),
        Just("on"),
        Just("off"),
        Just("/srv/x"),
        Just("$uri $uri/ /index.php?$args"),
        Just("@n"),
        Just("\"\""),
        Just("\\ \\\\ \"a b\""),
        Just("X-Y z"),
        Just("$cookie_a"),
        Just("404 /404.html"),
        Just("($x)"),
        Just("($http_a ~ b)"),
        Just("($remote_addr = 127.0.0.1)"),
        Just("(!-f $request_filename)"),
        Just("$uri $x"),
        Just("^/a/(.*)$ /b/$1 last"),
        Just("^/a$ /b permanent"),
        Just("~*x 1"),
        Just("403"),
        Just("GET"),
    ];
    (names, args).prop_map(|(name, args)| format!("{name} {args}"))
}

fn configuration() -> impl Strategy<Value = String> {
    let leaf = known().prop_map(|line| format!("{line};\n"));
    let block = leaf.prop_recursive(4, 60, 8, |inner| {
        (known(), proptest::collection::vec(inner, 0..8))
            .prop_map(|(line, inner)| format!("{line} {{\n{}}}\n", inner.concat()))
    });
    proptest::collection::vec(block, 0..6).prop_map(|blocks| blocks.concat())
}

proptest! {
    #[test]
    fn what_is_printed_is_read_as_the_same(own in proptest::collection::vec(directive(), 0..4)) {
        // An include and a block of Lua are read otherwise.
        let text = print(&own);
        prop_assume!(!text.contains("include") && !text.contains("_by_lua_block"));
        let read = parse("x", &text).expect("well-formed");
        prop_assert!(say_same(&own, &read), "{text}");
    }

    #[test]
    fn every_directive_of_any_configuration_is_answered(text in configuration()) {
        let translated = translated(&text);
        let words = text.matches(';').count() + text.matches('{').count();
        prop_assert_eq!(translated.report.counts().total(), words, "{}", text);
        fuzz::nginx(text.as_bytes());
    }

    #[test]
    fn any_text_is_a_configuration_or_a_fault_with_a_place(text in ".{0,60}") {
        fuzz::nginx(text.as_bytes());
    }
}

#[test]
fn faults_name_file_line_column_and_what_was_expected() {
    for (text, fault) in [
        ("a b\n", "n:2:1: expected"),
        ("a {\n  b;\n", "n:1:3: expected a `}`"),
        ("}", "n:1:1: expected a directive, not `}`"),
        ("a b }", "n:1:5: expected `;` before `}`"),
        ("; a;", "n:1:1: expected the name"),
        ("a \"b", "n:1:3: expected the quote"),
    ] {
        let error = parse("n", text).expect_err(text).to_string();
        let start = fault.trim_start_matches("n:2:1: ");
        assert!(error.starts_with(fault) || error.contains(start), "{text}: {error}");
    }
    let deep = format!("{}{}", "a {".repeat(40), "}".repeat(40));
    let error = parse("n", &deep).expect_err("too deep").to_string();
    assert!(error.contains("more than 32 blocks within each other"), "{error}");
}
