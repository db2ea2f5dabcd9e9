//! The top of the file.

use base::units;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{limits, listen, logs, origins, sites};
use crate::diagnostic::Severity;
use crate::keys;
use crate::model::{CacheStatus, Config, MemoryConfig, MemorySize, Programs, Run};
use crate::reader::{Item, Reader, Table};

/// Least memory that a cache is of use with.
const MEMORY_MIN: u64 = 8 << 20;

/// Threads beyond which a number is a mistake.
pub(crate) const WORKERS_MAX: u64 = 1024;

/// Reads the whole document; `None` when something in it cannot be used.
pub(super) fn config(r: &mut Reader, document: &Spanned<DeTable<'_>>) -> Option<Config> {
    let top = r.top(document);
    r.is_partial = r.is_one_file() && super::cluster::shares_configuration(&top);
    let limits = limits::limits(r, &top);
    let profile = top.item("profile").and_then(|item| sites::profile(r, &item)).unwrap_or_default();
    let fronts = sites::Fronts::read(r, &top);
    let mut origins = origins::origins(r, &top, &limits);
    let listen = listen::listen_list(r, &top);
    let https_port = super::tls::https_port(&listen);
    listen::check_proxy_listeners(r, &top, &listen);
    let sites = sites::sites(r, &top, profile, &fronts, https_port, &mut origins);
    let neighbours = super::neighbours::neighbours(r, &top, &sites, &mut origins);
    // With an error about, the origin may be unused only because its use could not be read.
    if !r.is_partial && r.found.iter().all(|d| d.severity == Severity::Warning) {
        origins.warn_of_unused(r);
        origins.warn_of_uploads(r);
    }
    let (origins, origin_tls) = origins.into_configs();
    let admin = super::admin::admin(r, &top);
    super::admin::check_origins(r, &top, &admin, &origins);
    super::admin::warn_of_loops(r, &top, &listen, &origins);
    let certificates = super::tls::default_pairs(r, &top);
    let ocsp = super::tls::ocsp(r, &top);
    let acme = super::acme::acme(r, &top, &listen);
    super::certificates::check(r, &top, &listen, &certificates, acme.as_ref(), &sites);
    let metrics = super::health::metrics(r, &top, &certificates);
    let cluster = super::cluster::cluster(r, &top);
    super::cluster::check(r, &top, cluster.as_ref(), &listen, acme.as_ref());
    Some(Config {
        listen,
        trusted_proxies: fronts.trusted,
        http2: top.item("http2").and_then(|item| r.boolean(&item)).unwrap_or(true),
        raw_utf8: top.item("raw_utf8").and_then(|item| r.boolean(&item)).unwrap_or(true),
        health_check: top.item("health_check").and_then(|item| health_check(r, &item)),
        workers: top.item("workers").and_then(|item| workers(r, &item)),
        profile,
        memory: memory(r, &top),
        disk: super::disk::disk(r, &top),
        admin,
        health: super::health::health(r, &top),
        metrics,
        varnish_cli: super::ports::varnish_cli(r, &top),
        htcp: super::ports::htcp(r, &top),
        cluster,
        neighbours,
        tracing: super::tracing::tracing(r, &top),
        compression: super::compression::compression(r, &top),
        vcl: programs(r, &top),
        folders: std::mem::take(&mut r.folders),
        sockets: std::mem::take(&mut r.sockets),
        hosts: std::mem::take(&mut r.hosts),
        limits,
        run: run(r, &top),
        access_log: logs::access_log(r, &top),
        error_log: logs::error_log(r, &top),
        log_ring: super::log_ring::log_ring(r, &top),
        origins,
        origin_tls,
        sites,
        certificates,
        ocsp,
        acme,
        x_cache: top.item("x_cache").and_then(|item| r.boolean(&item)).unwrap_or(false),
        cache_status: top
            .item("cache_status")
            .and_then(|item| cache_status(r, &item))
            .unwrap_or_default(),
        via: top.item("via").and_then(|item| via(r, &item)).unwrap_or_else(|| "larder".to_owned()),
    })
}

/// The program that decides for all sites that name none themselves.
fn programs(r: &mut Reader, top: &Table<'_>) -> Programs {
    match super::tls::path_of(r, top, "vcl") {
        Some((path, place)) => Programs::File(path, place),
        None => Programs::None,
    }
}

