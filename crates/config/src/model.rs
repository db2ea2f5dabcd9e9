//! The configuration as the rest of the program uses it: read, checked, every default filled in.

use std::fmt;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use base::Limits;
use base::logging::Priority;
use base::units::Bytes;
use codec::{Compression, CompressionScope};
use message::Status;
use origin::{OriginConfig, ServerConfig};
use policy::acl::{CidrSet, Net};
use policy::forwarded::ClientField;
use policy::headers::{FieldName, FieldValue};
use policy::{Includes, Profile, Purge, SiteRules};

use crate::diagnostic::{Diagnostic, Severity, SourceText};

mod cluster;

pub use cluster::{
    ClusterConfig, ClusterCredentials, Isolation, NeighbourConfig, NeighbourTransport,
};

/// A whole configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where clients connect; at least one.
    pub listen: Vec<ListenSpec>,
    /// The proxies in front that are believed, and let through to listeners with `proxy`.
    pub trusted_proxies: Vec<Net>,
    /// Where they say who the client is.
    pub client_field: ClientField,
    /// Origins get Forwarded (RFC 7239), too.
    pub forwarded: bool,
    /// TLS clients may speak HTTP/2.
    pub http2: bool,
    /// A request target may contain UTF-8 as it is.
    pub raw_utf8: bool,
    /// A path that is answered where no site is asked.
    pub health_check: Option<String>,
    /// Core threads; `None` for one per usable core ([`crate::sizing::Machine::default_workers`]).
    pub workers: Option<usize>,
    /// Defaults of sites that do not choose their own.
    pub profile: Profile,
    /// The memory cache.
    pub memory: MemoryConfig,
    /// The cache on disk; `None` without `[disk]`.
    pub disk: Option<DiskConfig>,
    /// The admin listener.
    pub admin: AdminConfig,
    /// The daemon's health: how it is told, and where.
    pub health: HealthConfig,
    /// The listener for Prometheus alone; `None` if it is absent.
    pub metrics: Option<MetricsConfig>,
    /// The port that speaks Varnish's CLI; `None` if it is absent.
    pub varnish_cli: Option<VarnishCli>,
    /// The port that takes HTCP; `None` if it is absent.
    pub htcp: Option<Htcp>,
    /// The cluster that the node is part of; `None` if it is alone.
    pub cluster: Option<ClusterConfig>,
    /// Other caches that are told of what is invalidated.
    pub neighbours: Vec<NeighbourConfig>,
    /// Traces; `None` when trace context is passed on as it is.
    pub tracing: Option<Tracing>,
    /// Compression, for sites without a VCL.
    pub compression: Compression,
    /// Directories of files and scripts, by all the settings that name one.
    pub folders: Vec<NamedPath>,
    /// Sockets of origins.
    pub sockets: Vec<NamedPath>,
    /// Servers of origins that are named by a host and a port.
    pub hosts: Vec<NamedHost>,
    /// The VCL of sites that name none themselves.
    pub vcl: Programs,
    /// Limits in force.
    pub limits: Limits,
    /// As whom the daemon runs that root has started.
    pub run: ServiceAccount,
    /// Where requests are logged; `None` when they are not.
    pub access_log: Option<AccessLog>,
    /// Where it is said what happens to the daemon itself.
    pub error_log: ErrorLog,
    /// The ring of records that `larder log` and others read; `None` when it is off.
    pub log_ring: Option<LogRing>,
    /// Every origin that a site uses, and those that none does.
    pub origins: Vec<OriginConfig>,
    /// TLS to the origins, in the order of `origins`; `None` for one without `https://` servers.
    pub origin_tls: Vec<Option<OriginTls>>,
    /// The sites, in the order of the file.
    pub sites: Vec<SiteConfig>,
    /// The certificates of sites without their own, and of clients that name no site.
    pub certificates: Certificates,
    /// Certificates from an authority, for hosts that have none in files.
    pub acme: Option<AcmeConfig>,
    /// Handshakes show an authority's statement that the certificate is good (OCSP stapling).
    pub ocsp: bool,
    /// Responses have `X-Cache: HIT` or `X-Cache: MISS`.
    pub x_cache: bool,
    /// Contents of Cache-Status in responses.
    pub cache_status: CacheStatus,
    /// The pseudonym in Via and Cache-Status (RFC 9110 7.6.3), a token.
    pub via: String,
}

