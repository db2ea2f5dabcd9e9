//! A reply on its way to the client: where its head and body come from, and how the head is
//! written.
//!
//! Framing is not written here: the connection's engine adds it, for it alone knows what it can
//! send.

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
    /// From a fresh stored response.
    Hit,
    /// From a stale one within its grace.
    Stale,
    /// From a stale one because the origin failed.
    StaleOnError,
    /// From a stored response that the origin has just confirmed.
    Revalidated,
    /// Fetched for this request, or for another whose answer this request shares.
    Fetched {
        /// Why the store did not answer.
        reason: ForwardReason,
        /// The answer is stored.
        stored: bool,
        /// The fetch was another request's.
        collapsed: bool,
    },
    /// From a file.
    File,
    /// Made by policy or an error page.
    Synthetic,
    /// The answer to a purge.
    Purge,
    /// The answer to another node of the cluster.
    Peer(PeerAnswer),
}

/// An answer to another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerAnswer {
    /// A response that was stored.
    Stored,
    /// One that has been fetched for it.
    Fetched,
    /// None.
    Nothing,
}

/// Why a request went to the origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForwardReason {
    /// Policy said so.
    Bypass,
    /// The method is not one the store answers.
    Method,
    /// Nothing stored that fits.
    UriMiss,
    /// Something stored, but stale.
    Stale,
    /// A former answer was uncacheable.
    HitForMiss,
}

impl ForwardReason {
    /// The registered reason (RFC 9211 2.2).
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
    /// The word for `X-Cache` and the access log.
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

    /// The counter that counts it.
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

    /// The class in which it is counted by site and by time.
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

/// Where a head comes from.
#[derive(Debug)]
pub enum HeadSource {
    /// The bytes a stored response keeps, its status line replaced when another status is sent.
    Stored(Arc<Object>),
    /// That of a file.
    File {
        /// The file.
        file: Arc<OpenFile>,
        /// Date to send, in unix seconds.
        date_s: u64,
        /// Clients may get it in a coding, so Vary says so beside what the file's head says.
        varies: bool,
    },
    /// A head of this request's own.
    Owned(Box<Response>),
}

/// The fields that Varnish adds to stored responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VarnishFields {
    /// The transaction's number.
    pub xid: u64,
    /// The number of the fetch that brought what was found.
    pub found: Option<u64>,
    /// The client can ask for parts.
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

/// Fields that take the place of those of the head.
#[derive(Debug, Default)]
pub struct FieldOverrides {
    /// Content-Range of a 206 or 416.
    pub content_range: Option<Box<str>>,
    /// Content-Type that replaces the stored one (multipart/byteranges).
    pub content_type: Option<Box<str>>,
    /// The form with a dictionary that is sent.
    pub delta: Option<SentForm>,
    /// Names of the trailers that follow the body (RFC 9110 6.6.2).
    pub trailer: Option<Box<[u8]>>,
}

/// A body of several parts is sent with its head in one go if it is no longer.
const GATHERED_BYTES: u64 = 64 * 1024;

/// A reply's origin, as far as its site's settings for replies that are made here go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyOrigin {
    /// It was not made here, or says all that it is to say.
    No,
    /// It was made here: it lacks the site's fields.
    Here,
    /// The same, with the plain page of an error: a site may have its own.
    Plain,
}

