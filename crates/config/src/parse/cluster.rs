//! `[cluster]`.

use std::net::SocketAddr;

use purge::Level;

use crate::keys::{COUNT, DURATION, PATHS, TEXTS};
use crate::model::{ClusterConfig, ClusterCredentials, Config, Isolation, PlacedPath};
use crate::reader::{Reader, SettingValue, TomlTable};
use crate::rows::{self, put, section};

/// Most bytes of a name or a prefix.
const NAME_BYTES: usize = 64;
/// Shortest `max_isolation`: it must cover ten requests to the stream.
const ISOLATION_MIN_MS: u64 = 200;
/// Most secret files: the current one, and the previous one.
const SECRETS_MAX: usize = 2;
/// Shortest `keep`.
const KEEP_MIN_MS: u64 = 60_000;

section! {
    pub(crate) CLUSTER, CLUSTER_ROWS: ClusterConfig; "[cluster]",
    "Several Larders that exchange invalidations over NATS with JetStream. Larder reads this \
     table at the start; a reload does not change it. The limits that begin with `cluster_` also \
     apply.";
    @needed("[cluster] needs `servers`", "such as servers = [\"nats://127.0.0.1:4222\"]")
    "servers", TEXTS, "required", "URLs of NATS servers, such as `nats://10.0.0.1:4222` or `tls://nats-1:4222`. One is enough; it tells Larder the others.",
        |r, item, to| to.servers = servers(r, item);
    "name", "a string", "the host's name", "Unique name of the node: letters, digits, `-` and `_`. In the default, other characters of the host's name become `-`.",
        |r, item, to| to.name = name(r, item);
    "prefix", "a string", "\"larder\"", "Prefix of NATS subjects and streams. Nodes with the same prefix in the same NATS account form one cluster.",
        |r, item, to| to.prefix = name(r, item);
    "mode", "\"invalidate\", \"share\" or \"shield\"", "\"invalidate\"", "What nodes share. `invalidate`: invalidations only. `share`: also stored responses; each key has an owner among the nodes, which fetches it for all. `shield`: as `share`; while a node with `shield` is up, only such nodes own keys.",
        |r, item, to| to.shields = mode(r, item) == Some(Mode::Shield);
    "peer", "an IP address and a port", "none", "IP address and port on which the node answers other nodes' requests for stored responses; the node announces this address to them. Required to share responses. Other nodes only may connect: their certificates are new at every start, and announced on their cards.",
        |r, item, to| to.peer = peer(r, item);
    "acknowledge", "\"local\", \"quorum\" or \"all\"", "\"quorum\"", "When a purge is answered, unless the purge itself says so (`Larder-Wait`, `larder purge --wait`). `local`: once it is in force on this node. `quorum`: once the stream has it. `all`: once every live node has applied it.",
        |r, item, to| put(&mut to.acknowledge, acknowledge(r, item));
    "max_isolation", DURATION, "\"30s\"", "Maximum time for which a disconnected node uses its stored responses as usual. After that, it validates every response with the origin.",
        |r, item, to| put(&mut to.max_isolation_ms, at_least(r, item, ISOLATION_MIN_MS));
    "isolation", "\"revalidate\" or \"not-ready\"", "\"revalidate\"", "What a node does after `max_isolation`. `revalidate`: it validates responses with the origin. `not-ready`: it also answers `health_check` and `/readyz` with 503.",
        |r, item, to| put(&mut to.isolation, r.word(item, &ISOLATIONS));
    "replicas", COUNT, "1", "Number of copies of each stream among the NATS servers: 1, 3 or 5. Larder raises the number of streams that have fewer.",
        |r, item, to| put(&mut to.replicas, replicas(r, item));
    "keep", DURATION, "\"24h\"", "Time for which the stream keeps invalidations. A node that was disconnected for longer validates everything that it stored before.",
        |r, item, to| put(&mut to.keep_ms, at_least(r, item, KEEP_MIN_MS));
    "secret_file", PATHS, "none", "File with a secret of at least 32 bytes, the same on all nodes. With it, nodes share TLS ticket keys, and the account, challenges and certificates of `[tls.acme]`, encrypted in NATS. A second file contains the previous secret, which still decrypts older data. Without this setting nodes share none of these; `[]` states that this is intended. The daemon's user or root reads the file.",
        |r, item, to| to.secret_files = Some(secret_files(r, item));
    "configuration", "\"local\" or \"shared\"", "\"local\"", "`shared`: the node uses, besides its own file, the configuration that `larder cluster roll-out` distributes to all nodes, with its sites, origins and VCL. Requires `secret_file`. `local`: its own file only.",
        |r, item, to| to.shares_configuration = shares(r, item);
    "storage", bare_path storage, "\"/var/lib/larder/cluster\", or `cluster` in systemd's `StateDirectory=`", "Directory for the last shared configuration, for the daemon alone. The node starts with this configuration if NATS is unreachable.";
    "user", "a string", "none", "User name for the NATS servers; requires `password`.",
        |r, item, to| {
            let (user, password) = (r.string(item), item.table.item("password"));
            let password = password.and_then(|item| r.string(&item));
            let both = user.zip(password).map(|(u, p)| ClusterCredentials::Password(u, p));
            identify(r, item, to, both);
            together(r, item, ["user", "password"]);
        };
    #Secret "password", "a string", "none", "Password of `user`.",
        |r, item, _| together(r, item, ["user", "password"]);
    #Secret "token", "a string", "none", "Token for the NATS servers, instead of `user` and `password`.",
        |r, item, to| {
            let token = r.string(item).map(ClusterCredentials::Token);
            identify(r, item, to, token);
        };
    "nkey", "an absolute path", "none", "File with the seed of an nkey, instead of a password.",
        |r, item, to| {
            let nkey = r.path(item).map(ClusterCredentials::Nkey);
            identify(r, item, to, nkey);
        };
    "credentials", "an absolute path", "none", "File with a JWT and a seed, as `nsc` writes it, instead of a password.",
        |r, item, to| {
            let file = r.path(item).map(ClusterCredentials::File);
            identify(r, item, to, file);
        };
    "ca", bare_path ca, "the system's", "File with the authorities that verify the servers' certificates. The daemon's user reads the file.";
    "certificate", "an absolute path", "none", "File with the node's client certificate, for NATS servers that require one; requires `key`. The daemon's user reads the file.",
        |r, item, to| {
            let certificate = r.bare_path(item);
            let key = item.table.item("key").and_then(|key| r.bare_path(&key));
            to.certificate = certificate.zip(key);
            together(r, item, ["certificate", "key"]);
        };
    "key", "an absolute path", "none", "File with the private key of `certificate`.",
        |r, item, _| together(r, item, ["certificate", "key"]);
}

