//! Upload of a request to a server: the head, then the body from its source, with the framing that
//! the head declares.

use std::io::{self, IoSlice};
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use message::{Framing, Request, Trailers};

use crate::config::Protocol;
use crate::error::{RequestBodyError, SourceError};
use crate::stream::Stream;

/// A source of a request's body.
pub trait BodySource {
    /// The next bytes; `None` at the end. Polled only after the server has received the earlier
    /// bytes, so that a slow server slows its client.
    ///
    /// # Errors
    /// If the body cannot be completed; the connection to the server is then closed.
    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, SourceError>>;

    /// Takes the trailer fields for a chunked body. Called once, after its end.
    fn take_trailers(&mut self) -> Option<Trailers> {
        None
    }
}

impl<S: BodySource + ?Sized> BodySource for &mut S {
    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, SourceError>> {
        (**self).poll_data(cx)
    }

    fn take_trailers(&mut self) -> Option<Trailers> {
        (**self).take_trailers()
    }
}

/// A request's body; its length or coding is the request's `framing`.
pub enum RequestBody<'a> {
    /// No body.
    None,
    /// A body that arrives piece by piece.
    Stream(Box<dyn BodySource + 'a>),
}

impl RequestBody<'_> {
    /// A body that is completely in memory.
    pub fn whole(body: Bytes) -> Self {
        match body.is_empty() {
            true => Self::None,
            false => Self::Stream(Box::new(BufferedSource(Some(body)))),
        }
    }
}

/// The source of a body in memory.
struct BufferedSource(Option<Bytes>);

impl BodySource for BufferedSource {
    fn poll_data(&mut self, _: &mut Context<'_>) -> Poll<Result<Option<Bytes>, SourceError>> {
        Poll::Ready(Ok(self.0.take()))
    }
}

/// A body in transit, from try to try: bytes taken from the source are kept until a server has
/// received some.
pub(crate) struct Upload<'a> {
    source: RequestBody<'a>,
    coding: UploadCoding,
    /// Bytes of Content-Length that are still to come from the source.
    left: u64,
    piece: Bytes,
    /// Trailers of the body.
    trailers: Option<Trailers>,
    ended: bool,
    started: bool,
    has_body: bool,
}

/// The framing around a body's pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UploadCoding {
    /// None: the length was declared.
    Plain,
    /// Chunk lines.
    Chunked,
    /// FastCGI records; the length was declared, too.
    Records,
}

impl<'a> Upload<'a> {
    pub(crate) fn new(request: &Request, source: RequestBody<'a>, protocol: Protocol) -> Self {
        let (coding, left) = match (request.framing, protocol) {
            (Framing::Chunked, Protocol::Http) => (UploadCoding::Chunked, 0),
            (Framing::Length(length), Protocol::FastCgi) => (UploadCoding::Records, length),
            (Framing::Length(length), Protocol::Http) => (UploadCoding::Plain, length),
            _ => (UploadCoding::Plain, 0),
        };
        let has_body = coding == UploadCoding::Chunked || left > 0;
        Self {
            source,
            coding,
            left,
            piece: Bytes::new(),
            trailers: None,
            ended: !has_body,
            started: false,
            has_body,
        }
    }

    /// Returns true if there is a body, even an empty chunked one.
    pub(crate) fn has_body(&self) -> bool {
        self.has_body
    }

    /// Returns true if a server has received a byte of the body, after which it cannot be sent
    /// again.
    pub(crate) fn started(&self) -> bool {
        self.started
    }

    /// The bytes taken from the source that no server has received.
    pub(crate) fn piece(&self) -> &[u8] {
        &self.piece
    }

    /// Returns true if the body ends with the next `bytes` of the piece.
    pub(crate) fn is_last(&self, bytes: usize) -> bool {
        self.ended && bytes == self.piece.len()
    }

    /// Trailers of a body that has ended.
    pub(crate) fn trailers(&self) -> Option<&Trailers> {
        self.trailers.as_ref()
    }

    /// Drops `bytes` of the piece, which a server has received.
    pub(crate) fn advance(&mut self, bytes: usize) {
        self.piece.advance(bytes);
        self.started |= bytes > 0;
    }

