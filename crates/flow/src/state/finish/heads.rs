//! Heads on all sides of a transaction, recorded while a log reader requests them.

use message::{HeaderBlock, HeaderId, Request, Response, Version};
use observe::FieldSubscriptions;
use observe::heads::{Field, HeadSide, Heads};
use origin::Origin;

use super::transaction_facts::TransactionFacts;
use crate::state::reply::Reply;
use crate::state::trace::Trace;

/// Buffers in which the heads of one transaction after another are assembled.
#[derive(Debug, Default)]
pub(crate) struct HeadRoom {
    pub(crate) heads: Heads,
    pub(crate) line: Vec<u8>,
}

/// A writer of the heads that readers request.
pub(crate) struct Writer<'a> {
    pub(crate) heads: &'a mut Heads,
    /// A buffer for lines and heads that are made to be parsed.
    pub(crate) line: &'a mut Vec<u8>,
    pub(crate) wanted: &'a FieldSubscriptions,
    pub(crate) most: usize,
}

impl Writer<'_> {
    /// Writes the heads of a client's transaction.
    pub(crate) fn answered(&mut self, reply: &Reply, facts: &TransactionFacts<'_>) {
        // With a program, readers see the request as the program changed it.
        let left = reply.about.program_trace.as_ref().and_then(|program| program.req.as_deref());
        if let Some(request) =
            left.or(facts.request).filter(|_| self.wanted.keeps_any(HeadSide::Req))
        {
            self.req(request);
        }
        if let Some(trace) = &reply.about.trace {
            self.fetched(trace);
        }
        if self.wanted.keeps_any(HeadSide::Resp) {
            self.reply(reply, facts);
        }
    }

    /// Writes the heads of a fetch.
    pub(crate) fn fetched(&mut self, trace: &Trace) {
        if let Some(heads) = &*trace.heads.borrow() {
            self.heads.append(self.most, heads);
        }
    }

    /// The client's request.
    fn req(&mut self, request: &Request) {
        let version = match request.version {
            Version::Http10 => &b" HTTP/1.0"[..],
            Version::Http11 => b" HTTP/1.1",
            Version::Http2 => b" HTTP/2.0",
        };
        self.add_line(HeadSide::Req, &[request.method.token(), b" ", &request.target, version]);
        for field in request.sent_fields() {
            self.add(HeadSide::Req, field.name, field.value);
        }
    }

    /// Writes the request to `origin`, whose Host is set when it is sent.
    pub(crate) fn bereq(&mut self, request: &Request, origin: &Origin) {
        let line = [request.method.token(), b" ", &request.target, b" HTTP/1.1"];
        self.add_line(HeadSide::Bereq, &line);
        let port = request.port.map_or_else(String::new, |port| format!(":{port}"));
        let host = match origin.host_for(request) {
            Some(host) => host.into(),
            None => [&request.host[..], port.as_bytes()].concat(),
        };
        self.add(HeadSide::Bereq, b"Host", &host);
        for field in request.headers.iter().filter(|field| field.id != HeaderId::Host) {
            self.add(HeadSide::Bereq, field.name, field.value);
        }
    }

    pub(crate) fn response(&mut self, side: HeadSide, response: &Response) {
        let status = response.status.to_string();
        self.add_line(side, &[status.as_bytes(), b" ", &response.reason[..]]);
        self.fields(side, &response.headers);
    }

    /// Writes the head of the client's response, without the connection's framing.
    fn reply(&mut self, reply: &Reply, facts: &TransactionFacts<'_>) {
        let mut head = std::mem::take(self.line);
        head.clear();
        reply.write_head(facts.live, &mut head);
        let mut lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        let first = lines.next().unwrap_or_default();
        let status = first.strip_prefix(b"HTTP/1.1 ").unwrap_or(first);
        self.add(HeadSide::Resp, b"", status);
        for line in lines {
            let Some(end) = memchr::memchr(b':', line) else { continue };
            self.add(HeadSide::Resp, &line[..end], line[end + 1..].trim_ascii());
        }
        *self.line = head;
    }

    /// Writes the first line of a head.
    fn add_line(&mut self, side: HeadSide, parts: &[&[u8]]) {
        if self.wanted.keeps(side, b"") {
            let mut line = std::mem::take(self.line);
            line.clear();
            parts.iter().for_each(|part| line.extend_from_slice(part));
            self.add(side, b"", &line);
            *self.line = line;
        }
    }

    fn fields(&mut self, side: HeadSide, headers: &HeaderBlock) {
        for field in headers.iter() {
            self.add(side, field.name, field.value);
        }
    }

    fn add(&mut self, side: HeadSide, name: &[u8], value: &[u8]) {
        if self.wanted.keeps(side, name) {
            let value = self.wanted.kept(side, name, value);
            self.heads.add(self.most, Field { side, name, value: &value });
        }
    }
}
