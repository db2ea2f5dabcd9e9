//! Loop detection under a program: by Via, and by the transaction numbers in X-Varnish.

use message::{HeaderBlock, HeaderId};

use super::call::{StepContext, StepHost};
use crate::origin_messages::{self, HOPS_MAX};
use crate::state::vcl::Xids;

/// Returns true if the request has passed here too often by its Via, or by its X-Varnish: each
/// transaction on the way has appended its number.
pub(crate) fn loops<S: StepHost>(env: &StepContext<'_, S>) -> bool {
    let xids = &env.host.shared().vcl.xids;
    let passes = HOPS_MAX - 1;
    // Numbers are looked up, under a lock, only if there are enough.
    origin_messages::loops(env.asked, env.live)
        || (env.asked.headers.values(HeaderId::XVarnish).nth(passes).is_some()
            && numbers(&env.asked.headers)
                .filter(|number| xids.is_sent(*number))
                .nth(passes)
                .is_some())
}

/// Returns true if a fetch of the object with this key waits for this request. Another Varnish may
/// use an equal number, but hardly with the same key.
pub(crate) fn is_awaited_by<S: StepHost>(env: &StepContext<'_, S>, key_hash: u64) -> bool {
    let xids = &env.host.shared().vcl.xids;
    numbers(&env.asked.headers).any(|number| xids.leads(number, key_hash))
}

/// Keeps in X-Varnish the numbers of this proxy when a request is sent, to detect loops; Varnish
/// removes the field.
pub(crate) fn leave_own_numbers(headers: &mut HeaderBlock, xids: &Xids) {
    let own: Vec<u64> = numbers(headers).filter(|number| xids.is_sent(*number)).collect();
    headers.remove(HeaderId::XVarnish);
    for number in own {
        headers.push(HeaderId::XVarnish, number.to_string().as_bytes());
    }
}

/// The transaction numbers in X-Varnish.
fn numbers(headers: &HeaderBlock) -> impl Iterator<Item = u64> {
    let number = |value: &[u8]| std::str::from_utf8(value).ok()?.parse().ok();
    headers.values(HeaderId::XVarnish).filter_map(number)
}
