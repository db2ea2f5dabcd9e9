//! Tests of `[tls.acme]`: values and messages.

use insta::assert_snapshot;

use super::said;
use crate::model::{AcmeChallenge, Config};
use crate::{CliOptions, from_cli, load_str};

/// A file with `acme` for `hosts`, listening to `listen`.
fn file(listen: &str, acme: &str, hosts: &str) -> String {
    format!(
        "{listen}\n[tls]\nacme = {{ {acme} }}\n[[site]]\nhost = {hosts}\n\
         origin = \"http://127.0.0.1:8080\"\n"
    )
}

fn config(text: &str) -> Config {
    load_str(text, "larder.toml").expect("a good file").0
}

#[test]
fn an_address_is_enough() {
    let config = config(&file("", r#"email = "ops@example.com""#, r#""example.com""#));
    let listen: Vec<_> = config.listen.iter().map(|spec| spec.text.as_str()).collect();
    assert_eq!(listen, [":80", ":443 tls"]);
    let acme = config.acme.expect("it is there");
    assert_eq!(acme.directory, "https://acme-v02.api.letsencrypt.org/directory");
    assert_eq!(acme.storage.to_str(), Some("/var/lib/larder/acme"));
    assert_eq!(acme.challenges, [AcmeChallenge::TlsAlpn01, AcmeChallenge::Http01]);
}

#[test]
fn challenges_follow_the_listeners() {
    let challenges = |listen: &str| {
        let text = file(listen, r#"directory = "staging""#, r#""example.com""#);
        config(&text).acme.expect("it is there").challenges
    };
    assert_eq!(challenges("listen = \":443 tls\""), [AcmeChallenge::TlsAlpn01]);
    assert_eq!(challenges("listen = \":80\""), [AcmeChallenge::Http01]);
}

#[test]
fn the_secret_of_an_account_elsewhere_is_decoded_and_never_shown() {
    let eab = r#"eab = { kid = "k", hmac = "-_8" }"#;
    let acme = config(&file("", eab, r#""example.com""#)).acme.expect("it is there");
    let binding = acme.binding.expect("it is there");
    assert_eq!((binding.key_id.as_str(), &binding.hmac[..]), ("k", &[0xfb, 0xff][..]));
    assert!(!format!("{binding:?}").contains("251"), "{binding:?}");
}

#[test]
fn hosts_that_cannot_be_proved_are_named() {
    let hosts = r#"["example.com", "*.example.com", "192.0.2.1", "intranet", "a.local"]"#;
    assert_snapshot!(said(&file("", "", hosts)), @r#"
    warning: no certificate is ordered for `*.example.com`: wildcards need dns-01
     --> larder.toml:5:24
      |
    5 | host = ["example.com", "*.example.com", "192.0.2.1", "intranet", "a.local"]
      |                        ^^^^^^^^^^^^^^^
      |
      = help: name its certificate in `tls`, or write `tls = { acme = false }` in the site

    warning: no certificate is ordered for `192.0.2.1`: it is an address, not a name
     --> larder.toml:5:41
      |
    5 | host = ["example.com", "*.example.com", "192.0.2.1", "intranet", "a.local"]
      |                                         ^^^^^^^^^^^
      |
      = help: name its certificate in `tls`, or write `tls = { acme = false }` in the site

    warning: no certificate is ordered for `intranet`: it is not a public name
     --> larder.toml:5:54
      |
    5 | host = ["example.com", "*.example.com", "192.0.2.1", "intranet", "a.local"]
      |                                                      ^^^^^^^^^^
      |
      = help: name its certificate in `tls`, or write `tls = { acme = false }` in the site

    warning: no certificate is ordered for `a.local`: it is not a public name
     --> larder.toml:5:66
      |
    5 | host = ["example.com", "*.example.com", "192.0.2.1", "intranet", "a.local"]
      |                                                                  ^^^^^^^^^
      |
      = help: name its certificate in `tls`, or write `tls = { acme = false }` in the site
    "#);
}

#[test]
fn without_any_host_there_is_nothing_to_order() {
    assert_snapshot!(said(&file("", "", r#""*""#)), @r#"
    error: `acme`, and no host to order a certificate for
     --> larder.toml:3:8
      |
    3 | acme = {  }
      |        ^^^^
      |
      = help: name the hosts in a site: `host = ["example.com"]`
    "#);
}

#[test]
fn what_cannot_be_read_is_named() {
    let text = r#"listen = ":80"
[tls.acme]
email = "a b"
directory = "http://ca.test"
challenges = "tls-alpn-01"
[tls.acme.eab]
kid = "k"
hmac = "?"
[[site]]
host = "example.com"
origin = "http://127.0.0.1:8080"
"#;
    assert_snapshot!(said(text), @r#"
    warning: `acme`, and no TLS listener
     --> larder.toml:2:1
      |
    2 | [tls.acme]
      | ^^^^^^^^^^
      |
      = help: add ":443 tls" to `listen`

    error: `email`: not an e-mail address
     --> larder.toml:3:9
      |
    3 | email = "a b"
      |         ^^^^^

    error: `directory` is a URL with https://, "letsencrypt" or "staging"
     --> larder.toml:4:13
      |
    4 | directory = "http://ca.test"
      |             ^^^^^^^^^^^^^^^^

    error: tls-alpn-01 needs a TLS listener
     --> larder.toml:5:14
      |
    5 | challenges = "tls-alpn-01"
      |              ^^^^^^^^^^^^^
      |
      = help: add ":443 tls" to `listen`

    error: `hmac` is not base64url
     --> larder.toml:8:8
      |
    8 | hmac = "*"
      |        ^^^
    "#);
}

#[test]
fn a_site_orders_its_certificate_or_names_it() {
    let site = |tls: &str| {
        format!(
            "[tls]\nacme = {{}}\n[[site]]\nhost = \"example.com\"\n\
             origin = \"http://127.0.0.1:8080\"\ntls = {{ {tls} }}\n"
        )
    };
    let both = site(r#"cert = "/a", key = "/b", acme = true"#);
    assert_snapshot!(said(&both), @r#"
    error: a site's certificates are ordered, or come from files
     --> larder.toml:6:41
      |
    6 | tls = { cert = "/a", key = "/b", acme = true }
      |                                         ^^^^
    "#);
    assert_snapshot!(said(&site("acme = false")), @r#"
    error: `acme`, and no host to order a certificate for
     --> larder.toml:2:8
      |
    2 | acme = {}
      |        ^^
      |
      = help: name the hosts in a site: `host = ["example.com"]`
    "#);
    assert_snapshot!(said(&site("acme = true").replace("acme = {}", "")), @r#"
    error: `acme` in a site, and no authority
     --> larder.toml:6:16
      |
    6 | tls = { acme = true }
      |                ^^^^
      |
      = help: add `[tls]` with `acme = { email = "ops@example.com" }`
    "#);
}

#[test]
fn flags_do_as_well() {
    let options = |acme: &str, hosts: &[&str]| CliOptions {
        origin: "http://127.0.0.1:8080".into(),
        acme: Some(acme.into()),
        hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
        ..CliOptions::default()
    };
    let config = from_cli(&options("ops@example.com", &["Example.com"])).expect("good flags");
    assert_eq!(config.sites[0].hosts, ["example.com"]);
    assert_eq!(config.listen.len(), 2);
    assert!(config.acme.is_some());
    for (acme, hosts, message) in [
        ("ops@example.com", &[][..], "--acme ops@example.com: *: --host must name the hosts"),
        ("ops", &["example.com"][..], "--acme ops: not an e-mail address"),
        ("a@b", &["exa mple"][..], "--host exa mple: not a host name"),
    ] {
        let errors = from_cli(&options(acme, hosts)).expect_err("a mistake");
        assert_eq!(errors[0].message, message);
    }
}
