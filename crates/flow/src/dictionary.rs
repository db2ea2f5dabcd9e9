//! Dictionaries (RFC 9842): stored responses that clients have and name, and the forms of other
//! stored responses that are coded with them.
//!
//! A dictionary is found by its hash, which is computed behind requests. It is only a way to a
//! stored body: it ends with that. A form is made behind the first request that could have had it,
//! and kept beside the body; until then clients get what they get without a dictionary. Nothing of
//! this is looked at for a client that names no dictionary.

mod listed;
mod make;

use std::rc::Rc;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use base::Now;
use bytes::Bytes;
use cache::{Attached, BodyRef, Object, Record};
use codec::dictionary::{DictionaryHash, UseAs, available, takes_dcz};
use codec::{Coding, delta};
use message::{HeaderId, Request, Scheme, Status};

use crate::core::Core;
use crate::form;
use crate::live::Live;
use crate::reply::{SentCoding, SentForm, stored_head};

pub(crate) use listed::Dictionaries;

/// A stored response that says that it may serve as a dictionary.
#[derive(Debug)]
pub(crate) struct Dictionary {
    body: BodyRef,
    coding: Coding,
    /// Scheme, host and port of the requests that it is for.
    origin: Box<[u8]>,
    /// `None` if its field is malformed: then it is no dictionary.
    use_as: Option<UseAs>,
    hash: OnceLock<DictionaryHash>,
    /// Somebody has begun to compute the hash, or has had no success.
    is_begun: AtomicBool,
    /// When it may be listed among those that are found by their hash, in milliseconds of the
    /// monotonic clock: never again while it is.
    list_from_ms: AtomicU64,
}

impl Attached for Dictionary {
    fn memory(&self) -> u64 {
        let pattern = self.use_as.as_ref().map_or(0, UseAs::memory);
        (size_of::<Self>() + self.origin.len() + pattern) as u64
    }
}

impl Dictionary {
    /// The one that `object` is, as a client gets it that has sent `request`.
    fn of(object: &Arc<Object>, request: &Request) -> Self {
        let origin = origin(request);
        let head = stored_head(object);
        let use_as = head.and_then(|head| {
            let values = head.headers.values(HeaderId::UseAsDictionary);
            UseAs::parse(values, &origin, &request.target)
        });
        Self {
            body: object.body_ref(),
            coding: object.flags().coding,
            origin: origin.into(),
            use_as,
            hash: OnceLock::new(),
            is_begun: AtomicBool::new(false),
            list_from_ms: AtomicU64::new(0),
        }
    }

    /// Returns true if it may be used for the answer to `request`.
    fn is_for(&self, request: &Request) -> bool {
        let destination = request.headers.value_named(b"sec-fetch-dest");
        *self.origin == *origin(request)
            && self.use_as.as_ref().is_some_and(|said| said.is_for(&request.target, destination))
    }
}

/// Scheme, host and port of a request, as URLs spell them.
fn origin(request: &Request) -> Vec<u8> {
    let mut origin = [b"https://", &request.host[..]].concat();
    if let Some(port) = request.port {
        origin.extend_from_slice(format!(":{port}").as_bytes());
    }
    origin
}

/// The key of the form with a dictionary.
fn key(hash: &DictionaryHash) -> u64 {
    let mut first = [0; 8];
    first.copy_from_slice(&hash[..8]);
    u64::from_le_bytes(first)
}

/// The dictionary that the client of `request` names and that its answer may be coded with: over
/// HTTPS, where the client takes `dcz`, and for no page of another site that cannot read the answer
/// (RFC 9842 9.3). Whether there is such a dictionary is another question.
#[inline]
pub(crate) fn named(request: &Request) -> Option<DictionaryHash> {
    if !request.headers.contains(HeaderId::AvailableDictionary) {
        return None;
    }
    named_well(request)
}

fn named_well(request: &Request) -> Option<DictionaryHash> {
    let headers = &request.headers;
    let is = |name: &[u8], value: &[u8]| headers.value_named(name) == Some(value);
    let is_opaque = is(b"sec-fetch-mode", b"no-cors")
        && headers.value_named(b"sec-fetch-site").is_some()
        && !is(b"sec-fetch-site", b"same-origin");
    if request.scheme != Scheme::Https
        || is_opaque
        || !takes_dcz(headers.values(HeaderId::AcceptEncoding))
    {
        return None;
    }
    available(headers.values(HeaderId::AvailableDictionary))
}

/// The form of `object` that is coded with the dictionary of this hash, if it is there.
pub(crate) fn form_with(object: &Object, hash: &DictionaryHash) -> Option<(Bytes, SentForm)> {
    // Two dictionaries may have one key; the form itself names its own.
    let bytes = object.keyed_form(key(hash)).filter(|body| delta::hash_of(body) == Some(hash))?;
    let tag = form::tags(object).map(|tags| {
        let mut tag = Vec::new();
        tags.write_delta(hash, &mut tag);
        tag
    });
    Some((bytes, SentForm { coding: SentCoding::Dcz, tag }))
}

