//! Reply to a client: the sources of its head and body, and how its head is written.
//!
//! Must never write framing: the connection's engine adds it, as only that knows what it can send.

use std::sync::Arc;

use base::tally::Outcome;
use base::{Counter, Limit};
use cache::Object;
use codec::Coding;
use files::OpenFile;
use memchr::memchr_iter;
use message::cache_status::{self, CacheStatus, Handling};
use message::date::HttpDate;
use message::digest::{DigestSubject, digest_of};
use message::pseudonym::FieldStart;
use message::{HeaderId, Request, Response, Status};
use observe::DictionaryUse;

use crate::sent_form::SentForm;
use crate::state::body::{BodyParts, ReplyBody};
use crate::state::live_configuration::LiveConfiguration;
use crate::state::trace::ReplyNotes;
use crate::stored_heads::{form_tags, form_tags_of_plain};

/// The cache's part in a reply, for `Cache-Status` (RFC 9211), `X-Cache`, counters and logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheOutcome {
    /// A fresh stored response.
    Hit,
    /// A stale one within its grace.
    Stale,
    /// A stale one because the origin failed.
    StaleOnError,
    /// A stored response that the origin has just confirmed.
    Revalidated,
    /// Fetched for this request, or by another request whose response this one shares.
    Fetched {
        /// The reason for which the store did not answer.
        reason: ForwardReason,
        /// The response is stored.
        stored: bool,
        /// Another request fetched it.
        collapsed: bool,
    },
    /// A file.
    File,
    /// Made by policy, or an error page.
    Synthetic,
    /// The answer to a purge.
    Purge,
    /// The answer to another node of the cluster.
    Peer(PeerAnswer),
}

/// The answer to another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerAnswer {
    /// A stored response.
    Stored,
    /// A response that was fetched for the node.
    Fetched,
    /// No response.
    Nothing,
}

/// The reason for which a request went to the origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForwardReason {
    /// The policy passed the request.
    Bypass,
    /// The method bypasses the store.
    Method,
    /// No stored response fits.
    UriMiss,
    /// The stored response is stale.
    Stale,
    /// A former response was uncacheable.
    HitForMiss,
}

impl ForwardReason {
    /// The registered token (RFC 9211 2.2).
    fn registered(self) -> cache_status::Forward {
        match self {
            Self::Bypass => cache_status::Forward::Bypass,
            Self::Method => cache_status::Forward::Method,
            Self::UriMiss | Self::HitForMiss => cache_status::Forward::UriMiss,
            Self::Stale => cache_status::Forward::Stale,
        }
    }
}

impl CacheOutcome {
    /// The token in `X-Cache` and the access log.
    pub fn word(self) -> &'static str {
        match self {
            Self::Hit => "HIT",
            Self::Stale => "STALE",
            Self::StaleOnError => "STALE-ERROR",
            Self::Revalidated => "REVALIDATED",
            Self::Fetched { reason: ForwardReason::Bypass | ForwardReason::Method, .. } => "PASS",
            Self::Fetched { collapsed: true, .. } => "COLLAPSED",
            Self::Fetched { .. } => "MISS",
            Self::File => "FILE",
            Self::Synthetic => "SYNTH",
            Self::Purge => "PURGE",
            Self::Peer(_) => "PEER",
        }
    }

    /// The counter of the outcome.
    pub fn counter(self) -> Counter {
        match self {
            Self::Hit => Counter::Hits,
            Self::Stale => Counter::StaleHits,
            Self::StaleOnError => Counter::StaleOnError,
            Self::Revalidated => Counter::RevalidatedAnswers,
            Self::Fetched { reason: ForwardReason::Bypass | ForwardReason::Method, .. } => {
                Counter::Passes
            }
            Self::Fetched { reason: ForwardReason::HitForMiss, .. } => Counter::HitForMiss,
            Self::Fetched { collapsed: true, .. } => Counter::Collapsed,
            Self::Fetched { .. } => Counter::Misses,
            Self::File => Counter::Files,
            Self::Synthetic | Self::Purge => Counter::Synthetic,
            Self::Peer(PeerAnswer::Stored) => Counter::PeersHits,
            Self::Peer(PeerAnswer::Fetched) => Counter::PeersFetches,
            Self::Peer(PeerAnswer::Nothing) => Counter::PeersRefused,
        }
    }

    /// The class of the outcome in counts by site and time.
    pub fn outcome(self) -> Outcome {
        match self {
            Self::Hit => Outcome::Hit,
            Self::Stale | Self::StaleOnError => Outcome::Stale,
            Self::Revalidated => Outcome::Revalidated,
            Self::Fetched { reason: ForwardReason::Bypass | ForwardReason::Method, .. } => {
                Outcome::Pass
            }
            Self::Fetched { .. } => Outcome::Miss,
            Self::File => Outcome::File,
            Self::Synthetic | Self::Purge => Outcome::Synth,
            Self::Peer(_) => Outcome::Peer,
        }
    }
}

