//! Stored object as programs see and judge it.

use base::Now;
use cache::Object;
use message::Status;
use vcl::ctx::{Obj, ReqState};

use super::call::{self, StepContext, StepHost};
use super::storages;
use crate::state::live_configuration::LiveConfiguration;
use crate::state::vcl::ProgramRequest;
use crate::state::vcl::note;

/// The age of a stored object for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Age {
    Fresh,
    /// It may answer while it is refreshed.
    Grace,
    /// At best it may be revalidated.
    Over,
}

/// Returns the age of `object` for a request.
pub(crate) fn age<S: StepHost>(
    turn: &ProgramRequest,
    env: &StepContext<'_, S>,
    object: &Object,
) -> Age {
    if env.live.trust.wants_validation(object.fresh_until_ms(), env.now.mono_ms) {
        return Age::Over;
    }
    age_at(&turn.state, env.now, object)
}

/// Returns the age of `object` for a request in this state.
pub(crate) fn age_at(state: &ReqState, now: Now, object: &Object) -> Age {
    let now_ms = i64::try_from(now.mono_ms).unwrap_or(i64::MAX);
    let ms = |seconds: f64| (seconds * 1000.0) as i64;
    let mut until = object.fresh_until_ms();
    if let Some(ttl) = state.ttl.filter(|ttl| *ttl > 0.0) {
        until = until.min(object.born_ms().saturating_add(ms(ttl)));
    }
    if now_ms < until {
        return Age::Fresh;
    }
    // An object too old for this request only has no grace.
    if now_ms < object.fresh_until_ms() {
        return Age::Over;
    }
    let grace = i64::try_from(object.grace_ms()).unwrap_or(i64::MAX);
    let grace = state.grace.map_or(grace, |own| grace.min(ms(own.max(0.0))));
    if grace > 0 && now_ms <= until.saturating_add(grace) { Age::Grace } else { Age::Over }
}

/// Returns true if the origin may be asked to confirm `object`.
pub(crate) fn may_confirm(object: &Object, now_ms: u64) -> bool {
    let kept_ms = object.grace_ms().saturating_add(object.stale_if_error_ms());
    let has_validator = object.etag().is_some() || object.last_modified().is_some();
    !object.flags().is_mark()
        && !object.is_fresh(now_ms)
        && object.status() == Status::OK
        && has_validator
        && object.stale_ms(now_ms) <= kept_ms
        && object.length() != Some(0)
}

/// Lends `object` to a program.
pub(crate) fn with_obj<T, S: StepHost>(
    env: &StepContext<'_, S>,
    object: &Object,
    lend: impl FnOnce(&Obj<'_>) -> T,
) -> T {
    lend(&obj_of(env.live, env.now, object))
}

/// `object` as a program sees it.
pub(crate) fn obj_of<'o>(live: &'o LiveConfiguration, now: Now, object: &'o Object) -> Obj<'o> {
    let seconds = |ms: i64| ms as f64 / 1000.0;
    let now_ms = now.mono_ms as i64;
    let flags = object.flags();
    Obj {
        head: object.head(),
        status: object.status().code(),
        age: seconds((now_ms - object.born_ms()).max(0)),
        ttl: seconds(object.fresh_until_ms().saturating_sub(now_ms)).into(),
        grace: (object.grace_ms() as f64 / 1000.0).into(),
        keep: (object.stale_if_error_ms() as f64 / 1000.0).into(),
        hits: object.hits(),
        uncacheable: flags.is_mark(),
        can_esi: flags.esi,
        time: call::seconds(now) - seconds((now_ms - object.born_ms()).max(0)),
        is_valid: true,
        storage: note::storage(object.note()).and_then(|name| storages::named(&live.vcl, name)),
    }
}
