//! A client connection of HTTP/2 that sends what its test says, and judges what it receives.
//!
//! Every wait has a limit. Preface, acknowledgements and windows are handled as [`Manners`] say;
//! without manners the client sends only what its test does.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::frames::{Frame, PREFACE, error, flag, kind};
use super::{Exchange, Judge, ProtocolFault, Request};
use crate::client::WriteSplit;
use crate::reply::ConnectionEnd;

#[cfg(test)]
mod tests;

/// Duties that a client fulfils by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Manners {
    /// True if it acknowledges SETTINGS and PING.
    pub acknowledges: bool,
    /// True if it restores both windows after DATA.
    pub refills: bool,
}

impl Manners {
    /// All duties.
    pub const GOOD: Self = Self { acknowledges: true, refills: true };
    /// All duties except windows.
    pub const OWN_WINDOWS: Self = Self { acknowledges: true, refills: false };
    /// No duties.
    pub const NONE: Self = Self { acknowledges: false, refills: false };
}

/// The result of one read from the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectionEvent {
    /// A valid frame.
    Frame(Frame),
    /// The connection is over.
    Over(ConnectionEnd),
    /// Nothing in time.
    Silent,
    /// The server violated the protocol; reading stops here.
    Faulty(ProtocolFault),
}

/// The outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestOutcome {
    /// A whole response, possibly followed by a reset.
    Answered(Exchange),
    /// A reset before the response was whole, with its code.
    Reset(u32, Exchange),
    /// The end of the connection, with the code of the last GOAWAY.
    Over(Farewell),
    /// Nothing more in time.
    Silent(Exchange),
    /// The server violated the protocol.
    Faulty(ProtocolFault),
}

impl RequestOutcome {
    /// The whole response.
    ///
    /// # Panics
    /// If the outcome is another one; `asked` is for the message.
    pub fn answer(self, asked: &str) -> Exchange {
        match self {
            Self::Answered(exchange) => exchange,
            other => panic!("{asked}: no whole answer but {other:?}"),
        }
    }

    /// The code of a reset before the response's end.
    pub fn reset(&self) -> Option<u32> {
        match self {
            Self::Reset(code, _) => Some(*code),
            _ => None,
        }
    }
}

/// The end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Farewell {
    /// The code of the last GOAWAY.
    pub code: Option<u32>,
    /// The end of the transport; [`ConnectionEnd::Open`] if it did not end in time.
    pub end: ConnectionEnd,
}

/// A client connection over any transport.
pub struct Client<S> {
    stream: S,
    received: Vec<u8>,
    judge: Judge,
    fault: Option<ProtocolFault>,
    end: ConnectionEnd,
    manners: Manners,
    patience: Duration,
    next_stream: u32,
    next_ping: u64,
    scheme: &'static str,
}

impl Client<TcpStream> {
    /// Connects in cleartext. Nothing is sent yet.
    ///
    /// # Errors
    /// Those of connecting.
    pub async fn connect(addr: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(addr).await?;
        stream.set_nodelay(true)?;
        Ok(Self::over(stream))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    /// Wraps an open transport. The limit of every wait is ten seconds.
    pub fn over(stream: S) -> Self {
        Self {
            stream,
            received: Vec::new(),
            judge: Judge::new(),
            fault: None,
            end: ConnectionEnd::Open,
            manners: Manners::GOOD,
            patience: Duration::from_secs(10),
            next_stream: 1,
            next_ping: 1,
            scheme: "http",
        }
    }

    /// Sets the limit of every wait.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Sets the duties that it fulfils by itself.
    #[must_use]
    pub fn manners(mut self, manners: Manners) -> Self {
        self.manners = manners;
        self
    }

    /// Makes [`Client::get`] and similar methods send the scheme `https`.
    #[must_use]
    pub fn secure(mut self) -> Self {
        self.scheme = "https";
        self
    }

    /// The judge of all frames so far.
    pub fn judge(&self) -> &Judge {
        &self.judge
    }

    /// Sends the preface and SETTINGS with `values`.
    ///
    /// # Errors
    /// As [`Client::send`].
    pub async fn greet(&mut self, values: &[(u16, u32)]) -> io::Result<()> {
        let bytes = [PREFACE, &Frame::settings(values).bytes()].concat();
        self.send(&bytes).await
    }

    /// Sends `bytes` as they are.
    ///
    /// # Errors
    /// Those of writing; [`io::ErrorKind::TimedOut`] when the server takes them too slowly.
    pub async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.send_in(bytes, WriteSplit::Whole).await
    }

