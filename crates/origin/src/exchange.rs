//! Exchange: a response from its head to the end of its body. A truncated body must never end
//! cleanly.

use std::fmt;
use std::future::Future as _;
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use h1::BodyReader;
use message::{Framing, Response, Status, Trailers};
use rt::time::Instant;

use crate::attempt::AttemptResponse;
use crate::deadline::Deadline;
use crate::error::{Error, TimeoutStep};
use crate::fastcgi_exchange::FastCgiProgress;
use crate::multiplex::{BodyProgress, BodyTimeouts, StreamBody, StreamResponse};
use crate::pool::{Workspace, WorkspaceBuffers};
use crate::server::Permit;
use crate::tunnel::Tunnel;
use crate::upload::{BodySource, Upload};
use crate::upstream_connection::UpstreamConnection;

/// Buffers of an unwanted body that are discarded to keep its connection: enough for an error page.
const DISCARDS: usize = 2;

/// A response whose body is still to be read.
///
/// [`Exchange::next`] is called until it returns false or fails. After a clean end the connection
/// returns to its pool; dropping an exchange earlier closes the connection.
pub struct Exchange {
    /// The final response's head.
    pub response: Response,
    /// The framing of its body. With [`Framing::UntilClose`], an end cannot be distinguished from a
    /// failure, so such a body is never known to be complete. A FastCGI response of unknown length
    /// is [`Framing::Chunked`], since its end is announced, too.
    pub framing: Framing,
    /// The server that answered, as an index into the origin's list.
    pub server: usize,
    /// That server's name.
    pub server_name: Arc<str>,
    /// That server's address; `None` for a unix socket, or if no server was contacted.
    pub peer: Option<SocketAddr>,
    /// The response came over a reused connection.
    pub reused: bool,
    /// The number of times that the request was sent.
    pub tries: u32,
    body: Body,
    failed: bool,
    trailers: Option<Trailers>,
}

/// The rest of the exchange.
enum Body {
    /// Bytes to be received.
    Open(Box<OpenBody>),
    /// Bytes to be received over a stream.
    Stream(Box<StreamBody>),
    /// Bytes in memory.
    Ready(Bytes),
    /// The connection has switched protocols.
    Switched(Box<Tunnel>),
    /// The body was read to its end.
    Ended,
    /// The body failed, so there is no clean end.
    Failed,
}

/// A body being read.
struct OpenBody {
    // Before the permit: the request that the permit admits must find the connection idle, or its
    // slot free.
    link: UpstreamConnection,
    work: Workspace,
    coding: Coding,
    delivered: bool,
    reusable: bool,
    total: Deadline,
    between_bytes_ms: u64,
    /// The most bytes of one read.
    most: usize,
    most_now: usize,
    permit: Permit,
}

/// The coding of the body.
enum Coding {
    Http(BodyReader),
    /// FastCGI records; the workspace has the state of their decoder.
    Records,
}

/// The input of [`Exchange::new`].
pub(crate) struct ExchangeInput {
    pub(crate) server: usize,
    pub(crate) reused: bool,
    pub(crate) tries: u32,
    pub(crate) permit: Permit,
    pub(crate) total: Deadline,
    /// The client has set `total`: it holds to the body's end.
    pub(crate) is_timed: bool,
    pub(crate) between_bytes_ms: u64,
    pub(crate) read_at_most: usize,
}

impl Exchange {
    pub(crate) fn new(answer: AttemptResponse, of: ExchangeInput) -> Self {
        let AttemptResponse {
            link,
            work,
            response,
            framing,
            reusable,
            delivered,
            records,
            switched,
        } = answer;
        let reader = BodyReader::for_response(framing, work.core().trailer_bytes);
        let is_over = !records && reader.is_done();
        let mut exchange = Self {
            response,
            framing,
            server: of.server,
            server_name: Arc::clone(&of.permit.server().name),
            peer: link.peer,
            reused: of.reused,
            tries: of.tries,
            body: Body::Ended,
            failed: false,
            trailers: None,
        };
        if let Some(protocol) = switched {
            exchange.body = Body::Switched(Box::new(Tunnel::new(link, &work, protocol, of.permit)));
            return exchange;
        }
        let open = OpenBody {
            link,
            work,
            coding: if records { Coding::Records } else { Coding::Http(reader) },
            delivered,
            reusable: reusable && framing != Framing::UntilClose,
            total: of.total,
            between_bytes_ms: of.between_bytes_ms,
            most: of.read_at_most,
            most_now: of.read_at_most,
            permit: of.permit,
        };
        if is_over {
            open.finish();
        } else {
            exchange.body = Body::Open(Box::new(open));
        }
        exchange
    }

