//! An origin that does exactly what its scripts say, and remembers every byte it was sent.
//!
//! It must never be cleverer than its script: no keep-alive bookkeeping, no implied headers, no
//! repair. A connection goes on to its next request when a script ends without closing it.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Duration, sleep};

mod script;
#[cfg(test)]
mod tests;

pub use script::{Action, Script};

use crate::loopback::Loopback;
use crate::reference_reader::{self, ParsedRequest};

/// Everything that one connection carried towards the origin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedConnection {
    /// Every byte received, in order.
    pub bytes: Vec<u8>,
    /// Requests that a script answered.
    pub requests: usize,
}

#[derive(Debug, Default)]
struct State {
    by_target: HashMap<String, Script>,
    on_accept: HashMap<usize, Script>,
    otherwise: Script,
    recorded: Vec<RecordedConnection>,
    seen: HashMap<String, usize>,
    /// The number of answers of [`Action::Mirror`] so far.
    mirrored: usize,
}

/// A running scripted origin on a loopback port; it stops when dropped.
#[derive(Debug)]
pub struct ScriptedOrigin {
    state: Arc<Mutex<State>>,
    loopback: Loopback,
}

impl ScriptedOrigin {
    /// Starts on a free port. Targets without a script get a 404 with `no-store`.
    ///
    /// # Errors
    /// Those of binding.
    pub async fn start() -> io::Result<Self> {
        let otherwise = Script::respond(
            "HTTP/1.1 404 Not Found\r\nCache-Control: no-store\r\nContent-Length: 0\r\n\r\n",
        );
        let state = Arc::new(Mutex::new(State { otherwise, ..State::default() }));
        let shared = Arc::clone(&state);
        let loopback = Loopback::start(move |stream, index| {
            shared.lock().recorded.push(RecordedConnection::default());
            let state = Arc::clone(&shared);
            let connection =
                OriginConnection { stream, index, state, unread: Vec::new(), last: None };
            tokio::spawn(async move {
                // A peer that goes away in the middle of a script is no failure of the origin.
                let _ = connection.run().await;
            });
        });
        Ok(Self { state, loopback: loopback.await? })
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.loopback.addr()
    }

    /// Answers requests for `target` (with its query, or without for any query) by `script` from
    /// now on.
    pub fn on(&self, target: &str, script: Script) {
        self.state.lock().by_target.insert(target.to_owned(), script);
    }

    /// Runs `script` on the connection numbered `index` (from 0) before anything is read from it.
    pub fn on_accept(&self, index: usize, script: Script) {
        self.state.lock().on_accept.insert(index, script);
    }

    /// Answers every other request by `script`.
    pub fn otherwise(&self, script: Script) {
        self.state.lock().otherwise = script;
    }

    /// The number of requests for exactly `target` that have begun.
    pub fn seen(&self, target: &str) -> usize {
        self.state.lock().seen.get(target).copied().unwrap_or(0)
    }

    /// Every target requested so far, in no order.
    pub fn targets(&self) -> Vec<String> {
        self.state.lock().seen.keys().cloned().collect()
    }

    /// Everything that each connection has carried so far, in the order of their acceptance.
    pub fn recorded(&self) -> Vec<RecordedConnection> {
        self.state.lock().recorded.clone()
    }

    /// Forgets recordings and counts; scripts stay.
    pub fn forget(&self) {
        let mut state = self.state.lock();
        state.seen.clear();
        for recorded in &mut state.recorded {
            *recorded = RecordedConnection::default();
        }
    }
}

struct OriginConnection {
    stream: TcpStream,
    index: usize,
    state: Arc<Mutex<State>>,
    /// Received and not yet taken as part of a request.
    unread: Vec<u8>,
    /// The latest request that was read to its end.
    last: Option<ParsedRequest>,
}

/// The further use of the connection.
#[derive(PartialEq, Eq)]
enum Next {
    Continue,
    Stop,
}

impl OriginConnection {
    async fn run(mut self) -> io::Result<()> {
        self.stream.set_nodelay(true)?;
        let greeting = self.state.lock().on_accept.remove(&self.index);
        if let Some(script) = greeting
            && self.perform(&script).await? == Next::Stop
        {
            return Ok(());
        }
        loop {
            let Some(script) = self.next_script().await? else { return Ok(()) };
            if self.perform(&script).await? == Next::Stop {
                return Ok(());
            }
        }
    }