    /// Takes out the rest of the body, without its source.
    pub(crate) fn take_rest(&mut self) -> Upload<'static> {
        Upload {
            source: RequestBody::None,
            coding: self.coding,
            left: self.left,
            piece: std::mem::take(&mut self.piece),
            trailers: self.trailers.take(),
            ended: self.ended,
            started: self.started,
            has_body: self.has_body,
        }
    }

    /// Gives the rest of a body its source.
    pub(crate) fn attach(&mut self, source: Box<dyn BodySource + 'a>) {
        self.source = RequestBody::Stream(source);
    }

    /// Takes the next piece from the source, unless there is one or the body has ended.
    pub(crate) fn poll_piece(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), RequestBodyError>> {
        while self.piece.is_empty() && !self.ended {
            let next = match &mut self.source {
                RequestBody::None => None,
                RequestBody::Stream(source) => {
                    ready!(source.poll_data(cx)).map_err(RequestBodyError::Source)?
                }
            };
            match next {
                Some(piece) if self.coding == UploadCoding::Chunked => self.piece = piece,
                Some(piece) => {
                    self.left = self
                        .left
                        .checked_sub(piece.len() as u64)
                        .ok_or(RequestBodyError::TooLong)?;
                    self.ended = self.left == 0;
                    self.piece = piece;
                }
                None if self.coding == UploadCoding::Chunked => {
                    self.ended = true;
                    if let RequestBody::Stream(source) = &mut self.source {
                        self.trailers = source.take_trailers();
                    }
                }
                None => return Poll::Ready(Err(RequestBodyError::TooShort)),
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// The output of one try. Waiting bytes are written in one system call: head, chunk line, data,
/// chunk end.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    /// The number of written bytes of the head and chunk lines.
    at: usize,
    /// The number of bytes of the present piece that follow them.
    part: usize,
    /// Bytes that follow that part.
    tail: &'static [u8],
    /// The last chunk or record is queued.
    closed: bool,
    written: u64,
}

/// The reason why writing stopped.
#[derive(Debug)]
pub(crate) enum WriteError {
    /// The body's source failed.
    Body(RequestBodyError),
    /// The connection failed.
    Io(io::Error),
}

impl Writer {
    /// Bytes the server has received.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// Returns true if the server has received the whole request.
    pub(crate) fn is_done(&self, out: &[u8], upload: &Upload<'_>) -> bool {
        let closes = upload.has_body && upload.coding != UploadCoding::Plain;
        let all_taken = upload.ended && upload.piece.is_empty();
        self.is_drained(out) && all_taken && (self.closed || !closes)
    }

    /// Returns true if all queued bytes were written.
    fn is_drained(&self, out: &[u8]) -> bool {
        self.at == out.len() && self.part == 0 && self.tail.is_empty()
    }

    /// Writes until the request is complete. `out` begins with the head; if pending, `blocked` is
    /// true if the socket is full, and false if the source has no bytes.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        stream: &mut Stream,
        out: &mut Vec<u8>,
        upload: &mut Upload<'_>,
        blocked: &mut bool,
    ) -> Poll<Result<(), WriteError>> {
        *blocked = false;
        while !self.is_done(out, upload) {
            match upload.poll_piece(cx) {
                Poll::Ready(Ok(())) => self.stage(out, upload),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(WriteError::Body(error))),
                Poll::Pending if self.is_drained(out) => return Poll::Pending,
                Poll::Pending => {}
            }
            let bufs = [&out[self.at..], &upload.piece[..self.part], self.tail].map(IoSlice::new);
            match stream.poll_write_vectored(cx, &bufs) {
                Poll::Ready(Ok(0)) => {
                    return Poll::Ready(Err(WriteError::Io(io::ErrorKind::WriteZero.into())));
                }
                Poll::Ready(Ok(taken)) => self.advance(out, upload, taken),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(WriteError::Io(error))),
                Poll::Pending => {
                    *blocked = true;
                    return Poll::Pending;
                }
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Queues the present piece with its framing, or the body's end.
    fn stage(&mut self, out: &mut Vec<u8>, upload: &Upload<'_>) {
        if self.part > 0 || !self.tail.is_empty() || self.closed {
            return;
        }
        let len = upload.piece.len();
        match upload.coding {
            UploadCoding::Plain => self.part = len,
            _ if !upload.has_body => {}
            UploadCoding::Chunked if len == 0 => {
                h1::encode::last_chunk(out, upload.trailers.as_ref());
                self.closed = true;
            }
            UploadCoding::Chunked => {
                h1::encode::chunk_start(out, len);
                self.part = len;
                self.tail = h1::encode::CHUNK_END;
            }
            UploadCoding::Records if len == 0 => {
                out.extend_from_slice(fastcgi::encode::STDIN_END);
                self.closed = true;
            }
            UploadCoding::Records => {
                self.part = len.min(fastcgi::encode::STDIN_BYTES);
                fastcgi::encode::stdin_start(out, self.part);
            }
        }
    }

    fn advance(&mut self, out: &mut Vec<u8>, upload: &mut Upload<'_>, taken: usize) {
        self.written += taken as u64;
        let lines = taken.min(out.len() - self.at);
        self.at += lines;
        let data = (taken - lines).min(self.part);
        upload.advance(data);
        self.part -= data;
        self.tail = &self.tail[taken - lines - data..];
        if self.is_drained(out) {
            out.clear();
            self.at = 0;
        }
    }
}