/// The source of a head.
#[derive(Debug)]
pub enum HeadSource {
    /// The bytes of a stored response. Its status line is replaced if another status is sent.
    Stored(Arc<Object>),
    /// The head of a file.
    File {
        /// The file.
        file: Arc<OpenFile>,
        /// Date to send, in unix seconds.
        date_s: u64,
        /// Clients may get the file in a coding, so Vary is extended.
        varies: bool,
    },
    /// A head made for this request.
    Owned(Box<Response>),
}

/// The fields that Varnish adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VarnishFields {
    /// The transaction's number.
    pub xid: u64,
    /// The number of the fetch that stored the found object.
    pub found: Option<u64>,
    /// The client may request ranges.
    pub ranges: bool,
}

impl VarnishFields {
    /// Appends the value of X-Varnish.
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        number(out, self.xid);
        if let Some(found) = self.found {
            out.push(b' ');
            number(out, found);
        }
    }
}

/// Fields that replace those of the head.
#[derive(Debug, Default)]
pub struct FieldOverrides {
    /// Content-Range of a 206 or 416.
    pub content_range: Option<Box<str>>,
    /// The Content-Type of multipart/byteranges, which replaces the stored one.
    pub content_type: Option<Box<str>>,
    /// The dictionary-coded form that is sent.
    pub delta: Option<SentForm>,
    /// Names of the trailers that follow the body (RFC 9110 6.6.2).
    pub trailer: Option<Box<[u8]>>,
}

/// A body of several parts up to this length is sent with its head in one write.
const GATHERED_BYTES: u64 = 64 * 1024;

/// The part of a site's settings for replies made here that a reply still needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyOrigin {
    /// None: the reply was not made here, or is complete.
    No,
    /// The site's fields: the reply was made here.
    Here,
    /// The site's fields, and its error page instead of the plain one.
    Plain,
}

/// A reply to a client.
#[derive(Debug)]
pub struct Reply {
    /// Status to send.
    pub status: Status,
    /// Head.
    pub head: HeadSource,
    /// Body.
    pub body: ReplyBody,
    /// The cache's part in the reply.
    pub served: CacheOutcome,
    /// Age to send, in seconds; `None` if the head contains it.
    pub age_s: Option<u64>,
    /// Remaining lifetime to send, in seconds; negative if stale.
    pub ttl_s: Option<i64>,
    /// Fields that Varnish adds, in the reply of a program.
    pub varnish: Option<VarnishFields>,
    /// Strict-Transport-Security to send, as an index into
    /// [`ProxyFields::hsts`](crate::ProxyFields::hsts).
    pub hsts: Option<u16>,
    /// Fields that replace those of the head. Boxed, as replies are moved and most have none.
    pub changed: Option<Box<FieldOverrides>>,
    /// The coding that is sent instead of the stored one, if it differs; the entity tag is written
    /// for it.
    pub form: Option<Coding>,
    /// The form depends on the client's dictionary, so Vary is extended.
    pub by_dictionary: bool,
    /// The use of the client's dictionary.
    pub dictionary: DictionaryUse,
    /// The connection ends after the reply.
    pub close: bool,
    /// The site's settings that a reply made here still needs.
    pub(crate) made: ReplyOrigin,
    /// The reply has the whole body because too many ranges were requested.
    pub(crate) too_many_ranges: bool,
    /// Notes on the course of the request, for the log.
    pub about: ReplyNotes,
}

