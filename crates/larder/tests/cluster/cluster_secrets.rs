//! Tests of shared secrets: nodes behind one name. One of them orders the certificate for all, any
//! answers the authority, and a session begun with one resumes with another.

use crate::support;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::version::{TLS12, TLS13};
use serde_json::{Value, json};
use support::balanced::{Balancer, Ground, Member, NAME};
use support::console::run;
use support::eventually;
use support::nats::Nats;
use support::pebble::{TEXT, said};
use support::tls::{Authority, Client, Kind};
use support::wire::Wire;

const STREAM: &str = "larder-secrets";

/// The certificate that all present, once they agree.
async fn served_alike<'a>(
    ground: &Ground,
    members: impl Iterator<Item = &'a Arc<Member>> + Clone,
) -> Vec<u8> {
    let client = ground.place.client().await;
    let mut shown: Option<Vec<u8>> = None;
    for member in members {
        let has_one = async || client.try_connect(member.tls(), NAME).await.is_ok();
        eventually(&format!("a certificate:\n{}", member.daemon.log()), has_one).await;
        // A client without tickets gets the certificate.
        let mut connection = ground.place.client().await.connect(member.tls(), NAME).await;
        assert_eq!(connection.get(NAME, "/page").await.text(), TEXT);
        let own = connection.shown();
        assert!(shown.as_ref().is_none_or(|shown| *shown == own), "{}", member.daemon.log());
        shown = Some(own);
    }
    shown.expect("at least one node")
}

/// The number of occurrences of `what` in all logs.
fn all_said(members: &[Arc<Member>], what: &str) -> usize {
    members.iter().map(|member| said(&member.daemon, what)).sum()
}

/// The file of a node's certificate.
fn kept(ground: &Ground, name: &str) -> PathBuf {
    let folder = ground.place.kept();
    let authority = folder.file_name().expect("a name");
    let file = format!("{NAME}.pem");
    ground.folder.path().join(name).join(authority).join("certificates").join(file)
}

async fn one_order_whichever_node_is_asked(challenge: &str) {
    let ground = Ground::new(&[]).await;
    let acme = format!("challenges = \"{challenge}\"");
    let members = ground.three(&acme, "", &ground.secret()).await;
    let balancer = Balancer::start(&ground.place, &members, false).await;
    let _pebble = ground.place.pebble().await;
    let shown = served_alike(&ground, members.iter()).await;
    // The line follows the event.
    let taken = "copied from the cluster";
    let told = async || all_said(&members, "obtained") + all_said(&members, taken) == 3;
    eventually("all tell of it", told).await;
    assert_eq!(all_said(&members, "obtained"), 1);
    assert_eq!(all_said(&members, "acme: new account"), 1);
    let asked = balancer.asked.lock().clone();
    assert!(!asked.is_empty() && asked.iter().all(|(orders, asked)| orders != asked), "{asked:?}");
    for member in &members {
        let is_told = async || {
            let (_, page, _) = run(&member.daemon, &["cluster", "status"]).await;
            let orders = format!("certificates: none to order; {} was the last", asked[0].0);
            [&orders, "certificate.", "account.", "tickets"].iter().all(|what| page.contains(*what))
        };
        eventually("who ordered, and what is shared", is_told).await;
    }
    // A node that joins later takes the stored certificate, and orders nothing.
    let config = ground.config("n4", &acme, "", &ground.secret());
    let fresh = Member::start("n4", &config);
    assert_eq!(served_alike(&ground, [&fresh].into_iter()).await, shown);
    assert_eq!(fresh.figure("acme_orders_total").await, 0);
    assert!(fresh.figure("cluster_secrets_taken_total").await >= 2);
    // The entries at the servers are sealed.
    let mut wire = Wire::open(&ground.nats).await;
    let certificate = fresh.shared("certificate.").await.expect("it is shared");
    let subject = format!("larder.secret.{}", certificate["name"].as_str().expect("a name"));
    let sealed = wire.last(STREAM, &subject).await;
    let pem = fs::read(kept(&ground, "n4")).expect("its own copy");
    assert!(sealed.len() > pem.len() && pem.starts_with(b"-----BEGIN PRIVATE KEY-----"));
    assert!(!sealed.windows(9).any(|bytes| bytes == b"-----BEGI"));
    // A node with its own copy serves without its peers.
    let (mut nats, place) = (ground.nats, ground.place);
    nats.kill();
    drop(fresh);
    let again = Member::start("n4", &config);
    let client = place.client().await;
    assert_eq!(client.connect(again.tls(), NAME).await.shown(), shown);
}

