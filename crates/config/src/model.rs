//! The model of the configuration for the rest of the program: parsed, checked, with all defaults.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use base::Limits;
use base::logging::Priority;
use base::units::Bytes;
use codec::{Compression, CompressionScope};
use message::{HttpsUrl, Status};
use origin::{OriginConfig, ServerConfig};
use policy::acl::{CidrSet, Net};
use policy::forwarded::ClientField;
use policy::headers::{FieldName, FieldValue};
use policy::{Includes, Profile, Purge, SiteRules};

mod cluster;
mod crawlers;
mod location;
mod warm;

pub use cluster::{
    ClusterConfig, ClusterCredentials, Isolation, NeighbourConfig, NeighbourTransport,
};
pub use crawlers::{CrawlersConfig, SigningCrawler};
pub use location::{ConfigLocation, PlacedPath};
pub use warm::WarmConfig;

/// A whole configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// Listeners for clients; at least one.
    pub listen: Vec<ListenSpec>,
    /// Proxies in front whose fields are trusted, and which may connect to listeners with `proxy`.
    pub trusted_proxies: Vec<Net>,
    /// The field in which they name the client.
    pub client_field: ClientField,
    /// Origins get Forwarded (RFC 7239), too.
    pub forwarded: bool,
    /// TLS clients may speak HTTP/2.
    pub http2: bool,
    /// A request target may contain UTF-8 as it is.
    pub raw_utf8: bool,
    /// A path that is answered for every host, before the sites.
    pub health_check: Option<String>,
    /// Core threads; `None` for one per usable core ([`crate::sizing::Machine::default_workers`]).
    pub workers: Option<usize>,
    /// The default profile of sites.
    pub profile: Profile,
    /// The memory cache.
    pub memory: MemoryConfig,
    /// The cache on disk; `None` without `[disk]`.
    pub disk: Option<DiskConfig>,
    /// The admin listener.
    pub admin: AdminConfig,
    /// The health checks' listener and rules.
    pub health: HealthConfig,
    /// The listener for Prometheus; `None` if it is absent.
    pub metrics: Option<MetricsConfig>,
    /// The port that speaks Varnish's CLI; `None` if it is absent.
    pub varnish_cli: Option<VarnishCli>,
    /// The HTCP port; `None` if it is absent.
    pub htcp: Option<Htcp>,
    /// The cluster that the node is part of; `None` if it is alone.
    pub cluster: Option<ClusterConfig>,
    /// Other caches to which invalidations are sent.
    pub neighbours: Vec<NeighbourConfig>,
    /// Traces; `None` if trace context is passed on unchanged.
    pub tracing: Option<Tracing>,
    /// The receiver of findings.
    pub webhook: Option<WebhookConfig>,
    /// Compression, for sites without a VCL.
    pub compression: Compression,
    /// The list of crawlers.
    pub crawlers: CrawlersConfig,
    /// Directories of files and scripts, with the settings that name them.
    pub folders: Vec<NamedPath>,
    /// Sockets of origins.
    pub sockets: Vec<NamedPath>,
    /// Servers of origins that are named by a host and a port.
    pub hosts: Vec<NamedHost>,
    /// The VCL of sites that name none.
    pub vcl: Programs,
    /// Limits in force.
    pub limits: Limits,
    /// The account of a daemon that root has started.
    pub run: ServiceAccount,
    /// The database of the countries of addresses.
    pub geoip: Option<PlacedPath>,
    /// The access log; `None` if it is off.
    pub access_log: Option<AccessLog>,
    /// The log of the daemon's events.
    pub error_log: ErrorLog,
    /// The ring of records for `larder log` and others; `None` if it is off.
    pub log_ring: Option<LogRing>,
    /// Every origin, used or not.
    pub origins: Vec<OriginConfig>,
    /// TLS to the origins, in the order of `origins`; `None` for one without `https://` servers.
    pub origin_tls: Vec<Option<OriginTls>>,
    /// The sites, in the order of the file.
    pub sites: Vec<SiteConfig>,
    /// The certificates of sites without their own, and of clients that name no site.
    pub certificates: Certificates,
    /// Certificates from an authority, for hosts without certificate files.
    pub acme: Option<AcmeConfig>,
    /// Handshakes staple an authority's statement that the certificate is good (OCSP).
    pub ocsp: bool,
    /// Responses have `X-Cache: HIT` or `X-Cache: MISS`.
    pub x_cache: bool,
    /// Contents of Cache-Status in responses.
    pub cache_status: CacheStatus,
    /// The pseudonym in Via and Cache-Status (RFC 9110 7.6.3), a token.
    pub via: String,
}

