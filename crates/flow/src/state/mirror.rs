//! Mirrors: the origins that get copies of requests, and the copies under way.

use std::cell::Cell;
use std::rc::Rc;
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

/// The number of copies that a core has under way.
#[derive(Debug, Default)]
pub(crate) struct MirrorSlots(Rc<Cell<u64>>);

/// The permit for one copy, until it is dropped.
#[derive(Debug)]
pub(crate) struct MirrorPermit(Rc<Cell<u64>>);

impl MirrorSlots {
    /// The permit for one more copy, if fewer than `most` are under way.
    pub(crate) fn take(&self, most: u64) -> Option<MirrorPermit> {
        if self.0.get() >= most {
            return None;
        }
        self.0.set(self.0.get() + 1);
        Some(MirrorPermit(Rc::clone(&self.0)))
    }
}

impl Drop for MirrorPermit {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_copies_are_under_way_than_allowed() {
        let slots = MirrorSlots::default();
        let mut held: Vec<_> = (0..2).map_while(|_| slots.take(2)).collect();
        assert_eq!(held.len(), 2);
        assert!(slots.take(2).is_none() && slots.take(0).is_none());
        held.pop();
        assert!(slots.take(2).is_some());
    }
}
