//! Wire clients, which talk to the engines: HTTP/1 as bytes, and HTTP/2 with the client that judges
//! every frame. They must share no code with the engines.

use std::io;
use std::pin::pin;
use std::time::Duration;

use rt::simulation::random;
use testkit::h2::{Client, Request, RequestOutcome, error};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::time::sleep;

use crate::http;
use crate::plan::Engine;
use crate::simulation::Simulation;

/// A client's connection, if it is open.
#[derive(Default)]
pub(crate) struct EngineConnection {
    http1: Option<UnixStream>,
    http2: Option<Client<UnixStream>>,
    /// Requests in flight, which a client that leaves may not have sent.
    pub(crate) under_way: u64,
}

/// A request as text: its head in HTTP/1.1, and a body, which is chunked if the head says so.
pub(crate) struct Outgoing<'a> {
    pub(crate) head: &'a str,
    pub(crate) body: &'a [u8],
}

impl Outgoing<'_> {
    fn bytes(&self) -> Vec<u8> {
        if http::field(self.head, "transfer-encoding").is_none() {
            return [self.head.as_bytes(), self.body].concat();
        }
        let chunks = http::chunked(self.body, 1 + random(8_000) as usize);
        [self.head.as_bytes(), &chunks].concat()
    }
}

/// An answer as received.
pub(crate) struct ClientAnswer {
    pub(crate) status: u16,
    /// The head as lines.
    pub(crate) head: String,
    /// The body; `None` if it was cut off.
    pub(crate) body: Option<Vec<u8>>,
}

impl EngineConnection {
    /// Sends a request and reads its answer.
    ///
    /// # Errors
    /// An error of the engine.
    pub(crate) async fn ask(
        &mut self,
        simulation: &Simulation,
        outgoing: &Outgoing<'_>,
    ) -> Result<ClientAnswer, String> {
        match simulation.plan.engine {
            Engine::Http2 => self.ask_http2(simulation, outgoing).await,
            Engine::Direct | Engine::Http1 => {
                let mut answers = self.pipeline(simulation, std::slice::from_ref(outgoing)).await?;
                answers.pop().ok_or_else(|| "no answer".to_owned())
            }
        }
    }

