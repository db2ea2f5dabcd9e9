//! A FastCGI application that follows scripts and records its requests.
//!
//! It must not share code with the product: it parses and writes records itself.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Duration, sleep};

use crate::loopback::Loopback;

const END_REQUEST: u8 = 3;
const STDOUT: u8 = 6;
const STDERR: u8 = 7;

/// An act of the application.
#[derive(Clone, Debug)]
pub enum Act {
    /// Sends this as STDOUT, in one record.
    Stdout(Vec<u8>),
    /// Sends this as STDERR, in one record.
    Stderr(Vec<u8>),
    /// Sends these bytes as they are.
    Raw(Vec<u8>),
    /// Ends the request with this protocol status; 0 is success, 2 overload.
    End(u8),
    /// Reads the request's body to its end.
    ReadStdin,
    /// Repeats an act.
    Repeat(Box<Self>, usize),
    /// Waits.
    DelayMs(u64),
    /// Closes the connection.
    Close,
    /// Resets the connection.
    Reset,
    /// Keeps the connection open and sends nothing.
    Hang,
}

/// The acts for a request.
#[derive(Clone, Debug, Default)]
pub struct ApplicationScript {
    acts: Vec<Act>,
    bytewise: bool,
}

impl ApplicationScript {
    /// Makes a script of `acts`; after them the connection's next request is read.
    pub fn new(acts: Vec<Act>) -> Self {
        Self { acts, bytewise: false }
    }

    /// Makes a script that reads the body, sends `output` (head and body) and ends with success.
    pub fn answer(output: impl Into<Vec<u8>>) -> Self {
        Self::new(vec![Act::ReadStdin, Act::Stdout(output.into()), Act::End(0)])
    }

    /// Makes the script send single bytes.
    #[must_use]
    pub fn bytewise(mut self) -> Self {
        self.bytewise = true;
        self
    }
}

/// A received request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FastcgiRequest {
    /// Number of the connection, from 0.
    pub connection: usize,
    /// True if the connection must stay open.
    pub keep: bool,
    /// Parameters in order.
    pub params: Vec<(String, String)>,
    /// The body, as far as it was read.
    pub stdin: Vec<u8>,
    /// Number of records that carried the body.
    pub stdin_records: usize,
}

impl FastcgiRequest {
    /// The value of a parameter; empty if absent.
    ///
    /// # Panics
    /// If it is repeated.
    pub fn param(&self, name: &str) -> &str {
        let mut values = self.params.iter().filter(|(own, _)| own == name).map(|(_, v)| &**v);
        let first = values.next().unwrap_or_default();
        assert_eq!(values.next(), None, "{name} came twice");
        first
    }

    /// Returns true if the parameter is present.
    pub fn has(&self, name: &str) -> bool {
        self.params.iter().any(|(own, _)| own == name)
    }
}

/// One record of type `kind` for request `id`.
pub fn record(kind: u8, id: u16, content: &[u8], padding: u8) -> Vec<u8> {
    let length = u16::try_from(content.len()).expect("a record holds 65535 bytes");
    let mut bytes = vec![1, kind];
    bytes.extend(id.to_be_bytes());
    bytes.extend(length.to_be_bytes());
    bytes.extend([padding, 0]);
    bytes.extend(content);
    bytes.resize(bytes.len() + usize::from(padding), 0);
    bytes
}

#[derive(Debug, Default)]
struct AppState {
    by_script: HashMap<String, ApplicationScript>,
    otherwise: ApplicationScript,
    asked: Vec<FastcgiRequest>,
    connections: usize,
    aborted: usize,
}

/// A running application on a loopback port; dropping it ends its listener.
#[derive(Debug)]
pub struct Application {
    state: Arc<Mutex<AppState>>,
    loopback: Loopback,
}

impl Application {
    /// Starts on a free port. A script without acts sends an empty page.
    ///
    /// # Errors
    /// Those of binding.
    pub async fn start() -> io::Result<Self> {
        let otherwise = ApplicationScript::answer("Content-Type: text/plain\r\n\r\n");
        let state = Arc::new(Mutex::new(AppState { otherwise, ..AppState::default() }));
        let shared = Arc::clone(&state);
        let loopback = Loopback::start(move |stream, number| {
            shared.lock().connections += 1;
            let connection = AppConnection { stream, number, state: Arc::clone(&shared), at: 0 };
            // A peer that goes away is no failure of the application.
            tokio::spawn(async move { connection.run().await });
        });
        Ok(Self { state, loopback: loopback.await? })
    }

    /// The address of its listener.
    pub fn addr(&self) -> SocketAddr {
        self.loopback.addr()
    }

    /// Runs `program` for the script or REQUEST_URI `name`.
    pub fn on(&self, name: &str, program: ApplicationScript) {
        self.state.lock().by_script.insert(name.to_owned(), program);
    }

    /// Runs `program` for all other requests.
    pub fn otherwise(&self, program: ApplicationScript) {
        self.state.lock().otherwise = program;
    }

    /// All requests so far whose parameters are complete.
    pub fn asked(&self) -> Vec<FastcgiRequest> {
        self.state.lock().asked.clone()
    }

    /// The latest of these requests.
    ///
    /// # Panics
    /// If there was none.
    pub fn last(&self) -> FastcgiRequest {
        self.state.lock().asked.last().expect("a request").clone()
    }

    /// Number of accepted connections.
    pub fn connections(&self) -> usize {
        self.state.lock().connections
    }

