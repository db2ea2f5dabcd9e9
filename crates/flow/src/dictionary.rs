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

mod delta_coding;

use std::rc::Rc;
use std::sync::Arc;

use base::{KeyBuf, Now, key_fields};
use bytes::Bytes;
use cache::{Object, Record};
use message::{HeaderId, Request, Scheme, Status};
use observe::DictionaryUse;
use policy::{ConnectionPeer, Notes, ReceiveCtx, ReceiveVerdict};

use crate::sent_form::SentForm;
use crate::state::core::CoreState;
use crate::state::dictionary::{
    Dictionaries, Dictionary, DictionaryScope, form_with, is_readable, named, origin,
};
use crate::state::live_configuration::LiveConfiguration;
use crate::state::request_context::RequestContext;

/// A request for a stored response, as far as dictionaries go by it.
#[derive(Clone, Copy)]
pub(crate) struct DictionaryContext<'a> {
    pub(crate) live: &'a LiveConfiguration,
    /// As the client sent it.
    pub(crate) request: &'a Request,
    /// The target that is a part of the key, as a program has left it.
    pub(crate) target: &'a [u8],
    /// The whole of it under the declared policy, whose rules say who may ask; `None` under VCL.
    pub(crate) ask: Option<&'a RequestContext<'a>>,
    pub(crate) now: Now,
}

impl DictionaryContext<'_> {
    /// Returns true if whoever may ask for this may ask for `target`, too, and is given what is
    /// stored: one route has both, and so the same rules for who is let in. That holds for every
    /// client, so that a form may be sent without another look.
    fn is_routed_alike(&self, target: &[u8]) -> bool {
        let Some(ask) = self.ask else { return true };
        let (mut notes, mut request) = (Notes::default(), ask.request.clone());
        request.target = target.to_vec();
        let client = ask.notes.client.unwrap_or(ConnectionPeer::Unnamed(None));
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

impl DictionaryScope {
    fn of(occasion: DictionaryContext<'_>, object: &Record) -> Self {
        Self {
            origin: origin(occasion.request).into(),
            target: occasion.request.target.as_slice().into(),
            audience: occasion.audience(object),
        }
    }
}

impl Dictionary {
    /// Returns true if it may be used for `object`, the answer to a request.
    fn is_for(&self, occasion: DictionaryContext<'_>, object: &Record) -> bool {
        let request = occasion.request;
        let destination = request.headers.value_named(b"sec-fetch-dest");
        *self.birth.origin == *origin(request)
            && self.use_as.as_ref().is_some_and(|said| said.is_for(&request.target, destination))
            && self.birth.audience == occasion.audience(object)
            && occasion.is_routed_alike(&self.birth.target)
    }
}

/// Takes note that a client gets `object`, which may be a dictionary for what it asks for next.
#[inline]
pub(crate) fn note(core: &Rc<CoreState>, occasion: DictionaryContext<'_>, object: &Arc<Object>) {
    if occasion.request.scheme == Scheme::Https && object.flags().dictionary {
        note_dictionary(core, occasion, object);
    }
}

#[inline(never)]
fn note_dictionary(core: &Rc<CoreState>, occasion: DictionaryContext<'_>, object: &Arc<Object>) {
    let attached = object.attached::<Dictionary>();
    if attached.is_none_or(|dictionary| !dictionary.is_settled(occasion.now.mono_ms)) {
        note_first(core, occasion, object);
    }
}

/// Returns true if settings and limits let stored responses be dictionaries.
fn is_on(live: &LiveConfiguration) -> bool {
    live.compression.dictionaries && live.limits.dictionaries > 0
}

#[cold]
fn note_first(core: &Rc<CoreState>, occasion: DictionaryContext<'_>, object: &Arc<Object>) {
    if !is_on(occasion.live) || object.status() != Status::OK {
        return;
    }
    let dictionaries = &core.shared.dictionaries;
    if object.whole().is_none() {
        // It is still coming, and may not be asked for again before somebody names it.
        let most = occasion.live.limits.dictionaries;
        dictionaries.expect(object, most, || DictionaryScope::of(occasion, object));
        return;
    }
    if let Some(dictionary) = attach(object, || DictionaryScope::of(occasion, object)) {
        delta_coding::settle(core, occasion.live, dictionary);
    }
}

/// Makes `object` a dictionary, unless it is one. `None` if there is no room for that.
fn attach(
    object: &Arc<Object>,
    birth: impl FnOnce() -> DictionaryScope,
) -> Option<Arc<Dictionary>> {
    if object.attached::<Dictionary>().is_none() {
        object.attach(Arc::new(Dictionary::of(object, birth())));
    }
    object.attached()
}

/// The answer to a client that has named a dictionary, or none.
#[derive(Debug, Default)]
pub(crate) struct DictionaryAnswer {
    pub(crate) used: DictionaryUse,
    /// The body that is sent, and its form, if it is used. Boxed, so that who names none moves
    /// nothing about.
    pub(crate) form: Option<Box<(Bytes, SentForm)>>,
}

impl From<DictionaryUse> for DictionaryAnswer {
    fn from(used: DictionaryUse) -> Self {
        Self { used, form: None }
    }
}

/// The one for whom a form is looked for.
#[derive(Clone, Copy)]
pub(crate) enum FormRequester<'a> {
    /// A request, which may have the form made.
    Request(&'a Rc<CoreState>),
    /// A forecast, which changes nothing.
    Forecast(&'a Dictionaries),
}

impl<'a> FormRequester<'a> {
    fn core(self) -> Option<&'a Rc<CoreState>> {
        match self {
            Self::Request(core) => Some(core),
            Self::Forecast(_) => None,
        }
    }

    fn dictionaries(self) -> &'a Dictionaries {
        match self {
            Self::Request(core) => &core.shared.dictionaries,
            Self::Forecast(dictionaries) => dictionaries,
        }
    }
}

