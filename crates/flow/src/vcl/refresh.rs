//! Refresh: `vcl_backend_refresh` decides the fields of a stored response that a backend has
//! confirmed (304).

use std::rc::Rc;

use message::{HeaderBlock, HeaderId, Response};
use vcl::ctx::{Beresp, BerespState, Obj};
use vcl::rules::heads;
use vcl::sub::{Action, Sub};

use super::fetch::{BackendVariables, ProgramJudge};
use super::stored_object::{may_confirm, obj_of};
use crate::fetch::{Fetch, ResponseBodySource, ResponseFate};
use crate::stored_heads::stored_head;

impl ProgramJudge {
    /// Turns `response`, a 304, into the stored response that it confirms, and returns the stored
    /// body.
    ///
    /// # Errors
    /// The fate of the fetch: the 304 confirms nothing, or the program returns another action.
    #[expect(clippy::result_large_err, reason = "a fate is made once in a fetch, and moved on")]
    pub(super) fn refresh(
        &mut self,
        fetch: &mut Fetch,
        response: &mut Response,
        state: &mut BerespState,
    ) -> Result<ResponseBodySource, ResponseFate<Self>> {
        let now = fetch.now();
        let stale = fetch.old.clone().filter(|old| may_confirm(old, now.mono_ms));
        let confirmed = stale.and_then(|stale| Some((stored_head(&stale)?, stale)));
        let Some((stored, stale)) = confirmed else {
            return Err(self.fail(fetch, "304 response but not conditional fetch"));
        };
        let live = Rc::clone(&fetch.live);
        let is_valid = fetch.core.shared.cache.is_valid(&stale);
        let obj = Obj { is_valid, ..obj_of(&live, now, &stale) };
        let beresp = Beresp { head: &mut *response, state: &mut *state };
        let variables = BackendVariables { beresp: Some(beresp), obj: Some(&obj) };
        let headers = match self.call(fetch, Sub::BackendRefresh, variables) {
            Action::Merge => {
                let mut headers = std::mem::take(&mut response.headers);
                // The tag of the stored form is not the backend's.
                if stale.flags().coded_here {
                    heads::weaken_etag(&mut headers);
                }
                heads::merge(&mut headers, &stored.headers);
                headers
            }
            Action::ObjStale => stored.headers,
            Action::Beresp => of_body(std::mem::take(&mut response.headers), &stored.headers),
            Action::Retry => return Err(self.try_again(fetch)),
            Action::Error(said) => return Err(self.error(fetch, Some(said))),
            action => return Err(Self::give_up(fetch, &action)),
        };
        (response.headers, response.status, response.reason) =
            (headers, stale.status(), stored.reason);
        state.status = stale.status().code();
        Ok(ResponseBodySource::Stored(stale.reader()))
    }
}

/// `own` with the stored fields that describe the body's bytes.
fn of_body(mut own: HeaderBlock, stored: &HeaderBlock) -> HeaderBlock {
    const OF_ITS_BYTES: [HeaderId; 4] = [
        HeaderId::ContentEncoding,
        HeaderId::ContentLength,
        HeaderId::Etag,
        HeaderId::LastModified,
    ];
    for id in OF_ITS_BYTES {
        own.remove(id);
        if let Some(value) = stored.value(id) {
            own.push(id, value);
        }
    }
    own
}

/// Removes the conditions from a request whose stored response is no longer valid.
pub(super) fn leave_conditions(fetch: &mut Fetch) {
    let cache = &fetch.core.shared.cache;
    if fetch.old.as_ref().is_some_and(|old| !cache.is_valid(old)) {
        fetch.request.headers.remove(HeaderId::IfModifiedSince);
        fetch.request.headers.remove(HeaderId::IfNoneMatch);
    }
}
