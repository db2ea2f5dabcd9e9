//! Execution of purges as invalidations: of one URL, of a description, and of several sites at
//! once.

use std::sync::Arc;

use base::Now;
use message::Request;
use policy::ConnectionPeer;

use super::Share;
use crate::invalidate::{
    Invalidation, InvalidationError, InvalidationSource, InvalidationTarget, Level,
    ResponseSelector, Sites, Url,
};
use crate::state::invalidate::{InvalidationWait, Invalidator, Outcome};
use crate::state::live_configuration::LiveConfiguration;
use crate::state::request_context::RequestContext;
use crate::state::site::Site;

/// The time that a purge's answer waits for the count of selected responses. Plugins purge many
/// pages one after the other, and few wait longer than a second in total.
const COUNT_MS: u64 = 50;

/// The context of a purged URL.
#[derive(Clone, Copy)]
pub struct PurgeContext<'a> {
    /// The configuration in force.
    pub live: &'a Arc<LiveConfiguration>,
    /// The site of the host.
    pub site: &'a Site,
    /// The request that names the host.
    pub request: &'a Request,
    /// The client that purges.
    pub client: ConnectionPeer,
    /// The time of the purge.
    pub now: Now,
}

impl<'a> PurgeContext<'a> {
    /// The context of a URL on the host of a client's request.
    pub(crate) fn of(ctx: &RequestContext<'a>) -> Self {
        let client = ctx.notes.client.unwrap_or(ConnectionPeer::Local);
        Self { live: ctx.live, site: ctx.site, request: ctx.request, client, now: rt::now() }
    }
}

impl Invalidator {
    /// Invalidates what is selected on all sites. Once this returns no core uses it. The count
    /// takes at most `wait_ms`.
    ///
    /// # Errors
    /// The journal refuses the purge.
    pub async fn purge(
        self: &Arc<Self>,
        what: ResponseSelector,
        soft: bool,
        now: Now,
        wait: impl Into<InvalidationWait>,
    ) -> Result<Outcome, InvalidationError> {
        let one = self.invalidation(InvalidationTarget::Many(what), soft, Sites::Every, now);
        self.invalidate(None, [one], now, wait).await
    }

    /// The invalidation of all variants of `target` on the host of the context's request, over both
    /// schemes, with its port and without.
    pub fn invalidation_of(
        &self,
        context: &PurgeContext<'_>,
        target: &[u8],
        soft: bool,
    ) -> Invalidation {
        let url = Url {
            host: context.request.host.clone(),
            port: context.request.port,
            target: target.to_vec(),
            client: context.client,
        };
        let one = Sites::one(&context.site.name);
        let mut purge = self.invalidation(InvalidationTarget::Url(url), soft, one, context.now);
        purge.cause.heard = InvalidationSource::of(context.request);
        purge
    }

    /// Purges the URL.
    ///
    /// # Errors
    /// The journal refuses the purge.
    pub async fn purge_url(
        self: &Arc<Self>,
        context: &PurgeContext<'_>,
        target: &[u8],
        soft: bool,
        level: Option<Level>,
    ) -> Result<Outcome, InvalidationError> {
        let one = self.invalidation_of(context, target, soft);
        let wait = InvalidationWait { count_ms: COUNT_MS, level };
        self.invalidate(Some(context.live), [one], context.now, wait).await
    }
}

/// Invalidates the shares of several sites, all or none.
///
/// # Errors
/// The journal refuses the purge.
pub(crate) async fn purge_shares(
    invalidator: &Arc<Invalidator>,
    ctx: &RequestContext<'_>,
    shares: Vec<Share>,
    level: Option<Level>,
) -> Result<Outcome, InvalidationError> {
    let now = rt::now();
    let one = |share: Share| {
        let listed = &ctx.live.sites.listed;
        let named = share.sites.iter().filter_map(|number| listed.get(*number as usize));
        let sites = Sites::Named(named.map(|site| site.name.to_string()).collect());
        let many = InvalidationTarget::Many(share.what);
        let mut purge = invalidator.invalidation(many, share.soft, sites, now);
        purge.cause.heard = InvalidationSource::of(ctx.request);
        purge
    };
    let batch = shares.into_iter().map(one);
    let wait = InvalidationWait { count_ms: COUNT_MS, level };
    invalidator.invalidate(Some(ctx.live), batch, now, wait).await
}
