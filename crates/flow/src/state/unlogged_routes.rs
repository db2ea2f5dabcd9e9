//! Unlogged routes: those about whose requests the access log has no line (`access_log = false`).
//! Counters and the log ring have them all the same.

use policy::SiteRules;

/// The routes of a site without lines in the access log.
#[derive(Clone, Debug, Default)]
pub struct UnloggedRoutes(
    /// By the numbers of routes; `None` if the log has lines about all.
    Option<Box<[bool]>>,
);

impl UnloggedRoutes {
    /// The routes that `rules` leave out.
    pub fn of(rules: &SiteRules) -> Self {
        let routes = rules.routes.iter().map(|route| &route.settings);
        let off: Box<[bool]> =
            std::iter::once(&rules.settings).chain(routes).map(|own| !own.access_log).collect();
        Self(off.contains(&true).then_some(off))
    }

    /// Returns true if the route of this number is one of them.
    #[inline]
    pub(crate) fn has(&self, route: u32) -> bool {
        let off = self.0.as_ref();
        off.is_some_and(|off| off.get(route as usize).copied().unwrap_or_default())
    }
}
