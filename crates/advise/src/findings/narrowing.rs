//! Narrowing: the part of an area whose pages are known to belong to many visitors.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::areas::Area;
use crate::trace::Seen;

/// Least networks of each page of an area, and of each path that is named by itself.
const PAGE_NETWORKS_MIN: usize = 3;
pub(super) const PATH_NETWORKS_MIN: usize = 6;
/// Least networks of pages that are to be stored against their word.
pub(super) const NETWORKS_WANTED: usize = 10;
/// Most paths that are named by themselves.
const PATHS_MAX: usize = 20;
/// Bits of an address that name its network: one visitor may have all addresses of it.
const V4_BITS: u32 = 24;
const V6_BITS: u32 = 64;

/// The network of a visitor, which counts as one: its addresses and browsers are free to choose.
/// `None` for a visit without a client's address.
pub(super) fn network(seen: &Seen<'_>) -> Option<IpAddr> {
    Some(match seen.visit.client?.to_canonical() {
        IpAddr::V4(own) => IpAddr::V4((own.to_bits() >> (32 - V4_BITS) << (32 - V4_BITS)).into()),
        IpAddr::V6(own) => IpAddr::V6((own.to_bits() >> (128 - V6_BITS) << (128 - V6_BITS)).into()),
    })
}

/// Number of networks from which these visits came.
pub(super) fn networks(seen: &[&Seen<'_>]) -> usize {
    count(seen.iter().copied())
}

/// Returns true if these visits came from fewer networks than advice on whole pages needs.
pub(crate) fn are_few(seen: &[Seen<'_>]) -> bool {
    count(seen.iter()) < NETWORKS_WANTED
}

fn count<'s, 't: 's>(seen: impl Iterator<Item = &'s Seen<'t>>) -> usize {
    seen.filter_map(network).collect::<BTreeSet<_>>().len()
}

/// The area if each of its pages is known to several networks. Otherwise the paths that are: a page
/// that one visitor alone asked for may be that visitor's. `all` are all visits of the area.
pub(super) fn narrowed(area: &Area, all: &[&Seen<'_>]) -> Option<Area> {
    if by_path(all).values().all(|networks| networks.len() >= PAGE_NETWORKS_MIN) {
        return Some(area.clone());
    }
    let Area::Family(site, _) = area else { return None };
    let names = paths(all);
    (!names.is_empty()).then_some(Area::Paths(*site, names))
}

/// The paths that many networks know, each for itself.
pub(super) fn paths(all: &[&Seen<'_>]) -> Vec<String> {
    let mut known = by_path(all);
    known.retain(|path, networks| networks.len() >= PATH_NETWORKS_MIN && is_plain(path));
    let paths = known.into_keys().take(PATHS_MAX);
    paths.map(|path| String::from_utf8_lossy(path).into_owned()).collect()
}

fn by_path<'s>(all: &[&'s Seen<'_>]) -> BTreeMap<&'s [u8], BTreeSet<IpAddr>> {
    let mut known: BTreeMap<&[u8], BTreeSet<IpAddr>> = BTreeMap::new();
    for seen in all.iter().filter(|seen| is_page(seen)) {
        known.entry(seen.request.path()).or_default().extend(network(seen));
    }
    known
}

fn is_page(seen: &Seen<'_>) -> bool {
    seen.visit.method == "GET" && seen.visit.status < 400 && seen.has_response()
}

/// The visits among `seen` that an area made of theirs has kept.
pub(super) fn kept<'s, 't>(area: &Area, seen: &[&'s Seen<'t>]) -> Vec<&'s Seen<'t>> {
    let is_kept = |seen: &&&Seen<'_>| match area {
        Area::Paths(_, paths) => paths.iter().any(|path| path.as_bytes() == seen.request.path()),
        Area::Route(..) | Area::Family(..) => true,
    };
    seen.iter().filter(is_kept).copied().collect()
}

/// Returns true if a route's `path` stands for this path alone.
fn is_plain(path: &[u8]) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/-_.".contains(byte);
    path.iter().all(is_plain)
}
