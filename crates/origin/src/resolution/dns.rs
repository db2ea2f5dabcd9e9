//! DNS queries, and the hosts file.

use std::net::IpAddr;
use std::time::Duration;

use hickory_resolver::ResolverBuilder;
use hickory_resolver::config::ResolveHosts;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::op::Query;
use hickory_resolver::proto::rr::rdata::PTR;
use hickory_resolver::proto::rr::{Name, RData, RecordType};
pub(super) use hickory_resolver::{Hosts, TokioResolver as Resolver};
use rt::time::Instant;

/// A resolver with the system's settings; `None` if they cannot be read.
pub(crate) fn system_resolver() -> Option<Resolver> {
    build(Resolver::builder_tokio().ok()?)
}

pub(super) fn build(mut builder: ResolverBuilder<TokioRuntimeProvider>) -> Option<Resolver> {
    let options = builder.options_mut();
    // The servers cache, and the next lookup is made when the answer expires.
    options.cache_size = 0;
    options.use_hosts_file = ResolveHosts::Never;
    builder.build().ok()
}

/// Addresses of `host` by DNS, permitted or not.
pub(super) async fn ask(
    resolver: &Resolver,
    host: &str,
) -> Result<(Vec<IpAddr>, Duration), String> {
    let answer = resolver.lookup_ip(host).await.map_err(|error| error.to_string())?;
    let ttl = answer.valid_until().saturating_duration_since(Instant::now().into_std());
    Ok((answer.iter().collect(), ttl))
}

/// Names of `address` by DNS; none if it has no name.
pub(super) async fn names_of(resolver: &Resolver, address: IpAddr) -> Result<Vec<String>, String> {
    let answer = match resolver.reverse_lookup(Name::from(address)).await {
        Ok(answer) => answer,
        Err(error) if error.is_no_records_found() => return Ok(Vec::new()),
        Err(error) => return Err(error.to_string()),
    };
    let names = answer.answers().iter().filter_map(|record| match &record.data {
        RData::PTR(PTR(name)) => Some(name.to_ascii()),
        _ => None,
    });
    Ok(names.collect())
}

/// Addresses of `host`, whose name is complete, by DNS; none if there are none.
pub(super) async fn ask_fully(resolver: &Resolver, host: &str) -> Result<Vec<IpAddr>, String> {
    let mut host = host.to_owned();
    if !host.ends_with('.') {
        host.push('.');
    }
    match resolver.lookup_ip(host).await {
        Ok(answer) => Ok(answer.iter().collect()),
        Err(error) if error.is_no_records_found() => Ok(Vec::new()),
        Err(error) => Err(error.to_string()),
    }
}

/// Addresses of `host` in the system's hosts file.
pub(super) fn listed(host: &str) -> Vec<IpAddr> {
    Hosts::from_system().map(|hosts| in_hosts(&hosts, host)).unwrap_or_default()
}

/// The hosts file's addresses for `host`. An entry of either family is the whole answer, as with
/// the C library's `files`: DNS is not queried for the other.
pub(super) fn in_hosts(hosts: &Hosts, host: &str) -> Vec<IpAddr> {
    let Ok(name) = host.parse::<Name>() else { return Vec::new() };
    let mut found = Vec::new();
    for kind in [RecordType::A, RecordType::AAAA] {
        if let Some(lookup) = hosts.lookup_static_host(&Query::query(name.clone(), kind)) {
            found.extend(lookup.answers().iter().filter_map(|record| record.data.ip_addr()));
        }
    }
    found
}