impl Default for Config {
    /// The configuration where nothing is said; without any listener, origin or site.
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
            compression: Compression::default(),
            folders: Vec::new(),
            sockets: Vec::new(),
            hosts: Vec::new(),
            vcl: Programs::None,
            limits: Limits::default(),
            run: ServiceAccount::default(),
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
    /// Addresses that `text` stands for. `:80` is two, `0.0.0.0` and `[::]`, the latter for IPv6
    /// only. Empty for a unix socket (`path`) and for sockets that are handed over (`given`).
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

/// A place in the file, for what turns out to be wrong only when it is used.
#[derive(Clone, Debug)]
pub struct ConfigLocation {
    /// The file.
    pub file: Arc<SourceText>,
    /// Where in it, in bytes.
    pub span: Range<usize>,
}

impl PartialEq for ConfigLocation {
    /// A setting is the same wherever it is written.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for ConfigLocation {}

impl ConfigLocation {
    /// No place: the command line's.
    pub(crate) fn nowhere() -> Self {
        let file = SourceText { name: String::new(), text: String::new() };
        Self { file: Arc::new(file), span: 0..0 }
    }

    /// An error there.
    pub fn error(&self, message: String) -> Diagnostic {
        self.say(Severity::Error, message)
    }

    /// A warning there.
    pub fn warning(&self, message: String) -> Diagnostic {
        self.say(Severity::Warning, message)
    }

    fn say(&self, severity: Severity, message: String) -> Diagnostic {
        let is_in_file = !self.file.name.is_empty();
        let (file, span) = (Arc::clone(&self.file), is_in_file.then(|| self.span.clone()));
        Diagnostic { severity, message, span, related: None, help: None, file }
    }
}

/// A certificate's file and its key's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairFiles {
    /// The certificate and its chain, PEM.
    pub cert: PathBuf,
    /// Where that is written.
    pub cert_place: ConfigLocation,
    /// The private key, PEM.
    pub key: PathBuf,
    /// Where that is written.
    pub key_place: ConfigLocation,
}

/// Several pairs for the same names.
pub type Certificates = Vec<PairFiles>;

/// The check of the certificates of a site's clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientFiles {
    /// The authorities, PEM.
    pub ca: PathBuf,
    /// Where that is written.
    pub place: ConfigLocation,
    /// A client must have a certificate.
    pub required: bool,
    /// Origins are told of the certificate in X-SSL-Client-Verify, -S-DN and -Fingerprint.
    pub tells_x_ssl: bool,
    /// Origins are told of the certificate in Client-Cert (RFC 9440).
    pub tells_client_cert: bool,
}

/// `[origin.tls]`, and its defaults for origins with `https://` servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginTls {
    /// The authorities trusted, PEM; `None` for the system's.
    pub ca: Option<PlacedPath>,
    /// A certificate to show.
    pub pair: Option<PairFiles>,
    /// The name to ask for and verify; the server's own when not set.
    pub sni: Option<String>,
    /// Certificates of origins are verified.
    pub verify: bool,
    /// Where it is written.
    pub place: ConfigLocation,
}

/// `[site.tls]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SiteTls {
    /// Its certificates; with none, those of `[tls]`.
    pub pairs: Certificates,
    /// The check of its clients' certificates; `None` admits every client.
    pub client: Option<ClientFiles>,
    /// The site's choice about ordered certificates. `None` if the site makes none: certificates
    /// are then ordered if `pairs` is empty.
    pub acme: Option<bool>,
}

/// One of `error_pages`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageFile {
    /// The status, of an error.
    pub status: Status,
    /// The file with the page.
    pub path: PathBuf,
    /// Where it is written.
    pub place: ConfigLocation,
}

/// `[tls.acme]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcmeConfig {
    /// Where the authority may write to.
    pub email: Option<String>,
    /// URL of its directory.
    pub directory: String,
    /// The authorities, PEM, that must have signed the directory's certificate; `None` for the
    /// system's.
    pub ca: Option<PlacedPath>,
    /// Where the account and the certificates are kept.
    pub storage: PathBuf,
    /// Ways to prove control of a name, the preferred one first.
    pub challenges: Vec<AcmeChallenge>,
    /// The account elsewhere that this one is bound to.
    pub binding: Option<AcmeBinding>,
    /// Where it is written.
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
    /// The account's name there.
    pub key_id: String,
    /// The secret, decoded.
    pub hmac: Vec<u8>,
}

impl fmt::Debug for AcmeBinding {
    /// Without the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AcmeBinding").field("key_id", &self.key_id).finish_non_exhaustive()
    }
}

impl AcmeConfig {
    /// Returns true if the site's hosts get their certificates from this authority.
    pub fn is_for(&self, site: &SiteConfig) -> bool {
        site.tls.pairs.is_empty() && site.tls.acme != Some(false)
    }

    /// Checks that a certificate can be ordered for a site's host.
    ///
    /// # Errors
    /// Why not.
    pub fn may_order(&self, host: &str) -> Result<(), &'static str> {
        /// Names that belong to nobody, or to every house of its own (RFC 2606, 6761, 6762, 8375).
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
    /// Ceiling of what the cache takes.
    pub size: MemorySize,
    /// Where it is written.
    pub place: ConfigLocation,
}

