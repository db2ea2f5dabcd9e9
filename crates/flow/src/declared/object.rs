//! Object under the declared policy: from the plan for a response to the object that is stored.

use base::Now;
use cache::{Flags, NewObject};
use message::date::parse_http_date;
use message::store::{JudgedHead, StorePlan};
use message::vary::Vary;
use message::{HeaderId, Request, Response, Version};

use crate::body_transfer::VariantSelector;
use crate::fetch::{ObjectTimes, new_object};

/// The variant of a response beside its key. With `is_one`, a single variant serves all codings, so
/// Accept-Encoding does not select it.
pub(super) fn selector(
    judged: &JudgedHead<'_>,
    request: &Request,
    is_one: bool,
) -> Option<VariantSelector> {
    // The plan refuses `*` before.
    let Vary::Names(names) = Vary::of(&judged.headers) else { return None };
    if !is_one {
        return Some(VariantSelector::of(names, request));
    }
    // The origin does not see the client's dictionary or codings.
    let names = names.without(HeaderId::AcceptEncoding)?.without(HeaderId::AvailableDictionary)?;
    Some(VariantSelector::of(names, request))
}

/// An object by `plan`.
pub(super) fn object_by(response: &Response, plan: &StorePlan, now: Now) -> NewObject {
    let times = ObjectTimes {
        age_ms: plan.age_ms,
        lifetime_ms: plan.lifetime_ms,
        grace_ms: plan.grace_ms,
        stale_if_error_ms: plan.stale_if_error_ms,
        stale_if_unreachable_ms: plan.stale_if_unreachable_ms,
    };
    let flags = Flags {
        shared: plan.shared,
        must_validate: plan.must_validate,
        never_stale: plan.never_stale,
        http10: response.version == Version::Http10,
        ..Flags::default()
    };
    let date = |value: &[u8]| parse_http_date(value, now.unix_secs());
    new_object(response, now, &times, flags, &date)
}
