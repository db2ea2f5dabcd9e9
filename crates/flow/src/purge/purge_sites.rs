//! Purge sites: the sites that a purge applies to. A URL belongs to the site of its Host. A
//! description applies to that site and its group; if Host names no site, to each site that permits
//! it, since some plugins know only the cache's address.

use std::sync::Arc;

use message::{Method, Request};
use policy::Asker;
use purge::{PurgeCandidate, PurgeOrder, PurgeRequest, Refusal, Share, is_purge_method, read};

use crate::state::client::Client;
use crate::state::live_configuration::LiveConfiguration;
use crate::state::site::Site;

/// A parsed purge, and the site in whose name it is answered.
pub(crate) type ParsedPurge<'l> = (&'l Arc<Site>, Result<PurgeRequest, Refusal>);

/// Returns the client that purges `site`.
pub(super) fn asker(site: &Site, request: &Request, client: &Client<'_>) -> Asker {
    let peer = site.policy.asker(request, client.peer);
    Asker { peer, near: client.near && peer == client.peer }
}

/// Parses `request` as a purge, if it may be one. `host` is the site of its Host.
pub(crate) fn find<'l>(
    live: &'l LiveConfiguration,
    host: Option<&'l Arc<Site>>,
    request: &Request,
    client: &Client<'_>,
) -> Option<ParsedPurge<'l>> {
    let Some(site) = host else {
        // Readers' requests are not examined further.
        let is_readers = matches!(request.method, Method::Get | Method::Head);
        return if is_readers { None } else { of_many(live, request, client, None) };
    };
    let is_any =
        is_purge_method(&request.method) && live.sites.by_host.named(&request.host).is_none();
    // A site for all other hosts counts as one of several.
    if is_any
        && site.vcl.is_none()
        && let Some(found @ (_, Ok(_))) = of_many(live, request, client, None)
    {
        return Some(found);
    }
    let purge = site.purges.by_request.as_ref()?;
    let said = PurgeCandidate { request, named: true };
    let read = read(purge, said, || asker(site, request, client))?;
    match (&read, purge.group.as_deref()) {
        (Ok(PurgeRequest::Store(PurgeOrder::Many { .. }, _)), Some(group)) => {
            of_many(live, request, client, Some(group))
        }
        _ => Some((site, read)),
    }
}

/// Parses a purge of all sites, or of those of a group; the first site answers.
fn of_many<'l>(
    live: &'l LiveConfiguration,
    request: &Request,
    client: &Client<'_>,
    group: Option<&str>,
) -> Option<ParsedPurge<'l>> {
    let mut shares: Vec<(policy::Dialects, Share)> = Vec::new();
    let mut refused: Option<(&Arc<Site>, Refusal)> = None;
    let mut first = None;
    let said = PurgeCandidate { request, named: group.is_some() };
    for site in &live.sites.listed {
        let Some(purge) = &site.purges.by_request else { continue };
        let outside = group.is_some() && purge.group.as_deref() != group;
        if outside || client.admit(&request.host, site.client_check.as_ref()).is_err() {
            continue;
        }
        let refusal = match read(purge, said, || asker(site, request, client)) {
            None => continue,
            Some(Ok(PurgeRequest::Store(PurgeOrder::Many { what, soft }, answers))) => {
                first.get_or_insert((site, answers));
                let alike = shares.iter_mut().find(|(dialects, _)| *dialects == purge.dialects);
                match alike {
                    Some((_, share)) => share.sites.push(site.number),
                    None => {
                        let sites = vec![site.number];
                        shares.push((purge.dialects, Share { what, soft, sites }));
                    }
                }
                continue;
            }
            Some(Ok(_)) => Refusal::Host,
            Some(Err(refusal)) => refusal,
        };
        if refused.is_none_or(|(_, before)| before.rank() < refusal.rank()) {
            refused = Some((site, refusal));
        }
    }
    let refused = refused.map(|(site, refusal)| (site, Err(refusal)));
    let Some((site, answers)) = first else { return refused };
    let shares = shares.into_iter().map(|(_, share)| share).collect();
    Some((site, Ok(PurgeRequest::Store(PurgeOrder::Shared(shares), answers))))
}
