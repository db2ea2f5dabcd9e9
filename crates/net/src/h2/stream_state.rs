//! State that a connection keeps of one stream: its request and the client, the target of the
//! request's body, and the source of the response's body.

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

/// A stream's side of the connection.
#[derive(Default)]
pub(crate) struct StreamState {
    /// The stream's number; 0 when the place is free.
    pub(crate) id: u32,
    pub(crate) asked: Option<Rc<DeferredRequest>>,
    pub(crate) upload: Option<StreamUpload>,
    /// Waits for enough of the request's body.
    pub(crate) waiting: Option<(Box<WaitingRequest>, Reader)>,
    pub(crate) task: Option<StreamTask>,
    /// Bytes set apart for a passing body.
    pub(crate) window: u64,
    pub(crate) source: BodyOrigin,
    /// Trailers that follow the body.
    pub(crate) trailed: Option<Box<HeldTrailers>>,
    /// The reply under way, its body apart.
    pub(crate) reply: Option<Box<Reply>>,
    /// Memory that a long reply takes.
    pub(crate) reply_held: Option<HeldBytes>,
    /// When it was ready, in microseconds of the log's clock.
    pub(crate) reply_us: u64,
    /// Bytes of its head.
    pub(crate) head_out: u64,
    /// Bytes of its body sent.
    pub(crate) sent: u64,
    /// Bytes of the request's body received.
    pub(crate) received: u64,
    /// The reply did not reach its end.
    pub(crate) cut_off: bool,
    /// Progress in sending the reply.
    pub(crate) sending: Transfer,
    /// When the reply began to be sent.
    pub(crate) begun_ms: u64,
}

/// A task that ends with its stream.
pub(crate) struct StreamTask(pub(crate) AbortHandle);

impl Drop for StreamTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Where a response's body comes from.
#[derive(Default)]
pub(crate) enum BodyOrigin {
    #[default]
    None,
    Parts(BodyParts),
    Fed(VecDeque<Bytes>, Rc<BodyBackpressure>),
}

impl BodyOrigin {
    /// Returns true if the body is made as the client takes it.
    pub(crate) fn is_made(&self) -> bool {
        matches!(self, Self::Fed(_, feed) if feed.making() != BodyDerivation::None)
    }

    /// Moves the next `bytes` of it to `out`; that many were offered.
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
                        // A task reads files, and hands their bytes over.
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

/// A request's body on its way to whoever takes it.
pub(crate) struct StreamUpload {
    /// None when the body is whole.
    writer: Option<BodyWriter>,
    watch: ReaderWatch,
    given: u64,
    used: u64,
    /// Bytes wait to be taken, and the connection is woken when some are.
    pub(crate) waits: bool,
    pub(crate) coming: Transfer,
}

/// The state of the bytes received.
pub(crate) enum UploadProgress {
    /// So many more were taken, and these were the last so far.
    All(usize),
    /// So many more were taken, and the connection is woken when more are.
    Part(usize),
    /// Nobody takes the body any more.
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
        // Whether it was taken is asked apart.
        if let Some(writer) = &mut self.writer {
            _ = writer.push(bytes);
        }
        self.given += bytes.len() as u64;
        self.coming.moved(bytes.len(), now_ms);
    }

    /// Looks how much was taken.
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

    /// The body is whole. What of it waits to be taken still counts.
    pub(crate) fn finish(&mut self, trailers: Option<Trailers>) {
        if let Some(writer) = self.writer.take() {
            writer.finish_with(trailers);
        }
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.writer.is_none()
    }
}
