//! Several daemons and a NATS server: what is invalidated on one is so on all, whatever happens to
//! a node, the server or what it stored.

mod support;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use support::console::{Ask, run};
use support::folder::Folder;
use support::nats::Nats;
use support::{PATIENCE, eventually, is_hit, whole};
use testkit::client::{Pieces, Raw, request};
use testkit::larder::Daemon;
use testkit::origin::{Script, Scripted};
use testkit::reply::Reply;

const PAGE: &str = "Cache-Control: max-age=600, stale-while-revalidate=600, stale-if-error=600\r\n\
                    ETag: \"1\"\r\nSurrogate-Key: post-1\r\n";

/// A node.
struct Node {
    daemon: Option<Daemon>,
    file: String,
    _folder: Folder,
}

/// Settings of a node.
#[derive(Clone, Copy)]
struct Wanted<'a> {
    /// Further lines of `[cluster]`.
    cluster: &'a str,
    has_disk: bool,
    vcl: bool,
}

const PLAIN: Wanted<'_> = Wanted { cluster: "", has_disk: false, vcl: false };

impl Node {
    fn start(name: &str, nats: &Nats, origin: &Scripted, wanted: Wanted<'_>) -> Self {
        let folder = Folder::new();
        let disk = match wanted.has_disk {
            true => {
                let path = folder.path().join("disk");
                format!("[disk]\npath = \"{}\"\nsize = \"256MiB\"\n", path.display())
            }
            false => String::new(),
        };
        let (addr, url) = (origin.addr(), nats.url());
        let site = if wanted.vcl {
            let (host, port) = (addr.ip(), addr.port());
            folder.file(
                "site.vcl",
                format!(
                    "vcl 4.1;\nbackend app {{ .host = \"{host}\"; .port = \"{port}\"; }}\n\
                     sub vcl_recv {{ if (req.method == \"PURGE\") {{ return (purge); }} }}\n\
                     sub vcl_backend_response {{ set beresp.grace = 1h; }}\n\
                     sub vcl_deliver {{ if (obj.hits > 0) \
                     {{ set resp.http.cache-status = \"larder; hit\"; }} }}\n"
                ),
            );
            format!("vcl = \"{}\"\n", folder.path().join("site.vcl").display())
        } else {
            format!(
                "origin = \"http://{addr}\"\n\
                 purge = {{ dialects = [\"purge\", \"foshttpcache\"] }}\n"
            )
        };
        let file = format!(
            "listen = \"127.0.0.1:0\"\nworkers = 1\n{disk}\
             [cluster]\nservers = \"{url}\"\nname = \"{name}\"\n{}\n\
             [[site]]\nhost = \"*\"\n{site}",
            wanted.cluster
        );
        let daemon = Some(Daemon::start(&file).expect("larder starts"));
        Self { daemon, file, _folder: folder }
    }

    fn daemon(&self) -> &Daemon {
        self.daemon.as_ref().expect("it runs")
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.daemon().pid() as i32).expect("a process");
        kill_process(pid, signal).expect("sent");
    }

    /// Ends it by `signal`.
    async fn end(&mut self, signal: Signal) {
        self.signal(signal);
        let mut old = self.daemon.take().expect("it runs");
        tokio::task::spawn_blocking(move || old.wait()).await.expect("no panic").expect("it ends");
    }

    fn begin(&mut self) {
        self.daemon = Some(Daemon::start(&self.file).expect("larder starts again"));
    }

    async fn ask(&self, method: &str, target: &str, fields: &str) -> Reply {
        let raw = Raw::connect(self.daemon().addr()).await.expect("a connection");
        let mut raw = raw.patience(PATIENCE);
        raw.send(&request(method, target, fields), Pieces::Whole).await.expect("it is taken");
        whole(raw.reply(method).await, target)
    }

    async fn hits(&self, target: &str) -> bool {
        is_hit(&self.ask("GET", target, "").await)
    }

    async fn status(&self) -> Value {
        let (done, out, err) = run(self.daemon(), &["cluster", "status", "--json"]).await;
        assert!(done, "{err}");
        serde_json::from_str(&out).expect("JSON")
    }

    async fn is(&self, what: &str) -> bool {
        self.status().await[what].as_bool().expect("a flag")
    }

    async fn readiness(&self) -> u16 {
        Ask::get("/readyz").send_locally(self.daemon()).await.status
    }

    /// Waits until it is in touch and trusts what it stores.
    async fn joined(&self) {
        let is_there = async || self.is("connected").await && self.is("trusted").await;
        eventually("a node joins", is_there).await;
    }

    /// Has it store a page.
    async fn store(&self, target: &str) {
        eventually("a page is stored", async || self.hits(target).await).await;
    }
}

/// Waits until each knows of all.
async fn all_joined(nodes: &[Node]) {
    for node in nodes {
        node.joined().await;
        let knows = async || {
            let status = node.status().await;
            let members = status["members"].as_array().expect("a list");
            members.iter().filter(|member| member["live"] == true).count() == nodes.len()
        };
        eventually("all know each other", knows).await;
    }
}

async fn origin() -> Scripted {
    let origin = Scripted::start().await.expect("an origin");
    origin.otherwise(Script::ok(PAGE, "a page"));
    origin
}

/// Has all store the page, purges it by `purge`, and looks whether it is gone on all.
async fn gone_on_all(nodes: &[Node], what: &str, purge: impl AsyncFnOnce()) {
    for node in nodes {
        node.store("/page").await;
    }
    purge().await;
    for (at, node) in nodes.iter().enumerate() {
        assert!(!node.hits("/page").await, "{what}: node {at}");
    }
}

fn three(nats: &Nats, origin: &Scripted, wanted: Wanted<'_>) -> [Node; 3] {
    ["n1", "n2", "n3"].map(|name| Node::start(name, nats, origin, wanted))
}

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
    for arguments in BY_HAND {
        gone_on_all(&nodes, arguments[1], async || {
            let (done, _, err) = run(nodes[1].daemon(), arguments).await;
            assert!(done, "{arguments:?}: {err}");
        })
        .await;
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
    // Its position is kept within a second or so: what comes behind it is replayed.
    let file = nodes[1]._folder.path().join("disk/cluster-position");
    eventually("a position", async || file.exists()).await;
    nodes[1].end(Signal::KILL).await;
    assert_eq!(nodes[0].ask("PURGE", "/gone", "Larder-Wait: quorum\r\n").await.status, 200);
    nodes[1].begin();
    nodes[1].joined().await;
    assert!(!nodes[1].hits("/gone").await);
    eventually("what was not purged is there", async || nodes[1].hits("/kept").await).await;
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
    // It takes effect here, and waits for the others.
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