    /// A response over a stream; `upload` is the rest of its request, if that is not complete.
    pub(crate) fn over_stream(
        mut answer: StreamResponse,
        peer: Option<SocketAddr>,
        upload: Option<Upload<'static>>,
        of: ExchangeInput,
    ) -> Self {
        let response = std::mem::replace(&mut answer.response, Response::new(Status::OK));
        let framing = answer.framing;
        let server_name = Arc::clone(&of.permit.server().name);
        let timeouts = BodyTimeouts {
            total: of.total,
            is_timed: of.is_timed,
            between_bytes_ms: of.between_bytes_ms,
        };
        let open = StreamBody::new(answer, timeouts, of.read_at_most, of.permit, upload);
        Self {
            response,
            framing,
            server: of.server,
            server_name,
            peer,
            reused: of.reused,
            tries: of.tries,
            body: Body::Stream(Box::new(open)),
            failed: false,
            trailers: None,
        }
    }

    /// Sends the rest of the request from `source` beside the response, if the response has come
    /// before the request's end and the server still takes it (HTTP/2).
    pub fn continue_upload(&mut self, source: impl BodySource + 'static) {
        if let Body::Stream(open) = &mut self.body {
            open.continue_upload(|upload| upload.attach(Box::new(source)));
        }
    }

    /// A response generated here, without a server.
    pub(crate) fn own(response: Response, body: Bytes, origin: &Arc<str>) -> Self {
        let framing =
            if body.is_empty() { Framing::None } else { Framing::Length(body.len() as u64) };
        Self {
            response,
            framing,
            server: 0,
            server_name: Arc::clone(origin),
            peer: None,
            reused: false,
            tries: 0,
            body: Body::Ready(body),
            failed: false,
            trailers: None,
        }
    }

    /// Removes the total timeout of the body: from now on only the time between bytes counts.
    pub fn lift_total(&mut self) {
        let never = || Deadline::new(TimeoutStep::Total, Instant::now(), u64::MAX);
        match &mut self.body {
            Body::Open(open) => open.total = never(),
            Body::Stream(open) => open.lift_total(never()),
            _ => {}
        }
    }

    /// Returns true if the end of the response reported a failed script (FastCGI's appStatus): the
    /// response is complete, but may be wrong. Known after the body was read to its end.
    pub fn has_failed(&self) -> bool {
        self.failed
    }

    /// Takes the trailer fields that may pass. They come with the body's end.
    pub fn take_trailers(&mut self) -> Option<Trailers> {
        self.trailers.take()
    }

    /// Limits each read to `bytes` from now on, and never above the limit of the request's caller.
    pub fn read_at_most(&mut self, bytes: usize) {
        match &mut self.body {
            Body::Open(open) => open.most_now = open.most.min(bytes),
            Body::Stream(open) => open.read_at_most(bytes),
            _ => {}
        }
    }

    /// Takes the tunnel, if the server has switched protocols as requested (a 101).
    pub fn take_tunnel(&mut self) -> Option<Box<Tunnel>> {
        match std::mem::replace(&mut self.body, Body::Ended) {
            Body::Switched(tunnel) => Some(tunnel),
            body => {
                self.body = body;
                None
            }
        }
    }

    /// Discards the rest of the body. Bytes in the buffer are consumed, so that the connection can
    /// be kept if they are the last.
    pub(crate) fn discard(&mut self) {
        let mut cx = Context::from_waker(Waker::noop());
        for _ in 0..DISCARDS {
            let mut sink = |_: &[u8]| {};
            let Poll::Ready(Ok(true)) = pin!(self.next(&mut sink)).poll(&mut cx) else { return };
        }
    }

    /// Passes the next body bytes to `sink`, as slices of the read buffer, and waits for some if
    /// needed. False at the end, which may come together with the last bytes, and after it. One
    /// call passes at most the content of one buffer, so that the caller sets the pace.
    ///
    /// Cancellation loses no bytes.
    ///
    /// # Errors
    /// If the body is malformed, truncated or late. The bytes passed before are then not the whole
    /// body, and every later call fails, too.
    pub async fn next(&mut self, sink: &mut dyn FnMut(&[u8])) -> Result<bool, Error> {
        let open = match &mut self.body {
            Body::Open(open) => open,
            Body::Stream(_) => return self.next_of_stream(sink).await,
            Body::Ready(body) => {
                if !body.is_empty() {
                    sink(body);
                }
                self.body = Body::Ended;
                return Ok(false);
            }
            Body::Ended | Body::Switched(_) => return Ok(false),
            Body::Failed => return Err(Error::Truncated { server: Arc::clone(&self.server_name) }),
        };
        let mut came = 0;
        let mut sink = |data: &[u8]| {
            came += data.len() as u64;
            sink(data);
        };
        let stepped = open.step(&mut sink).await;
        open.permit.server().traffic.body_came(came);
        match stepped {
            Ok(true) => Ok(true),
            Ok(false) => {
                self.failed = open.work.talk.has_failed();
                if let Body::Open(mut open) = std::mem::replace(&mut self.body, Body::Ended) {
                    if let Coding::Http(reader) = &mut open.coding {
                        self.trailers = reader.take_trailers();
                    }
                    open.finish();
                }
                Ok(false)
            }
            Err(error) => {
                error.count(&open.work.core().counters);
                open.permit.server().note_error(error.to_string());
                open.abandon();
                self.body = Body::Failed;
                Err(error)
            }
        }
    }
}

