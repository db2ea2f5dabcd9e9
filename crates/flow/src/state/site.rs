//! Site: a set of hosts with one policy, and each feature's settings for it.

use std::sync::Arc;

use agents::Crawlers;
use base::{HashSeed, MemoryBudget};
use codec::CompressionScope;
use files::Root;
use policy::{Includes, Notes, Policy, hosts::HostTable};
use vcl::program::Instance;

use crate::problem::ErrorPage;
use crate::state::client::ClientCheck;
use crate::state::gate::SiteAuthChecks;
use crate::state::mirror::SiteMirrors;
use crate::state::origin::SiteOrigin;
use crate::state::proxy_fields::ShownFields;
use crate::state::purges::PurgeAccess;
use crate::state::unlogged_routes::UnloggedRoutes;
use crate::state::verification::SiteVerification;
use crate::state::warmth::SiteWarmth;
use crate::throttle::Throttles;

/// A site: its policy and the origins that it may select.
pub struct Site {
    /// Its first host, for logs and counters.
    pub name: Arc<str>,
    /// Its index in [`SiteTable::listed`].
    pub number: u32,
    /// The program that decides instead of the policy; `None` on a declared site.
    pub vcl: Option<Arc<Instance>>,
    /// The VCL whose subroutines run before and after the policy's steps; `None` without one.
    pub extra: Option<Arc<Instance>>,
    /// Its policy.
    pub policy: Arc<dyn Policy>,
    /// The origins; [`policy::Notes::origin`] is an index into this list. Empty if the policy
    /// answers everything itself.
    pub origins: Vec<SiteOrigin>,
    /// The origins that get copies of its requests.
    pub mirrors: SiteMirrors,
    /// The roots of its files; [`policy::ReceiveVerdict::Files`] is an index into this list.
    pub files: Vec<Arc<Root>>,
    /// The client certificate check; `None` accepts all clients.
    pub client_check: Option<ClientCheck>,
    /// The ways in which it may be purged from outside.
    pub purges: PurgeAccess,
    /// The fields that its clients see.
    pub shown: ShownFields,
    /// Its pages for errors that arise here.
    pub error_pages: Vec<ErrorPage>,
    /// Its pages with instructions.
    pub includes: Includes,
    /// The bodies that are compressed here, on a declared site.
    pub compress: CompressionScope,
    /// Its limits on the rate and concurrency of clients.
    pub throttles: Option<Arc<Throttles>>,
    /// Its requests about which the access log has no line.
    pub unlogged: UnloggedRoutes,
    /// Its authentication checks; `None` if all clients may enter.
    pub gates: Option<Arc<SiteAuthChecks>>,
    /// The list of crawlers, by which its clients have a class; `None` if it uses no classes.
    pub crawlers: Option<Arc<Crawlers>>,
    /// The comparison of its hits with the origin; `None` if no hit is compared.
    pub verification: Option<Box<SiteVerification>>,
    /// Its settings for warming.
    pub warmth: SiteWarmth,
}

impl Site {
    /// A first site with this policy and defaults.
    pub fn new(name: &str, policy: Arc<dyn Policy>) -> Self {
        Self {
            name: name.into(),
            number: 0,
            vcl: None,
            extra: None,
            policy,
            origins: Vec::new(),
            mirrors: SiteMirrors::default(),
            files: Vec::new(),
            client_check: None,
            purges: PurgeAccess::default(),
            shown: ShownFields::default(),
            error_pages: Vec::new(),
            includes: Includes::default(),
            compress: CompressionScope::default(),
            throttles: None,
            unlogged: UnloggedRoutes::default(),
            gates: None,
            crawlers: None,
            verification: None,
            warmth: SiteWarmth::default(),
        }
    }

    /// The origin that a request with these notes would be sent to.
    #[inline]
    pub(crate) fn origin(&self, notes: &Notes) -> Option<&SiteOrigin> {
        self.origins.get(notes.origin as usize)
    }
}

/// The sites of a configuration.
pub struct SiteTable {
    /// Sites by host.
    pub by_host: HostTable<Arc<Site>>,
    /// All sites in the order of the configuration.
    pub listed: Vec<Arc<Site>>,
}

impl SiteTable {
    /// No site.
    pub fn new(seed: HashSeed) -> Self {
        Self { by_host: HostTable::new(seed), listed: Vec::new() }
    }

    /// Takes over what sites of these names have learned `before`: the counts of client limits, and
    /// the findings of comparisons with the origin.
    pub(crate) fn carry_over(&self, before: Option<&Self>, memory: &Arc<MemoryBudget>) {
        self.carry_over_limits(before, memory);
        for (at, site) in self.listed.iter().enumerate() {
            let Some(verification) = &site.verification else { continue };
            let earlier = before.into_iter().flat_map(|sites| &sites.listed);
            let mut others = self.listed[..at].iter().chain(earlier);
            let same = others.find_map(|other| {
                other.verification.as_deref().filter(|_| other.name == site.name)
            });
            if let Some(same) = same {
                verification.take_over(same);
            }
        }
    }

    /// Takes over the counts of client limits from the sites `before`.
    fn carry_over_limits(&self, before: Option<&Self>, memory: &Arc<MemoryBudget>) {
        for (at, site) in self.listed.iter().enumerate() {
            let Some(throttles) = &site.throttles else { continue };
            let earlier = before.into_iter().flat_map(|sites| &sites.listed);
            let same =
                self.listed[..at].iter().chain(earlier).filter(|other| other.name == site.name);
            throttles.take_over(same.filter_map(|other| other.throttles.as_deref()), memory);
        }
    }
}
