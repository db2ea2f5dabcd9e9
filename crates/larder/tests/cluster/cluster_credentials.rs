//! Credentials between nodes and NATS servers, in both directions.

use crate::support;

use data_encoding::BASE64URL_NOPAD;
use nkeys::KeyPair;
use serde_json::{Value, json};
use support::folder::Folder;
use support::nats::Nats;
use support::nodes::{Node, PLAIN, Wanted, all_joined, origin};
use support::tls::{Authority, Kind};
use support::{eventually, is_hit};

/// Two nodes with `right` in their configuration are a cluster; one with each of the `wrong` is
/// out of touch, says why, and serves.
async fn only_the_right(nats: &Nats, right: &str, wrong: &[(&str, &str)]) {
    let origin = origin().await;
    let start =
        |name: &str, cluster: &str| Node::start(name, nats, &origin, Wanted { cluster, ..PLAIN });
    let nodes = [start("n1", right), start("n2", right)];
    all_joined(&nodes).await;
    nodes[1].store("/page").await;
    for (cluster, why) in wrong {
        let stranger = start("n3", cluster);
        let told = async || {
            let status = stranger.status().await;
            status["problem"].as_str().is_some_and(|said| said.contains(why))
        };
        eventually(why, told).await;
        stranger.daemon().assert_logged(why).await;
        assert!(!stranger.is("connected").await && !stranger.is("trusted").await);
        for _ in 0..2 {
            let reply = stranger.ask("GET", "/page", "").await;
            assert!(reply.status == 200 && !is_hit(&reply), "it serves what it validates");
        }
        assert_eq!(stranger.purge("quorum").await.status, 503);
    }
    assert!(nodes[1].hits("/page").await, "nobody else's purge was heard");
    assert_eq!(nodes[0].purge("all").await.status, 200);
    assert!(!nodes[1].hits("/page").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_with_authorities_and_certificates_of_ones_own() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    ours.sign("server", &["127.0.0.1"], Kind::Elliptic);
    ours.sign("node", &["n1"], Kind::Elliptic);
    theirs.sign("node", &["n1"], Kind::Elliptic);
    let (ca, certificate, key) =
        (ours.path("ca.pem"), ours.path("server.crt"), ours.path("server.key"));
    let arguments =
        ["--tlsverify", "--tlscacert", &ca, "--tlscert", &certificate, "--tlskey", &key];
    let nats = Nats::start_tls(&arguments).await;
    let of = |roots: &Authority, own: Option<&Authority>| {
        let pair = own.map_or_else(String::new, |own| {
            let (certificate, key) = (own.path("node.crt"), own.path("node.key"));
            format!("certificate = \"{certificate}\"\nkey = \"{key}\"\n")
        });
        format!("ca = \"{}\"\n{pair}", roots.path("ca.pem"))
    };
    let right = of(&ours, Some(&ours));
    let (other_server, other_node, nobody) =
        (of(&theirs, Some(&ours)), of(&ours, Some(&theirs)), of(&ours, None));
    let wrong = [
        (other_server.as_str(), "invalid peer certificate: UnknownIssuer"),
        (other_node.as_str(), "received fatal alert"),
        (nobody.as_str(), "received fatal alert"),
    ];
    only_the_right(&nats, &right, &wrong).await;
}

/// A line that names a file with `text`.
fn named(folder: &Folder, key: &str, file: &str, text: &str) -> String {
    folder.file(file, text);
    format!("{key} = \"{}\"\n", folder.path().join(file).display())
}

fn seed(pair: &KeyPair) -> String {
    pair.seed().expect("a pair has a seed")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_nkey_is_known_by_its_public_part() {
    let folder = Folder::new();
    let (ours, other) = (KeyPair::new_user(), KeyPair::new_user());
    let config = format!("authorization {{ users = [ {{ nkey: {} }} ] }}\n", ours.public_key());
    let nats = Nats::configured(&config).await;
    // Files end with a line, mostly.
    let right = named(&folder, "nkey", "ours.nk", &format!("{}\n", seed(&ours)));
    let stranger = named(&folder, "nkey", "other.nk", &seed(&other));
    let no_seed = named(&folder, "nkey", "no.nk", "SUNOTASEED");
    let wrong =
        [(stranger.as_str(), "authorization violation"), (no_seed.as_str(), "nkey"), ("", "auth")];
    only_the_right(&nats, &right, &wrong).await;
}

/// A token of `issuer` about `subject`, as NATS' accounts use them.
fn signed(issuer: &KeyPair, subject: &str, about: &Value) -> String {
    let text = |value: &Value| BASE64URL_NOPAD.encode(value.to_string().as_bytes());
    let head = text(&json!({ "typ": "JWT", "alg": "ed25519-nkey" }));
    let says = json!({
        "jti": subject, "iat": 1_700_000_000, "iss": issuer.public_key(), "name": "of a test",
        "sub": subject, "nats": about,
    });
    let said = format!("{head}.{}", text(&says));
    let signature = issuer.sign(said.as_bytes()).expect("it has a seed");
    format!("{said}.{}", BASE64URL_NOPAD.encode(&signature))
}

/// A file as `nsc` writes it.
fn credentials(account: &KeyPair, user: &KeyPair) -> String {
    let about = json!({ "type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1 });
    let token = signed(account, &user.public_key(), &about);
    format!(
        "-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n\
         -----BEGIN USER NKEY SEED-----\n{}\n------END USER NKEY SEED------\n",
        seed(user)
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_credentials_is_believed_if_a_known_account_has_signed_it() {
    let folder = Folder::new();
    let (operator, system) = (KeyPair::new_operator(), KeyPair::new_account());
    let (account, stranger) = (KeyPair::new_account(), KeyPair::new_account());
    let limits = json!({
        "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true,
        "conn": -1, "leaf": -1, "mem_storage": -1, "disk_storage": -1, "streams": -1,
        "consumer": -1,
    });
    let none = json!({
        "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true,
        "conn": -1, "leaf": -1,
    });
    let about = |limits: &Value| {
        let any = json!({ "pub": {}, "sub": {} });
        json!({ "type": "account", "version": 2, "limits": limits, "default_permissions": any })
    };
    let of = |pair: &KeyPair, limits| signed(&operator, &pair.public_key(), &about(limits));
    let config = format!(
        "operator: {}\nsystem_account: {}\nresolver: MEMORY\n\
         resolver_preload: {{\n{}: {}\n{}: {}\n}}\n",
        signed(&operator, &operator.public_key(), &json!({ "type": "operator", "version": 2 })),
        system.public_key(),
        account.public_key(),
        of(&account, &limits),
        system.public_key(),
        of(&system, &none),
    );
    let nats = Nats::configured(&config).await;
    let user = KeyPair::new_user();
    let right = named(&folder, "credentials", "ours.creds", &credentials(&account, &user));
    let of_others = credentials(&stranger, &user);
    let of_others = named(&folder, "credentials", "others.creds", &of_others);
    let nothing = named(&folder, "credentials", "none.creds", "no credentials");
    let wrong =
        [(of_others.as_str(), "authorization violation"), (nothing.as_str(), "credentials")];
    only_the_right(&nats, &right, &wrong).await;
}
