//! Dictionaries (RFC 9842): stored responses that clients have and name, and the forms of other
//! stored responses that are coded with them.
//!
//! A dictionary is found by its hash, which is computed behind requests. It is only a way to a
//! stored body: it ends with that. A form is made behind the first request that could have had it,
//! and kept beside the body; until then clients get what they get without a dictionary. Nothing of
//! this is looked at for a client that names no dictionary.
//!
//! Who names a hash learns whether something with that hash is stored. So a dictionary is only for
//! requests that would have been given it, had they asked for it: see [`Occasion::audience`].

mod listed;
mod make;

use std::rc::Rc;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use base::{KeyBuf, Now, key_fields};
use bytes::Bytes;
use cache::{Attached, BodyRef, Object, Record};
use codec::dictionary::{DeltaCoding, DictionaryHash, UseAs, available, taken};
use codec::{Coding, delta};
use message::{HeaderId, Request, Scheme, Status};
use observe::DictionaryUse;
use policy::{Notes, Peer, ReceiveCtx, ReceiveVerdict};

use crate::ask::Ask;
use crate::core::Core;
use crate::form;
use crate::live::{Live, Shared};
use crate::reply::{SentCoding, SentForm};
use crate::stored::stored_head;

pub(crate) use listed::Dictionaries;

/// A request for a stored response, as far as dictionaries go by it.
#[derive(Clone, Copy)]
pub(crate) struct Occasion<'a> {
    pub(crate) live: &'a Live,
    /// As the client sent it.
    pub(crate) request: &'a Request,
    /// The target that is a part of the key, as a program has left it.
    pub(crate) target: &'a [u8],
    /// The whole of it under the declared policy, whose rules say who may ask; `None` under VCL.
    pub(crate) ask: Option<&'a Ask<'a>>,
    pub(crate) now: Now,
}

impl Occasion<'_> {
    /// Returns true if whoever may ask for this may ask for `target`, too, and is given what is
    /// stored: one route has both, and so the same rules for who is let in. That holds for every
    /// client, so that a form may be sent without another look.
    fn is_routed_alike(&self, target: &[u8]) -> bool {
        let Some(ask) = self.ask else { return true };
        let (mut notes, mut request) = (Notes::default(), ask.request.clone());
        request.target = target.to_vec();
        let client = ask.notes.client.unwrap_or(Peer::Unnamed(None));
        let mut ctx = ReceiveCtx { request: &mut request, client, now: ask.now, notes: &mut notes };
        let is_looked_up = matches!(ask.site.policy.receive(&mut ctx), ReceiveVerdict::Lookup);
        is_looked_up && notes.route == ask.notes.route
    }

    /// Those who may get `object` and others like it: its key without the target, and what it
    /// varies by with the values of that. A response that is kept apart for some (by cookies in
    /// the key, by `Vary`) is so a dictionary only for responses that are kept apart for the same.
    fn audience(&self, object: &Record) -> Box<[u8]> {
        let mut audience = KeyBuf::new();
        let targets = [self.target, &self.request.target];
        let mut is_left_out = false;
        for field in key_fields(object.key()) {
            if !is_left_out && targets.contains(&field) {
                is_left_out = true;
            } else {
                audience.field(field);
            }
        }
        if let Some(vary) = object.vary() {
            audience.field(vary.spec);
            audience.field(vary.signature);
        }
        audience.bytes().into()
    }
}

/// Where a response was asked for that may be a dictionary.
#[derive(Debug)]
struct Birth {
    /// Scheme, host and port of the requests that it is for.
    origin: Box<[u8]>,
    target: Box<[u8]>,
    audience: Box<[u8]>,
}

impl Birth {
    fn of(occasion: Occasion<'_>, object: &Record) -> Self {
        Self {
            origin: origin(occasion.request).into(),
            target: occasion.request.target.as_slice().into(),
            audience: occasion.audience(object),
        }
    }
}

/// A stored response that says that it may serve as a dictionary.
#[derive(Debug)]
pub(crate) struct Dictionary {
    body: BodyRef,
    coding: Coding,
    birth: Birth,
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
        let Birth { origin, target, audience } = &self.birth;
        (size_of::<Self>() + origin.len() + target.len() + audience.len() + pattern) as u64
    }
}

