//! Named dictionary: the dictionary that a client names, and the form of a stored response that is
//! coded with it.

use bytes::Bytes;
use cache::{Object, Record};
use codec::delta;
use codec::dictionary::{DeltaCoding, DictionaryHash, available, taken};
use message::{HeaderId, Request, Scheme};
use observe::DictionaryUse;

use crate::sent_form::{SentCoding, SentForm};
use crate::stored_heads::{form_tags, stored_head};

/// A client's dictionary, and the accepted coding that uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NamedDictionary {
    pub(crate) hash: DictionaryHash,
    pub(crate) coding: DeltaCoding,
}

impl NamedDictionary {
    /// The key of the form.
    pub(crate) fn key(&self) -> u64 {
        key(&self.hash) | u64::from(self.coding == DeltaCoding::Dcb)
    }
}

/// The key bits of all forms with a dictionary; the lowest bit distinguishes the codings.
pub(crate) fn key(hash: &DictionaryHash) -> u64 {
    let mut first = [0; 8];
    first.copy_from_slice(&hash[..8]);
    u64::from_le_bytes(first) & !1
}

/// The dictionary that the client of `request` names over HTTPS, if it accepts such a coding. Its
/// existence and its audience are checked elsewhere.
///
/// # Errors
/// The reason for which none is named.
#[inline]
pub(crate) fn named(request: &Request) -> Result<NamedDictionary, DictionaryUse> {
    if !request.headers.contains(HeaderId::AvailableDictionary) {
        return Err(DictionaryUse::NotNamed);
    }
    named_well(request)
}

#[cold]
fn named_well(request: &Request) -> Result<NamedDictionary, DictionaryUse> {
    let headers = &request.headers;
    if request.scheme != Scheme::Https {
        return Err(DictionaryUse::PlainHttp);
    }
    let coding = taken(headers.values(HeaderId::AcceptEncoding)).ok_or(DictionaryUse::NotTaken)?;
    let hash = available(headers.values(HeaderId::AvailableDictionary));
    Ok(NamedDictionary { hash: hash.ok_or(DictionaryUse::Malformed)?, coding })
}

/// Returns true if the requesting page could read `object`. Otherwise the visible length of a form
/// would reveal its difference from the dictionary (RFC 9842 9.3.3).
pub(crate) fn is_readable(request: &Request, object: &Record) -> bool {
    let headers = &request.headers;
    let (site, mode) =
        (headers.value_named(b"sec-fetch-site"), headers.value_named(b"sec-fetch-mode"));
    match (site, mode) {
        (None | Some(b"same-origin"), _) | (_, None | Some(b"navigate" | b"same-origin")) => true,
        (_, Some(b"cors")) => {
            let head = stored_head(object);
            let allowed = head.as_ref().and_then(|head| {
                let mut values = head.headers.values_named(b"access-control-allow-origin");
                values.next().filter(|_| values.next().is_none())
            });
            let asks = headers.value(HeaderId::Origin);
            allowed.zip(asks).is_some_and(|(allowed, asks)| allowed == b"*" || allowed == asks)
        }
        _ => false,
    }
}

/// The form of `object` with this dictionary, if it exists.
pub(crate) fn form_with(object: &Object, named: &NamedDictionary) -> Option<(Bytes, SentForm)> {
    // Two dictionaries may share a key; the form contains its own hash.
    let NamedDictionary { hash, coding } = named;
    let is_it = |body: &Bytes| delta::needs(body) == Some((*coding, hash));
    let bytes = object.keyed_form(named.key()).filter(is_it)?;
    let tag = form_tags(object).map(|tags| {
        let mut tag = Vec::new();
        tags.write_delta(*coding, hash, &mut tag);
        tag
    });
    Some((bytes, SentForm { coding: SentCoding::Delta(*coding), tag }))
}

/// The form with a dictionary that the client of `request` names in If-None-Match.
pub(crate) fn form_of_client(object: &Record, request: &Request) -> Option<SentForm> {
    named(request).ok()?;
    let tags = form_tags(object)?;
    let mut listed = message::list::members(request.headers.values(HeaderId::IfNoneMatch));
    let (tag, coding) = listed.find_map(|tag| Some((tag, tags.delta_of(tag)?)))?;
    Some(SentForm { coding: SentCoding::Delta(coding), tag: Some(tag.to_vec()) })
}
