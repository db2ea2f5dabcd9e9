//! Tests of `[site.purge]`: values and messages.

use insta::assert_snapshot;
use policy::{Asker, ConnectionPeer, Dialect, Dialects, Purge};

use super::{load, said};

fn purge(site: &str) -> Option<Purge> {
    let text = format!("[[site]]\nhost = \"*\"\norigin = \"http://127.0.0.1:8080\"\n{site}\n");
    load(&text).sites.remove(0).purge
}

fn admits(purge: &Purge, address: &str) -> bool {
    let peer = match address {
        "unix:" => ConnectionPeer::Local,
        address => ConnectionPeer::Host(address.parse().expect("an address")),
    };
    purge.admits(Asker { peer, near: false }, |_| true)
}

fn only(dialect: Dialect) -> Dialects {
    Dialects::default().with(dialect)
}

#[test]
fn without_a_word_nobody_purges() {
    assert_eq!(purge(""), None);
    assert_eq!(purge("preset = \"static\""), None);
    assert_eq!(purge("preset = \"wordpress\"\npurge = false"), None);
}

#[test]
fn presets_let_their_application_purge_from_this_machine() {
    for (preset, dialects) in [
        ("wordpress", only(Dialect::Purge).with(Dialect::NginxHelper).with(Dialect::Fastly)),
        ("drupal", only(Dialect::Drupal)),
        ("magento", only(Dialect::Magento)),
        ("mediawiki", only(Dialect::Purge)),
    ] {
        let purge = purge(&format!("preset = \"{preset}\"")).expect(preset);
        assert_eq!((purge.dialects, purge.token.as_deref()), (dialects, None), "{preset}");
        for (address, may) in
            [("127.0.0.1", true), ("::1", true), ("unix:", true), ("192.0.2.1", false)]
        {
            assert_eq!(admits(&purge, address), may, "{preset} {address}");
        }
    }
}

#[test]
fn a_table_says_who_may_and_how() {
    let addresses = purge("purge = { allow = [\"10.0.0.0/8\"], dialects = \"squid\" }");
    let addresses = addresses.expect("a table");
    assert_eq!(addresses.dialects, only(Dialect::Squid));
    assert!(admits(&addresses, "10.1.2.3") && !admits(&addresses, "127.0.0.1"));
    let token = purge("purge = { token = \"0123456789abcdef\" }").expect("a table");
    assert_eq!(token.dialects, only(Dialect::Purge));
    assert!(admits(&token, "192.0.2.1"));
    let preset = purge("preset = \"drupal\"\npurge = { allow = \"192.0.2.1\" }").expect("a table");
    assert_eq!(preset.dialects, only(Dialect::Drupal));
    assert!(admits(&preset, "192.0.2.1") && !admits(&preset, "127.0.0.1"));
}

#[test]
fn what_cannot_be_is_shown() {
    let text = "[[site]]\nhost = \"*\"\norigin = \"http://127.0.0.1:8080\"\n\
                purge = { allow = [], token = \"short\", dialects = [\"purge\", \"drupl\"] }\n";
    assert_snapshot!(said(text), @r#"
    error: `allow` names no one
     --> larder.toml:4:19
      |
    4 | purge = { allow = [], token = "*****", dialects = ["purge", "drupl"] }
      |                   ^^
      |
      = help: `purge = false` lets no one purge

    error: not a token that is safe and can be sent
     --> larder.toml:4:31
      |
    4 | purge = { allow = [], token = "*****", dialects = ["purge", "drupl"] }
      |                               ^^^^^^^
      |
      = help: write 16 or more visible ASCII characters, such as a random number

    error: no dialect is called `drupl`
     --> larder.toml:4:61
      |
    4 | purge = { allow = [], token = "*****", dialects = ["purge", "drupl"] }
      |                                                             ^^^^^^^
      |
      = help: did you mean "drupal"?
    "#);
}

#[test]
fn what_may_be_a_secret_is_not_told_to_everybody() {
    let config = load(
        "[[site]]\nhost = \"*\"\norigin = \"http://127.0.0.1:8080\"\n\
         bypass = { header = { X-Preview = \"hush-1\" }, query = { preview = \"hush-2\" } }\n\
         response_headers.set = { X-Pass = \"hush-3\" }\n\
         request_headers.set = { X-Key = \"hush-4\" }\n\
         [[site.route]]\npath = \"/old\"\n\
         redirect = \"https://user:hush-5@example.org/new\"\n",
    );
    let told = crate::show_site(&config, &config.sites[0]);
    assert!(!told.contains("hush"), "{told}");
    for name in ["X-Preview", "preview", "X-Pass", "X-Key", "@example.org/new"] {
        assert!(told.contains(name), "{name}: {told}");
    }
    let own = crate::show(&config);
    for secret in 1..=5 {
        assert!(own.contains(&format!("hush-{secret}")), "{own}");
    }
}