impl Dictionary {
    /// The one that `object` is, which was asked for so.
    fn of(object: &Arc<Object>, birth: Birth) -> Self {
        let use_as = stored_head(object).and_then(|head| {
            let values = head.headers.values(HeaderId::UseAsDictionary);
            UseAs::parse(values, &birth.origin, &birth.target)
        });
        Self {
            body: object.body_ref(),
            coding: object.flags().coding,
            birth,
            use_as,
            hash: OnceLock::new(),
            is_begun: AtomicBool::new(false),
            list_from_ms: AtomicU64::new(0),
        }
    }

    /// Returns true if it may be used for `object`, the answer to a request.
    fn is_for(&self, occasion: Occasion<'_>, object: &Record) -> bool {
        let request = occasion.request;
        let destination = request.headers.value_named(b"sec-fetch-dest");
        *self.birth.origin == *origin(request)
            && self.use_as.as_ref().is_some_and(|said| said.is_for(&request.target, destination))
            && self.birth.audience == occasion.audience(object)
            && occasion.is_routed_alike(&self.birth.target)
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

/// A dictionary that a client has, and the coding in which it takes what is coded with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    hash: DictionaryHash,
    coding: DeltaCoding,
}

impl Named {
    /// The key of the form.
    fn key(&self) -> u64 {
        key(&self.hash) | u64::from(self.coding == DeltaCoding::Dcb)
    }
}

/// Common bits of the keys of all forms with a dictionary; the lowest one tells codings apart.
fn key(hash: &DictionaryHash) -> u64 {
    let mut first = [0; 8];
    first.copy_from_slice(&hash[..8]);
    u64::from_le_bytes(first) & !1
}

/// The dictionary that the client of `request` names, over HTTPS, where the client takes such a
/// coding. Whether there is such a dictionary, and who may have it, are other questions.
///
/// # Errors
/// The reason for naming none.
#[inline]
pub(crate) fn named(request: &Request) -> Result<Named, DictionaryUse> {
    if !request.headers.contains(HeaderId::AvailableDictionary) {
        return Err(DictionaryUse::NotNamed);
    }
    named_well(request)
}

#[cold]
fn named_well(request: &Request) -> Result<Named, DictionaryUse> {
    let headers = &request.headers;
    if request.scheme != Scheme::Https {
        return Err(DictionaryUse::PlainHttp);
    }
    let coding = taken(headers.values(HeaderId::AcceptEncoding)).ok_or(DictionaryUse::NotTaken)?;
    let hash = available(headers.values(HeaderId::AvailableDictionary));
    Ok(Named { hash: hash.ok_or(DictionaryUse::Malformed)?, coding })
}

/// Returns true if the page that asks could read `object`: otherwise its length, seen from outside,
/// would tell what differs from what the page has (RFC 9842 9.3.3).
fn is_readable(request: &Request, object: &Record) -> bool {
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

/// The form of `object` that is coded with this dictionary, if it is there.
fn form_with(object: &Object, named: &Named) -> Option<(Bytes, SentForm)> {
    // Two dictionaries may have one key; the form itself names its own.
    let Named { hash, coding } = named;
    let is_it = |body: &Bytes| delta::needs(body) == Some((*coding, hash));
    let bytes = object.keyed_form(named.key()).filter(is_it)?;
    let tag = form::tags(object).map(|tags| {
        let mut tag = Vec::new();
        tags.write_delta(*coding, hash, &mut tag);
        tag
    });
    Some((bytes, SentForm { coding: SentCoding::Delta(*coding), tag }))
}

/// The form with a dictionary that the client of `request` has, as its If-None-Match says.
pub(crate) fn had(object: &Record, request: &Request) -> Option<SentForm> {
    named(request).ok()?;
    let tags = form::tags(object)?;
    let mut listed = message::list::members(request.headers.values(HeaderId::IfNoneMatch));
    let (tag, coding) = listed.find_map(|tag| Some((tag, tags.delta_of(tag)?)))?;
    Some(SentForm { coding: SentCoding::Delta(coding), tag: Some(tag.to_vec()) })
}

/// Takes note that a client gets `object`, which may be a dictionary for what it asks for next.
#[inline]
pub(crate) fn note(core: &Rc<Core>, occasion: Occasion<'_>, object: &Arc<Object>) {
    if occasion.request.scheme == Scheme::Https && object.flags().dictionary {
        note_dictionary(core, occasion, object);
    }
}

#[inline(never)]
fn note_dictionary(core: &Rc<Core>, occasion: Occasion<'_>, object: &Arc<Object>) {
    let attached = object.attached::<Dictionary>();
    if attached.is_none_or(|dictionary| !dictionary.is_settled(occasion.now.mono_ms)) {
        note_first(core, occasion, object);
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
fn note_first(core: &Rc<Core>, occasion: Occasion<'_>, object: &Arc<Object>) {
    if !is_on(occasion.live) || object.status() != Status::OK {
        return;
    }
    let dictionaries = &core.shared.dictionaries;
    if object.whole().is_none() {
        // It is still coming, and may not be asked for again before somebody names it.
        let most = occasion.live.limits.dictionaries;
        dictionaries.expect(object, most, || Birth::of(occasion, object));
        return;
    }
    if let Some(dictionary) = attach(object, || Birth::of(occasion, object)) {
        make::settle(core, occasion.live, dictionary);
    }
}

/// Makes `object` a dictionary, unless it is one. `None` if there is no room for that.
fn attach(object: &Arc<Object>, birth: impl FnOnce() -> Birth) -> Option<Arc<Dictionary>> {
    if object.attached::<Dictionary>().is_none() {
        object.attach(Arc::new(Dictionary::of(object, birth())));
    }
    object.attached()
}

/// The answer to a client that has named a dictionary, or none.
#[derive(Debug, Default)]
pub(crate) struct Sought {
    pub(crate) used: DictionaryUse,
    /// The body that is sent, and its form, if it is used. Boxed, so that who names none moves
    /// nothing about.
    pub(crate) form: Option<Box<(Bytes, SentForm)>>,
}

impl From<DictionaryUse> for Sought {
    fn from(used: DictionaryUse) -> Self {
        Self { used, form: None }
    }
}

/// Looks for the form of `object` with the dictionary that a client names. With a core, it has the
/// form made if there is such a dictionary and nobody has begun; a forecast has none.
#[inline]
pub(crate) fn seek(
    (core, shared): (Option<&Rc<Core>>, &Shared),
    occasion: Occasion<'_>,
    object: &Arc<Object>,
) -> Sought {
    match occasion.request.headers.contains(HeaderId::AvailableDictionary) {
        true => seek_named((core, shared), occasion, object),
        false => Sought::default(),
    }
}

/// The same for an answer that has but one form.
#[inline]
pub(crate) fn of_one_form(request: &Request) -> DictionaryUse {
    match request.headers.contains(HeaderId::AvailableDictionary) {
        true => DictionaryUse::OneForm,
        false => DictionaryUse::NotNamed,
    }
}

/// Returns true if a form of `object` that goes by a dictionary may be sent in answer to `request`.
#[inline]
pub(crate) fn goes_by(request: &Request, object: &Object) -> bool {
    request.scheme == Scheme::Https && object.has_keyed_forms()
}

#[cold]
fn seek_named(
    (core, shared): (Option<&Rc<Core>>, &Shared),
    occasion: Occasion<'_>,
    object: &Arc<Object>,
) -> Sought {
    let Occasion { live, request, .. } = occasion;
    let named = match named(request) {
        Ok(named) => named,
        Err(why) => return why.into(),
    };
    if !is_on(live) {
        return DictionaryUse::Off.into();
    }
    let flags = object.flags();
    if object.status() != Status::OK || !(flags.negotiated || flags.dictionary) {
        return DictionaryUse::OneForm.into();
    }
    if !is_readable(request, object) {
        return DictionaryUse::Opaque.into();
    }
    let form = form_with(object, &named);
    if form.is_some() {
        return Sought { used: DictionaryUse::Used, form: form.map(Box::new) };
    }
    if object.length().is_some_and(|length| length > live.limits.form_bytes) {
        return DictionaryUse::TooLong.into();
    }
    let used = match shared.dictionaries.find(&named.hash) {
        None => {
            if let Some(core) = core
                && let Some((object, birth)) = shared.dictionaries.expected()
            {
                let dictionary = attach(&object, || birth);
                dictionary.into_iter().for_each(|one| make::settle(core, live, one));
            }
            DictionaryUse::Unknown
        }
        Some(dictionary) if !dictionary.is_for(occasion, object) => DictionaryUse::Foreign,
        Some(_) if !object.wants_keyed_form(named.key()) => DictionaryUse::Tried,
        Some(dictionary) => {
            if let Some(core) = core {
                make::form(core, live, object, (dictionary, named));
            }
            DictionaryUse::Making
        }
    };
    used.into()
}

#[cfg(test)]
mod tests;
