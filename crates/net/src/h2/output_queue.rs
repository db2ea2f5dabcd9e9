//! Output queue of frames on their way to the socket; long bodies in them are referenced, not
//! copied.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use base::Counter;
use bytes::Bytes;
use cache::Object;
use tokio::io::AsyncWrite;

use crate::core::CoreCtx;
use crate::segments::{copy_range, slices_of};
use crate::stream::Stream;

/// Slices of one write; more pieces take several.
const SLICES: usize = 64;
/// Pieces up to this size are copied behind the frames before them: TLS copies them anyway, and a
/// vectored write gains nothing from so little.
const COPY_MAX: usize = 2 * 1024;
/// Bytes that are collected for one write: one batch of TLS.
pub(crate) const BATCH: usize = 64 * 1024;

/// Bytes outside the buffer.
#[derive(Debug)]
enum ExternalBytes {
    Bytes(Bytes),
    Stored(Arc<Object>, Range<u64>),
}

/// Bytes that wait to be written.
#[derive(Debug, Default)]
pub(crate) struct OutputQueue {
    /// Frames, without the pieces.
    pub(crate) bytes: Vec<u8>,
    sent: usize,
    /// Pieces, each with its position in `bytes`.
    pieces: VecDeque<(usize, ExternalBytes)>,
    /// Bytes of all pieces.
    apart: usize,
}

impl OutputQueue {
    /// Borrows `buffer`, unless the queue has one.
    pub(crate) fn borrow(&mut self, buffer: &mut Vec<u8>) {
        if self.bytes.capacity() == 0 {
            self.bytes = std::mem::take(buffer);
        }
    }

    /// Returns the buffer if it is empty.
    pub(crate) fn give_back(&mut self, buffer: &mut Vec<u8>) {
        if self.is_empty() {
            let own = std::mem::take(&mut self.bytes);
            if buffer.capacity() == 0 {
                *buffer = own;
            }
        }
    }

    /// Frees the capacity beyond `kept` pieces.
    pub(crate) fn forget(&mut self, kept: usize) {
        self.pieces.shrink_to(kept);
    }

    /// Frees unused capacity, if that is worth a copy.
    pub(crate) fn fit(&mut self) {
        if self.bytes.capacity() - self.bytes.len() > COPY_MAX {
            self.bytes.shrink_to_fit();
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.pieces.is_empty()
    }

    /// Bytes that can be collected before the next write.
    pub(crate) fn room(&self) -> usize {
        BATCH.saturating_sub(self.bytes.len() + self.apart)
    }

    /// Appends shared bytes.
    pub(crate) fn push(&mut self, bytes: Bytes) {
        if bytes.len() <= COPY_MAX {
            return self.bytes.extend_from_slice(&bytes);
        }
        self.apart += bytes.len();
        self.pieces.push_back((self.bytes.len(), ExternalBytes::Bytes(bytes)));
    }

    /// Appends a part of a stored body.
    pub(crate) fn push_stored(&mut self, object: &Arc<Object>, range: Range<u64>) {
        let length = (range.end - range.start) as usize;
        if length <= COPY_MAX {
            return copy_range(object, range, &mut self.bytes);
        }
        self.apart += length;
        self.pieces.push_back((self.bytes.len(), ExternalBytes::Stored(Arc::clone(object), range)));
    }

    /// Continues writing; ready when every byte is in the socket's buffer. Passes the number of
    /// written bytes to `moved`.
    pub(crate) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        stream: &mut Stream,
        core: &CoreCtx,
        moved: &mut usize,
    ) -> Poll<io::Result<()>> {
        while self.sent < self.bytes.len() || !self.pieces.is_empty() {
            let wrote = ready!(self.poll_once(cx, Pin::new(&mut *stream)))?;
            if wrote == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            core.flow.counters.add(Counter::BytesOut, wrote as u64);
            *moved += wrote;
            self.advance(wrote);
        }
        self.bytes.clear();
        (self.sent, self.apart) = (0, 0);
        // TLS has only encrypted the bytes so far.
        Pin::new(stream).poll_flush(cx)
    }

    fn poll_once(&self, cx: &mut Context<'_>, stream: Pin<&mut Stream>) -> Poll<io::Result<usize>> {
        if self.pieces.is_empty() {
            return stream.poll_write(cx, &self.bytes[self.sent..]);
        }
        let mut slices = [IoSlice::new(&[]); SLICES];
        let mut used = 0;
        let mut add = |slice| {
            if used < SLICES && !<[u8]>::is_empty(slice) {
                slices[used] = IoSlice::new(slice);
                used += 1;
            }
        };
        let mut from = self.sent;
        for (at, piece) in &self.pieces {
            add(&self.bytes[from..*at]);
            from = *at;
            match piece {
                ExternalBytes::Bytes(bytes) => add(bytes),
                ExternalBytes::Stored(object, range) => {
                    slices_of(object, range.clone()).for_each(&mut add);
                }
            }
        }
        add(&self.bytes[from..]);
        stream.poll_write_vectored(cx, &slices[..used])
    }

    fn advance(&mut self, mut wrote: usize) {
        while let Some((at, piece)) = self.pieces.front_mut() {
            let own = wrote.min(*at - self.sent);
            self.sent += own;
            wrote -= own;
            if self.sent < *at {
                return;
            }
            let left = match piece {
                ExternalBytes::Bytes(bytes) => {
                    let taken = wrote.min(bytes.len());
                    bytes::Buf::advance(bytes, taken);
                    wrote -= taken;
                    bytes.len() as u64
                }
                ExternalBytes::Stored(_, range) => {
                    let taken = (wrote as u64).min(range.end - range.start);
                    range.start += taken;
                    wrote -= taken as usize;
                    range.end - range.start
                }
            };
            if left > 0 {
                return;
            }
            self.pieces.pop_front();
        }
        self.sent += wrote;
    }
}