fn workers(r: &mut Reader, item: &Item<'_>) -> Option<usize> {
    match item.value {
        DeValue::String(text) if text == "auto" => None,
        _ => r.count(item, 1, WORKERS_MAX).and_then(|n| n.try_into().ok()),
    }
}

fn memory(r: &mut Reader, top: &Table<'_>) -> MemoryConfig {
    let item = top
        .item("memory")
        .and_then(|item| r.table(&item, &keys::MEMORY))
        .and_then(|table| table.item("size"));
    let size = item.as_ref().and_then(|item| memory_size(r, item));
    let span = item.map_or_else(|| top.span.clone(), |item| item.span);
    let place = r.lasting(&span);
    MemoryConfig { size: size.unwrap_or_default(), place }
}

fn run(r: &mut Reader, top: &Table<'_>) -> Run {
    let table = top.item("run").and_then(|item| r.table(&item, &keys::RUN));
    let Some(table) = table else { return Run::default() };
    let mut name = |key| {
        let item = table.item(key)?;
        let text = r.text(&item)?;
        let good = !text.is_empty() && !text.contains(['\0', ':', '/']);
        r.check(&item, good.then(|| text.to_owned()).ok_or("takes the name of one"))
    };
    let (user, group) = (name("user"), name("group"));
    let span = table.item("user").map_or_else(|| table.span.clone(), |item| item.span);
    Run { user, group, place: Some(crate::Place { file: r.source.clone(), span }) }
}

/// `auto`, a percentage or a size.
fn memory_size(r: &mut Reader, item: &Item<'_>) -> Option<MemorySize> {
    match item.value {
        DeValue::String(text) => r.check(item, parse_memory(text)),
        // A number of bytes, or of the wrong type altogether.
        _ => {
            let bytes = r.size(item)?;
            r.check(item, enough(bytes))
        }
    }
}

/// Reads `auto`, a percentage or a size.
pub(crate) fn parse_memory(text: &str) -> Result<MemorySize, String> {
    let text = text.trim();
    if text == "auto" {
        return Ok(MemorySize::Auto);
    }
    if let Some(number) = text.strip_suffix('%') {
        return match number.trim_end().parse::<u8>() {
            Ok(percent @ 1..=90) => Ok(MemorySize::Percent(percent)),
            _ => Err("a percentage is a whole number from 1% to 90%".to_owned()),
        };
    }
    let bytes = units::parse_size(text).map_err(|why| match units::size_meant(text) {
        Some(meant) => format!("{why}; did you mean \"{meant}\"?"),
        None => format!("{why}; write a size (\"1GiB\"), a percentage (\"50%\") or \"auto\""),
    })?;
    let is_bare = text.bytes().all(|b| b.is_ascii_digit());
    enough(bytes).map_err(|why| match is_bare {
        true => format!("{why}; did you mean \"{text}MiB\"?"),
        false => why.to_owned(),
    })
}

fn enough(bytes: u64) -> Result<MemorySize, &'static str> {
    if bytes < MEMORY_MIN {
        Err("a cache needs at least 8MiB")
    } else {
        Ok(MemorySize::Bytes(bytes))
    }
}

fn health_check(r: &mut Reader, item: &Item<'_>) -> Option<String> {
    let text = r.text(item)?;
    let good = text.starts_with('/') && text.bytes().all(|b| b.is_ascii_graphic() && b != b'?');
    r.check(item, good.then(|| text.to_owned()).ok_or("takes a path such as \"/health\""))
}

fn cache_status(r: &mut Reader, item: &Item<'_>) -> Option<CacheStatus> {
    match item.value {
        DeValue::Boolean(true) => Some(CacheStatus::On),
        DeValue::Boolean(false) => Some(CacheStatus::Off),
        _ => {
            let words = [
                ("on", CacheStatus::On),
                ("off", CacheStatus::Off),
                ("detail", CacheStatus::Detail),
            ];
            r.word(item, &words)
        }
    }
}

fn via(r: &mut Reader, item: &Item<'_>) -> Option<String> {
    let text = r.text(item)?;
    // RFC 9211 2 wants a token or a string in Cache-Status: a structured token begins with a letter
    // or `*`.
    let starts = text.starts_with(|c: char| c.is_ascii_alphabetic());
    if !starts || !message::header::is_token(text.as_bytes()) {
        r.error(
            item.span.clone(),
            "`via` is a word: a letter, then letters, digits, `-`, `_` or `.`",
        );
        return None;
    }
    Some(text.to_owned())
}
