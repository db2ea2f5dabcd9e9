//! `[cluster]`.

use std::net::SocketAddr;
use std::path::PathBuf;

use purge::Level;

use crate::keys::{COUNT, DURATION, PATHS, TEXTS};
use crate::model::{ClusterConfig, ClusterCredentials, Config, Isolation, Place};
use crate::reader::{Item, Reader, Table};
use crate::rows::{self, put, section};

/// Most bytes of a name or a prefix.
const NAME_BYTES: usize = 64;
/// Shortest `max_isolation`: ten questions to the stream have to fit in it.
const ISOLATION_MIN_MS: u64 = 200;
/// Most files with secrets: one that seals, and the one before it.
const SECRETS_MAX: usize = 2;
/// Shortest `keep`.
const KEEP_MIN_MS: u64 = 60_000;

section! {
    pub(crate) CLUSTER, CLUSTER_ROWS: ClusterConfig; "[cluster]",
    "Several Larders that tell each other what they invalidate, over NATS with JetStream. Read \
     when the daemon starts; a reload does not change it. The limits that begin with \
     `cluster_` are its, too.";
    @needed("[cluster] needs `servers`", "such as servers = [\"nats://127.0.0.1:4222\"]")
    "servers", TEXTS, "required", "URLs of NATS servers, such as `nats://10.0.0.1:4222` or `tls://nats-1:4222`: one at least, the others are learned from it.",
        |r, item, to| to.servers = servers(r, item);
    "name", "a string", "the host's name", "The node's name, which no other node has: letters, digits, `-` and `_`. Other characters of the host's name become `-`.",
        |r, item, to| to.name = name(r, item);
    "prefix", "a string", "\"larder\"", "The word that subjects and streams begin with: nodes with the same one in the same account are one cluster.",
        |r, item, to| to.prefix = name(r, item);
    "mode", "\"invalidate\", \"share\" or \"shield\"", "\"invalidate\"", "What nodes share: what is invalidated, or also what they store. Then each key has an owner among the nodes, which fetches for all of them: a node that shields, while there is one.",
        |r, item, to| to.shields = mode(r, item) == Some(Mode::Shield);
    "peer", "an IP address and a port", "none", "Where the node answers the others about what it stores, and what they are told; needed to share. Nobody else is let in there: the nodes know each other's certificates, which they make anew at every start, by their cards.",
        |r, item, to| to.peer = peer(r, item);
    "acknowledge", "\"local\", \"quorum\" or \"all\"", "\"quorum\"", "What the answer to a purge waits for where it does not say so itself (`Larder-Wait`, `larder purge --wait`): that it is in force here, that the stream has it, or that every live node has applied it.",
        |r, item, to| put(&mut to.acknowledge, acknowledge(r, item));
    "max_isolation", DURATION, "\"30s\"", "How long a node that is out of touch uses what it stores: from then on it has everything validated by the origin.",
        |r, item, to| put(&mut to.max_isolation_ms, at_least(r, item, ISOLATION_MIN_MS));
    "isolation", "\"revalidate\" or \"not-ready\"", "\"revalidate\"", "What a node does then: it validates, or it also answers `health_check` and `/readyz` with 503.",
        |r, item, to| put(&mut to.isolation, r.word(item, &ISOLATIONS));
    "replicas", COUNT, "1", "Copies of the streams among the NATS servers: 1, 3 or 5. Streams with fewer are raised.",
        |r, item, to| put(&mut to.replicas, replicas(r, item));
    "keep", DURATION, "\"24h\"", "How long the stream keeps invalidations. A node that was away for longer has everything validated that it stored before.",
        |r, item, to| put(&mut to.keep_ms, at_least(r, item, KEEP_MIN_MS));
    "secret_file", PATHS, "none", "File with a secret of 32 bytes at least, the same on all nodes, with which nodes share ticket keys, and the account, challenges and certificates of `[tls.acme]`: they lie in NATS sealed with it. A second file is the secret before: what was sealed with it is still read. Without the setting none of it is shared; `[]` says that this is meant. The daemon's user reads it, or root.",
        |r, item, to| to.secret_files = Some(secret_files(r, item));
    "configuration", "\"local\" or \"shared\"", "\"local\"", "`shared`: besides its own file the node has the configuration that is rolled out to all (`larder cluster roll-out`), with its sites, origins and VCL. Needs `secret_file`.",
        |r, item, to| to.shares_configuration = shares(r, item);
    "storage", bare_path storage, "\"/var/lib/larder/cluster\", or `cluster` in systemd's `StateDirectory=`", "Folder for the last configuration that all share, with which the node starts without NATS; the daemon's alone.";
    "user", "a string", "none", "Name of the user at the NATS servers; goes with `password`.",
        |r, item, to| {
            let (user, password) = (r.string(item), item.table.item("password"));
            let password = password.and_then(|item| r.string(&item));
            let both = user.zip(password).map(|(u, p)| ClusterCredentials::Password(u, p));
            identify(r, item, to, both);
            together(r, item, ["user", "password"]);
        };
    "password", "a string", "none", "The user's password.",
        |r, item, _| together(r, item, ["user", "password"]);
    "token", "a string", "none", "A token, instead of user and password.",
        |r, item, to| {
            let token = r.string(item).map(ClusterCredentials::Token);
            identify(r, item, to, token);
        };
    "nkey", "an absolute path", "none", "File with the seed of an nkey, instead of a password.",
        |r, item, to| {
            let nkey = r.path(item).map(|(path, place)| ClusterCredentials::Nkey(path, place));
            identify(r, item, to, nkey);
        };
    "credentials", "an absolute path", "none", "File with a JWT and a seed, as `nsc` writes it, instead of a password.",
        |r, item, to| {
            let file = r.path(item).map(|(path, place)| ClusterCredentials::File(path, place));
            identify(r, item, to, file);
        };
    "ca", bare_path ca, "the system's", "File with the authorities that the servers' certificates are checked against. The daemon's user reads it.";
    "certificate", "an absolute path", "none", "File with the node's own certificate, where servers want one; goes with `key`. The daemon's user reads it.",
        |r, item, to| {
            let certificate = r.bare_path(item);
            let key = item.table.item("key").and_then(|key| r.bare_path(&key));
            to.certificate = certificate.zip(key);
            together(r, item, ["certificate", "key"]);
        };
    "key", "an absolute path", "none", "File with the key of `certificate`.",
        |r, item, _| together(r, item, ["certificate", "key"]);
}

