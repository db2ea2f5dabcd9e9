//! Prefetches: requests that a browser makes before its user wants the page (`Sec-Purpose`). While
//! the origin has no place for a request, they are refused instead of taking a place in its queue.
//!
//! A stored response answers them as any request.

use message::HeaderBlock;
use policy::DecisionStep;

use crate::problem::Problem;
use crate::state::request_context::RequestContext;

const SEC_PURPOSE: &[u8] = b"Sec-Purpose";

/// The refusal of a prefetch whose fetch would wait behind others; `None` for all other requests.
pub(crate) fn refusal(ctx: &RequestContext<'_>) -> Option<Problem> {
    let own = ctx.site.origin(&ctx.notes).filter(|_| is_refusable(ctx))?;
    (!own.origin.has_room(ctx.now.mono_ms)).then_some(Problem::Prefetch)
}

/// Returns true if the request is a client's prefetch. A fragment of a page is refused with its
/// page only, and a fetch for another node by that node.
fn is_refusable(ctx: &RequestContext<'_>) -> bool {
    ctx.downstream.is_of_client() && is_prefetch(&ctx.request.headers)
}

/// Forecasts the refusal of a prefetch; `None` for all other requests.
pub(crate) fn foretell(ctx: &RequestContext<'_>) -> Option<(DecisionStep, Option<Problem>)> {
    if !is_refusable(ctx) {
        return None;
    }
    let problem = refusal(ctx);
    let step = DecisionStep::new("prefetch", "the browser prefetches, its user does not wait");
    Some(match problem {
        Some(_) => (step.fact("now", "the origin has no place for it").decisive(), problem),
        None => (step.fact("now", "the origin has a place for it"), None),
    })
}

/// Returns true if the fields are those of a prefetch: the first item of Sec-Purpose says so,
/// with any parameters.
fn is_prefetch(headers: &HeaderBlock) -> bool {
    let Some(value) = headers.value_named(SEC_PURPOSE) else { return false };
    let item = value.split(|b| matches!(b, b';' | b',')).next().unwrap_or_default();
    item.trim_ascii().eq_ignore_ascii_case(b"prefetch")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefetch_is_known_with_and_without_parameters() {
        for (value, is_one) in [
            ("prefetch", true),
            ("prefetch;prerender", true),
            (" prefetch ; anonymous-client-ip", true),
            ("Prefetch", true),
            ("prerender", false),
            ("prefetches", false),
            ("", false),
        ] {
            let mut headers = HeaderBlock::default();
            headers.push_named(b"sec-purpose", value.as_bytes());
            assert_eq!(is_prefetch(&headers), is_one, "{value}");
        }
        assert!(!is_prefetch(&HeaderBlock::default()));
    }
}
