//! Nodes of a cluster: daemons that exchange invalidations over a NATS server of the test.

use std::net::SocketAddr;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use testkit::client::{RawClient, WriteSplit, request};
use testkit::larder::Daemon;
use testkit::origin::{Script, ScriptedOrigin};
use testkit::reply::Reply;

use super::console::{Ask, run};
use super::disked::patient;
use super::folder::Folder;
use super::nats::Nats;
use super::{PATIENCE, eventually, is_hit, whole};

pub(crate) const PAGE: &str = "Cache-Control: max-age=600, stale-while-revalidate=600, stale-if-error=600\r\n\
                    ETag: \"1\"\r\nSurrogate-Key: post-1\r\n";

/// A node.
pub(crate) struct Node {
    daemon: Option<Daemon>,
    file: String,
    pub(crate) folder: Folder,
}

/// Settings of a node.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    /// Further lines of `[cluster]`.
    pub(crate) cluster: &'a str,
    /// Further lines at the top.
    pub(crate) top: &'a str,
    /// The host of the one site.
    pub(crate) host: &'a str,
    /// Lines of the site, in addition to its origin.
    pub(crate) site: &'a str,
    pub(crate) has_disk: bool,
    pub(crate) vcl: bool,
}

pub(crate) const PLAIN: Wanted<'_> = Wanted {
    cluster: "",
    top: "",
    host: "*",
    site: "purge = { dialects = [\"purge\", \"foshttpcache\"] }",
    has_disk: false,
    vcl: false,
};

impl Node {
    pub(crate) fn start(
        name: &str,
        nats: &Nats,
        origin: &ScriptedOrigin,
        wanted: Wanted<'_>,
    ) -> Self {
        Self::before(origin.addr(), name, nats, wanted)
    }

    /// A node in front of the origin at `addr`.
    pub(crate) fn before(addr: SocketAddr, name: &str, nats: &Nats, wanted: Wanted<'_>) -> Self {
        let folder = Folder::new();
        let disk = match wanted.has_disk {
            true => {
                let path = folder.path().join("disk");
                format!("[disk]\npath = \"{}\"\nsize = \"256MiB\"\n", path.display())
            }
            false => String::new(),
        };
        let url = nats.url();
        let site = if wanted.vcl {
            let (host, port) = (addr.ip(), addr.port());
            folder.file(
                "site.vcl",
                format!(
                    "vcl 4.1;\nbackend app {{ .host = \"{host}\"; .port = \"{port}\"; }}\n\
                     sub vcl_recv {{ if (req.method == \"PURGE\") {{ return (purge); }}\n\
                     if (req.method == \"BAN\") \
                     {{ ban(\"req.url == \" + req.url); return (synth(200)); }} }}\n\
                     sub vcl_backend_response {{ set beresp.grace = 1h; }}\n\
                     sub vcl_deliver {{ if (obj.hits > 0) \
                     {{ set resp.http.cache-status = \"larder; hit\"; }} }}\n"
                ),
            );
            format!("vcl = \"{}\"\n", folder.path().join("site.vcl").display())
        } else {
            format!("origin = \"http://{addr}\"\n{}\n", wanted.site)
        };
        let file = format!(
            "listen = \"127.0.0.1:0\"\nworkers = 1\n{}{disk}\
             [cluster]\nservers = \"{url}\"\nname = \"{name}\"\n{}\n\
             [[site]]\nhost = \"{}\"\n{site}",
            wanted.top, wanted.cluster, wanted.host
        );
        let file = patient(&file);
        let daemon = Some(Daemon::start(&file).expect("larder starts"));
        Self { daemon, file, folder }
    }

