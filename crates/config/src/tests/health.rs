//! Tests of `[health]` and `[metrics]`: values and messages.

use insta::assert_snapshot;

use super::{load, said};

fn file(tables: &str) -> String {
    format!("{tables}\n[[site]]\nhost = \"*\"\norigin = \"http://127.0.0.1:8080\"\n")
}

#[test]
fn without_a_word_there_are_none() {
    let config = load(&file(""));
    assert!(config.metrics.is_none() && config.health.listen.is_none());
    assert!(!config.health.tells_of_origins);
}

#[test]
fn health_is_told_on_any_interface() {
    let health = load(&file("[health]\nlisten = \":6090\"\norigins_down = \"not-ready\"")).health;
    assert_eq!(health.listen.expect("addresses").addresses.len(), 2);
    assert!(health.tells_of_origins);
    // The admin listener reports it as well.
    assert!(load(&file("[health]\norigins_down = \"not-ready\"")).health.tells_of_origins);
    for (table, told) in [
        ("listen = \":6090 tls\"", "an address and nothing else belongs here"),
        ("listen = \"unix:/run/health\"", "an address and nothing else belongs here"),
        ("origins_down = true", "`origins_down` takes \"ready\" or \"not-ready\", not a boolean"),
        ("token_file = \"/t\"", "unknown key `token_file` in [health]"),
    ] {
        let said = said(&file(&format!("[health]\n{table}")));
        assert!(said.contains(told), "{table}: {said}");
    }
}

#[test]
fn figures_are_for_those_with_a_token_a_certificate_or_both() {
    let metrics = |table: &str| load(&file(&format!("[metrics]\n{table}"))).metrics.expect("one");
    let plain = metrics("listen = \"127.0.0.1:9145\"\ntoken_file = \"/t\"");
    assert!(plain.token.is_some() && plain.client.is_none() && plain.pairs.is_empty());
    let pair = "cert = \"/c\"\nkey = \"/k\"";
    let both = format!("listen = \":9145 tls\"\ntoken_file = \"/t\"\nclient_ca = \"/ca\"\n{pair}");
    let both = metrics(&both);
    assert!(both.token.is_some() && both.client.is_some_and(|client| client.required));
    assert_eq!((both.pairs.len(), both.listen.tls), (1, true));
    // The certificate of every site also serves metrics.
    let shared = format!("[tls]\n{pair}\n[metrics]\nlisten = \":9145 tls\"\nclient_ca = \"/ca\"");
    let shared = load(&file(&format!("listen = \":443 tls\"\n{shared}"))).metrics.expect("one");
    assert!(shared.pairs.is_empty() && shared.token.is_none());
}

#[test]
fn figures_and_tokens_for_everybody_are_refused() {
    assert_snapshot!(said(&file("[metrics]\nlisten = \":9145\"\ntoken_file = \"/t\"")), @r#"
    error: `listen`: without TLS the token is readable on the network at 0.0.0.0:9145
     --> larder.toml:2:10
      |
    2 | listen = ":9145"
      |          ^^^^^^^
      |
      = help: write ":9145 tls" and name a certificate, or "127.0.0.1:9145"
    "#);
    assert_snapshot!(said(&file("[metrics]\nlisten = \"127.0.0.1:9145\"")), @r#"
    error: every client could read the metrics
     --> larder.toml:1:1
      |
    1 | [metrics]
      | ^^^^^^^^^
      |
      = help: name a `token_file`, a `client_ca`, or both
    "#);
    for (table, told) in [
        ("token_file = \"/t\"", "[metrics] needs `listen`"),
        ("listen = \"127.0.0.1:1 proxy\"\ntoken_file = \"/t\"", "an address belongs here"),
        ("listen = \"unix:/run/metrics\"\ntoken_file = \"/t\"", "an address belongs here"),
        ("listen = \":1 tls\"\ntoken_file = \"/t\"", "there is no certificate for it"),
        ("listen = \"127.0.0.1:1\"\nclient_ca = \"/a\"", "`listen` lacks `tls`"),
        (
            "listen = \"[::1]:1\"\ntoken_file = \"/t\"\ncert = \"/c\"\nkey = \"/k\"",
            "a certificate, and `listen` lacks `tls`",
        ),
        ("listen = \"127.0.0.1:1\"\ntoken_file = \"t\"", "`token_file` takes an absolute path"),
    ] {
        let said = said(&file(&format!("[metrics]\n{table}")));
        assert!(said.contains(told), "{table}: {said}");
    }
}

#[test]
fn where_they_listen_is_for_the_next_start() {
    let metrics = "[metrics]\nlisten = \"127.0.0.1:1\"\ntoken_file = \"/t\"\n";
    let health = "[health]\nlisten = \"127.0.0.1:2\"\n";
    let first = load(&file(&format!("{metrics}{health}")));
    let changes = |tables: &str| first.fixed_changes(&load(&file(tables)));
    let rest = "[health]\nlisten = \"127.0.0.1:2\"\norigins_down = \"not-ready\"";
    assert_eq!(changes(&format!("{}{rest}", metrics.replace("/t", "/u"))), [""; 0]);
    assert_eq!(changes(health), ["[metrics] listen"]);
    assert_eq!(changes(&metrics.replace(":1", ":3")), ["[health] listen", "[metrics] listen"]);
}
