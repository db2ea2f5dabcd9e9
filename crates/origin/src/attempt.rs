//! Attempt: one request over one connection, up to the response's head. It must never retry by
//! itself.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use base::Account;
use fastcgi::ProtocolStatus;
use h1::ReadProgress;
use message::{Framing, Request, Response, Status, upgrade};
use rt::time::Instant;

use crate::config::Timeouts;
use crate::deadline::Deadline;
use crate::error::{Error, TimeoutStep};
use crate::events::Events;
use crate::fastcgi_exchange::Cgi;
use crate::owner::{self, Owner};
use crate::pool::{CorePoolState, Workspace, WorkspaceBuffers};
use crate::server::Server;
use crate::upload::{Upload, WriteError, Writer};
use crate::upstream_connection::UpstreamConnection;

/// The input of an attempt.
pub(crate) struct Call<'a> {
    pub(crate) core: &'a Rc<CorePoolState>,
    pub(crate) server: &'a Arc<Server>,
    pub(crate) request: &'a Request,
    /// The account of the response's bytes, if they are held.
    pub(crate) account: Option<&'a Arc<Account>>,
    pub(crate) timeouts: Timeouts,
    pub(crate) total: Deadline,
    /// The client has set `total`.
    pub(crate) is_timed: bool,
    /// FastCGI parameters, for a FastCGI server.
    pub(crate) cgi: Option<&'a Cgi<'a>>,
    /// The most bytes of one read.
    pub(crate) read_at_most: usize,
    /// Bytes that open a new connection.
    pub(crate) first: Vec<u8>,
}

/// A response's head and the connection of its body.
pub(crate) struct AttemptResponse {
    pub(crate) link: UpstreamConnection,
    pub(crate) work: Workspace,
    pub(crate) response: Response,
    pub(crate) framing: Framing,
    /// The connection can be reused, as far as is known before the body.
    pub(crate) reusable: bool,
    /// The server has received the whole request.
    pub(crate) delivered: bool,
    /// The response comes in FastCGI records.
    pub(crate) records: bool,
    /// The protocol of the connection from here on, after a 101.
    pub(crate) switched: Option<Vec<u8>>,
}

impl AttemptResponse {
    /// Assigns the connection to `owner` if a user has logged in to it by `request`, or was asked
    /// to. Without an owner the connection ends with this response.
    pub(crate) fn give_to(&mut self, owner: Option<&Owner>, request: &Request) {
        if !owner::is_taken(request, &self.response) {
            return;
        }
        match owner {
            Some(owner) => self.link.hold = Some(owner.hold(request)),
            None => self.reusable = false,
        }
    }
}

/// A failed attempt: the error, and the part of the request that the server may have processed.
#[derive(Debug)]
pub(crate) struct AttemptFailure {
    pub(crate) error: Error,
    /// The server has sent a byte.
    pub(crate) answered: bool,
    /// The part of the request that the server has received.
    pub(crate) reach: Reach,
    /// It counts as a failure of the server: it was not counted with another request's.
    pub(crate) is_counted: bool,
}

/// The part of a request that a server has received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// No byte.
    Nothing,
    /// Some, but not all.
    Part,
    /// All of it: the server may have acted on it.
    Whole,
}

/// An event on the connection.
enum AttemptEvent {
    /// The request was written.
    Sent,
    /// Writing now waits for the other side: the server or the source.
    Turned,
    /// Bytes were received.
    Received,
    /// The server ended the connection.
    Closed,
    /// Reading failed.
    ReadFailed(io::Error),
    /// Writing failed.
    WriteFailed(WriteError),
}

/// The progress of sending.
enum SendProgress {
    UnderWay,
    Done,
    /// Sending failed.
    Failed(io::Error),
}

/// An attempt in progress.
struct Attempt<'a, 'b, 'c> {
    call: &'c Call<'a>,
    upload: &'c mut Upload<'b>,
    events: &'c mut dyn Events,
    link: UpstreamConnection,
    work: Workspace,
    writer: Writer,
    response: Response,
    /// The server's socket is full; if false, the source has no bytes.
    blocked: bool,
    sending: SendProgress,
    answered: bool,
    seen_interim: usize,
    switched: Option<Vec<u8>>,
}

