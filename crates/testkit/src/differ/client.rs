//! Clients of a scenario: connections by name, requests as written, replies read strictly.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

use super::scenario::ScenarioRequest;
use crate::reply::{self, ConnectionEnd, ReplyOutcome};

/// Time limit of a reply.
const PATIENCE: Duration = Duration::from_secs(15);

/// Addresses of a server, and the `Host` of requests without one.
#[derive(Clone, Debug)]
pub(super) struct ServerAddresses {
    pub(super) plain: SocketAddr,
    /// The listener for the PROXY protocol.
    pub(super) proxied: SocketAddr,
    pub(super) host: String,
}

/// A reply: its status line, and its message or what came instead.
#[derive(Clone, Debug)]
pub(super) struct ReceivedAnswer {
    pub(super) line: String,
    pub(super) seen: ReplyOutcome,
}

#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
    end: ConnectionEnd,
}

/// The open connections.
#[derive(Debug, Default)]
pub(super) struct Clients(HashMap<(String, Option<String>), Connection>);

impl Clients {
    /// Sends a request and reads its reply.
    pub(super) fn ask(
        &mut self,
        target: &ServerAddresses,
        ask: &ScenarioRequest,
    ) -> ReceivedAnswer {
        thread::sleep(Duration::from_millis(ask.after_ms));
        let key = (ask.connection.clone(), ask.from.clone());
        let bytes = bytes(ask, &target.host);
        let kept = self.0.remove(&key).map(|mut connection| {
            let got = connection.ask(&bytes, &ask.method);
            (connection, got)
        });
        // The server may close a kept connection at any time, and does so silently when Varnish
        // gives up: then a new connection is tried (RFC 9112 9.3.1).
        let asked = match kept.filter(|(_, got)| got.seen != ReplyOutcome::Nothing) {
            Some(asked) => Ok(asked),
            None => Connection::open(target, ask.from.as_deref()).map(|mut connection| {
                let got = connection.ask(&bytes, &ask.method);
                (connection, got)
            }),
        };
        let (connection, got) = match asked {
            Ok(asked) => asked,
            Err(error) => {
                return ReceivedAnswer {
                    line: format!("no connection: {error}"),
                    seen: ReplyOutcome::Nothing,
                };
            }
        };
        let goes_on = match &got.seen {
            ReplyOutcome::Complete(reply) => !reply.closes() && !ask.old,
            _ => false,
        };
        if goes_on {
            self.0.insert(key, connection);
        }
        got
    }

    /// Sends a line over a connection and reads as many bytes.
    pub(super) fn say(&mut self, ask: &ScenarioRequest, text: &str) -> String {
        let key = (ask.connection.clone(), ask.from.clone());
        let Some(connection) = self.0.get_mut(&key) else { return "no connection".to_owned() };
        let line = format!("{text}\n");
        if let Err(error) = connection.stream.write_all(line.as_bytes()) {
            return format!("not sent: {:?}", error.kind());
        }
        while connection.received.len() < line.len() && connection.more() {}
        let count = line.len().min(connection.received.len());
        let back: Vec<u8> = connection.received.drain(..count).collect();
        String::from_utf8_lossy(&back).trim_end().to_owned()
    }
}

impl Connection {
    fn open(target: &ServerAddresses, from: Option<&str>) -> io::Result<Self> {
        let addr = if from.is_some() { target.proxied } else { target.plain };
        let mut stream = TcpStream::connect(addr)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        if let Some(from) = from {
            let (family, to) =
                if from.contains(':') { ("TCP6", "2001:db8::80") } else { ("TCP4", "192.0.2.80") };
            stream.write_all(format!("PROXY {family} {from} {to} 4321 80\r\n").as_bytes())?;
        }
        Ok(Self { stream, received: Vec::new(), end: ConnectionEnd::Open })
    }

    fn ask(&mut self, bytes: &[u8], method: &str) -> ReceivedAnswer {
        // A failure to send shows in the reply.
        _ = self.stream.write_all(bytes);
        self.read(method)
    }

    fn read(&mut self, method: &str) -> ReceivedAnswer {
        loop {
            if let Some((seen, used)) = reply::read_reply(&self.received, method, self.end) {
                let bytes: Vec<u8> = self.received.drain(..used).collect();
                return ReceivedAnswer { line: status_line(&bytes), seen };
            }
            if !self.more() && self.end == ConnectionEnd::Open {
                return ReceivedAnswer { line: String::new(), seen: ReplyOutcome::TimedOut };
            }
        }
    }

    /// Reads once. Returns true if more may come.
    fn more(&mut self) -> bool {
        let mut piece = [0; 16384];
        match self.stream.read(&mut piece) {
            Ok(0) => self.end = ConnectionEnd::Closed,
            Ok(count) => {
                self.received.extend_from_slice(&piece[..count]);
                return true;
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock) => {}
            Err(_) => self.end = ConnectionEnd::Reset,
        }
        false
    }
}

/// The status line of the last head in `bytes` that is no interim one.
fn status_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut rest = text.as_ref();
    loop {
        let line = rest.split("\r\n").next().unwrap_or_default();
        let interim = line.split(' ').nth(1).is_some_and(|s| s.starts_with('1') && s != "101");
        match rest.split_once("\r\n\r\n") {
            Some((_, after)) if interim => rest = after,
            _ => return line.to_owned(),
        }
    }
}

/// The bytes of a request.
fn bytes(ask: &ScenarioRequest, host: &str) -> Vec<u8> {
    if let Some(raw) = &ask.raw {
        return raw.clone().into_bytes();
    }
    let version = if ask.old { "HTTP/1.0" } else { "HTTP/1.1" };
    let mut text = format!("{} {} {version}\r\n", ask.method, ask.target);
    let named = |name: &str| ask.fields.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
    if !named("host") {
        text.push_str(&format!("Host: {host}\r\n"));
    }
    for (name, value) in &ask.fields {
        if let Some(value) = value {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
    }
    let body = ask.body.as_deref();
    match body {
        Some(_) if ask.chunked => text.push_str("Transfer-Encoding: chunked\r\n"),
        Some(body) if !named("content-length") => {
            text.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        _ => {}
    }
    text.push_str("\r\n");
    match body {
        Some(body) if ask.chunked => {
            let (first, second) = body.split_at(body.len() / 2);
            for part in [first, second].into_iter().filter(|part| !part.is_empty()) {
                text.push_str(&format!("{:x}\r\n{part}\r\n", part.len()));
            }
            text.push_str("0\r\n\r\n");
        }
        body => text.push_str(body.unwrap_or_default()),
    }
    text.into_bytes()
}
