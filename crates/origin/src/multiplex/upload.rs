//! Upload of a request over a stream: its body as far as the server's windows permit.

use std::task::{Context, Poll};

use super::connection::{SendRoom, StreamSender};
use crate::upload::{Upload, WriteError};

/// The output of a request's body.
#[derive(Debug)]
pub(super) struct StreamWriter {
    sender: StreamSender,
    pub(super) written: u64,
    /// Others have their turn before more is written.
    pub(super) yields: bool,
}

impl StreamWriter {
    pub(super) fn new(sender: StreamSender) -> Self {
        Self { sender, written: 0, yields: false }
    }

    /// Writes until the request is complete, or the server takes no more of it. If pending,
    /// `blocked` is true if the server's windows are shut, and false if the source has no bytes, or
    /// if it `yields`: the task is woken behind those that wait, too.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        upload: &mut Upload<'_>,
        blocked: &mut bool,
    ) -> Poll<Result<(), WriteError>> {
        (self.yields, *blocked) = (false, false);
        loop {
            let (room, others) = match self.sender.room(cx) {
                SendRoom::Ended => return Poll::Ready(Ok(())),
                SendRoom::Shut => (0, false),
                SendRoom::Bytes { room, others } => (room, others),
            };
            match upload.poll_piece(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(WriteError::Body(error))),
                Poll::Pending => return Poll::Pending,
            }
            let length = upload.piece().len();
            if length > 0 && room == 0 {
                *blocked = true;
                return Poll::Pending;
            }
            let taken = length.min(room);
            let is_last = upload.is_last(taken);
            match upload.trailers() {
                Some(trailers) if is_last => self.sender.trailers(trailers),
                _ => self.sender.data(&upload.piece()[..taken], is_last),
            }
            self.written += taken as u64;
            upload.advance(taken);
            if is_last {
                return Poll::Ready(Ok(()));
            }
            if others {
                self.yields = true;
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
    }

    /// Sends the rest of a request whose response has begun, until either has ended.
    pub(super) async fn finish(mut self, mut upload: Upload<'static>) {
        let mut blocked = false;
        let sent = std::future::poll_fn(|cx| self.poll(cx, &mut upload, &mut blocked)).await;
        if sent.is_err() {
            self.sender.cancel();
        }
    }
}
