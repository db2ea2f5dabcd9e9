//! Stream state: one stream's request and client, the reader of the request's body, and the source
//! of the response's body.

use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Context, Poll};

use base::HeldBytes;
use bytes::Bytes;
use cache::{BodyDerivation, BodyWriter, HeldTrailers, Reader, ReaderWatch};
use flow::{BodyPart, BodyParts, Reply, WaitingRequest};
use message::Trailers;
use tokio::task::AbortHandle;

use super::mailbox::BodyBackpressure;
use super::output_queue::OutputQueue;
use crate::exchange::DeferredRequest;
use crate::rate::Transfer;

/// The state of one stream.
#[derive(Default)]
pub(crate) struct StreamState {
    /// The stream's number; 0 if the slot is free.
    pub(crate) id: u32,
    pub(crate) deferred: Option<Rc<DeferredRequest>>,
    pub(crate) upload: Option<StreamUpload>,
    /// A request that waits for enough of its body.
    pub(crate) waiting: Option<(Box<WaitingRequest>, Reader)>,
    pub(crate) task: Option<StreamTask>,
    /// Bytes reserved for a body in transit.
    pub(crate) window: u64,
    pub(crate) source: BodyOrigin,
    /// Trailers of the body.
    pub(crate) trailed: Option<Box<HeldTrailers>>,
    /// The reply being sent, without its body.
    pub(crate) reply: Option<Box<Reply>>,
    /// The reservation for a long reply.
    pub(crate) reply_held: Option<HeldBytes>,
    /// The time at which the reply was ready, in microseconds of the log's clock.
    pub(crate) reply_us: u64,
    /// Bytes of the reply's head.
    pub(crate) head_out: u64,
    /// Bytes of the reply's body sent.
    pub(crate) sent: u64,
    /// Bytes of the request's body received.
    pub(crate) received: u64,
    /// The reply was truncated.
    pub(crate) cut_off: bool,
    /// Progress in sending the reply.
    pub(crate) sending: Transfer,
    /// The time at which sending began.
    pub(crate) begun_ms: u64,
}

/// A task that ends with its stream.
pub(crate) struct StreamTask(pub(crate) AbortHandle);

impl Drop for StreamTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The source of a response's body.
#[derive(Default)]
pub(crate) enum BodyOrigin {
    #[default]
    None,
    Parts(BodyParts),
    Fed(VecDeque<Bytes>, Rc<BodyBackpressure>),
}

impl BodyOrigin {
    /// Returns true if the body is produced as the client takes it.
    pub(crate) fn is_made(&self) -> bool {
        matches!(self, Self::Fed(_, feed) if feed.making() != BodyDerivation::None)
    }

    /// Moves the next `bytes` of the body to `out`; at least as many must be available.
    pub(crate) fn take(&mut self, mut bytes: usize, out: &mut OutputQueue) {
        match self {
            Self::None => {}
            Self::Parts(parts) => {
                while bytes > 0
                    && let Some(part) = parts.front_mut()
                {
                    let taken = part.split_to(bytes as u64);
                    bytes -= taken.len() as usize;
                    match taken {
                        BodyPart::Bytes(own) => out.push(own),
                        BodyPart::Stored(object, range) => out.push_stored(&object, range),
                        // A task reads files, and sends their bytes.
                        BodyPart::File(..) => {}
                    }
                }
            }
            Self::Fed(pieces, feed) => {
                feed.note_consumed(bytes);
                while bytes > 0
                    && let Some(piece) = pieces.front_mut()
                {
                    let taken = bytes.min(piece.len());
                    out.push(piece.split_to(taken));
                    bytes -= taken;
                    if piece.is_empty() {
                        pieces.pop_front();
                    }
                }
            }
        }
    }
}

/// A request's body on its way to its reader.
pub(crate) struct StreamUpload {
    /// `None` when the body is complete.
    writer: Option<BodyWriter>,
    watch: ReaderWatch,
    given: u64,
    used: u64,
    /// Bytes wait for the reader; the connection is woken when it takes some.
    pub(crate) waits: bool,
    pub(crate) coming: Transfer,
}

/// The progress of an upload's reader.
pub(crate) enum UploadProgress {
    /// Every received byte was taken, this many since the last call.
    All(usize),
    /// This many bytes were taken; the connection is woken when more are.
    Part(usize),
    /// The reader is gone.
    Unwanted,
}

impl StreamUpload {
    pub(crate) fn new(writer: BodyWriter, now_ms: u64) -> Self {
        let (watch, coming) = (writer.watch(), Transfer::default());
        coming.start(now_ms);
        Self { writer: Some(writer), watch, given: 0, used: 0, waits: false, coming }
    }

    /// Bytes received.
    pub(crate) fn given(&self) -> u64 {
        self.given
    }

    pub(crate) fn push(&mut self, bytes: &[u8], now_ms: u64) {
        // Whether the bytes were taken is polled separately.
        if let Some(writer) = &mut self.writer {
            _ = writer.push(bytes);
        }
        self.given += bytes.len() as u64;
        self.coming.moved(bytes.len(), now_ms);
    }

    /// Returns how many bytes the reader has taken.
    pub(crate) fn poll_taken(&mut self, cx: &mut Context<'_>) -> UploadProgress {
        let taken = self.watch.poll_taken(cx);
        let used = self.given - self.watch.held();
        let more = (used - self.used) as usize;
        self.used = used;
        match taken {
            Poll::Ready(Ok(())) => UploadProgress::All(more),
            Poll::Pending => UploadProgress::Part(more),
            Poll::Ready(Err(_)) => UploadProgress::Unwanted,
        }
    }

    /// Completes the body. Bytes that wait for the reader still count.
    pub(crate) fn finish(&mut self, trailers: Option<Trailers>) {
        if let Some(writer) = self.writer.take() {
            writer.finish_with(trailers);
        }
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.writer.is_none()
    }
}