impl Default for Config {
    /// The default configuration, without listeners, origins and sites.
    fn default() -> Self {
        Self {
            listen: Vec::new(),
            trusted_proxies: Vec::new(),
            client_field: ClientField::default(),
            forwarded: false,
            http2: true,
            raw_utf8: true,
            health_check: None,
            workers: None,
            profile: Profile::default(),
            memory: MemoryConfig { size: MemorySize::default(), place: ConfigLocation::nowhere() },
            disk: None,
            admin: AdminConfig::default(),
            health: HealthConfig::default(),
            metrics: None,
            varnish_cli: None,
            htcp: None,
            cluster: None,
            neighbours: Vec::new(),
            tracing: None,
            webhook: None,
            compression: Compression::default(),
            crawlers: CrawlersConfig::default(),
            folders: Vec::new(),
            sockets: Vec::new(),
            hosts: Vec::new(),
            vcl: Programs::None,
            limits: Limits::default(),
            run: ServiceAccount::default(),
            geoip: None,
            access_log: None,
            error_log: ErrorLog::default(),
            log_ring: Some(LogRing::default()),
            origins: Vec::new(),
            origin_tls: Vec::new(),
            sites: Vec::new(),
            certificates: Vec::new(),
            acme: None,
            ocsp: true,
            x_cache: false,
            cache_status: CacheStatus::default(),
            via: "larder".to_owned(),
        }
    }
}

/// One listening address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListenSpec {
    /// As written.
    pub text: String,
    /// The addresses of `text`. `:80` is two, `0.0.0.0` and `[::]`, the latter for IPv6 only. Empty
    /// for a unix socket (`path`) and for sockets that are handed over (`given`).
    pub addresses: Vec<SocketAddr>,
    /// A unix socket, and the permissions of its file.
    pub path: Option<(PathBuf, u32)>,
    /// The name of sockets that the service manager hands over.
    pub given: Option<String>,
    /// Clients of this address speak TLS.
    pub tls: bool,
    /// Clients may begin with HTTP/2 if there is no TLS.
    pub h2c: bool,
    /// Connections begin with a header of the PROXY protocol.
    pub proxy: bool,
    /// The listener's name (varnishd's `-a name=...`).
    pub name: Option<String>,
}

/// A certificate's file and its key's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairFiles {
    /// The certificate and its chain, PEM.
    pub cert: PathBuf,
    /// The location of its path.
    pub cert_place: ConfigLocation,
    /// The private key, PEM.
    pub key: PathBuf,
    /// The location of its path.
    pub key_place: ConfigLocation,
}

/// Several pairs for the same names.
pub type Certificates = Vec<PairFiles>;

/// The check of the certificates of a site's clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientFiles {
    /// The authorities, PEM.
    pub ca: PathBuf,
    /// The location of the setting.
    pub place: ConfigLocation,
    /// A client must have a certificate.
    pub required: bool,
    /// Origins get the certificate in X-SSL-Client-Verify, -S-DN and -Fingerprint.
    pub tells_x_ssl: bool,
    /// Origins get the certificate in Client-Cert (RFC 9440).
    pub tells_client_cert: bool,
}

/// `[origin.tls]`, and its defaults for origins with `https://` servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginTls {
    /// The trusted authorities, PEM; `None` for the system's.
    pub ca: Option<PlacedPath>,
    /// The client certificate.
    pub pair: Option<PairFiles>,
    /// The name to send and verify; `None` for the server's own.
    pub sni: Option<String>,
    /// Certificates of origins are verified.
    pub verify: bool,
    /// The location of the table.
    pub place: ConfigLocation,
}

/// `[site.tls]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SiteTls {
    /// The certificates; those of `[tls]` if empty.
    pub pairs: Certificates,
    /// The check of clients' certificates; `None` admits every client.
    pub client: Option<ClientFiles>,
    /// Orders certificates, or not. `None` if the site does not say: certificates are then ordered
    /// if `pairs` is empty.
    pub acme: Option<bool>,
}

/// One page of `error_pages`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageFile {
    /// The status, of an error.
    pub status: Status,
    /// The file with the page.
    pub path: PathBuf,
    /// The location of the setting.
    pub place: ConfigLocation,
}

