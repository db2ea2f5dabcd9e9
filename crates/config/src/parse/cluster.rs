//! `[cluster]`.

use std::net::SocketAddr;
use std::path::PathBuf;

use purge::Level;

use super::tls::{path, path_of};
use crate::keys;
use crate::model::{AcmeConfig, ClusterConfig, ClusterCredentials, Isolation, ListenSpec, Place};
use crate::reader::{Item, Reader, Table};

/// Most bytes of a name or a prefix.
const NAME_BYTES: usize = 64;
/// Shortest `max_isolation`: ten questions to the stream have to fit in it.
const ISOLATION_MIN_MS: u64 = 200;
/// Most files with secrets: one that seals, and the one before it.
const SECRETS_MAX: usize = 2;
/// Shortest `keep`.
const KEEP_MIN_MS: u64 = 60_000;

/// The cluster; `None` without `[cluster]`.
pub(super) fn cluster(r: &mut Reader, top: &Table<'_>) -> Option<ClusterConfig> {
    let item = top.item("cluster")?;
    let table = r.table(&item, &keys::CLUSTER)?;
    let servers = match table.item("servers") {
        Some(item) => servers(r, &item),
        None => {
            r.error(item.span.clone(), "[cluster] needs `servers`").help =
                Some("such as servers = [\"nats://127.0.0.1:4222\"]".to_owned());
            Vec::new()
        }
    };
    // Whether it shares, and whether it shields.
    let modes =
        [("invalidate", (false, false)), ("share", (true, false)), ("shield", (true, true))];
    let mode = table.item("mode").and_then(|item| r.word(&item, &modes));
    let (shares, shields) = mode.unwrap_or_default();
    let levels = Level::ALL.map(|level| (level.word(), level));
    let isolations = [("revalidate", Isolation::Revalidate), ("not-ready", Isolation::NotReady)];
    let config = ClusterConfig {
        name: table.item("name").and_then(|item| name(r, &item)),
        prefix: table.item("prefix").and_then(|item| name(r, &item)),
        peer: peer(r, &table, shares),
        shields,
        acknowledge: table
            .item("acknowledge")
            .and_then(|item| r.word(&item, &levels))
            .unwrap_or(Level::Quorum),
        max_isolation_ms: at_least(r, &table, "max_isolation", ISOLATION_MIN_MS, 30_000),
        isolation: table
            .item("isolation")
            .and_then(|item| r.word(&item, &isolations))
            .unwrap_or(Isolation::Revalidate),
        replicas: replicas(r, &table),
        keep_ms: at_least(r, &table, "keep", KEEP_MIN_MS, 24 * 3_600_000),
        credentials: credentials(r, &table, &item),
        ca: path_of(r, &table, "ca").map(|(path, _)| path),
        certificate: certificate(r, &table),
        secret_files: secret_files(r, &table),
        shares_configuration: has_shared(r, &table),
        storage: path_of(r, &table, "storage").map(|(path, _)| path),
        servers,
    };
    let has_password = matches!(config.credentials, ClusterCredentials::Password(..))
        || matches!(config.credentials, ClusterCredentials::Token(_));
    let is_far = |server: &String| !server.starts_with("tls://") && !is_here(server);
    if has_password && config.ca.is_none() && config.servers.iter().any(is_far) {
        r.warning(item.span, "the password crosses the network as it is: use tls://");
    }
    (!config.servers.is_empty()).then_some(config)
}

/// The words of `configuration`.
const CONFIGURATIONS: [(&str, bool); 2] = [("local", false), ("shared", true)];

/// Tells whether the node has the configuration that all share, for which it needs their secret.
fn has_shared(r: &mut Reader, table: &Table<'_>) -> bool {
    let Some(item) = table.item("configuration") else { return false };
    let is_shared = r.word(&item, &CONFIGURATIONS).unwrap_or_default();
    let has_secret = table.item("secret_file").is_some_and(|item| !item.each().is_empty());
    if is_shared && !has_secret {
        r.error(item.span, "what nodes share is sealed: it needs `secret_file`").help = Some(
            "a file with the same secret on all nodes, such as `openssl rand -base64 48` makes"
                .into(),
        );
    }
    is_shared
}

/// Returns true if the file says that sites come with what all nodes share.
pub(super) fn shares_configuration(top: &Table<'_>) -> bool {
    let said = top.item("cluster").and_then(|item| item.key("configuration"));
    said.is_some_and(|item| item.value.as_str() == Some("shared"))
}

/// Says what nodes do not share for want of a secret. An empty list is meant so.
pub(super) fn check(
    r: &mut Reader,
    top: &Table<'_>,
    cluster: Option<&ClusterConfig>,
    listen: &[ListenSpec],
    acme: Option<&AcmeConfig>,
) {
    let (Some(item), Some(cluster)) = (top.item("cluster"), cluster) else { return };
    let missing = match (&cluster.secret_files, acme) {
        (Some(_), _) => return,
        (None, Some(_)) => {
            "each node orders certificates of its own, and answers no challenge of another; \
             sessions are not resumed on another node"
        }
        (None, None) if listen.iter().any(|spec| spec.tls) => {
            "sessions are not resumed on another node"
        }
        (None, None) => return,
    };
    r.warning(item.span, format!("without `secret_file` {missing}")).help = Some(
        "name a file with the same secret on all nodes, such as `openssl rand -base64 48` makes, \
         or secret_file = [] if that is meant"
            .into(),
    );
}

