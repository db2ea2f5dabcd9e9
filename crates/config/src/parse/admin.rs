//! `[admin]`.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;

use origin::{Address, OriginConfig, ReservedAddresses};

use super::listen::one_listen;
use crate::keys::TEXTS;
use crate::listen::octal;
use crate::model::{AdminConfig, Config, ListenSpec};
use crate::reader::{Reader, SettingValue, TomlTable};
use crate::rows::{put, section};

/// The range of minutes for charts: a shorter time is kept anyway, a longer one is for a monitoring
/// system.
const HISTORY_MINUTES: RangeInclusive<usize> = 10..=7 * 24 * 60;

section! {
    pub(crate) ADMIN, pub(super) ADMIN_ROWS: AdminConfig; "[admin]",
    "The admin listener: statistics, purges, changes. Larder reads this table at the start; a \
     reload does not change it.";
    "listen", "a string", "none", "Loopback address on which the admin listener also accepts connections, besides the admin socket, such as `127.0.0.1:6080`. Requests to this address need a token.",
        |r, item, to| to.listen = listen(r, item);
    "tokens", bare_path tokens, "\"/var/lib/larder/admin\", or `admin` in systemd's `StateDirectory=`", "Directory for the tokens of the roles: `read.token`, `purge.token` and `config.token`. Larder creates them at the first start; only the daemon's user can read them.";
    "hosts", TEXTS, "none", "Host names that the admin listener accepts besides `localhost`, `127.0.0.1`, `[::1]` and its own address, for instance behind a proxy.",
        |r, item, to| to.hosts = hosts(r, item);
    "metrics", "\"token\" or \"open\"", "\"token\"", "Whether `/metrics` requires a token (`token`), or is open to everybody who can connect (`open`).",
        |r, item, to| put(&mut to.open_metrics, r.word(item, &[("token", false), ("open", true)]));
    "socket_mode", "permissions such as \"660\"", "\"600\"", "Permissions of the admin socket's file. Everybody who can open the socket has all rights.",
        |r, item, to| put(&mut to.socket_mode, socket_mode(r, item));
    "audit", bare_path audit, "none", "File to which Larder appends every change as a line of JSON that contains the hash of the previous line. Changes go to standard error in any case.";
    "history", "a duration such as \"6h\"", "\"1d\"", "Period that the dashboard's charts cover, from \"10m\" to \"7d\". The history is in memory and ends with the daemon. It takes 96 bytes a minute (135 KiB for a day), and the same for each of the twelve busiest sites.",
        |r, item, to| put(&mut to.history_minutes, history(r, item));
    "docs", "an absolute path or false", "\"/usr/share/doc/larder/html\"", "Directory with the documentation's pages (`make site`), which Larder serves to everybody who can connect, below `/docs/`. The dashboard links to them.",
        |r, item, to| docs(r, item, to);
}

fn socket_mode(r: &mut Reader, item: &SettingValue<'_>) -> Option<u32> {
    let text = r.text(item)?;
    let mode = r.check(item, octal(text))?;
    if mode & 0o007 != 0 {
        let message = "`socket_mode`: everyone on this machine could do everything";
        r.error(item.span.clone(), message).help =
            Some("\"600\" is for the daemon's user, \"660\" also for its group".to_owned());
        return None;
    }
    Some(mode)
}

/// Reads the minutes of the dashboard's charts.
fn history(r: &mut Reader, item: &SettingValue<'_>) -> Option<usize> {
    let minutes = r.duration(item)? / 60_000;
    let minutes = usize::try_from(minutes).ok().filter(|minutes| HISTORY_MINUTES.contains(minutes));
    r.check(item, minutes.ok_or("takes a time from \"10m\" to \"7d\""))
}

fn docs(r: &mut Reader, item: &SettingValue<'_>, to: &mut AdminConfig) {
    match item.value.as_bool() {
        Some(false) => to.docs = None,
        Some(true) => _ = r.wrong_type(item),
        None => {
            if let Some(folder) = r.bare_path(item) {
                to.docs = Some(folder);
            }
        }
    }
}