impl FieldOverrides {
    fn is_empty(&self) -> bool {
        self.content_type.is_none() && self.content_range.is_none() && self.delta.is_none()
    }

    fn add_fields(&self, fields: &mut impl FieldSink) {
        if let Some(range) = &self.content_range {
            fields.add(HeaderId::ContentRange, |out| push(out, range));
        }
        if let Some(kind) = &self.content_type {
            fields.add(HeaderId::ContentType, |out| push(out, kind));
        }
        if let Some(delta) = &self.delta {
            if let Some(token) = delta.coding.token() {
                fields.add(HeaderId::ContentEncoding, |out| push(out, token));
            }
            if let Some(tag) = &delta.tag {
                fields.add(HeaderId::Etag, |out| out.extend_from_slice(tag));
            }
        }
        if let Some(names) = &self.trailer {
            fields.add(HeaderId::Trailer, |out| out.extend_from_slice(names));
        }
    }
}

impl Reply {
    /// A reply with its own head and body.
    pub fn owned(response: Response, body: ReplyBody, served: CacheOutcome) -> Self {
        Self::new(response.status, HeadSource::Owned(Box::new(response)), body, served)
    }

    /// A reply with the head of `object`.
    pub fn stored(object: &Arc<Object>, body: ReplyBody, served: CacheOutcome) -> Self {
        Self::new(object.status(), HeadSource::Stored(Arc::clone(object)), body, served)
    }

    pub(crate) fn new(
        status: Status,
        head: HeadSource,
        body: ReplyBody,
        served: CacheOutcome,
    ) -> Self {
        Self {
            status,
            head,
            body,
            served,
            age_s: None,
            ttl_s: None,
            varnish: None,
            hsts: None,
            changed: None,
            form: None,
            by_dictionary: false,
            dictionary: DictionaryUse::NotNamed,
            close: false,
            made: ReplyOrigin::No,
            too_many_ranges: false,
            about: ReplyNotes::default(),
        }
    }

    /// Returns true if the sent form depends on a dictionary.
    pub(crate) fn has_delta(&self) -> bool {
        self.changed.as_ref().is_some_and(|changed| changed.delta.is_some())
    }

    /// Returns true if the sent form is not the stored one.
    pub(crate) fn is_other_form(&self) -> bool {
        self.form.is_some() || self.has_delta()
    }

    /// The replaced fields, allocated at first use.
    pub(crate) fn change(&mut self) -> &mut FieldOverrides {
        self.changed.get_or_insert_default()
    }

    /// Notes the limit that caused the reply.
    #[must_use]
    pub fn because_of(mut self, limit: impl Into<Option<Limit>>) -> Self {
        if let Some(failure) = &mut self.about.failure {
            failure.limit = limit.into();
        }
        self
    }

    /// Returns true if the body must be fetched anew for `request`: it outgrew the store before
    /// this request read it, so its beginning is gone; or too much is being read of the disk, and
    /// the whole is wanted. An origin without ranges would send the whole for a part.
    pub(crate) fn is_to_be_fetched(&self, request: &Request) -> bool {
        let ReplyBody::Stream { reader, .. } = &self.body else { return false };
        reader.is_behind() || reader.is_beyond() && !request.headers.contains(HeaderId::Range)
    }

    /// Removes a body that the answer to `request` must not have: HEAD gets only the length (RFC
    /// 9110 9.3.2).
    pub fn answer_to(&mut self, request: &Request) {
        if let ReplyBody::Parts(_) | ReplyBody::Stream { .. } = self.body {
            let body = std::mem::replace(&mut self.body, ReplyBody::None);
            self.body = body.answering(&request.method, self.status);
        }
    }

    /// The body's length, if known; 0 without a body.
    pub fn length(&self) -> Option<u64> {
        self.body.length()
    }

