//! A standalone bounded window: the body of a response that is not stored, or of a request.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use message::Trailers;

use crate::fill::{AbandonedBody, Fill, FillPhase, PushOutcome, WindowLimit};
use crate::reader::Reader;

/// A body between one writer and one reader.
#[derive(Debug)]
pub struct BodyWindow;

impl BodyWindow {
    /// A window that holds about as much as `passage` says: the writer is told to wait once more is
    /// held.
    pub fn window(passage: WindowLimit) -> (BodyWriter, Reader) {
        Self::window_of(passage, None)
    }

    /// A window for a body of a known `length`, which the reader can ask for; a writer that pushes
    /// another number of bytes fails.
    pub fn window_of(passage: WindowLimit, length: Option<u64>) -> (BodyWriter, Reader) {
        let fill = Arc::new(Fill::new(length, Some(passage), None));
        let reader = Reader::of_window(Arc::clone(&fill));
        (BodyWriter { fill, open: true }, reader)
    }
}

/// Tells of a window's reader, also after the body's end: for one who waits beside its writer. Each
/// watch, and each of its questions, is answered apart from all others.
#[derive(Debug)]
pub struct ReaderWatch {
    fill: Arc<Fill>,
    number: usize,
}

impl ReaderWatch {
    fn of(fill: &Arc<Fill>) -> Self {
        Self { fill: Arc::clone(fill), number: fill.watch() }
    }

    /// Waits until the reader is gone. Dropping it loses nothing.
    pub async fn abandoned(&mut self) {
        poll_fn(|cx| self.fill.poll_abandoned(self.number, cx)).await;
    }

    /// Ready when the reader has taken all that was pushed. Before that the task is woken when the
    /// window is half empty, or as soon as something is taken where less is held.
    ///
    /// # Errors
    /// [`Abandoned`] when the reader is gone.
    pub fn poll_taken(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), AbandonedBody>> {
        self.fill.poll_taken(self.number, cx)
    }

    /// Bytes pushed that the reader has not taken.
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
    /// Copies `data` into the window; all of it is taken, even when the answer is [`Push::Wait`].
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
    /// [`Abandoned`] when the reader is gone.
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

    /// Bytes that had better be pushed at once: where the client has little memory left, no more
    /// than the smallest window holds.
    pub fn at_most(&self) -> usize {
        self.fill.at_most()
    }

    /// Bytes pushed that the reader has not taken.
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

    /// The body is complete, and `trailers` follow it. As [`BodyWriter::finish`].
    pub fn finish_with(self, trailers: Option<Trailers>) -> bool {
        if let Some(trailers) = trailers {
            self.fill.trail(trailers);
        }
        self.finish()
    }

    /// The body is complete. False when a declared length was not met: the reader then sees an
    /// abort.
    pub fn finish(mut self) -> bool {
        let met =
            self.open && self.fill.declared.is_none_or(|declared| declared == self.fill.len());
        self.end(if met { FillPhase::Finished } else { FillPhase::Aborted });
        met
    }

    /// The body ends here and is not complete.
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
