//! A site: the hosts with one policy, and what each feature has for them.

use std::sync::Arc;

use base::{HashSeed, MemoryBudget};
use codec::CompressionScope;
use files::Root;
use policy::{Includes, Notes, Policy, hosts::HostTable};
use vcl::program::Instance;

use crate::problem::ErrorPage;
use crate::state::client::ClientCheck;
use crate::state::gate::SiteAuthChecks;
use crate::state::origin::SiteOrigin;
use crate::state::proxy_fields::ShownFields;
use crate::state::purges::PurgeAccess;
use crate::throttle::Throttles;

/// One site: a policy and the origins it may choose from.
pub struct Site {
    /// Its first host, for logs and counters.
    pub name: Arc<str>,
    /// Its index in [`SiteTable::listed`].
    pub number: u32,
    /// The VCL that decides in the place of everything below; `None` where its policy does.
    pub vcl: Option<Arc<Instance>>,
    /// Its policy.
    pub policy: Arc<dyn Policy>,
    /// Its origins; [`policy::Notes::origin`] is an index into this list. Empty when policy answers
    /// everything itself.
    pub origins: Vec<SiteOrigin>,
    /// The roots that it serves files of; [`policy::ReceiveVerdict::Files`] is an index into this.
    pub files: Vec<Arc<Root>>,
    /// The check of TLS clients; `None` lets everyone in.
    pub client_check: Option<ClientCheck>,
    /// The ways by which it is purged from outside.
    pub purges: PurgeAccess,
    /// The fields that its clients see.
    pub shown: ShownFields,
    /// Its own pages for errors that are made here.
    pub error_pages: Vec<ErrorPage>,
    /// Its pages that are put together of others.
    pub includes: Includes,
    /// The bodies that are coded here, where its policy decides.
    pub compress: CompressionScope,
    /// Its limits on how often, and how much at once, clients may ask.
    pub throttles: Option<Arc<Throttles>>,
    /// Its gates, if not everybody may enter.
    pub gates: Option<Arc<SiteAuthChecks>>,
}

impl Site {
    /// The first site of a configuration, which has a policy and nothing else.
    pub fn new(name: &str, policy: Arc<dyn Policy>) -> Self {
        Self {
            name: name.into(),
            number: 0,
            vcl: None,
            policy,
            origins: Vec::new(),
            files: Vec::new(),
            client_check: None,
            purges: PurgeAccess::default(),
            shown: ShownFields::default(),
            error_pages: Vec::new(),
            includes: Includes::default(),
            compress: CompressionScope::default(),
            throttles: None,
            gates: None,
        }
    }

    /// The origin that a request of these notes would go to.
    #[inline]
    pub(crate) fn origin(&self, notes: &Notes) -> Option<&SiteOrigin> {
        self.origins.get(notes.origin as usize)
    }
}

/// The sites of a configuration.
pub struct SiteTable {
    /// Sites by host.
    pub by_host: HostTable<Arc<Site>>,
    /// All of them, in the order of the configuration.
    pub listed: Vec<Arc<Site>>,
}

impl SiteTable {
    /// No site.
    pub fn new(seed: HashSeed) -> Self {
        Self { by_host: HostTable::new(seed), listed: Vec::new() }
    }

    /// Has the limits on clients go on from those `before`.
    pub(crate) fn carry_over_limits(&self, before: Option<&Self>, memory: &Arc<MemoryBudget>) {
        for (at, site) in self.listed.iter().enumerate() {
            let Some(throttles) = &site.throttles else { continue };
            let earlier = before.into_iter().flat_map(|sites| &sites.listed);
            let same =
                self.listed[..at].iter().chain(earlier).filter(|other| other.name == site.name);
            throttles.take_over(same.filter_map(|other| other.throttles.as_deref()), memory);
        }
    }
}
