//! Form in which a client gets a stored body: as stored, in a further form that is stored beside
//! it, or decoded on the fly. One object serves all clients.
//!
//! A client that accepts the stored coding costs one look at its Accept-Encoding.

use std::sync::Arc;

use base::MemoryBudget;
use bytes::Bytes;
use cache::{NewObject, Object, Record};
use codec::etag::{FormTags, form_of, write_form};
use codec::{Accept, Coding, EncodeSettings};
use message::digest::digest_of;
use message::{HeaderBlock, HeaderId, Method, Request, Response, conditional};

use crate::recode::BodyRecoding;
use crate::sent_form::{SentCoding, SentForm};
use crate::state::body::ReplyBody;
use crate::state::dictionary;
use crate::stored_heads::{form_tags, head_to_store, stored_head};
use codec::{Compression, CompressionScope};

/// The form that a client gets, and the form that it prefers.
#[derive(Debug)]
pub(crate) struct Choice {
    pub(crate) coding: Coding,
    pub(crate) from: FormSource,
    /// The further form that would be sent if it existed.
    pub(crate) wanted: Option<Coding>,
    /// No existing form is as welcome to the client as gzip, which can be made soon.
    pub(crate) lacks_gzip: bool,
}

/// The source of a form.
#[derive(Debug, Default)]
pub(crate) enum FormSource {
    /// The stored body.
    #[default]
    Stored,
    /// A further form beside it.
    Beside(Bytes),
    /// The stored body, decoded while it is sent.
    Decoded,
}

/// Returns the number of the form in `coding` within the store.
pub(crate) const fn number(coding: Coding) -> usize {
    coding as usize
}

/// The codings that the client of `request` accepts.
#[inline]
pub(crate) fn accept(request: &Request) -> Accept {
    Accept::of(request.headers.values(HeaderId::AcceptEncoding))
}

/// Chooses the form of `object` for a client. Among equally preferred forms the first of the
/// settings wins, then the stored one. An object that is not negotiated has a single form.
///
/// A client that accepts no form gets the body without a coding, even with `identity;q=0`, as in
/// nginx and Apache: RFC 9110 12.5.3 permits it, and it helps more than a 406.
#[inline]
pub(crate) fn choose(object: &Object, request: &Request, settings: &Compression) -> Choice {
    let flags = object.flags();
    let is_plain = flags.coding == Coding::Identity;
    let is_one = !flags.negotiated && !flags.gzip_page;
    // Without Accept-Encoding the body is sent as stored.
    if is_one || is_plain && !request.headers.contains(HeaderId::AcceptEncoding) {
        let (coding, from) = (flags.coding, FormSource::Stored);
        return Choice { coding, from, wanted: None, lacks_gzip: false };
    }
    let accept = accept(request);
    let own = [if is_plain { Coding::Gzip } else { flags.coding }, Coding::Identity];
    // The most preferred form, and the most preferred one that exists.
    let (mut wanted, mut most) = (Coding::Identity, 0);
    let (mut there, mut most_there) = (Coding::Identity, 0);
    for coding in settings.forms.iter().chain(&own).copied() {
        let weight = accept.weight(coding);
        if weight > most {
            (wanted, most) = (coding, weight);
        }
        let is_stored = coding == flags.coding || coding == Coding::Identity;
        let is_there = || is_stored || object.has_form(number(coding));
        if weight > most_there && is_there() {
            (there, most_there) = (coding, weight);
        }
    }
    let wanted = Some(wanted).filter(|wanted| *wanted != there);
    let lacks_gzip = is_plain && accept.weight(Coding::Gzip) > most_there;
    let beside = (there != flags.coding).then(|| object.form(number(there)));
    let (coding, from) = match beside {
        None => (there, FormSource::Stored),
        Some(Some(bytes)) => (there, FormSource::Beside(bytes)),
        // No form existed, or it was evicted between two looks.
        Some(None) if is_plain => (Coding::Identity, FormSource::Stored),
        Some(None) => (Coding::Identity, FormSource::Decoded),
    };
    Choice { coding, from, wanted, lacks_gzip }
}

/// The entity tag of the form of `object` in `coding`.
pub(crate) fn tag(object: &Record, coding: Coding) -> Option<Vec<u8>> {
    let mut tag = Vec::new();
    form_tags(object)?.write(coding, &mut tag);
    Some(tag)
}

/// The origin's entity tag of `object`.
pub(crate) fn origin_tag(object: &Record) -> Option<Vec<u8>> {
    let mut tag = Vec::new();
    form_tags(object)?.write_origin(&mut tag);
    Some(tag)
}

/// The length of the body of `object` without its coding, if it is known.
pub(crate) fn plain_length(object: &Object) -> Option<u64> {
    match object.flags().coding {
        Coding::Identity => object.length(),
        _ => object.plain_length(),
    }
}

