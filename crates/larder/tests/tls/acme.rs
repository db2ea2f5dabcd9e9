//! Certificates from a real ACME authority, Pebble.

use crate::support;

use std::fs;
use std::sync::Arc;
use std::time::Instant;

use support::pebble::{Place, TEXT, mode, said, site};
use support::tls::{Authority, Client, get};
use support::{PATIENCE, eventually, whole};
use testkit::client::{RawClient, WriteSplit};
use testkit::larder::Daemon;
use testkit::reply::Reply;

/// Waits until a handshake for each of `names` succeeds.
async fn served(place: &Place, daemon: &Daemon, names: &[&str]) {
    let client = place.client().await;
    for name in names {
        eventually(&format!("a certificate for {name}:\n{}", daemon.log()), || async {
            client.try_connect(place.tls, name).await.is_ok()
        })
        .await;
        assert_eq!(client.get(place.tls, name, "/page").await.text(), TEXT);
    }
}

/// The answer to a GET over plain HTTP.
async fn plain(place: &Place, host: &str, target: &str) -> Reply {
    let mut raw = RawClient::connect(place.plain).await.expect("a connection");
    raw.send(&get(host, target), WriteSplit::Whole).await.expect("sent");
    whole(raw.reply("GET").await, target)
}

async fn metric(daemon: &Daemon, name: &str) -> u64 {
    daemon.metric(name, "").await.expect("metrics") as u64
}

#[tokio::test]
async fn a_certificate_is_obtained_over_http_kept_and_used_again_without_the_authority() {
    let place = Place::new(&[("PEBBLE_WFE_NONCEREJECT", "20")]).await;
    let pebble = place.pebble().await;
    let http = r#"challenges = "http-01""#;
    let daemon = place.start(http, &["a.test"]);
    served(&place, &daemon, &["a.test"]).await;
    assert!(metric(&daemon, "larder_acme_challenges_total").await >= 1);
    assert_eq!(metric(&daemon, "larder_certificates_missing").await, 0);
    let label = "certificate=\"a.test\"";
    let left = daemon.metric("larder_certificate_expires_seconds", label).await.expect("metrics");
    assert!(left > 80.0 * 86_400.0 && left <= 90.0 * 86_400.0, "{left}");
    for (path, wanted) in [
        (place.kept(), 0o700),
        (place.kept().join("certificates"), 0o700),
        (place.kept().join("account.json"), 0o600),
        (place.certificate("a.test"), 0o600),
    ] {
        assert_eq!(mode(&path), wanted, "{}", path.display());
    }
    let client = place.client().await;
    drop((pebble, daemon));
    let daemon = place.start(http, &["a.test"]);
    assert_eq!(client.get(place.tls, "a.test", "/page").await.text(), TEXT);
    assert_eq!(metric(&daemon, "larder_acme_orders_total").await, 0);
    assert!(fs::exists(place.certificate("a.test")).expect("a folder"));
    assert_eq!(said(&daemon, "acme:"), 0, "{}", daemon.log());
}

#[tokio::test]
async fn several_sites_and_names_are_proved_in_the_handshake_each_with_its_own_certificate() {
    let place = Place::new(&[]).await;
    let _pebble = place.pebble().await;
    let sites = site(&["a.test", "b.test"]) + &site(&["c.test"]) + &site(&["d.test"]);
    let sites = sites + "tls = { acme = false }\n";
    let daemon = Daemon::start(&place.config("", &sites)).expect("larder starts");
    served(&place, &daemon, &["a.test", "b.test", "c.test"]).await;
    let client = place.client().await;
    let mut shown = Vec::new();
    for name in ["a.test", "b.test", "c.test"] {
        shown.push(client.connect(place.tls, name).await.shown());
        assert!(fs::exists(place.certificate(name)).expect("a folder"), "{name}");
    }
    assert!(shown[0] != shown[1] && shown[1] != shown[2]);
    assert!(client.try_connect(place.tls, "d.test").await.is_err());
    assert!(!fs::exists(place.certificate("d.test")).expect("a folder"));
    let log = fs::read_to_string(place.folder.join("pebble.log")).expect("a log");
    assert!(!log.contains("validate w/ HTTP"), "{log}");
    // Only an authority with a pending challenge may use that protocol.
    let mut asking = (*client.config).clone();
    asking.alpn_protocols = vec![b"acme-tls/1".to_vec()];
    let asking = Client { config: Arc::new(asking) };
    assert!(asking.try_connect(place.tls, "a.test").await.is_err());
}

