//! Unsafe request: what a successful one invalidates (RFC 9111 4.4).

use base::Counter;
use message::reference::same_origin;
use message::{HeaderId, Response};

use super::fetch::PolicyJudge;
use crate::fetch::Fetch;
use crate::state::invalidate::InvalidationMode;

impl PolicyJudge {
    /// Invalidates after a successful unsafe request: the stored responses of its target, and those
    /// of the Location and Content-Location on the same host (RFC 9111 4.4).
    pub(super) fn invalidate_after(&self, fetch: &Fetch, response: &Response) {
        let class = response.status.code() / 100;
        if self.request.method.is_safe() || !(class == 2 || class == 3) {
            return;
        }
        let (core, now) = (&fetch.core, fetch.now());
        let mut untrue = vec![core.removal(&self.site, &self.request, &self.notes, now)];
        for id in [HeaderId::Location, HeaderId::ContentLocation] {
            for value in response.headers.values(id) {
                if let Some(other) = same_origin(&self.request, value) {
                    untrue.push(core.removal(&self.site, &other, &self.notes, now));
                }
            }
        }
        let (live, mode) = (Some(&*fetch.live), InvalidationMode::Regardless);
        let done = core.shared.invalidator.invalidate_at_once(live, untrue, now, mode);
        let outcome = done.unwrap_or_default();
        core.counters.add(Counter::Invalidations, outcome.objects);
        core.counters.add(Counter::InvalidationsRecorded, outcome.recorded.into());
    }
}
