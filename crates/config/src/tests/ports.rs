//! Tests of `[varnish_cli]` and `[htcp]`: values and messages.

use insta::assert_snapshot;

use super::{load, said};
use crate::{CliSecret, PlacedPath};

fn file(tables: &str) -> String {
    format!("{tables}\n[[site]]\nhost = \"*\"\norigin = \"http://127.0.0.1:8080\"\n")
}

#[test]
fn without_a_word_there_are_none() {
    let config = load(&file(""));
    assert!(config.varnish_cli.is_none() && config.htcp.is_none());
}

#[test]
fn a_port_with_a_secret_may_be_anywhere() {
    let text = file("[varnish_cli]\nlisten = \":6082\"\nsecret = \"/etc/varnish/secret\"");
    assert_eq!(said(&text), "");
    let cli = load(&text).varnish_cli.expect("a port");
    assert_eq!(cli.listen.addresses.len(), 2);
    let CliSecret::File(PlacedPath { path, .. }) = cli.secret else { panic!("{:?}", cli.secret) };
    assert_eq!(path.as_os_str(), "/etc/varnish/secret");
    let own = load(&file("[varnish_cli]\nlisten = \":6082\"")).varnish_cli.expect("a port");
    assert_eq!(own.secret, CliSecret::Own);
}

#[test]
fn htcp_is_for_this_machine_unless_something_else_is_said() {
    let contains = |htcp: &str, address: &str| {
        let htcp = load(&file(&format!("[htcp]\nlisten = \"127.0.0.1:4827\"\n{htcp}"))).htcp;
        htcp.expect("a port").allow.contains(address.parse().expect("an address"))
    };
    assert!(contains("", "127.0.0.9") && contains("", "::1") && !contains("", "192.0.2.1"));
    let allow = "allow = \"192.0.2.0/24\"";
    assert!(contains(allow, "192.0.2.1") && !contains(allow, "127.0.0.1"));
}

#[test]
fn what_would_open_the_port_to_strangers_is_refused() {
    assert_snapshot!(said(&file("[varnish_cli]\nlisten = \":6082\"\nsecret = \"none\"")), @r#"
    error: without a `secret` it listens on loopback addresses only
     --> larder.toml:1:1
      |
    1 | [varnish_cli]
      | ^^^^^^^^^^^^^
      |
      = help: secret = "/etc/varnish/secret", or listen = "127.0.0.1:6082"
    "#);
    assert_snapshot!(said(&file("[varnish_cli]\nlisten = \"127.0.0.1:6082\"\nsecret = \"none\"")), @r#"
    warning: everybody on this machine may ban and load programs: there is no `secret`
     --> larder.toml:1:1
      |
    1 | [varnish_cli]
      | ^^^^^^^^^^^^^
    "#);
}

#[test]
fn what_is_no_address_or_missing_is_reported() {
    assert_snapshot!(said(&file("[varnish_cli]\nsecret = \"/s\"")), @r#"
    error: [varnish_cli] needs `listen`
     --> larder.toml:1:1
      |
    1 | [varnish_cli]
      | ^^^^^^^^^^^^^
    "#);
    assert_snapshot!(said(&file("[varnish_cli]\nlisten = \":6082 tls\"\nsecret = \"s\"")), @r#"
    error: an address and nothing else belongs here
     --> larder.toml:2:10
      |
    2 | listen = ":6082 tls"
      |          ^^^^^^^^^^^
      |
      = help: such as "127.0.0.1:6082"

    error: `secret` takes an absolute path
     --> larder.toml:3:10
      |
    3 | secret = "s"
      |          ^^^
    "#);
    assert_snapshot!(said(&file("[htcp]\nlisten = \"unix:/run/htcp\"")), @r#"
    error: an address and nothing else belongs here
     --> larder.toml:2:10
      |
    2 | listen = "unix:/run/htcp"
      |          ^^^^^^^^^^^^^^^^
      |
      = help: such as "127.0.0.1:4827"
    "#);
}
