//! Visitors of a stored page: the one who got it, with everything that the browser sent, and a
//! neutral one, who is the same to the cache and has nothing that makes a visitor known.

use std::rc::Rc;
use std::sync::Arc;

use base::KeyBuf;
use cache::{CacheLookup, Object};
use message::{HeaderId, Request, cookie};

use crate::origin_messages::CONDITIONS;
use crate::state::core::CoreState;
use crate::state::request_context::RequestContext;
use crate::state::verification::DifferenceCause;

/// The User-Agent of the neutral visitor.
const NEUTRAL_USER_AGENT: &[u8] =
    b"Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0";

/// Fields by which pages may differ beside cookies.
const FIELDS: [(&str, HeaderId); 2] =
    [("Accept-Language", HeaderId::AcceptLanguage), ("User-Agent", HeaderId::UserAgent)];

/// The requests of two visitors who are the same to the cache.
#[derive(Debug)]
pub(super) struct Visitors {
    own: Request,
    neutral: Request,
    /// The parts of the own request that the neutral one has not.
    differences: Vec<DifferenceCause>,
}

impl Visitors {
    /// The visitor of `ctx`, with all cookies, who got `object`; and a neutral one.
    pub(super) fn of(core: &Rc<CoreState>, ctx: &RequestContext<'_>, object: &Arc<Object>) -> Self {
        let mut own = ctx.request.clone();
        own.headers.retain(|field| !CONDITIONS.contains(&field.id));
        if let Some(cookies) = ctx.cookies.filter(|cookies| !cookies.is_empty()) {
            own.headers.set(HeaderId::Cookie, cookies);
        }
        // A part of the request belongs to the neutral one, too, if the cache looks at it.
        let mut key = KeyBuf::new();
        let mut is_equal = |request: &Request| {
            core.make_key(ctx.site, request, &ctx.notes, &mut key);
            let found = core.find(&key, request, ctx.now);
            matches!(found, CacheLookup::Object(found) if Arc::ptr_eq(&found, object))
        };
        let mut visitors = Self { neutral: own.clone(), own, differences: Vec::new() };
        for cause in visitors.candidates() {
            let without = visitors.changed(&visitors.neutral, &cause);
            if is_equal(&without) {
                visitors.neutral = without;
                visitors.differences.push(cause);
            }
        }
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
        let cookies = names.into_iter().map(|name| DifferenceCause::Cookie(name.to_vec()));
        let fields = FIELDS.iter().filter(|(_, id)| self.own.headers.contains(*id));
        cookies.chain(fields.map(|(name, _)| DifferenceCause::Field(name))).collect()
    }

    /// `request` without `cause`.
    fn changed(&self, request: &Request, cause: &DifferenceCause) -> Request {
        let mut request = request.clone();
        match cause {
            DifferenceCause::Cookie(name) => {
                cookie::remove(&mut request.headers, |own| own == name, &mut Vec::new());
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

    /// The parts of the visitor's request that the neutral one has not.
    pub(super) fn differences(&self) -> &[DifferenceCause] {
        &self.differences
    }

    /// The visitor's request without `cause`.
    pub(super) fn without(&self, cause: &DifferenceCause) -> Request {
        self.changed(&self.own, cause)
    }

    /// Bytes of both requests, and of one that is sent.
    pub(super) fn memory(&self) -> u64 {
        let bytes = |request: &Request| request.headers.memory() + request.target.len();
        (bytes(&self.own) + 2 * bytes(&self.neutral)) as u64
    }
}
