//! Tests of operator's orders: a node drains, leaves its cluster and joins it again.

use crate::support;

use rustix::process::Signal;
use serde_json::json;
use support::console::{Ask, LISTENS, json, run};
use support::nats::Nats;
use support::nodes::{Node, PLAIN, Wanted, all_joined, origin};
use support::{PATIENCE, Setup, eventually, whole};
use testkit::client::{RawClient, WriteSplit};
use testkit::reply::Reply;

/// Readiness on an address, as a balancer asks for it.
const BALANCED: Wanted<'_> =
    Wanted { top: "health_check = \"/health\"\n", host: "larder.test", ..PLAIN };

/// The response to a balancer.
async fn health(node: &Node) -> Reply {
    let raw = RawClient::connect(node.daemon().addr()).await.expect("a connection");
    let mut raw = raw.patience(PATIENCE);
    let asked = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
    raw.send(asked, WriteSplit::Whole).await.expect("it is taken");
    whole(raw.reply("GET").await, "/health")
}

/// Sends an order, which must succeed.
async fn ordered(node: &Node, word: &str) -> String {
    let (done, said) = node.order(word).await;
    assert!(done, "{word}: {said}");
    said
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_drains_fails_health_checks_and_serves_and_is_waited_for() {
    let (nats, origin) = (Nats::start(&[]).await, origin().await);
    let nodes =
        [Node::start("n1", &nats, &origin, BALANCED), Node::start("n2", &nats, &origin, BALANCED)];
    all_joined(&nodes).await;
    nodes[0].store("/page").await;
    assert_eq!((health(&nodes[0]).await.status, nodes[0].readiness().await), (200, 200));
    let said = ordered(&nodes[0], "drain").await;
    assert!(said.starts_with("n1 drains: ") && !said.contains("do not know"), "{said}");
    assert_eq!(ordered(&nodes[0], "drain").await, said, "once more is as good");
    for reply in [health(&nodes[0]).await, nodes[0].ready().await] {
        assert_eq!((reply.status, reply.text().as_str()), (503, "draining\n"));
    }
    assert!(nodes[0].hits("/page").await, "what comes is served");
    eventually("the other knows", async || nodes[1].sees("n1").await == "draining").await;
    assert_eq!(health(&nodes[1]).await.status, 200);
    assert_eq!(nodes[1].purge("all").await.status, 200);
    assert!(!nodes[0].hits("/page").await, "it was waited for");
    assert_eq!(ordered(&nodes[0], "join").await, "n1 is a member\n");
    assert_eq!((health(&nodes[0]).await.status, nodes[0].readiness().await), (200, 200));
    eventually("the other knows", async || nodes[1].sees("n1").await == "ready").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_has_left_is_not_waited_for_and_asks_its_origin_until_it_is_back() {
    let (nats, origin) = (Nats::start(&[]).await, origin().await);
    let mut nodes =
        [Node::start("n1", &nats, &origin, BALANCED), Node::start("n2", &nats, &origin, BALANCED)];
    all_joined(&nodes).await;
    nodes[0].store("/page").await;
    nodes[0].store("/kept").await;
    let said = ordered(&nodes[0], "leave").await;
    assert!(said.starts_with("n1 has left: ") && !said.contains("do not know"), "{said}");
    for reply in [health(&nodes[0]).await, nodes[0].ready().await] {
        assert_eq!((reply.status, reply.text().as_str()), (503, "it has left the cluster\n"));
    }
    let before = origin.seen("/page");
    assert!(!nodes[0].hits("/page").await && !nodes[0].hits("/page").await, "it validates");
    assert_eq!(origin.seen("/page"), before + 2);
    eventually("the other knows", async || nodes[1].sees("n1").await == "left").await;
    // A purge that does not wait for this node ignores its silence.
    nodes[0].signal(Signal::STOP);
    assert_eq!(nodes[1].purge("all").await.status, 200);
    nodes[0].signal(Signal::CONT);
    // It is still on the stream: its purges reach the others.
    nodes[1].store("/page").await;
    assert_eq!(nodes[0].purge("all").await.status, 200);
    assert!(!nodes[1].hits("/page").await);
    assert_eq!(nodes[0].sees("n1").await, "left");
    ordered(&nodes[0], "join").await;
    nodes[0].joined().await;
    assert_eq!(nodes[0].readiness().await, 200);
    let before = origin.seen("/kept");
    assert!(nodes[0].hits("/kept").await, "it is trusted again");
    assert_eq!(origin.seen("/kept"), before);
    // A new process is a member, whatever the previous one was ordered.
    ordered(&nodes[0], "leave").await;
    nodes[0].end(Signal::TERM).await;
    nodes[0].begin();
    nodes[0].joined().await;
    assert_eq!(nodes[0].readiness().await, 200);
    eventually("the other knows", async || nodes[1].sees("n1").await == "ready").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_count_without_nats_and_the_others_are_shown_when_it_is_back() {
    let (mut nats, origin) = (Nats::start(&[]).await, origin().await);
    let patient = Wanted { cluster: "max_isolation = \"10m\"", ..PLAIN };
    let nodes =
        [Node::start("n1", &nats, &origin, patient), Node::start("n2", &nats, &origin, patient)];
    all_joined(&nodes).await;
    nats.kill();
    eventually("it is out of touch", async || !nodes[0].is("connected").await).await;
    nodes[0].store("/page").await;
    let said = ordered(&nodes[0], "leave").await;
    assert!(said.contains("the other nodes do not know this yet: "), "{said}");
    assert_eq!(nodes[0].readiness().await, 503);
    assert!(!nodes[0].hits("/page").await, "trust ends at once");
    nats.begin().await;
    eventually("the other is shown", async || nodes[1].sees("n1").await == "left").await;
    assert_eq!(nodes[1].purge("all").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_that_does_not_fit_says_why() {
    let (nats, origin) = (Nats::start(&[]).await, origin().await);
    let wanted = Wanted { top: LISTENS, ..PLAIN };
    let node = Node::start("n1", &nats, &origin, wanted);
    node.joined().await;
    ordered(&node, "leave").await;
    let (done, said) = node.order("drain").await;
    assert!(!done && said.contains("it has left the cluster") && said.contains("join"), "{said}");
    let order = |word: &str| Ask::post("/api/v1/cluster/order", &json!({ "order": word }));
    let unknown = order("stop").send_locally(node.daemon()).await;
    assert_eq!(unknown.status, 400);
    let why = json(&unknown)["error"].as_str().expect("a reason").to_owned();
    assert_eq!(why, "`order` is one of join, drain, leave");
    for (role, status) in [("read", 403), ("purge", 403), ("config", 200)] {
        let reply = order("join").with(node.daemon(), role).send(node.daemon()).await;
        assert_eq!(reply.status, status, "{role}: {}", reply.text());
    }
    let alone = Setup::default().start().await;
    for word in ["drain", "leave", "join"] {
        let (done, out, err) = run(&alone.daemon, &["cluster", word]).await;
        assert!(!done && out.is_empty(), "{out}");
        assert!(err.contains("the daemon is alone: its configuration has no `[cluster]`"), "{err}");
    }
}
