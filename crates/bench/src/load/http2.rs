//! An HTTP/2 client connection, shared by its streams.

use std::cell::{Cell, RefCell};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use h2_client::client::{Builder, SendRequest};
use http::Request;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::facts::ResponseFacts;
use super::failure::LoadFailure;
use super::recorder::MeasuredResponse;
use super::stream::{Stream, TransferCounts};

/// Flow-control window of a stream and of the connection. Browsers have windows of this size, so
/// that windows do not limit the load.
const STREAM_WINDOW: u32 = 6 << 20;
const CONNECTION_WINDOW: u32 = 15 << 20;

/// The sending half of a connection. Each stream has a clone.
#[derive(Clone)]
pub(crate) struct Http2 {
    send: SendRequest<Bytes>,
    moved: Rc<Cell<TransferCounts>>,
    /// The error that ended the connection.
    ended: Rc<RefCell<Option<LoadFailure>>>,
    over: Rc<Cell<bool>>,
    learning: bool,
}

impl Http2 {
    /// Begins HTTP/2 on `stream`, for `streams` concurrent streams. Validators of responses are
    /// kept if `learning`.
    pub(crate) async fn new(
        stream: Stream,
        streams: usize,
        learning: bool,
    ) -> Result<Self, LoadFailure> {
        let moved = Rc::<Cell<TransferCounts>>::default();
        let counted = CountingStream { stream, moved: Rc::clone(&moved) };
        let (send, connection) = Builder::new()
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .initial_max_send_streams(streams)
            .enable_push(false)
            .handshake(counted)
            .await
            .map_err(|error| failure(&error))?;
        let ended = Rc::new(RefCell::new(None));
        let over = Rc::new(Cell::new(false));
        let (last, is_over) = (Rc::clone(&ended), Rc::clone(&over));
        tokio::task::spawn_local(async move {
            if let Err(error) = connection.await {
                *last.borrow_mut() = Some(failure(&error));
            }
            is_over.set(true);
        });
        Ok(Self { send, moved, ended, over, learning })
    }

    /// Bytes of all streams sent and received since the last call.
    pub(crate) fn take_moved(&self) -> TransferCounts {
        self.moved.take()
    }

    /// True if the connection has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.over.get()
    }

    /// Sends a request and reads its response to the end.
    pub(crate) async fn ask(
        &self,
        head: Request<()>,
        body: Bytes,
    ) -> Result<MeasuredResponse, LoadFailure> {
        let result = self.exchange(head, body).await;
        result.map_err(|error| {
            // The connection's error is more precise than the stream's.
            self.ended.borrow().clone().unwrap_or_else(|| failure(&error))
        })
    }

    async fn exchange(
        &self,
        head: Request<()>,
        body: Bytes,
    ) -> Result<MeasuredResponse, h2_client::Error> {
        let mut send = self.send.clone().ready().await?;
        let (response, mut upload) = send.send_request(head, body.is_empty())?;
        if !body.is_empty() {
            upload.send_data(body, true)?;
        }
        let response = response.await?;
        let first_byte = Instant::now();
        let (head, mut body) = response.into_parts();
        let fields = head.headers.iter();
        let fields = fields.map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes()));
        let facts = ResponseFacts::of(fields, self.learning);
        let mut read = 0;
        while let Some(data) = body.data().await {
            let length = data?.len();
            read += length as u64;
            body.flow_control().release_capacity(length)?;
        }
        let status = head.status.as_u16();
        Ok(MeasuredResponse { status, facts, body: read, first_byte, last_byte: Instant::now() })
    }
}

/// Makes a failure of a protocol error.
fn failure(error: &h2_client::Error) -> LoadFailure {
    match error.get_io() {
        Some(error) => LoadFailure::broken(error),
        None if error.is_go_away() && error.is_remote() => LoadFailure::Closed,
        None if error.is_remote() => LoadFailure::Broken(error.to_string()),
        None => LoadFailure::Malformed(error.to_string()),
    }
}

/// A stream that counts its bytes.
struct CountingStream {
    stream: Stream,
    moved: Rc<Cell<TransferCounts>>,
}

impl AsyncRead for CountingStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        let moved = self.moved.get();
        let received = moved.received + (buf.filled().len() - before) as u64;
        self.moved.set(TransferCounts { received, ..moved });
        read
    }
}

impl AsyncWrite for CountingStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        if let Poll::Ready(Ok(length)) = &written {
            let moved = self.moved.get();
            self.moved.set(TransferCounts { sent: moved.sent + *length as u64, ..moved });
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
