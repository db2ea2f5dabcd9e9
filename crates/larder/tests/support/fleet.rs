//! A fleet: nodes that share a configuration, with clients that load them all, as behind a
//! balancer.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use testkit::client::RawClient;
use testkit::larder::Daemon;
use testkit::origin::{Script, ScriptedOrigin};
use testkit::reply::{Reply, ReplyOutcome};

use super::console::{Ask, look, run};
use super::folder::Folder;
use super::nats::Nats;
use super::{PATIENCE, eventually, whole};

const SECRET: &str = "a secret that the nodes of this test have in common\n";
const PAGE: &str = "a page";

/// A node with the shared configuration.
pub(crate) struct Sharing {
    pub(crate) name: String,
    file: String,
    daemon: Option<Daemon>,
}

impl Sharing {
    pub(crate) fn daemon(&self) -> &Daemon {
        self.daemon.as_ref().expect("it runs")
    }

    /// Ends it by `signal`.
    pub(crate) async fn end(&mut self, signal: Signal) {
        let pid = Pid::from_raw(self.daemon().pid() as i32).expect("a process");
        kill_process(pid, signal).expect("sent");
        let mut old = self.daemon.take().expect("it runs");
        tokio::task::spawn_blocking(move || old.wait()).await.expect("no panic").expect("it ends");
    }

    pub(crate) fn begin(&mut self) {
        self.daemon = Some(Daemon::start(&self.file).expect("larder starts again"));
    }

    /// Starts it again with another file of its own, made from the previous one.
    pub(crate) fn begin_as(&mut self, edit: impl FnOnce(&str) -> String) {
        self.file = edit(&self.file);
        self.begin();
    }

    /// The state of roll-outs as the node sees it.
    pub(crate) async fn state(&self) -> Value {
        look(self.daemon(), "/api/v1/cluster/configuration").await
    }

    pub(crate) async fn readiness(&self) -> u16 {
        Ask::get("/readyz").send_locally(self.daemon()).await.status
    }

    pub(crate) async fn in_force(&self) -> String {
        self.state().await["in_force"].as_str().expect("a version").to_owned()
    }

    pub(crate) async fn status(&self) -> Value {
        look(self.daemon(), "/api/v1/cluster").await
    }

    pub(crate) async fn get(&self, target: &str) -> Reply {
        let raw = RawClient::connect(self.daemon().addr()).await.expect("a connection");
        let mut raw = raw.patience(PATIENCE);
        whole(raw.get(target).await.expect("sent"), target)
    }

    /// The mark in its responses.
    pub(crate) async fn mark(&self) -> String {
        self.get("/page").await.field("x-mark").unwrap_or_default()
    }

    /// Runs `larder` with its socket: true if it succeeded, and its output.
    pub(crate) async fn run(&self, arguments: &[&str]) -> (bool, String, String) {
        run(self.daemon(), arguments).await
    }

    pub(crate) fn config_file(&self) -> PathBuf {
        self.daemon().config_file()
    }

    pub(crate) fn has_said(&self, text: &str) -> bool {
        self.daemon().log().contains(text)
    }
}

/// The nodes with their surroundings.
pub(crate) struct Fleet {
    pub(crate) nats: Nats,
    pub(crate) origin: ScriptedOrigin,
    pub(crate) folder: Folder,
    pub(crate) nodes: Vec<Sharing>,
}

impl Fleet {
    /// Starts `count` nodes without a shared configuration, and waits until they know each other.
    pub(crate) async fn start(count: usize) -> Self {
        let (nats, origin) =
            (Nats::start(&[]).await, ScriptedOrigin::start().await.expect("an origin"));
        origin.otherwise(Script::ok("Cache-Control: max-age=1\r\n", PAGE));
        let folder = Folder::new();
        folder.file("secret", SECRET);
        let mut fleet = Self { nats, origin, folder, nodes: Vec::new() };
        for number in 1..=count {
            fleet.add(&format!("n{number}"));
        }
        fleet.all_know(count).await;
        fleet
    }