/// Makes `headers` those of the form in `coding`, with this entity tag.
pub(crate) fn give(headers: &mut HeaderBlock, coding: SentCoding, tag: Option<&[u8]>) {
    match coding.token() {
        None => headers.remove(HeaderId::ContentEncoding),
        Some(token) => headers.set(HeaderId::ContentEncoding, token.as_bytes()),
    }
    match tag {
        Some(tag) => headers.set(HeaderId::Etag, tag),
        None => headers.remove(HeaderId::Etag),
    }
    // Digests are of the other form (RFC 9530 2 and 3).
    headers.retain(|field| digest_of(field.name).is_none());
}

/// Returns true if the response's Vary lists Accept-Encoding.
pub(crate) fn varies_by_coding(headers: &HeaderBlock) -> bool {
    let mut names = message::list::members(headers.values(HeaderId::Vary));
    names.any(|name| HeaderId::of(name) == HeaderId::AcceptEncoding)
}

/// Adds Accept-Encoding to Vary.
pub(crate) fn vary_by_coding(headers: &mut HeaderBlock) {
    if !varies_by_coding(headers) {
        headers.push(HeaderId::Vary, b"Accept-Encoding");
    }
}

/// The form of `object` in `coding`, for a reply.
pub(crate) fn sent(object: &Record, coding: Coding) -> SentForm {
    SentForm { coding: SentCoding::Plain(coding), tag: tag(object, coding) }
}

/// The form that the client of `request` names in If-None-Match and accepts; the first of several.
pub(crate) fn form_of_client(object: &Record, request: &Request) -> Option<SentForm> {
    if !request.headers.contains(HeaderId::IfNoneMatch) {
        return None;
    }
    let delta = dictionary::form_of_client(object, request);
    if delta.is_some() {
        return delta;
    }
    let accept = accept(request);
    let taken = Coding::ALL.into_iter().filter(|coding| accept.takes(*coding));
    taken.map(|coding| sent(object, coding)).find(|form| {
        let tag = form.tag.as_deref();
        tag.is_some() && conditional::lists_none_match(&request.headers, tag)
    })
}

/// Replaces the body of a reply by the bytes of a further form.
pub(crate) fn put_beside(bytes: Bytes, body: &mut ReplyBody) {
    match body {
        ReplyBody::None => {}
        ReplyBody::Head(length) => *length = Some(bytes.len() as u64),
        other => *other = bytes.into(),
    }
}

/// The recoding of a response that is to be stored, and its form after that.
pub(crate) struct StoredForm {
    pub(crate) recode: BodyRecoding,
    pub(crate) coding: Coding,
    pub(crate) negotiated: bool,
    /// The coding is known here: the response is one variant for all Accept-Encodings.
    pub(crate) is_one: bool,
}

/// Decides the form in which a response is stored, which is the form it arrived in, and adapts its
/// head. `length` is that of the body, if known; `has_body` is false for a response without one.
/// Further forms are made only once clients ask: see [`crate::refinement`].
pub(crate) fn keep(
    response: &mut Response,
    length: Option<u64>,
    has_body: bool,
    compress: CompressionScope,
    settings: &Compression,
) -> StoredForm {
    let (recode, coding) = (BodyRecoding::None, Coding::Identity);
    let mut kept = StoredForm { recode, coding, negotiated: false, is_one: false };
    let headers = &response.headers;
    let is_part = headers.contains(HeaderId::ContentRange);
    let given = Coding::of_content(headers.values(HeaderId::ContentEncoding));
    let Some(given) = given.filter(|_| compress != CompressionScope::Off && !is_part) else {
        return kept;
    };
    kept.is_one = true;
    if !has_body {
        return kept;
    }
    if given == Coding::Identity {
        kept.negotiated = settings.worth.judge(response.status, headers, length).is_ok();
    } else {
        (kept.coding, kept.negotiated, kept.recode) = (given, true, BodyRecoding::Test(given));
    }
    if kept.negotiated {
        vary_by_coding(&mut response.headers);
    }
    kept
}

/// Decides the form in which a page with instructions is stored, when its coding is known: without
/// a coding, since it is parsed. A page that turns out to have no instruction is sent like others,
/// coded if `settings` say so; its head says that from the start.
pub(crate) fn keep_page(
    response: &mut Response,
    length: Option<u64>,
    has_body: bool,
    compress: CompressionScope,
    settings: &Compression,
) -> StoredForm {
    let headers = &mut response.headers;
    let given = Coding::of_content(headers.values(HeaderId::ContentEncoding)).unwrap_or_default();
    let mut recode = BodyRecoding::None;
    let length = length.filter(|_| given == Coding::Identity);
    if has_body && given != Coding::Identity {
        recode = BodyRecoding::Decode(given);
        headers.remove(HeaderId::ContentEncoding);
        headers.remove(HeaderId::ContentLength);
    }
    let headers = &response.headers;
    if compress != CompressionScope::Off
        && settings.worth.judge(response.status, headers, length).is_ok()
    {
        vary_by_coding(&mut response.headers);
    }
    let coding = Coding::Identity;
    StoredForm { recode, coding, negotiated: false, is_one: true }
}

/// Adapts `settings` to a body of `length` bytes, if known.
pub(crate) fn sized(settings: EncodeSettings, length: Option<u64>) -> EncodeSettings {
    length.map_or(settings, |length| settings.for_length(length))
}