    /// Returns true if the request counts as in progress until the reply is dropped, which must not
    /// happen before its last byte was sent.
    pub fn is_counted(&self) -> bool {
        self.about.guarded.is_counted()
    }

    /// Returns true if the reply can be sent without waiting.
    pub fn is_at_hand(&self) -> bool {
        if self.is_counted() {
            return false;
        }
        match &self.body {
            ReplyBody::Parts(parts @ BodyParts::Many(_)) => {
                parts.len() <= GATHERED_BYTES && !parts.has_file()
            }
            ReplyBody::Stream { .. } | ReplyBody::Tunnel(_) => false,
            _ => true,
        }
    }

    /// Writes status line and fields as HTTP/1.1, without framing and the empty line.
    pub fn write_head(&self, live: &LiveConfiguration, out: &mut Vec<u8>) {
        match &self.head {
            HeadSource::Stored(object) => self.write_stored(object, out),
            HeadSource::File { file, date_s, .. } => self.write_file(file, *date_s, out),
            HeadSource::Owned(response) if response.no_reason => {
                h1::encode::head_without_reason(out, self.status, &response.headers);
            }
            HeadSource::Owned(response) => {
                h1::encode::stored_head(out, self.status, &response.reason, &response.headers);
            }
        }
        self.add_fields(live, &mut Http1FieldLines(out));
    }

    /// Adds the fields beside those of the head to `fields`, for any engine.
    pub fn add_fields(&self, live: &LiveConfiguration, fields: &mut impl FieldSink) {
        if let HeadSource::Stored(object) = &self.head {
            fields.add_whole(live.announce.pseudonym.via(object.flags().http10));
        }
        if let Some(varnish) = self.varnish {
            fields.add(HeaderId::XVarnish, |out| varnish.write(out));
            if varnish.ranges {
                fields.add(HeaderId::AcceptRanges, |out| push(out, "bytes"));
            }
        }
        if let Some(age) = self.age_s {
            fields.add(HeaderId::Age, |out| number(out, age));
        }
        if let Some(hsts) = self.hsts.and_then(|at| live.announce.hsts.get(usize::from(at))) {
            fields.add(HeaderId::StrictTransportSecurity, |out| push(out, hsts));
        }
        if let Some(changed) = &self.changed {
            changed.add_fields(fields);
        }
        if let Some(coding) = self.form {
            self.add_form(coding, fields);
        }
        if let HeadSource::File { varies: true, .. } = &self.head {
            fields.add(HeaderId::Vary, |out| push(out, HeaderId::AcceptEncoding.name()));
        }
        if self.by_dictionary {
            let name = HeaderId::AvailableDictionary.name();
            fields.add(HeaderId::Vary, |out| push(out, name));
        }
        if live.announce.cache_status
            && let Some(status) = self.cache_status(live)
        {
            match status.begun() {
                Some(start) => fields.add_after(start, |out| status.write_details(out)),
                None => fields.add(HeaderId::CacheStatus, |out| status.write(out)),
            }
        }
        if live.announce.x_cache {
            fields.add(HeaderId::XCache, |out| push(out, self.served.word()));
        }
        if live.announce.server_timing
            && self.about.site(live).is_some_and(|site| site.shown.server_timing)
        {
            fields.add(HeaderId::ServerTiming, |out| self.write_timing(out));
        }
    }

    /// Adds the fields of the form in `coding`.
    fn add_form(&self, coding: Coding, fields: &mut impl FieldSink) {
        if coding != Coding::Identity {
            fields.add(HeaderId::ContentEncoding, |out| push(out, coding.token()));
        }
        let tags = match &self.head {
            HeadSource::Stored(object) => form_tags(object),
            HeadSource::File { file, .. } => Some(form_tags_of_plain(file.etag())),
            HeadSource::Owned(_) => None,
        };
        if let Some(tags) = tags {
            fields.add(HeaderId::Etag, |out| tags.write(coding, out));
        }
    }

