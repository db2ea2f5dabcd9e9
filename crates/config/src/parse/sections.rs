//! Every kind of table that `larder.toml` may have.

use super::{
    acme, admin, answers, bypass, cache, cluster, compression, cookies, disk, entry, files,
    headers, health, hsts, includes, limits, log_ring, logs, neighbours, origins, ports, probes,
    purge, routes, sites, throttle, tls, top, tracing,
};
use crate::keys::Section;

/// Every section, in the order of the reference page.
pub(crate) const SECTIONS: &[&Section] = &[
    &top::TOP,
    &top::MEMORY,
    &disk::DISK,
    &disk::DISK_VOLUME,
    &top::RUN,
    &admin::ADMIN,
    &health::HEALTH,
    &health::METRICS,
    &ports::VARNISH_CLI,
    &ports::HTCP,
    &cluster::CLUSTER,
    &neighbours::NEIGHBOUR,
    &tracing::TRACING,
    &tracing::FIELD_FILE,
    &compression::COMPRESSION,
    &tls::TLS,
    &acme::ACME,
    &acme::EAB,
    &logs::ACCESS_LOG,
    &logs::ERROR_LOG,
    &log_ring::LOG_RING,
    &origins::ORIGIN,
    &origins::SERVER,
    &tls::ORIGIN_TLS,
    &probes::PROBE,
    &probes::EJECT,
    &files::ORIGIN_FILES,
    &sites::SITE,
    &tls::SITE_TLS,
    &hsts::HSTS,
    &purge::PURGE,
    &includes::INCLUDES,
    &routes::ROUTE,
    &throttle::RATE,
    &throttle::CONCURRENT,
    &entry::BASIC_AUTH,
    &entry::FORWARD_AUTH,
    &files::FILES,
    &cache::CACHE,
    &cookies::COOKIES,
    &cookies::QUERY,
    &bypass::BYPASS,
    &headers::REQUEST_HEADERS,
    &headers::RESPONSE_HEADERS,
    &answers::REDIRECT,
    &answers::RESPOND,
    &limits::LIMITS,
];

/// The description of a key of the file's top, or of a key of a table there, such as `memory.size`;
/// empty for an unknown name.
pub fn about(name: &str) -> &'static str {
    let (section, name) = match name.split_once('.') {
        Some((table, name)) => {
            let named = |section: &&&Section| section.title.trim_matches(['[', ']']) == table;
            (SECTIONS.iter().find(named).copied(), name)
        }
        None => (Some(&top::TOP), name),
    };
    section.and_then(|section| section.key(name)).map_or("", |key| key.about)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_described() {
        for section in SECTIONS {
            let keys = (section.keys)();
            for (at, key) in keys.iter().enumerate() {
                assert!(keys[..at].iter().all(|k| k.name != key.name), "{}", key.name);
                assert!(key.about.ends_with('.') && !key.takes.is_empty(), "{}", key.name);
                assert!(section.later.iter().all(|(name, _)| *name != key.name), "{}", key.name);
            }
        }
    }
}