/// Makes a head without a coding that of the form in `coding`, whose length is not known.
pub(crate) fn code_head(headers: &mut HeaderBlock, coding: Coding) {
    let mut tag = Vec::new();
    let plain = headers.value(HeaderId::Etag);
    let is_tagged = plain.is_some_and(|plain| write_form(plain, coding, &mut tag));
    give(headers, SentCoding::Plain(coding), is_tagged.then_some(&tag));
    headers.remove(HeaderId::ContentLength);
}

/// The response of `object`, whose body has no coding, with a head for that body in gzip. `None` if
/// the head is damaged.
pub(crate) fn gzipped(object: &Record) -> Option<NewObject> {
    let mut response = stored_head(object)?;
    code_head(&mut response.headers, Coding::Gzip);
    let mut new = NewObject { length: None, ..object.renewed() };
    (new.head, new.etag) = head_to_store(&response);
    (new.flags.coding, new.flags.coded_here) = (Coding::Gzip, true);
    Some(new)
}

/// Adapts the head of a 304 to the stored form of `old`, which it confirms: the origin does not
/// know of forms coded here.
pub(crate) fn confirm(confirmation: &mut HeaderBlock, old: &Record) {
    let flags = old.flags();
    if !flags.negotiated {
        return;
    }
    confirmation.remove(HeaderId::ContentEncoding);
    confirmation.remove(HeaderId::ContentLength);
    let mut tag = Vec::new();
    if flags.coded_here
        && let Some(plain) = confirmation.value(HeaderId::Etag)
        && write_form(plain, flags.coding, &mut tag)
    {
        confirmation.set(HeaderId::Etag, &tag);
    }
}

/// Makes a passed 304 name the form that the client of `request` has. The origin knows only the
/// plain tag, and a client ignores a 304 with a strong tag that it did not list (RFC 9111 4.3.4).
pub(crate) fn name_had(request: &Request, confirmation: &mut HeaderBlock) {
    let Some(plain) = confirmation.value(HeaderId::Etag) else { return };
    if conditional::lists_none_match(&request.headers, Some(plain)) {
        return;
    }
    let accept = accept(request);
    let mut listed = message::list::members(request.headers.values(HeaderId::IfNoneMatch));
    let is_had = |tag: &&[u8]| {
        form_of(tag, plain).is_some_and(|coding| coding != Coding::Identity && accept.takes(coding))
    };
    if let Some(had) = listed.find(is_had).map(<[u8]>::to_vec) {
        confirmation.set(HeaderId::Etag, &had);
        vary_by_coding(confirmation);
    }
}

/// The side that chose the codings for the request to the origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chooser {
    /// The client itself.
    Client,
    /// The settings, for all clients.
    Larder,
}

/// A response on its way to one client only.
pub(crate) struct PassingForm<'a> {
    pub(crate) request: &'a Request,
    pub(crate) asked: Chooser,
    pub(crate) compress: CompressionScope,
    pub(crate) settings: &'a Compression,
    pub(crate) memory: &'a Arc<MemoryBudget>,
}

impl PassingForm<'_> {
    /// Decides the recoding of the body, of `length` bytes if known, and adapts the head. Also
    /// returns the coding that is sent.
    pub(crate) fn recode(
        &self,
        response: &mut Response,
        length: Option<u64>,
    ) -> (BodyRecoding, Coding) {
        let headers = &mut response.headers;
        let given = Coding::of_content(headers.values(HeaderId::ContentEncoding));
        let Some(given) = given.filter(|_| self.compress != CompressionScope::Off) else {
            return (BodyRecoding::None, Coding::Identity);
        };
        let accept = accept(self.request);
        if given != Coding::Identity {
            let is_part = headers.contains(HeaderId::ContentRange);
            if self.asked == Chooser::Client || accept.takes(given) || is_part {
                return (BodyRecoding::None, given);
            }
            // The client cannot read a coding that it did not ask for.
            let mut tag = Vec::new();
            let own = headers.value(HeaderId::Etag);
            own.inspect(|own| FormTags::new(own, given, false).write(Coding::Identity, &mut tag));
            let plain = SentCoding::Plain(Coding::Identity);
            give(headers, plain, (!tag.is_empty()).then_some(&tag));
            headers.remove(HeaderId::ContentLength);
            vary_by_coding(headers);
            return (BodyRecoding::Decode(given), Coding::Identity);
        }
        let coding = self.settings.gzip.coding();
        let is_worth = || self.settings.worth.judge(response.status, headers, length).is_ok();
        if self.compress != CompressionScope::All
            || self.request.method == Method::Head
            || !is_worth()
        {
            return (BodyRecoding::None, Coding::Identity);
        }
        vary_by_coding(&mut response.headers);
        if accept.best([coding, Coding::Identity]) != Some(coding) {
            return (BodyRecoding::None, Coding::Identity);
        }
        match BodyRecoding::encode(sized(self.settings.gzip, length), self.memory) {
            Some(recode) => {
                code_head(&mut response.headers, coding);
                (recode, coding)
            }
            None => (BodyRecoding::None, Coding::Identity),
        }
    }
}
