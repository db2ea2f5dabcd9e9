//! A request's way to the server: the head, then the body as its source yields it, framed by the
//! head's word.

use std::io::{self, IoSlice};
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use message::{Framing, Request};

use crate::error::{RequestBodyError, SourceError};
use crate::stream::Stream;

/// Where a request's body comes from.
pub trait BodySource {
    /// The next bytes, or none at the end. Asked only when the server has taken what came before,
    /// so that a slow server holds its client back.
    ///
    /// # Errors
    /// When the body cannot be had whole; the connection to the server is then closed.
    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, SourceError>>;
}

impl<S: BodySource + ?Sized> BodySource for &mut S {
    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, SourceError>> {
        (**self).poll_data(cx)
    }
}

/// A request's body; its length or coding is the request's `framing`.
pub enum RequestBody<'a> {
    /// There is none.
    None,
    /// It comes piece by piece.
    Stream(Box<dyn BodySource + 'a>),
}

/// A body on its way, from try to try: what was taken from the source and not by any server is
/// kept.
pub(crate) struct Upload<'a> {
    source: RequestBody<'a>,
    chunked: bool,
    /// Bytes that Content-Length says are still to come from the source.
    left: u64,
    piece: Bytes,
    ended: bool,
    started: bool,
    has_body: bool,
}

impl<'a> Upload<'a> {
    pub(crate) fn new(request: &Request, source: RequestBody<'a>) -> Self {
        let (chunked, left) = match request.framing {
            Framing::Chunked => (true, 0),
            Framing::Length(length) => (false, length),
            Framing::None | Framing::UntilClose => (false, 0),
        };
        let has_body = chunked || left > 0;
        Self {
            source,
            chunked,
            left,
            piece: Bytes::new(),
            ended: !has_body,
            started: false,
            has_body,
        }
    }

    /// Whether there is a body, be it an empty chunked one.
    pub(crate) fn has_body(&self) -> bool {
        self.has_body
    }

    /// Whether a server has taken a byte of the body, after which it cannot be sent again.
    pub(crate) fn started(&self) -> bool {
        self.started
    }

    /// Takes the next piece from the source, unless there is one or the body has ended.
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), RequestBodyError>> {
        while self.piece.is_empty() && !self.ended {
            let next = match &mut self.source {
                RequestBody::None => None,
                RequestBody::Stream(source) => {
                    ready!(source.poll_data(cx)).map_err(RequestBodyError::Source)?
                }
            };
            match next {
                Some(piece) if self.chunked => self.piece = piece,
                Some(piece) => {
                    self.left = self
                        .left
                        .checked_sub(piece.len() as u64)
                        .ok_or(RequestBodyError::TooLong)?;
                    self.ended = self.left == 0;
                    self.piece = piece;
                }
                None if self.chunked => self.ended = true,
                None => return Poll::Ready(Err(RequestBodyError::TooShort)),
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// One try's writing. Everything waiting goes out in one system call: head, chunk line, data, chunk
/// end.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    /// How much of the head and chunk lines is written.
    at: usize,
    /// What follows the piece.
    tail: &'static [u8],
    /// Whether the piece at hand has its chunk line.
    staged: bool,
    /// Whether the last chunk has been put in line.
    closed: bool,
    written: u64,
}

/// Why writing stopped.
#[derive(Debug)]
pub(crate) enum WriteError {
    /// The body's fault.
    Body(RequestBodyError),
    /// The connection's.
    Io(io::Error),
}

impl Writer {
    /// Bytes the server has taken.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// Whether the server has taken the whole request.
    pub(crate) fn is_done(&self, out: &[u8], upload: &Upload<'_>) -> bool {
        self.is_drained(out, upload) && upload.ended && (self.closed || !upload.chunked)
    }

    fn is_drained(&self, out: &[u8], upload: &Upload<'_>) -> bool {
        self.at == out.len() && upload.piece.is_empty() && self.tail.is_empty()
    }

    /// Writes until the request is done. `out` begins with the head; `blocked` says on return why
    /// it is pending: the server takes nothing, or the source has nothing.
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
                Poll::Pending if self.is_drained(out, upload) => return Poll::Pending,
                Poll::Pending => {}
            }
            let bufs = [&out[self.at..], &upload.piece[..], self.tail].map(IoSlice::new);
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

    /// Puts chunk framing around the piece at hand, or the last chunk at the end.
    fn stage(&mut self, out: &mut Vec<u8>, upload: &Upload<'_>) {
        if !upload.chunked || self.staged || self.closed {
            return;
        }
        if upload.piece.is_empty() {
            out.extend_from_slice(h1::encode::LAST_CHUNK);
            self.closed = true;
        } else {
            h1::encode::chunk_start(out, upload.piece.len());
            self.tail = h1::encode::CHUNK_END;
            self.staged = true;
        }
    }

    fn advance(&mut self, out: &mut Vec<u8>, upload: &mut Upload<'_>, taken: usize) {
        self.written += taken as u64;
        let lines = taken.min(out.len() - self.at);
        self.at += lines;
        let data = (taken - lines).min(upload.piece.len());
        upload.piece.advance(data);
        upload.started |= data > 0;
        self.tail = &self.tail[taken - lines - data..];
        if self.is_drained(out, upload) {
            out.clear();
            self.at = 0;
            self.staged = false;
        }
    }
}
