//! Attempt over a stream: one request up to the response's head. It must never retry by itself.

use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use message::{Framing, Response, Status};
use rt::time::Instant;

use super::connection::{MultiplexedConnection, MultiplexedStream, StreamHead};
use super::failure::StreamFailure;
use super::upload::StreamWriter;
use crate::attempt::{AttemptFailure, Call, Reach};
use crate::deadline::Deadline;
use crate::error::{Error, TimeoutStep};
use crate::events::Events;
use crate::upload::{Upload, WriteError};

/// A response's head and the stream of its body.
pub(crate) struct StreamResponse {
    pub(super) stream: MultiplexedStream,
    pub(crate) response: Response,
    pub(crate) framing: Framing,
    /// The rest of the request, if the response came before its end.
    pub(super) writer: Option<StreamWriter>,
}

impl StreamResponse {
    /// Returns true if a part of the request is still to be sent.
    pub(crate) fn is_early(&self) -> bool {
        self.writer.is_some()
    }
}

/// The differences of timers that fire at the same time.
const TICK: Duration = Duration::from_millis(10);

/// An event on the stream.
enum StreamEvent {
    Head(StreamHead),
    Failed(StreamFailure),
    /// The request was written, or the server takes no more of it.
    Sent,
    /// Writing now waits for the other side: the server or the source.
    Turned,
    WriteFailed(WriteError),
}

struct StreamAttempt<'a, 'b, 'c> {
    call: &'c Call<'a>,
    upload: &'c mut Upload<'b>,
    events: &'c mut dyn Events,
    stream: MultiplexedStream,
    writer: StreamWriter,
    sending: bool,
    /// The server's windows are shut; if false, the source has no bytes.
    blocked: bool,
    answered: bool,
    seen_interim: usize,
}

impl Call<'_> {
    /// Sends the request over a stream of `connection`, and reads the response's head.
    pub(crate) async fn attempt_stream(
        &self,
        connection: &Rc<MultiplexedConnection>,
        upload: &mut Upload<'_>,
        events: &mut dyn Events,
    ) -> Result<StreamResponse, AttemptFailure> {
        let has_body = upload.has_body();
        if !connection.takes(self.request) {
            return Err(Error::HeadTooLarge { server: Arc::clone(&self.server.name) }.into());
        }
        let Some((stream, head)) = connection.start(self.request, !has_body, self.account) else {
            return Err(Error::ClosedBeforeHead { server: Arc::clone(&self.server.name) }.into());
        };
        let writer = StreamWriter::new(stream.sender());
        let mut attempt = StreamAttempt {
            call: self,
            upload,
            events,
            stream,
            writer,
            sending: has_body,
            blocked: false,
            answered: false,
            seen_interim: 0,
        };
        let answered = attempt.head().await;
        self.server.traffic.sent(head + attempt.writer.written, head);
        match answered {
            Ok(StreamHead { response, framing }) => {
                let StreamAttempt { stream, writer, sending, .. } = attempt;
                let is_early = sending && !stream.has_ended();
                let writer = is_early.then_some(writer);
                Ok(StreamResponse { stream, response, framing, writer })
            }
            Err(failure) => Err(failure),
        }
    }
}

impl StreamAttempt<'_, '_, '_> {
    async fn head(&mut self) -> Result<StreamHead, AttemptFailure> {
        let began_ms = rt::now().mono_ms;
        let mut since = Instant::now();
        loop {
            let deadline = self.deadline(since);
            let Some(event) = deadline.wait(|cx| self.poll(cx)).await else {
                match self.call.is_timed && deadline.step == TimeoutStep::Total {
                    true => self.stream.excuse(),
                    false => self.stream.connection().doubt(began_ms),
                }
                return Err(self.failed(self.call.server.deadline_error(deadline)));
            };
            match event {
                StreamEvent::Head(head) => {
                    self.answered = true;
                    if !head.response.status.is_interim() {
                        return Ok(head);
                    }
                    self.note_interim(head.response)?;
                }
                StreamEvent::Failed(failure) => {
                    let error = failure.error(&self.call.server.name, false);
                    if failure.is_unprocessed() {
                        return Err(error.into());
                    }
                    let is_counted =
                        !failure.is_loss() || self.stream.connection().is_first_to_tell();
                    return Err(AttemptFailure { is_counted, ..self.failed(error) });
                }
                StreamEvent::Sent => {
                    self.sending = false;
                    since = Instant::now();
                }
                StreamEvent::Turned => {
                    since = Instant::now();
                    if self.writer.yields {
                        rt::yield_now().await;
                    }
                }
                StreamEvent::WriteFailed(WriteError::Body(error)) => {
                    return Err(self.failed(Error::RequestBody(error)));
                }
                StreamEvent::WriteFailed(WriteError::Io(source)) => {
                    let server = Arc::clone(&self.call.server.name);
                    return Err(self.failed(Error::Write { server, source }));
                }
            }
        }
    }

    fn deadline(&self, since: Instant) -> Deadline {
        let (timeouts, total) = (&self.call.timeouts, self.call.total);
        match self.sending {
            true if self.blocked => {
                Deadline::new(TimeoutStep::Send, since, timeouts.between_bytes_ms).or(total)
            }
            // The source is awaited: the client's timeouts are not this crate's task.
            true => total,
            false => Deadline::new(TimeoutStep::FirstByte, since, timeouts.first_byte_ms).or(total),
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<StreamEvent> {
        if let Poll::Ready(head) = self.stream.poll_head(cx) {
            return Poll::Ready(match head {
                Ok(head) => StreamEvent::Head(head),
                Err(failure) => StreamEvent::Failed(failure),
            });
        }
        if !self.sending {
            return Poll::Pending;
        }
        let (blocked, before) = (self.blocked, self.writer.written);
        match self.writer.poll(cx, self.upload, &mut self.blocked) {
            Poll::Ready(Ok(())) => Poll::Ready(StreamEvent::Sent),
            Poll::Ready(Err(error)) => Poll::Ready(StreamEvent::WriteFailed(error)),
            // The start of the timeout has changed.
            Poll::Pending if self.blocked != blocked || self.writer.written != before => {
                Poll::Ready(StreamEvent::Turned)
            }
            Poll::Pending => Poll::Pending,
        }
    }

    fn note_interim(&mut self, response: Response) -> Result<(), AttemptFailure> {
        let Call { core, server, .. } = self.call;
        self.seen_interim += 1;
        if self.seen_interim > core.interim_responses {
            let server = Arc::clone(&server.name);
            return Err(self.failed(Error::TooManyInterim { server }));
        }
        if response.status != Status::CONTINUE {
            self.events.interim(response);
        }
        Ok(())
    }

    fn failed(&self, error: Error) -> AttemptFailure {
        let error = match error {
            // The server's clock, which has the client's deadline, too, may be ahead by a tick.
            Error::Reset { .. } if self.call.is_timed && self.call.total.is_close(TICK) => {
                self.call.server.deadline_error(self.call.total)
            }
            error => error,
        };
        // A server may act on a head before the request's end (a stream of gRPC).
        AttemptFailure { error, answered: self.answered, reach: Reach::Whole, is_counted: true }
    }
}
