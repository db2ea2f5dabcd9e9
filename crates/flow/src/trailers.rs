//! Trailers in transit: the fields that a site lets pass, and their announcement.
//!
//! Under a declared policy they pass with requests and responses, and are stored with responses.
//! They must never be merged into a head. Programs, beside settings too, do not see trailers and so
//! could not remove any: theirs are dropped.

use std::sync::Arc;
use std::task::{Context, Poll};

use base::Account;
use bytes::Bytes;
use cache::{ExternalBody, ExternalBodyReader, IncompleteBody, Object, Reader};
use message::digest::digest_of;
use message::header::Field;
use message::list::members;
use message::trailers::{announced, are_taken};
use message::{Framing, HeaderBlock, HeaderId, Request, Response, Trailers, Version};
use policy::{Notes, TrailerCtx};

use crate::state::body::{BodyPart, BodyParts, ReplyBody};
use crate::state::reply::Reply;
use crate::state::site::Site;

/// The filter of one message's trailers.
pub(crate) struct TrailerFilter {
    site: Arc<Site>,
    notes: Notes,
    of_request: bool,
    /// Names that Connection lists in the head: such fields belong to that connection (RFC 9110
    /// 7.6.1).
    nominated: Vec<u8>,
}

impl TrailerFilter {
    /// The filter for a request whose client sent `headers`.
    pub(crate) fn of_request(site: &Arc<Site>, notes: Notes, headers: &HeaderBlock) -> Self {
        Self { site: Arc::clone(site), notes, of_request: true, nominated: nominated(headers) }
    }

    /// The filter for a response that came with `headers`.
    pub(crate) fn of_response(site: &Arc<Site>, notes: Notes, headers: &HeaderBlock) -> Self {
        Self { site: Arc::clone(site), notes, of_request: false, nominated: nominated(headers) }
    }

    /// Returns the trailers that may pass.
    pub(crate) fn pass(&self, mut trailers: Trailers) -> Option<Trailers> {
        trailers.retain(|field| self.passes(*field));
        trailers.non_empty()
    }

    /// The announced names in `headers` that may pass; only a chunked body has trailers.
    pub(crate) fn announced(&self, headers: &HeaderBlock, framing: Framing) -> Option<Vec<u8>> {
        if framing != Framing::Chunked {
            return None;
        }
        announced(headers, |name| self.passes(Field { id: HeaderId::of(name), name, value: b"" }))
    }

    fn passes(&self, field: Field<'_>) -> bool {
        if self.site.extra.is_some() {
            return false;
        }
        let ctx = TrailerCtx { field, of_request: self.of_request, notes: &self.notes };
        if self.of_request
            && self.site.gates.as_ref().is_some_and(|own| own.reads_field(field.name))
        {
            return false;
        }
        let mut named = members([&self.nominated[..]]);
        !named.any(|name| name.eq_ignore_ascii_case(field.name))
            && self.site.policy.passes_trailer(&ctx)
    }
}

fn nominated(headers: &HeaderBlock) -> Vec<u8> {
    let mut names = Vec::new();
    for value in headers.values(HeaderId::Connection) {
        names.extend_from_slice(value);
        names.push(b',');
    }
    names
}

/// Announces to the origin that trailers are accepted, if `client` accepts some, and which trailers
/// follow the request's body.
pub(crate) fn announce_to_origin(request: &mut Request, client: &Request, filter: &TrailerFilter) {
    request.passes_trailers = true;
    if are_taken(&client.headers) {
        request.headers.push(HeaderId::Te, b"trailers");
    }
    if let Some(names) = filter.announced(&client.headers, client.framing) {
        request.headers.push(HeaderId::Trailer, &names);
    }
}

/// Announces to the origin that trailers are accepted, for a response that is for all clients.
pub(crate) fn ask_origin(request: &mut Request) {
    request.passes_trailers = true;
    request.headers.push(HeaderId::Te, b"trailers");
}

/// Keeps the trailers that hold for any coding: a digest or an entity tag is of one coding.
pub(crate) fn of_any_form(mut trailers: Trailers) -> Option<Trailers> {
    trailers.retain(|field| field.id != HeaderId::Etag && digest_of(field.name).is_none());
    trailers.non_empty()
}

/// Makes the trailers stored with `object` follow `reply`, whose whole body is the object's, if the
/// client accepts trailers. The body is then sent without a length: in HTTP/1 only a chunked body
/// has trailers (RFC 9112 7.1.2).
#[inline]
pub(crate) fn follow(request: &Request, object: &Object, reply: &mut Reply) {
    if let Some(kept) = object.trailers() {
        follow_some(request, kept, reply);
    }
}

fn follow_some(request: &Request, kept: &Trailers, reply: &mut Reply) {
    let takes = match request.version {
        Version::Http10 => false,
        Version::Http11 => are_taken(&request.headers),
        Version::Http2 => true,
    };
    if !takes {
        return;
    }
    let follows = match reply.is_other_form() {
        false => Some(kept.clone()),
        true => of_any_form(kept.clone()),
    };
    let Some(follows) = follows else { return };
    let names = follows.names();
    let reader = match std::mem::replace(&mut reply.body, ReplyBody::None) {
        ReplyBody::Parts(BodyParts::One(BodyPart::Stored(object, _))) => object.reader(),
        ReplyBody::Parts(BodyParts::One(BodyPart::Bytes(bytes))) => {
            Reader::of_elsewhere(&(Arc::new(TrailedBytes { bytes, trailers: follows }) as _))
        }
        ReplyBody::Stream { reader, .. } => reader,
        other => return reply.body = other,
    };
    reply.body = ReplyBody::Stream { reader, length: None };
    reply.change().trailer = Some(names.into());
}

/// Bytes with trailers behind them.
#[derive(Debug)]
struct TrailedBytes {
    bytes: Bytes,
    trailers: Trailers,
}

impl ExternalBody for TrailedBytes {
    fn length(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn open(self: Arc<Self>) -> Box<dyn ExternalBodyReader> {
        Box::new(TrailedReading { bytes: self.bytes.clone(), at: 0 })
    }

    fn trailers(&self) -> Option<Trailers> {
        Some(self.trailers.clone())
    }
}

/// A read of bytes with trailers.
#[derive(Debug)]
struct TrailedReading {
    bytes: Bytes,
    at: usize,
}

impl ExternalBodyReader for TrailedReading {
    fn seek(&mut self, offset: u64) {
        self.at = usize::try_from(offset).unwrap_or(usize::MAX);
    }

    fn poll_next(
        &mut self,
        _: Option<&Arc<Account>>,
        _: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, IncompleteBody>> {
        let rest = self.bytes.slice(self.at.min(self.bytes.len())..);
        self.at = self.bytes.len();
        Poll::Ready(Ok(Some(rest).filter(|rest| !rest.is_empty())))
    }
}

/// Announces the trailers that follow the response's body.
pub(crate) fn announce_to_client(response: &mut Response, announced: Option<Vec<u8>>) {
    response.passes_trailers = true;
    if let Some(names) = announced {
        response.headers.push(HeaderId::Trailer, &names);
    }
}
