//! Segments of a write to a socket: own bytes, then a part of a stored body or of a file.

use std::io::{self, IoSlice};
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use base::Counter;
use bytes::{Buf, Bytes};
use cache::Object;
use files::OpenFile;
use tokio::io::AsyncWrite;

use crate::core::CoreCtx;
use crate::file::{FileTail, Sink, WriteProgress};

/// Slices of one write; a body of more chunks takes several.
const SLICES: usize = 64;
/// Unused capacity up to this size stays in the buffer of a slow client.
const SPARE_BYTES: usize = 4 * 1024;

/// The part behind the own bytes.
#[derive(Debug)]
pub(crate) enum Tail {
    /// Part of a complete stored body.
    Stored(Arc<Object>, Range<u64>),
    /// Shared bytes, and own bytes behind them.
    Shared(Bytes, &'static [u8]),
    /// Part of a file.
    File(FileTail),
}

impl Tail {
    pub(crate) fn file(file: Arc<OpenFile>, range: Range<u64>) -> Self {
        Self::File(FileTail::new(file, range))
    }

    fn left(&self) -> u64 {
        match self {
            Self::Stored(_, range) => range.end - range.start,
            Self::Shared(bytes, after) => (bytes.len() + after.len()) as u64,
            Self::File(tail) => tail.left(),
        }
    }
}

/// One or more heads, and the part behind them.
#[derive(Debug, Default)]
pub(crate) struct Segments {
    bytes: Vec<u8>,
    sent: usize,
    tail: Option<Tail>,
}

impl Segments {
    pub(crate) fn new(bytes: Vec<u8>, tail: Option<Tail>) -> Self {
        Self { bytes, sent: 0, tail }
    }

    /// The buffer, emptied, for reuse.
    pub(crate) fn into_buffer(mut self) -> Vec<u8> {
        self.bytes.clear();
        self.bytes
    }

    /// The buffer, to be appended to.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Own bytes that are still to be written.
    pub(crate) fn into_rest(mut self) -> Vec<u8> {
        self.bytes.drain(..self.sent);
        self.bytes
    }

    /// Bytes still to be written.
    pub(crate) fn left(&self) -> u64 {
        (self.bytes.len() - self.sent) as u64 + self.tail.as_ref().map_or(0, Tail::left)
    }

    /// Own bytes in memory.
    pub(crate) fn kept(&self) -> usize {
        self.bytes.capacity()
    }

    /// Frees the memory of written bytes, if that is worth a copy of the rest.
    pub(crate) fn fit(&mut self) {
        let left = self.bytes.len() - self.sent;
        if self.bytes.capacity() - left > SPARE_BYTES {
            self.bytes = self.bytes[self.sent..].to_vec();
            self.sent = 0;
        }
    }

    fn is_done(&self) -> bool {
        self.left() == 0
    }

    /// Continues writing; ready when every byte is in the socket's buffer. May be pending with
    /// nothing left to write; it must be polled again then, too.
    pub(crate) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        stream: &mut impl Sink,
        core: &CoreCtx,
    ) -> Poll<io::Result<()>> {
        while !self.is_done() {
            if let Some(Tail::File(file)) = &mut self.tail
                && file.left() > 0
            {
                let step = file.poll_step(cx, &mut self.bytes, self.sent, stream, core);
                match ready!(step)? {
                    WriteProgress::Bytes(own, of_file) => {
                        core.flow.counters.add(Counter::BytesOut, (own + of_file) as u64);
                        self.sent += own;
                        file.advance(of_file);
                    }
                    WriteProgress::Read => self.sent = 0,
                }
                continue;
            }
            let wrote = ready!(self.poll_once(cx, Pin::new(stream)))?;
            if wrote == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            core.flow.counters.add(Counter::BytesOut, wrote as u64);
            self.advance(wrote);
        }
        // TLS has only encrypted the bytes so far.
        Pin::new(stream).poll_flush(cx)
    }

    fn poll_once(
        &self,
        cx: &mut Context<'_>,
        stream: Pin<&mut (impl AsyncWrite + Unpin)>,
    ) -> Poll<io::Result<usize>> {
        let (object, range) = match &self.tail {
            Some(Tail::Stored(object, range)) => (object, range),
            Some(Tail::Shared(bytes, after)) => {
                let slices = [&self.bytes[self.sent..], &bytes[..], *after].map(IoSlice::new);
                return stream.poll_write_vectored(cx, &slices);
            }
            _ => return stream.poll_write(cx, &self.bytes[self.sent..]),
        };
        let mut slices = [IoSlice::new(&[]); SLICES];
        let mut used = 0;
        if self.sent < self.bytes.len() {
            slices[0] = IoSlice::new(&self.bytes[self.sent..]);
            used = 1;
        }
        for slice in slices_of(object, range.clone()).take(SLICES - used) {
            slices[used] = IoSlice::new(slice);
            used += 1;
        }
        stream.poll_write_vectored(cx, &slices[..used])
    }

    fn advance(&mut self, wrote: usize) {
        let own = wrote.min(self.bytes.len() - self.sent);
        self.sent += own;
        match &mut self.tail {
            Some(Tail::Stored(_, range)) => range.start += (wrote - own) as u64,
            Some(Tail::Shared(bytes, after)) => {
                let shared = (wrote - own).min(bytes.len());
                bytes.advance(shared);
                *after = &after[wrote - own - shared..];
            }
            _ => {}
        }
    }
}

/// The slices of a complete stored body that lie within `range`.
pub(crate) fn slices_of(object: &Object, range: Range<u64>) -> impl Iterator<Item = &[u8]> {
    object.whole().into_iter().flat_map(move |whole| whole.range(range.clone()))
}

/// Appends part of a complete stored body to `out`.
pub(crate) fn copy_range(object: &Object, range: Range<u64>, out: &mut Vec<u8>) {
    for slice in slices_of(object, range) {
        out.extend_from_slice(slice);
    }
}