#[tokio::test]
async fn where_one_challenge_fails_the_other_is_tried() {
    // The authority connects to a port on which no server listens.
    let place = Place::new(&[("TLS_PORT", "1")]).await;
    let _pebble = place.pebble().await;
    let daemon = place.start("", &["a.test"]);
    served(&place, &daemon, &["a.test"]).await;
    assert!(metric(&daemon, "larder_acme_failures_total").await >= 1);
    let refused = "acme: no certificate for a.test: the authority refuses (";
    assert_eq!(said(&daemon, refused), 1, "{}", daemon.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_is_renewed_in_time_and_no_request_fails() {
    let place = Place::new(&[("VALIDITY", "20")]).await;
    let _pebble = place.pebble().await;
    let daemon = place.start("", &["a.test"]);
    served(&place, &daemon, &["a.test"]).await;
    let client = place.client().await;
    // The first handshakes came before the first certificate.
    let failures = metric(&daemon, "larder_tls_handshake_failures_total").await;
    let mut seen = vec![client.connect(place.tls, "a.test").await.shown()];
    let mut kept = client.connect(place.tls, "a.test").await;
    let started = Instant::now();
    while seen.len() < 2 {
        assert!(started.elapsed() < PATIENCE, "{} certificates:\n{}", seen.len(), daemon.log());
        // A client without tickets is shown the certificate, and finds it good.
        let mut fresh = place.client().await.connect(place.tls, "a.test").await;
        assert_eq!(fresh.get("a.test", "/page").await.text(), TEXT);
        assert_eq!(kept.get("a.test", "/page").await.text(), TEXT);
        if !seen.contains(&fresh.shown()) {
            seen.push(fresh.shown());
        }
    }
    assert_eq!(metric(&daemon, "larder_tls_handshake_failures_total").await, failures);
    // The authority was asked when to renew, and knows what was replaced (RFC 9773).
    let log = fs::read_to_string(place.folder.join("pebble.log")).expect("a log");
    assert!(log.contains("GET /draft-ietf-acme-ari-03/renewalInfo/"), "{log}");
}

#[tokio::test]
async fn without_the_authority_plain_http_goes_on_and_later_all_is_well() {
    let place = Place::new(&[]).await;
    let sites = site(&["a.test"]) + "redirect_https = true\n";
    let daemon = Daemon::start(&place.config("", &sites)).expect("larder starts");
    eventually("a failure", || async { said(&daemon, "cannot be asked") > 0 }).await;
    let authority = Authority::new();
    let refused = authority.client().try_connect(place.tls, "a.test").await;
    let refused = refused.err().expect("there is no certificate").to_string();
    assert!(refused.to_lowercase().contains("unrecognisedname"), "{refused}");
    let failed = "larder_tls_handshake_failures_total";
    eventually("it is counted", || async { metric(&daemon, failed).await >= 1 }).await;
    assert_eq!(metric(&daemon, "larder_certificates_missing").await, 1);
    // A redirect would lead nowhere.
    assert_eq!(plain(&place, "a.test", "/page").await.text(), TEXT);
    let _pebble = place.pebble().await;
    served(&place, &daemon, &["a.test"]).await;
    assert_eq!(plain(&place, "a.test", "/page").await.status, 308);
    assert_eq!(metric(&daemon, "larder_certificates_missing").await, 0);
}

#[tokio::test]
async fn a_name_that_is_refused_does_not_keep_others_from_theirs() {
    let place = Place::new(&[("BLOCKED", "a.test")]).await;
    let _pebble = place.pebble().await;
    let daemon = place.start("", &["a.test", "b.test"]);
    served(&place, &daemon, &["b.test"]).await;
    let refused = "acme: no certificate for a.test: the authority refuses (rejectedIdentifier)";
    eventually("two refusals", || async { said(&daemon, refused) >= 2 }).await;
    assert!(place.client().await.try_connect(place.tls, "a.test").await.is_err());
    assert_eq!(metric(&daemon, "larder_certificates_missing").await, 1);
}

#[tokio::test]
async fn what_is_broken_in_the_storage_is_put_aside_and_the_account_used_again() {
    let place = Place::new(&[]).await;
    let _pebble = place.pebble().await;
    let daemon = place.start("", &["a.test"]);
    served(&place, &daemon, &["a.test"]).await;
    assert_eq!(said(&daemon, "acme: new account"), 1);
    drop(daemon);
    fs::write(place.certificate("a.test"), "no certificate").expect("written");
    let daemon = place.start("", &["a.test"]);
    served(&place, &daemon, &["a.test"]).await;
    assert_eq!(said(&daemon, "acme: new account"), 0, "{}", daemon.log());
    assert_eq!(said(&daemon, "a.test.pem: there is no certificate in it; it was put aside"), 1);
    let aside = place.certificate("a.test").with_extension("pem.bad-1");
    assert_eq!(fs::read_to_string(aside).expect("kept"), "no certificate");
    drop(daemon);
    fs::remove_file(place.certificate("a.test")).expect("removed");
    fs::write(place.kept().join("account.json"), "{").expect("written");
    let daemon = place.start("", &["a.test"]);
    served(&place, &daemon, &["a.test"]).await;
    assert_eq!(said(&daemon, "acme: the account cannot be read"), 1, "{}", daemon.log());
    assert_eq!(said(&daemon, "acme: new account"), 1);
}

#[tokio::test]
async fn an_authority_that_forgot_the_account_gets_a_new_one() {
    let place = Place::new(&[]).await;
    let pebble = place.pebble().await;
    let daemon = place.start("", &["a.test"]);
    served(&place, &daemon, &["a.test"]).await;
    drop((pebble, daemon));
    fs::remove_file(place.certificate("a.test")).expect("removed");
    let _pebble = place.pebble().await;
    let daemon = place.start("", &["a.test"]);
    served(&place, &daemon, &["a.test"]).await;
    assert_eq!(said(&daemon, "acme: new account"), 1, "{}", daemon.log());
}

#[tokio::test]
async fn a_storage_that_cannot_be_written_is_named_and_stops_nothing() {
    let place = Place::new(&[]).await;
    let _pebble = place.pebble().await;
    fs::write(place.storage(), "a file is in the way").expect("written");
    let daemon = place.start("", &["a.test"]);
    let failure = "acme: no certificate for a.test: storage: ";
    eventually("a failure", || async { said(&daemon, failure) > 0 }).await;
    assert_eq!(plain(&place, "a.test", "/page").await.text(), TEXT);
    fs::remove_file(place.storage()).expect("removed");
    served(&place, &daemon, &["a.test"]).await;
}

#[tokio::test]
async fn an_account_is_bound_to_one_elsewhere_where_the_authority_wants_that() {
    let hmac = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W";
    let place = Place::new(&[("EAB", &format!("kid-1:{hmac}"))]).await;
    let _pebble = place.pebble().await;
    let daemon = place.start("", &["a.test"]);
    let refused = "the authority refuses (externalAccountRequired)";
    eventually("a refusal", || async { said(&daemon, refused) > 0 }).await;
    drop(daemon);
    let eab = format!("eab = {{ kid = \"kid-1\", hmac = \"{hmac}\" }}");
    let daemon = place.start(&eab, &["a.test"]);
    served(&place, &daemon, &["a.test"]).await;
}

#[tokio::test]
async fn two_daemons_with_one_storage_order_once() {
    let place = Place::new(&[("PEBBLE_VA_ALWAYS_VALID", "1")]).await;
    let _pebble = place.pebble().await;
    let config = place.config("", &site(&["a.test"]));
    let other = config.replacen(&place.tls.to_string(), "127.0.0.1:0", 1);
    let other = other.replacen(&place.plain.to_string(), "127.0.0.1:0", 1);
    let daemons = [&config, &other].map(|file| Daemon::start(file).expect("larder starts"));
    let client = place.client().await;
    for daemon in &daemons {
        eventually("a certificate", || async {
            client.try_connect(daemon.addr(), "a.test").await.is_ok()
        })
        .await;
    }
    let obtained = daemons.iter().map(|daemon| said(daemon, "obtained")).sum::<usize>();
    assert_eq!(obtained, 1, "{}\n{}", daemons[0].log(), daemons[1].log());
}

#[tokio::test]
async fn a_reload_orders_for_new_names_and_keeps_what_is_there() {
    let place = Place::new(&[]).await;
    let _pebble = place.pebble().await;
    let daemon = place.start("", &["a.test"]);
    served(&place, &daemon, &["a.test"]).await;
    let client = place.client().await;
    let before = client.connect(place.tls, "a.test").await.shown();
    let reload = || async {
        let reply = daemon.ask_admin("POST", "/reload").await.expect("an answer");
        assert_eq!(reply.status, 200, "{}", reply.text());
    };
    let config = place.config("", &site(&["a.test", "b.test"]));
    fs::write(daemon.config_file(), config).expect("written");
    reload().await;
    served(&place, &daemon, &["a.test", "b.test"]).await;
    let client = place.client().await;
    assert_eq!(client.connect(place.tls, "a.test").await.shown(), before);
    // Who removes a file wants another certificate; until that is there the old one does.
    fs::remove_file(place.certificate("a.test")).expect("removed");
    reload().await;
    eventually("another certificate", || async {
        place.client().await.connect(place.tls, "a.test").await.shown() != before
    })
    .await;
}