/// The cluster.
pub(super) fn cluster(r: &mut Reader, item: &Item<'_>) -> Option<ClusterConfig> {
    let mut config = ClusterConfig {
        servers: Vec::new(),
        name: None,
        prefix: None,
        peer: None,
        shields: false,
        acknowledge: Level::Quorum,
        max_isolation_ms: 30_000,
        isolation: Isolation::Revalidate,
        replicas: 1,
        keep_ms: 24 * 3_600_000,
        credentials: ClusterCredentials::None,
        ca: None,
        certificate: None,
        secret_files: None,
        shares_configuration: false,
        storage: None,
    };
    rows::read_table(r, item, &CLUSTER, CLUSTER_ROWS, &mut config);
    let has_password = matches!(config.credentials, ClusterCredentials::Password(..))
        || matches!(config.credentials, ClusterCredentials::Token(_));
    let is_far = |server: &String| !server.starts_with("tls://") && !is_here(server);
    if has_password && config.ca.is_none() && config.servers.iter().any(is_far) {
        let text = "the password crosses the network as it is: use tls://";
        r.warning(item.span.clone(), text);
    }
    (!config.servers.is_empty()).then_some(config)
}

/// The part of a node in what all share.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Invalidate,
    Share,
    Shield,
}

/// The words of `mode`.
const MODES: [(&str, Mode); 3] =
    [("invalidate", Mode::Invalidate), ("share", Mode::Share), ("shield", Mode::Shield)];

fn mode(r: &mut Reader, item: &Item<'_>) -> Option<Mode> {
    let mode = r.word(item, &MODES)?;
    if mode != Mode::Invalidate && item.table.item("peer").is_none() {
        r.error(item.span.clone(), "a node that shares needs `peer`").help = Some(
            "the address where the other nodes reach it, such as peer = \"10.0.0.1:7800\"".into(),
        );
    }
    Some(mode)
}