/// Files with secrets: the one that seals, and the one before it.
fn secret_files(r: &mut Reader, table: &Table<'_>) -> Option<Vec<(PathBuf, Place)>> {
    let item = table.item("secret_file")?;
    let files: Vec<_> = item.each().iter().filter_map(|each| path(r, each)).collect();
    if files.len() > SECRETS_MAX {
        let text = "`secret_file` is one file, or the new one and the old one";
        r.error(item.span, text);
    }
    Some(files)
}

/// Where the node answers the others: they are told this very address.
fn peer(r: &mut Reader, table: &Table<'_>, shares: bool) -> Option<SocketAddr> {
    let Some(item) = table.item("peer") else {
        if shares {
            let mode = table.item("mode").map_or(0..0, |item| item.span);
            r.error(mode, "a node that shares needs `peer`").help = Some(
                "the address where the other nodes reach it, such as peer = \"10.0.0.1:7800\""
                    .into(),
            );
        }
        return None;
    };
    let text = r.text(&item)?.to_owned();
    match text.parse::<SocketAddr>() {
        Ok(address) if !address.ip().is_unspecified() && address.port() != 0 => {
            if !shares {
                r.warning(item.span, "`peer` is of no use without mode = \"share\" or \"shield\"");
            }
            shares.then_some(address)
        }
        _ => {
            r.error(item.span, format!("`{text}` is no address that other nodes could reach"))
                .help = Some("an IP address and a port, such as \"10.0.0.1:7800\"".into());
            None
        }
    }
}

fn is_here(server: &str) -> bool {
    let host = server.split_once("://").map_or(server, |(_, host)| host);
    ["127.", "localhost", "[::1]"].iter().any(|here| host.starts_with(here))
}

fn servers(r: &mut Reader, item: &Item<'_>) -> Vec<String> {
    let mut servers = Vec::new();
    for (text, place) in r.texts(item) {
        let host = text.strip_prefix("nats://").or_else(|| text.strip_prefix("tls://"));
        let is_host = |host: &str| {
            let plain = |byte: u8| byte.is_ascii_graphic() && !b"@/?#".contains(&byte);
            !host.is_empty() && host.bytes().all(plain)
        };
        if host.is_some_and(is_host) {
            servers.push(text.to_owned());
        } else {
            r.error(place.span, format!("`{text}` is no NATS server")).help = Some(
                "such as \"nats://127.0.0.1:4222\"; who you are stands in keys of its own".into(),
            );
        }
    }
    servers
}

/// A word of a subject.
fn name(r: &mut Reader, item: &Item<'_>) -> Option<String> {
    let text = r.text(item)?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if text.is_empty() || text.len() > NAME_BYTES || !text.bytes().all(is_plain) {
        r.error(item.span.clone(), format!("`{}` is letters, digits, `-` and `_`", item.name))
            .help = Some(format!("up to {NAME_BYTES} of them"));
        return None;
    }
    Some(text.to_owned())
}

fn at_least(
    r: &mut Reader,
    table: &Table<'_>,
    key: &'static str,
    least_ms: u64,
    default_ms: u64,
) -> u64 {
    let Some(item) = table.item(key) else { return default_ms };
    let Some(ms) = r.duration(&item) else { return default_ms };
    if ms < least_ms {
        r.error(item.span, format!("`{key}` is at least {least_ms}ms"));
    }
    ms.max(least_ms)
}

fn replicas(r: &mut Reader, table: &Table<'_>) -> usize {
    let Some(item) = table.item("replicas") else { return 1 };
    match r.count(&item, 1, 5) {
        Some(count @ (1 | 3 | 5)) => count as usize,
        Some(_) => {
            r.error(item.span, "`replicas` is 1, 3 or 5: an even number survives no more");
            1
        }
        None => 1,
    }
}

fn credentials(r: &mut Reader, table: &Table<'_>, whole: &Item<'_>) -> ClusterCredentials {
    let mut text = |key| table.item(key).and_then(|item| Some(r.text(&item)?.to_owned()));
    let (user, password, token) = (text("user"), text("password"), text("token"));
    let nkey = path_of(r, table, "nkey");
    let file = path_of(r, table, "credentials");
    let mut said = Vec::new();
    match (user, password) {
        (Some(user), Some(password)) => said.push(ClusterCredentials::Password(user, password)),
        (None, None) => {}
        _ => _ = r.error(whole.span.clone(), "`user` and `password` go together"),
    }
    said.extend(token.map(ClusterCredentials::Token));
    said.extend(nkey.map(|(path, place)| ClusterCredentials::Nkey(path, place)));
    said.extend(file.map(|(path, place)| ClusterCredentials::File(path, place)));
    if said.len() > 1 {
        let text = "one of `password`, `token`, `nkey` and `credentials` says who the node is";
        r.error(whole.span.clone(), text);
    }
    said.into_iter().next().unwrap_or(ClusterCredentials::None)
}

fn certificate(r: &mut Reader, table: &Table<'_>) -> Option<(PathBuf, PathBuf)> {
    let (certificate, key) = (path_of(r, table, "certificate"), path_of(r, table, "key"));
    match (certificate, key) {
        (Some((certificate, _)), Some((key, _))) => Some((certificate, key)),
        (None, None) => None,
        (Some((_, place)), None) | (None, Some((_, place))) => {
            r.error(place.span, "`certificate` and `key` go together");
            None
        }
    }
}