impl Exchange {
    /// As [`Exchange::next`], for a body that comes over a stream.
    async fn next_of_stream(&mut self, sink: &mut dyn FnMut(&[u8])) -> Result<bool, Error> {
        let Body::Stream(open) = &mut self.body else { return Ok(false) };
        match open.step(sink).await {
            Ok(BodyProgress::Some) => Ok(true),
            Ok(BodyProgress::End(trailers)) => {
                (self.body, self.trailers) = (Body::Ended, trailers);
                Ok(false)
            }
            Err(error) => {
                open.note_failure(&error);
                self.body = Body::Failed;
                Err(error)
            }
        }
    }
}

impl OpenBody {
    /// Passes the buffered bytes, reading if there are none; true if there may be more.
    async fn step(&mut self, sink: &mut dyn FnMut(&[u8])) -> Result<bool, Error> {
        let mut since = None;
        loop {
            let heard = match self.coding {
                Coding::Http(_) => self.decode(sink)?,
                Coding::Records => self.decode_records(sink)?,
            };
            // The caller may take long for the bytes it was passed.
            self.work.rest();
            match heard {
                FastCgiProgress::End => return Ok(false),
                FastCgiProgress::Some => return Ok(true),
                FastCgiProgress::Nothing if self.read(&mut since).await? => {}
                FastCgiProgress::Nothing => return self.at_eof(),
            }
        }
    }

    fn decode(&mut self, sink: &mut dyn FnMut(&[u8])) -> Result<FastCgiProgress, Error> {
        let mut heard = FastCgiProgress::Nothing;
        while !self.work.unread().is_empty() {
            let name = self.name();
            let Coding::Http(reader) = &mut self.coding else { break };
            let unread = self.work.unread();
            let step =
                reader.read(unread).map_err(|source| Error::Body { server: name, source })?;
            if !step.data.is_empty() {
                sink(&unread[step.data]);
                heard = FastCgiProgress::Some;
            }
            self.work.start += step.consumed;
            if step.done {
                return Ok(FastCgiProgress::End);
            }
        }
        Ok(heard)
    }

    fn decode_records(&mut self, sink: &mut dyn FnMut(&[u8])) -> Result<FastCgiProgress, Error> {
        let name = self.name();
        let core = Rc::clone(self.work.core());
        let WorkspaceBuffers { bytes, start, end, talk, .. } = &mut *self.work;
        talk.read_body(&bytes[..*end], start, &core.reading(&name), sink)
    }

    /// Handles the end of the connection; returns false, since the body cannot continue.
    fn at_eof(&mut self) -> Result<bool, Error> {
        let whole = match &self.coding {
            Coding::Http(reader) => reader.at_eof().is_ok(),
            Coding::Records => self.work.talk.is_whole_at_eof(),
        };
        self.reusable = false;
        if whole { Ok(false) } else { Err(Error::Truncated { server: self.name() }) }
    }

    /// Fills the empty buffer; false if the connection ended. Bytes that are not body, such as a
    /// script's error stream, extend no deadline: `since` is the start of the wait.
    async fn read(&mut self, since: &mut Option<Instant>) -> Result<bool, Error> {
        let now = Instant::now();
        if now >= self.total.at {
            // Checked here, too: while bytes arrive, no timer is created.
            return Err(self.permit.server().deadline_error(self.total));
        }
        let between = Deadline::new(
            TimeoutStep::BetweenBytes,
            *since.get_or_insert(now),
            self.between_bytes_ms,
        );
        let deadline = between.or(self.total);
        let Self { link, work, most_now: most, .. } = self;
        let read = deadline.wait(|cx| work.poll_fill(cx, &mut link.stream, *most)).await;
        match read.ok_or_else(|| self.permit.server().deadline_error(deadline))? {
            Ok(read) => Ok(read > 0),
            Err(source) => Err(Error::Read { server: self.name(), source, in_body: true }),
        }
    }

    /// Informs a FastCGI server that the request was aborted. The connection ends right after; some
    /// applications do not check for that while they work.
    fn abandon(&mut self) {
        if matches!(self.coding, Coding::Records) && self.delivered {
            self.link.stream.send_now(fastcgi::encode::ABORT_REQUEST);
        }
    }

    /// Returns the connection to the pool, if its state is certain.
    fn finish(self) {
        // Bytes behind the response belong to no request (response splitting).
        if self.reusable && self.work.unread().is_empty() {
            let now_ms = rt::now().mono_ms;
            self.work.core().checkin(self.permit.server(), self.link, now_ms);
        }
    }

    fn name(&self) -> Arc<str> {
        Arc::clone(&self.permit.server().name)
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if let Body::Open(open) = &mut self.body {
            open.abandon();
        }
    }
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange")
            .field("response", &self.response)
            .field("framing", &self.framing)
            .field("server", &self.server_name)
            .field("reused", &self.reused)
            .field("tries", &self.tries)
            .finish_non_exhaustive()
    }
}
