//! Trailers on their way through: which of their fields the site lets pass, and what is announced.
//!
//! They pass beside requests and responses that are not stored, under a declared policy. Programs
//! see no trailers, and could therefore not keep any back: theirs are dropped, as Varnish drops
//! them.

use std::sync::Arc;

use message::header::Field;
use message::list::members;
use message::trailers::{announced, are_taken};
use message::{Framing, HeaderBlock, HeaderId, Request, Response, Trailers};
use policy::{Notes, TrailerCtx};

use crate::live::Site;

/// The gate that the trailers of one message have to pass.
pub(crate) struct Gate {
    site: Arc<Site>,
    notes: Notes,
    of_request: bool,
    /// Names that Connection lists in the head: fields of these names are for the connection that
    /// the head came over (RFC 9110 7.6.1).
    nominated: Vec<u8>,
}

impl Gate {
    /// For a request whose client sent `headers`.
    pub(crate) fn of_request(site: &Arc<Site>, notes: Notes, headers: &HeaderBlock) -> Self {
        Self { site: Arc::clone(site), notes, of_request: true, nominated: nominated(headers) }
    }

    /// For a response that came with `headers`.
    pub(crate) fn of_response(site: &Arc<Site>, notes: Notes, headers: &HeaderBlock) -> Self {
        Self { site: Arc::clone(site), notes, of_request: false, nominated: nominated(headers) }
    }

    /// Leaves what passes of `trailers`.
    pub(crate) fn pass(&self, mut trailers: Trailers) -> Option<Trailers> {
        trailers.retain(|field| self.passes(*field));
        trailers.non_empty()
    }

    /// The names of trailers that `headers` announce and that pass: those of a chunked body, for no
    /// other has trailers.
    pub(crate) fn announced(&self, headers: &HeaderBlock, framing: Framing) -> Option<Vec<u8>> {
        if framing != Framing::Chunked {
            return None;
        }
        announced(headers, |name| self.passes(Field { id: HeaderId::of(name), name, value: b"" }))
    }

    fn passes(&self, field: Field<'_>) -> bool {
        let ctx = TrailerCtx { field, of_request: self.of_request, notes: &self.notes };
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

/// Has the origin told that trailers are taken, where `client` takes some, and which ones follow
/// the request's body.
pub(crate) fn tell_origin(request: &mut Request, client: &Request, gate: &Gate) {
    request.passes_trailers = true;
    if are_taken(&client.headers) {
        request.headers.push(HeaderId::Te, b"trailers");
    }
    if let Some(names) = gate.announced(&client.headers, client.framing) {
        request.headers.push(HeaderId::Trailer, &names);
    }
}

/// Has the client told which trailers follow the response's body.
pub(crate) fn tell_client(response: &mut Response, announced: Option<Vec<u8>>) {
    response.passes_trailers = true;
    if let Some(names) = announced {
        response.headers.push(HeaderId::Trailer, &names);
    }
}