impl Call<'_> {
    /// Sends the request over `link` and reads the response's head.
    pub(crate) async fn attempt(
        &self,
        link: UpstreamConnection,
        upload: &mut Upload<'_>,
        events: &mut dyn Events,
    ) -> Result<AttemptResponse, AttemptFailure> {
        let (mut attempt, head) = self.begin(link, upload, events);
        let answered = attempt.head().await;
        self.server.traffic.sent(attempt.writer.written(), head);
        match answered {
            Ok((framing, keep_alive)) => {
                let delivered = attempt.reach() == Reach::Whole;
                let Attempt { link, work, response, switched, .. } = attempt;
                let reusable = keep_alive && delivered;
                let records = self.cgi.is_some();
                Ok(AttemptResponse {
                    link,
                    work,
                    response,
                    framing,
                    reusable,
                    delivered,
                    records,
                    switched,
                })
            }
            // The server guarantees that it did nothing.
            Err(error @ Error::NoAnswer { protocol: ProtocolStatus::Overloaded, .. }) => {
                Err(error.into())
            }
            Err(error) => {
                let (answered, reach) = (attempt.answered, attempt.reach());
                Err(AttemptFailure { error, answered, reach, is_counted: true })
            }
        }
    }

    /// An attempt that has written nothing yet, and the head that it will write. A separate
    /// function, so that its variables take no space in the future that waits.
    fn begin<'b, 'c>(
        &'c self,
        link: UpstreamConnection,
        upload: &'c mut Upload<'b>,
        events: &'c mut dyn Events,
    ) -> (Attempt<'c, 'b, 'c>, u64) {
        let mut work = Workspace::lend(self.core);
        work.reader.take_line_feeds(self.server.lenient);
        work.out.extend_from_slice(&self.first);
        match self.cgi {
            None => h1::encode::request_head(&mut work.out, self.request),
            Some(cgi) => {
                cgi.encode(&mut work.out, self.request, upload.has_body());
                work.talk.about(&self.server.name, self.request, cgi.caller);
            }
        }
        let head = work.out.len() as u64;
        let attempt = Attempt {
            call: self,
            upload,
            events,
            link,
            work,
            writer: Writer::default(),
            response: Response::new(Status::OK),
            blocked: false,
            sending: SendProgress::UnderWay,
            answered: false,
            seen_interim: 0,
            switched: None,
        };
        (attempt, head)
    }
}