    /// Writes the cache's part and the origin's time to its head (W3C Server Timing).
    fn write_timing(&self, out: &mut Vec<u8>) {
        for part in ["cache;desc=\"", self.served.word(), "\""] {
            push(out, part);
        }
        let trace = self.about.trace.as_deref();
        let fetch = trace.and_then(|trace| trace.fetch_us.get().zip(trace.head_us.get()));
        if let Some((from, until)) = fetch {
            let us = until.saturating_sub(from);
            push(out, &format!(", origin;dur={}.{:03}", us / 1000, us % 1000));
        }
    }

    fn write_file(&self, file: &OpenFile, date_s: u64, out: &mut Vec<u8>) {
        self.write_status(out);
        line(out, HeaderId::Date, HttpDate::new(date_s).as_bytes());
        let lines = file.lines(self.status == Status::NOT_MODIFIED);
        self.push_kept(lines, out);
    }

    fn write_status(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"HTTP/1.1 ");
        number(out, u64::from(self.status.code()));
        out.push(b' ');
        out.extend_from_slice(self.status.reason().as_bytes());
        out.extend_from_slice(b"\r\n");
    }

    fn write_stored(&self, object: &Object, out: &mut Vec<u8>) {
        let head = object.head();
        if self.status == object.status() && self.keeps_all_fields() {
            out.extend_from_slice(head);
            return;
        }
        self.write_status(out);
        let lines = head.iter().position(|b| *b == b'\n').map_or(&[][..], |at| &head[at + 1..]);
        self.push_kept(lines, out);
    }

    /// Returns true if each field of the head is sent.
    #[inline]
    pub fn keeps_all_fields(&self) -> bool {
        self.form.is_none() && self.changed.as_ref().is_none_or(|changed| changed.is_empty())
    }

    /// Returns true if this field of the head is sent; others are replaced by the reply's own.
    pub fn keeps_field(&self, id: HeaderId, name: &[u8]) -> bool {
        match id {
            HeaderId::Other => match digest_of(name) {
                // A digest of the whole does not hold for a part or another coding (RFC 9530).
                Some(DigestSubject::Content) => self.keeps_all_fields(),
                Some(DigestSubject::Representation) => !self.is_other_form(),
                None => true,
            },
            HeaderId::ContentType => {
                self.changed.as_ref().is_none_or(|changed| changed.content_type.is_none())
            }
            HeaderId::ContentEncoding | HeaderId::Etag => !self.is_other_form(),
            _ => true,
        }
    }

    /// Appends the fields of the head that are sent.
    fn push_kept(&self, lines: &[u8], out: &mut Vec<u8>) {
        if self.keeps_all_fields() {
            return out.extend_from_slice(lines);
        }
        // Kept lines are appended in as few pieces as possible.
        let (mut from, mut at) = (0, 0);
        for end in memchr_iter(b'\n', lines) {
            if let Some(name) = changeable_name(&lines[at..end])
                && !self.keeps_field(HeaderId::of(name), name)
            {
                out.extend_from_slice(&lines[from..at]);
                from = end + 1;
            }
            at = end + 1;
        }
        out.extend_from_slice(&lines[from..]);
    }

    fn cache_status<'a>(&'a self, live: &'a LiveConfiguration) -> Option<CacheStatus<'a>> {
        let handling = match self.served {
            CacheOutcome::Synthetic
            | CacheOutcome::Purge
            | CacheOutcome::File
            | CacheOutcome::Peer(_) => return None,
            CacheOutcome::Hit | CacheOutcome::Stale => Handling::Hit,
            CacheOutcome::StaleOnError | CacheOutcome::Revalidated => {
                Handling::Forwarded(cache_status::Forward::Stale)
            }
            CacheOutcome::Fetched { reason, .. } => Handling::Forwarded(reason.registered()),
        };
        let state = match self.served {
            CacheOutcome::Fetched { reason: ForwardReason::HitForMiss, .. } => Some("hit-for-miss"),
            CacheOutcome::StaleOnError => Some("origin-failed"),
            _ => None,
        };
        let rule = if live.announce.detail { self.about.rule_name(live) } else { None };
        let mut status = CacheStatus::new(&live.announce.pseudonym, handling);
        status.ttl_secs = self.ttl_s;
        status.detail = rule.or(state);
        if self.served == CacheOutcome::Revalidated {
            status.fwd_status = Some(Status::NOT_MODIFIED);
        }
        if let CacheOutcome::Fetched { stored, collapsed, .. } = self.served {
            (status.stored, status.collapsed) = (stored, collapsed);
        }
        Some(status)
    }
}