    /// Starts one more node.
    pub(crate) fn add(&mut self, name: &str) {
        let path = |name: &str| self.folder.path().join(name).display().to_string();
        let (url, secret, storage) = (self.nats.url(), path("secret"), path(name));
        let file = format!(
            "listen = \"127.0.0.1:0\"\nworkers = 1\n[cluster]\n\
             servers = \"{url}\"\nname = \"{name}\"\nmax_isolation = \"2s\"\n\
             secret_file = \"{secret}\"\nconfiguration = \"shared\"\nstorage = \"{storage}\"\n"
        );
        let daemon = Some(Daemon::start(&file).expect("larder starts"));
        self.nodes.push(Sharing { name: name.to_owned(), file, daemon });
    }

    /// Waits until each of `count` running nodes knows all.
    pub(crate) async fn all_know(&self, count: usize) {
        for node in self.nodes.iter().filter(|node| node.daemon.is_some()) {
            let knows = async || {
                let (status, state) = (node.status().await, node.state().await);
                let nodes = state["nodes"].as_array().expect("a list");
                let live = nodes.iter().filter(|own| own["live"] == true).count();
                live == count && status["shared"]["connected"] == true
            };
            eventually("all know each other", knows).await;
        }
    }

    /// A configuration whose responses have a mark.
    pub(crate) fn marked(&self, mark: &str) -> String {
        let addr = self.origin.addr();
        format!(
            "[[site]]\nhost = \"*\"\norigin = \"http://{addr}\"\n\
             response_headers = {{ set = {{ \"X-Mark\" = \"{mark}\" }} }}\n"
        )
    }

    /// Writes a file with this text, and returns its path.
    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        self.folder.file(name, text);
        self.folder.path().join(name).display().to_string()
    }

    /// Rolls a text out over the first running node, with further arguments; returns true if it
    /// succeeded, and the output.
    pub(crate) async fn roll_out(&self, text: &str, more: &[&str]) -> (bool, String) {
        let file = self.write("shared.toml", text);
        let arguments = [&["cluster", "roll-out", &file, "--watch", "0s"], more].concat();
        let node = self.nodes.iter().find(|node| node.daemon.is_some()).expect("one runs");
        let (done, out, err) = node.run(&arguments).await;
        (done, format!("{out}{err}"))
    }

    /// Rolls a text out, which all nodes must apply; returns its version.
    pub(crate) async fn all_take(&self, text: &str) -> String {
        let (done, said) = self.roll_out(text, &["--wait"]).await;
        assert!(done, "{said}");
        let version = said.split(' ').next().expect("a word").to_owned();
        for node in self.nodes.iter().filter(|node| node.daemon.is_some()) {
            assert_eq!(node.in_force().await, version, "{}", node.name);
        }
        version
    }

    /// Waits until all running nodes see the last roll-out at a stage.
    pub(crate) async fn all_see(&self, stage: &str) {
        for node in self.nodes.iter().filter(|node| node.daemon.is_some()) {
            let sees = async || node.state().await["stage"] == stage;
            eventually(&format!("{} sees {stage}", node.name), sees).await;
        }
    }

    /// Waits until a node runs a version.
    pub(crate) async fn has(&self, node: usize, version: &str) {
        let has = async || self.nodes[node].in_force().await == version;
        eventually(&format!("{} has {version}", self.nodes[node].name), has).await;
    }
}

/// Clients that load the nodes, and check every response.
pub(crate) struct Load {
    slots: Mutex<BTreeMap<String, Target>>,
    next: AtomicU64,
    is_over: AtomicBool,
    /// Complete responses with status 200.
    pub(crate) answered: AtomicU64,
    /// All other outcomes.
    wrong: Mutex<Vec<String>>,
}

/// A node as the clients see it.
#[derive(Default)]
struct Target {
    /// Its address; `None` while it gets no requests.
    address: Option<SocketAddr>,
    in_flight: usize,
    marks: BTreeSet<String>,
    answered: u64,
}

