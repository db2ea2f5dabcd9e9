//! Sibling miss: a miss that siblings may be asked for.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use base::{KeyBuf, key_fields};
use message::{HeaderId, Method, Request};

use crate::key::begin_key;
use crate::state::miss::Miss;
use crate::state::request_context::only_if_cached;
use crate::state::siblings::Siblings;
use crate::state::site::Site;

/// A miss that siblings may be asked for.
pub(crate) struct SiblingMiss {
    pub(crate) siblings: Arc<Siblings>,
    pub(crate) site: Arc<Site>,
}

impl SiblingMiss {
    /// The query for `miss`; `None` if no sibling may be asked.
    pub(crate) fn of(siblings: &ArcSwapOption<Siblings>, miss: Miss<'_>) -> Option<Box<Self>> {
        let siblings = siblings.load_full()?;
        let is_any = siblings.of(&miss.site.name, miss.asked.scheme).next().is_some();
        let may_ask = is_any && miss.may_be_with_siblings();
        may_ask.then(|| Box::new(Self { siblings, site: Arc::clone(miss.site) }))
    }
}

impl Miss<'_> {
    /// Returns true if siblings may have the response.
    pub(crate) fn may_be_with_siblings(self) -> bool {
        let Self { site, asked, changed, key, is_new, is_rewritten, .. } = self;
        is_new
            // Under the URL that the origin is asked for a sibling may have anything.
            && !is_rewritten
            && asked.method == Method::Get
            && !asked.headers.contains(HeaderId::Range)
            // Such a client has asked its siblings itself.
            && !only_if_cached(asked)
            && is_of_url(site, changed.unwrap_or(asked), key)
    }
}

/// Returns true if the key of `request` contains nothing but its URL: a cache that does not know
/// the other parts would confuse responses.
fn is_of_url(site: &Site, request: &Request, key: &[u8]) -> bool {
    if site.vcl.is_none() {
        let mut plain = KeyBuf::new();
        begin_key(request, &mut plain);
        return plain.bytes() == key;
    }
    let host = request.headers.value(HeaderId::Host);
    let is_known = |part: &[u8]| {
        part == request.target || host.is_some_and(|host| part.eq_ignore_ascii_case(host))
    };
    // The first field says that a program made the key.
    key_fields(key).skip(1).all(is_known)
}
