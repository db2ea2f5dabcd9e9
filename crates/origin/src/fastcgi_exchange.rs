//! FastCGI's side of an exchange: the request as records, and the response out of records.
//!
//! A script's output counts as whole when the server ended the request, or closed STDOUT; never
//! because the connection ended.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use base::Account;
use fastcgi::params::{Environment, Script};
use fastcgi::script::ScriptTarget;
use fastcgi::{
    Event, HeadLimits, HeadReader, ProtocolStatus, RecordReader, RequestEnd, encode, params,
};
use message::{Framing, HeaderId, Method, Request, Response};

use crate::client_ends::ClientEnds;
use crate::config::Timeouts;
use crate::error::Error;
use crate::owner::Owner;
use crate::scripts::ResolvedScript;

/// STDOUT held at most while the request is still being sent; then the head is handed out, and the
/// rest of the request is not sent.
const HELD_BYTES: usize = 64 << 10;
/// SERVER_SOFTWARE. Applications look there for a server that they know: WordPress offers links
/// without `index.php` for Apache, IIS and nginx alone. What they then count on is nginx's, and
/// here too: no `.htaccess`, all paths led to the front controller, `X-Accel-*`.
const SOFTWARE: &str = concat!("larder/", env!("CARGO_PKG_VERSION"), " (as nginx)");

/// Facts about a request that it does not say itself.
#[derive(Clone, Debug, Default)]
pub struct OriginRequestContext {
    /// On whose behalf it is made.
    pub client: Option<IpAddr>,
    /// Both ends of the connection it came over.
    pub ends: Option<ClientEnds>,
    /// Bytes of the answer read at once, for a caller that must not hold more; 0 for as many as
    /// there is room for.
    pub read_at_most: u64,
    /// For whom a body is held that must be there as a whole; none for nobody's account.
    pub account: Option<Arc<Account>>,
    /// The client's connection, which may go on with connections that are its own; `None` where the
    /// answer may be for others, or where no one client is known.
    pub owner: Option<Owner>,
    /// The request's own timeouts; the origin's when not set.
    pub timeouts: Option<Timeouts>,
    /// The request is not sent again over a new connection where a kept one turns out to be closed.
    pub once: bool,
}

/// The input of a FastCGI request beside the HTTP one.
#[derive(Clone, Debug)]
pub(crate) struct Cgi<'a> {
    pub(crate) found: Rc<ResolvedScript>,
    pub(crate) caller: &'a OriginRequestContext,
    /// The connection is to stay open.
    pub(crate) keep: bool,
}

impl Cgi<'_> {
    /// Appends the request but for its body; one without body is ended.
    pub(crate) fn encode(&self, out: &mut Vec<u8>, request: &Request, has_body: bool) {
        let (name, path_info) = match &self.found.target {
            ScriptTarget::Script { name, path_info } => (&name[..], &path_info[..]),
            // Only scripts are asked for.
            _ => (&b""[..], &b""[..]),
        };
        let OriginRequestContext { client, ends, .. } = *self.caller;
        let peer = ends.map(|ends| ends.client);
        let env = Environment {
            script: Script { root: &self.found.root, name, path_info },
            client,
            // Behind a proxy the peer's port is the proxy's.
            client_port: peer.filter(|p| Some(p.ip()) == client).map(|p| p.port()),
            server: ends.map(|ends| ends.own),
            software: SOFTWARE,
        };
        encode::begin_request(out, self.keep);
        params::write(out, request, &env);
        if !has_body {
            out.extend_from_slice(encode::STDIN_END);
        }
    }
}

/// A response being read from records.
#[derive(Debug, Default)]
pub(crate) struct FastCgiResponse {
    records: RecordReader,
    head: HeadReader,
    /// STDOUT not yet handed out: the head as it grows, then the body's begin from `at` on.
    stdout: Vec<u8>,
    at: usize,
    has_head: bool,
    end: Option<RequestEnd>,
    /// Bytes of body that Content-Length says are still to come.
    left: Option<u64>,
    /// The response has no body, whatever the script writes.
    bodiless: bool,
    about: String,
    stderr: Vec<u8>,
    stderr_dropped: u64,
}

