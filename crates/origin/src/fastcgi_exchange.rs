//! FastCGI exchange: encodes the request as records, and decodes the response from records.
//!
//! A script's output is complete if the server ended the request or closed STDOUT, never because
//! the connection ended.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use base::Account;
use fastcgi::params::{AddedParameter, Environment, Script};
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

/// The most STDOUT that is buffered during sending; then the head is returned, and sending stops.
const HELD_BYTES: usize = 64 << 10;
/// SERVER_SOFTWARE. Applications compare it with servers that they know: WordPress offers links
/// without `index.php` for Apache, IIS and nginx only. Larder has the features of nginx that they
/// then rely on: no `.htaccess`, all paths sent to the front controller, `X-Accel-*`.
const SOFTWARE: &str = concat!("larder/", env!("CARGO_PKG_VERSION"), " (as nginx)");

/// The context of a request for an origin.
#[derive(Clone, Debug, Default)]
pub struct OriginRequestContext {
    /// The client's address.
    pub client: Option<IpAddr>,
    /// Both ends of the client's connection.
    pub ends: Option<ClientEnds>,
    /// The most bytes of one read of the response, for a caller that must not buffer more; 0 for
    /// the buffer's size.
    pub read_at_most: u64,
    /// The account that spooled bodies are charged to; `None` for no account.
    pub account: Option<Arc<Account>>,
    /// The client's connection, which may use the origin connections that it owns; `None` if the
    /// response may be shared, or the client is unknown.
    pub owner: Option<Owner>,
    /// The server that gets the request while it is in use, as an index into the origin's list.
    pub preferred: Option<usize>,
    /// The request's own timeouts; the origin's if not set.
    pub timeouts: Option<Timeouts>,
    /// The request is not repeated if an idle connection turns out to be closed.
    pub once: bool,
}

/// The input of a FastCGI request besides the HTTP one.
#[derive(Clone, Debug)]
pub(crate) struct Cgi<'a> {
    pub(crate) found: Rc<ResolvedScript>,
    pub(crate) caller: &'a OriginRequestContext,
    /// The connection is to stay open.
    pub(crate) keep: bool,
    /// Parameters that settings add.
    pub(crate) added: Arc<[AddedParameter]>,
}

impl Cgi<'_> {
    /// Appends the request without its body; a request without a body is ended.
    pub(crate) fn encode(&self, out: &mut Vec<u8>, request: &Request, has_body: bool) {
        let (name, path_info) = match &self.found.target {
            ScriptTarget::Script { name, path_info } => (&name[..], &path_info[..]),
            // Only scripts get here.
            _ => (&b""[..], &b""[..]),
        };
        let OriginRequestContext { client, ends, .. } = *self.caller;
        let peer = ends.map(|ends| ends.client);
        let env = Environment {
            script: Script { root: &self.found.root, name, path_info },
            client,
            // Behind a proxy, the peer's port is the proxy's.
            client_port: peer.filter(|p| Some(p.ip()) == client).map(|p| p.port()),
            server: ends.map(|ends| ends.own),
            software: SOFTWARE,
            added: &self.added,
        };
        encode::begin_request(out, self.keep);
        params::write(out, request, &env);
        if !has_body {
            out.extend_from_slice(encode::STDIN_END);
        }
    }
}

/// A response that is being decoded from records.
#[derive(Debug, Default)]
pub(crate) struct FastCgiResponse {
    records: RecordReader,
    head: HeadReader,
    /// STDOUT not yet passed on: the growing head, then the start of the body from `at` on.
    stdout: Vec<u8>,
    at: usize,
    has_head: bool,
    end: Option<RequestEnd>,
    /// Bytes of Content-Length that are still to come.
    left: Option<u64>,
    /// The response has no body, whatever the script writes.
    bodiless: bool,
    about: String,
    stderr: Vec<u8>,
    stderr_dropped: u64,
}

/// The result of reading.
pub(crate) enum FastCgiProgress {
    /// No output: more bytes must be read.
    Nothing,
    /// Output was passed on.
    Some,
    /// The response is complete.
    End,
}

impl FastCgiResponse {
    /// Resets everything but the memory.
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

    /// Sets the text that identifies server, request and client in messages.
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

    /// The text received on STDERR, if any.
    pub(crate) fn said(&self) -> Option<crate::ServerMessage<'_>> {
        let Self { about, stderr, stderr_dropped, .. } = self;
        (!stderr.is_empty() || *stderr_dropped > 0).then_some(crate::ServerMessage {
            about,
            text: stderr,
            dropped: *stderr_dropped,
        })
    }

    /// Returns true if more was received on STDERR than is kept.
    pub(crate) fn has_dropped(&self) -> bool {
        self.stderr_dropped > 0
    }

    pub(crate) fn has_head(&self) -> bool {
        self.has_head
    }

    /// Returns true if the server has ended the request, with a response.
    pub(crate) fn is_over(&self) -> bool {
        self.end.is_some_and(|end| end.protocol == ProtocolStatus::Complete)
    }

    /// Returns true if the script ended with a failure status, as a PHP script does after a fatal
    /// error.
    pub(crate) fn has_failed(&self) -> bool {
        self.end.is_some_and(|end| end.app_status != 0)
    }

    /// Decodes `bytes`, advancing `start`, until the head is complete and, while `sending`, the
    /// buffer for the body is full.
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

    /// The framing of the body. The end of output of unknown length is announced, as a chunked
    /// body's is.
    pub(crate) fn framing(&self) -> Framing {
        match self.left {
            _ if self.bodiless => Framing::None,
            Some(length) => Framing::Length(length),
            None => Framing::Chunked,
        }
    }

    /// Passes the body in `bytes` to `sink`, advancing `start`.
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

    /// Returns true if the body is complete although the connection ended without an end of the
    /// request.
    pub(crate) fn is_whole_at_eof(&self) -> bool {
        self.records.stdout_closed() && self.has_all()
    }

    fn has_all(&self) -> bool {
        self.bodiless || self.left.is_none_or(|left| left == 0)
    }

    /// Passes `data` on; true if some of it belongs to the body.
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
            // Either of the two may be wrong.
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

/// The context for decoding a response.
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
