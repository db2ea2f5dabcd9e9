//! Tests of a cluster among strangers: clients without credentials, clients with some that send
//! anything, and streams that are not Larder's.

use crate::support;

use serde_json::{Value, json};
use support::eventually;
use support::nats::Nats;
use support::nodes::{Node, PLAIN, Wanted, all_joined, origin};
use support::wire::Wire;

const ENTRIES: (&str, &str) = ("larder-invalidations", "larder.invalidations");

async fn two(nats: &Nats, origin: &testkit::origin::ScriptedOrigin, cluster: &str) -> [Node; 2] {
    let wanted = Wanted { cluster, ..PLAIN };
    let nodes = ["n1", "n2"].map(|name| Node::start(name, nats, origin, wanted));
    all_joined(&nodes).await;
    nodes
}

/// A counter since the start.
async fn count(node: &Node, name: &str) -> u64 {
    node.status().await["counts"][name].as_u64().expect("a number")
}

/// Waits until a counter is at least `least`.
async fn counted(node: &Node, name: &str, least: u64) {
    eventually(name, async || count(node, name).await >= least).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_not_larders_is_refused_by_name_and_serving_goes_on() {
    let origin = origin().await;
    let (stream, subject) = ENTRIES;
    for (description, why) in [
        ("somebody's", "it is not Larder's: choose another `prefix`"),
        ("Larder 2: invalidations", "it has version 2, and this program knows 1"),
    ] {
        let nats = Nats::start(&[]).await;
        let mut wire = Wire::open(&nats).await;
        let config = json!({
            "name": stream, "subjects": [subject], "description": description,
            "retention": "limits", "storage": "file", "discard": "old", "num_replicas": 1,
        });
        let made = wire.ask(&format!("$JS.API.STREAM.CREATE.{stream}"), &config).await;
        assert_eq!(made["error"], Value::Null, "{made}");
        let node = Node::start("n1", &nats, &origin, PLAIN);
        let said = format!("the stream `{stream}`: {why}");
        let told = async || node.status().await["problem"] == said.as_str();
        eventually("it says why", told).await;
        assert!(!node.is("connected").await && !node.is("trusted").await);
        let before = origin.seen("/page");
        for _ in 0..2 {
            assert_eq!(node.ask("GET", "/page", "").await.status, 200);
        }
        assert_eq!(origin.seen("/page"), before + 2, "each use is validated");
        assert_eq!(node.purge("local").await.status, 200);
        let unheard = node.purge("quorum").await;
        assert!(unheard.status == 503 && unheard.text().contains(stream), "{}", unheard.text());
        // The obstacle stays untouched, and once it is removed no restart is needed.
        let info = wire.ask(&format!("$JS.API.STREAM.INFO.{stream}"), &json!({})).await;
        assert_eq!(info["config"]["description"], description);
        wire.ask(&format!("$JS.API.STREAM.DELETE.{stream}"), &json!({})).await;
        node.joined().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nats_rejects_clients_without_credentials() {
    let (nats, origin) = (Nats::start(&["--user", "us", "--pass", "right"]).await, origin().await);
    let nodes = two(&nats, &origin, "user = \"us\"\npassword = \"right\"").await;
    nodes[0].store("/page").await;
    let applied = count(&nodes[0], "applied").await;
    for fields in [json!({}), json!({ "user": "us", "pass": "wrong" })] {
        let refused = Wire::connect(&nats, fields).await.err().expect("it is refused");
        assert!(refused.contains("Authorization Violation"), "{refused}");
    }
    assert!(nodes[0].hits("/page").await);
    assert_eq!(count(&nodes[0], "applied").await, applied);
    let ours = Wire::connect(&nats, json!({ "user": "us", "pass": "right" })).await;
    assert!(ours.is_ok(), "the others are refused for what they say");
}

#[tokio::test(flavor = "multi_thread")]
async fn cards_and_words_that_say_nothing_are_counted_and_change_nothing() {
    let (nats, origin) = (Nats::start(&[]).await, origin().await);
    let nodes = two(&nats, &origin, "").await;
    for node in &nodes {
        node.store("/page").await;
    }
    let mut wire = Wire::open(&nats).await;
    let run = async |node: &Node| {
        let status = node.status().await;
        let own = |member: &&Value| member["name"] == status["name"];
        let members = status["members"].as_array().expect("a list");
        members.iter().find(own).expect("itself")["run"].as_u64().expect("a number")
    };
    let large = format!("{{\"name\":\"big\",\"run\":1{}}}", " ".repeat(5_000));
    let words = format!("larder.applied.{:016x}", run(&nodes[0]).await);
    let mut strange = 0;
    for (subject, bytes) in [
        ("larder.member.big", large.as_bytes()),
        ("larder.member.n9", b"\xff\0 no card"),
        ("larder.member.n9", br#"{"name":"n8","run":1}"#),
        ("larder.member.n9", b""),
        // Over the card of a present node, which publishes it again.
        ("larder.member.n2", b"[]"),
        (&words, b"no word"),
        (&words, br#"{"name":"a.b","run":1,"number":1}"#),
        (&words, b""),
    ] {
        wire.publish(subject, bytes).await.expect("it is taken");
        strange += 1;
        counted(&nodes[0], "strange", strange).await;
    }
    let figure = nodes[0].daemon().metric("larder_cluster_strange_total", "").await;
    assert_eq!(figure.expect("a figure") as u64, strange);
    // A forged card says that a live node has left, and confirmations name entries that were never
    // made.
    let left = json!({ "name": "n2", "run": 7, "left": true }).to_string();
    wire.publish("larder.member.n2", left.as_bytes()).await.expect("it is taken");
    let word = json!({ "name": "n2", "run": 7, "number": 9 }).to_string();
    wire.publish(&words, word.as_bytes()).await.expect("it is taken");
    all_joined(&nodes).await;
    for node in &nodes {
        assert!(node.hits("/page").await && count(node, "doubts").await == 1, "it has joined");
    }
    assert_eq!(nodes[0].purge("all").await.status, 200);
    assert!(!nodes[1].hits("/page").await, "all are known");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_that_comes_again_does_nothing_and_one_that_says_nothing_makes_doubt() {
    let (nats, origin) = (Nats::start(&[]).await, origin().await);
    let nodes = two(&nats, &origin, "").await;
    let (stream, subject) = ENTRIES;
    let mut wire = Wire::open(&nats).await;
    assert_eq!(nodes[0].purge("all").await.status, 200);
    let entry = wire.last(stream, subject).await;
    for node in &nodes {
        node.store("/page").await;
    }
    let applied = count(&nodes[0], "applied").await;
    for again in 1..=3 {
        wire.publish(subject, &entry).await.expect("it is taken");
        for node in &nodes {
            counted(node, "applied", applied + again).await;
        }
    }
    for node in &nodes {
        assert!(node.hits("/page").await, "it was done once");
    }
    // No more than a server accepts; no more than an entry has; of a later version; cut off;
    // garbage.
    let refused = wire.publish(subject, &vec![1; 2 << 20]).await.expect_err("too large");
    assert!(refused.contains("Maximum Payload Violation"), "{refused}");
    let mut wire = Wire::open(&nats).await;
    let (mut later, mut longer) = (entry.clone(), entry.clone());
    later[0] = 2;
    longer.push(0);
    let cut = &entry[..entry.len() - 1];
    let mut doubts = count(&nodes[0], "doubts").await;
    for bytes in [&vec![1; 600 << 10], &later, &longer, cut, b"\x01garbage", b""] {
        let before = origin.seen("/page");
        wire.publish(subject, bytes).await.expect("it is taken");
        doubts += 1;
        for node in &nodes {
            counted(node, "doubts", doubts).await;
            assert_eq!(node.ask("GET", "/page", "").await.status, 200);
        }
        assert_eq!(origin.seen("/page"), before + 2, "what may have been missed is asked for");
        for node in &nodes {
            node.store("/page").await;
            assert!(node.is("connected").await && node.is("trusted").await);
        }
    }
    assert_eq!(nodes[1].purge("all").await.status, 200);
    assert!(!nodes[0].hits("/page").await);
}