/// `[tls.acme]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcmeConfig {
    /// The address for messages of the authority.
    pub email: Option<String>,
    /// URL of its directory.
    pub directory: String,
    /// The authorities, PEM, that must have signed the directory's certificate; `None` for the
    /// system's.
    pub ca: Option<PlacedPath>,
    /// The folder of the account and the certificates.
    pub storage: PathBuf,
    /// Ways to prove control of a name, the preferred one first.
    pub challenges: Vec<AcmeChallenge>,
    /// The external account that this one is bound to.
    pub binding: Option<AcmeBinding>,
    /// The location of the table.
    pub place: ConfigLocation,
}

/// A way to prove a name (RFC 8555 8, RFC 8737).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcmeChallenge {
    /// A file over plain HTTP.
    Http01,
    /// A certificate in the handshake.
    TlsAlpn01,
}

/// `[tls.acme.eab]` (RFC 8555 7.3.4).
#[derive(Clone, PartialEq, Eq)]
pub struct AcmeBinding {
    /// The external account's name.
    pub key_id: String,
    /// The secret, decoded.
    pub hmac: Vec<u8>,
}

impl fmt::Debug for AcmeBinding {
    /// Omits the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AcmeBinding").field("key_id", &self.key_id).finish_non_exhaustive()
    }
}

impl AcmeConfig {
    /// Returns true if the site's certificates come from this authority.
    pub fn is_for(&self, site: &SiteConfig) -> bool {
        site.tls.pairs.is_empty() && site.tls.acme != Some(false)
    }

    /// Checks that a certificate can be ordered for a site's host.
    ///
    /// # Errors
    /// The reason why not.
    pub fn may_order(&self, host: &str) -> Result<(), &'static str> {
        /// Names that are reserved, or local to a network (RFC 2606, 6761, 6762, 8375).
        const RESERVED: [&str; 8] =
            ["test", "example", "invalid", "localhost", "local", "internal", "home.arpa", "onion"];
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        if host.starts_with('*') {
            return Err("wildcards need dns-01");
        }
        if bare.parse::<std::net::IpAddr>().is_ok() {
            return Err("it is an address, not a name");
        }
        if !self.directory.contains(".letsencrypt.org/") {
            return Ok(());
        }
        let below = |top: &&&str| host.strip_suffix(**top).is_some_and(|h| h.ends_with('.'));
        match RESERVED.iter().find(below) {
            None if host.contains('.') => Ok(()),
            _ => Err("it is not a public name"),
        }
    }
}

/// `[memory]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryConfig {
    /// The ceiling of the cache's memory.
    pub size: MemorySize,
    /// The location of the setting.
    pub place: ConfigLocation,
}

/// A directory or a socket that the configuration names and another program creates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedPath {
    /// The setting.
    pub setting: String,
    /// An absolute path.
    pub path: PathBuf,
    /// The location of the setting.
    pub place: ConfigLocation,
}

/// A host that a setting names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedHost {
    /// The setting.
    pub setting: String,
    /// A name or an IP literal; IPv6 without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The location of the setting.
    pub place: ConfigLocation,
}

/// A ceiling for the memory cache. [`crate::sizing::Machine::memory_bytes`] converts it to bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemorySize {
    /// Half of the memory of the machine or its control group.
    #[default]
    Auto,
    /// So many bytes.
    Bytes(u64),
    /// So many hundredths of the memory of the machine or its control group.
    Percent(u8),
}

impl fmt::Display for MemorySize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Bytes(bytes) => Bytes(*bytes).fmt(f),
            Self::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

/// `[disk]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskConfig {
    /// The volumes, at least one.
    pub volumes: Vec<DiskVolume>,
    /// The selection of responses that sink to disk when they leave memory.
    pub admission: Admission,
    /// A purge is confirmed when it is on the disk; otherwise it is written within a second.
    pub durable_purges: bool,
    /// Bytes of purged responses are overwritten.
    pub erase: bool,
}

/// One volume of the disk cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskVolume {
    /// Its directory, an absolute path.
    pub path: PathBuf,
    /// Bytes that it may take.
    pub bytes: u64,
    /// The weight of each of its bytes, relative to the other volumes'.
    pub weight: u32,
    /// The name in VCL: varnishd's `-s NAME=file,...`.
    pub name: Option<String>,
    /// The location of the volume.
    pub place: ConfigLocation,
}

impl DiskVolume {
    /// Smallest volume: its store has 64 small segments.
    pub const BYTES_MIN: u64 = 256 << 20;
    /// Largest volume: 2^20 segments of 64 MiB.
    pub const BYTES_MAX: u64 = 64 << 40;
    /// Largest weight.
    pub const WEIGHT_MAX: u32 = 100;

