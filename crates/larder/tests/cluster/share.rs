//! Tests of nodes that share their stores: one fetch for all of them, and no purge that is lost
//! between two.

use crate::support;

use std::cell::Cell;
use std::process::Command;
use std::sync::atomic::{AtomicU8, Ordering};

use data_encoding::BASE64;
use rustix::process::Signal;
use support::console::run;
use support::folder::Folder;
use support::nats::Nats;
use support::nodes::{Node, PLAIN, Wanted, all_joined, origin};
use support::{eventually, pattern};
use testkit::origin::{Script, ScriptedOrigin};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Pages that are requested from all nodes.
const PAGES: usize = 60;

/// An address for a node that no other test uses.
fn address() -> String {
    static NEXT: AtomicU8 = AtomicU8::new(1);
    let [.., high, low] = std::process::id().to_be_bytes();
    format!("127.{}.{high}.{low}:7800", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A node without timeouts towards its peers, unless `wanted` sets some.
fn node(name: &str, nats: &Nats, origin: &ScriptedOrigin, wanted: Wanted<'_>) -> Node {
    node_that("share", name, nats, origin, wanted)
}

/// A node in this mode.
fn node_that(
    mode: &str,
    name: &str,
    nats: &Nats,
    origin: &ScriptedOrigin,
    wanted: Wanted<'_>,
) -> Node {
    let limits = if wanted.cluster.is_empty() { "[limits]\npeer_timeout = \"1m\"" } else { "" };
    let cluster =
        format!("mode = \"{mode}\"\npeer = \"{}\"\n{}{limits}\n", address(), wanted.cluster);
    Node::start(name, nats, origin, Wanted { cluster: &cluster, ..wanted })
}

async fn figure(nodes: &[Node], name: &str) -> u64 {
    let mut sum = 0;
    for node in nodes {
        let name = format!("larder_{name}");
        sum += node.daemon().metric(&name, "").await.expect("metrics") as u64;
    }
    sum
}

/// Waits until each node has fetched from another one.
async fn all_share(nodes: &[Node]) {
    all_joined(nodes).await;
    all_are_answered(nodes).await;
}

async fn all_are_answered(nodes: &[Node]) {
    for (at, node) in nodes.iter().enumerate() {
        let page = Cell::new(0);
        eventually("a node is answered by another", async || {
            page.set(page.get() + 1);
            node.ask("GET", &format!("/begin/{at}/{}", page.get()), "").await;
            figure(std::slice::from_ref(node), "peers_found_total").await > 0
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_node_has_fetched_the_others_need_not() {
    for vcl in [false, true] {
        let (nats, origin) = (Nats::start(&[]).await, origin().await);
        let wanted = Wanted { vcl, ..PLAIN };
        let nodes = ["n1", "n2", "n3"].map(|name| node(name, &nats, &origin, wanted));
        all_share(&nodes).await;
        for page in 0..PAGES {
            for node in &nodes {
                let reply = node.ask("GET", &format!("/page/{page}"), "").await;
                assert_eq!((reply.status, reply.text().as_str()), (200, "a page"), "vcl: {vcl}");
            }
        }
        for page in 0..PAGES {
            assert_eq!(origin.seen(&format!("/page/{page}")), 1, "vcl: {vcl}: {page}");
        }
        for node in &nodes {
            for page in 0..PAGES {
                assert!(node.hits(&format!("/page/{page}")).await, "it is kept by who serves it");
            }
        }
    }
}

/// The owner of a key does not run `vcl_recv` and `vcl_hash` on what these have made of a request.
#[tokio::test(flavor = "multi_thread")]
async fn subroutines_beside_settings_change_a_request_once_for_all_nodes() {
    let (nats, origin, folder) = (Nats::start(&[]).await, origin().await, Folder::new());
    folder.file(
        "extra.vcl",
        "vcl 4.1;\n\
         sub vcl_recv { set req.http.Kind = req.http.Kind + \"k\"; \
             set req.url = \"/in\" + req.url; }\n\
         sub vcl_hash { hash_data(req.http.Kind); }\n",
    );
    let site = format!("vcl = \"{}\"", folder.path().join("extra.vcl").display());
    let wanted = Wanted { site: &site, ..PLAIN };
    let nodes = ["n1", "n2", "n3"].map(|name| node(name, &nats, &origin, wanted));
    all_share(&nodes).await;
    for page in 0..PAGES {
        for node in &nodes {
            let reply = node.ask("GET", &format!("/page/{page}"), "").await;
            assert_eq!((reply.status, reply.text().as_str()), (200, "a page"));
        }
    }
    for page in 0..PAGES {
        assert_eq!(origin.seen(&format!("/in/page/{page}")), 1, "{page}");
        assert_eq!(origin.seen(&format!("/in/in/page/{page}")), 0, "{page}");
    }
}

/// A request to the owner right after a purge gets nothing that was stored before, even if the
/// stream does not have the purge yet.
#[tokio::test(flavor = "multi_thread")]
async fn no_purge_is_undone_by_another_nodes_store() {
    for vcl in [false, true] {
        let (nats, origin) = (Nats::start(&[]).await, origin().await);
        let nodes =
            ["n1", "n2", "n3"].map(|name| node(name, &nats, &origin, Wanted { vcl, ..PLAIN }));
        all_share(&nodes).await;
        for page in 0..PAGES {
            let (target, told) = (format!("/page/{page}"), &nodes[page % nodes.len()]);
            for node in &nodes {
                node.store(&target).await;
            }
            let version = format!("version {page}");
            origin.on(&target, Script::ok("Cache-Control: max-age=600\r\n", &version));
            let wait = if page % 2 == 0 { "local" } else { "all" };
            let reply = told.ask("PURGE", &target, &format!("Larder-Wait: {wait}\r\n")).await;
            assert_eq!(reply.status, 200, "{}", reply.text());
            let seen = told.ask("GET", &target, "").await.text();
            assert_eq!(seen, version, "{target}, vcl: {vcl}, {wait}");
            if wait == "all" {
                for node in &nodes {
                    assert_eq!(node.ask("GET", &target, "").await.text(), version, "{target}");
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_node_got_from_another_is_purged_by_its_keys() {
    let (nats, origin) = (Nats::start(&[]).await, origin().await);
    let nodes = ["n1", "n2", "n3"].map(|name| node(name, &nats, &origin, PLAIN));
    all_share(&nodes).await;
    for page in 0..10 {
        for node in &nodes {
            node.store(&format!("/page/{page}")).await;
        }
    }
    let purge = ["purge", "--tag", "post-1", "--wait", "all"];
    let (done, _, err) = run(nodes[0].daemon(), &purge).await;
    assert!(done, "{err}");
    for page in 0..10 {
        origin.on(&format!("/page/{page}"), Script::cacheable("another"));
    }
    for node in &nodes {
        for page in 0..10 {
            let reply = node.ask("GET", &format!("/page/{page}"), "").await;
            assert_eq!(reply.text(), "another");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_owns_a_page_and_is_gone_or_stands_still_is_not_waited_for() {
    let (nats, origin) = (Nats::start(&[]).await, origin().await);
    let soon = Wanted { cluster: "[limits]\npeer_timeout = \"50ms\"", ..PLAIN };
    let mut nodes = ["n1", "n2", "n3"].map(|name| node(name, &nats, &origin, soon));
    all_share(&nodes).await;
    let all_answer = async |nodes: &[Node], round: &str| {
        for page in 0..PAGES {
            for node in nodes {
                let reply = node.ask("GET", &format!("/{round}/{page}"), "").await;
                assert_eq!((reply.status, reply.text().as_str()), (200, "a page"), "{round}");
            }
        }
    };
    nodes[2].signal(Signal::STOP);
    all_answer(&nodes[..2], "still").await;
    let late = "larder_limit_hits_total";
    let late = nodes[0].daemon().metric(late, "limit=\"peer_timeout\"").await.expect("metrics");
    assert!(late > 0.0, "nobody has waited");
    nodes[2].signal(Signal::CONT);
    nodes[2].end(Signal::KILL).await;
    all_answer(&nodes[..2], "dead").await;
}

/// The line of a forecast that names the owner of a missing page, if there is one.
async fn owner_told(node: &Node, target: &str) -> String {
    let url = format!("http://{}{target}", node.daemon().addr());
    let (done, out, err) = run(node.daemon(), &["explain", &url]).await;
    assert!(done, "{err}");
    out.lines().find(|line| line.contains("owns it")).unwrap_or_default().to_owned()
}

/// A node that shields asks the origin for all others; without one they share among themselves.
#[tokio::test(flavor = "multi_thread")]
async fn where_a_node_shields_no_other_asks_the_origin() {
    for vcl in [false, true] {
        let (nats, origin) = (Nats::start(&[]).await, origin().await);
        let wanted = Wanted { vcl, ..PLAIN };
        let modes = [("shield", "s"), ("share", "n1"), ("share", "n2")];
        let mut nodes = modes.map(|(mode, name)| node_that(mode, name, &nats, &origin, wanted));
        all_joined(&nodes).await;
        for node in &nodes[1..] {
            eventually("the shield is known", async || {
                owner_told(node, "/nothing").await.contains("node `s` owns it")
            })
            .await;
        }
        all_are_answered(&nodes[1..]).await;
        let told = owner_told(&nodes[0], "/nothing").await;
        assert!(told.contains("this node owns it"), "{told}");
        let fetches = figure(&nodes[..1], "peers_fetches_total").await;
        for page in 0..PAGES {
            for node in &nodes[1..] {
                let reply = node.ask("GET", &format!("/page/{page}"), "").await;
                assert_eq!((reply.status, reply.text().as_str()), (200, "a page"), "vcl: {vcl}");
            }
            assert_eq!(origin.seen(&format!("/page/{page}")), 1, "vcl: {vcl}: {page}");
        }
        let later = figure(&nodes[..1], "peers_fetches_total").await;
        assert_eq!(later - fetches, PAGES as u64, "all are the shield's");
        assert_eq!(figure(&nodes[1..], "peers_fetches_total").await, 0);
        nodes[0].end(Signal::TERM).await;
        for node in &nodes[1..] {
            eventually("the others own again", async || {
                !owner_told(node, "/nothing").await.contains("node `s`")
            })
            .await;
            let reply = node.ask("GET", "/after", "").await;
            assert_eq!((reply.status, reply.text().as_str()), (200, "a page"), "vcl: {vcl}");
        }
    }
}

/// Nodes serve stored responses to each other; each client gets the form that it asks for.
#[tokio::test(flavor = "multi_thread")]
async fn clients_get_a_page_from_any_node() {
    const LONG: usize = 6 << 20;
    let (nats, origin) = (Nats::start(&[]).await, origin().await);
    let nodes = ["n1", "n2", "n3"].map(|name| node(name, &nats, &origin, PLAIN));
    all_share(&nodes).await;
    let long = pattern(LONG);
    let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nETag: \"1\"\r\n";
    let varied = "Cache-Control: max-age=600\r\nVary: X-Kind\r\n";
    for n in 0..6 {
        let head = format!("{head}Content-Length: {LONG}\r\n\r\n");
        origin.on(&format!("/long/{n}"), Script::respond([head.as_bytes(), &long].concat()));
        origin.on(&format!("/varied/{n}"), Script::mirror(varied));
        origin.on(&format!("/private/{n}"), Script::ok("Cache-Control: no-store\r\n", "mine"));
        origin.on(&format!("/gone/{n}"), Script::respond("HTTP/1.1 404 Not Found\r\nCache-Control: max-age=600\r\nContent-Length: 4\r\n\r\ngone"));
    }
    for n in 0..6 {
        for node in &nodes {
            let (target, varied) = (format!("/long/{n}"), format!("/varied/{n}"));
            assert!(node.ask("GET", &target, "").await.body == long, "{target}");
            let range = node.ask("GET", &target, "Range: bytes=5000000-5000099\r\n").await;
            assert!(range.status == 206 && range.body == long[5_000_000..5_000_100], "{target}");
            assert_eq!(node.ask("GET", &target, "If-None-Match: \"1\"\r\n").await.status, 304);
            assert_eq!(node.ask("HEAD", &target, "").await.status, 200);
            for kind in ["one", "two"] {
                let reply = node.ask("GET", &varied, &format!("X-Kind: {kind}\r\n")).await.text();
                assert!(reply.to_lowercase().contains(&format!("x-kind: {kind}")), "{reply}");
            }
            assert_eq!(node.ask("GET", &format!("/private/{n}"), "").await.text(), "mine");
            let gone = node.ask("GET", &format!("/gone/{n}"), "").await;
            assert_eq!((gone.status, gone.text().as_str()), (404, "gone"));
        }
        assert_eq!(origin.seen(&format!("/long/{n}")), 1);
        assert_eq!(origin.seen(&format!("/varied/{n}")), 2, "once for each variant");
        assert_eq!(origin.seen(&format!("/gone/{n}")), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_nodes_are_admitted_at_their_port() {
    let (nats, origin) = (Nats::start(&[]).await, origin().await);
    let nodes = ["n1", "n2"].map(|name| node(name, &nats, &origin, PLAIN));
    all_share(&nodes).await;
    let members = nodes[0].status().await["members"].clone();
    let address = members[0]["peer"].as_str().expect("an address").to_owned();
    let before = figure(&nodes[..1], "tls_handshake_failures_total").await;
    let connect = TcpStream::connect(&address).await.expect("it listens");
    let mut plain = connect;
    plain.write_all(b"GET /page HTTP/1.1\r\nHost: a\r\n\r\n").await.expect("sent");
    let mut told = Vec::new();
    _ = plain.read_to_end(&mut told).await;
    assert!(told.starts_with(b"HTTP/1.1 400 "), "{}", String::from_utf8_lossy(&told));
    let url = format!("https://{address}/page");
    let curl = ["-sk", "--max-time", "10", "-o", "/dev/null", "-w", "%{http_code}"];
    let output = tokio::task::block_in_place(|| Command::new("curl").args(curl).arg(url).output());
    let output = output.expect("curl");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "000", "no certificate");
    eventually("it is counted", async || {
        figure(&nodes[..1], "tls_handshake_failures_total").await >= before + 2
    })
    .await;
    // A peer's field at the port for clients is ignored.
    let asked = "Larder-Peer: 2 1 0 - 192.0.2.1 https\r\n";
    let reply = nodes[0].ask("GET", "/page", asked).await;
    assert_eq!((reply.status, reply.field("larder-record")), (200, None));
}

/// A user that is forwarded to the origin is part of the key, also where another node owns that.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_stored_for_a_user_is_shared_among_nodes() {
    let (nats, origin, folder) = (Nats::start(&[]).await, origin().await, Folder::new());
    folder.file(
        "users",
        "ann:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\nbob:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\n",
    );
    let site = format!(
        "[[site.route]]\npath = \"/own/*\"\ncache = {{ key_headers = [\"Remote-User\"] }}\n\
         basic_auth = {{ file = \"{}\", user_field = \"Remote-User\" }}\n",
        folder.path().join("users").display()
    );
    let wanted = Wanted { site: &site, ..PLAIN };
    let nodes = ["n1", "n2"].map(|name| node(name, &nats, &origin, wanted));
    all_share(&nodes).await;
    for page in 0..10 {
        let target = format!("/own/{page}");
        origin.on(&target, Script::mirror("Cache-Control: max-age=600\r\n"));
        for node in &nodes {
            for user in ["ann", "bob"] {
                let shown = BASE64.encode(format!("{user}:password").as_bytes());
                let fields = format!("Authorization: Basic {shown}\r\nRemote-User: root\r\n");
                let text = node.ask("GET", &target, &fields).await.text().to_lowercase();
                assert_eq!(text.matches("remote-user: ").count(), 1, "{text}");
                assert!(text.contains(&format!("remote-user: {user}\n")), "{text}");
            }
        }
        assert_eq!(origin.seen(&target), 2, "once for each user");
    }
}

/// A fetch for another node waits in no queue of its own: two nodes that ask each other would wait
/// for each other.
#[tokio::test(flavor = "multi_thread")]
async fn crawlers_of_two_nodes_do_not_wait_for_each_other() {
    let (nats, origin) = (Nats::start(&[]).await, origin().await);
    let wanted = Wanted {
        cluster: "[limits]\ncrawler_share = 100\ncrawler_fetches = 1\npeer_timeout = \"1m\"",
        site: "serve = \"stored\"",
        ..PLAIN
    };
    let nodes = ["n1", "n2"].map(|name| node(name, &nats, &origin, wanted));
    all_share(&nodes).await;
    origin.otherwise(Script::cacheable("a page").delay_ms(20));
    let asked = nodes.iter().enumerate().flat_map(|(at, node)| {
        (0..20).map(move |page| async move {
            node.ask("GET", &format!("/crawled/{at}/{page}"), "").await.status
        })
    });
    let statuses = futures_util::future::join_all(asked).await;
    assert_eq!(statuses, [200; 40]);
}

/// A signature is for the request that a client has sent: the node that gets it judges it, and
/// tells the owner of the page the class.
#[tokio::test(flavor = "multi_thread")]
async fn only_the_node_that_is_asked_judges_a_signature() {
    let (nats, origin, folder) = (Nats::start(&[]).await, origin().await, Folder::new());
    let x = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
    folder.file("keys.json", format!(r#"{{"keys":[{{"kty":"OKP","crv":"Ed25519","x":"{x}"}}]}}"#));
    let top = format!(
        "[crawlers.signatures]\n\
         ChatGPT-User = {{ agent = \"https://agent.test\", keys = \"{}/keys.json\" }}\n",
        folder.path().display()
    );
    // Pages for the class are stored apart from those for browsers.
    let site =
        "[[site.route]]\npath = \"/\"\nwhen = { class = \"unknown\" }\ncache = { ttl = \"1h\" }\n";
    let wanted = Wanted { top: &top, site, ..PLAIN };
    let nodes = ["n1", "n2"].map(|name| node(name, &nats, &origin, wanted));
    all_share(&nodes).await;
    // It has expired, so the client is no browser.
    let expired = format!(
        "User-Agent: Mozilla/5.0 (X11; Linux x86_64) Chrome/150.0 Safari/537.36\r\n\
         Signature-Agent: sig=\"https://agent.test\"\r\n\
         Signature-Input: sig=(\"@authority\" \"signature-agent\";key=\"sig\");created=1;expires=2;\
         keyid=\"kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k\";tag=\"web-bot-auth\"\r\n\
         Signature: sig=:{}:\r\n",
        BASE64.encode(&[7; 64])
    );
    let found = figure(&nodes, "peers_found_total").await;
    for page in 0..PAGES {
        for node in &nodes {
            assert_eq!(node.ask("GET", &format!("/page/{page}"), &expired).await.status, 200);
        }
        assert_eq!(origin.seen(&format!("/page/{page}")), 1, "the owner has stored it: {page}");
    }
    assert!(figure(&nodes, "peers_found_total").await > found);
    assert_eq!(figure(&nodes, "signatures_false_total").await, 2 * PAGES as u64);
}
