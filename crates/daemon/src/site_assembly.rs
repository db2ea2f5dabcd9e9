//! Site assembly: makes what the cores run on from a configuration.

use std::path::Path;
use std::sync::Arc;

use base::{HashSeed, Limits};
use config::sizing::Machine;
use config::{CacheStatus, ClientFiles, Config, Programs, SiteConfig, WarmConfig};
use files::Root;
use flow::tier::{Cache, memory_only};
use flow::tracing::Tracing;
use flow::{
    CertificateFields, ClientCheck, ConnectionRules, LiveConfiguration, ProxyFields, PurgeAccess,
    ShownFields, Site, SiteAuthChecks, SiteMirrors, SiteOrigin, SiteTable, SiteVerification,
    SiteWarmth, Throttles, UnloggedRoutes, VclSettings,
};
use h1::HeadLimits;
use origin::{Origin, OriginConfig, ReservedAddresses, TlsConfig};
use policy::{Declared, HostTable, SiteRules, acl::CidrSet};
use vcl::program::Instance;

use crate::material::Material;
use crate::vcl::ActivePrograms;

/// The origins of a configuration; unchanged ones are taken over from `running`.
fn origins(
    config: &Config,
    running: &[Arc<Origin>],
    material: &Material,
    reserved: &Arc<ReservedAddresses>,
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

/// Builds the sites of a configuration. Unchanged origins are taken over from `running`, with their
/// health and connections. No origin may lead to a `reserved` address. A site redirects nothing
/// before its first certificate: browsers would remember the redirect.
pub(crate) fn live(
    config: &Config,
    running: &[Arc<Origin>],
    material: &Material,
    tls: Option<Arc<tls::ServerContext>>,
    reserved: &Arc<ReservedAddresses>,
    view: ActivePrograms,
) -> (LiveConfiguration, Vec<Arc<Origin>>) {
    let origins = origins(config, running, material, reserved);
    let limits = view.limits(&config.limits);
    let mut announce = announce(config);
    let mut sites = SiteTable::new(HashSeed::random());
    let parts = SiteInputs { config, material, origins: &origins, view: &view, limits: &limits };
    for site in &config.sites {
        let mut built = |rules: SiteRules| {
            let hsts = site.hsts.as_ref().and_then(|value| index_of(&mut announce.hsts, value));
            let number = sites.listed.len() as u32;
            let built = Arc::new(site_of(&parts, site, rules, number, hsts));
            sites.listed.push(Arc::clone(&built));
            built
        };
        let whole = built(site.rules.clone());
        let missing = |host: &&String| material.is_missing(config, host);
        let without = || SiteRules { redirect_https: None, ..site.rules.clone() };
        let bare = site.hosts.iter().find(missing).map(|_| built(without()));
        let of = |host| bare.as_ref().filter(|_| missing(&host)).unwrap_or(&whole);
        site.hosts.iter().for_each(|host| insert(&mut sites.by_host, host, of(host)));
    }
    let as_varnishd = config.vcl == Programs::Flags;
    let live = LiveConfiguration {
        sites,
        connections: ConnectionRules {
            tls,
            trusted: CidrSet::new(&config.trusted_proxies),
            h2c: as_varnishd.then(|| view.vcl.params.has_feature("http2")),
            head_limits: HeadLimits { raw_utf8: config.raw_utf8, ..HeadLimits::from(&limits) },
        },
        limits,
        health_check: config.health_check.as_ref().map(|path| path.as_bytes().into()),
        announce,
        compression: config.compression.clone(),
        tracing: tracing(config),
        vcl: VclSettings { disk_storages: disk_storages(config), ..view.vcl },
        trust: Arc::default(),
    };
    (live, origins)
}

/// Everything that sites are made from.
struct SiteInputs<'a> {
    config: &'a Config,
    material: &'a Material,
    origins: &'a [Arc<Origin>],
    view: &'a ActivePrograms,
    limits: &'a Limits,
}

