//! Live configuration: the configuration in force, replaced as a whole.

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

/// The configuration in force. A request keeps the one that it began with.
pub struct LiveConfiguration {
    /// The sites.
    pub sites: SiteTable,
    /// The limits.
    pub limits: Limits,
    /// The rules for client connections.
    pub connections: ConnectionRules,
    /// The path that is answered 200 if Host names no site.
    pub health_check: Option<Box<[u8]>>,
    /// The fields that the proxy adds to messages.
    pub announce: ProxyFields,
    /// Compression on sites without a program.
    pub compression: Compression,
    /// Trace context settings; `None` if trace context is passed on unchanged.
    pub tracing: Option<Arc<Tracing>>,
    /// The settings that programs see.
    pub vcl: VclSettings,
    /// Trust in stored responses: replaced by the store's when the configuration is put in force.
    pub trust: Arc<Trust>,
}

/// The configuration of a request, shared cheaply within its core.
pub type LiveRef = Rc<Arc<LiveConfiguration>>;

impl LiveConfiguration {
    /// A configuration of these sites with defaults.
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

    /// The first origin of a site or backend of a program for which `is_it` returns true.
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
