//! HTTP/1 connections of the load tool: requests out, responses in. Requests are sent as
//! serialised, and never retried here.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use h1::{BodyReader, HeadLimits, ReadProgress, ResponseReader};
use message::{Method, Response, Status};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::facts::{Precondition, ResponseFacts};
use super::failure::LoadFailure;
use super::plan::PreparedRequest;
use super::recorder::MeasuredResponse;
use super::stream::{Stream, TransferCounts};

/// Bytes read at once. A thread has one such buffer for all its connections.
pub(crate) const SCRATCH: usize = 256 << 10;
/// Most bytes of the trailers of a chunked body.
const TRAILERS: usize = 64 << 10;

/// A client connection.
pub(crate) struct Http1 {
    stream: Stream,
    limits: HeadLimits,
    reader: ResponseReader,
    response: Response,
    /// Bytes of a response that is not complete.
    carry: Vec<u8>,
    state: State,
    keep_alive: bool,
    /// Bytes to send, and how many of them are sent.
    out: Vec<u8>,
    sent: usize,
    /// Bytes sent and received.
    moved: TransferCounts,
    /// True after the first response.
    used: bool,
    /// Methods of the requests that have no response yet.
    methods: VecDeque<Method>,
    /// True if validators of responses are kept.
    learning: bool,
    /// The kept body and its largest length, if bodies are kept.
    kept: Option<(Vec<u8>, usize)>,
}

enum State {
    Head { first_byte: Option<Instant> },
    Body { answer: MeasuredResponse, body: BodyReader },
}

impl Http1 {
    /// Wraps a new connection.
    pub(crate) fn new(stream: Stream, limits: HeadLimits) -> Self {
        Self {
            stream,
            limits,
            reader: ResponseReader::new(),
            response: Response::new(Status::OK),
            carry: Vec::new(),
            state: State::Head { first_byte: None },
            keep_alive: true,
            out: Vec::new(),
            sent: 0,
            moved: TransferCounts::default(),
            used: false,
            methods: VecDeque::new(),
            learning: false,
            kept: None,
        }
    }

    /// Keeps bodies of up to `most` bytes.
    pub(crate) fn with_body_limit(self, most: usize) -> Self {
        Self { kept: Some((Vec::new(), most)), ..self }
    }

    /// Returns the kept body.
    pub(crate) fn take_body(&mut self) -> Result<Vec<u8>, String> {
        let (body, most) = self.kept.take().unwrap_or_default();
        if body.len() > most { Err(format!("more than {most} bytes")) } else { Ok(body) }
    }

    /// The head of the last response.
    pub(crate) fn response(&self) -> &Response {
        &self.response
    }

    /// Keeps the validators of responses if `learning`.
    pub(crate) fn with_validators(self, learning: bool) -> Self {
        Self { learning, ..self }
    }

    /// Queues a request, with a precondition if there is one.
    pub(crate) fn queue(&mut self, ask: &PreparedRequest, condition: Option<&Precondition>) {
        let (fields, rest) = ask.bytes.split_at(ask.fields_end.min(ask.bytes.len()));
        self.queue_bytes(fields, &ask.method);
        if let Some(Precondition { name, value }) = condition {
            for part in [name, ": ", value, "\r\n"] {
                self.out.extend_from_slice(part.as_bytes());
            }
        }
        self.out.extend_from_slice(rest);
    }

    /// Queues the bytes of a request, or the first of them.
    pub(crate) fn queue_bytes(&mut self, bytes: &[u8], method: &Method) {
        if self.sent == self.out.len() {
            self.out.clear();
            self.sent = 0;
        }
        self.out.extend_from_slice(bytes);
        self.methods.push_back(method.clone());
    }

    /// Returns true if the server accepts another request.
    pub(crate) fn may_go_on(&self) -> bool {
        self.keep_alive
    }

    /// Returns true if the server may have closed the connection before it read the request: a
    /// response came earlier, and no byte of this one.
    pub(crate) fn may_be_stale(&self) -> bool {
        self.used && self.carry.is_empty() && matches!(self.state, State::Head { first_byte: None })
    }

    /// Bytes sent and received since the last call.
    pub(crate) fn take_moved(&mut self) -> TransferCounts {
        std::mem::take(&mut self.moved)
    }

    /// Polls for the next response, and sends queued bytes.
    pub(crate) fn poll_answer(
        &mut self,
        cx: &mut Context<'_>,
        scratch: &RefCell<Vec<u8>>,
    ) -> Poll<Result<MeasuredResponse, LoadFailure>> {
        loop {
            let mut scratch = scratch.borrow_mut();
            if let Some(answer) = ready!(self.poll_piece(cx, &mut scratch))? {
                return Poll::Ready(Ok(answer));
            }
        }
    }

