//! A standalone window: the body of a response that is not stored, or of a request, between one
//! writer and one reader. It never holds more than its limit and one push.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use message::Trailers;

use crate::fill::{AbandonedBody, Fill, FillPhase, PushOutcome, WindowLimit};
use crate::reader::Reader;

/// A window between one writer and one reader.
#[derive(Debug)]
pub struct BodyWindow;

impl BodyWindow {
    /// A window that holds about as much as `window_limit` permits: the writer has to wait when
    /// more is held.
    pub fn window(window_limit: WindowLimit) -> (BodyWriter, Reader) {
        Self::window_of(window_limit, None)
    }

    /// A window for a body of known `length`, which the reader can query. A writer that pushes
    /// another number of bytes fails.
    pub fn window_of(window_limit: WindowLimit, length: Option<u64>) -> (BodyWriter, Reader) {
        let fill = Arc::new(Fill::new(length, Some(window_limit), None));
        let reader = Reader::of_window(Arc::clone(&fill));
        (BodyWriter { fill, open: true }, reader)
    }
}

/// A watch on the reader of a window, usable after the body's end, for a task beside its writer.
/// Each watch, and each of its waits, has a waker of its own.
#[derive(Debug)]
pub struct ReaderWatch {
    fill: Arc<Fill>,
    number: usize,
}

impl ReaderWatch {
    fn of(fill: &Arc<Fill>) -> Self {
        Self { fill: Arc::clone(fill), number: fill.watch() }
    }

    /// Waits until the reader is dropped. Cancelling the wait loses nothing.
    pub async fn abandoned(&mut self) {
        poll_fn(|cx| self.fill.poll_abandoned(self.number, cx)).await;
    }

    /// Ready when the reader has taken all pushed bytes. Before that the task is woken when the
    /// window is half empty, or at each read if less is held.
    ///
    /// # Errors
    /// [`AbandonedBody`] if the reader is gone.
    pub fn poll_taken(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), AbandonedBody>> {
        self.fill.poll_taken(self.number, cx)
    }

    /// Pushed bytes that the reader has not taken.
    pub fn held(&self) -> u64 {
        self.fill.held()
    }
}

impl Drop for ReaderWatch {
    fn drop(&mut self) {
        self.fill.unwatch(self.number);
    }
}

/// The writing end of a window. Dropping it before [`BodyWriter::finish`] aborts the body.
#[derive(Debug)]
pub struct BodyWriter {
    fill: Arc<Fill>,
    open: bool,
}

impl BodyWriter {
    /// Copies `data` into the window. All of it is accepted, even with [`PushOutcome::Wait`].
    pub fn push(&mut self, data: &[u8]) -> PushOutcome {
        if !self.open {
            return PushOutcome::Abandoned;
        }
        let len = self.fill.len() + data.len() as u64;
        if self.fill.declared.is_some_and(|declared| len > declared) {
            self.end(FillPhase::Aborted);
            return PushOutcome::Overrun;
        }
        self.fill.push_window(data)
    }

    /// Ready when the window has room.
    ///
    /// # Errors
    /// [`AbandonedBody`] if the reader is gone.
    pub fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), AbandonedBody>> {
        self.fill.poll_room(cx)
    }

    /// [`BodyWriter::poll_room`] as a future.
    ///
    /// # Errors
    /// As [`BodyWriter::poll_room`].
    pub async fn room(&mut self) -> Result<(), AbandonedBody> {
        poll_fn(|cx| self.poll_room(cx)).await
    }

    /// The most bytes that should be pushed at once: if the client is short of memory, the size of
    /// the smallest window.
    pub fn at_most(&self) -> usize {
        self.fill.at_most()
    }

    /// Pushed bytes that the reader has not taken.
    pub fn held(&self) -> u64 {
        self.fill.held()
    }

    /// A watch beside this writer.
    pub fn watch(&self) -> ReaderWatch {
        ReaderWatch::of(&self.fill)
    }

    /// Returns true if the reader is gone.
    pub fn is_abandoned(&self) -> bool {
        self.fill.is_abandoned()
    }

    /// [`BodyWriter::finish`] with `trailers` behind the body.
    pub fn finish_with(self, trailers: Option<Trailers>) -> bool {
        if let Some(trailers) = trailers {
            self.fill.trail(trailers);
        }
        self.finish()
    }

    /// Completes the body. Returns false if it does not have the declared length: the reader then
    /// sees an incomplete body.
    pub fn finish(mut self) -> bool {
        let met =
            self.open && self.fill.declared.is_none_or(|declared| declared == self.fill.len());
        self.end(if met { FillPhase::Finished } else { FillPhase::Aborted });
        met
    }

    /// Ends the body before it is complete.
    pub fn abort(mut self) {
        self.end(FillPhase::Aborted);
    }

    fn end(&mut self, phase: FillPhase) {
        if std::mem::take(&mut self.open) {
            self.fill.end(phase);
        }
    }
}

impl Drop for BodyWriter {
    fn drop(&mut self) {
        self.end(FillPhase::Aborted);
    }
}
