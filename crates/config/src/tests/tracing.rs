//! Tests of `[tracing]`: values and messages.

use insta::assert_snapshot;

use super::{load, said};
use crate::{FieldSource, PlacedPath, Tracing};

/// A file with the table.
fn file(table: &str) -> String {
    format!("[tracing]\n{table}\n[[site]]\nhost = \"*\"\norigin = \"http://127.0.0.1:8080\"\n")
}

fn tracing(table: &str) -> Tracing {
    load(&file(table)).tracing.expect("a collector")
}

#[test]
fn a_collector_has_a_plain_url() {
    for (endpoint, server, tls, path) in [
        ("http://127.0.0.1:4318", "127.0.0.1:4318", false, ""),
        ("http://collector", "collector:4318", false, ""),
        ("http://[::1]:99/otlp/", "[::1]:99", false, "/otlp"),
        ("http://[::1]", "[::1]:4318", false, ""),
        ("https://otlp.example.com", "otlp.example.com:443", true, ""),
        ("https://otlp.example.com:4318/a/b", "otlp.example.com:4318", true, "/a/b"),
        ("https://otlp.example.com/v1/traces", "otlp.example.com:443", true, ""),
        ("https://otlp.example.com/a/v1/traces/", "otlp.example.com:443", true, "/a"),
    ] {
        let tracing = tracing(&format!("endpoint = \"{endpoint}\""));
        assert_eq!(
            (&*tracing.server.address.to_string(), tracing.server.tls, &*tracing.path),
            (server, tls, path),
            "{endpoint}"
        );
        assert_eq!(tracing.tls.map(|tls| (tls.verify, tls.ca)), tls.then_some((true, None)));
        assert_eq!((tracing.sample, tracing.gzip), (0.01, true));
        assert!(tracing.headers.is_empty());
    }
    let whole =
        tracing("endpoint = \"https://a\"\nca = \"/c\"\nsample = 1\ncompression = \"none\"");
    assert_eq!((whole.sample, whole.gzip), (1.0, false));
    assert!(whole.tls.is_some_and(|tls| tls.ca.is_some_and(|file| file.path.as_os_str() == "/c")));
}

#[test]
fn what_is_no_collector_is_reported() {
    for (table, told) in [
        ("endpoint = \"a:4318\"", "`a:4318` is no collector's URL"),
        ("endpoint = \"grpc://a\"", "`grpc://a` is no collector's URL"),
        ("endpoint = \"http://\"", "is no collector's URL"),
        ("endpoint = \"http://u@a\"", "is no collector's URL"),
        ("endpoint = \"http://a:x\"", "is no collector's URL"),
        ("endpoint = \"https://a:0\"", "expected a port from 1 to 65535"),
        ("endpoint = \"http://a/?b\"", "is no collector's URL"),
        ("endpoint = \"http://a b\"", "is no collector's URL"),
        ("endpoint = \"http://::1\"", "is no collector's URL"),
        ("sample = 0.5", "[tracing] needs `endpoint`"),
        ("endpoint = \"http://a\"\nsample = 1.5", "`sample` is a share from 0 to 1"),
        ("endpoint = \"http://a\"\nsample = -1", "`sample` is a share from 0 to 1"),
        ("endpoint = \"http://a\"\nsample = nan", "`sample` is a share from 0 to 1"),
        ("endpoint = \"http://a\"\ncompression = \"br\"", "takes \"gzip\" or \"none\""),
        ("endpoint = \"http://a\"\nca = \"/c\"", "`endpoint` lacks `https://`"),
        ("endpoint = \"https://a\"\nca = \"c\"", "`ca` takes an absolute path"),
    ] {
        let said = said(&file(table));
        assert!(said.contains(told), "{table}: {said}");
    }
}

#[test]
fn fields_are_texts_or_in_files() {
    let table = "endpoint = \"https://a\"\n\
                 headers = { Api-Key = \"hush\", authorization = { file = \"/etc/key\" } }";
    assert_eq!(said(&file(table)), "");
    let tracing = tracing(table);
    let [(key, FieldSource::Text(value)), (second, FieldSource::File(PlacedPath { path, .. }))] =
        &*tracing.headers
    else {
        panic!("{:?}", tracing.headers)
    };
    assert_eq!((key.as_bytes(), value.as_bytes()), (&b"Api-Key"[..], &b"hush"[..]));
    assert_eq!((second.as_bytes(), path.to_str()), (&b"authorization"[..], Some("/etc/key")));
    assert!(!format!("{tracing:?}").contains("hush"));
}

#[test]
fn a_wrong_field_is_shown_where_it_is_and_its_value_never() {
    let of = |headers: &str| said(&file(&format!("endpoint = \"https://a\"\nheaders = {headers}")));
    for (headers, told) in [
        ("{ \"a b\" = \"hush\" }", "`a b`: a field name has only letters"),
        ("{ Host = \"hush\" }", "the field belongs to the connection or to the message's framing"),
        ("{ content-type = \"hush\" }", "`content-type` describes the body"),
        ("{ a = \"hush\", A = \"hush\" }", "`A` occurs twice"),
        ("{ a = \"hush\\n\" }", "`a`: a field value has no control characters"),
        ("{ a = \"\", b = \"hush\" }", "`a` is empty"),
        ("{ a = { }, b = \"hush\" }", "a value is a text, or in a file"),
        ("{ a = { file = \"key\" }, b = \"hush\" }", "`file` takes an absolute path"),
        ("{ a = { value = \"hush\" } }", "unknown key `value` in { file }"),
        ("{ a = [\"hush\"] }", "not a list"),
        ("\"a=hush\"", "`headers` takes a table"),
        ("{ a = \"hush\" } nonsense", "error"),
    ] {
        let said = of(headers);
        assert!(said.contains(told) && said.contains("larder.toml:3:"), "{headers}: {said}");
        assert!(!said.contains("hush"), "{said}");
    }
    assert!(!of("{ a = \"hush }").contains("hush"), "a quote that is missing");
    assert_snapshot!(of("{ a = \"hush ü\", b = \"hush\\u0007\" }"), @r#"
    error: `b`: a field value has no control characters (no line break) and no space around it
     --> larder.toml:3:28
      |
    3 | headers = { a = "*******", b = "**********" }
      |                            ^
    "#);
}

#[test]
fn a_secret_that_crosses_the_network_as_it_is_is_warned_of() {
    let of = |endpoint: &str| {
        said(&file(&format!("endpoint = \"{endpoint}\"\nheaders = {{ a = \"hush\" }}")))
    };
    assert_snapshot!(of("http://collector"), @r#"
    warning: `headers` cross the network as they are
     --> larder.toml:3:11
      |
    3 | headers = { a = "****" }
      |           ^^^^^^^^^^^^^^
      |
      = help: write `endpoint` with https://
    "#);
    for here in ["http://127.0.0.2", "http://localhost", "http://[::1]", "https://collector"] {
        assert_eq!(of(here), "", "{here}");
    }
}

#[test]
fn only_to_have_a_collector_at_all_takes_a_restart() {
    let first = load(&file("endpoint = \"https://a\""));
    for table in ["endpoint = \"http://b\"", "endpoint = \"https://a\"\nheaders = { a = \"b\" }"] {
        assert!(first.fixed_changes(&load(&file(table))).is_empty(), "{table}");
    }
    let none = load("[[site]]\nhost = \"*\"\norigin = \"http://127.0.0.1:8080\"\n");
    assert!(first.fixed_changes(&none).is_empty());
    assert_eq!(none.fixed_changes(&first), ["[tracing]"]);
}