    /// The share of stored responses, in proportion to the other volumes': by size and weight.
    pub fn share(&self) -> u32 {
        let size = u32::try_from(self.bytes / Self::BYTES_MIN).unwrap_or(u32::MAX);
        size.saturating_mul(self.weight).max(1)
    }
}

/// The selection of responses that sink to disk when they leave memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Admission {
    /// Responses that were hit at least once.
    #[default]
    Hit,
    /// Everything.
    All,
}

/// `[admin]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminConfig {
    /// Addresses besides the socket, of this machine only; `None` for none.
    pub listen: Option<ListenSpec>,
    /// The folder of the tokens; `None` for the default.
    pub tokens: Option<PathBuf>,
    /// Hosts that are accepted besides the machine's own names.
    pub hosts: Vec<String>,
    /// `/metrics` needs no token.
    pub open_metrics: bool,
    /// Permissions of the socket's file.
    pub socket_mode: u32,
    /// The file of the audit log.
    pub audit: Option<PathBuf>,
    /// Minutes of the dashboard's history.
    pub history_minutes: usize,
    /// The folder of the documentation's pages; `None` if they are not served.
    pub docs: Option<PathBuf>,
}

impl Default for AdminConfig {
    fn default() -> Self {
        Self {
            listen: None,
            tokens: None,
            hosts: Vec::new(),
            open_metrics: false,
            socket_mode: 0o600,
            audit: None,
            history_minutes: 24 * 60,
            docs: Some("/usr/share/doc/larder/html".into()),
        }
    }
}

/// `[health]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HealthConfig {
    /// Addresses for health checks besides the admin listener; `None` for none.
    pub listen: Option<ListenSpec>,
    /// The daemon is not ready while a site's origins are all down and nothing of the site is
    /// stored.
    pub tells_of_origins: bool,
}

/// `[metrics]`. Clients present a token, a certificate, or both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetricsConfig {
    /// The addresses, with or without TLS.
    pub listen: ListenSpec,
    /// The file with the token of its clients.
    pub token: Option<PlacedPath>,
    /// The check of its clients' certificates.
    pub client: Option<ClientFiles>,
    /// The certificates; those of `[tls]` if empty.
    pub pairs: Certificates,
}

/// The secret that clients of the CLI must know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CliSecret {
    /// No secret: only if all addresses are loopback ones.
    None,
    /// A secret that the daemon generates, in a file beside the admin socket.
    Own,
    /// The content of this file.
    File(PlacedPath),
}

/// `[varnish_cli]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VarnishCli {
    /// The addresses.
    pub listen: ListenSpec,
    /// The secret of its clients.
    pub secret: CliSecret,
}

/// `[htcp]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Htcp {
    /// The addresses.
    pub listen: ListenSpec,
    /// The clients that are accepted.
    pub allow: CidrSet,
    /// The interface through which multicast groups are joined; `None` for the routed one.
    pub interface: Option<String>,
}

/// `[tracing]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Tracing {
    /// The collector.
    pub server: ServerConfig,
    /// TLS to it; `None` without TLS.
    pub tls: Option<OriginTls>,
    /// The path in front of [`Tracing::END`].
    pub path: String,
    /// Fields of each request to it.
    pub headers: Vec<(FieldName, FieldSource)>,
    /// Request bodies are gzip-coded.
    pub gzip: bool,
    /// The share of requests that begin a trace, from 0 to 1.
    pub sample: f64,
}

impl Tracing {
    /// The end of the URL that a collector takes traces at (OTLP, "OTLP/HTTP Request").
    pub const END: &str = "/v1/traces";
}

/// `[webhook]`.
#[derive(Clone, Debug, PartialEq)]
pub struct WebhookConfig {
    /// The receiver's URL.
    pub url: HttpsUrl,
    /// The authorities of its certificate; the system's without a file.
    pub ca: Option<PlacedPath>,
    /// The location of the URL.
    pub place: ConfigLocation,
}

/// The source of a field's value, which may be a secret.
#[derive(Clone, PartialEq, Eq)]
pub enum FieldSource {
    /// The value itself.
    Text(FieldValue),
    /// A file with the value.
    File(PlacedPath),
}

impl fmt::Debug for FieldSource {
    /// Omits the value.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(_) => f.write_str("Text(..)"),
            Self::File(file) => f.debug_tuple("File").field(&file.path).finish(),
        }
    }
}

/// The access log: its destination and format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessLog {
    /// The destination.
    pub target: LogTarget,
    /// The format of lines.
    pub format: LogFormat,
    /// Values of credential fields are logged unmasked.
    pub secrets: bool,
}