/// A reply.
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
    /// Age to send, in seconds; `None` if the head speaks for itself.
    pub age_s: Option<u64>,
    /// Remaining lifetime to tell, in seconds; negative when stale.
    pub ttl_s: Option<i64>,
    /// Fields that Varnish adds, in the reply of a program.
    pub varnish: Option<VarnishFields>,
    /// Strict-Transport-Security to send, as an index into
    /// [`Announce::hsts`](crate::Announce::hsts).
    pub hsts: Option<u16>,
    /// Fields that take the place of those of the head. They are boxed, since replies are moved
    /// about and most have none.
    pub changed: Option<Box<FieldOverrides>>,
    /// The coding of the form of a stored body that is sent, where that is not the stored one: its
    /// entity tag is written with it.
    pub form: Option<Coding>,
    /// The form goes by the dictionary that a client has: Vary says so beside what the head says.
    pub by_dictionary: bool,
    /// The use that was made of the dictionary that the client has named.
    pub dictionary: DictionaryUse,
    /// The connection ends after the reply.
    pub close: bool,
    /// The part of a site's settings that a reply which was made here still lacks.
    pub(crate) made: ReplyOrigin,
    /// The reply has a whole body because more ranges were asked for than may be.
    pub(crate) too_many_ranges: bool,
    /// Notes on how the reply came about, for the log.
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
    /// A reply with a head and body of its own.
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

    /// Returns true if the form that is sent is one with a dictionary.
    pub(crate) fn has_delta(&self) -> bool {
        self.changed.as_ref().is_some_and(|changed| changed.delta.is_some())
    }

    /// Returns true if the form that is sent is not the stored one.
    pub(crate) fn is_other_form(&self) -> bool {
        self.form.is_some() || self.has_delta()
    }

    /// The fields that take the place of those of the head.
    pub(crate) fn change(&mut self) -> &mut FieldOverrides {
        self.changed.get_or_insert_default()
    }

    /// A refusal, `limit` being why.
    #[must_use]
    pub fn because_of(mut self, limit: impl Into<Option<Limit>>) -> Self {
        if let Some(trouble) = &mut self.about.trouble {
            trouble.limit = limit.into();
        }
        self
    }

    /// Returns true if the body is to be fetched anew for `request`: it outgrew the store before
    /// this request took hold of it, and its beginning is gone; or as much is read of the disk as
    /// may be, and all of it is wanted. An origin that knows no ranges would send all for a part.
    pub(crate) fn is_to_be_fetched(&self, request: &Request) -> bool {
        let ReplyBody::Stream { reader, .. } = &self.body else { return false };
        reader.is_behind() || reader.is_beyond() && !request.headers.contains(HeaderId::Range)
    }

    /// Leaves out a body that the answer to `request` does not have: that to HEAD only tells its
    /// length (RFC 9110 9.3.2).
    pub fn answer_to(&mut self, request: &Request) {
        if let ReplyBody::Parts(_) | ReplyBody::Stream { .. } = self.body {
            let body = std::mem::replace(&mut self.body, ReplyBody::None);
            self.body = body.answering(&request.method, self.status);
        }
    }

    /// The body's length, if it is known; 0 if it is absent.
    pub fn length(&self) -> Option<u64> {
        self.body.length()
    }

    /// Returns true if its request counts as under way until the reply is dropped, which is not to
    /// be before its last byte has left.
    pub fn is_counted(&self) -> bool {
        self.about.guarded.is_counted()
    }

    /// Returns true if nothing need be awaited to send the reply.
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

    /// Writes status line and fields as HTTP/1.1, without framing and without the empty line.
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

    /// Tells of the fields that are added to those of the head: the same for every engine.
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

    /// Tells of the fields of the form in `coding`.
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

    /// Writes how the request was served, and how long the origin took until its head was there
    /// (W3C Server Timing).
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

    /// Returns true if every field of the head is sent as it is.
    #[inline]
    pub fn keeps_all_fields(&self) -> bool {
        self.form.is_none() && self.changed.as_ref().is_none_or(|changed| changed.is_empty())
    }

    /// Returns true if this field of the head is sent: others of the reply's own take the place of
    /// the rest.
    pub fn keeps_field(&self, id: HeaderId, name: &[u8]) -> bool {
        match id {
            HeaderId::Other => match digest_of(name) {
                // Of a part, or of another coding, it is the digest of something else (RFC 9530).
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

    /// Appends lines of the head, as far as they are sent.
    fn push_kept(&self, lines: &[u8], out: &mut Vec<u8>) {
        if self.keeps_all_fields() {
            return out.extend_from_slice(lines);
        }
        // What is kept is appended in as few pieces as can be.
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

/// Where fields go that an engine writes in its own way.
pub trait FieldSink {
    /// Adds a field; `write` appends its value.
    fn add(&mut self, id: HeaderId, write: impl FnOnce(&mut Vec<u8>));

    /// Adds a field whose beginning is prepared; `write` appends the rest of its value.
    fn add_after(&mut self, start: &FieldStart, write: impl FnOnce(&mut Vec<u8>)) {
        self.add(start.id(), |out| {
            out.extend_from_slice(start.value());
            write(out);
        });
    }

    /// Adds a field that is prepared as a whole.
    fn add_whole(&mut self, field: &FieldStart) {
        self.add_after(field, |_| {});
    }
}

/// Fields as lines of HTTP/1.
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

/// The name of a field of this line, if it has the first letter and the length of one that a reply
/// may take out of a head; others need not be looked at.
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

    /// It is moved half a dozen times on its way: what is longer costs twice as much each time.
    #[test]
    fn a_reply_is_short() {
        assert!(size_of::<Reply>() <= 256, "{} bytes", size_of::<Reply>());
    }
}
