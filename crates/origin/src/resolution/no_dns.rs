//! No DNS: the demo build, where the C library resolves names, including the hosts file.

use std::net::IpAddr;
use std::time::Duration;

/// A resolver, which has no value.
pub(crate) enum Resolver {}

/// Returns `None`: the C library is used.
pub(crate) fn system_resolver() -> Option<Resolver> {
    None
}

/// Never called.
pub(super) async fn ask(
    resolver: &Resolver,
    _host: &str,
) -> Result<(Vec<IpAddr>, Duration), String> {
    match *resolver {}
}

/// Never called.
pub(super) async fn names_of(resolver: &Resolver, _address: IpAddr) -> Result<Vec<String>, String> {
    match *resolver {}
}

/// Never called.
pub(super) async fn ask_fully(resolver: &Resolver, _host: &str) -> Result<Vec<IpAddr>, String> {
    match *resolver {}
}

/// Returns nothing: the C library reads the hosts file.
pub(super) fn listed(_host: &str) -> Vec<IpAddr> {
    Vec::new()
}
