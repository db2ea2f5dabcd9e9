//! Tests of certificates that change under load.

use crate::support;

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use support::tls::{Authority, Kind, Served, certificate};
use support::{eventually, is_full_run};
use testkit::larder::binary;
use testkit::origin::Script;

const TEXT: &str = "0123456789abcdefghij";

async fn one_site(authority: &Authority) -> Served {
    authority.sign("site", &["larder.test"], Kind::Elliptic);
    let tls = authority.pair("site");
    let site = format!("[[site]]\nhost = \"larder.test\"\norigin = \"app\"\ntls = {{ {tls} }}\n");
    let served = Served::start(&site).await;
    served.origin.on("/page", Script::cacheable(TEXT));
    served
}

#[tokio::test]
async fn a_new_pair_is_shown_to_new_connections_and_the_old_ones_go_on() {
    let authority = Authority::new();
    let served = one_site(&authority).await;
    let client = authority.client();
    let mut open = client.connect(served.addr(), "larder.test").await;
    open.get("larder.test", "/page").await;
    authority.sign("site", &["larder.test"], Kind::Elliptic);
    let new = certificate(&authority.folder.join("site.crt"));
    eventually("the new certificate", || async {
        // A client without tickets, since a resumed session presents no certificate.
        authority.client().connect(served.addr(), "larder.test").await.shown() == new
    })
    .await;
    assert_eq!(open.get("larder.test", "/page").await.text(), TEXT);
    let expiry = "larder_certificate_expires_seconds";
    let label = format!("site=\"larder.test\",certificate=\"{}\"", authority.path("site.crt"));
    assert!(served.daemon.metric(expiry, &label).await.expect("metrics") > 0.0);
    // Tickets outlive the certificate.
    assert!(client.connect(served.addr(), "larder.test").await.is_resumed());
}

#[tokio::test]
async fn a_bad_pair_is_refused_as_a_whole_and_the_old_one_stays() {
    let authority = Authority::new();
    let served = one_site(&authority).await;
    let old = certificate(&authority.folder.join("site.crt"));
    let old_key = std::fs::read_to_string(authority.folder.join("site.key")).expect("a file");
    let (other_cert, _) = authority.make(&["larder.test"], Kind::Elliptic, false);
    let (late_cert, late_key) = authority.make(&["larder.test"], Kind::Elliptic, true);
    let half = &other_cert[..other_cert.len() / 2];
    for (cert, key, said) in [
        (other_cert.as_str(), old_key.as_str(), "the key does not belong to the certificate"),
        (half, &old_key, "it is not PEM"),
        ("", &old_key, "there is no certificate in it"),
        (&late_cert, &late_key, "the certificate has expired"),
    ] {
        authority.put("site.crt", cert);
        authority.put("site.key", key);
        eventually(said, || async { served.daemon.log().contains(said) }).await;
        let shown = authority.client().connect(served.addr(), "larder.test").await.shown();
        assert_eq!(shown, old, "{said}");
    }
    std::fs::remove_file(authority.folder.join("site.crt")).expect("removed");
    let said = "No such file";
    eventually(said, || async { served.daemon.log().contains(said) }).await;
    authority.client().get(served.addr(), "larder.test", "/page").await;
    // A reload rejects it too, and with it the whole configuration.
    let budget = served.daemon.metric("larder_memory_budget_bytes", "").await.expect("metrics");
    let file = std::fs::read_to_string(served.daemon.config_file()).expect("a file");
    let smaller = format!("{file}\n[memory]\nsize = \"64MiB\"\n");
    std::fs::write(served.daemon.config_file(), smaller).expect("written");
    let reply = served.daemon.ask_admin("POST", "/reload").await.expect("an answer");
    assert!(reply.status >= 400, "{}", reply.status);
    let now = served.daemon.metric("larder_memory_budget_bytes", "").await.expect("metrics");
    assert_eq!(now, budget);
    assert_eq!(authority.client().connect(served.addr(), "larder.test").await.shown(), old);
}

#[tokio::test]
async fn a_start_or_check_with_a_bad_pair_names_it_and_its_place() {
    let authority = Authority::new();
    authority.sign("site", &["other.test"], Kind::Elliptic);
    let file = authority.folder.join("larder.toml");
    let tls = authority.pair("site");
    let config = format!(
        "listen = \":443 tls\"\n[[site]]\nhost = \"larder.test\"\n\
         origin = \"http://127.0.0.1:8080\"\ntls = {{ {tls} }}\n"
    );
    std::fs::write(&file, config).expect("written");
    let check = || {
        let output = Command::new(binary().expect("a binary")).arg("check").arg(&file).output();
        let output = output.expect("it ran");
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (good, said) = check();
    assert!(good && said.contains("the certificate is not for `larder.test`"), "{said}");
    let (cert, _) = authority.make(&["larder.test"], Kind::Elliptic, false);
    authority.put("site.crt", &cert);
    let (good, said) = check();
    assert!(!good && said.contains("the key does not belong to the certificate"), "{said}");
    assert!(said.contains("larder.toml:5:"), "{said}");
    std::fs::remove_file(authority.folder.join("site.key")).expect("removed");
    let (good, said) = check();
    assert!(!good && said.contains("site.key: No such file"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_fails_while_certificates_and_configuration_are_renewed_again_and_again() {
    let authority = Authority::new();
    let served = one_site(&authority).await;
    let (done, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let mut clients = Vec::new();
    for kept in [true, true, false, false] {
        let (done, asked) = (Arc::clone(&done), Arc::clone(&asked));
        let (client, addr) = (authority.client(), served.addr());
        clients.push(tokio::spawn(async move {
            let mut connection = client.connect(addr, "larder.test").await;
            while !done.load(Ordering::Relaxed) {
                let reply = connection.get("larder.test", "/page").await;
                assert_eq!(reply.text(), TEXT);
                if !kept || reply.closes() {
                    connection = client.connect(addr, "larder.test").await;
                }
                asked.fetch_add(1, Ordering::Relaxed);
            }
        }));
    }
    // Every reload reads the files again, and takes whatever pair is there: 200 of them in a full
    // run.
    let rounds = if is_full_run() { 200 } else { 25 };
    for _ in 0..rounds {
        let (cert, key) = authority.make(&["larder.test"], Kind::Elliptic, false);
        authority.put("site.crt", &cert);
        authority.put("site.key", &key);
        let reply = served.daemon.ask_admin("POST", "/reload").await.expect("an answer");
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
    done.store(true, Ordering::Relaxed);
    for client in clients {
        client.await.expect("no request failed");
    }
    assert!(asked.load(Ordering::Relaxed) > rounds);
    assert_eq!(served.metric("larder_tls_handshake_failures_total").await, 0);
}