/// A file that a setting names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedPath {
    /// Its path.
    pub path: PathBuf,
    /// Where it is written.
    pub place: ConfigLocation,
}

impl PlacedPath {
    /// An error where the file is named: the reason for which it cannot be used.
    pub fn error(&self, why: impl fmt::Display) -> Diagnostic {
        self.place.error(format!("{}: {why}", self.path.display()))
    }
}

/// A directory or a socket that the configuration names and that is another's to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedPath {
    /// The setting.
    pub setting: String,
    /// An absolute path.
    pub path: PathBuf,
    /// Where it is written.
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
    /// Where it is written.
    pub place: ConfigLocation,
}

/// A ceiling for the memory cache. [`crate::sizing::Machine::memory_bytes`] makes bytes of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemorySize {
    /// Half of what the machine or its control group has.
    #[default]
    Auto,
    /// So many bytes.
    Bytes(u64),
    /// So many hundredths of what the machine or its control group has.
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
    /// The part of all that leaves memory that goes there.
    pub admission: Admission,
    /// A purge is answered when it is on the disk; else it is there a second later.
    pub durable_purges: bool,
    /// Bytes of what is purged are overwritten.
    pub erase: bool,
}

/// One volume of the disk cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskVolume {
    /// Its directory, an absolute path.
    pub path: PathBuf,
    /// Bytes that it may take.
    pub bytes: u64,
    /// Its share for each byte, relative to the other volumes'.
    pub weight: u32,
    /// The name under which a VCL knows it: varnishd's `-s NAME=file,...`.
    pub name: Option<String>,
    /// Where it is written.
    pub place: ConfigLocation,
}

impl DiskVolume {
    /// Fewest bytes: of so many a store has 64 small segments.
    pub const BYTES_MIN: u64 = 256 << 20;
    /// Most bytes: 2^20 segments of 64 MiB.
    pub const BYTES_MAX: u64 = 64 << 40;
    /// Largest weight.
    pub const WEIGHT_MAX: u32 = 100;

    /// Its share of what is stored, in proportion to the other volumes': by its size and weight.
    pub fn share(&self) -> u32 {
        let size = u32::try_from(self.bytes / Self::BYTES_MIN).unwrap_or(u32::MAX);
        size.saturating_mul(self.weight).max(1)
    }
}

/// The part of all that leaves memory that goes to disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Admission {
    /// Responses that were asked for more than once.
    #[default]
    Hit,
    /// Everything.
    All,
}

/// `[admin]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminConfig {
    /// Addresses to listen on besides the socket, this machine's own; `None` for none.
    pub listen: Option<ListenSpec>,
    /// Folder of the tokens; `None` for the usual one.
    pub tokens: Option<PathBuf>,
    /// Names under which it may be asked besides this machine's own.
    pub hosts: Vec<String>,
    /// `/metrics` needs no token.
    pub open_metrics: bool,
    /// Permissions of the socket's file.
    pub socket_mode: u32,
    /// File to which changes are written.
    pub audit: Option<PathBuf>,
    /// Minutes that the dashboard's charts reach back.
    pub history_minutes: usize,
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
        }
    }
}

/// `[health]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HealthConfig {
    /// Addresses where health is told besides the admin listener; `None` for none.
    pub listen: Option<ListenSpec>,
    /// It is not ready while a site's origins are all down and nothing of the site is stored.
    pub tells_of_origins: bool,
}

/// `[metrics]`. Clients show a token, a certificate, or both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetricsConfig {
    /// Where it listens: addresses only, perhaps with TLS.
    pub listen: ListenSpec,
    /// The file with the token of its clients, and where it is named.
    pub token: Option<PlacedPath>,
    /// The check of its clients' certificates.
    pub client: Option<ClientFiles>,
    /// Its own certificates; with none, those of `[tls]`.
    pub pairs: Certificates,
}

/// The secret that clients of the CLI must know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CliSecret {
    /// Nothing: only where all addresses are loopback ones.
    None,
    /// A secret that the daemon makes by itself, in a file beside the admin socket.
    Own,
    /// The content of this file, and the place where the file is named.
    File(PlacedPath),
}

/// `[varnish_cli]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VarnishCli {
    /// Where it listens: addresses only.
    pub listen: ListenSpec,
    /// The secret that its clients must know.
    pub secret: CliSecret,
}

/// `[htcp]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Htcp {
    /// Where it listens: addresses only.
    pub listen: ListenSpec,
    /// Whose datagrams count.
    pub allow: CidrSet,
    /// The interface through which multicast groups are joined; the routes' where it is absent.
    pub interface: Option<String>,
}