/// The form with a dictionary that the client of `request` has, as its If-None-Match says.
pub(crate) fn had(object: &Record, request: &Request) -> Option<SentForm> {
    named(request)?;
    let tags = form::tags(object)?;
    let mut listed = message::list::members(request.headers.values(HeaderId::IfNoneMatch));
    let tag = listed.find(|tag| tags.is_delta(tag))?.to_vec();
    Some(SentForm { coding: SentCoding::Dcz, tag: Some(tag) })
}

/// Takes note that a client gets `object`, which may be a dictionary for what it asks for next.
#[inline]
pub(crate) fn note(
    core: &Rc<Core>,
    live: &Live,
    (request, now): (&Request, Now),
    object: &Arc<Object>,
) {
    if !object.flags().dictionary || request.scheme != Scheme::Https {
        return;
    }
    let attached = object.attached::<Dictionary>();
    if attached.is_none_or(|dictionary| !dictionary.is_settled(now.mono_ms)) {
        note_first(core, live, request, object);
    }
}

impl Dictionary {
    /// Returns true if nothing can be done now for it to be found.
    fn is_settled(&self, now_ms: u64) -> bool {
        self.use_as.is_none()
            || now_ms < self.list_from_ms.load(Ordering::Relaxed)
            || (self.hash.get().is_none() && self.is_begun.load(Ordering::Relaxed))
    }
}

/// Returns true if settings and limits let stored responses be dictionaries.
fn is_on(live: &Live) -> bool {
    live.compression.dictionaries && live.limits.dictionaries > 0
}

#[cold]
fn note_first(core: &Rc<Core>, live: &Live, request: &Request, object: &Arc<Object>) {
    if !is_on(live) || object.status() != Status::OK {
        return;
    }
    let dictionaries = &core.shared.dictionaries;
    if object.whole().is_none() {
        // It is still coming, and may not be asked for again before somebody names it.
        dictionaries.expect(object, request);
        return;
    }
    if let Some(dictionary) = attach(object, request) {
        make::settle(core, live, dictionary);
    }
}

/// Makes `object` a dictionary, unless it is one. `None` if there is no room for that.
fn attach(object: &Arc<Object>, request: &Request) -> Option<Arc<Dictionary>> {
    if object.attached::<Dictionary>().is_none() {
        object.attach(Arc::new(Dictionary::of(object, request)));
    }
    object.attached()
}

/// Has the form of `object` with the dictionary of this hash made, if there is such a dictionary
/// for `request` and nobody has begun.
pub(crate) fn demand(
    core: &Rc<Core>,
    live: &Live,
    (request, object): (&Request, &Arc<Object>),
    hash: &DictionaryHash,
) {
    if !is_on(live) || object.status() != Status::OK {
        return;
    }
    if !object.wants_keyed_form(key(hash)) {
        return;
    }
    match core.shared.dictionaries.find(hash) {
        Some(dictionary) if dictionary.is_for(request) => {
            make::form(core, live, object, dictionary);
        }
        Some(_) => {}
        None => {
            if let Some((object, request)) = core.shared.dictionaries.expected() {
                let dictionary = attach(&object, &request);
                dictionary.into_iter().for_each(|one| make::settle(core, live, one));
            }
        }
    }
}

/// A description of what is known of the dictionary that the client of `request` names; `None` if
/// it names none. For forecasts.
pub(crate) fn told(
    core: &Dictionaries,
    live: &Live,
    request: &Request,
    object: &Object,
) -> Option<String> {
    let value = request.headers.value(HeaderId::AvailableDictionary)?;
    if !is_on(live) {
        return Some("not used: the settings say so".to_owned());
    }
    if request.scheme != Scheme::Https {
        return Some("not used: only over HTTPS".to_owned());
    }
    if available([value]).is_none() {
        return Some("not used: Available-Dictionary is not one SHA-256".to_owned());
    }
    let Some(hash) = named(request) else {
        return Some(
            "not used: the client does not take dcz as gladly as other codings, or its page could \
             not read the answer"
                .to_owned(),
        );
    };
    if form_with(object, &hash).is_some() {
        return Some("used: the form with it lies beside".to_owned());
    }
    let Some(dictionary) = core.find(&hash) else {
        return Some("not used: no stored response is known to have this hash".to_owned());
    };
    if !dictionary.is_for(request) {
        return Some("not used: the response with this hash is not for this request".to_owned());
    }
    Some(match object.wants_keyed_form(key(&hash)) {
        true => "not used yet: the form with it is made behind the request".to_owned(),
        false => "not used: the form with it is on its way, or not clearly shorter".to_owned(),
    })
}

#[cfg(test)]
mod tests;