/// The outcome of reading on.
pub(crate) enum FastCgiProgress {
    /// Nothing that could be handed out: more must be read.
    Nothing,
    /// Something was handed out.
    Some,
    /// The response is over, and whole.
    End,
}

impl FastCgiResponse {
    /// Forgets everything but the memory.
    pub(crate) fn reset(&mut self) {
        self.records = RecordReader::new();
        self.head = HeadReader::new();
        self.stdout.clear();
        (self.at, self.has_head, self.end) = (0, false, None);
        (self.left, self.bodiless) = (None, false);
        self.about.clear();
        self.stderr.clear();
        self.stderr_dropped = 0;
    }

    /// Notes of whom and what the server may have something to say.
    pub(crate) fn about(&mut self, server: &str, request: &Request, caller: &OriginRequestContext) {
        let text = |bytes| String::from_utf8_lossy(bytes);
        let (method, host, target) =
            (text(request.method.token()), text(&request.host), text(&request.target));
        let scheme = request.scheme.as_str();
        for part in [server, ": ", &*method, " ", scheme, "://", &*host, &*target] {
            self.about.push_str(part);
        }
        if let Some(client) = caller.client {
            // Writing to a String cannot fail.
            _ = write!(self.about, " from {client}");
        }
    }

    /// The text that came on STDERR, if there is any.
    pub(crate) fn said(&self) -> Option<crate::ServerMessage<'_>> {
        let Self { about, stderr, stderr_dropped, .. } = self;
        (!stderr.is_empty() || *stderr_dropped > 0).then_some(crate::ServerMessage {
            about,
            text: stderr,
            dropped: *stderr_dropped,
        })
    }

    /// Returns true if more came on STDERR than is kept.
    pub(crate) fn has_dropped(&self) -> bool {
        self.stderr_dropped > 0
    }

    pub(crate) fn has_head(&self) -> bool {
        self.has_head
    }

    /// Returns true if the server has ended the request, and answered it.
    pub(crate) fn is_over(&self) -> bool {
        self.end.is_some_and(|end| end.protocol == ProtocolStatus::Complete)
    }

    /// Returns true if the script ended with a status that means failure, as a PHP script does that
    /// has died.
    pub(crate) fn has_failed(&self) -> bool {
        self.end.is_some_and(|end| end.app_status != 0)
    }

    /// Reads on in `bytes`, advancing `start`, until the head is whole and, while `sending`, there
    /// is no room for more of the body.
    pub(crate) fn read_head(
        &mut self,
        bytes: &[u8],
        start: &mut usize,
        about: &FastCgiContext<'_>,
        method: &Method,
        response: &mut Response,
        sending: bool,
    ) -> Result<Option<Framing>, Error> {
        while !(self.has_head && (!sending || self.stdout.len() >= HELD_BYTES)) {
            let unread = &bytes[*start..];
            let step = self.records.read(unread).map_err(|source| about.records(source))?;
            *start += step.consumed;
            match step.event {
                Event::More => return Ok(None),
                Event::Stderr(range) => self.note(&unread[range], about.stderr_bytes),
                Event::Stdout(range) => {
                    self.stdout.extend_from_slice(&unread[range]);
                    self.find_head(about, method, response)?;
                }
                Event::End(end) => {
                    self.end = Some(end);
                    if !self.has_head || end.protocol != ProtocolStatus::Complete {
                        let (server, protocol) = (Arc::clone(about.server), end.protocol);
                        return Err(Error::NoAnswer { server, protocol });
                    }
                    break;
                }
            }
        }
        Ok(Some(self.framing()))
    }

    fn find_head(
        &mut self,
        about: &FastCgiContext<'_>,
        method: &Method,
        response: &mut Response,
    ) -> Result<(), Error> {
        if self.has_head {
            return Ok(());
        }
        let head = self.head.read(&self.stdout, &about.limits, response);
        let server = || Arc::clone(about.server);
        let head = head.map_err(|source| Error::ScriptHead { server: server(), source })?;
        let Some(head) = head else { return Ok(()) };
        self.has_head = true;
        self.at = head.consumed;
        self.left = head.length;
        self.bodiless = *method == Method::Head || response.status.has_no_body();
        if let Some(length) = head.length {
            response.headers.push(HeaderId::ContentLength, length.to_string().as_bytes());
        }
        Ok(())
    }

    /// The framing of the body. The end of a script's output of unknown length is announced, as a
    /// chunked body's is.
    pub(crate) fn framing(&self) -> Framing {
        match self.left {
            _ if self.bodiless => Framing::None,
            Some(length) => Framing::Length(length),
            None => Framing::Chunked,
        }
    }

    /// Hands the body in `bytes`, advancing `start`, to `sink`.
    pub(crate) fn read_body(
        &mut self,
        bytes: &[u8],
        start: &mut usize,
        about: &FastCgiContext<'_>,
        sink: &mut dyn FnMut(&[u8]),
    ) -> Result<FastCgiProgress, Error> {
        let mut heard = FastCgiProgress::Nothing;
        if self.at < self.stdout.len() {
            let held = std::mem::take(&mut self.stdout);
            let handed = self.hand_out(&held[self.at..], about, sink);
            (self.stdout, self.at) = (held, 0);
            self.stdout.clear();
            if handed? {
                heard = FastCgiProgress::Some;
            }
        }
        while self.end.is_none() {
            let unread = &bytes[*start..];
            let step = self.records.read(unread).map_err(|source| about.records(source))?;
            *start += step.consumed;
            match step.event {
                Event::More => return Ok(heard),
                Event::Stderr(range) => self.note(&unread[range], about.stderr_bytes),
                Event::Stdout(range) => {
                    if self.hand_out(&unread[range], about, sink)? {
                        heard = FastCgiProgress::Some;
                    }
                }
                Event::End(end) => self.end = Some(end),
            }
        }
        if self.is_over() && self.has_all() {
            Ok(FastCgiProgress::End)
        } else {
            Err(about.truncated())
        }
    }

    /// Returns true if the body is whole although the connection ended without a word about the
    /// request.
    pub(crate) fn is_whole_at_eof(&self) -> bool {
        self.records.stdout_closed() && self.has_all()
    }

    fn has_all(&self) -> bool {
        self.bodiless || self.left.is_none_or(|left| left == 0)
    }

    /// Hands out `data`; whether it had anything that belongs to the body.
    fn hand_out(
        &mut self,
        data: &[u8],
        about: &FastCgiContext<'_>,
        sink: &mut dyn FnMut(&[u8]),
    ) -> Result<bool, Error> {
        if self.bodiless {
            return Ok(false);
        }
        let most = self
            .left
            .map_or(data.len(), |left| usize::try_from(left).unwrap_or(usize::MAX).min(data.len()));
        if let Some(left) = &mut self.left {
            *left -= most as u64;
        }
        if most > 0 {
            sink(&data[..most]);
        }
        if most < data.len() {
            // Which of the two is wrong nobody knows.
            return Err(Error::Surplus { server: Arc::clone(about.server) });
        }
        Ok(most > 0)
    }

    fn note(&mut self, text: &[u8], most: usize) {
        let kept = text.len().min(most.saturating_sub(self.stderr.len()));
        self.stderr.extend_from_slice(&text[..kept]);
        self.stderr_dropped += (text.len() - kept) as u64;
    }
}

/// The context in which a response is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FastCgiContext<'a> {
    pub(crate) server: &'a Arc<str>,
    pub(crate) limits: HeadLimits,
    pub(crate) stderr_bytes: usize,
}

impl FastCgiContext<'_> {
    fn records(&self, source: fastcgi::RecordError) -> Error {
        Error::Records { server: Arc::clone(self.server), source }
    }

    fn truncated(&self) -> Error {
        Error::Truncated { server: Arc::clone(self.server) }
    }
}