    /// Pipelines requests over HTTP/1, and reads the answers. There are fewer if one of them closes
    /// the connection.
    ///
    /// # Errors
    /// Those of [`EngineConnection::ask`].
    pub(crate) async fn pipeline(
        &mut self,
        simulation: &Simulation,
        outgoing: &[Outgoing<'_>],
    ) -> Result<Vec<ClientAnswer>, String> {
        let mut stream = match self.http1.take() {
            Some(stream) => stream,
            None => connect(simulation).await?,
        };
        simulation.asked.set(simulation.asked.get() + outgoing.len() as u64);
        self.under_way = outgoing.len() as u64;
        let (answers, keeps) = exchange(simulation, &mut stream, outgoing).await?;
        self.under_way = 0;
        self.http1 = keeps.then_some(stream);
        let unanswered = outgoing.len() - answers.len();
        simulation.left.set(simulation.left.get() + unanswered as u64);
        Ok(answers)
    }

    async fn ask_http2(
        &mut self,
        simulation: &Simulation,
        outgoing: &Outgoing<'_>,
    ) -> Result<ClientAnswer, String> {
        let mut client = match self.http2.take() {
            Some(client) => client,
            None => {
                let stream = connect(simulation).await?;
                let mut client = Client::over(stream).patience(Duration::from_secs(600));
                let greeted = client.greet(&[]).await;
                greeted.map_err(|error| format!("no greeting: {error}"))?;
                client
            }
        };
        simulation.asked.set(simulation.asked.get() + 1);
        self.under_way = 1;
        let mut words = outgoing.head.split(' ');
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let host = http::field(outgoing.head, "host").unwrap_or_default();
        let mut request = Request::new(method, path).set(":authority", host);
        for line in outgoing.head.lines().skip(1) {
            if let Some((name, value)) = line.split_once(':')
                && !["host", "transfer-encoding"].contains(&&*name.to_ascii_lowercase())
            {
                request = request.set(&name.to_ascii_lowercase(), value.trim());
            }
        }
        let fate = if outgoing.body.is_empty() {
            client.fetch(&request).await
        } else {
            let asked = client.ask(&request, false).await;
            let stream = asked.map_err(|error| format!("no stream: {error}"))?;
            // The answer may come before the whole upload.
            _ = client.upload(stream, outgoing.body).await;
            client.outcome(stream).await
        };
        let (answer, is_whole) = match fate {
            RequestOutcome::Answered(answer) => (answer, true),
            // The engine had no capacity for it; such a request may be sent again.
            RequestOutcome::Reset(error::REFUSED_STREAM, answer) => {
                simulation.left.set(simulation.left.get() + 1);
                (answer, false)
            }
            // A body that is cut off is a reset of its stream only.
            RequestOutcome::Reset(_, answer) if answer.status != 0 => (answer, false),
            other => return Err(format!("over HTTP/2: {other:?}")),
        };
        self.under_way = 0;
        self.http2 = Some(client);
        let mut head = String::from("\n");
        for (name, value) in &answer.fields {
            head.push_str(&format!("{name}: {}\n", String::from_utf8_lossy(value)));
        }
        Ok(ClientAnswer { status: answer.status, head, body: is_whole.then_some(answer.body) })
    }
}

async fn connect(simulation: &Simulation) -> Result<UnixStream, String> {
    simulation.port.connect().await.map_err(|error| format!("no connection: {error}"))
}

/// Sends `bytes`, sometimes in pieces with pauses.
async fn send(
    simulation: &Simulation,
    stream: &mut (impl AsyncWrite + Unpin),
    mut bytes: &[u8],
) -> io::Result<()> {
    while !bytes.is_empty() {
        let most = bytes.len() as u64;
        let cuts = !simulation.plan.quiet && random(3) == 0;
        let now = if cuts { 1 + random(most) } else { most };
        let (piece, rest) = bytes.split_at(now as usize);
        stream.write_all(piece).await?;
        bytes = rest;
        if !bytes.is_empty() {
            sleep(Duration::from_millis(random(200))).await;
        }
    }
    Ok(())
}

/// Sends requests and reads their answers. Also returns true if the connection stays open.
async fn exchange(
    simulation: &Simulation,
    stream: &mut UnixStream,
    outgoing: &[Outgoing<'_>],
) -> Result<(Vec<ClientAnswer>, bool), String> {
    let (mut read, mut write) = stream.split();
    let bytes: Vec<u8> = outgoing.iter().flat_map(Outgoing::bytes).collect();
    let mut sent = pin!(send(simulation, &mut write, &bytes));
    let mut answered = pin!(receive_all(simulation, &mut read, outgoing));
    tokio::select! {
        biased;
        // An engine may answer before it has read the body, and then reads no more of it.
        answers = &mut answered => answers.map(|(answers, _)| (answers, false)),
        _ = &mut sent => answered.await,
    }
}

async fn receive_all(
    simulation: &Simulation,
    stream: &mut (impl AsyncRead + Unpin),
    outgoing: &[Outgoing<'_>],
) -> Result<(Vec<ClientAnswer>, bool), String> {
    let (mut answers, mut unread) = (Vec::new(), Vec::new());
    for one in outgoing {
        let is_head = one.head.starts_with("HEAD");
        let (answer, keeps) = receive(simulation, stream, is_head, &mut unread).await?;
        answers.push(answer);
        if !keeps {
            return Ok((answers, false));
        }
    }
    match unread.len() {
        0 => Ok((answers, true)),
        more => Err(format!("{more} bytes after an answer")),
    }
}

/// Reads an answer, which may begin in `unread`. Also returns true if the connection stays open.
async fn receive(
    simulation: &Simulation,
    stream: &mut (impl AsyncRead + Unpin),
    is_head: bool,
    unread: &mut Vec<u8>,
) -> Result<(ClientAnswer, bool), String> {
    let (status, head) = loop {
        let end = loop {
            if let Some(at) = unread.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            if read_more(simulation, stream, unread).await == 0 {
                return Err("the connection ended without an answer".to_owned());
            }
        };
        let rest = unread.split_off(end);
        let head = String::from_utf8_lossy(&std::mem::replace(unread, rest)).into_owned();
        let status = head.get(9..12).and_then(|digits| digits.parse::<u16>().ok());
        let status = status.ok_or_else(|| format!("no status: {head}"))?;
        // Interim responses come before the answer.
        if status >= 200 {
            break (status, head);
        }
    };
    let keeps = http::field(&head, "connection").is_none_or(|value| value != "close");
    let body = if is_head || matches!(status, 204 | 304) {
        Some(Vec::new())
    } else if http::field(&head, "transfer-encoding") == Some("chunked") {
        read_chunks(simulation, stream, unread).await?
    } else if let Some(length) = http::number(&head, "content-length") {
        read_length(simulation, stream, unread, length as usize).await
    } else {
        while read_more(simulation, stream, unread).await > 0 {}
        Some(std::mem::take(unread))
    };
    let keeps = keeps && body.is_some();
    Ok((ClientAnswer { status, head, body }, keeps))
}

/// Pauses before the next piece, sometimes.
pub(crate) async fn pause_randomly(simulation: &Simulation) {
    if !simulation.plan.quiet && random(10) == 0 {
        sleep(Duration::from_millis(random(400))).await;
    }
}

/// Reads more, sometimes slowly; 0 at the end of the connection, orderly or not.
async fn read_more(
    simulation: &Simulation,
    stream: &mut (impl AsyncRead + Unpin),
    into: &mut Vec<u8>,
) -> usize {
    pause_randomly(simulation).await;
    stream.read_buf(into).await.unwrap_or(0)
}

/// Reads `length` bytes; `None` if fewer come.
pub(crate) async fn read_length(
    simulation: &Simulation,
    stream: &mut (impl AsyncRead + Unpin),
    unread: &mut Vec<u8>,
    length: usize,
) -> Option<Vec<u8>> {
    while unread.len() < length {
        if read_more(simulation, stream, unread).await == 0 {
            return None;
        }
    }
    let rest = unread.split_off(length);
    Some(std::mem::replace(unread, rest))
}

/// Reads a chunked body; `None` if it is cut off.
pub(crate) async fn read_chunks(
    simulation: &Simulation,
    stream: &mut (impl AsyncRead + Unpin),
    unread: &mut Vec<u8>,
) -> Result<Option<Vec<u8>>, String> {
    let mut body = Vec::new();
    loop {
        let end = loop {
            if let Some(at) = unread.windows(2).position(|two| two == b"\r\n") {
                break at + 2;
            }
            if read_more(simulation, stream, unread).await == 0 {
                return Ok(None);
            }
        };
        let rest = unread.split_off(end);
        let line = std::mem::replace(unread, rest);
        let line = String::from_utf8_lossy(&line).into_owned();
        let size = usize::from_str_radix(line.trim(), 16);
        let size = size.map_err(|_| format!("no chunk size: {line:?}"))?;
        let Some(chunk) = read_length(simulation, stream, unread, size + 2).await else {
            return Ok(None);
        };
        if !chunk.ends_with(b"\r\n") {
            return Err("a chunk is longer than it says".to_owned());
        }
        if size == 0 {
            return Ok(Some(body));
        }
        body.extend_from_slice(&chunk[..size]);
    }
}