/// Looks for the form of `object` with the dictionary that a client names. A request has the form
/// made if there is such a dictionary and nobody has begun.
#[inline]
pub(crate) fn seek(
    seeker: FormRequester<'_>,
    occasion: DictionaryContext<'_>,
    object: &Arc<Object>,
) -> DictionaryAnswer {
    match occasion.request.headers.contains(HeaderId::AvailableDictionary) {
        true => seek_named(seeker, occasion, object),
        false => DictionaryAnswer::default(),
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
pub(crate) fn may_use_dictionary(request: &Request, object: &Object) -> bool {
    request.scheme == Scheme::Https && object.has_keyed_forms()
}

#[cold]
fn seek_named(
    seeker: FormRequester<'_>,
    occasion: DictionaryContext<'_>,
    object: &Arc<Object>,
) -> DictionaryAnswer {
    let DictionaryContext { live, request, .. } = occasion;
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
        return DictionaryAnswer { used: DictionaryUse::Used, form: form.map(Box::new) };
    }
    if object.length().is_some_and(|length| length > live.limits.form_bytes) {
        return DictionaryUse::TooLong.into();
    }
    let used = match seeker.dictionaries().find(&named.hash) {
        None => {
            if let Some(core) = seeker.core()
                && let Some((object, birth)) = core.shared.dictionaries.expected()
            {
                let dictionary = attach(&object, || birth);
                dictionary.into_iter().for_each(|one| delta_coding::settle(core, live, one));
            }
            DictionaryUse::Unknown
        }
        Some(dictionary) if !dictionary.is_for(occasion, object) => DictionaryUse::Foreign,
        Some(_) if !object.wants_keyed_form(named.key()) => DictionaryUse::Tried,
        Some(dictionary) => {
            if let Some(core) = seeker.core() {
                delta_coding::form(core, live, object, dictionary, named);
            }
            DictionaryUse::Making
        }
    };
    used.into()
}

#[cfg(test)]
mod tests;