/// Reads the cluster.
pub(super) fn cluster(r: &mut Reader, item: &SettingValue<'_>) -> Option<ClusterConfig> {
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

/// The part of a node in the shared store.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Invalidate,
    Share,
    Shield,
}

/// The keywords of `mode`.
const MODES: [(&str, Mode); 3] =
    [("invalidate", Mode::Invalidate), ("share", Mode::Share), ("shield", Mode::Shield)];

fn mode(r: &mut Reader, item: &SettingValue<'_>) -> Option<Mode> {
    let mode = r.word(item, &MODES)?;
    if mode != Mode::Invalidate && item.table.item("peer").is_none() {
        r.error(item.span.clone(), "a node that shares needs `peer`").help = Some(
            "the address where the other nodes reach it, such as peer = \"10.0.0.1:7800\"".into(),
        );
    }
    Some(mode)
}

fn acknowledge(r: &mut Reader, item: &SettingValue<'_>) -> Option<Level> {
    r.word(item, &Level::ALL.map(|level| (level.word(), level)))
}

/// The keywords of `isolation`.
const ISOLATIONS: [(&str, Isolation); 2] =
    [("revalidate", Isolation::Revalidate), ("not-ready", Isolation::NotReady)];

/// The keywords of `configuration`.
const CONFIGURATIONS: [(&str, bool); 2] = [("local", false), ("shared", true)];