    /// Sends `bytes`, divided as `pieces`.
    ///
    /// # Errors
    /// Those of [`Client::send`].
    pub async fn send_in(&mut self, bytes: &[u8], pieces: WriteSplit) -> io::Result<()> {
        self.judge.sent(bytes);
        let writing = async {
            for piece in pieces.cut(bytes) {
                self.stream.write_all(piece).await?;
                self.stream.flush().await?;
                if pieces != WriteSplit::Whole {
                    tokio::task::yield_now().await;
                }
            }
            Ok(())
        };
        timeout(self.patience, writing).await.map_err(|_| io::ErrorKind::TimedOut)?
    }

    /// Sends one frame.
    ///
    /// # Errors
    /// As [`Client::send`].
    pub async fn send_frame(&mut self, frame: &Frame) -> io::Result<()> {
        self.send(&frame.bytes()).await
    }

    /// Returns the number of a new stream.
    pub fn new_stream(&mut self) -> u32 {
        let stream = self.next_stream;
        self.next_stream += 2;
        stream
    }

    /// Sends a request's head on a new stream; `end` if it has no body.
    ///
    /// # Errors
    /// As [`Client::send`].
    pub async fn ask(&mut self, request: &Request, end: bool) -> io::Result<u32> {
        let stream = self.new_stream();
        self.send(&request.bytes(stream, end)).await?;
        Ok(stream)
    }

