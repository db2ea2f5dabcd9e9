//! File transfer to a socket: by sendfile if the socket takes the bytes as they are, through the
//! core's scratch memory if TLS encrypts them.
//!
//! A core must never wait for a disk: bytes that are not in the page cache are read by another
//! thread, piece by piece, so that a slow client of a large file holds little memory.

use std::io::{self, IoSlice};
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use files::OpenFile;
use rustix::fs::sendfile;
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use tokio::io::{AsyncWrite, Interest};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::core::CoreCtx;

/// The most bytes of one sendfile: the size that a socket's buffer grows to.
const PIECE_BYTES: u64 = 1 << 20;
/// Bytes of one read from a disk: the kernel's own read-ahead.
const COLD_BYTES: u64 = 128 << 10;
/// Unsent bytes above which no more is read.
const HELD_BYTES: usize = 64 << 10;
/// Milliseconds for which a file that was in the page cache is assumed to be there.
const WARM_MS: u64 = 2_000;

/// A target of a file's bytes.
pub(crate) trait Sink: AsyncWrite + Unpin {
    /// The TCP socket, if bytes are sent unencrypted.
    fn socket(&self) -> Option<&TcpStream>;

    /// Ready when earlier bytes have left as far as needed to take more.
    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
}

/// The result of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteProgress {
    /// Bytes sent of those before the file, and bytes sent of the file.
    Bytes(usize, usize),
    /// A piece of the file was read from the disk and must be sent first. Sent bytes have been
    /// removed.
    Read,
}

/// The part of a file that is still to be sent.
#[derive(Debug)]
pub(crate) struct FileTail {
    file: Arc<OpenFile>,
    range: Range<u64>,
    cold: Option<JoinHandle<io::Result<Vec<u8>>>>,
    /// The file system or the socket does not support sendfile.
    copies: bool,
}

impl FileTail {
    pub(crate) fn new(file: Arc<OpenFile>, range: Range<u64>) -> Self {
        Self { file, range, cold: None, copies: false }
    }

