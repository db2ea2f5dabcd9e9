//! A raw client: it sends exactly the given bytes, and reads replies strictly.
//!
//! It must never repair, retry or reconnect: it reports what one connection carried.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::reply::{self, ConnectionEnd, ReplyOutcome};

/// The division of bytes into writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteSplit {
    /// One write.
    Whole,
    /// One write per byte, with a yield to the peer after each.
    Bytes,
    /// A write ends after each CR and after each LF, so that no line end arrives in one piece.
    LineEnds,
}

impl WriteSplit {
    /// All divisions.
    pub const ALL: [Self; 3] = [Self::Whole, Self::Bytes, Self::LineEnds];

    /// Divides `bytes`.
    pub fn cut(self, bytes: &[u8]) -> Vec<&[u8]> {
        match self {
            Self::Whole => vec![bytes],
            Self::Bytes => bytes.chunks(1).collect(),
            Self::LineEnds => bytes.split_inclusive(|b| matches!(b, b'\r' | b'\n')).collect(),
        }
    }
}

/// One client connection.
#[derive(Debug)]
pub struct RawClient {
    stream: TcpStream,
    received: Vec<u8>,
    end: ConnectionEnd,
    patience: Duration,
}

impl RawClient {
    /// Connects to `addr`. The time limit of a reply is ten seconds.
    ///
    /// # Errors
    /// Those of connecting.
    pub async fn connect(addr: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(addr).await?;
        stream.set_nodelay(true)?;
        Ok(Self::over(stream))
    }

    /// Wraps an open connection.
    pub fn over(stream: TcpStream) -> Self {
        let patience = Duration::from_secs(10);
        Self { stream, received: Vec::new(), end: ConnectionEnd::Open, patience }
    }

    /// Sends `bytes`, a GET with or without something before it, and reads its reply.
    pub async fn exchange(mut self, bytes: &[u8]) -> ReplyOutcome {
        // A failure to send shows in the reply.
        _ = self.send(bytes, WriteSplit::Whole).await;
        self.reply("GET").await
    }

    /// Sets the time limit of a reply.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Sends `bytes`, divided as `pieces`.
    ///
    /// # Errors
    /// Those of writing, which a peer causes that rejects the request early.
    pub async fn send(&mut self, bytes: &[u8], pieces: WriteSplit) -> io::Result<()> {
        for piece in pieces.cut(bytes) {
            self.stream.write_all(piece).await?;
            if pieces != WriteSplit::Whole {
                tokio::task::yield_now().await;
            }
        }
        Ok(())
    }

    /// Closes the sending side; reading continues.
    ///
    /// # Errors
    /// Those of the socket.
    pub async fn finish(&mut self) -> io::Result<()> {
        self.stream.shutdown().await
    }

    /// Reads the reply to a request of `method`. Further bytes stay for the next call.
    pub async fn reply(&mut self, method: &str) -> ReplyOutcome {
        let patience = self.patience;
        timeout(patience, self.next_reply(method)).await.unwrap_or(ReplyOutcome::TimedOut)
    }

    /// Sends a plain GET of `target` and reads its reply.
    ///
    /// # Errors
    /// Those of writing.
    pub async fn get(&mut self, target: &str) -> io::Result<ReplyOutcome> {
        self.send(&request("GET", target, ""), WriteSplit::Whole).await?;
        Ok(self.reply("GET").await)
    }

    /// Reads to the end of the connection. Returns the bytes and how it ended;
    /// [`ConnectionEnd::Open`] if the peer did not close it in time.
    pub async fn rest(&mut self) -> (Vec<u8>, ConnectionEnd) {
        let patience = self.patience;
        let all = async { while self.more().await {} };
        // Without an end in time, the bytes so far are returned, with `end` as it is.
        let _ = timeout(patience, all).await;
        (std::mem::take(&mut self.received), self.end)
    }

    /// Reads until `text` is among the bytes that no reply has consumed; false if it does not come
    /// in time.
    pub async fn until(&mut self, text: &str) -> bool {
        let has =
            |received: &[u8]| received.windows(text.len()).any(|window| window == text.as_bytes());
        let patience = self.patience;
        let found = async { while !has(&self.received) && self.more().await {} };
        // Without it in time, the bytes so far decide.
        let _ = timeout(patience, found).await;
        has(&self.received)
    }

    /// Bytes received so far that no reply has consumed.
    pub fn so_far(&mut self) -> &[u8] {
        while let Ok(1..) = self.stream.try_read_buf(&mut self.received) {}
        &self.received
    }

    async fn next_reply(&mut self, method: &str) -> ReplyOutcome {
        loop {
            if let Some((seen, used)) = reply::read_reply(&self.received, method, self.end) {
                self.received.drain(..used);
                return seen;
            }
            self.more().await;
        }
    }

    /// Reads once. Returns true if more may come.
    async fn more(&mut self) -> bool {
        if self.end == ConnectionEnd::Open {
            match self.stream.read_buf(&mut self.received).await {
                Ok(0) => self.end = ConnectionEnd::Closed,
                Ok(_) => {}
                Err(_) => self.end = ConnectionEnd::Reset,
            }
        }
        self.end == ConnectionEnd::Open
    }
}

/// A request to host `larder.test` without a body; `fields` are whole lines with CRLF.
pub fn request(method: &str, target: &str, fields: &str) -> Vec<u8> {
    format!("{method} {target} HTTP/1.1\r\nHost: larder.test\r\n{fields}\r\n").into_bytes()
}

/// Sends a GET of `target` on a new connection, and reads the reply.
///
/// # Errors
/// Those of connecting and writing.
pub async fn get(addr: SocketAddr, target: &str) -> io::Result<ReplyOutcome> {
    RawClient::connect(addr).await?.get(target).await
}