    /// Sends `body` on `stream` and ends it, as fast as the server's windows allow.
    ///
    /// # Errors
    /// Those of [`Client::send`]; [`io::ErrorKind::TimedOut`] if a window stays closed, and
    /// [`io::ErrorKind::ConnectionAborted`] if stream or connection end first.
    pub async fn upload(&mut self, stream: u32, body: &[u8]) -> io::Result<()> {
        let mut rest = body;
        loop {
            let open = self.judge.may_send(stream).max(0) as usize;
            let some = open.min(self.judge.may_send_at_once()).min(rest.len());
            if some > 0 || rest.is_empty() {
                let (piece, after) = rest.split_at(some);
                rest = after;
                self.send_frame(&Frame::data(stream, piece, rest.is_empty())).await?;
                if rest.is_empty() {
                    return Ok(());
                }
            } else {
                match self.step().await {
                    ConnectionEvent::Frame(_) => {}
                    ConnectionEvent::Silent => return Err(io::ErrorKind::TimedOut.into()),
                    _ => return Err(io::ErrorKind::ConnectionAborted.into()),
                }
            }
            if self.judge.exchange(stream).is_some_and(Exchange::over) {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
        }
    }

    /// Sends a GET of `path`.
    pub async fn get(&mut self, path: &str) -> RequestOutcome {
        let request = Request::get(path).set(":scheme", self.scheme);
        self.fetch(&request).await
    }

    /// Sends a request without a body and waits for its outcome.
    pub async fn fetch(&mut self, request: &Request) -> RequestOutcome {
        let stream = self.new_stream();
        // A failure to send shows in the outcome.
        _ = self.send(&request.bytes(stream, true)).await;
        self.outcome(stream).await
    }

    /// Waits for the outcome of the request on `stream`.
    pub async fn outcome(&mut self, stream: u32) -> RequestOutcome {
        loop {
            if let Some(fault) = &self.fault {
                return RequestOutcome::Faulty(fault.clone());
            }
            let exchange = self.judge.exchange(stream).filter(|exchange| exchange.over());
            match exchange.map(|exchange| (exchange, exchange.whole, exchange.reset)) {
                Some((exchange, true, _)) => return RequestOutcome::Answered(exchange.clone()),
                Some((exchange, _, code)) => {
                    return RequestOutcome::Reset(
                        code.unwrap_or(error::NO_ERROR),
                        exchange.clone(),
                    );
                }
                None => {}
            }
            match self.step().await {
                ConnectionEvent::Frame(_) => {}
                ConnectionEvent::Faulty(fault) => return RequestOutcome::Faulty(fault),
                ConnectionEvent::Over(_) => return RequestOutcome::Over(self.ending()),
                ConnectionEvent::Silent => {
                    let exchange = self.judge.exchange(stream).cloned();
                    return RequestOutcome::Silent(exchange.unwrap_or_default());
                }
            }
        }
    }

    /// Reads until `holds` is true, or the end, a fault or a timeout. Returns the last result of
    /// `holds`.
    pub async fn until(&mut self, mut holds: impl FnMut(&Judge) -> bool) -> bool {
        loop {
            if holds(&self.judge) {
                return true;
            }
            if !matches!(self.step().await, ConnectionEvent::Frame(_)) {
                return false;
            }
        }
    }

    /// Sends a PING and waits for its answer: then the server has read everything before it.
    pub async fn ping(&mut self) -> bool {
        let data = self.next_ping.to_be_bytes();
        self.next_ping += 1;
        _ = self.send_frame(&Frame::ping(data)).await;
        self.until(|judge| !judge.awaits_ping(data)).await
    }

    /// Reads to the connection's end.
    ///
    /// # Errors
    /// The server's violation of the protocol.
    pub async fn rest(&mut self) -> Result<Farewell, ProtocolFault> {
        loop {
            match self.step().await {
                ConnectionEvent::Frame(_) => {}
                ConnectionEvent::Faulty(fault) => return Err(fault),
                ConnectionEvent::Over(_) | ConnectionEvent::Silent => return Ok(self.ending()),
            }
        }
    }

    /// The end of the connection so far.
    pub fn ending(&self) -> Farewell {
        Farewell { code: self.judge.goaways().last().map(|(_, code)| *code), end: self.end }
    }

    /// Closes the sending side; reading continues.
    ///
    /// # Errors
    /// Those of the socket.
    pub async fn finish(&mut self) -> io::Result<()> {
        self.stream.shutdown().await
    }

    /// Reads a frame, and fulfils the duties that it requires.
    pub async fn step(&mut self) -> ConnectionEvent {
        if let Some(fault) = &self.fault {
            return ConnectionEvent::Faulty(fault.clone());
        }
        let frame = loop {
            if let Some((frame, used)) = Frame::read(&self.received) {
                self.received.drain(..used);
                break frame;
            }
            if self.end != ConnectionEnd::Open {
                return ConnectionEvent::Over(self.end);
            }
            let reading = self.stream.read_buf(&mut self.received);
            match timeout(self.patience, reading).await {
                Err(_) => return ConnectionEvent::Silent,
                Ok(Ok(0)) => self.end = ConnectionEnd::Closed,
                Ok(Ok(_)) => {}
                Ok(Err(_)) => self.end = ConnectionEnd::Reset,
            }
        };
        if let Err(fault) = self.judge.received(&frame) {
            self.fault = Some(fault.clone());
            return ConnectionEvent::Faulty(fault);
        }
        // A server that has closed shows at the next read.
        _ = self.be_polite(&frame).await;
        ConnectionEvent::Frame(frame)
    }

    async fn be_polite(&mut self, frame: &Frame) -> io::Result<()> {
        let acknowledged = !frame.has(flag::ACK) && self.manners.acknowledges;
        match frame.kind {
            kind::SETTINGS if acknowledged => self.send_frame(&Frame::settings_ack()).await,
            kind::PING if acknowledged => {
                let pong = Frame::new(kind::PING, flag::ACK, 0, frame.payload.clone());
                self.send_frame(&pong).await
            }
            kind::DATA if self.manners.refills && !frame.payload.is_empty() => {
                let increment = frame.payload.len() as u32;
                let mut bytes = Frame::window_update(0, increment).bytes();
                if !frame.has(flag::END_STREAM) {
                    bytes.extend(Frame::window_update(frame.stream, increment).bytes());
                }
                self.send(&bytes).await
            }
            _ => Ok(()),
        }
    }
}