impl Attempt<'_, '_, '_> {
    async fn head(&mut self) -> Result<(Framing, bool), Error> {
        let mut since = Instant::now();
        loop {
            let deadline = self.deadline(since);
            let happened = deadline.wait(|cx| self.poll(cx)).await;
            let happened = happened.ok_or_else(|| self.server().deadline_error(deadline))?;
            if let Some(head) = self.held_head(&happened) {
                return Ok(head);
            }
            match happened {
                AttemptEvent::Sent => {
                    self.sending = SendProgress::Done;
                    since = Instant::now();
                }
                AttemptEvent::Turned => since = Instant::now(),
                AttemptEvent::Received => {
                    self.answered = true;
                    let head = match self.call.cgi {
                        None => self.parse()?,
                        Some(_) => self.records_head()?,
                    };
                    if let Some(head) = head {
                        return Ok(head);
                    }
                }
                AttemptEvent::Closed => return Err(self.broken(None)),
                AttemptEvent::ReadFailed(error) => return Err(self.broken(Some(error))),
                AttemptEvent::WriteFailed(WriteError::Body(error)) => {
                    return Err(Error::RequestBody(error));
                }
                // The server may have answered before it stopped reading (413, for example): read
                // first.
                AttemptEvent::WriteFailed(WriteError::Io(error)) => {
                    self.sending = SendProgress::Failed(error);
                    since = Instant::now();
                }
            }
        }
    }

    fn server(&self) -> &Arc<Server> {
        self.call.server
    }

    fn deadline(&self, since: Instant) -> Deadline {
        let timeouts = &self.call.timeouts;
        let total = self.call.total;
        match self.sending {
            SendProgress::UnderWay if self.blocked => {
                Deadline::new(TimeoutStep::Send, since, timeouts.between_bytes_ms).or(total)
            }
            // The source is awaited: the client's timeouts are not this crate's task.
            SendProgress::UnderWay => total,
            _ => Deadline::new(TimeoutStep::FirstByte, since, timeouts.first_byte_ms).or(total),
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<AttemptEvent> {
        if !matches!(self.sending, SendProgress::UnderWay) {
            return self.poll_read(cx);
        }
        // A server may answer before it has read the body. Without a body, the response is read
        // after the head was written.
        if self.upload.has_body()
            && let Poll::Ready(happened) = self.poll_read(cx)
        {
            return Poll::Ready(happened);
        }
        let blocked = self.blocked;
        let before = self.writer.written();
        let Self { writer, link, work, upload, .. } = self;
        let step = writer.poll(cx, &mut link.stream, &mut work.out, upload, &mut self.blocked);
        match step {
            Poll::Ready(Ok(())) => Poll::Ready(AttemptEvent::Sent),
            Poll::Ready(Err(error)) => Poll::Ready(AttemptEvent::WriteFailed(error)),
            // The start of the timeout has changed.
            Poll::Pending if self.blocked != blocked || self.writer.written() != before => {
                Poll::Ready(AttemptEvent::Turned)
            }
            Poll::Pending => Poll::Pending,
        }
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<AttemptEvent> {
        let Self { link, work, .. } = self;
        work.poll_fill(cx, &mut link.stream, self.call.read_at_most).map(|read| match read {
            Ok(0) => AttemptEvent::Closed,
            Ok(_) => AttemptEvent::Received,
            Err(error) => AttemptEvent::ReadFailed(error),
        })
    }

    /// Parses heads from the buffer up to the final one; `None` if it is not complete.
    fn parse(&mut self) -> Result<Option<(Framing, bool)>, Error> {
        loop {
            let Call { core, server, request, .. } = self.call;
            let parts = &mut *self.work;
            let unread = &parts.bytes[parts.start..parts.end];
            let progress = parts
                .reader
                .read(unread, &core.head_limits, &request.method, &mut self.response)
                .map_err(|source| Error::Response { server: Arc::clone(&server.name), source })?;
            let ReadProgress::Complete(head) = progress else { return Ok(None) };
            parts.start += head.consumed;
            server.traffic.head_came(head.consumed);
            if head.line_feeds {
                core.note_line_feeds(server);
            }
            if !self.response.status.is_interim() {
                return Ok(Some((head.framing, head.keep_alive)));
            }
            if self.response.status.code() == 101 {
                self.switched = upgrade::switched(request, &self.response, head.upgrade);
                return match self.switched {
                    Some(_) => Ok(Some((Framing::None, false))),
                    None => Err(Error::UnexpectedUpgrade { server: self.name() }),
                };
            }
            self.note_interim()?;
            if self.work.unread().is_empty() {
                return Ok(None);
            }
        }
    }

    /// A script's head that was held back during sending, which has ended.
    fn held_head(&mut self, happened: &AttemptEvent) -> Option<(Framing, bool)> {
        let cgi = self.call.cgi.filter(|_| self.work.talk.has_head())?;
        self.sending = match happened {
            AttemptEvent::Sent => SendProgress::Done,
            // If the body is truncated, its reader will notice.
            AttemptEvent::Closed
            | AttemptEvent::ReadFailed(_)
            | AttemptEvent::WriteFailed(WriteError::Io(_)) => {
                SendProgress::Failed(io::ErrorKind::BrokenPipe.into())
            }
            _ => return None,
        };
        Some((self.work.talk.framing(), cgi.keep))
    }

    /// Parses a script's head from the records in the buffer; `None` if it is not complete. During
    /// sending, it is returned only when no more of the response can be buffered: scripts write
    /// before they have read everything, and a returned head ends the sending.
    fn records_head(&mut self) -> Result<Option<(Framing, bool)>, Error> {
        let Call { core, server, request, cgi, .. } = self.call;
        let sending = matches!(self.sending, SendProgress::UnderWay);
        let WorkspaceBuffers { bytes, start, end, talk, .. } = &mut *self.work;
        let reading = core.reading(&server.name);
        let (method, response) = (&request.method, &mut self.response);
        let framing = talk.read_head(&bytes[..*end], start, &reading, method, response, sending)?;
        Ok(framing.map(|framing| (framing, cgi.is_some_and(|cgi| cgi.keep))))
    }

    fn note_interim(&mut self) -> Result<(), Error> {
        if self.seen_interim >= self.call.core.interim_responses {
            return Err(Error::TooManyInterim { server: self.name() });
        }
        self.seen_interim += 1;
        // The 100 for the client is sent when its body is read. The server's 100 answers an
        // expectation that was never forwarded.
        if self.response.status.code() != 100 {
            let next = Response::new(Status::OK);
            self.events.interim(std::mem::replace(&mut self.response, next));
        }
        Ok(())
    }

    fn reach(&self) -> Reach {
        match self.sending {
            SendProgress::Done => Reach::Whole,
            _ if self.writer.written() == 0 => Reach::Nothing,
            _ => Reach::Part,
        }
    }

    fn name(&self) -> Arc<str> {
        Arc::clone(&self.call.server.name)
    }

    /// The error of a connection that ended before the response's head.
    fn broken(&mut self, read: Option<io::Error>) -> Error {
        let server = self.name();
        match (std::mem::replace(&mut self.sending, SendProgress::UnderWay), read) {
            (SendProgress::Failed(source), _) => Error::Write { server, source },
            (sending, read) => {
                self.sending = sending;
                match read {
                    Some(source) => Error::Read { server, source, in_body: false },
                    None => Error::ClosedBeforeHead { server },
                }
            }
        }
    }
}