/// A receiver of fields, which each engine writes in its own format.
pub trait FieldSink {
    /// Adds a field; `write` appends its value.
    fn add(&mut self, id: HeaderId, write: impl FnOnce(&mut Vec<u8>));

    /// Adds a field with a prepared beginning; `write` appends the rest of its value.
    fn add_after(&mut self, start: &FieldStart, write: impl FnOnce(&mut Vec<u8>)) {
        self.add(start.id(), |out| {
            out.extend_from_slice(start.value());
            write(out);
        });
    }

    /// Adds a prepared field.
    fn add_whole(&mut self, field: &FieldStart) {
        self.add_after(field, |_| {});
    }
}

/// Fields as HTTP/1 lines.
struct Http1FieldLines<'a>(&'a mut Vec<u8>);

impl FieldSink for Http1FieldLines<'_> {
    fn add(&mut self, id: HeaderId, write: impl FnOnce(&mut Vec<u8>)) {
        push(self.0, id.name());
        self.0.extend_from_slice(b": ");
        write(self.0);
        self.0.extend_from_slice(b"\r\n");
    }

    fn add_after(&mut self, start: &FieldStart, write: impl FnOnce(&mut Vec<u8>)) {
        self.0.extend_from_slice(start.line());
        write(self.0);
        self.0.extend_from_slice(b"\r\n");
    }

    fn add_whole(&mut self, field: &FieldStart) {
        self.0.extend_from_slice(field.whole_line());
    }
}

fn line(out: &mut Vec<u8>, id: HeaderId, value: &[u8]) {
    out.extend_from_slice(id.name().as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

fn push(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
}

pub(crate) fn number(out: &mut Vec<u8>, n: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(n).as_bytes());
}

/// The field name in this line, if its first letter and length are those of a replaceable field;
/// others need no lookup.
fn changeable_name(line: &[u8]) -> Option<&[u8]> {
    const CHANGEABLE: [(u8, &[usize]); 4] = [
        (
            b'c',
            &[
                "Content-MD5".len(),
                "Content-Type".len(),
                "Content-Digest".len(),
                "Content-Encoding".len(),
            ],
        ),
        (b'd', &["Digest".len()]),
        (b'e', &["ETag".len()]),
        (b'r', &["Repr-Digest".len()]),
    ];
    let first = line.first()?.to_ascii_lowercase();
    let (_, lengths) = CHANGEABLE.iter().find(|(letter, _)| *letter == first)?;
    let length = lengths.iter().find(|length| line.get(**length) == Some(&b':'))?;
    Some(&line[..*length])
}

#[cfg(test)]
mod tests {
    use message::digest::DIGESTS;

    use super::*;

    #[test]
    fn fields_that_a_reply_may_take_out_are_found_by_their_length() {
        let digests = DIGESTS.map(|(name, _)| name);
        for name in ["Content-Type", "content-encoding", "ETag"].into_iter().chain(digests) {
            let line = format!("{name}: x:y\r");
            assert_eq!(changeable_name(line.as_bytes()), Some(name.as_bytes()), "{name}");
        }
        for line in ["Cache-Control: no-cache", "Date: now", "Expires: 0", "E:Tag: 0", "C", ""] {
            assert_eq!(changeable_name(line.as_bytes()), None, "{line}");
        }
    }

    /// A reply is moved half a dozen times, and a longer one costs twice as much each time.
    #[test]
    fn a_reply_is_short() {
        assert!(size_of::<Reply>() <= 256, "{} bytes", size_of::<Reply>());
    }
}