impl Load {
    /// Starts clients of all nodes.
    pub(crate) fn begin(fleet: &Fleet, clients: usize) -> Arc<Self> {
        let load = Arc::new(Self {
            slots: Mutex::default(),
            next: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            answered: AtomicU64::new(0),
            wrong: Mutex::default(),
        });
        fleet.nodes.iter().for_each(|node| load.add(node));
        for _ in 0..clients {
            let load = Arc::clone(&load);
            tokio::spawn(async move {
                while !load.is_over.load(Ordering::Relaxed) {
                    load.ask().await;
                }
            });
        }
        load
    }

    /// Adds a node to those that get requests.
    pub(crate) fn add(&self, node: &Sharing) {
        let mut slots = self.slots.lock();
        slots.entry(node.name.clone()).or_default().address = Some(node.daemon().addr());
    }

    /// Removes a node from those that get requests; returns when it has answered all of them.
    pub(crate) async fn remove(&self, node: &Sharing) {
        self.slots.lock().entry(node.name.clone()).or_default().address = None;
        let is_idle = async || self.slots.lock()[&node.name].in_flight == 0;
        eventually("the balancer has no request there", is_idle).await;
    }

    async fn ask(&self) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (name, address) = {
            let mut slots = self.slots.lock();
            let mut able: Vec<_> = slots
                .iter_mut()
                .filter_map(|(name, own)| Some((name, own.address?, own)))
                .collect();
            let at = number as usize % able.len();
            let (name, address, target) = able.swap_remove(at);
            target.in_flight += 1;
            (name.clone(), address)
        };
        // Some pages are requested repeatedly, some once.
        let page = if number.is_multiple_of(3) { number } else { number % 7 };
        let answer = Self::answer(address, &format!("/page/{page}")).await;
        let mut slots = self.slots.lock();
        let target = slots.get_mut(&name).expect("it was there");
        target.in_flight -= 1;
        match answer {
            Ok(mark) => {
                target.answered += 1;
                target.marks.insert(mark);
                self.answered.fetch_add(1, Ordering::Relaxed);
            }
            Err(why) => self.wrong.lock().push(format!("{name}: {why}")),
        }
    }

    async fn answer(address: SocketAddr, target: &str) -> Result<String, String> {
        let raw = RawClient::connect(address).await.map_err(|error| error.to_string())?;
        let mut raw = raw.patience(PATIENCE);
        match raw.get(target).await.map_err(|error| error.to_string())? {
            ReplyOutcome::Complete(reply) if reply.status == 200 && reply.text() == PAGE => {
                Ok(reply.field("x-mark").unwrap_or_default())
            }
            other => Err(format!("{target}: {other:?}")),
        }
    }

    /// Waits until every loaded node has answered some more requests.
    pub(crate) async fn goes_on(&self) {
        let answered = || -> BTreeMap<String, u64> {
            let slots = self.slots.lock();
            let able = slots.iter().filter(|(_, own)| own.address.is_some());
            able.map(|(name, own)| (name.clone(), own.answered)).collect()
        };
        let before = answered();
        let has_more = async || {
            let now = answered();
            before.iter().all(|(name, count)| now.get(name).is_none_or(|now| *now >= count + 20))
        };
        eventually("all nodes answer", has_more).await;
    }

    /// The marks of all responses of a node.
    pub(crate) fn marks(&self, node: &str) -> Vec<String> {
        self.slots.lock()[node].marks.iter().cloned().collect()
    }

    /// Ends the load. No response may have been wrong.
    pub(crate) fn end(&self) -> u64 {
        self.is_over.store(true, Ordering::Relaxed);
        let wrong = self.wrong.lock();
        assert!(
            wrong.is_empty(),
            "{} wrong answers: {:#?}",
            wrong.len(),
            &wrong[..wrong.len().min(5)]
        );
        self.answered.load(Ordering::Relaxed)
    }
}
