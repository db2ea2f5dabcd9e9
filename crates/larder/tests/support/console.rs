//! The console: requests to the admin listener.

use std::net::SocketAddr;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use testkit::client::{RawClient, WriteSplit};
use testkit::larder::{Daemon, binary};
use testkit::reply::{ConnectionEnd, Reply, read_reply};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use super::{PATIENCE, whole};

/// The table for `[admin]` with a TCP listener.
pub(crate) const LISTENS: &str = "[admin]\nlisten = \"127.0.0.1:0\"\n";

/// A request to the admin listener.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    method: String,
    target: String,
    host: String,
    fields: String,
    body: String,
}

impl Ask {
    pub(crate) fn get(target: &str) -> Self {
        Self {
            method: "GET".to_owned(),
            target: target.to_owned(),
            host: "localhost".to_owned(),
            fields: String::new(),
            body: String::new(),
        }
    }

    /// A POST with a body of JSON, without one for `Null`.
    pub(crate) fn post(target: &str, body: &Value) -> Self {
        let ask = Self { method: "POST".to_owned(), ..Self::get(target) };
        if body.is_null() {
            return ask;
        }
        Self { body: body.to_string(), ..ask }.field("Content-Type", "application/json")
    }

    pub(crate) fn method(self, method: &str) -> Self {
        Self { method: method.to_owned(), ..self }
    }

    pub(crate) fn host(self, host: &str) -> Self {
        Self { host: host.to_owned(), ..self }
    }

    pub(crate) fn body(self, body: &str) -> Self {
        Self { body: body.to_owned(), ..self }
    }

    pub(crate) fn field(self, name: &str, value: &str) -> Self {
        Self { fields: format!("{}{name}: {value}\r\n", self.fields), ..self }
    }

    /// The request with the token of a role.
    pub(crate) fn with(self, daemon: &Daemon, role: &str) -> Self {
        let token = daemon.token(role).expect("a token");
        self.field("Authorization", &format!("Bearer {token}"))
    }

    /// Serialises the request.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let Self { method, target, host, fields, body } = self;
        let length = match body.as_str() {
            "" if method != "POST" => String::new(),
            body => format!("Content-Length: {}\r\n", body.len()),
        };
        format!(
            "{method} {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\
             {length}{fields}\r\n{body}"
        )
        .into_bytes()
    }

    /// Sends the request to the address.
    pub(crate) async fn send(&self, daemon: &Daemon) -> Reply {
        self.send_to(daemon.admin().expect("an admin listener")).await
    }

    /// Sends the request to another address.
    pub(crate) async fn send_to(&self, addr: SocketAddr) -> Reply {
        let mut raw = RawClient::connect(addr).await.expect("a connection").patience(PATIENCE);
        raw.send(&self.bytes(), WriteSplit::Whole).await.expect("sent");
        whole(raw.reply(&self.method).await, &self.target)
    }

    /// Sends the request to the unix socket.
    pub(crate) async fn send_locally(&self, daemon: &Daemon) -> Reply {
        let mut stream = UnixStream::connect(daemon.admin_socket()).await.expect("a connection");
        stream.write_all(&self.bytes()).await.expect("sent");
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await.expect("an answer");
        let read = read_reply(&bytes, &self.method, ConnectionEnd::Closed);
        whole(read.expect("an answer").0, &self.target)
    }
}

/// The JSON of a response.
pub(crate) fn json(reply: &Reply) -> Value {
    serde_json::from_slice(&reply.body)
        .unwrap_or_else(|e| panic!("{e}: {} {}", reply.status, reply.text()))
}

/// Sends a GET over the unix socket; returns the JSON of the response, which must be a 200.
pub(crate) async fn look(daemon: &Daemon, target: &str) -> Value {
    let reply = Ask::get(target).send_locally(daemon).await;
    assert_eq!(reply.status, 200, "{target}: {}", reply.text());
    json(&reply)
}

/// Runs `larder` with the daemon's socket: true if it succeeded, and its output.
pub(crate) async fn run(daemon: &Daemon, arguments: &[&str]) -> (bool, String, String) {
    let socket = daemon.admin_socket().display().to_string();
    let output = larder(&[arguments, &["--admin-socket", &socket]].concat()).await;
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

/// Runs `larder` to its end without blocking origins.
pub(crate) async fn larder(arguments: &[&str]) -> Output {
    let mut command = Command::new(binary().expect("a binary"));
    command.args(arguments).stdin(Stdio::null());
    let waited = tokio::task::spawn_blocking(move || command.output()).await;
    waited.expect("no panic").expect("it starts")
}

/// Output as text.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs `larder` with the daemon's socket, which must succeed; returns its output.
pub(crate) async fn printed(daemon: &Daemon, arguments: &[&str]) -> String {
    let (done, printed, why) = run(daemon, arguments).await;
    assert!(done, "{arguments:?}: {why}");
    printed
}
