//! Forecast of the pieces of a page with instructions.

use std::sync::Arc;

use base::{Account, Now};
use message::Request;
use policy::{ConnectionPeer, DecisionStep, decision_steps::shown};

use super::builder::ComposablePage;
use super::forecast;
use crate::state::assemble::{ComposedPage, Dialect, TopPage};
use crate::state::live_configuration::LiveRef;
use crate::state::shared::SharedState;
use crate::state::site_context::SiteContext;

/// Fragments that are reported.
const MOST: usize = 32;

/// Reports the source of each fragment of a page that answers `request`.
pub(super) fn of_page(
    shared: &Arc<SharedState>,
    live: &LiveRef,
    whole: ComposablePage,
    request: Request,
    peer: ConnectionPeer,
    now: Now,
) -> Vec<DecisionStep> {
    let ComposablePage { object, site, dialect, routes } = whole;
    let account = Account::open(shared.cache.memory(), 0);
    let top = || TopPage::new(live, Request::new(), peer, None, &account);
    let place = SiteContext { live, site: &site };
    let mut page = ComposedPage::new(dialect, place, request, None, top);
    page.routes = routes;
    let (fragments, faults) = page.fragments(&object, now);
    let language = match dialect {
        Dialect::Esi | Dialect::Varnish => "ESI",
        Dialect::Ssi => "SSI",
    };
    let why = format!("a page with {} fragments ({language})", fragments.len());
    let mut steps = vec![DecisionStep::new("page", why).fact("faults", faults.join("; "))];
    for (src, request) in fragments.into_iter().take(MOST) {
        let summary = match request {
            // A fragment's own fragments are not followed: a page may include itself.
            Ok(request) => forecast(shared, live, request, peer, now).0.summary,
            Err(why) => format!("left out: {why}"),
        };
        steps.push(DecisionStep::new("fragment", format!("{}: {summary}", shown(&src))));
    }
    steps
}
