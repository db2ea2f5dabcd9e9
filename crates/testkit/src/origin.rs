//! An origin that follows its scripts and records every byte that it receives.
//!
//! It must never do anything that its script does not say: no keep-alive, no implied fields, no
//! repair. A connection continues with the next request if a script ends without closing it.

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

/// The recorded bytes of one connection to the origin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedConnection {
    /// Every byte received, in order.
    pub bytes: Vec<u8>,
    /// Number of requests that a script answered.
    pub requests: usize,
}

#[derive(Debug, Default)]
struct State {
    by_target: HashMap<String, Script>,
    on_accept: HashMap<usize, Script>,
    otherwise: Script,
    recorded: Vec<RecordedConnection>,
    seen: HashMap<String, usize>,
    /// Number of answers of [`Action::Mirror`] so far.
    mirrored: usize,
}

/// A running origin on a loopback port; dropping it ends its listener.
#[derive(Debug)]
pub struct ScriptedOrigin {
    state: Arc<Mutex<State>>,
    loopback: Loopback,
}

impl ScriptedOrigin {
    /// Starts on a free port. A target without a script gets a 404 with `no-store`.
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
                // A peer that goes away is no failure of the origin.
                let _ = connection.run().await;
            });
        });
        Ok(Self { state, loopback: loopback.await? })
    }

    /// The address of its listener.
    pub fn addr(&self) -> SocketAddr {
        self.loopback.addr()
    }

    /// Sets the script for requests for `target` (with its query, or without for any query).
    pub fn on(&self, target: &str, script: Script) {
        self.state.lock().by_target.insert(target.to_owned(), script);
    }

    /// Runs `script` on the connection number `index` (from 0) before reading from it.
    pub fn on_accept(&self, index: usize, script: Script) {
        self.state.lock().on_accept.insert(index, script);
    }

    /// Sets the script for all other requests.
    pub fn otherwise(&self, script: Script) {
        self.state.lock().otherwise = script;
    }

    /// Number of requests for exactly `target`.
    pub fn seen(&self, target: &str) -> usize {
        self.state.lock().seen.get(target).copied().unwrap_or(0)
    }

    /// All requested targets, in no order.
    pub fn targets(&self) -> Vec<String> {
        self.state.lock().seen.keys().cloned().collect()
    }

    /// The records of all connections, in order of acceptance.
    pub fn recorded(&self) -> Vec<RecordedConnection> {
        self.state.lock().recorded.clone()
    }

    /// Removes records and counts; scripts stay.
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
    /// Received bytes that belong to no complete request yet.
    unread: Vec<u8>,
    /// The latest complete request.
    last: Option<ParsedRequest>,
}

/// The next act on the connection.
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

    /// Waits for a request and finds its script; `None` if the peer has closed or sends invalid
    /// HTTP.
    async fn next_script(&mut self) -> io::Result<Option<Script>> {
        let head = loop {
            match reference_reader::read_head(&self.unread) {
                Ok(Some((request, _))) => break request,
                Ok(None) => {}
                // Tests judge the record; there is no sensible answer.
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

    /// Takes the rest of the request at the start of `unread`. Returns true if it is complete.
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

    /// Reads once and records. Returns the number of bytes, 0 at the end.
    async fn receive(&mut self) -> io::Result<usize> {
        let before = self.unread.len();
        let count = self.stream.read_buf(&mut self.unread).await?;
        self.state.lock().recorded[self.index].bytes.extend_from_slice(&self.unread[before..]);
        Ok(count)
    }

    /// Records bytes that have arrived, so that closing loses none of them.
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