fn acknowledge(r: &mut Reader, item: &Item<'_>) -> Option<Level> {
    r.word(item, &Level::ALL.map(|level| (level.word(), level)))
}

/// The words of `isolation`.
const ISOLATIONS: [(&str, Isolation); 2] =
    [("revalidate", Isolation::Revalidate), ("not-ready", Isolation::NotReady)];

/// The words of `configuration`.
const CONFIGURATIONS: [(&str, bool); 2] = [("local", false), ("shared", true)];

/// Tells whether the node has the configuration that all share, for which it needs their secret.
fn shares(r: &mut Reader, item: &Item<'_>) -> bool {
    let is_shared = r.word(item, &CONFIGURATIONS).unwrap_or_default();
    let has_secret = item.table.item("secret_file").is_some_and(|item| !item.each().is_empty());
    if is_shared && !has_secret {
        r.error(item.span.clone(), "what nodes share is sealed: it needs `secret_file`").help =
            Some(
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
pub(super) fn check(r: &mut Reader, top: &Table<'_>, config: &Config) {
    let (Some(item), Some(cluster)) = (top.item("cluster"), &config.cluster) else { return };
    let missing = match (&cluster.secret_files, &config.acme) {
        (Some(_), _) => return,
        (None, Some(_)) => {
            "each node orders certificates of its own, and answers no challenge of another; \
             sessions are not resumed on another node"
        }
        (None, None) if config.listen.iter().any(|spec| spec.tls) => {
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
fn secret_files(r: &mut Reader, item: &Item<'_>) -> Vec<(PathBuf, Place)> {
    let files: Vec<_> = item.each().iter().filter_map(|each| r.path(each)).collect();
    if files.len() > SECRETS_MAX {
        let text = "`secret_file` is one file, or the new one and the old one";
        r.error(item.span.clone(), text);
    }
    files
}

/// Where the node answers the others: they are told this very address.
fn peer(r: &mut Reader, item: &Item<'_>) -> Option<SocketAddr> {
    let text = r.text(item)?;
    let peer = text.parse::<SocketAddr>().ok();
    let peer = peer.filter(|address| !address.ip().is_unspecified() && address.port() != 0);
    if peer.is_none() {
        let message = format!("`{text}` is no address that other nodes could reach");
        r.error(item.span.clone(), message).help =
            Some("an IP address and a port, such as \"10.0.0.1:7800\"".into());
        return None;
    }
    let mode = item.table.item("mode");
    if mode.is_none_or(|mode| mode.value.as_str() == Some("invalidate")) {
        let message = "`peer` is of no use without mode = \"share\" or \"shield\"";
        r.warning(item.span.clone(), message);
        return None;
    }
    peer
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

fn at_least(r: &mut Reader, item: &Item<'_>, least_ms: u64) -> Option<u64> {
    let ms = r.duration(item)?;
    if ms < least_ms {
        r.error(item.span.clone(), format!("`{}` is at least {least_ms}ms", item.name));
    }
    Some(ms.max(least_ms))
}

fn replicas(r: &mut Reader, item: &Item<'_>) -> Option<usize> {
    match r.count(item, 1, 5)? {
        count @ (1 | 3 | 5) => Some(count as usize),
        _ => {
            let message = "`replicas` is 1, 3 or 5: an even number survives no more";
            r.error(item.span.clone(), message);
            None
        }
    }
}

/// Notes how the node shows who it is.
fn identify(
    r: &mut Reader,
    item: &Item<'_>,
    to: &mut ClusterConfig,
    credentials: Option<ClusterCredentials>,
) {
    if credentials.is_some() && to.credentials != ClusterCredentials::None {
        let text = "one of `password`, `token`, `nkey` and `credentials` says who the node is";
        r.error(item.table.span.clone(), text);
    }
    put(&mut to.credentials, credentials);
}

/// Says that one of a pair of keys is alone.
fn together(r: &mut Reader, item: &Item<'_>, pair: [&'static str; 2]) {
    if pair.iter().any(|name| item.table.item(name).is_none()) {
        let [one, other] = pair;
        r.error(item.span.clone(), format!("`{one}` and `{other}` go together"));
    }
}