/// Rejects an origin that is the admin listener: it would expose that to clients.
pub(super) fn check_origins(r: &mut Reader, top: &TomlTable<'_>, config: &Config) {
    let Some(listen) = &config.admin.listen else { return };
    let origins = &config.origins;
    if let Some(origin) = origins.iter().find(|origin| leads_to(origin, listen))
        && let Some(item) = top.item("admin")
    {
        let span = item.key("listen").map_or(item.span, |listen| listen.span);
        let message = format!("origin `{}` is this admin listener", origin.name);
        r.error(span, message).help =
            Some("clients would reach it through the site: give one of them another port".into());
    }
}

/// Warns of an origin that is a listener for clients: requests may loop.
pub(super) fn warn_of_loops(r: &mut Reader, top: &TomlTable<'_>, config: &Config) {
    let Some(item) = top.item("listen") else { return };
    for origin in &config.origins {
        if let Some(spec) = config.listen.iter().find(|spec| leads_to(origin, spec)) {
            let (name, at) = (&origin.name, &spec.text);
            let message = format!("origin `{name}` is this daemon's own listener {at}");
            r.warning(item.span.clone(), message).help = Some(
                "a request that comes back to a site with this origin is answered 508".to_owned(),
            );
        }
    }
}

/// Returns true if a server of `origin` is this listener.
fn leads_to(origin: &OriginConfig, listen: &ListenSpec) -> bool {
    let ports = listen.addresses.iter().copied().filter(|address| address.port() != 0);
    let reserved = ReservedAddresses::new(ports, Vec::new());
    origin.servers.iter().any(|server| match &server.address {
        Address::Tcp { host, port } => match host.parse::<IpAddr>() {
            Ok(ip) => reserved.has(SocketAddr::new(ip, *port)),
            Err(_) if host == "localhost" => {
                listen.addresses.iter().any(|own| own.port() == *port && *port != 0)
            }
            Err(_) => false,
        },
        Address::Fixed { addresses, .. } => addresses.iter().any(|at| reserved.has(*at)),
        Address::Unix(path) => listen.path.as_ref().is_some_and(|(own, _)| own == path),
    })
}

fn listen(r: &mut Reader, item: &SettingValue<'_>) -> Option<ListenSpec> {
    let spec = r.text(item).and_then(|text| one_listen(r, text, item))?;
    if spec.tls {
        r.error(item.span.clone(), "the admin listener has no TLS").help =
            Some("let it listen on 127.0.0.1, or reach it through a tunnel".to_owned());
    }
    if spec.proxy {
        r.error(item.span.clone(), "the admin listener knows no PROXY protocol");
    }
    if spec.h2c {
        r.error(item.span.clone(), "the admin listener speaks HTTP/1.1 only");
    }
    if spec.addresses.is_empty() {
        r.error(item.span.clone(), "there is an admin socket already").help =
            Some("`larder serve --admin-socket PATH` says where; here an address belongs".into());
    }
    if let Some(public) = spec.addresses.iter().find(|address| !address.ip().is_loopback()) {
        let message = format!(
            "`{}`: other machines could reach the admin listener at {}",
            item.name,
            public.ip()
        );
        r.error(item.span.clone(), message).help = Some(format!(
            "without TLS its tokens could be read: write \"127.0.0.1:{}\" and use `ssh -L`",
            public.port()
        ));
    }
    Some(spec)
}

/// Reads hosts without ports, as they are compared with Host fields.
fn hosts(r: &mut Reader, item: &SettingValue<'_>) -> Vec<String> {
    let mut hosts = Vec::new();
    for (text, item) in r.texts(item) {
        let host = policy::hosts::canonical(text).filter(|host| !host.contains('*'));
        hosts.extend(r.check(&item, host.ok_or("takes host names, without port or `*`")));
    }
    hosts
}
