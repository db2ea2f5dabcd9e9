//! From a configuration to what the cores run on.

use std::path::Path;
use std::sync::Arc;

use base::{HashSeed, Limits};
use config::sizing::Machine;
use config::{CacheStatus, ClientFiles, Config, Programs, SiteConfig};
use files::Root;
use files::accel::Accel;
use flow::tier::{Cache, memory_only};
use flow::tracing::Tracing;
use flow::{Announce, CertificateFields, Gates, Live, Site, Throttles};
use h1::HeadLimits;
use message::pseudonym::Pseudonym;
use origin::{Origin, OriginConfig, Reserved, TlsConfig, Try};
use policy::{Declared, HostTable, SiteRules, acl::CidrSet};
use vcl::program::Instance;

use crate::material::Material;
use crate::vcl::View;

/// The origins of a configuration; those that did not change are taken over from `running`.
fn origins(
    config: &Config,
    running: &[Arc<Origin>],
    material: &Material,
    reserved: &Arc<Reserved>,
) -> Vec<Arc<Origin>> {
    config
        .origins
        .iter()
        .enumerate()
        .map(|(at, wanted)| {
            let name = config.origin_tls[at].as_ref().and_then(|tls| tls.sni.clone());
            let tls = material.upstream(at).map(|upstream| TlsConfig { upstream, name });
            let wanted = OriginConfig { tls, reserved: Arc::clone(reserved), ..wanted.clone() };
            let same = running.iter().find(|origin| *origin.config() == wanted);
            same.map_or_else(|| Origin::new(wanted), Arc::clone)
        })
        .collect()
}

/// Builds what a configuration says. Origins that did not change are taken over from `running`,
/// with their health and their connections. None of them leads to what is `reserved`.
/// A site redirects nothing before its first certificate: browsers would remember it.
pub(crate) fn live(
    config: &Config,
    running: &[Arc<Origin>],
    material: &Material,
    tls: Option<Arc<tls::Server>>,
    reserved: &Arc<Reserved>,
    view: View,
) -> (Live, Vec<Arc<Origin>>) {
    let origins = origins(config, running, material, reserved);
    let limits = view.limits(&config.limits);
    let (mut hsts, mut listed, mut sites) = (Vec::new(), Vec::new(), no_sites());
    let parts = Parts { config, material, origins: &origins, view: &view, limits: &limits };
    for site in &config.sites {
        let mut built = |rules: SiteRules| {
            let hsts = site.hsts.as_ref().and_then(|value| index_of(&mut hsts, value));
            let built = Arc::new(site_of(&parts, site, rules, listed.len() as u32, hsts));
            listed.push(Arc::clone(&built));
            built
        };
        let whole = built(site.rules.clone());
        let missing = |host: &&String| material.is_missing(config, host);
        let without = || SiteRules { redirect_https: None, ..site.rules.clone() };
        let bare = site.hosts.iter().find(missing).map(|_| built(without()));
        let of = |host| bare.as_ref().filter(|_| missing(&host)).unwrap_or(&whole);
        site.hosts.iter().for_each(|host| insert(&mut sites, host, of(host)));
    }
    let live = Live {
        sites,
        listed,
        tls,
        trusted: CidrSet::new(&config.trusted_proxies),
        hsts,
        head_limits: HeadLimits { raw_utf8: config.raw_utf8, ..HeadLimits::from(&limits) },
        health_check: config.health_check.as_ref().map(|path| path.as_bytes().into()),
        limits,
        announce: announce(config),
        compression: config.compression.clone(),
        tracing: tracing(config),
        pseudonym: Pseudonym::new(&config.via),
        h2c: (config.vcl == Programs::Flags).then(|| view.params.has_feature("http2")),
        params: view.params,
        labels: view.labels,
        identity: view.identity,
        hostname: view.hostname,
        endpoints: view.endpoints,
        storages: view.storages,
        disk_storages: disk_storages(config),
        trust: Arc::default(),
    };
    (live, origins)
}

/// All that sites are made of.
struct Parts<'a> {
    config: &'a Config,
    material: &'a Material,
    origins: &'a [Arc<Origin>],
    view: &'a View,
    limits: &'a Limits,
}