/// Returns true if the node uses the shared configuration, which needs the nodes' secret.
fn shares(r: &mut Reader, item: &SettingValue<'_>) -> bool {
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

/// Returns true if the file takes sites from the shared configuration.
pub(super) fn shares_configuration(top: &TomlTable<'_>) -> bool {
    let said = top.item("cluster").and_then(|item| item.key("configuration"));
    said.is_some_and(|item| item.value.as_str() == Some("shared"))
}

/// Warns of what nodes do not share for want of a secret. An empty list is deliberate.
pub(super) fn check(r: &mut Reader, top: &TomlTable<'_>, config: &Config) {
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

/// Reads secret files: the current one, and the previous one.
fn secret_files(r: &mut Reader, item: &SettingValue<'_>) -> Vec<PlacedPath> {
    let files: Vec<_> = item.each().iter().filter_map(|each| r.path(each)).collect();
    if files.len() > SECRETS_MAX {
        let text = "`secret_file` is one file, or the new one and the old one";
        r.error(item.span.clone(), text);
    }
    files
}

/// Reads the address at which the node serves peers: they get this very address.
fn peer(r: &mut Reader, item: &SettingValue<'_>) -> Option<SocketAddr> {
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
        let message = "`peer` has no effect without mode = \"share\" or \"shield\"";
        r.warning(item.span.clone(), message);
        return None;
    }
    peer
}

fn is_here(server: &str) -> bool {
    let host = server.split_once("://").map_or(server, |(_, host)| host);
    ["127.", "localhost", "[::1]"].iter().any(|here| host.starts_with(here))
}

fn servers(r: &mut Reader, item: &SettingValue<'_>) -> Vec<String> {
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
                "such as \"nats://127.0.0.1:4222\"; credentials have keys of their own".into(),
            );
        }
    }
    servers
}

/// Reads a token of a subject.
fn name(r: &mut Reader, item: &SettingValue<'_>) -> Option<String> {
    let text = r.text(item)?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if text.is_empty() || text.len() > NAME_BYTES || !text.bytes().all(is_plain) {
        r.error(item.span.clone(), format!("`{}` is letters, digits, `-` and `_`", item.name))
            .help = Some(format!("up to {NAME_BYTES} of them"));
        return None;
    }
    Some(text.to_owned())
}

fn at_least(r: &mut Reader, item: &SettingValue<'_>, least_ms: u64) -> Option<u64> {
    let ms = r.duration(item)?;
    if ms < least_ms {
        r.error(item.span.clone(), format!("`{}` is at least {least_ms}ms", item.name));
    }
    Some(ms.max(least_ms))
}

fn replicas(r: &mut Reader, item: &SettingValue<'_>) -> Option<usize> {
    match r.count(item, 1, 5)? {
        count @ (1 | 3 | 5) => Some(count as usize),
        _ => {
            let message = "`replicas` is 1, 3 or 5: an even number survives no more";
            r.error(item.span.clone(), message);
            None
        }
    }
}

/// Reads the node's authentication.
fn identify(
    r: &mut Reader,
    item: &SettingValue<'_>,
    to: &mut ClusterConfig,
    credentials: Option<ClusterCredentials>,
) {
    if credentials.is_some() && to.credentials != ClusterCredentials::None {
        let text = "only one of `password`, `token`, `nkey` and `credentials` can be given";
        r.error(item.table.span.clone(), text);
    }
    put(&mut to.credentials, credentials);
}

/// Reports a key whose partner is missing.
fn together(r: &mut Reader, item: &SettingValue<'_>, pair: [&'static str; 2]) {
    if pair.iter().any(|name| item.table.item(name).is_none()) {
        let [one, other] = pair;
        r.error(item.span.clone(), format!("`{one}` and `{other}` go together"));
    }
}
