//! `[[neighbour]]`: other caches that invalidations are sent to.

use std::net::SocketAddr;

use origin::Protocol;
use purge::neighbour::{NeighbourDialect, NeighbourProfile};

use super::origins::find;
use crate::keys::TEXTS;
use crate::model::{NeighbourConfig, NeighbourTransport, SiteConfig};
use crate::reader::{Reader, SettingValue, TomlTable};
use crate::rows::{self, section};
use crate::suggestions;

section! {
    pub(crate) NEIGHBOUR, NEIGHBOUR_ROWS: NeighbourDraft; "[[neighbour]]",
    "Another cache to which Larder sends its invalidations: Varnish, Squid, nginx, a service with \
     an API. With `ask`, Larder also fetches misses from it. The limits `neighbour_queue`, \
     `neighbour_retry` and `neighbour_timeout` apply.";
    "origin", "the name of an [[origin]], or a URL", "required, or `htcp`", "Address of the neighbour. Larder sends invalidations to each server of an [[origin]], with its `[origin.tls]`.",
        |r, item, to| to.origin = find(r, item);
    "htcp", TEXTS, "none", "Addresses to which Larder sends HTCP datagrams instead, such as \"10.0.0.5:4827\": one CLR (RFC 2756) per URL. A multicast group gets each datagram once, and confirms nothing.",
        |r, item, to| to.htcp = addresses(r, item);
    "ask", "the name of an [[origin]], or a URL", "none", "Where the neighbour with this `htcp` address answers requests; one server only. On a miss, Larder asks the neighbour by HTCP (TST) before the origin. If the neighbour has the response, Larder fetches it with `only-if-cached`. A URL with `https` is used for pages over HTTPS, one with `http` for pages over HTTP. The limit `sibling_timeout` applies.",
        |r, item, to| to.ask = find(r, item);
    "dialect", "\"purge\", \"nginx-helper\", \"foshttpcache\", \"xkey\", \"souin\", \"fastly\" or \"cloudflare\"", "\"purge\"", "Form of invalidations. `purge`: `PURGE url` (Squid, nginx, another Larder, the usual VCL). `nginx-helper`: `GET /purge/path`. `foshttpcache`: `PURGE url`, and `BAN` with `X-Host`, `X-Url`, `X-Content-Type` and `X-Cache-Tags` (Varnish with FOSHttpCache's VCL). `xkey`: the same, but surrogate keys by `PURGEKEYS` (Varnish with vmod xkey). `souin`, `fastly`, `cloudflare`: their APIs. Larder counts and logs invalidations that a dialect cannot express, and does not send them.",
        |r, item, to| to.dialect = dialect(r, item);
    "path", "a path", "Souin's `/souin-api/souin`", "Path of the neighbour's API: `/service/ID` for Fastly, `/client/v4/zones/ID` for Cloudflare.",
        |r, item, to| to.path = path(r, item);
    #Secret "token", "a string", "none", "Token for the neighbour, sent in `Authorization: Bearer`, for Fastly in `Fastly-Key`.",
        |r, item, to| to.token = token(r, item);
    "sites", TEXTS, "all", "Sites, by their first hosts, whose responses the neighbour stores. Larder sends no invalidations of other sites. A purge of all these sites purges the whole neighbour.",
        |r, item, _| _ = r.texts(item);
}

/// A `[[neighbour]]` while it is read.
#[derive(Default)]
struct NeighbourDraft {
    origin: Option<usize>,
    htcp: Vec<SocketAddr>,
    ask: Option<usize>,
    dialect: Option<NeighbourDialect>,
    path: Option<String>,
    token: Option<String>,
}

/// Reads every `[[neighbour]]`.
pub(super) fn neighbours(
    r: &mut Reader,
    item: &SettingValue<'_>,
    sites: &[SiteConfig],
) -> Vec<NeighbourConfig> {
    let tables = r.tables(item, &NEIGHBOUR);
    tables.iter().filter_map(|table| neighbour(r, table, sites)).collect()
}

fn neighbour(
    r: &mut Reader,
    table: &TomlTable<'_>,
    sites: &[SiteConfig],
) -> Option<NeighbourConfig> {
    // All keys are read before any is missed, so that every fault is reported.
    let mut draft = NeighbourDraft::default();
    rows::read(r, table, NEIGHBOUR_ROWS, &mut draft);
    let NeighbourDraft { origin, htcp, ask, dialect, path, token } = draft;
    let sites = table.item("sites").map(|item| names(r, &item, sites)).unwrap_or_default();
    let transport = match (table.item("origin"), table.item("htcp")) {
        (Some(_), Some(item)) => {
            r.error(item.span, "a neighbour has either `origin`, for HTTP, or `htcp`");
            return None;
        }
        (Some(_), None) => NeighbourTransport::Origin(origin?),
        (None, Some(_)) => NeighbourTransport::Htcp(htcp),
        (None, None) => {
            r.error(table.span.clone(), "a neighbour without an address").help =
                Some("add `origin = \"http://10.0.0.5:6081\"`, or `htcp`".to_owned());
            return None;
        }
    };
    let ask = ask.zip(table.item("ask")).and_then(|(at, item)| may_ask(r, &item, &transport, at));
    let (dialect, base) = match &transport {
        NeighbourTransport::Htcp(_) => {
            for name in ["dialect", "path", "token"] {
                if let Some(item) = table.item(name) {
                    r.error(item.span, format!("`{name}` is for neighbours with an `origin`"));
                }
            }
            (NeighbourDialect::Htcp, String::new())
        }
        NeighbourTransport::Origin(_) => {
            let dialect = dialect.unwrap_or(NeighbourDialect::Purge);
            (dialect, base(r, table, dialect, path)?)
        }
    };
    Some(NeighbourConfig {
        transport,
        ask,
        profile: NeighbourProfile { dialect, base, token, sites },
    })
}

