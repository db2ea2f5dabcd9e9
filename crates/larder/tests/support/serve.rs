//! `larder serve` with varnishd's flags.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;

use testkit::larder::binary;
use testkit::origin::ScriptedOrigin;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::PATIENCE;
use super::cli::{Cli, SECRET};
use super::folder::Folder;

/// A daemon with varnishd's flags.
pub(crate) struct Serve {
    pub(crate) child: Child,
    pub(crate) folder: Folder,
    pub(crate) clients: Vec<SocketAddr>,
    pub(crate) cli: SocketAddr,
    lines: mpsc::Receiver<String>,
    log: Vec<String>,
}

impl Serve {
    /// A daemon in front of `origin`, with further flags.
    pub(crate) fn start(vcl: &str, more: &[&str]) -> Self {
        let folder = Folder::new();
        folder.file("secret", SECRET);
        folder.file("default.vcl", vcl);
        let path = |name: &str| folder.path().join(name).display().to_string();
        let mut child = Command::new(binary().expect("the binary"))
            .args(["serve", "-a", "127.0.0.1:0", "-T", "127.0.0.1:0"])
            .args(["-f", &path("default.vcl"), "-S", &path("secret"), "-s", "malloc,64m"])
            .args(["-n", &path("work"), "-P", &path("pid")])
            .args(more)
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let stderr = child.stderr.take().expect("it is piped");
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut serve =
            Self { child, folder, clients: Vec::new(), cli: nowhere, lines, log: Vec::new() };
        let address =
            |line: &str| line.split("listening on ").nth(1)?.split(' ').next()?.parse().ok();
        serve.cli = address(&serve.until("Varnish CLI listening on")).expect("an address");
        let line = serve.until("larder: listening on");
        serve.clients.push(address(&line).expect("an address"));
        serve
    }

    /// The TLS listener, which is not the first.
    pub(crate) fn secure(&mut self) -> SocketAddr {
        let line = self.until("(TLS)");
        let address = line.split("listening on ").nth(1).and_then(|rest| rest.split(' ').next());
        address.and_then(|address| address.parse().ok()).expect("an address")
    }

    /// The next line that contains `part`.
    pub(crate) fn until(&mut self, part: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|_| panic!("no `{part}` in {:?}", self.log));
            self.log.push(line.clone());
            if line.contains(part) {
                return line;
            }
        }
    }

    /// Returns true if one of the lines so far contains `part`.
    pub(crate) fn has_said(&self, part: &str) -> bool {
        self.log.iter().any(|line| line.contains(part))
    }

    pub(crate) async fn cli(&self) -> Cli {
        Cli::authenticated(self.cli).await
    }

    /// The response to a GET: head and body.
    pub(crate) async fn get(&self, target: &str) -> String {
        let mut stream = TcpStream::connect(self.clients[0]).await.expect("a connection");
        let request = format!("GET {target} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("written");
        let mut reply = Vec::new();
        timeout(PATIENCE, stream.read_to_end(&mut reply)).await.expect("in time").expect("read");
        String::from_utf8_lossy(&reply).into_owned()
    }

    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args([name, &id]).status().expect("kill runs");
        assert!(sent.success());
    }

    pub(crate) fn end(mut self) -> ExitStatus {
        self.signal("-TERM");
        self.child.wait().expect("it ends")
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        // It may have ended.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// A program with `origin` as its backend, followed by `rest`.
pub(crate) fn vcl(origin: &ScriptedOrigin, rest: &str) -> String {
    let (host, port) = (origin.addr().ip(), origin.addr().port());
    format!(
        "vcl 4.1;\nimport std;\nbackend default {{ .host = \"{host}\"; .port = \"{port}\"; }}\n{rest}\n"
    )
}
