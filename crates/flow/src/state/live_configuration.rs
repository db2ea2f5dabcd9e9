//! The configuration in force, which is swapped as a whole.

use std::rc::Rc;
use std::sync::Arc;

use base::Limits;
use codec::Compression;
use origin::Origin;
use vcl::backend::Backend;
use vcl::params::Params;

use crate::state::connections::ConnectionRules;
use crate::state::proxy_fields::ProxyFields;
use crate::state::site::SiteTable;
use crate::state::vcl::VclSettings;
use crate::state::vcl::link::BackendOrigin;
use crate::tracing::Tracing;
use crate::trust::Trust;

/// The configuration in force. Requests under way keep the one they began with.
pub struct LiveConfiguration {
    /// The sites.
    pub sites: SiteTable,
    /// Limits.
    pub limits: Limits,
    /// The rules for clients' connections.
    pub connections: ConnectionRules,
    /// The path that is answered 200 where Host names no site.
    pub health_check: Option<Box<[u8]>>,
    /// The proxy, as messages tell of it.
    pub announce: ProxyFields,
    /// Compression, for sites that have no program.
    pub compression: Compression,
    /// The rule by which traces are continued and begun; `None` where trace context is passed on as
    /// it is.
    pub tracing: Option<Arc<Tracing>>,
    /// The settings that programs see.
    pub vcl: VclSettings,
    /// Trust in what is stored: the store's, whatever stands here at first.
    pub trust: Arc<Trust>,
}

/// The configuration a request began with, shared cheaply within its core.
pub type LiveRef = Rc<Arc<LiveConfiguration>>;

impl LiveConfiguration {
    /// A configuration of these sites, which says nothing else.
    pub fn new(sites: SiteTable, limits: Limits) -> Self {
        Self {
            sites,
            connections: ConnectionRules::new(&limits),
            limits,
            health_check: None,
            announce: ProxyFields::new("larder"),
            compression: Compression::default(),
            tracing: None,
            vcl: VclSettings::new(&Params::default()),
            trust: Arc::default(),
        }
    }

    /// An origin of a site, or a backend of a program, that `is_it`.
    pub(crate) fn find_origin(&self, is_it: impl Fn(&Origin) -> bool) -> Option<Arc<Origin>> {
        let of_sites = self.sites.listed.iter().flat_map(|site| &site.origins);
        if let Some(own) = of_sites.into_iter().find(|own| is_it(&own.origin)) {
            return Some(Arc::clone(&own.origin));
        }
        let programs = self.sites.listed.iter().filter_map(|site| site.vcl.as_ref());
        let backends =
            programs.chain(self.vcl.labels.values()).flat_map(|program| program.backends());
        let mut origins = backends.filter_map(|backend| match backend {
            Backend::Leaf(leaf) => Some(Arc::clone(&BackendOrigin::of(&leaf)?.origin)),
            _ => None,
        });
        origins.find(|origin| is_it(origin))
    }
}