/// A site with `rules`, and this number.
fn site_of(
    parts: &SiteInputs<'_>,
    site: &SiteConfig,
    mut rules: SiteRules,
    number: u32,
    hsts: Option<u16>,
) -> Site {
    let SiteInputs { config, material, origins, view, limits } = *parts;
    let name = site.hosts.first().map_or("", String::as_str);
    let users = |path: &Path| material.users.of(path);
    let crawlers = material.crawlers.put(&mut rules);
    let gates = SiteAuthChecks::new(&rules, name, users, origins, limits);
    let throttles = Throttles::new(&rules, limits);
    let unlogged = UnloggedRoutes::of(&rules);
    let mirrors = SiteMirrors::of(&rules, origins);
    let SitePrograms { vcl, extra } = programs(config, site, view);
    let is_declared = vcl.is_none() && extra.is_none();
    let verification = SiteVerification::of(&rules, site.observes).filter(|_| is_declared);
    Site {
        name: name.into(),
        number,
        vcl,
        extra,
        policy: Arc::new(Declared::with_files(rules, &material.policy_files)),
        origins: site.origins.iter().map(|i| SiteOrigin::new(&origins[*i])).collect(),
        mirrors,
        files: site.files.iter().map(|files| Root::new(files.clone())).collect(),
        client_check: site.tls.client.as_ref().and_then(|files| client_check(material, files)),
        purges: PurgeAccess { by_request: site.purge.clone(), by_htcp: site.by_htcp },
        shown: ShownFields {
            hsts,
            server_timing: site.server_timing,
            tags: site.shows_tags,
            surrogate_control: site.shows_surrogate_control,
        },
        error_pages: material.error_pages.of(site),
        includes: site.includes.clone(),
        compress: site.compress,
        throttles,
        unlogged,
        gates,
        crawlers,
        verification,
        warmth: warmth(&site.warm),
    }
}

fn warmth(warm: &WarmConfig) -> SiteWarmth {
    let WarmConfig { rewarm, refresh_ahead, sitemaps, list } = warm;
    SiteWarmth {
        rewarm: *rewarm,
        refresh_ahead: *refresh_ahead,
        sitemaps: sitemaps.clone(),
        list: list.as_ref().map(|file| file.path.clone()),
    }
}

/// Names of storages that are disks.
fn disk_storages(config: &Config) -> Arc<[Arc<str>]> {
    let volumes = config.disk.iter().flat_map(|disk| &disk.volumes);
    volumes.filter_map(|volume| volume.name.as_deref().map(Arc::from)).collect()
}

fn insert(sites: &mut HostTable<Arc<Site>>, host: &str, site: &Arc<Site>) {
    let inserted = sites.insert(host, Arc::clone(site));
    debug_assert!(inserted.is_ok(), "hosts were checked when the file was read: {host}");
}

fn tracing(config: &Config) -> Option<Arc<Tracing>> {
    config.tracing.as_ref().map(|tracing| Arc::new(Tracing::new(tracing.sample)))
}

/// The programs of a site.
struct SitePrograms {
    /// The one that decides.
    vcl: Option<Arc<Instance>>,
    /// The one beside its settings.
    extra: Option<Arc<Instance>>,
}

/// The programs of a site, if it has any.
fn programs(config: &Config, site: &SiteConfig, view: &ActivePrograms) -> SitePrograms {
    // Without its program a site must not be served by another's rules, or by its settings alone.
    let stand_in = || view.active.clone();
    if let Some(file) = site.extra() {
        let extra = view.extras.get(&file.path).cloned();
        return SitePrograms { vcl: if extra.is_none() { stand_in() } else { None }, extra };
    }
    let taken = site.program().map(|file| view.files.get(&file.path).cloned());
    let vcl = match (taken, &config.vcl) {
        (Some(own), _) => own.or_else(stand_in),
        (None, Programs::None) => None,
        (None, Programs::Flags | Programs::File(..)) => stand_in(),
    };
    SitePrograms { vcl, extra: None }
}

fn announce(config: &Config) -> ProxyFields {
    ProxyFields {
        cache_status: config.cache_status != CacheStatus::Off,
        detail: config.cache_status == CacheStatus::Detail,
        x_cache: config.x_cache,
        server_timing: config.sites.iter().any(|site| site.server_timing),
        ..ProxyFields::new(&config.via)
    }
}

/// The check of a site's clients, once its certificates are there.
fn client_check(material: &Material, files: &ClientFiles) -> Option<ClientCheck> {
    let fields =
        CertificateFields { x_ssl: files.tells_x_ssl, client_cert: files.tells_client_cert };
    Some(ClientCheck { auth: material.client_auth(files)?, fields })
}

/// The index of `value`, which is added if missing; `None` beyond 65,536 different ones.
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