    /// Awaits a request and finds its script; `None` when the peer is done or sends no valid HTTP.
    async fn next_script(&mut self) -> io::Result<Option<Script>> {
        let head = loop {
            match reference_reader::read_head(&self.unread) {
                Ok(Some((request, _))) => break request,
                Ok(None) => {}
                // The recording is what tests judge; there is nothing sensible to answer.
                Err(_) => return self.drain().await.map(|()| None),
            }
            if self.receive().await? == 0 {
                return Ok(None);
            }
        };
        let script = {
            let mut state = self.state.lock();
            *state.seen.entry(head.target.clone()).or_default() += 1;
            state.recorded[self.index].requests += 1;
            let path = head.target.split('?').next().unwrap_or_default();
            let found = state.by_target.get(&head.target).or_else(|| state.by_target.get(path));
            found.unwrap_or(&state.otherwise).clone()
        };
        if script.reads_body && !self.read_request().await? {
            return Ok(None);
        }
        Ok(Some(script))
    }

    /// Takes the rest of the request at the start of `unread`; whether it came whole.
    async fn read_request(&mut self) -> io::Result<bool> {
        loop {
            match reference_reader::read_first(&self.unread) {
                Ok(Some((request, used))) => {
                    self.unread.drain(..used);
                    self.last = Some(request);
                    return Ok(true);
                }
                Ok(None) => {}
                Err(_) => return self.drain().await.map(|()| false),
            }
            if self.receive().await? == 0 {
                return Ok(false);
            }
        }
    }

    async fn perform(&mut self, script: &Script) -> io::Result<Next> {
        for action in &script.actions {
            match action {
                Action::Send(bytes) => self.stream.write_all(bytes).await?,
                Action::Trickle { bytes, pause_ms } => {
                    for byte in bytes {
                        self.stream.write_all(&[*byte]).await?;
                        sleep(Duration::from_millis(*pause_ms)).await;
                    }
                }
                Action::Repeat { bytes, times } => {
                    for _ in 0..*times {
                        self.stream.write_all(bytes).await?;
                    }
                }
                Action::Mirror(fields) => {
                    let answer = self.mirror(fields);
                    self.stream.write_all(&answer).await?;
                }
                Action::DelayMs(pause_ms) => sleep(Duration::from_millis(*pause_ms)).await,
                Action::ReadRequest => {
                    if !self.read_request().await? {
                        return Ok(Next::Stop);
                    }
                }
                Action::FinishSending => self.stream.shutdown().await?,
                Action::Hang => return self.drain().await.map(|()| Next::Stop),
                Action::Close => {
                    self.note_arrived();
                    return Ok(Next::Stop);
                }
                Action::Reset => {
                    self.note_arrived();
                    self.stream.set_zero_linger()?;
                    return Ok(Next::Stop);
                }
            }
        }
        Ok(Next::Continue)
    }

    /// The answer of [`Action::Mirror`] to the latest request.
    fn mirror(&self, fields: &str) -> Vec<u8> {
        let number = {
            let mut state = self.state.lock();
            state.mirrored += 1;
            state.mirrored
        };
        let mut body = format!("answer {number}\n").into_bytes();
        if let Some(request) = &self.last {
            body.extend_from_slice(format!("{} {}\n", request.method, request.target).as_bytes());
            for (name, value) in &request.fields {
                for part in [name.as_bytes(), b": ", value, b"\n"] {
                    body.extend_from_slice(part);
                }
            }
            body.extend_from_slice(&request.body);
        }
        let fields = fields.replace("{n}", &number.to_string());
        let length = body.len();
        let head = format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: {length}\r\n\r\n");
        let head_only = self.last.as_ref().is_some_and(|request| request.method == "HEAD");
        [head.into_bytes(), if head_only { Vec::new() } else { body }].concat()
    }

    /// Reads once and records; the number of bytes, 0 at the end.
    async fn receive(&mut self) -> io::Result<usize> {
        let before = self.unread.len();
        let count = self.stream.read_buf(&mut self.unread).await?;
        self.state.lock().recorded[self.index].bytes.extend_from_slice(&self.unread[before..]);
        Ok(count)
    }

    /// Records what has arrived already, so that closing loses nothing of the recording.
    fn note_arrived(&mut self) {
        let before = self.unread.len();
        while self.stream.try_read_buf(&mut self.unread).is_ok_and(|count| count > 0) {}
        self.state.lock().recorded[self.index].bytes.extend_from_slice(&self.unread[before..]);
    }

    /// Records until the peer closes.
    async fn drain(&mut self) -> io::Result<()> {
        while self.receive().await? > 0 {}
        Ok(())
    }
}