    /// Bytes that are still to be sent.
    pub(crate) fn left(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// Advances past `bytes` of the file that were sent.
    pub(crate) fn advance(&mut self, bytes: usize) {
        self.range.start += bytes as u64;
    }

    /// Sends `before` and then the file, as far as the socket takes it. A piece read from a disk is
    /// appended to `before`.
    ///
    /// # Errors
    /// `UnexpectedEof` if the file has become shorter: the client must not take the truncated body
    /// for complete.
    pub(crate) fn poll_step(
        &mut self,
        cx: &mut Context<'_>,
        before: &mut Vec<u8>,
        sent: usize,
        sink: &mut impl Sink,
        core: &CoreCtx,
    ) -> Poll<io::Result<WriteProgress>> {
        ready!(sink.poll_room(cx))?;
        let piece = self.range.start..self.range.end.min(self.range.start + PIECE_BYTES);
        if self.cold.is_some() || !is_at_hand(&self.file, &piece, core) {
            if self.cold.is_none() && before.len() - sent > HELD_BYTES {
                // Bytes that were read from the disk are sent before more are read.
                let wrote = ready!(Pin::new(sink).poll_write(cx, &before[sent..]))?;
                return Poll::Ready(Ok(WriteProgress::Bytes(wrote, 0)));
            }
            let read = ready!(self.poll_cold(cx, core))?;
            before.drain(..sent);
            before.extend_from_slice(&read);
            self.advance(read.len());
            return Poll::Ready(Ok(WriteProgress::Read));
        }
        let before = &before[sent..];
        if let Some(tcp) = sink.socket().filter(|_| !self.copies) {
            return self.poll_socket(cx, before, tcp);
        }
        self.poll_copy(cx, before, sink, core)
    }

    /// Reads the next piece on another thread.
    fn poll_cold(&mut self, cx: &mut Context<'_>, core: &CoreCtx) -> Poll<io::Result<Vec<u8>>> {
        let (file, start) = (&self.file, self.range.start);
        let cold = self.cold.get_or_insert_with(|| {
            let (file, end) = (Arc::clone(file), self.range.end.min(start + COLD_BYTES));
            rt::blocking(move || file.read(start..end))
        });
        let read = ready!(Pin::new(cold).poll(cx));
        self.cold = None;
        let read = read.map_err(io::Error::other)??;
        if read.len() as u64 == self.file.length() {
            self.file.warmed(core.flow.now().mono_ms + WARM_MS);
        }
        Poll::Ready(Ok(read))
    }

    fn poll_socket(
        &mut self,
        cx: &mut Context<'_>,
        before: &[u8],
        tcp: &TcpStream,
    ) -> Poll<io::Result<WriteProgress>> {
        loop {
            ready!(tcp.poll_write_ready(cx))?;
            let step = tcp.try_io(Interest::WRITABLE, || {
                if !before.is_empty() {
                    // The kernel waits for the file's first bytes, which saves a segment.
                    let flags = SendFlags::MORE | SendFlags::NOSIGNAL;
                    return Ok(WriteProgress::Bytes(send(tcp, before, flags)?, 0));
                }
                let mut at = self.range.start;
                let most = usize::try_from(self.left().min(PIECE_BYTES)).unwrap_or(usize::MAX);
                match sendfile(tcp, self.file.fd(), Some(&mut at), most) {
                    Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
                    Ok(sent) => Ok(WriteProgress::Bytes(0, sent)),
                    Err(Errno::INVAL | Errno::NOSYS) => {
                        self.copies = true;
                        Ok(WriteProgress::Bytes(0, 0))
                    }
                    Err(errno) => Err(errno.into()),
                }
            });
            match step {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                step => return Poll::Ready(step),
            }
        }
    }

    fn poll_copy(
        &self,
        cx: &mut Context<'_>,
        before: &[u8],
        sink: &mut impl Sink,
        core: &CoreCtx,
    ) -> Poll<io::Result<WriteProgress>> {
        let mut scratch = core.copied.borrow_mut();
        let room = scratch.len().saturating_sub(before.len()) as u64;
        let most = usize::try_from(self.left().min(room)).unwrap_or(0);
        let read = match read_at_hand(&self.file, self.range.start, &mut scratch[..most], core) {
            // Evicted from the page cache since the check: the next step reads the disk.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.file.warmed(0);
                0
            }
            Ok(0) if most > 0 => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
            read => read?,
        };
        let slices = [IoSlice::new(before), IoSlice::new(&scratch[..read])];
        let wrote = ready!(Pin::new(sink).poll_write_vectored(cx, &slices))?;
        let own = wrote.min(before.len());
        Poll::Ready(Ok(WriteProgress::Bytes(own, wrote - own)))
    }
}

/// Returns true if `range` can be sent without waiting for a disk.
fn is_at_hand(file: &OpenFile, range: &Range<u64>, core: &CoreCtx) -> bool {
    let now_ms = core.flow.now().mono_ms;
    if file.is_warm(now_ms) {
        return true;
    }
    let at_hand = file.is_at_hand(range);
    if at_hand && range.end - range.start == file.length() {
        file.warmed(now_ms + WARM_MS);
    }
    at_hand
}

/// Reads bytes that are in the page cache.
fn read_at_hand(file: &OpenFile, at: u64, bytes: &mut [u8], core: &CoreCtx) -> io::Result<usize> {
    let warm = file.is_warm(core.flow.now().mono_ms);
    file.read_now(at, bytes, warm)
}

/// Reads `range` of a file: from the page cache, or on a thread that may wait for the disk.
///
/// # Errors
/// Those of the file system.
pub(crate) async fn read(
    file: &Arc<OpenFile>,
    range: Range<u64>,
    core: &CoreCtx,
) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if append(file, range.clone(), &mut bytes, core.flow.now().mono_ms) {
        return Ok(bytes);
    }
    let file = Arc::clone(file);
    rt::blocking(move || file.read(range)).await.map_err(io::Error::other)?
}

/// Appends `range` of a file to `out`; false if it is not completely in the page cache, and `out`
/// is unchanged.
pub(crate) fn append(file: &OpenFile, range: Range<u64>, out: &mut Vec<u8>, now_ms: u64) -> bool {
    let begin = out.len();
    let Ok(length) = usize::try_from(range.end - range.start) else { return false };
    out.resize(begin + length, 0);
    let read = file.read_now(range.start, &mut out[begin..], file.is_warm(now_ms));
    let whole = read.is_ok_and(|read| read == length);
    if !whole {
        out.truncate(begin);
    }
    whole
}
