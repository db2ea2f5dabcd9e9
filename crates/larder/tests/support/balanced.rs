//! Balanced nodes: a cluster that serves one name, and a balancer that never sends an authority to
//! the ordering node.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use testkit::larder::Daemon;
use tokio::net::{TcpListener, TcpStream};

use super::console::look;
use super::eventually;
use super::folder::Folder;
use super::nats::Nats;
use super::pebble::{Place, site};

pub(crate) const SECRET: &str = "a secret that the nodes of this test have in common\n";
pub(crate) const NAME: &str = "a.test";

/// The place of nodes that order certificates for one name.
pub(crate) struct Ground {
    pub(crate) place: Place,
    pub(crate) nats: Nats,
    pub(crate) folder: Folder,
}

/// A node.
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) daemon: Daemon,
    is_killed: AtomicBool,
}

impl Ground {
    pub(crate) async fn new(variables: &[(&'static str, &str)]) -> Self {
        let folder = Folder::new();
        folder.file("secret", SECRET);
        Self { place: Place::new(variables).await, nats: Nats::start(&[]).await, folder }
    }

    /// The line of `[cluster]` with the common secret.
    pub(crate) fn secret(&self) -> String {
        format!("secret_file = \"{}\"\n", self.folder.path().join("secret").display())
    }

    /// A node's configuration: `acme` are keys of `[tls.acme]`, `limits` of `[limits]`, `cluster`
    /// of `[cluster]`. Its storage is in a folder of its own, which outlives it.
    pub(crate) fn config(&self, name: &str, acme: &str, limits: &str, cluster: &str) -> String {
        let (place, url) = (&self.place, self.nats.url());
        let storage = self.folder.path().join(name);
        place
            .config(acme, &site(&[NAME]))
            .replacen(&place.tls.to_string(), "127.0.0.1:0", 1)
            .replacen(&place.plain.to_string(), "127.0.0.1:0", 1)
            .replacen(&place.storage().display().to_string(), &storage.display().to_string(), 1)
            .replacen("[limits]\n", &format!("[limits]\n{limits}"), 1)
            + &format!("[cluster]\nservers = \"{url}\"\nname = \"{name}\"\n{cluster}")
    }

    /// Starts three nodes, and waits until they know each other.
    pub(crate) async fn three(&self, acme: &str, limits: &str, cluster: &str) -> Vec<Arc<Member>> {
        let start = |name| Member::start(name, &self.config(name, acme, limits, cluster));
        let members: Vec<_> = ["n1", "n2", "n3"].into_iter().map(start).collect();
        for member in &members {
            let knows_all = async || {
                let status = member.status().await;
                let live = |own: &&Value| own["live"] == true;
                let members =
                    status["members"].as_array().map_or(0, |all| all.iter().filter(live).count());
                members == 3 && status["shared"]["connected"] != false
            };
            eventually("all know each other", knows_all).await;
        }
        members
    }
}

impl Member {
    pub(crate) fn start(name: &str, config: &str) -> Arc<Self> {
        let daemon = Daemon::start(config).expect("larder starts");
        Arc::new(Self { name: name.to_owned(), daemon, is_killed: AtomicBool::default() })
    }

    /// The cluster as the node sees it.
    pub(crate) async fn status(&self) -> Value {
        look(&self.daemon, "/api/v1/cluster").await
    }

    pub(crate) fn tls(&self) -> SocketAddr {
        self.daemon.addrs()[0]
    }

    fn plain(&self) -> SocketAddr {
        self.daemon.addrs()[1]
    }

    pub(crate) fn kill(&self) {
        self.is_killed.store(true, Ordering::Relaxed);
        let pid = Pid::from_raw(self.daemon.pid() as i32).expect("a process");
        kill_process(pid, Signal::KILL).expect("sent");
    }

    pub(crate) fn is_killed(&self) -> bool {
        self.is_killed.load(Ordering::Relaxed)
    }

    pub(crate) async fn figure(&self, name: &str) -> u64 {
        self.daemon.metric(&format!("larder_{name}"), "").await.expect("metrics") as u64
    }

    /// The shared entry whose name begins so.
    pub(crate) async fn shared(&self, begin: &str) -> Option<Value> {
        let status = self.status().await;
        let secrets = status["shared"]["secrets"].as_array()?.clone();
        secrets.into_iter().find(|own| own["name"].as_str().is_some_and(|n| n.starts_with(begin)))
    }
}

/// A balancer.
pub(crate) struct Balancer {
    members: Vec<Arc<Member>>,
    /// The ordering node is to be killed when an authority asks.
    kills: AtomicBool,
    /// The ordering node, and the one that was asked, each time.
    pub(crate) asked: Mutex<Vec<(String, String)>>,
}

impl Balancer {
    /// Listens where the authority sends its challenge.
    pub(crate) async fn start(place: &Place, members: &[Arc<Member>], kills: bool) -> Arc<Self> {
        let balancer = Arc::new(Self {
            members: members.to_vec(),
            kills: AtomicBool::new(kills),
            asked: Mutex::default(),
        });
        for (address, is_tls) in [(place.tls, true), (place.plain, false)] {
            let listener = TcpListener::bind(address).await.expect("a port");
            let balancer = Arc::clone(&balancer);
            tokio::spawn(async move {
                while let Ok((client, _)) = listener.accept().await {
                    let balancer = Arc::clone(&balancer);
                    tokio::spawn(async move { balancer.pass(client, is_tls).await });
                }
            });
        }
        balancer
    }

    async fn pass(&self, mut client: TcpStream, is_tls: bool) {
        let alive: Vec<_> = self.members.iter().filter(|member| !member.is_killed()).collect();
        let status = alive[0].status().await;
        let holder = status["shared"]["orders"].as_str().expect("somebody orders").to_owned();
        if self.kills.swap(false, Ordering::Relaxed) {
            let orders = alive.iter().find(|member| member.name == holder).expect("a node");
            return orders.kill();
        }
        let other = alive.iter().find(|member| member.name != holder).expect("another node");
        self.asked.lock().push((holder, other.name.clone()));
        let to = if is_tls { other.tls() } else { other.plain() };
        let mut server = TcpStream::connect(to).await.expect("a connection");
        _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
    }
}