/// The error log: its destination and level.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorLog {
    /// The destination; `None` for standard error.
    pub target: Option<LogTarget>,
    /// The least severe level that is logged.
    pub level: Priority,
}

/// The account of a daemon that root has started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceAccount {
    /// The user's name; `None` for the default.
    pub user: Option<String>,
    /// The group's name; `None` for the user's.
    pub group: Option<String>,
    /// The location of the table.
    pub place: Option<ConfigLocation>,
}

/// The ring in which the last transactions' records are kept for other processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRing {
    /// Bytes of all cores' rings together.
    pub size: u64,
    /// The folder of the rings; `None` for the default.
    pub folder: Option<PathBuf>,
    /// Request fields whose values records keep.
    pub headers: Vec<String>,
    /// Records of requests that asked an origin keep evidence for advice.
    pub evidence: bool,
    /// The responses of one in so many pages get fingerprints at a time; 0 for none.
    pub fingerprint_one_in: u32,
}

impl Default for LogRing {
    fn default() -> Self {
        let headers = ["Referer", "User-Agent"].map(str::to_owned).to_vec();
        let (evidence, fingerprint_one_in) = (true, 5);
        Self { size: 32 << 20, folder: None, headers, evidence, fingerprint_one_in }
    }
}

/// The destination of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogTarget {
    /// Standard output.
    Stdout,
    /// A file that is appended to.
    File(PathBuf),
    /// A syslog daemon at this unix socket.
    SyslogPath(PathBuf),
    /// A syslog daemon behind this address, by UDP.
    SyslogAddress(SocketAddr),
}

/// The form of an access log's lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// NCSA combined, as Apache's and nginx's.
    #[default]
    Combined,
    /// One JSON object per line.
    Json,
    /// Lines of this format, an [`observe::Pattern`]; values may be escaped for JSON.
    Custom {
        /// The format.
        text: String,
        /// The escaping.
        json: bool,
    },
}

/// Contents of Cache-Status in responses (RFC 9211).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheStatus {
    /// Nothing.
    Off,
    /// Hit or the reason for forwarding, and the remaining lifetime.
    #[default]
    On,
    /// Also the rule that decided, as a detail.
    Detail,
}

/// The source of the VCL for sites that name none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Programs {
    /// No program: settings decide.
    #[default]
    None,
    /// This file.
    File(PlacedPath),
    /// varnishd's flags, and its CLI.
    Flags,
}

/// One site.
#[derive(Clone, Debug, Default)]
pub struct SiteConfig {
    /// The site's own VCL.
    pub vcl: Option<PlacedPath>,
    /// The VCL stands beside the site's settings, and its subroutines run before and after their
    /// steps. Otherwise it decides in place of all settings but TLS and guards.
    pub is_beside: bool,
    /// Its hosts in canonical form, for [`policy::HostTable::insert`]; at least one.
    pub hosts: Vec<String>,
    /// Its origins, as indices into [`Config::origins`]; [`policy::Notes::origin`] is an index into
    /// this.
    pub origins: Vec<usize>,
    /// Its roots of files; [`policy::ReceiveVerdict::Files`] is an index into this.
    pub files: Vec<files::Config>,
    /// Its presets, in the order of the file.
    pub presets: Vec<&'static str>,
    /// Rules that [`policy::Declared`] is built from.
    pub rules: SiteRules,
    /// Its certificates.
    pub tls: SiteTls,
    /// Strict-Transport-Security of responses over HTTPS (RFC 6797).
    pub hsts: Option<String>,
    /// The clients that may purge the site, and their dialects; `None` if no client may.
    pub purge: Option<Purge>,
    /// HTCP may purge the site: not with `purge = false`, nor if a token is required.
    pub by_htcp: bool,
    /// Responses have Server-Timing.
    pub server_timing: bool,
    /// Clients see the fields with surrogate keys.
    pub shows_tags: bool,
    /// Clients see Surrogate-Control.
    pub shows_surrogate_control: bool,
    /// Its own error pages, each for one status.
    pub error_pages: Vec<PageFile>,
    /// The user files that it names.
    pub users: Vec<PlacedPath>,
    /// The files of redirects that it names.
    pub redirect_maps: Vec<PlacedPath>,
    /// The processing of its pages with includes.
    pub includes: Includes,
    /// The compression of its bodies.
    pub compress: CompressionScope,
    /// Every request goes to the origin, and the cache only watches.
    pub observes: bool,
    /// Fetches before a visitor asks.
    pub warm: WarmConfig,
}
