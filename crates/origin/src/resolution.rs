//! Resolution of host names, away from any request: by the hosts file, then by DNS, repeated when
//! an answer's time to live ends. A failed lookup must never remove known addresses.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::Duration;

pub use address_names::AddressNames;
use dns::Resolver;
pub(crate) use dns::system_resolver;

use crate::config::Lookups;
use crate::pace::LookupPace;
use crate::server::Server;

mod address_names;
#[cfg_attr(larder_demo, path = "resolution/no_dns.rs")]
mod dns;

/// Time to live for answers without one: those of the hosts file and the C library.
const TTL_NONE: Duration = Duration::from_secs(30);

/// Timeout of one lookup, with every name server and search domain.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(15);

/// Addresses, and their time to live.
type Lookup = (Vec<IpAddr>, Duration);

/// The schedule of a name's lookups.
#[derive(Clone, Debug, Default)]
pub(crate) struct LookupSchedule {
    pub(crate) times: Lookups,
    /// See [`OriginConfig::pace`](crate::OriginConfig::pace).
    pub(crate) pace: Option<Arc<LookupPace>>,
}

/// Resolves `host` again and again; a name chosen by a client that is not found, once. `make`
/// returns a resolver, or `None` to use the C library.
pub(crate) async fn resolve_for_ever(
    server: Arc<Server>,
    host: String,
    port: u16,
    again: LookupSchedule,
    make: impl Fn() -> Option<Resolver>,
) {
    let LookupSchedule { times, pace } = again;
    let mut resolver = None;
    loop {
        let looking = lookup(&host, port, &mut resolver, &make);
        let lookup = rt::time::timeout(TIMEOUT, looking).await;
        let pause = match lookup.unwrap_or_else(|_| Err("timed out".to_owned())) {
            Ok((ips, ttl)) if !ips.is_empty() => {
                server.set_addresses(ips.iter().map(|ip| SocketAddr::new(*ip, port)).collect());
                times.pause(ttl)
            }
            failed => {
                let why = failed.err().unwrap_or_else(|| "the name has no address".to_owned());
                server.resolve_failed(format!("cannot resolve {host}: {why}"));
                if pace.is_some() && server.is_found() == Some(false) {
                    return;
                }
                // Created again, so that a change of the system's settings has effect.
                resolver = None;
                times.retry()
            }
        };
        rt::time::sleep(pause).await;
        if let Some(pace) = &pace {
            pace.turn().await;
        }
    }
}

/// One lookup. `resolver` is created if needed and kept for the next.
async fn lookup(
    host: &str,
    port: u16,
    resolver: &mut Option<Resolver>,
    make: impl FnOnce() -> Option<Resolver>,
) -> Result<Lookup, String> {
    let (ips, ttl) = listed(host);
    if !ips.is_empty() {
        return Ok((ips, ttl));
    }
    if resolver.is_none() {
        *resolver = make();
    }
    let Some(resolver) = resolver else { return lookup_by_libc(host, port).await };
    let (ips, ttl) = dns::ask(resolver, host).await?;
    Ok((admissible(ips.into_iter())?, ttl))
}

/// Looks `host` up in the hosts file.
pub(crate) fn listed(host: &str) -> Lookup {
    (dns::listed(host), TTL_NONE)
}

/// Resolves `host` once, by DNS, or by the C library if the system's settings cannot be read.
pub(crate) async fn once(host: &str) -> Result<Lookup, String> {
    lookup(host, 0, &mut None, system_resolver).await
}

/// The addresses of `ips` that DNS may return. An attacker who controls a name must not make this
/// proxy connect to link-local addresses, above all a cloud's metadata service. An operator who
/// needs such an origin configures its address, or an entry in the hosts file.
fn admissible(ips: impl Iterator<Item = IpAddr>) -> Result<Vec<IpAddr>, String> {
    let (good, bad): (Vec<_>, Vec<_>) = ips.partition(|ip| is_admissible(ip.to_canonical()));
    match bad.first() {
        Some(ip) if good.is_empty() => {
            Err(format!("{ip} is not an address that DNS may return here"))
        }
        _ => Ok(good),
    }
}

fn is_admissible(ip: IpAddr) -> bool {
    /// Address of EC2's metadata over IPv6; over IPv4 it is link-local, as elsewhere.
    const EC2_METADATA: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);
    let bad = match ip {
        IpAddr::V4(v4) => v4.is_link_local() || v4.is_broadcast(),
        IpAddr::V6(v6) => v6.is_unicast_link_local() || v6 == EC2_METADATA,
    };
    !(bad || ip.is_unspecified() || ip.is_multicast())
}

/// The addresses of `host` by the C library, once: for names that are resolved when settings are
/// loaded. Blocks.
///
/// # Errors
/// Those of the lookup.
pub fn look_up(host: &str) -> io::Result<Vec<IpAddr>> {
    Ok((host, 0).to_socket_addrs()?.map(|address| address.ip()).collect())
}

async fn lookup_by_libc(host: &str, port: u16) -> Result<Lookup, String> {
    let found = tokio::net::lookup_host((host, port)).await.map_err(|error| error.to_string())?;
    Ok((admissible(found.map(|address| address.ip()))?, TTL_NONE))
}

#[cfg(test)]
mod tests;
