//! A large file's origin, which generates the bytes as it sends them. It counts what it sends,
//! answers ranges, and can be set to answer them wrongly.

use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Bytes per write.
const PIECE: u64 = 64 * 1024;

/// The manner in which the origin answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RangeManner {
    /// Correctly.
    #[default]
    Right,
    /// Without support of ranges.
    NoRanges,
    /// Without support of ranges, and the body is cut after this many bytes.
    NoRangesCut(u64),
    /// Accept-Ranges promises ranges, but the whole file is sent.
    Promises,
    /// Content-Range has a total that is one byte too large.
    WrongTotal,
    /// The part begins one byte late, with a matching Content-Range.
    WrongStart,
    /// The part is one byte too long, with a matching Content-Range.
    TooLong,
    /// A 206 without Content-Range.
    NoContentRange,
    /// A 206 with two Content-Range fields.
    TwoContentRanges,
    /// A 206 without entity tag.
    NoEtag,
    /// With a weak entity tag.
    Weak,
    /// A 206 with another coding.
    OtherCoding,
    /// Ranges get this status.
    Status(u16),
    /// The body is cut after this many bytes.
    Cut(u64),
}

#[derive(Debug)]
struct OriginState {
    length: AtomicU64,
    version: AtomicU64,
    sent: AtomicU64,
    asked: Mutex<Vec<RangeRequest>>,
    manner: Mutex<RangeManner>,
    fields: Mutex<String>,
}

/// A received request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeRequest {
    /// The target.
    pub target: String,
    /// The range, end-exclusive.
    pub range: Option<Range<u64>>,
    /// True if it has If-Range.
    pub if_range: bool,
}

/// A running origin; dropping it ends its listener.
#[derive(Debug)]
pub struct LargeFile {
    addr: SocketAddr,
    state: Arc<OriginState>,
    accepts: JoinHandle<()>,
}

impl Drop for LargeFile {
    fn drop(&mut self) {
        self.accepts.abort();
    }
}

impl LargeFile {
    /// Starts the origin of a file of `length` bytes on a loopback port.
    ///
    /// # Errors
    /// Those of binding.
    pub async fn start(length: u64) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let addr = listener.local_addr()?;
        let state = Arc::new(OriginState {
            length: AtomicU64::new(length),
            version: AtomicU64::new(1),
            sent: AtomicU64::new(0),
            asked: Mutex::default(),
            manner: Mutex::default(),
            fields: Mutex::new("Cache-Control: max-age=300\r\n".to_owned()),
        });
        let shared = Arc::clone(&state);
        let accepts = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&shared)));
            }
        });
        Ok(Self { addr, state, accepts })
    }

    /// Its address.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Sets the manner of further answers.
    pub fn set_manner(&self, manner: RangeManner) {
        *self.state.manner.lock() = manner;
    }

    /// Sets further field lines of answers, each with its CRLF.
    pub fn say(&self, fields: &str) {
        fields.clone_into(&mut self.state.fields.lock());
    }

    /// Replaces the file by another version of `length` bytes.
    pub fn change(&self, length: u64) {
        self.state.length.store(length, Ordering::SeqCst);
        self.state.version.fetch_add(1, Ordering::SeqCst);
    }

    /// Bytes of bodies that it has sent.
    pub fn sent(&self) -> u64 {
        self.state.sent.load(Ordering::SeqCst)
    }

    /// The received requests.
    pub fn asked(&self) -> Vec<RangeRequest> {
        self.state.asked.lock().clone()
    }

    /// Resets both counts.
    pub fn forget(&self) {
        self.state.asked.lock().clear();
        self.state.sent.store(0, Ordering::SeqCst);
    }

    /// The bytes of `range` in this version of the file, counted from 1.
    pub fn bytes(version: u64, range: Range<u64>) -> Vec<u8> {
        let mut out = Vec::with_capacity((range.end - range.start) as usize);
        let mut at = range.start;
        while at < range.end {
            let word = (at / 8).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ version.rotate_left(40);
            let bytes = (word ^ (word >> 29)).to_le_bytes();
            let from = (at % 8) as usize;
            let to = (range.end - at + from as u64).min(8) as usize;
            out.extend_from_slice(&bytes[from..to]);
            at += (to - from) as u64;
        }
        out
    }
}

/// Serves a connection.
async fn serve(mut stream: TcpStream, state: Arc<OriginState>) {
    let mut read = Vec::new();
    loop {
        let end = loop {
            if let Some(at) = read.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
            match stream.read_buf(&mut read).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        };
        let head = String::from_utf8_lossy(&read[..end]).into_owned();
        read.drain(..end);
        if answer(&mut stream, &state, &head).await.is_none() {
            return;
        }
    }
}

