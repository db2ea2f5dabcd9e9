//! A NATS server of a test, on this machine only: `nats-server` on the path, or the program that
//! `NATS_SERVER` names.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use super::eventually;
use super::folder::Folder;

/// A server, which tests stop and start again.
pub(crate) struct Nats {
    folder: Folder,
    port: u16,
    scheme: &'static str,
    arguments: Vec<String>,
    child: Option<Child>,
}

fn program() -> PathBuf {
    if let Some(named) = std::env::var_os("NATS_SERVER") {
        return PathBuf::from(named);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    let found = folders.map(|folder| folder.join("nats-server")).find(|file| file.is_file());
    found.expect("nats-server: scripts/setup.sh nats installs it")
}

fn free_port() -> u16 {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    free.local_addr().expect("an address").port()
}

impl Nats {
    /// A running server, with further arguments.
    pub(crate) async fn start(arguments: &[&str]) -> Self {
        Self::of("nats", "", arguments).await
    }

    /// A running server, with a configuration.
    pub(crate) async fn configured(config: &str) -> Self {
        Self::of("nats", config, &[]).await
    }

    /// Three servers of one cluster; each can lead.
    pub(crate) async fn three() -> [Self; 3] {
        let routes = [free_port(), free_port(), free_port()];
        let routes = routes.map(|port| format!("nats://127.0.0.1:{port}"));
        let all = routes.join(",");
        let of = async |at: usize| {
            let (name, own) = (format!("s{at}"), routes[at].as_str());
            let cluster = ["--cluster_name", "test", "--cluster", own, "--routes", &all];
            Self::of("nats", "", &[&["-n", &name], &cluster[..]].concat()).await
        };
        [of(0).await, of(1).await, of(2).await]
    }

    /// A running server with TLS.
    pub(crate) async fn start_tls(arguments: &[&str]) -> Self {
        Self::of("tls", "", arguments).await
    }

    async fn of(scheme: &'static str, config: &str, arguments: &[&str]) -> Self {
        let port = free_port();
        let folder = Folder::new();
        let file = folder.path().join("nats.conf");
        std::fs::write(&file, config).expect("written");
        let arguments = ["-c", &file.display().to_string()]
            .iter()
            .chain(arguments)
            .map(|&argument| argument.to_owned())
            .collect();
        let mut nats = Self { folder, port, scheme, arguments, child: None };
        nats.begin().await;
        nats
    }

    /// Starts it again, with its storage.
    pub(crate) async fn begin(&mut self) {
        let port = self.port.to_string();
        let mut command = Command::new(program());
        command.args(["-a", "127.0.0.1", "-p", &port, "-js", "-sd"]);
        command.arg(self.folder.path().join("store")).args(&self.arguments);
        let log = std::fs::File::create(self.folder.path().join("log")).expect("a log");
        command.stdout(Stdio::null()).stderr(log);
        self.child = Some(command.spawn().expect("it starts"));
        let port = self.port;
        let is_up = async || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok();
        eventually("NATS is up", is_up).await;
    }

    /// Kills it.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("it runs");
            child.wait().expect("it ends");
        }
    }

    /// Deletes its storage; it must not run.
    pub(crate) fn forget(&self) {
        assert!(self.child.is_none());
        std::fs::remove_dir_all(self.folder.path().join("store")).expect("what it stored");
    }

    /// Copies its storage, to restore later; it must not run.
    pub(crate) fn remember(&self) {
        self.copy("store", "remembered");
    }

    /// Restores the copy of its storage; it must not run.
    pub(crate) fn go_back(&self) {
        self.forget();
        self.copy("remembered", "store");
    }

    fn copy(&self, from: &str, to: &str) {
        assert!(self.child.is_none());
        let [from, to] = [from, to].map(|name| self.folder.path().join(name));
        let done = Command::new("cp").arg("-a").args([from, to]).status().expect("cp");
        assert!(done.success());
    }

    /// Its port.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Its URL.
    pub(crate) fn url(&self) -> String {
        format!("{}://127.0.0.1:{}", self.scheme, self.port)
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        self.kill();
    }
}
