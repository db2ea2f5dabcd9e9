//! The form in which a client gets a stored body: as it is stored, in a further form that lies
//! beside it, or decoded. One object answers all of them.
//!
//! A client that takes the stored coding costs a look at its Accept-Encoding and no more.

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

/// The form that a client gets, and the one that it would rather have.
#[derive(Debug)]
pub(crate) struct Choice {
    pub(crate) coding: Coding,
    pub(crate) from: FormSource,
    /// A further form that would be sent if there were one.
    pub(crate) wanted: Option<Coding>,
    /// No form is there that the client likes as much as one in gzip, which can soon be there.
    pub(crate) lacks_gzip: bool,
}

/// Where the form comes from.
#[derive(Debug, Default)]
pub(crate) enum FormSource {
    /// The body is sent as it is stored.
    #[default]
    Stored,
    /// Another form lies beside it.
    Beside(Bytes),
    /// The body is decoded on its way.
    Decoded,
}

/// Returns the number by which the store knows the form in `coding`.
pub(crate) const fn number(coding: Coding) -> usize {
    coding as usize
}

/// The codings that the client of `request` takes.
#[inline]
pub(crate) fn accept(request: &Request) -> Accept {
    Accept::of(request.headers.values(HeaderId::AcceptEncoding))
}

/// Chooses the form of `object` for a client. Of forms that the client likes alike, the first of
/// the settings' is sent, then the stored one; an object that is not negotiated has but one.
///
/// One that takes none gets the body without a coding, as nginx and Apache have it, even where it
/// says `identity;q=0`: that is of more use than 406, and RFC 9110 12.5.3 leaves it to the server.
#[inline]
pub(crate) fn choose(object: &Object, request: &Request, settings: &Compression) -> Choice {
    let flags = object.flags();
    let is_plain = flags.coding == Coding::Identity;
    let is_one = !flags.negotiated && !flags.gzip_page;
    // Those who say nothing get what came as it is.
    if is_one || is_plain && !request.headers.contains(HeaderId::AcceptEncoding) {
        let (coding, from) = (flags.coding, FormSource::Stored);
        return Choice { coding, from, wanted: None, lacks_gzip: false };
    }
    let accept = accept(request);
    let own = [if is_plain { Coding::Gzip } else { flags.coding }, Coding::Identity];
    // The one that is liked best, and of those that are there.
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
        // None was there, or it has left between two looks.
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

/// The entity tag by which the origin knows `object`.
pub(crate) fn origin_tag(object: &Record) -> Option<Vec<u8>> {
    let mut tag = Vec::new();
    form_tags(object)?.write_origin(&mut tag);
    Some(tag)
}

/// The length of the body of `object` without its coding, where it is known.
pub(crate) fn plain_length(object: &Object) -> Option<u64> {
    match object.flags().coding {
        Coding::Identity => object.length(),
        _ => object.plain_length(),
    }
}

/// Makes a head that of the form in `coding`, with this tag.
pub(crate) fn give(headers: &mut HeaderBlock, coding: SentCoding, tag: Option<&[u8]>) {
    match coding.token() {
        None => headers.remove(HeaderId::ContentEncoding),
        Some(token) => headers.set(HeaderId::ContentEncoding, token.as_bytes()),
    }
    match tag {
        Some(tag) => headers.set(HeaderId::Etag, tag),
        None => headers.remove(HeaderId::Etag),
    }
    // They are of the other form (RFC 9530 2 and 3).
    headers.retain(|field| digest_of(field.name).is_none());
}

/// Returns true if a response says that it varies by Accept-Encoding.
pub(crate) fn varies_by_coding(headers: &HeaderBlock) -> bool {
    let mut names = message::list::members(headers.values(HeaderId::Vary));
    names.any(|name| HeaderId::of(name) == HeaderId::AcceptEncoding)
}

/// Adds Accept-Encoding to what a response varies by.
pub(crate) fn vary_by_coding(headers: &mut HeaderBlock) {
    if !varies_by_coding(headers) {
        headers.push(HeaderId::Vary, b"Accept-Encoding");
    }
}

/// The form of `object` in `coding`, as a reply has it.
pub(crate) fn sent(object: &Record, coding: Coding) -> SentForm {
    SentForm { coding: SentCoding::Plain(coding), tag: tag(object, coding) }
}

/// A form that the client of `request` has, as its If-None-Match says, and takes. Where it has
/// several, the first.
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

/// Makes the body of a reply that of a form that lies beside the stored one.
pub(crate) fn put_beside(bytes: Bytes, body: &mut ReplyBody) {
    match body {
        ReplyBody::None => {}
        ReplyBody::Head(length) => *length = Some(bytes.len() as u64),
        other => *other = bytes.into(),
    }
}

/// The change that a response undergoes that is to be stored, and its form after that.
pub(crate) struct StoredForm {
    pub(crate) recode: BodyRecoding,
    pub(crate) coding: Coding,
    pub(crate) negotiated: bool,
    /// Its coding is known here: it is one variant, whatever clients' Accept-Encoding is.
    pub(crate) is_one: bool,
}

/// Decides the form in which a response is stored, and brings its head into line with that: the one
/// in which it came. Its body has `length` bytes, if that is known, and none at all if `has_body`
/// says so. Nothing is coded before a client has asked for that: see [`crate::refine`].
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

/// The same for a page that is put together of others, in a coding that is known: it is read, so it
/// is stored without one. If it turns out to have no instruction it is sent as others are, in a
/// coding if `settings` have it coded, which its head says from the beginning.
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

/// `settings` for a body of `length` bytes, if that is known.
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

/// The response of `object`, whose body has no coding, with a head for that body in gzip. `None`
/// for a damaged one.
pub(crate) fn folded(object: &Record) -> Option<NewObject> {
    let mut response = stored_head(object)?;
    code_head(&mut response.headers, Coding::Gzip);
    let mut new = NewObject { length: None, ..object.renewed() };
    (new.head, new.etag) = head_to_store(&response);
    (new.flags.coding, new.flags.coded_here) = (Coding::Gzip, true);
    Some(new)
}

/// Brings the head of a 304 into line with the stored form of `old`, which it confirms: the origin
/// knows nothing of a form that was coded here.
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

/// Has a 304 that is passed on name the form that the client of `request` has: the origin knows the
/// plain tag, and a client uses no 304 that names a strong tag which it has not listed (RFC 9111
/// 4.3.4).
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

/// The side that has chosen the codings that the origin was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chooser {
    /// The client itself.
    Client,
    /// The settings, on behalf of all clients.
    Larder,
}

/// A response on its way to one client alone.
pub(crate) struct PassingForm<'a> {
    pub(crate) request: &'a Request,
    pub(crate) asked: Chooser,
    pub(crate) compress: CompressionScope,
    pub(crate) settings: &'a Compression,
    pub(crate) memory: &'a Arc<MemoryBudget>,
}

impl PassingForm<'_> {
    /// Decides what is done to the body, of this length if that is known, and brings the head into
    /// line with that. Returns the coding in which it is sent, too.
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
            // The client cannot read what it has not asked for.
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