/// The value of a request's field.
fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().skip(1).find_map(|line| {
        let (own, value) = line.split_once(':')?;
        own.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

/// Parses a Range of the form `bytes=A-B` or `bytes=A-`.
fn range_of(value: &str, length: u64) -> Option<Range<u64>> {
    let (first, last) = value.strip_prefix("bytes=")?.split_once('-')?;
    let first = first.parse().ok()?;
    let end = if last.is_empty() { length } else { last.parse::<u64>().ok()? + 1 };
    Some(first..end)
}

/// Answers a request; `None` if the connection must end.
async fn answer(stream: &mut TcpStream, state: &OriginState, head: &str) -> Option<()> {
    let manner = *state.manner.lock();
    let (length, version) =
        (state.length.load(Ordering::SeqCst), state.version.load(Ordering::SeqCst));
    let weak = if manner == RangeManner::Weak { "W/" } else { "" };
    let etag = format!("{weak}\"v{version}\"");
    let asked = field(head, "Range").and_then(|value| range_of(value, length));
    let if_range = field(head, "If-Range");
    let mut line = head.split(' ');
    let (is_head, target) = (line.next() == Some("HEAD"), line.next()?.to_owned());
    state.asked.lock().push(RangeRequest {
        target,
        range: asked.clone(),
        if_range: if_range.is_some(),
    });
    let mut fields = state.fields.lock().clone();
    if field(head, "If-None-Match") == Some(&etag) {
        let reply = format!("HTTP/1.1 304 Not Modified\r\nETag: {etag}\r\n{fields}\r\n");
        return stream.write_all(reply.as_bytes()).await.ok();
    }
    let is_mute = matches!(manner, RangeManner::NoRanges | RangeManner::NoRangesCut(_));
    let sends = !is_mute && manner != RangeManner::Promises;
    let wanted = asked.filter(|_| sends && if_range.is_none_or(|version| version == etag));
    if !is_mute {
        fields.push_str("Accept-Ranges: bytes\r\n");
    }
    if !(manner == RangeManner::NoEtag && wanted.is_some()) {
        fields.push_str(&format!("ETag: {etag}\r\n"));
    }
    let (status, range) = match wanted {
        None => (200, 0..length),
        Some(range) if range.start >= length => {
            let reply = format!(
                "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Range: bytes */{length}\r\n\
                 Content-Length: 0\r\n\r\n"
            );
            return stream.write_all(reply.as_bytes()).await.ok();
        }
        Some(range) => (206, range.start..range.end.min(length)),
    };
    if let (206, RangeManner::Status(status)) = (status, manner) {
        let reply = format!("HTTP/1.1 {status} No\r\nContent-Length: 0\r\n\r\n");
        return stream.write_all(reply.as_bytes()).await.ok();
    }
    let range = if status == 206 { part(manner, range, length, &mut fields) } else { range };
    let bytes = range.end - range.start;
    let reply = format!("HTTP/1.1 {status} OK\r\n{fields}Content-Length: {bytes}\r\n\r\n");
    stream.write_all(reply.as_bytes()).await.ok()?;
    if is_head { Some(()) } else { send(stream, state, version, range, manner).await }
}

/// The part to send for `range`; appends Content-Range to `fields`.
fn part(manner: RangeManner, range: Range<u64>, length: u64, fields: &mut String) -> Range<u64> {
    let range = match manner {
        RangeManner::WrongStart => range.start + 1..range.end,
        RangeManner::TooLong => range.start..range.end + 1,
        _ => range,
    };
    let total = if manner == RangeManner::WrongTotal { length + 1 } else { length };
    let line = format!("Content-Range: bytes {}-{}/{total}\r\n", range.start, range.end - 1);
    match manner {
        RangeManner::NoContentRange => {}
        RangeManner::TwoContentRanges => fields.push_str(&line.repeat(2)),
        RangeManner::OtherCoding => fields.push_str(&format!("{line}Content-Encoding: gzip\r\n")),
        _ => fields.push_str(&line),
    }
    range
}

/// Sends the bytes of `range`.
async fn send(
    stream: &mut TcpStream,
    state: &OriginState,
    version: u64,
    range: Range<u64>,
    manner: RangeManner,
) -> Option<()> {
    let end = match manner {
        RangeManner::Cut(bytes) | RangeManner::NoRangesCut(bytes) => {
            range.end.min(range.start + bytes)
        }
        _ => range.end,
    };
    let mut at = range.start;
    while at < end {
        let next = end.min(at + PIECE);
        stream.write_all(&LargeFile::bytes(version, at..next)).await.ok()?;
        state.sent.fetch_add(next - at, Ordering::SeqCst);
        at = next;
    }
    (end == range.end).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_the_same_wherever_it_is_begun() {
        let whole = LargeFile::bytes(1, 0..1000);
        for (from, to) in [(0, 1), (7, 8), (3, 500), (8, 16), (999, 1000), (5, 5)] {
            assert_eq!(LargeFile::bytes(1, from..to), whole[from as usize..to as usize]);
        }
        assert_ne!(LargeFile::bytes(2, 0..1000), whole);
    }
}
