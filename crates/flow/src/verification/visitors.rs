//! Visitors of a stored page: the one who got it, with everything that the browser sent, and a
//! neutral one, who is the same to the cache and has nothing that makes a visitor known.

use std::sync::Arc;

use base::KeyBuf;
use cache::CacheLookup;
use message::{HeaderId, Request, cookie};

use super::Verification;
use crate::origin_messages::CONDITIONS;
use crate::state::verification::{DifferenceCause, joined_cookies};

/// The User-Agent of the neutral visitor.
const NEUTRAL_USER_AGENT: &[u8] =
    b"Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0";

/// Fields that are tried one by one as what the cache does not look at, at most.
const FIELDS_MAX: usize = 32;

/// Fields by which pages may differ beside cookies.
const FIELDS: [(&str, HeaderId); 2] =
    [("Accept-Language", HeaderId::AcceptLanguage), ("User-Agent", HeaderId::UserAgent)];

/// The requests of two visitors who are the same to the cache.
#[derive(Debug)]
pub(super) struct Visitors {
    own: Request,
    neutral: Request,
    /// The neutral one with nothing but what the cache looks at.
    bare: Request,
    /// The parts of the own request that the neutral one has not.
    differences: Vec<DifferenceCause>,
}

impl Visitors {
    /// The visitor of `verification`, and a neutral one.
    pub(super) fn of(verification: &Verification) -> Self {
        let Verification { core, site, notes, object, request, cookies, .. } = verification;
        let mut own = request.clone();
        own.headers.retain(|field| !CONDITIONS.contains(&field.id));
        let looks_at = |name: &[u8]| site.policy.looks_at_cookie(notes, name);
        let all = with_all_cookies(&own, cookies, looks_at);
        if !all.is_empty() {
            own.headers.set(HeaderId::Cookie, &all);
        }
        // A part of the request belongs to the neutral one, too, if the cache looks at it.
        let (mut key, now) = (KeyBuf::new(), core.now());
        let mut is_equal = |request: &Request| {
            core.make_key(site, request, notes, None, &mut key);
            let found = core.find(&key, request, now);
            matches!(found, CacheLookup::Object(found) if Arc::ptr_eq(&found, object))
        };
        let (neutral, bare) = (own.clone(), Request::new());
        let mut visitors = Self { own, neutral, bare, differences: Vec::new() };
        for cause in visitors.candidates() {
            let without = visitors.changed(&visitors.neutral, &cause);
            if is_equal(&without) {
                visitors.neutral = without;
                visitors.differences.push(cause);
            }
        }
        visitors.bare = bared(&visitors.neutral, is_equal);
        visitors
    }

    /// The parts by which the origin may tell visitors apart, the most probable first.
    fn candidates(&self) -> Vec<DifferenceCause> {
        let mut names: Vec<&[u8]> = Vec::new();
        for pair in cookie::pairs(self.own.headers.values(HeaderId::Cookie)) {
            if !names.contains(&pair.name) {
                names.push(pair.name);
            }
        }
        names.sort_by_key(|name| cookie::is_tracking(name));
        let cookies = names.into_iter().map(|name| DifferenceCause::Cookies(vec![name.to_vec()]));
        let fields = FIELDS.iter().filter(|(_, id)| self.own.headers.contains(*id));
        cookies.chain(fields.map(|(name, _)| DifferenceCause::Field(name))).collect()
    }

    /// `request` without `cause`.
    fn changed(&self, request: &Request, cause: &DifferenceCause) -> Request {
        let mut request = request.clone();
        match cause {
            DifferenceCause::Cookies(names) => {
                let goes = |own: &[u8]| names.iter().any(|name| name == own);
                cookie::remove(&mut request.headers, goes, &mut Vec::new());
                if cookie::pairs(request.headers.values(HeaderId::Cookie)).next().is_none() {
                    request.headers.remove(HeaderId::Cookie);
                }
            }
            DifferenceCause::Field("User-Agent") => {
                request.headers.set(HeaderId::UserAgent, NEUTRAL_USER_AGENT);
            }
            DifferenceCause::Field(name) => request.headers.remove_named(name.as_bytes()),
            DifferenceCause::Unknown => {}
        }
        request
    }

    /// The request of the visitor.
    pub(super) fn own(&self) -> &Request {
        &self.own
    }

    /// The request of the neutral visitor.
    pub(super) fn neutral(&self) -> &Request {
        &self.neutral
    }

    /// The neutral request with nothing but what the cache looks at.
    pub(super) fn bare(&self) -> &Request {
        &self.bare
    }

    /// The parts of the visitor's request that the neutral one has not.
    pub(super) fn differences(&self) -> &[DifferenceCause] {
        &self.differences
    }

    /// The visitor's request without `cause`.
    pub(super) fn without(&self, cause: &DifferenceCause) -> Request {
        self.changed(&self.own, cause)
    }

    /// All cookies that the neutral request has not, if there are several.
    pub(super) fn all_cookies(&self) -> Option<DifferenceCause> {
        let names = self.differences.iter().filter_map(|cause| match cause {
            DifferenceCause::Cookies(names) => Some(names),
            _ => None,
        });
        let names: Vec<_> = names.flatten().cloned().collect();
        (names.len() > 1).then_some(DifferenceCause::Cookies(names))
    }
}

/// `neutral` without the fields that the cache does not look at; `is_equal` tells if a request
/// finds the page.
fn bared(neutral: &Request, mut is_equal: impl FnMut(&Request) -> bool) -> Request {
    let stays = |id: HeaderId| matches!(id, HeaderId::Host | HeaderId::UserAgent);
    let mut names: Vec<_> = neutral.headers.iter().map(|field| field.name.to_vec()).collect();
    names.sort_unstable();
    names.dedup();
    let mut bare = neutral.clone();
    bare.headers.retain(|field| stays(field.id));
    if is_equal(&bare) {
        return bare;
    }
    bare = neutral.clone();
    for name in names.iter().take(FIELDS_MAX) {
        let mut without = bare.clone();
        without.headers.retain(|field| stays(field.id) || !field.name.eq_ignore_ascii_case(name));
        if is_equal(&without) {
            bare = without;
        }
    }
    bare
}

/// The cookies of `own`, which the policy has left there, and those of `cookies` that it has
/// removed. Of those that the cache looks at, only the former count.
fn with_all_cookies(own: &Request, cookies: &[u8], looks_at: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let mut all = joined_cookies(own);
    let is_left = |name: &[u8]| {
        cookie::pairs(own.headers.values(HeaderId::Cookie)).any(|pair| pair.name == name)
    };
    for pair in cookie::pairs([cookies]) {
        if looks_at(pair.name) || is_left(pair.name) {
            continue;
        }
        for part in [if all.is_empty() { &b""[..] } else { b"; " }, pair.name, b"=", pair.value] {
            all.extend_from_slice(part);
        }
    }
    all
}