#[tokio::test(flavor = "multi_thread")]
async fn three_nodes_order_one_certificate_over_http_whichever_of_the_others_is_asked() {
    one_order_whichever_node_is_asked("http-01").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn three_nodes_order_one_certificate_in_handshakes_whichever_of_the_others_is_asked() {
    one_order_whichever_node_is_asked("tls-alpn-01").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_node_goes_on_where_the_one_that_orders_is_killed_meanwhile() {
    let ground = Ground::new(&[]).await;
    let cluster = ground.secret() + "max_isolation = \"1s\"\n";
    let limits = "cluster_lease = \"1s\"\n";
    let members = ground.three("challenges = \"http-01\"", limits, &cluster).await;
    let balancer = Balancer::start(&ground.place, &members, true).await;
    let _pebble = ground.place.pebble().await;
    let is_killed = async || members.iter().any(|member| member.is_killed());
    eventually("the one that orders is killed", is_killed).await;
    let alive = members.iter().filter(|member| !member.is_killed());
    let shown = served_alike(&ground, alive.clone()).await;
    let killed = members.iter().find(|member| member.is_killed()).expect("one is");
    assert!(said(&killed.daemon, "obtained") == 0 && !kept(&ground, &killed.name).exists());
    let alive: Vec<_> = alive.map(Arc::clone).collect();
    assert_eq!(all_said(&alive, "acme: new account"), 0, "the account is that of all");
    let asked = balancer.asked.lock().clone();
    assert!(asked.iter().any(|(orders, _)| *orders != killed.name), "{asked:?}");
    let name = format!("{} is silent: this node orders", killed.name);
    assert!(all_said(&alive, &name) >= 1);
    // After its restart, it presents the common certificate.
    let config = ground.config(&killed.name, "challenges = \"http-01\"", limits, &cluster);
    let back = Member::start(&killed.name, &config);
    assert_eq!(served_alike(&ground, [&back].into_iter()).await, shown);
    assert_eq!(back.figure("acme_orders_total").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_was_tampered_with_is_refused_and_none_that_works_is_lost() {
    let ground = Ground::new(&[("PEBBLE_VA_ALWAYS_VALID", "1")]).await;
    let members = ground.three("", "", &ground.secret()).await;
    let _pebble = ground.place.pebble().await;
    let shown = served_alike(&ground, members.iter()).await;
    let mut wire = Wire::open(&ground.nats).await;
    let is_shared = async || members[0].shared("certificate.").await.is_some();
    eventually("it is shared", is_shared).await;
    let name = members[0].shared("certificate.").await.expect("it is shared")["name"].clone();
    let subject = format!("larder.secret.{}", name.as_str().expect("a name"));
    let good = wire.last(STREAM, &subject).await;
    let mut changed = good.clone();
    *changed.last_mut().expect("bytes") ^= 1;
    let tickets = wire.last(STREAM, "larder.secret.tickets").await;
    for (bytes, why) in [
        (changed, "it was changed after sealing, or belongs to another entry"),
        (tickets, "it was changed after sealing, or belongs to another entry"),
        (b"nonsense".to_vec(), "it is not a sealed entry of this version"),
        (vec![1; 100], "it was sealed with a secret that this node does not have"),
    ] {
        let before: Vec<u64> = refusals(&members).await;
        wire.publish(&subject, &bytes).await.expect("it is taken");
        for (member, before) in members.iter().zip(before) {
            let is_refused = async || {
                let entry = member.shared("certificate.").await.expect("it is there");
                let counted = member.figure("cluster_secrets_refused_total").await;
                // The line follows the count.
                let is_said = said(&member.daemon, &format!("is refused: {why}")) >= 1;
                entry["refused"] == why && counted > before && is_said
            };
            eventually(why, is_refused).await;
        }
        assert_eq!(served_alike(&ground, members.iter()).await, shown);
    }
    // Publishing the right one again changes nothing.
    wire.publish(&subject, &good).await.expect("it is taken");
    for member in &members {
        let is_well = async || {
            member.shared("certificate.").await.is_some_and(|own| own["refused"] == Value::Null)
        };
        eventually("it is well", is_well).await;
    }
    assert_eq!(served_alike(&ground, members.iter()).await, shown);
    assert_eq!(all_said(&members, "obtained"), 1);
}

async fn refusals(members: &[Arc<Member>]) -> Vec<u64> {
    let mut all = Vec::new();
    for member in members {
        all.push(member.figure("cluster_secrets_refused_total").await);
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_certificate_is_replaced_for_all_after_a_reload() {
    let ground = Ground::new(&[("PEBBLE_VA_ALWAYS_VALID", "1")]).await;
    let members = ground.three("", "", &ground.secret()).await;
    let _pebble = ground.place.pebble().await;
    let before = served_alike(&ground, members.iter()).await;
    let has_it = async || members[1].shared("certificate.").await.is_some();
    eventually("it is shared", has_it).await;
    fs::remove_file(kept(&ground, "n2")).expect("removed");
    let reply = members[1].daemon.ask_admin("POST", "/reload").await.expect("an answer");
    assert_eq!(reply.status, 200, "{}", reply.text());
    for member in &members {
        let is_new = async || {
            ground.place.client().await.connect(member.tls(), NAME).await.shown() != before
        };
        eventually(&format!("another:\n{}", member.daemon.log()), is_new).await;
    }
    served_alike(&ground, members.iter()).await;
    assert_eq!(all_said(&members, "obtained"), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_secret_each_orders_its_own_and_says_so_once() {
    let ground = Ground::new(&[("PEBBLE_VA_ALWAYS_VALID", "1")]).await;
    let members = ground.three("", "", "").await;
    let _pebble = ground.place.pebble().await;
    for member in &members {
        served_alike(&ground, [member].into_iter()).await;
        assert_eq!(said(&member.daemon, "without `secret_file` each node orders"), 1);
        assert_eq!(member.status().await["shared"], Value::Null);
    }
    assert_eq!(all_said(&members, "obtained"), 3);
    let mut wire = Wire::open(&ground.nats).await;
    let info = wire.ask(&format!("$JS.API.STREAM.INFO.{STREAM}"), &json!({})).await;
    assert_eq!(info["error"]["code"], 404, "{info}");
}

/// Nodes with a certificate from files, in a folder with secrets.
struct Sessions {
    authority: Authority,
    nats: Nats,
}

impl Sessions {
    async fn new() -> Self {
        let authority = Authority::new();
        authority.sign("a", &[NAME], Kind::Elliptic);
        authority.put("one", "the first secret, which all nodes have at first\n");
        authority.put("two", "the second secret, which comes in the first's place\n");
        Self { authority, nats: Nats::start(&[]).await }
    }

    fn node(&self, name: &str, secrets: &[&str]) -> Arc<Member> {
        let files: Vec<_> = secrets.iter().map(|file| self.authority.path(file)).collect();
        let (url, pair) = (self.nats.url(), self.authority.pair("a"));
        let config = format!(
            "listen = [\"127.0.0.1:0 tls\", \"127.0.0.1:0\"]\nworkers = 1\n\
             [cluster]\nservers = \"{url}\"\nname = \"{name}\"\nsecret_file = {files:?}\n\
             [[site]]\nhost = \"{NAME}\"\norigin = \"http://127.0.0.1:1\"\ntls = {{ {pair} }}\n"
        );
        Member::start(name, &config)
    }

    fn clients(&self) -> [Client; 2] {
        [&TLS12, &TLS13].map(|version| self.authority.client_of(&[version], None))
    }

    /// Returns true if a session begun with one node resumes with the other, in both versions.
    async fn goes_on(&self, from: &Member, to: &Member) -> bool {
        for client in self.clients() {
            let mut first = client.connect(from.tls(), NAME).await;
            // Tickets follow the handshake, with the first response at the latest.
            first.get(NAME, "/").await;
            assert!(!first.is_resumed());
            let mut second = client.connect(to.tls(), NAME).await;
            second.get(NAME, "/").await;
            if !second.is_resumed() {
                return false;
            }
        }
        true
    }

    async fn go_on_everywhere(&self, members: &[Arc<Member>]) {
        for from in members {
            for to in members {
                let goes_on = async || self.goes_on(from, to).await;
                eventually(&format!("from {} to {}", from.name, to.name), goes_on).await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_goes_on_with_any_node_and_without_nats() {
    let mut sessions = Sessions::new().await;
    let members = ["n1", "n2", "n3"].map(|name| sessions.node(name, &["one"]));
    sessions.go_on_everywhere(&members).await;
    sessions.nats.kill();
    for member in &members {
        let is_out = async || member.status().await["connected"] == false;
        eventually("it is out of touch", is_out).await;
    }
    for (from, to) in [(0, 0), (1, 1), (0, 1), (2, 0)] {
        assert!(sessions.goes_on(&members[from], &members[to]).await, "{from} {to}");
    }
    // A node that joins now resumes sessions as well.
    let late = sessions.node("n4", &["one"]);
    assert!(sessions.goes_on(&late, &late).await);
    assert!(!sessions.goes_on(&members[0], &late).await);
    sessions.nats.begin().await;
    let all: Vec<_> = members.into_iter().chain([late]).collect();
    sessions.go_on_everywhere(&all).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_replaced_node_by_node_and_a_node_with_another_shares_nothing() {
    let sessions = Sessions::new().await;
    let first = sessions.node("n1", &["one"]);
    let is_shared = async || first.shared("tickets").await.is_some();
    eventually("keys are shared", is_shared).await;
    let stranger = sessions.node("n2", &["two"]);
    let refused = async || {
        let entry = stranger.shared("tickets").await;
        entry.is_some_and(|own| {
            own["refused"].as_str().is_some_and(|why| why.contains("does not have"))
        })
    };
    eventually("it cannot be read", refused).await;
    assert!(said(&stranger.daemon, "the shared `tickets` is refused") >= 1);
    assert!(sessions.goes_on(&stranger, &stranger).await);
    assert!(!sessions.goes_on(&first, &stranger).await);
    assert!(!sessions.goes_on(&stranger, &first).await);
    // The old secret still opens the entries.
    let both = sessions.node("n3", &["two", "one"]);
    sessions.go_on_everywhere(&[first, both]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_that_are_not_shared_stay_private() {
    let sessions = Sessions::new().await;
    let members = ["n1", "n2"].map(|name| sessions.node(name, &[]));
    for member in &members {
        let is_in = async || member.status().await["connected"] == true;
        eventually("it is in touch", is_in).await;
        assert!(sessions.goes_on(member, member).await);
        assert_eq!(said(&member.daemon, "secret_file"), 0);
    }
    assert!(!sessions.goes_on(&members[0], &members[1]).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_that_is_not_larders_is_refused_by_name_and_all_else_goes_on() {
    let sessions = Sessions::new().await;
    let mut wire = Wire::open(&sessions.nats).await;
    let config = json!({
        "name": STREAM, "subjects": ["larder.secret.>"], "description": "Larder 2: secrets",
        "retention": "limits", "storage": "file", "discard": "old", "num_replicas": 1,
        "max_msgs_per_subject": 1,
    });
    let made = wire.ask(&format!("$JS.API.STREAM.CREATE.{STREAM}"), &config).await;
    assert_eq!(made["error"], Value::Null, "{made}");
    let member = sessions.node("n1", &["one"]);
    let why = format!("the stream `{STREAM}`: it has version 2, and this program knows 1");
    let is_told = async || member.status().await["shared"]["problem"] == why.as_str();
    eventually("it says why", is_told).await;
    let line = format!("secrets are not shared: {why}");
    member.daemon.assert_logged(&line).await;
    assert_eq!(said(&member.daemon, &line), 1);
    let is_member = async || {
        let status = member.status().await;
        status["connected"] == true && status["trusted"] == true
    };
    eventually("it is a member all the same", is_member).await;
    assert!(sessions.goes_on(&member, &member).await);
    wire.ask(&format!("$JS.API.STREAM.DELETE.{STREAM}"), &json!({})).await;
    let is_shared = async || member.shared("tickets").await.is_some();
    eventually("once it is gone nothing is to be restarted", is_shared).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_bucket_is_refilled_by_the_nodes() {
    let ground = Ground::new(&[("PEBBLE_VA_ALWAYS_VALID", "1")]).await;
    let members = ground.three("", "", &ground.secret()).await;
    let _pebble = ground.place.pebble().await;
    let shown = served_alike(&ground, members.iter()).await;
    let revision = async |begin: &str| {
        let entry = members[0].shared(begin).await?;
        entry["revision"].as_u64()
    };
    eventually("it is shared", async || revision("certificate.").await.is_some()).await;
    // Before it came a lease, an account and a challenge; of these only the account comes back.
    let before = revision("certificate.").await.expect("it is");
    assert!(before > 3, "{before}");
    let mut wire = Wire::open(&ground.nats).await;
    wire.ask(&format!("$JS.API.STREAM.DELETE.{STREAM}"), &json!({})).await;
    let is_new = async || revision("certificate.").await.is_some_and(|own| own <= 3);
    eventually("it is there anew", is_new).await;
    for begin in ["account.", "tickets"] {
        eventually(begin, async || revision(begin).await.is_some()).await;
    }
    let fresh = Member::start("n4", &ground.config("n4", "", "", &ground.secret()));
    assert_eq!(served_alike(&ground, [&fresh].into_iter()).await, shown);
    assert_eq!(all_said(&members, "obtained") + said(&fresh.daemon, "obtained"), 1);
}
