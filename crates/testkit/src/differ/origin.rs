//! An origin that follows a scenario's script and records its requests. It listens on a port and on
//! a unix socket.
//!
//! It must never do anything that the script does not say.

use std::collections::HashMap;
use std::fs::{self, Permissions};
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use parking_lot::Mutex;

use super::scenario::{Manner, ScriptedAnswer};
use crate::reference_reader::{self, ParsedRequest};

#[derive(Debug, Default)]
struct ScriptState {
    answers: Vec<ScriptedAnswer>,
    given: Vec<bool>,
    counts: HashMap<String, usize>,
    seen: Vec<Result<ParsedRequest, String>>,
    open: Vec<Stream>,
    /// Number of replies being sent.
    busy: usize,
}

/// A TCP or unix connection.
#[derive(Debug)]
enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    fn try_clone(&self) -> io::Result<Self> {
        match self {
            Self::Tcp(stream) => stream.try_clone().map(Self::Tcp),
            Self::Unix(stream) => stream.try_clone().map(Self::Unix),
        }
    }

    fn end(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Self::Unix(stream) => stream.shutdown(Shutdown::Both),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(into),
            Self::Unix(stream) => stream.read(into),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An origin; it runs as long as the process.
#[derive(Debug)]
pub(super) struct Origin {
    addr: SocketAddr,
    name: &'static str,
    state: Arc<Mutex<ScriptState>>,
}

impl Origin {
    /// Listens on a free port, and on `NAME.sock` in `folder`.
    pub(super) fn start(name: &'static str, folder: &Path) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let addr = listener.local_addr()?;
        let path = folder.join(format!("{name}.sock"));
        let local = UnixListener::bind(&path)?;
        // Varnish's worker runs as another user.
        fs::set_permissions(&path, Permissions::from_mode(0o666))?;
        let state = Arc::new(Mutex::new(ScriptState::default()));
        let (shared, other) = (Arc::clone(&state), Arc::clone(&state));
        thread::spawn(move || {
            for stream in listener.incoming().filter_map(Result::ok) {
                if stream.set_nodelay(true).is_ok() {
                    accept(Stream::Tcp(stream), name, &shared);
                }
            }
        });
        thread::spawn(move || {
            for stream in local.incoming().filter_map(Result::ok) {
                accept(Stream::Unix(stream), name, &other);
            }
        });
        Ok(Self { addr, name, state })
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    pub(super) fn port(&self) -> u16 {
        self.addr.port()
    }

    /// Takes new replies, and closes all connections.
    pub(super) fn reset(&self, answers: &[ScriptedAnswer]) {
        let mut state = self.state.lock();
        for stream in state.open.drain(..) {
            // It may be closed already.
            _ = stream.end();
        }
        let given = vec![false; answers.len()];
        *state = ScriptState { answers: answers.to_vec(), given, ..ScriptState::default() };
    }

    /// Returns true if a reply is being sent. An echo counts as sent when it begins.
    pub(super) fn busy(&self) -> bool {
        self.state.lock().busy > 0
    }

    /// Requests since the last [`reset`](Self::reset); an `Err` is bytes that are no request.
    pub(super) fn seen(&self) -> Vec<Result<ParsedRequest, String>> {
        self.state.lock().seen.clone()
    }
}

/// Serves a connection on a thread of its own.
fn accept(stream: Stream, name: &'static str, state: &Arc<Mutex<ScriptState>>) {
    if let Ok(own) = stream.try_clone() {
        state.lock().open.push(own);
    }
    let state = Arc::clone(state);
    // A peer that goes away is no failure of the origin.
    thread::spawn(move || _ = serve(stream, name, &state));
}

/// Serves the requests of a connection, one after the other.
fn serve(mut stream: Stream, name: &str, state: &Mutex<ScriptState>) -> io::Result<()> {
    let mut unread = Vec::new();
    loop {
        let request = match reference_reader::read_first(&unread) {
            Ok(Some((request, used))) => {
                unread.drain(..used);
                request
            }
            Ok(None) => {
                let mut piece = [0; 16384];
                match stream.read(&mut piece)? {
                    0 => return Ok(()),
                    count => unread.extend_from_slice(&piece[..count]),
                }
                continue;
            }
            Err(fault) => {
                let text = String::from_utf8_lossy(&unread).into_owned();
                state.lock().seen.push(Err(format!("{fault}: {text:?}")));
                return stream.end();
            }
        };
        let answer = {
            let mut state = state.lock();
            let answer = state.answer(name, &request);
            if !answer.manner.quiet {
                state.seen.push(Ok(request.clone()));
            }
            state.busy += 1;
            answer
        };
        let given = give(&mut stream, &request, &answer);
        {
            let mut state = state.lock();
            // A new scenario begins at 0.
            state.busy = state.busy.saturating_sub(1);
        }
        if answer.manner.echo {
            return echo(&mut stream);
        }
        if !given? {
            return stream.end();
        }
    }
}

impl ScriptState {
    fn answer(&mut self, name: &str, request: &ParsedRequest) -> ScriptedAnswer {
        let count = self.counts.entry(request.target.clone()).or_default();
        *count += 1;
        let number = count.to_string();
        let fitting: Vec<usize> =
            (0..self.answers.len()).filter(|at| fits(&self.answers[*at], request)).collect();
        let next = fitting.iter().find(|at| !self.given[**at]).or_else(|| fitting.last());
        let mut answer = match next {
            Some(at) => {
                self.given[*at] = true;
                self.answers[*at].clone()
            }
            None => ScriptedAnswer {
                status: "200 OK".to_owned(),
                body: format!("{name} %t #%n\n"),
                ..ScriptedAnswer::default()
            },
        };
        answer.body = answer.body.replace("%n", &number).replace("%t", &request.target);
        answer
    }
}

fn fits(answer: &ScriptedAnswer, request: &ParsedRequest) -> bool {
    let has = |(name, value): &(String, Option<String>)| {
        let values = request.values(name);
        value.as_ref().map_or(!values.is_empty(), |value| values.contains(&value.as_bytes()))
    };
    answer.method.as_ref().is_none_or(|method| *method == request.method)
        && (answer.target == "*" || answer.target == request.target)
        && answer.needs.iter().all(has)
}

/// Sends a reply. Returns true if the connection stays open.
fn give(stream: &mut Stream, request: &ParsedRequest, answer: &ScriptedAnswer) -> io::Result<bool> {
    let manner = &answer.manner;
    thread::sleep(Duration::from_millis(manner.delay_ms));
    if manner.drop {
        return Ok(false);
    }
    let mut head = format!("HTTP/1.1 {}\r\n", answer.status);
    let content = if manner.gzip && takes_gzip(request) {
        head.push_str("Content-Encoding: gzip\r\n");
        gzip(answer.body.as_bytes())?
    } else {
        answer.body.clone().into_bytes()
    };
    for (name, value) in &answer.fields {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    let bodiless = request.method == "HEAD"
        || ["1", "204", "304"].iter().any(|status| answer.status.starts_with(status));
    // A length must not announce a body that never comes.
    let lengthless = manner.close || (bodiless && request.method != "HEAD");
    let own = |name: &str| answer.fields.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
    if manner.chunked {
        head.push_str("Transfer-Encoding: chunked\r\n");
    } else if !lengthless && !own("content-length") {
        head.push_str(&format!("Content-Length: {}\r\n", content.len()));
    }
    head.push_str("\r\n");
    if manner.lf {
        head = head.replace("\r\n", "\n");
    }
    stream.write_all(head.as_bytes())?;
    if !bodiless {
        body(stream, manner, &content)?;
    }
    Ok(!manner.close && !manner.cut)
}

/// Sends received bytes back.
fn echo(stream: &mut Stream) -> io::Result<()> {
    let mut piece = [0; 4096];
    loop {
        match stream.read(&mut piece)? {
            0 => return Ok(()),
            count => stream.write_all(&piece[..count])?,
        }
    }
}

fn takes_gzip(request: &ParsedRequest) -> bool {
    request.values("accept-encoding").iter().any(|value| value.starts_with(b"gzip"))
}

fn gzip(plain: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(plain)?;
    encoder.finish()
}

fn body(stream: &mut Stream, manner: &Manner, bytes: &[u8]) -> io::Result<()> {
    let (first, second) = bytes.split_at(bytes.len() / 2);
    for (part, last) in [(first, false), (second, true)] {
        if last {
            thread::sleep(Duration::from_millis(manner.stall_ms));
        }
        if last && manner.cut {
            return Ok(());
        }
        if manner.chunked && !part.is_empty() {
            stream.write_all(format!("{:x}\r\n", part.len()).as_bytes())?;
        }
        stream.write_all(part)?;
        if manner.chunked && !part.is_empty() {
            stream.write_all(b"\r\n")?;
        }
    }
    if manner.chunked { stream.write_all(b"0\r\n\r\n") } else { Ok(()) }
}
