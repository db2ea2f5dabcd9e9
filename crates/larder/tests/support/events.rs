//! The event stream that the dashboard reads.

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{PATIENCE, Stage};

/// An event stream, as far as it was read.
pub(crate) struct Events {
    pub(crate) stream: TcpStream,
    pub(crate) text: String,
}

impl Events {
    pub(crate) async fn open(stage: &Stage, role: &str) -> Self {
        Self::open_at(stage, role, "/api/v1/live").await
    }

    /// Opens the stream at this path and query.
    pub(crate) async fn open_at(stage: &Stage, role: &str, target: &str) -> Self {
        let at = stage.daemon.admin().expect("an admin listener");
        let mut stream = TcpStream::connect(at).await.expect("a connection");
        let token = bearer(stage, role);
        let asked = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n{token}\r\n");
        stream.write_all(asked.as_bytes()).await.expect("sent");
        Self { stream, text: String::new() }
    }

    /// The first event called `name` whose data `holds`.
    pub(crate) async fn find(&mut self, name: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let start = format!("event: {name}\ndata: ");
        let search = async {
            let mut bytes = vec![0; 64 << 10];
            loop {
                // Complete ones only: the last may still be arriving.
                let (done, _) = self.text.rsplit_once("\n\n").unwrap_or_default();
                let found = done
                    .split("\n\n")
                    .filter_map(|block| block.split_once(&start).map(|(_, data)| data))
                    .filter_map(|data| serde_json::from_str::<Value>(data.lines().next()?).ok())
                    .find(|data| holds(data));
                if let Some(found) = found {
                    return found;
                }
                let read = self.stream.read(&mut bytes).await.expect("more");
                assert!(read > 0, "the stream ended: {}", self.text);
                self.text.push_str(&String::from_utf8_lossy(&bytes[..read]));
            }
        };
        if let Ok(found) = timeout(PATIENCE, search).await {
            return found;
        }
        let last = self.text.rsplit("event: ").find(|block| block.starts_with(name));
        panic!("no such {name}; the last: {last:?}")
    }
}

/// The Authorization field with the token of a role.
pub(crate) fn bearer(stage: &Stage, role: &str) -> String {
    let token = stage.daemon.token(role).expect("a token");
    format!("Authorization: Bearer {token}\r\n")
}
