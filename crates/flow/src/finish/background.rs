//! Fetches that no client waits for.

use std::rc::Rc;
use std::sync::Arc;

use base::Now;
use message::Request;
use vcl::told::Told;

use crate::core::Core;
use crate::live::Site;
use crate::trace::Trace;

/// A fetch that no client waits for. Tells of itself when it is over, however that comes about.
pub(crate) struct Background {
    pub(super) core: Rc<Core>,
    pub(super) site: Arc<Site>,
    /// The rule that decided, as the site's policy numbers them.
    pub(super) rule: u32,
    /// The client's request, as policy left it.
    pub(super) request: Request,
    /// Hash of the cache key.
    pub(super) key: u64,
    pub(super) trace: Rc<Trace>,
    pub(super) started: Now,
    pub(super) began_us: u64,
    /// The number of the transaction that caused it: under VCL the one in X-Varnish.
    pub(super) cause: u64,
    /// The program's actions during the fetch.
    pub(crate) told: Option<Box<Told>>,
}

impl Background {
    /// The fetch of what `request` asks for, which begins now. `rule` is the policy's number of the
    /// rule that decided, `key` the hash of the cache key, `cause` the number of the transaction
    /// that caused it.
    pub(crate) fn begin(
        core: &Rc<Core>,
        site: &Arc<Site>,
        request: &Request,
        (rule, key, cause): (u32, u64, u64),
        trace: &Rc<Trace>,
    ) -> Self {
        Self {
            core: Rc::clone(core),
            site: Arc::clone(site),
            rule,
            request: request.clone(),
            key,
            trace: Rc::clone(trace),
            started: core.now(),
            began_us: core.micros(),
            cause,
            told: None,
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.core.log.fetched(self);
    }
}