    /// Reads once into `scratch`. Returns a response if it ends there. Sends queued bytes
    /// meanwhile.
    pub(crate) fn poll_piece(
        &mut self,
        cx: &mut Context<'_>,
        scratch: &mut [u8],
    ) -> Poll<Result<Option<MeasuredResponse>, LoadFailure>> {
        let broken = self.poll_send(cx).map_err(|error| LoadFailure::broken(&error));
        if !self.carry.is_empty() && matches!(self.state, State::Head { first_byte: None }) {
            let carry = std::mem::take(&mut self.carry);
            if let Some(answer) = self.feed(&carry)? {
                return Poll::Ready(Ok(Some(answer)));
            }
        }
        let mut buf = ReadBuf::new(scratch);
        match ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buf)) {
            Ok(()) if buf.filled().is_empty() => Poll::Ready(self.ended().map(Some)),
            Ok(()) => {
                self.moved.received += buf.filled().len() as u64;
                Poll::Ready(self.feed(buf.filled()))
            }
            Err(error) => {
                let failure = LoadFailure::broken(&error);
                Poll::Ready(Err(match broken {
                    Poll::Ready(Err(broken)) if failure == LoadFailure::Closed => broken,
                    _ => failure,
                }))
            }
        }
    }

    /// Sends the queued bytes.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.sent == self.out.len() {
            return Poll::Ready(Ok(()));
        }
        while let Some(rest) = self.out.get(self.sent..).filter(|rest| !rest.is_empty()) {
            let sent = ready!(Pin::new(&mut self.stream).poll_write(cx, rest))?;
            if sent == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.sent += sent;
            self.moved.sent += sent as u64;
        }
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    /// Parses `bytes`, which follow those of the last call, and keeps the rest.
    fn feed(&mut self, mut bytes: &[u8]) -> Result<Option<MeasuredResponse>, LoadFailure> {
        loop {
            match &mut self.state {
                State::Head { .. } => {
                    let Some(rest) = self.head(bytes)? else {
                        return Ok(None);
                    };
                    bytes = rest;
                }
                State::Body { body, answer } => {
                    let step = body
                        .read(bytes)
                        .map_err(|error| LoadFailure::Malformed(error.to_string()))?;
                    answer.body += step.data.len() as u64;
                    if let Some((body, most)) = &mut self.kept
                        && body.len() <= *most
                    {
                        body.extend_from_slice(bytes.get(step.data).unwrap_or_default());
                    }
                    bytes = bytes.get(step.consumed..).unwrap_or_default();
                    if step.done {
                        self.carry.extend_from_slice(bytes);
                        return Ok(Some(self.finish()));
                    }
                    if bytes.is_empty() {
                        return Ok(None);
                    }
                }
            }
            if bytes.is_empty() && !self.is_whole() {
                return Ok(None);
            }
        }
    }

    /// Returns true if the response ends with its head.
    fn is_whole(&self) -> bool {
        matches!(&self.state, State::Body { body, .. } if body.is_done())
    }

    /// Parses a head. Returns the bytes behind it, or `None` if it is incomplete.
    fn head<'a>(&mut self, bytes: &'a [u8]) -> Result<Option<&'a [u8]>, LoadFailure> {
        let State::Head { first_byte } = &mut self.state else {
            return Ok(Some(bytes));
        };
        let first_byte = *first_byte.get_or_insert_with(Instant::now);
        let earlier = self.carry.len();
        let window = if earlier == 0 {
            bytes
        } else {
            self.carry.extend_from_slice(bytes);
            self.carry.as_slice()
        };
        let method = self.methods.front().cloned().unwrap_or(Method::Get);
        let head = match self.reader.read(window, &self.limits, &method, &mut self.response) {
            Err(error) => return Err(LoadFailure::Malformed(error.to_string())),
            Ok(ReadProgress::Partial) => {
                if earlier == 0 {
                    self.carry.extend_from_slice(bytes);
                }
                return Ok(None);
            }
            Ok(ReadProgress::Complete(head)) => head,
        };
        self.carry.clear();
        let rest = bytes.get(head.consumed.saturating_sub(earlier)..).unwrap_or_default();
        let status = self.response.status.code();
        if status == 101 {
            return Err(LoadFailure::Malformed("101 without a request to switch".to_owned()));
        }
        if status < 200 {
            self.state = State::Head { first_byte: None };
            return Ok(Some(rest));
        }
        self.keep_alive = head.keep_alive;
        let headers = &self.response.headers;
        let facts =
            ResponseFacts::of(headers.iter().map(|field| (field.name, field.value)), self.learning);
        let answer = MeasuredResponse { status, facts, body: 0, first_byte, last_byte: first_byte };
        self.state = State::Body { answer, body: BodyReader::for_response(head.framing, TRAILERS) };
        Ok(Some(rest))
    }

    /// Returns the response that has ended.
    fn finish(&mut self) -> MeasuredResponse {
        self.methods.pop_front();
        self.used = true;
        let next = State::Head { first_byte: None };
        let State::Body { mut answer, .. } = std::mem::replace(&mut self.state, next) else {
            let now = Instant::now();
            let facts = ResponseFacts::default();
            return MeasuredResponse { status: 0, facts, body: 0, first_byte: now, last_byte: now };
        };
        answer.last_byte = Instant::now();
        answer
    }

    /// Returns the response that ends with the connection.
    fn ended(&mut self) -> Result<MeasuredResponse, LoadFailure> {
        self.keep_alive = false;
        match &self.state {
            State::Body { body, .. } => {
                body.at_eof().map_err(|_| LoadFailure::Closed)?;
                Ok(self.finish())
            }
            State::Head { .. } => Err(LoadFailure::Closed),
        }
    }
}
