//! Mirrors: the origins that get copies of requests.

use std::sync::Arc;

use origin::Origin;
use policy::SiteRules;

/// The origins that get copies of a site's requests.
#[derive(Clone, Debug, Default)]
pub struct SiteMirrors(
    /// By the numbers of routes; `None` if no route has one.
    Option<Box<[Option<Arc<Origin>>]>>,
);

impl SiteMirrors {
    /// The mirrors that `rules` name by their indices in `origins`.
    pub fn of(rules: &SiteRules, origins: &[Arc<Origin>]) -> Self {
        let routes = rules.routes.iter().map(|route| &route.settings);
        let all = std::iter::once(&rules.settings).chain(routes);
        let all: Box<[_]> =
            all.map(|own| own.mirror.and_then(|at| origins.get(at).cloned())).collect();
        Self(all.iter().any(Option::is_some).then_some(all))
    }

    /// The origin that gets copies of the requests of a route.
    pub(crate) fn of_route(&self, route: u32) -> Option<&Arc<Origin>> {
        self.0.as_ref()?.get(route as usize)?.as_ref()
    }
}
