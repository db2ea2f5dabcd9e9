//! Dictionaries (RFC 9842): stored responses that clients hold and name by hash, and forms of other
//! stored responses that are coded with them.
//!
//! Hashes and forms are computed in the background; until then clients get the forms that need no
//! dictionary. A dictionary ends with its stored body. A client that names no dictionary costs
//! nothing.
//!
//! A client that names a hash learns whether a response with that hash is stored. So a dictionary
//! may be used only for requests that could have received it: see [`DictionaryContext::audience`].

mod delta_coding;

use std::rc::Rc;
use std::sync::Arc;

use base::{KeyBuf, Now, key_fields};
use bytes::Bytes;
use cache::{Object, Record};
use message::{HeaderId, Request, Scheme, Status};
use observe::DictionaryUse;
use policy::{ConnectionPeer, Notes, ReceiveCtx, ReceiveVerdict, StoreUse};

use crate::sent_form::SentForm;
use crate::state::core::CoreState;
use crate::state::dictionary::{
    Dictionaries, Dictionary, DictionaryScope, form_with, is_readable, named, origin,
};
use crate::state::live_configuration::LiveConfiguration;
use crate::state::request_context::RequestContext;

/// A request for a stored response, as far as dictionaries depend on it.
#[derive(Clone, Copy)]
pub(crate) struct DictionaryContext<'a> {
    pub(crate) live: &'a LiveConfiguration,
    /// The request as the client sent it.
    pub(crate) request: &'a Request,
    /// The target that is part of the key, after a program's changes.
    pub(crate) target: &'a [u8],
    /// The whole context under the declared policy, whose rules decide who may ask; `None` under
    /// VCL.
    pub(crate) ctx: Option<&'a RequestContext<'a>>,
    pub(crate) now: Now,
}

impl DictionaryContext<'_> {
    /// Returns true if `target` has the same route and so the same access rules: each client that
    /// may get this target may get that one. A form may then be sent without a further check.
    fn is_routed_alike(&self, target: &[u8]) -> bool {
        let Some(ctx) = self.ctx else { return true };
        let (mut notes, mut request) = (Notes::default(), ctx.request.clone());
        request.target = target.to_vec();
        let client = ctx.notes.client.unwrap_or(ConnectionPeer::Unnamed(None));
        let mut policy_ctx = ReceiveCtx {
            request: &mut request,
            client,
            now: ctx.now,
            store: StoreUse::ByRules,
            notes: &mut notes,
        };
        let is_looked_up =
            matches!(ctx.site.policy.receive(&mut policy_ctx), ReceiveVerdict::Lookup);
        is_looked_up && notes.route == ctx.notes.route
    }

    /// The key of `object` without its target, and the values it varies by. A response that cookies
    /// in the key or `Vary` keep apart serves as a dictionary only for responses that are kept
    /// apart alike.
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
    fn of(dictionary_context: DictionaryContext<'_>, object: &Record) -> Self {
        Self {
            origin: origin(dictionary_context.request).into(),
            target: dictionary_context.request.target.as_slice().into(),
            audience: dictionary_context.audience(object),
        }
    }
}

impl Dictionary {
    /// Returns true if the dictionary may be used for `object`, the response to a request.
    fn is_for(&self, dictionary_context: DictionaryContext<'_>, object: &Record) -> bool {
        let request = dictionary_context.request;
        let destination = request.headers.value_named(b"sec-fetch-dest");
        *self.scope.origin == *origin(request)
            && self.use_as.as_ref().is_some_and(|said| said.is_for(&request.target, destination))
            && self.scope.audience == dictionary_context.audience(object)
            && dictionary_context.is_routed_alike(&self.scope.target)
    }
}

/// Notes that a client gets `object`, which may become a dictionary for its next requests.
#[inline]
pub(crate) fn note(
    core: &Rc<CoreState>,
    dictionary_context: DictionaryContext<'_>,
    object: &Arc<Object>,
) {
    if dictionary_context.request.scheme == Scheme::Https && object.flags().dictionary {
        note_dictionary(core, dictionary_context, object);
    }
}

#[inline(never)]
fn note_dictionary(
    core: &Rc<CoreState>,
    dictionary_context: DictionaryContext<'_>,
    object: &Arc<Object>,
) {
    let attached = object.attached::<Dictionary>();
    if attached.is_none_or(|dictionary| !dictionary.is_settled(dictionary_context.now.mono_ms)) {
        note_first(core, dictionary_context, object);
    }
}