    /// Number of aborted requests.
    pub fn aborted(&self) -> usize {
        self.state.lock().aborted
    }
}

struct AppConnection {
    stream: TcpStream,
    number: usize,
    state: Arc<Mutex<AppState>>,
    /// Index of the current request.
    at: usize,
}

/// The next act on the connection.
#[derive(PartialEq, Eq)]
enum AppNext {
    Continue,
    Stop,
}

impl AppConnection {
    async fn run(mut self) -> io::Result<()> {
        self.stream.set_nodelay(true)?;
        loop {
            let program = self.request().await?;
            for act in &program.acts {
                if self.perform(act, program.bytewise).await? == AppNext::Stop {
                    return Ok(());
                }
            }
            if !self.state.lock().asked[self.at].keep {
                return self.stream.shutdown().await;
            }
        }
    }

    /// Reads a record. Returns its type and content.
    async fn record(&mut self) -> io::Result<(u8, Vec<u8>)> {
        let mut header = [0; 8];
        self.stream.read_exact(&mut header).await?;
        let [version, kind, id_high, id_low, high, low, padding, _] = header;
        if (version, id_high, id_low) != (1, 0, 1) {
            return Err(io::Error::other(format!("a strange record: {header:?}")));
        }
        let length = usize::from(high) << 8 | usize::from(low);
        let mut content = vec![0; length + usize::from(padding)];
        self.stream.read_exact(&mut content).await?;
        content.truncate(length);
        if kind == 2 {
            self.state.lock().aborted += 1;
        }
        Ok((kind, content))
    }

    /// Reads to the end of a request's parameters.
    async fn request(&mut self) -> io::Result<ApplicationScript> {
        let (mut keep, mut stream) = (None, Vec::new());
        loop {
            match (self.record().await?, keep) {
                ((1, content), None) => keep = Some(content.get(2) == Some(&1)),
                ((4, content), Some(keep)) if content.is_empty() => {
                    let params = params(&stream).ok_or_else(|| io::Error::other("parameters"))?;
                    let connection = self.number;
                    let asked =
                        FastcgiRequest { connection, keep, params, ..FastcgiRequest::default() };
                    let mut state = self.state.lock();
                    let named = |name| state.by_script.get(asked.param(name)).cloned();
                    let program = named("REQUEST_URI").or_else(|| named("SCRIPT_NAME"));
                    let program = program.unwrap_or_else(|| state.otherwise.clone());
                    self.at = state.asked.len();
                    state.asked.push(asked);
                    return Ok(program);
                }
                ((4, content), Some(_)) => stream.extend(content),
                // The rest of the last request's body.
                ((5, _), None) => {}
                ((kind, _), _) => return Err(io::Error::other(format!("record {kind}"))),
            }
        }
    }

    async fn perform(&mut self, act: &Act, bytewise: bool) -> io::Result<AppNext> {
        match act {
            Act::Stdout(bytes) => self.send(&record(STDOUT, 1, bytes, 0), bytewise).await?,
            Act::Stderr(bytes) => self.send(&record(STDERR, 1, bytes, 3), bytewise).await?,
            Act::Raw(bytes) => self.send(bytes, bytewise).await?,
            Act::End(status) => {
                let end = record(END_REQUEST, 1, &[0, 0, 0, 0, *status, 0, 0, 0], 0);
                self.send(&end, bytewise).await?;
            }
            Act::ReadStdin => loop {
                let (kind, content) = self.record().await?;
                if kind != 5 || content.is_empty() {
                    break;
                }
                let asked = &mut self.state.lock().asked[self.at];
                asked.stdin.extend(content);
                asked.stdin_records += 1;
            },
            Act::Repeat(act, times) => {
                for _ in 0..*times {
                    if Box::pin(self.perform(act, bytewise)).await? == AppNext::Stop {
                        return Ok(AppNext::Stop);
                    }
                }
            }
            Act::DelayMs(ms) => sleep(Duration::from_millis(*ms)).await,
            Act::Close => return Ok(AppNext::Stop),
            Act::Reset => {
                self.stream.set_zero_linger()?;
                return Ok(AppNext::Stop);
            }
            Act::Hang => {
                while self.record().await.is_ok() {}
                return Ok(AppNext::Stop);
            }
        }
        Ok(AppNext::Continue)
    }

    async fn send(&mut self, bytes: &[u8], bytewise: bool) -> io::Result<()> {
        if !bytewise {
            return self.stream.write_all(bytes).await;
        }
        for byte in bytes {
            self.stream.write_all(&[*byte]).await?;
            tokio::task::yield_now().await;
        }
        Ok(())
    }
}

/// Parses names and values (FastCGI 1.0, 3.4).
fn params(mut bytes: &[u8]) -> Option<Vec<(String, String)>> {
    let mut pairs = Vec::new();
    while !bytes.is_empty() {
        let (name, rest) = length(bytes)?;
        let (value, rest) = length(rest)?;
        let (name, rest) = rest.split_at_checked(name)?;
        let (value, rest) = rest.split_at_checked(value)?;
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        pairs.push((text(name), text(value)));
        bytes = rest;
    }
    Some(pairs)
}

fn length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    match bytes {
        [short @ 0..=127, rest @ ..] => Some((usize::from(*short), rest)),
        [a, b, c, d, rest @ ..] => {
            let long = u32::from_be_bytes([a & 0x7f, *b, *c, *d]);
            Some((usize::try_from(long).ok()?, rest))
        }
        _ => None,
    }
}
