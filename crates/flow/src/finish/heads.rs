//! Header fields on all sides of a transaction, kept with its record while a reader asks for them.

use std::sync::Arc;

use base::Limit;
use message::{HeaderBlock, HeaderId, Request, Response, Version};
use observe::heads::{Field, Heads, Side};
use observe::record::{self, HEADS_MAX};
use observe::{Record, Wanted};
use origin::Origin;

use super::{CoreLog, Sinks, Told};
use crate::reply::Reply;
use crate::trace::Trace;

/// Room in which the heads of one transaction after another are put together.
#[derive(Debug, Default)]
pub(super) struct HeadRoom {
    heads: Heads,
    line: Vec<u8>,
}

/// Writes heads as far as somebody asks for them.
pub(super) struct Writer<'a> {
    heads: &'a mut Heads,
    /// Room for lines and heads that are made to be taken apart.
    line: &'a mut Vec<u8>,
    wanted: &'a Wanted,
    most: usize,
}

impl CoreLog {
    /// Takes over what readers ask for.
    pub(crate) fn want(&self, wanted: Option<Arc<Wanted>>) {
        *self.wanted.borrow_mut() = wanted;
    }

    /// Forgets readers that are gone.
    pub(crate) fn forget(&self, now_ms: u64) {
        let mut wanted = self.wanted.borrow_mut();
        if let Some(own) = wanted.as_ref().filter(|wanted| wanted.has_ended(now_ms)) {
            let rest = own.rest(now_ms).map(Arc::new);
            *wanted = rest;
        }
    }

    /// Returns true if a reader asks for header fields.
    pub(crate) fn is_asked(&self) -> bool {
        self.wanted.borrow().is_some()
    }

    /// Notes the head of a request to an origin.
    pub(crate) fn note_bereq(&self, trace: Option<&Trace>, request: &Request, origin: &Origin) {
        self.note(trace, Side::Bereq, |writer| writer.bereq(request, origin));
    }

    /// Notes the head of an origin's answer.
    pub(crate) fn note_beresp(&self, trace: Option<&Trace>, response: &Response) {
        self.note(trace, Side::Beresp, |writer| writer.response(Side::Beresp, response));
    }

    fn note(&self, trace: Option<&Trace>, side: Side, write: impl FnOnce(&mut Writer<'_>)) {
        let wanted = self.wanted.borrow();
        let (Some(wanted), Some(trace)) = (&*wanted, trace) else { return };
        if !wanted.keeps_any(side) {
            return;
        }
        let mut heads = trace.heads.borrow_mut();
        let heads = heads.get_or_insert_default();
        let line = &mut self.room.borrow_mut().line;
        write(&mut Writer { heads, line, wanted, most: HEADS_MAX });
    }

    /// Puts heads behind the record at `at` of the batch, if somebody asks for that.
    pub(super) fn add_heads(
        &self,
        core: &Sinks,
        (at, most): (usize, u64),
        write: impl FnOnce(&mut Writer<'_>),
    ) {
        let wanted = self.wanted.borrow();
        let Some(wanted) = &*wanted else { return };
        let mut batch = core.batch.borrow_mut();
        let record = batch.bytes.get(at..).and_then(Record::read);
        if !record.is_some_and(|(record, _)| wanted.matches(&record)) {
            return;
        }
        let mut room = self.room.borrow_mut();
        let HeadRoom { heads, line } = &mut *room;
        heads.clear();
        let most = usize::try_from(most).unwrap_or(HEADS_MAX).min(HEADS_MAX);
        write(&mut Writer { heads, line, wanted, most });
        if heads.is_cut() {
            self.counters.limit(Limit::LogHeads);
        }
        record::add_heads(&mut batch.bytes, at, heads.bytes(), heads.is_cut());
    }
}

impl Writer<'_> {
    /// Writes the fields that go with the record of a client's transaction.
    pub(super) fn answered(&mut self, reply: &Reply, told: &Told<'_>) {
        // A program's reader wants to know what it has made of the request.
        let left = reply.about.told.as_ref().and_then(|told| told.req.as_deref());
        if let Some(request) = left.or(told.request).filter(|_| self.wanted.keeps_any(Side::Req)) {
            self.req(request);
        }
        if let Some(trace) = &reply.about.trace {
            self.fetched(trace);
        }
        if self.wanted.keeps_any(Side::Resp) {
            self.reply(reply, told);
        }
    }

    /// Writes the fields that go with the record of a fetch.
    pub(super) fn fetched(&mut self, trace: &Trace) {
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
        self.add_line(Side::Req, &[request.method.token(), b" ", &request.target, version]);
        self.fields(Side::Req, &request.headers);
    }

    /// The request to `origin`, whose Host is written anew when it is sent.
    fn bereq(&mut self, request: &Request, origin: &Origin) {
        let line = [request.method.token(), b" ", &request.target, b" HTTP/1.1"];
        self.add_line(Side::Bereq, &line);
        let port = request.port.map_or_else(String::new, |port| format!(":{port}"));
        let host = match origin.host_for(request) {
            Some(host) => host.into(),
            None => [&request.host[..], port.as_bytes()].concat(),
        };
        self.add(Side::Bereq, b"Host", &host);
        for field in request.headers.iter().filter(|field| field.id != HeaderId::Host) {
            self.add(Side::Bereq, field.name, field.value);
        }
    }

    fn response(&mut self, side: Side, response: &Response) {
        let status = response.status.to_string();
        self.add_line(side, &[status.as_bytes(), b" ", &response.reason[..]]);
        self.fields(side, &response.headers);
    }

    /// The head of the answer to the client, but for what frames its body on the connection.
    fn reply(&mut self, reply: &Reply, told: &Told<'_>) {
        let mut head = std::mem::take(self.line);
        head.clear();
        reply.write_head(told.live, &mut head);
        let mut lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        let first = lines.next().unwrap_or_default();
        let status = first.strip_prefix(b"HTTP/1.1 ").unwrap_or(first);
        self.add(Side::Resp, b"", status);
        for line in lines {
            let Some(end) = memchr::memchr(b':', line) else { continue };
            self.add(Side::Resp, &line[..end], line[end + 1..].trim_ascii());
        }
        *self.line = head;
    }

    /// Adds the first line of a head.
    fn add_line(&mut self, side: Side, parts: &[&[u8]]) {
        if self.wanted.keeps(side, b"") {
            let mut line = std::mem::take(self.line);
            line.clear();
            parts.iter().for_each(|part| line.extend_from_slice(part));
            self.add(side, b"", &line);
            *self.line = line;
        }
    }

    fn fields(&mut self, side: Side, headers: &HeaderBlock) {
        for field in headers.iter() {
            self.add(side, field.name, field.value);
        }
    }

    fn add(&mut self, side: Side, name: &[u8], value: &[u8]) {
        if self.wanted.keeps(side, name) {
            let value = self.wanted.kept((side, name), value);
            self.heads.add(self.most, Field { side, name, value: &value });
        }
    }
}