fn dialect(r: &mut Reader, item: &SettingValue<'_>) -> Option<NeighbourDialect> {
    let words = NeighbourDialect::ALL.iter().map(|(dialect, name, _)| (*name, *dialect));
    let words: Vec<_> = words.filter(|(_, own)| *own != NeighbourDialect::Htcp).collect();
    r.word(item, &words)
}

/// The origin of index `at`, if stored responses of the neighbour can be fetched from it.
fn may_ask(
    r: &mut Reader,
    item: &SettingValue<'_>,
    transport: &NeighbourTransport,
    at: usize,
) -> Option<usize> {
    let NeighbourTransport::Htcp(addresses) = transport else {
        r.error(item.span.clone(), "`ask` is for neighbours with `htcp`");
        return None;
    };
    if !matches!(&addresses[..], [one] if !one.ip().is_multicast()) && !r.is_partial {
        r.error(item.span.clone(), "a neighbour with `ask` has one `htcp` address of its own")
            .help = Some("write a [[neighbour]] for each".to_owned());
        return None;
    }
    let servers = &r.origins.known.get(at)?.config.servers;
    let (is_one, is_http) =
        (servers.len() <= 1, servers.iter().all(|server| server.protocol == Protocol::Http));
    if !is_one {
        r.error(item.span.clone(), "a neighbour with `ask` is one server").help =
            Some("write a [[neighbour]] for each".to_owned());
        return None;
    }
    if !is_http {
        r.error(item.span.clone(), "`ask` takes an origin that speaks HTTP");
        return None;
    }
    Some(at)
}

/// Reads sites by their names.
fn names(r: &mut Reader, item: &SettingValue<'_>, sites: &[SiteConfig]) -> Vec<String> {
    let mut names = Vec::new();
    for place in item.each() {
        let Some(text) = place.value.as_str() else { continue };
        let first = || sites.iter().filter_map(|site| site.hosts.first());
        if r.is_partial || first().any(|host| host == text) {
            names.push(text.to_owned());
            continue;
        }
        let close = suggestions::closest(text, first().map(String::as_str));
        r.error(place.span, format!("no site has `{text}` as its first host")).help =
            close.map(|host| format!("did you mean `{host}`?"));
    }
    names
}

fn addresses(r: &mut Reader, item: &SettingValue<'_>) -> Vec<SocketAddr> {
    let mut addresses = Vec::new();
    for (text, place) in r.texts(item) {
        match text.parse::<SocketAddr>() {
            Ok(address) if address.port() != 0 => addresses.push(address),
            _ => {
                r.error(place.span, format!("`{text}` is no address of a neighbour")).help =
                    Some("an IP address and a port, such as \"10.0.0.5:4827\"".into());
            }
        }
    }
    addresses
}

/// The path of the neighbour's API; `path` as written.
fn base(
    r: &mut Reader,
    table: &TomlTable<'_>,
    dialect: NeighbourDialect,
    path: Option<String>,
) -> Option<String> {
    let needs = match dialect {
        NeighbourDialect::Fastly => Some("/service/ID"),
        NeighbourDialect::Cloudflare => Some("/client/v4/zones/ID"),
        _ => None,
    };
    match (path, needs) {
        (None, Some(such)) => {
            let text = format!("a neighbour with the dialect `{}` needs `path`", dialect.name());
            r.error(table.span.clone(), text).help = Some(format!("such as path = \"{such}\""));
            None
        }
        (None, None) if dialect == NeighbourDialect::Souin => Some("/souin-api/souin".to_owned()),
        (None, None) => Some(String::new()),
        (Some(path), None) if dialect != NeighbourDialect::Souin => {
            let span = table.item("path").map_or(0..0, |item| item.span);
            r.warning(span, format!("`path` means nothing to `{}`", dialect.name()));
            Some(path)
        }
        (path, _) => path,
    }
}

fn path(r: &mut Reader, item: &SettingValue<'_>) -> Option<String> {
    let text = r.text(item)?;
    let is_path = text.starts_with('/') && text.bytes().all(|b| b.is_ascii_graphic());
    if !is_path || text.contains(['?', '#']) {
        r.error(item.span.clone(), format!("`{text}` is no path")).help =
            Some("it begins with `/`, and has neither `?` nor blanks".to_owned());
        return None;
    }
    Some(text.trim_end_matches('/').to_owned())
}

fn token(r: &mut Reader, item: &SettingValue<'_>) -> Option<String> {
    let text = r.text(item)?;
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_graphic()) {
        r.error(item.span.clone(), "a token is visible ASCII, without blanks");
        return None;
    }
    Some(text.to_owned())
}