/// A site with `rules`, and by this number.
fn site_of(
    parts: &Parts<'_>,
    site: &SiteConfig,
    rules: SiteRules,
    number: u32,
    hsts: Option<u16>,
) -> Site {
    let Parts { config, material, origins, view, limits } = *parts;
    let name = site.hosts.first().map_or("", String::as_str);
    let users = |path: &Path| material.users.of(path);
    let gates = Gates::new(&rules, name, users, origins, limits);
    let throttles = Throttles::new(&rules, limits);
    Site {
        name: name.into(),
        number,
        vcl: program(config, site, view),
        policy: Arc::new(Declared::new(rules)),
        origins: site.origins.iter().map(|i| Arc::clone(&origins[*i])).collect(),
        files: site.files.iter().map(|files| Root::new(files.clone())).collect(),
        beside_scripts: site.origins.iter().map(|i| beside_scripts(&origins[*i])).collect(),
        page_caches: site.origins.iter().map(|i| pages(&origins[*i])).collect(),
        accel: site.origins.iter().map(|i| accel(&origins[*i])).collect(),
        hsts,
        purge: site.purge.clone(),
        by_htcp: site.by_htcp,
        server_timing: site.server_timing,
        shows_tags: site.shows_tags,
        shows_surrogate_control: site.shows_surrogate_control,
        error_pages: material.error_pages.of(site),
        includes: site.includes.clone(),
        compress: site.compress,
        throttles,
        gates,
        certificate_fields: site.tls.client.as_ref().map(fields).unwrap_or_default(),
        client_auth: site.tls.client.as_ref().and_then(|files| material.client_auth(files)),
    }
}

/// Names of storages that are disks.
fn disk_storages(config: &Config) -> Arc<[Arc<str>]> {
    let volumes = config.disk.iter().flat_map(|disk| &disk.volumes);
    volumes.filter_map(|volume| volume.name.as_deref().map(Arc::from)).collect()
}

fn no_sites() -> HostTable<Arc<Site>> {
    HostTable::new(HashSeed::random())
}

fn insert(sites: &mut HostTable<Arc<Site>>, host: &str, site: &Arc<Site>) {
    let inserted = sites.insert(host, Arc::clone(site));
    debug_assert!(inserted.is_ok(), "hosts were checked when the file was read: {host}");
}

fn tracing(config: &Config) -> Option<Arc<Tracing>> {
    config.tracing.as_ref().map(|tracing| Arc::new(Tracing::new(tracing.sample)))
}

/// The program that decides for a site, where it has one.
fn program(config: &Config, site: &SiteConfig, view: &View) -> Option<Arc<Instance>> {
    let taken = site.vcl.as_ref().map(|(file, _)| view.files.get(file).cloned());
    match (taken, &config.vcl) {
        // Without its program a site must not be served by another's rules.
        (Some(own), _) => own.or_else(|| view.active.clone()),
        (None, Programs::None) => None,
        (None, Programs::Flags | Programs::File(..)) => view.active.clone(),
    }
}

fn announce(config: &Config) -> Announce {
    Announce {
        cache_status: config.cache_status != CacheStatus::Off,
        detail: config.cache_status == CacheStatus::Detail,
        x_cache: config.x_cache,
        server_timing: config.sites.iter().any(|site| site.server_timing),
    }
}

/// The files beside an origin's scripts, where its rules look for files at all.
fn beside_scripts(origin: &Origin) -> Option<Arc<Root>> {
    let scripts = origin.config().scripts.as_ref()?;
    let files = scripts.files.as_ref().filter(|_| scripts.rules.tries.contains(&Try::Path))?;
    Some(Root::new(files.clone()))
}

/// The pages that plugins write below an origin's root.
fn pages(origin: &Origin) -> Option<Arc<Root>> {
    origin.config().scripts.as_ref().map(|scripts| files::page_cache(&scripts.root))
}

/// The actions that an origin's responses may ask for.
fn accel(origin: &Origin) -> Option<Accel> {
    let config = origin.config().accel.as_ref()?;
    let roots = |all: &[files::Config]| all.iter().map(|one| Root::new(one.clone())).collect();
    let (redirects, sendfile) = (roots(&config.redirects), roots(&config.sendfile));
    Some(Accel { expires: config.expires, redirects, sendfile })
}

/// The fields by which a site tells its origins of a client's certificate.
fn fields(client: &ClientFiles) -> CertificateFields {
    CertificateFields { x_ssl: client.tells_x_ssl, client_cert: client.tells_client_cert }
}

/// The index of `value`, which is added when it is not there yet; none beyond 65,536 different
/// ones, where few sites have a second.
fn index_of(values: &mut Vec<String>, value: &str) -> Option<u16> {
    let at = values.iter().position(|known| known == value).unwrap_or_else(|| {
        values.push(value.to_owned());
        values.len() - 1
    });
    u16::try_from(at).ok()
}

/// The store's settings.
pub(crate) fn cache_config(config: &Config, machine: &Machine) -> cache::Config {
    let limits = &config.limits;
    let budget_bytes = machine.cache_bytes(config.memory.size);
    cache::Config {
        budget_bytes,
        held_bytes_max: budget_bytes / 100 * limits.client_memory,
        max_variants: limits.variants as usize,
        object_bytes_max: limits.object_bytes,
        waiters_max: limits.waiters as usize,
        window_bytes: limits.window_bytes,
        hit_for_miss_ms: limits.hit_for_miss_ttl,
        bans_max: limits.bans as usize,
        index_bytes: machine.disk_index_bytes(limits.disk_index_bytes),
    }
}

/// An empty store of the configured size.
pub(crate) fn cache(config: &Config, machine: &Machine) -> Arc<Cache> {
    memory_only(cache_config(config, machine))
}
