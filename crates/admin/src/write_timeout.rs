//! The write timeout: a stream that fails when its peer reads nothing for too long.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use rt::time::{Instant, Sleep, sleep};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A stream whose writes fail without progress for a while.
pub(crate) struct WriteTimeoutStream<S> {
    stream: S,
    patience: Duration,
    /// Set when bytes arrive.
    received: Arc<AtomicBool>,
    waiting: bool,
    end: Pin<Box<Sleep>>,
}

impl<S> WriteTimeoutStream<S> {
    /// Wraps `stream`; writes may wait for `patience`, and `received` is set when bytes are read.
    pub(crate) fn new(stream: S, patience: Duration, received: Arc<AtomicBool>) -> Self {
        Self { stream, patience, received, waiting: false, end: Box::pin(sleep(patience)) }
    }

    /// Returns `polled`, or an error if it was pending for too long.
    fn weigh<T>(
        &mut self,
        polled: Poll<io::Result<T>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.waiting = false;
            return polled;
        }
        if !self.waiting {
            self.waiting = true;
            self.end.as_mut().reset(Instant::now() + self.patience);
        }
        self.end.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeoutStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buf);
        if buf.filled().len() > before {
            self.received.store(true, Ordering::Relaxed);
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeoutStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.weigh(polled, cx)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(cx);
        self.weigh(polled, cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.weigh(polled, cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn a_peer_that_takes_nothing_is_not_waited_for() {
        let (near, mut far) = tokio::io::duplex(4);
        let mut stream = WriteTimeoutStream::new(near, Duration::from_millis(20), Arc::default());
        stream.write_all(b"1234").await.expect("room");
        let error = stream.write_all(b"5").await.expect_err("no room");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let mut taken = [0; 4];
        far.read_exact(&mut taken).await.expect("sent before");
        stream.write_all(b"6").await.expect("room again");
    }
}
