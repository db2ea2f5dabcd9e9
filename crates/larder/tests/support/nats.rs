//! A NATS server of a test's own, on this machine only: `nats-server` on the path, or the program
//! that `NATS_SERVER` names.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use super::eventually;
use super::folder::Folder;

/// A server, which can be ended and started again.
pub(crate) struct Nats {
    folder: Folder,
    port: u16,
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

impl Nats {
    /// A server that is up, with further arguments.
    pub(crate) async fn start(arguments: &[&str]) -> Self {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = free.local_addr().expect("an address").port();
        drop(free);
        let arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
        let mut nats = Self { folder: Folder::new(), port, arguments, child: None };
        nats.begin().await;
        nats
    }

    /// Starts it again, with what it has stored.
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

    /// Ends it at once.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("it runs");
            child.wait().expect("it ends");
        }
    }

    /// Has it forget all that it stored; it does not run.
    pub(crate) fn forget(&self) {
        assert!(self.child.is_none());
        std::fs::remove_dir_all(self.folder.path().join("store")).expect("what it stored");
    }

    /// Its URL.
    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        self.kill();
    }
}