/// Returns true if settings and limits let stored responses be dictionaries.
fn is_on(live: &LiveConfiguration) -> bool {
    live.compression.dictionaries && live.limits.dictionaries > 0
}

#[cold]
fn note_first(
    core: &Rc<CoreState>,
    dictionary_context: DictionaryContext<'_>,
    object: &Arc<Object>,
) {
    if !is_on(dictionary_context.live) || object.status() != Status::OK {
        return;
    }
    let dictionaries = &core.shared.dictionaries;
    if object.whole().is_none() {
        // The body still arrives, and may not be requested again before a client names it.
        let most = dictionary_context.live.limits.dictionaries;
        dictionaries.expect(object, most, || DictionaryScope::of(dictionary_context, object));
        return;
    }
    if let Some(dictionary) = attach(object, || DictionaryScope::of(dictionary_context, object)) {
        delta_coding::settle(core, dictionary_context.live, dictionary);
    }
}

/// Makes `object` a dictionary, unless it is one already. `None` if there is no memory for it.
fn attach(
    object: &Arc<Object>,
    scope: impl FnOnce() -> DictionaryScope,
) -> Option<Arc<Dictionary>> {
    if object.attached::<Dictionary>().is_none() {
        object.attach(Arc::new(Dictionary::of(object, scope())));
    }
    object.attached()
}

/// The answer to a client that may have named a dictionary.
#[derive(Debug, Default)]
pub(crate) struct DictionaryAnswer {
    pub(crate) used: DictionaryUse,
    /// The body and its form, if the dictionary is used. Boxed, so that other requests move less.
    pub(crate) form: Option<Box<(Bytes, SentForm)>>,
}

impl From<DictionaryUse> for DictionaryAnswer {
    fn from(used: DictionaryUse) -> Self {
        Self { used, form: None }
    }
}

/// The requester of a form.
#[derive(Clone, Copy)]
pub(crate) enum FormRequester<'a> {
    /// A request, which may cause the form to be made.
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

/// Looks for the form of `object` with the client's dictionary. A request has the form made if the
/// dictionary exists and the work has not begun.
#[inline]
pub(crate) fn seek(
    requester: FormRequester<'_>,
    dictionary_context: DictionaryContext<'_>,
    object: &Arc<Object>,
) -> DictionaryAnswer {
    match dictionary_context.request.headers.contains(HeaderId::AvailableDictionary) {
        true => seek_named(requester, dictionary_context, object),
        false => DictionaryAnswer::default(),
    }
}

/// The outcome for a response with a single form.
#[inline]
pub(crate) fn of_one_form(request: &Request) -> DictionaryUse {
    match request.headers.contains(HeaderId::AvailableDictionary) {
        true => DictionaryUse::OneForm,
        false => DictionaryUse::NotNamed,
    }
}

/// Returns true if a form of `object` with a dictionary may answer `request`.
#[inline]
pub(crate) fn may_use_dictionary(request: &Request, object: &Object) -> bool {
    request.scheme == Scheme::Https && object.has_keyed_forms()
}

#[cold]
fn seek_named(
    requester: FormRequester<'_>,
    dictionary_context: DictionaryContext<'_>,
    object: &Arc<Object>,
) -> DictionaryAnswer {
    let DictionaryContext { live, request, .. } = dictionary_context;
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
    let used = match requester.dictionaries().find(&named.hash) {
        None => {
            if let Some(core) = requester.core()
                && let Some((object, scope)) = core.shared.dictionaries.expected()
            {
                let dictionary = attach(&object, || scope);
                dictionary.into_iter().for_each(|one| delta_coding::settle(core, live, one));
            }
            DictionaryUse::Unknown
        }
        Some(dictionary) if !dictionary.is_for(dictionary_context, object) => {
            DictionaryUse::Foreign
        }
        Some(_) if !object.wants_keyed_form(named.key()) => DictionaryUse::Tried,
        Some(dictionary) => {
            if let Some(core) = requester.core() {
                delta_coding::form(core, live, object, dictionary, named);
            }
            DictionaryUse::Making
        }
    };
    used.into()
}

#[cfg(test)]
mod tests;
