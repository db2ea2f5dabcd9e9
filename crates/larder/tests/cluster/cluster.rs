//! Tests of several daemons and a NATS server: an invalidation of one node reaches all, whatever
//! happens to a node, the server or its content.

use crate::support;

use std::cell::RefCell;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};
use support::console::run;
use support::htcp::mediawikis;
use support::nats::Nats;
use support::nodes::{Node, PLAIN, Wanted, all_joined, gone_on_all, origin, three};
use support::wire::Wire;
use support::{eventually, is_hit};
use testkit::origin::Script;
use tokio::net::UdpSocket;

const BY_HAND: [&[&str]; 4] = [
    &["purge", "--tag", "post-1", "--wait", "all"],
    &["purge", "--prefix", "/pa", "--wait", "all"],
    &["purge", "--ban", "req.url == /page", "--wait", "all"],
    &["purge", "--all", "--wait", "all"],
];

#[tokio::test(flavor = "multi_thread")]
async fn a_purge_on_one_node_is_one_on_all_by_whatever_way_it_comes() {
    let (nats, origin) = (Nats::start(&[]).await, origin().await);
    let nodes = three(&nats, &origin, PLAIN);
    all_joined(&nodes).await;
    let wait = "Larder-Wait: all\r\n";
    for (method, fields) in [
        ("PURGE", wait.to_owned()),
        ("PURGE", format!("{wait}X-Purge-Method: regex\r\n")),
        ("BAN", format!("{wait}X-Host: .*\r\nX-Url: ^/page\r\nX-Content-Type: .*\r\n")),
    ] {
        gone_on_all(&nodes, &fields, async || {
            let reply = nodes[0].ask(method, "/page", &fields).await;
            assert_eq!(reply.status, 200, "{method} {fields}: {}", reply.text());
        })
        .await;
    }
    for arguments in BY_HAND {
        gone_on_all(&nodes, arguments[1], async || {
            let (done, _, err) = run(nodes[1].daemon(), arguments).await;
            assert!(done, "{arguments:?}: {err}");
        })
        .await;
    }
    let refused = nodes[0].ask("PURGE", "/page", "Larder-Wait: some\r\n").await;
    assert_eq!(refused.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_programs_purge_is_one_on_all_before_it_is_answered() {
    let (nats, origin) = (Nats::start(&[]).await, origin().await);
    let wanted = Wanted { vcl: true, cluster: "acknowledge = \"all\"", ..PLAIN };
    let nodes = three(&nats, &origin, wanted);
    all_joined(&nodes).await;
    gone_on_all(&nodes, "a program's", async || {
        assert_eq!(nodes[2].ask("PURGE", "/page", "").await.status, 200);
    })
    .await;
    gone_on_all(&nodes, "a program's ban", async || {
        assert_eq!(nodes[2].ask("BAN", "/page", "").await.status, 200);
    })
    .await;
    for arguments in BY_HAND {
        gone_on_all(&nodes, arguments[1], async || {
            let (done, _, err) = run(nodes[1].daemon(), arguments).await;
            assert!(done, "{arguments:?}: {err}");
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_datagram_to_one_node_clears_on_all() {
    let (nats, origin) = (Nats::start(&[]).await, origin().await);
    let wanted = Wanted { top: "htcp = { listen = \"127.0.0.1:0\" }\n", ..PLAIN };
    let nodes = three(&nats, &origin, wanted);
    all_joined(&nodes).await;
    for node in &nodes {
        node.store("/page").await;
        node.store("/other").await;
    }
    let socket = UdpSocket::bind("127.0.0.1:0").await.expect("a port");
    let port = nodes[1].daemon().port("HTCP").expect("the port");
    let url = mediawikis("http://larder.test/page", 0);
    socket.send_to(&url, port).await.expect("sent");
    for node in &nodes {
        // A datagram has no reply to wait for.
        eventually("it is gone", async || !node.hits("/page").await).await;
        assert!(node.hits("/other").await);
    }
}

/// As an application's plugin does it, which knows one address to purge, and no cluster: each time
/// that of another node.
#[tokio::test(flavor = "multi_thread")]
async fn an_edit_is_purged_on_one_node_and_shows_on_all_at_the_next_request() {
    let (nats, origin) = (Nats::start(&[]).await, origin().await);
    let wanted = Wanted {
        cluster: "acknowledge = \"all\"",
        site: "preset = \"wordpress\"\npurge = { allow = [\"127.0.0.0/8\"] }",
        ..PLAIN
    };
    let nodes = three(&nats, &origin, wanted);
    all_joined(&nodes).await;
    let pages = ["/", "/2026/11/a-post/", "/feed/"];
    let page = |version: usize| {
        Script::ok("Cache-Control: max-age=600\r\n", &format!("version {version}"))
    };
    for version in 1..=12 {
        for target in pages {
            origin.on(target, page(version));
        }
        if version > 1 {
            let told = &nodes[version % nodes.len()];
            for target in pages {
                let reply = told.ask("PURGE", target, "").await;
                assert_eq!(reply.status, 200, "{}", reply.text());
            }
        }
        for (at, node) in nodes.iter().enumerate() {
            for target in pages {
                let reply = node.ask("GET", target, "").await;
                assert_eq!(reply.text(), format!("version {version}"), "node {at}: {target}");
            }
        }
        for node in &nodes {
            for target in pages {
                node.store(target).await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_not_applied_it_is_named_and_applies_it_later() {
    let (nats, origin) = (Nats::start(&[]).await, origin().await);
    let nodes =
        [Node::start("n1", &nats, &origin, PLAIN), Node::start("n2", &nats, &origin, PLAIN)];
    all_joined(&nodes).await;
    nodes[1].store("/page").await;
    nodes[1].signal(Signal::STOP);
    let reply = nodes[0].ask("PURGE", "/page", "Larder-Wait: all\r\n").await;
    assert_eq!(reply.status, 503, "{}", reply.text());
    assert!(reply.text().contains("not applied yet by: n2"), "{}", reply.text());
    assert_eq!(nodes[0].ask("PURGE", "/page", "Larder-Wait: quorum\r\n").await.status, 200);
    nodes[1].signal(Signal::CONT);
    eventually("it has applied it", async || !nodes[1].hits("/page").await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_was_killed_applies_what_it_missed_and_keeps_the_rest() {
    let (nats, origin) = (Nats::start(&[]).await, origin().await);
    let disked = Wanted { has_disk: true, ..PLAIN };
    let mut nodes =
        [Node::start("n1", &nats, &origin, PLAIN), Node::start("n2", &nats, &origin, disked)];
    all_joined(&nodes).await;
    nodes[1].store("/gone").await;
    nodes[1].store("/kept").await;
    let kept = async || {
        let daemon = nodes[1].daemon();
        daemon.metric("larder_disk_volume_records", "").await.expect("metrics") as u64 >= 2
            && daemon.metric("larder_disk_volume_queued_bytes", "").await.expect("metrics") as u64
                == 0
    };
    eventually("copies on disk", kept).await;
    // The position is saved within a second: later entries are replayed.
    let file = nodes[1].folder.path().join("disk/cluster-position");
    eventually("a position", async || file.exists()).await;
    nodes[1].end(Signal::KILL).await;
    assert_eq!(nodes[0].ask("PURGE", "/gone", "Larder-Wait: quorum\r\n").await.status, 200);
    nodes[1].begin();
    nodes[1].joined().await;
    let is_found = async || {
        nodes[1].daemon().metric("larder_disk_finding", "").await.expect("metrics") as u64 == 0
    };
    eventually("all on disk is found", is_found).await;
    assert!(!nodes[1].hits("/gone").await);
    assert!(nodes[1].hits("/kept").await, "what was not purged is there");
    assert_eq!(nodes[1].status().await["counts"]["doubts"], 0, "it missed nothing");
    assert_eq!(origin.seen("/kept"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_nats_it_serves_and_then_only_what_it_validates() {
    let (mut nats, origin) = (Nats::start(&[]).await, origin().await);
    let soon = Wanted { cluster: "max_isolation = \"1s\"\nisolation = \"not-ready\"", ..PLAIN };
    let nodes = [
        Node::start("n1", &nats, &origin, soon),
        Node::start("n2", &nats, &origin, Wanted { vcl: true, ..soon }),
    ];
    all_joined(&nodes).await;
    for node in &nodes {
        node.store("/page").await;
        assert_eq!(node.readiness().await, 200);
    }
    nats.kill();
    for node in &nodes {
        eventually("trust ends", async || !node.is("trusted").await).await;
        let before = origin.seen("/page");
        let reply = node.ask("GET", "/page", "").await;
        assert_eq!(reply.status, 200);
        assert!(!is_hit(&reply), "it was validated");
        assert_eq!(origin.seen("/page"), before + 1);
        assert_eq!(node.readiness().await, 503);
    }
    // It takes effect here, and its propagation is pending.
    let reply = nodes[0].ask("PURGE", "/page", "Larder-Wait: local\r\n").await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let reply = nodes[0].ask("PURGE", "/page", "Larder-Wait: quorum\r\n").await;
    assert_eq!(reply.status, 503, "{}", reply.text());
    assert!(reply.text().contains("It is invalidated here"), "{}", reply.text());
    let applied = nodes[1].status().await["counts"]["applied"].as_u64().expect("a number");
    nats.begin().await;
    all_joined(&nodes).await;
    let has = async || {
        let counts = nodes[1].status().await["counts"].clone();
        counts["applied"].as_u64().expect("a number") >= applied + 2
    };
    eventually("what waited was told", has).await;
    for node in &nodes {
        node.store("/page").await;
        assert_eq!(node.readiness().await, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_lost_all_has_everything_validated() {
    let (mut nats, origin) = (Nats::start(&[]).await, origin().await);
    let nodes =
        [Node::start("n1", &nats, &origin, PLAIN), Node::start("n2", &nats, &origin, PLAIN)];
    all_joined(&nodes).await;
    for node in &nodes {
        node.store("/page").await;
    }
    nats.kill();
    nats.forget();
    nats.begin().await;
    for node in &nodes {
        let doubts = async || node.status().await["counts"]["doubts"].as_u64() >= Some(2);
        eventually("the loss is noticed", doubts).await;
        let before = origin.seen("/page");
        assert_eq!(node.ask("GET", "/page", "").await.status, 200);
        assert_eq!(origin.seen("/page"), before + 1, "it asks its origin");
        node.store("/page").await;
    }
}

/// The stream loses its last two entries. Another entry takes the first one's position, and the
/// second is sent again to its old position. So the node's last applied entry follows one that it
/// never saw.
#[tokio::test(flavor = "multi_thread")]
async fn an_entry_that_is_stored_again_hides_no_loss_of_the_one_before() {
    let (stream, subject) = ("larder-invalidations", "larder.invalidations");
    let (mut nats, origin) = (Nats::start(&[]).await, origin().await);
    let node = Node::start("n1", &nats, &origin, PLAIN);
    node.joined().await;
    assert_eq!(node.purge("quorum").await.status, 200);
    nats.kill();
    nats.remember();
    nats.begin().await;
    for _ in 0..2 {
        let purged = async || node.purge("quorum").await.status == 200;
        eventually("it is in touch again", purged).await;
    }
    node.store("/page").await;
    eventually("it has all", async || {
        let status = node.status().await;
        status["sequence"].as_u64() >= Some(3) && status["queued"] == 0 && node.hits("/page").await
    })
    .await;
    let status = node.status().await;
    let (last, doubts) = (status["sequence"].as_u64(), status["counts"]["doubts"].as_u64());
    let last = last.expect("a number");
    node.signal(Signal::STOP);
    let [headers, body] = Wire::open(&nats).await.at(stream, last).await;
    nats.kill();
    nats.go_back();
    nats.begin().await;
    let mut wire = Wire::open(&nats).await;
    for sequence in 2..last {
        let other = format!("NATS/1.0\r\nNats-Msg-Id: {sequence:016x}-1\r\n\r\n");
        let stored = wire.store(subject, other.as_bytes(), &body).await;
        assert_eq!(stored["seq"], sequence, "{stored}");
    }
    let stored = wire.store(subject, &headers, &body).await;
    assert_eq!((&stored["seq"], &stored["duplicate"]), (&json!(last), &Value::Null), "{stored}");
    node.signal(Signal::CONT);
    let noticed = async || node.status().await["counts"]["doubts"].as_u64() > doubts;
    eventually("the loss is noticed", noticed).await;
    let before = origin.seen("/page");
    assert_eq!(node.ask("GET", "/page", "").await.status, 200);
    assert_eq!(origin.seen("/page"), before + 1, "it asks its origin");
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_are_no_members() {
    let (nats, origin) = (Nats::start(&["--user", "us", "--pass", "right"]).await, origin().await);
    let of = |password: &str| format!("user = \"us\"\npassword = \"{password}\"");
    let (right, wrong) = (of("right"), of("wrong"));
    let nodes = [
        Node::start("n1", &nats, &origin, Wanted { cluster: &right, ..PLAIN }),
        Node::start("n2", &nats, &origin, Wanted { cluster: &right, ..PLAIN }),
    ];
    let stranger = Node::start("n3", &nats, &origin, Wanted { cluster: &wrong, ..PLAIN });
    all_joined(&nodes).await;
    nodes[0].store("/page").await;
    let reply = stranger.ask("PURGE", "/page", "Larder-Wait: quorum\r\n").await;
    assert_eq!(reply.status, 503);
    assert!(nodes[0].hits("/page").await);
    let status = stranger.status().await;
    assert_eq!(status["connected"], false);
    assert_eq!(stranger.ask("GET", "/page", "").await.status, 200, "it serves all the same");
    assert!(!stranger.hits("/page").await, "and validates");
    assert_eq!(stranger.readiness().await, 200, "it validates, as it is to");
}

/// The response of the stream's leader, requested until there is one; `server` must be up.
async fn led(server: &Nats, subject: &str, body: &Value) -> Value {
    let answer = RefCell::new(Value::Null);
    eventually("the stream has a leader", async || {
        let asked = async { Wire::open(server).await.ask(subject, body).await };
        // Without a leader there is no response.
        let told = tokio::time::timeout(Duration::from_secs(2), asked).await.unwrap_or_default();
        let is_told = !told.is_null() && told["error"].is_null();
        answer.replace(told);
        is_told
    })
    .await;
    answer.into_inner()
}

/// The server that leads the stream; the others have replicated everything.
async fn leader(server: &Nats) -> usize {
    let led_by = RefCell::new(String::new());
    eventually("the others have all", async || {
        let info = led(server, "$JS.API.STREAM.INFO.larder-invalidations", &json!({})).await;
        let name = info["cluster"]["leader"].as_str().unwrap_or_default().to_owned();
        let others = info["cluster"]["replicas"].as_array().cloned().unwrap_or_default();
        let has_all = |other: &Value| {
            other["current"] == true && other["offline"] != true && other["lag"].is_null()
        };
        let is_whole = !name.is_empty() && others.len() == 2 && others.iter().all(has_all);
        led_by.replace(name);
        is_whole
    })
    .await;
    let name = led_by.into_inner();
    name.trim_start_matches('s').parse().expect("a number")
}

/// The times at which the stream stored its entries, as its leader says.
async fn times(server: &Nats, entries: u64) -> Vec<Value> {
    let mut times = Vec::new();
    for sequence in 1..=entries {
        let subject = "$JS.API.STREAM.MSG.GET.larder-invalidations";
        let message = led(server, subject, &json!({ "seq": sequence })).await;
        assert!(message["message"]["time"].is_string(), "{message}");
        times.push(message["message"]["time"].clone());
    }
    times
}

/// A position contains the time at which the stream stored its entry. If that differed between
/// leaders, nodes would believe that entries were lost.
#[tokio::test(flavor = "multi_thread")]
async fn no_change_of_the_stream_leader_makes_a_node_distrust_its_store() {
    let (mut servers, origin) = (Nats::three().await, origin().await);
    let wanted = Wanted { cluster: "replicas = 3", ..PLAIN };
    let mut nodes = Vec::new();
    for (at, server) in servers.iter().enumerate() {
        nodes.push(Node::start(&format!("n{at}"), server, &origin, wanted));
    }
    all_joined(&nodes).await;
    for node in &nodes {
        assert_eq!(node.purge("all").await.status, 200);
    }
    let mut doubts = Vec::new();
    for node in &nodes {
        node.store("/kept").await;
        doubts.push(node.status().await["counts"]["doubts"].clone());
    }
    let first = leader(&servers[0]).await;
    let stored = times(&servers[0], 3).await;
    servers[first].kill();
    let other = &servers[(first + 1) % 3];
    assert_eq!(times(other, 3).await, stored);
    let led_by = led(other, "$JS.API.STREAM.INFO.larder-invalidations", &json!({})).await;
    assert_ne!(led_by["cluster"]["leader"], format!("s{first}"));
    servers[first].begin().await;
    for _ in 0..2 {
        let before = leader(&servers[first]).await;
        let subject = "$JS.API.STREAM.LEADER.STEPDOWN.larder-invalidations";
        eventually("another one leads", async || {
            let told = led(&servers[first], subject, &json!({})).await;
            assert_eq!(told["success"], true, "{told}");
            leader(&servers[first]).await != before
        })
        .await;
        assert_eq!(times(&servers[first], 3).await, stored);
        // Each node asks the current leader about its position.
        for node in &nodes {
            let asked = node.status().await["trusted_ms"].as_u64();
            node.joined().await;
            let is_asked = async || node.status().await["trusted_ms"].as_u64() > asked;
            eventually("it is confirmed", is_asked).await;
        }
    }
    for (node, doubts) in nodes.iter().zip(&doubts) {
        assert_eq!(node.status().await["counts"]["doubts"], *doubts, "nothing was lost");
        assert!(node.hits("/kept").await);
    }
    gone_on_all(&nodes, "and purges go on", async || {
        assert_eq!(nodes[0].purge("all").await.status, 200);
    })
    .await;
}
