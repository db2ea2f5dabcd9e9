//! A response from its head to the end of its body.

use std::fmt;
use std::future::Future as _;
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use h1::BodyReader;
use message::{Framing, Response, Trailers};
use rt::time::Instant;

use crate::attempt::AttemptResponse;
use crate::deadline::Deadline;
use crate::error::{Error, TimeoutStep};
use crate::fastcgi_exchange::FastCgiProgress;
use crate::pool::{Workspace, WorkspaceBuffers};
use crate::server::Permit;
use crate::tunnel::Tunnel;
use crate::upstream_connection::UpstreamConnection;

/// Buffers of an unwanted body that are read off to keep its connection: an error page fits.
const DISCARDS: usize = 2;

/// A response whose body is still to be read.
///
/// [`Exchange::next`] is called until it says that there is no more or fails. At the clean end the
/// connection goes back to its pool; dropping an exchange before that closes the connection.
pub struct Exchange {
    /// The final response's head.
    pub response: Response,
    /// The framing of its body. [`Framing::UntilClose`] cannot tell an end from an accident: such a
    /// body is never known to be whole. A FastCGI response of unknown length is
    /// [`Framing::Chunked`], because its end is announced, too.
    pub framing: Framing,
    /// The server that answered, as an index into the origin's list.
    pub server: usize,
    /// That server's name.
    pub server_name: Arc<str>,
    /// That server's address; none of a unix socket, or where no server was asked.
    pub peer: Option<SocketAddr>,
    /// The response came over a kept connection.
    pub reused: bool,
    /// The number of times that the request was sent, this one included.
    pub tries: u32,
    body: Body,
    failed: bool,
    trailers: Option<Trailers>,
}

/// The rest of the exchange.
enum Body {
    /// Bytes to come.
    Open(Box<OpenBody>),
    /// Bytes that are there.
    Ready(Bytes),
    /// The connection speaks another protocol from here on.
    Switched(Box<Tunnel>),
    /// Read to its end.
    Ended,
    /// Broken: there is no clean end any more.
    Failed,
}

/// A body being read.
struct OpenBody {
    // Before the permit: whoever it lets in finds the connection idle, or its place free.
    link: UpstreamConnection,
    work: Workspace,
    coding: Coding,
    delivered: bool,
    reusable: bool,
    total: Deadline,
    between_bytes_ms: u64,
    /// Bytes read at once.
    most: usize,
    most_now: usize,
    permit: Permit,
}

/// In what the body comes.
enum Coding {
    Http(BodyReader),
    /// FastCGI's records; the workspace knows where in them it is.
    Records,
}

/// Facts that the caller of [`Exchange::new`] knows.
pub(crate) struct ExchangeInput {
    pub(crate) server: usize,
    pub(crate) reused: bool,
    pub(crate) tries: u32,
    pub(crate) permit: Permit,
    pub(crate) total: Deadline,
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

    /// An answer made here: no server was asked.
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

    /// Lets the body take as long as it goes on: from now on only the time between bytes counts.
    pub fn lift_total(&mut self) {
        if let Body::Open(open) = &mut self.body {
            open.total = Deadline::new(TimeoutStep::Total, Instant::now(), u64::MAX);
        }
    }

    /// Returns true if the end of the response said that the script had failed (FastCGI's
    /// appStatus): the response is whole and may be wrong. This is known once the body was read to
    /// its end.
    pub fn has_failed(&self) -> bool {
        self.failed
    }

    /// The trailer fields that may pass, once. They come with the body's end.
    pub fn take_trailers(&mut self) -> Option<Trailers> {
        self.trailers.take()
    }

    /// Reads at most `bytes` at once from now on, and never more than the caller of the request
    /// wanted.
    pub fn read_at_most(&mut self, bytes: usize) {
        if let Body::Open(open) = &mut self.body {
            open.most_now = open.most.min(bytes);
        }
    }

    /// The connection, when the server has changed its protocol as it was asked to (a 101); once.
    pub fn take_tunnel(&mut self) -> Option<Box<Tunnel>> {
        match std::mem::replace(&mut self.body, Body::Ended) {
            Body::Switched(tunnel) => Some(tunnel),
            body => {
                self.body = body;
                None
            }
        }
    }

    /// Gives up the rest of the body. What of it is there already is read off, so that the
    /// connection can be kept if that is all.
    pub(crate) fn discard(&mut self) {
        let mut cx = Context::from_waker(Waker::noop());
        for _ in 0..DISCARDS {
            let mut sink = |_: &[u8]| {};
            let Poll::Ready(Ok(true)) = pin!(self.next(&mut sink)).poll(&mut cx) else { return };
        }
    }

    /// Hands the next body bytes to `sink`, as slices of the buffer they were read into, waiting
    /// for some if there are none yet; false at the end, which may come together with the last
    /// bytes, and after it. One call hands out at most what one buffer holds, so that the caller
    /// sets the pace.
    ///
    /// Cancelling it loses nothing.
    ///
    /// # Errors
    /// When the body is malformed, cut short or late. What was handed out before is then not the
    /// whole body, and every later call fails too.
    pub async fn next(&mut self, sink: &mut dyn FnMut(&[u8])) -> Result<bool, Error> {
        let open = match &mut self.body {
            Body::Open(open) => open,
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
        open.permit.server().tally.body_came(came);
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
                open.work.core().note_failure(&error);
                open.permit.server().note_error(error.to_string());
                open.abandon();
                self.body = Body::Failed;
                Err(error)
            }
        }
    }
}

impl OpenBody {
    /// Hands out what is in the buffer, reading if it is empty; whether there may be more.
    async fn step(&mut self, sink: &mut dyn FnMut(&[u8])) -> Result<bool, Error> {
        let mut since = None;
        loop {
            let heard = match self.coding {
                Coding::Http(_) => self.decode(sink)?,
                Coding::Records => self.decode_records(sink)?,
            };
            // The caller may take its time with what it was handed.
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

    /// The connection ended; whether the body may go on, which it never does.
    fn at_eof(&mut self) -> Result<bool, Error> {
        let whole = match &self.coding {
            Coding::Http(reader) => reader.at_eof().is_ok(),
            Coding::Records => self.work.talk.is_whole_at_eof(),
        };
        self.reusable = false;
        if whole { Ok(false) } else { Err(Error::Truncated { server: self.name() }) }
    }

    /// Fills the empty buffer; false when the connection ended. What is no body, such as a script's
    /// error stream, puts off no deadline: `since` is when the wait began.
    async fn read(&mut self, since: &mut Option<Instant>) -> Result<bool, Error> {
        let now = Instant::now();
        if now >= self.total.at {
            // Checked here too: while bytes keep coming no timer is ever made.
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

    /// Tells a FastCGI server that nobody waits any more. The connection ends right after; not all
    /// applications look for that while they work.
    fn abandon(&mut self) {
        if matches!(self.coding, Coding::Records) && self.delivered {
            self.link.stream.send_now(fastcgi::encode::ABORT_REQUEST);
        }
    }

    /// Gives the connection back, if nothing about it is in doubt.
    fn finish(self) {
        // Bytes beyond the response belong to no request of ours (T5, response splitting).
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
