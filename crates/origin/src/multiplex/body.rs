//! Body of a response that comes over a stream.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use message::Trailers;
use rt::time::Instant;

use super::attempt::StreamResponse;
use super::connection::{MultiplexedStream, StreamPart};
use super::upload::StreamWriter;
use crate::deadline::Deadline;
use crate::error::{Error, TimeoutStep};
use crate::server::Permit;
use crate::upload::Upload;

/// The most bytes that are passed on at once.
const PIECE_BYTES: usize = 64 << 10;

/// A body being read.
pub(crate) struct StreamBody {
    // Before the permit, so that the request that it admits finds the stream's place free.
    stream: MultiplexedStream,
    /// Bytes taken from the stream; those before `at` were passed on.
    piece: Vec<u8>,
    at: usize,
    rest: Option<RequestRest>,
    timeouts: BodyTimeouts,
    /// The most bytes that are passed on at once.
    most: usize,
    most_now: usize,
    permit: Permit,
}

/// The progress of a body.
pub(crate) enum BodyProgress {
    /// Bytes were passed on.
    Some,
    /// The body is complete.
    End(Option<Trailers>),
}

/// The rest of a request that is not complete.
struct RequestRest {
    writer: StreamWriter,
    upload: Upload<'static>,
}

/// The timeouts of a body.
#[derive(Clone, Copy)]
pub(crate) struct BodyTimeouts {
    pub(crate) total: Deadline,
    /// The client has set `total`.
    pub(crate) is_timed: bool,
    pub(crate) between_bytes_ms: u64,
}

impl StreamBody {
    /// The body behind the head of `answer`; `upload` is the rest of its request, if that is not
    /// complete.
    pub(crate) fn new(
        answer: StreamResponse,
        timeouts: BodyTimeouts,
        read_at_most: usize,
        permit: Permit,
        upload: Option<Upload<'static>>,
    ) -> Self {
        let StreamResponse { stream, writer, .. } = answer;
        let rest = writer.zip(upload).map(|(writer, upload)| RequestRest { writer, upload });
        let most = read_at_most.clamp(1, PIECE_BYTES);
        Self { stream, piece: Vec::new(), at: 0, rest, timeouts, most, most_now: most, permit }
    }

    /// Limits each step to `bytes` from now on, and never above the limit of the request's caller.
    pub(crate) fn read_at_most(&mut self, bytes: usize) {
        self.most_now = bytes.clamp(1, self.most);
    }

    /// Replaces the total timeout by `never`, unless the client has set it.
    pub(crate) fn lift_total(&mut self, never: Deadline) {
        if !self.timeouts.is_timed {
            self.timeouts.total = never;
        }
    }

    /// Records a failure of the body.
    pub(crate) fn note_failure(&self, error: &Error) {
        self.stream.connection().note_failure(error);
        self.permit.server().note_error(error.to_string());
    }

    /// Sends the rest of the request, which `attach` gives its source, beside the response.
    pub(crate) fn continue_upload(&mut self, attach: impl FnOnce(&mut Upload<'static>)) {
        if let Some(RequestRest { writer, mut upload }) = self.rest.take() {
            attach(&mut upload);
            // Ends with the stream, at the latest.
            rt::spawn_local(writer.finish(upload));
        }
    }

    /// Passes the next bytes to `sink`, waiting for some if needed.
    pub(crate) async fn step(
        &mut self,
        sink: &mut dyn FnMut(&[u8]),
    ) -> Result<BodyProgress, Error> {
        if self.piece.is_empty() {
            match self.part().await? {
                StreamPart::Data(piece) => self.piece = piece,
                StreamPart::End(trailers) => return Ok(BodyProgress::End(trailers)),
            }
        }
        let rest = &self.piece[self.at..];
        let taken = rest.len().min(self.most_now);
        sink(&rest[..taken]);
        self.permit.server().traffic.body_came(taken as u64);
        self.stream.used(taken);
        self.at += taken;
        if self.at == self.piece.len() {
            (self.piece, self.at) = (Vec::new(), 0);
            if self.stream.is_spent() {
                return Ok(BodyProgress::End(self.end_now()));
            }
        }
        Ok(BodyProgress::Some)
    }

    /// The trailers of a body whose end has arrived.
    fn end_now(&self) -> Option<Trailers> {
        let cx = Context::from_waker(Waker::noop());
        match self.stream.poll_part(&cx) {
            Poll::Ready(Ok(StreamPart::End(trailers))) => trailers,
            _ => None,
        }
    }

    async fn part(&self) -> Result<StreamPart, Error> {
        let (now, now_ms) = (Instant::now(), rt::now().mono_ms);
        let server = self.permit.server();
        let BodyTimeouts { total, between_bytes_ms, .. } = self.timeouts;
        if now >= total.at {
            // Checked here, too: while bytes arrive, no timer is created.
            return Err(server.deadline_error(total));
        }
        let between = Deadline::new(TimeoutStep::BetweenBytes, now, between_bytes_ms);
        let deadline = between.or(total);
        match deadline.wait(|cx| self.stream.poll_part(cx)).await {
            Some(part) => part.map_err(|failure| failure.error(&Arc::clone(&server.name), true)),
            None => {
                if !(self.timeouts.is_timed && deadline.step == TimeoutStep::Total) {
                    self.stream.connection().doubt(now_ms);
                }
                Err(server.deadline_error(deadline))
            }
        }
    }
}