    pub(crate) fn daemon(&self) -> &Daemon {
        self.daemon.as_ref().expect("it runs")
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = self.daemon().pid();
        kill_process(Pid::from_raw(pid as i32).expect("a process"), signal).expect("sent");
        // One thread handles it, and the others go on until then.
        while signal == Signal::STOP && !is_stopped(pid) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Ends it by `signal`.
    pub(crate) async fn end(&mut self, signal: Signal) {
        self.signal(signal);
        let mut old = self.daemon.take().expect("it runs");
        tokio::task::spawn_blocking(move || old.wait()).await.expect("no panic").expect("it ends");
    }

    pub(crate) fn begin(&mut self) {
        self.daemon = Some(Daemon::start(&self.file).expect("larder starts again"));
    }

    pub(crate) async fn ask(&self, method: &str, target: &str, fields: &str) -> Reply {
        let raw = RawClient::connect(self.daemon().addr()).await.expect("a connection");
        let mut raw = raw.patience(PATIENCE);
        raw.send(&request(method, target, fields), WriteSplit::Whole).await.expect("it is taken");
        whole(raw.reply(method).await, target)
    }

    pub(crate) async fn hits(&self, target: &str) -> bool {
        is_hit(&self.ask("GET", target, "").await)
    }

    pub(crate) async fn status(&self) -> Value {
        let (done, out, err) = run(self.daemon(), &["cluster", "status", "--json"]).await;
        assert!(done, "{err}");
        serde_json::from_str(&out).expect("JSON")
    }

    pub(crate) async fn is(&self, what: &str) -> bool {
        self.status().await[what].as_bool().expect("a flag")
    }

    pub(crate) async fn readiness(&self) -> u16 {
        self.ready().await.status
    }

    pub(crate) async fn ready(&self) -> Reply {
        Ask::get("/readyz").send_locally(self.daemon()).await
    }

    /// The state in which it sees the node `name`.
    pub(crate) async fn sees(&self, name: &str) -> String {
        let status = self.status().await;
        let members = status["members"].as_array().expect("a list");
        let member = members.iter().find(|member| member["name"] == name);
        member.map(|own| own["state"].as_str().expect("a word").to_owned()).unwrap_or_default()
    }

    /// Runs `larder cluster` with a verb; returns the output, and true if it succeeded.
    pub(crate) async fn order(&self, word: &str) -> (bool, String) {
        let (done, out, err) = run(self.daemon(), &["cluster", word]).await;
        (done, format!("{out}{err}"))
    }

    /// Sends a purge of `/page`.
    pub(crate) async fn purge(&self, wait: &str) -> Reply {
        self.ask("PURGE", "/page", &format!("Larder-Wait: {wait}\r\n")).await
    }

    /// Waits until it is connected and trusts its store.
    pub(crate) async fn joined(&self) {
        let is_there = async || self.is("connected").await && self.is("trusted").await;
        eventually("a node joins", is_there).await;
    }

    /// Makes it store a page.
    pub(crate) async fn store(&self, target: &str) {
        eventually("a page is stored", async || self.hits(target).await).await;
    }
}

/// Returns true if all threads of a process are stopped.
fn is_stopped(pid: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).expect("a process");
    let stands = |thread: std::fs::DirEntry| {
        let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        // Behind the name, which may contain spaces.
        stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T'))
    };
    threads.flatten().all(stands)
}

/// Waits until each node knows all.
pub(crate) async fn all_joined(nodes: &[Node]) {
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

pub(crate) async fn origin() -> ScriptedOrigin {
    let origin = ScriptedOrigin::start().await.expect("an origin");
    origin.otherwise(Script::ok(PAGE, "a page"));
    origin
}

/// Stores the page on all nodes, purges it by `purge`, and checks that it is gone on all.
pub(crate) async fn gone_on_all(nodes: &[Node], what: &str, purge: impl AsyncFnOnce()) {
    for node in nodes {
        node.store("/page").await;
    }
    purge().await;
    for (at, node) in nodes.iter().enumerate() {
        assert!(!node.hits("/page").await, "{what}: node {at}");
    }
}

pub(crate) fn three(nats: &Nats, origin: &ScriptedOrigin, wanted: Wanted<'_>) -> [Node; 3] {
    ["n1", "n2", "n3"].map(|name| Node::start(name, nats, origin, wanted))
}