/// `[tracing]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Tracing {
    /// The collector.
    pub server: ServerConfig,
    /// TLS to it; `None` if it speaks none.
    pub tls: Option<OriginTls>,
    /// The path in front of [`Tracing::END`].
    pub path: String,
    /// Fields of each request to it.
    pub headers: Vec<(FieldName, FieldSource)>,
    /// Requests to it are coded by gzip.
    pub gzip: bool,
    /// The share of requests for which a trace is begun, from 0 to 1.
    pub sample: f64,
}

impl Tracing {
    /// The end of the URL that a collector takes traces at (OTLP, "OTLP/HTTP Request").
    pub const END: &str = "/v1/traces";
}

/// The source of a field's value, which may be a secret.
#[derive(Clone, PartialEq, Eq)]
pub enum FieldSource {
    /// The value itself.
    Text(FieldValue),
    /// A file that has the value, and the place where the file is named.
    File(PlacedPath),
}

impl fmt::Debug for FieldSource {
    /// Without the value.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(_) => f.write_str("Text(..)"),
            Self::File(file) => f.debug_tuple("File").field(&file.path).finish(),
        }
    }
}

/// Where requests are logged, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessLog {
    /// Where to.
    pub target: LogTarget,
    /// In what form.
    pub format: LogFormat,
    /// Values of fields that let somebody in are as they are.
    pub secrets: bool,
}

/// Where the daemon says what happens to it, and how much of that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorLog {
    /// Where to; `None` for standard error.
    pub target: Option<LogTarget>,
    /// The least weighty that is said.
    pub level: Priority,
}

/// As whom the daemon runs that root has started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceAccount {
    /// The user's name; `None` for the usual one.
    pub user: Option<String>,
    /// The group's name; `None` for the user's.
    pub group: Option<String>,
    /// Where the table is written.
    pub place: Option<ConfigLocation>,
}

/// The ring in which the last transactions' records are kept for other processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRing {
    /// Bytes of all cores' rings together.
    pub size: u64,
    /// Where they are; `None` for a folder that goes with the admin socket.
    pub folder: Option<PathBuf>,
    /// Request fields whose values records keep.
    pub headers: Vec<String>,
}

impl Default for LogRing {
    fn default() -> Self {
        let headers = ["Referer", "User-Agent"].map(str::to_owned).to_vec();
        Self { size: 32 << 20, folder: None, headers }
    }
}

/// Where an access log goes.
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
    /// Lines of this format, which is one of [`observe::Pattern`]'s; its values may be escaped for
    /// JSON.
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
    /// Hit or why forwarded, and the remaining lifetime.
    #[default]
    On,
    /// Also the detail that names the rule which decided.
    Detail,
}

/// Where the VCL comes from that decides for sites which name none themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Programs {
    /// No program: settings decide.
    #[default]
    None,
    /// This file, and where it is named.
    File(PlacedPath),
    /// varnishd's flags, and its CLI.
    Flags,
}

/// One site.
#[derive(Clone, Debug, Default)]
pub struct SiteConfig {
    /// Its own VCL, which decides in the place of everything that follows but TLS; and where it is
    /// named.
    pub vcl: Option<PlacedPath>,
    /// Its hosts in canonical form, for [`policy::HostTable::insert`]; at least one.
    pub hosts: Vec<String>,
    /// Its origins, as indices into [`Config::origins`]; [`policy::Notes::origin`] is an index into
    /// this.
    pub origins: Vec<usize>,
    /// Its roots of files; [`policy::ReceiveVerdict::Files`] is an index into this.
    pub files: Vec<files::Config>,
    /// Its presets, in its order.
    pub presets: Vec<&'static str>,
    /// Rules that [`policy::Declared`] is built from.
    pub rules: SiteRules,
    /// Its certificates.
    pub tls: SiteTls,
    /// Strict-Transport-Security of responses over HTTPS (RFC 6797).
    pub hsts: Option<String>,
    /// The clients that may purge the site, and their dialects; `None` if no client may.
    pub purge: Option<Purge>,
    /// HTCP's datagrams purge the site: not with `purge = false`, nor if a token is required.
    pub by_htcp: bool,
    /// Responses have Server-Timing.
    pub server_timing: bool,
    /// Clients see the fields with surrogate keys.
    pub shows_tags: bool,
    /// Clients see Surrogate-Control.
    pub shows_surrogate_control: bool,
    /// Its own error pages, each for one status.
    pub error_pages: Vec<PageFile>,
    /// Files of users that it names, and where.
    pub users: Vec<PlacedPath>,
    /// Its pages that are put together of others.
    pub includes: Includes,
    /// Its bodies that are coded here.
    pub compress: CompressionScope,
}
