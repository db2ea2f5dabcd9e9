//! Requests that come round: a program's sites know them by Via and by the numbers in X-Varnish.

use message::{HeaderBlock, HeaderId};

use super::call::{StepContext, StepHost};
use crate::origin_messages::{self, HOPS_MAX};
use crate::state::vcl::Xids;

/// Returns true if the request has been through here too often, as its Via says, or its X-Varnish:
/// each transaction that waits for the answer to the request has left its number there.
pub(crate) fn loops<S: StepHost>(env: &StepContext<'_, S>) -> bool {
    let xids = &env.stage.shared().vcl.xids;
    let passes = HOPS_MAX - 1;
    // The numbers are looked up, behind a lock, only where there are enough of them.
    origin_messages::loops(env.asked, env.live)
        || (env.asked.headers.values(HeaderId::XVarnish).nth(passes).is_some()
            && numbers(&env.asked.headers)
                .filter(|number| xids.is_sent(*number))
                .nth(passes)
                .is_some())
}

/// Returns true if a fetch for the object with this key waits for the answer to the request. A
/// number of another Varnish in front may be the same by chance; its key is hardly ever the same.
pub(crate) fn is_awaited_by<S: StepHost>(env: &StepContext<'_, S>, key_hash: u64) -> bool {
    let xids = &env.stage.shared().vcl.xids;
    numbers(&env.asked.headers).any(|number| xids.leads(number, key_hash))
}

/// Leaves of X-Varnish what tells a loop, when a request is sent anew: Varnish leaves nothing.
pub(crate) fn leave_own_numbers(headers: &mut HeaderBlock, xids: &Xids) {
    let own: Vec<u64> = numbers(headers).filter(|number| xids.is_sent(*number)).collect();
    headers.remove(HeaderId::XVarnish);
    for number in own {
        headers.push(HeaderId::XVarnish, number.to_string().as_bytes());
    }
}

/// The transactions that the request has been part of.
fn numbers(headers: &HeaderBlock) -> impl Iterator<Item = u64> {
    let number = |value: &[u8]| std::str::from_utf8(value).ok()?.parse().ok();
    headers.values(HeaderId::XVarnish).filter_map(number)
}
