//! Configuration of an origin: its servers, their balancing, and every limit.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base::Limits;
use bytes::Bytes;
use fastcgi::params::AddedParameter;
use fastcgi::script::ScriptRules;

use crate::pace::LookupPace;
use crate::reserved_addresses::ReservedAddresses;
use crate::retry::{RetryOn, Statuses};

/// An origin: one or more servers with equal content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginConfig {
    /// Name in settings, logs and messages.
    pub name: String,
    /// The servers, in the configured order.
    pub servers: Vec<ServerConfig>,
    /// The rule that selects a server.
    pub balance: Balance,
    /// Active probing; without it, servers are judged by their requests.
    pub probe: Option<ProbeConfig>,
    /// Host field sent to the servers; the client's if not set.
    pub host_header: Option<String>,
    /// Host field of requests that have none (Varnish: `.host_header`, or else `.host`).
    pub host_default: Option<String>,
    /// The first bytes of every connection.
    pub opening: Opening,
    /// Timeouts of the steps of an exchange, unless the request has its own.
    pub timeouts: Timeouts,
    /// The most exchanges with one server, over all cores, without idle connections (as nginx's
    /// `max_conns` and Varnish's `max_connections`). 0: no limit.
    pub max_connections: u32,
    /// The share of these exchanges for a client without competition, in percent. It shrinks with
    /// the number of free ones; further exchanges of the client wait. 100: no limit.
    pub client_share_percent: u32,
    /// The most requests that wait for a connection of one server, over all cores.
    pub queue: u32,
    /// The timeout of this wait, in milliseconds.
    pub queue_timeout_ms: u64,
    /// The most retries of one request.
    pub retries: u32,
    /// Failures and statuses after which a request is retried.
    pub retry_on: RetryOn,
    /// Retries as a share of all requests to this origin, in percent.
    pub retry_budget_percent: u32,
    /// Idle connections kept per server and core.
    pub idle_max: u32,
    /// The time for which an idle connection is kept, in milliseconds.
    pub idle_timeout_ms: u64,
    /// Passive ejection.
    pub eject: EjectConfig,
    /// The time from a server's recovery to its full share of the requests, in milliseconds: the
    /// share grows linearly (HAProxy: `slowstart`, nginx: `slow_start`).
    pub slow_start_ms: u64,
    /// A body that ends with its connection, by FIN or over TLS by close_notify, counts as complete
    /// and may be stored.
    pub store_close_delimited: bool,
    /// The version of HTTP that its servers are spoken to in.
    pub http: HttpVersion,
    /// LF alone ends a line of its servers' response heads (RFC 9112 2.2), as old CGI programs send
    /// it.
    pub lenient: bool,
    /// Settings of FastCGI scripts; without them no script is run.
    pub scripts: Option<ScriptsConfig>,
    /// Files that answer in front of HTTP servers (nginx: `try_files $uri @application`).
    pub files: Option<files::Config>,
    /// Permitted X-Accel-* fields and X-Sendfile; without these settings they have no effect.
    pub accel: Option<AccelConfig>,
    /// TLS to its `https://` servers; without it they cannot be connected to.
    pub tls: Option<TlsConfig>,
    /// The schedule of lookups of its servers' names.
    pub lookups: Lookups,
    /// The pace of these lookups if clients choose the names. Such a name that was never found is
    /// looked up once.
    pub pace: Option<Arc<LookupPace>>,
    /// Addresses that must not be connected to.
    pub reserved: Arc<ReservedAddresses>,
}

/// The schedule of name lookups, which are at least a second apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lookups {
    /// The source of an answer's time to live.
    pub from: LookupTtl,
    /// The time for [`LookupTtl`], in milliseconds.
    pub ttl_ms: u64,
    /// The time from a failed lookup to the next, in milliseconds.
    pub retry_ms: u64,
}

impl Default for Lookups {
    /// The answer's own time to live, up to an hour; retries after three seconds.
    fn default() -> Self {
        Self { from: LookupTtl::Min, ttl_ms: 3_600_000, retry_ms: 3_000 }
    }
}

/// The source of the time to live of a DNS answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookupTtl {
    /// [`Lookups::ttl_ms`].
    Own,
    /// The answer.
    Answer,
    /// The shorter of the two.
    Min,
    /// The longer of the two.
    Max,
}

impl Lookups {
    /// The time to live of an answer that has `ttl` itself.
    pub(crate) fn pause(self, ttl: Duration) -> Duration {
        let own = Duration::from_millis(self.ttl_ms);
        let pause = match self.from {
            LookupTtl::Own => own,
            LookupTtl::Answer => ttl,
            LookupTtl::Min => ttl.min(own),
            LookupTtl::Max => ttl.max(own),
        };
        pause.max(LOOKUP_PAUSE_MIN)
    }

    /// The time from a failed lookup to the next.
    pub(crate) fn retry(self) -> Duration {
        Duration::from_millis(self.retry_ms).max(LOOKUP_PAUSE_MIN)
    }
}

/// Shortest time between two lookups of one name.
const LOOKUP_PAUSE_MIN: Duration = Duration::from_secs(1);

/// The opening of a connection to a server, before any request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Opening {
    /// The first bytes.
    pub preamble: Bytes,
    /// The PROXY protocol header behind them, which names the client. A connection then carries one
    /// request.
    pub proxy: Option<ProxyHeader>,
}

/// Versions of the PROXY protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyHeader {
    /// Version 1, a line of text.
    V1,
    /// Version 2, binary.
    V2,
}

/// Fields of an origin's responses that instruct the proxy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccelConfig {
    /// X-Accel-Expires and X-Accel-Charset have effect.
    pub expires: bool,
    /// Locations that X-Accel-Redirect may lead to.
    pub redirects: Vec<files::Config>,
    /// Directories with files that X-Sendfile may name.
    pub sendfile: Vec<files::Config>,
}

/// The scripts of a FastCGI origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptsConfig {
    /// The document root, an absolute path.
    pub root: PathBuf,
    /// Directories outside the root that its links may lead to.
    pub linked: Vec<PathBuf>,
    /// Rules that map a path to a script.
    pub rules: ScriptRules,
    /// Settings of files other than scripts; without them such files are not served.
    pub files: Option<files::Config>,
    /// Parameters that every script gets besides those of the request.
    pub params: Arc<[AddedParameter]>,
}

/// TLS to an origin's servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsConfig {
    /// Trusted authorities, and the client certificate.
    pub upstream: tls::Upstream,
    /// The name for SNI and verification; each server's own if not set.
    pub name: Option<String>,
}

/// One server of an origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// Its address.
    pub address: Address,
    /// The protocol that it speaks.
    pub protocol: Protocol,
    /// Its share of the requests relative to the other servers'; 0 counts as 1.
    pub weight: u32,
    /// It gets requests only while no other server is in use, and those that the others have failed
    /// (nginx and HAProxy: `backup`).
    pub backup: bool,
    /// It speaks TLS.
    pub tls: bool,
}

/// A protocol that a server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Protocol {
    /// HTTP/1.1.
    #[default]
    Http,
    /// FastCGI 1.0, as PHP-FPM does.
    FastCgi,
}

/// The version of HTTP towards a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum HttpVersion {
    /// HTTP/1.1.
    #[default]
    Http11,
    /// HTTP/2. Without TLS, the server must know it (RFC 9113 3.3).
    Http2,
    /// Over TLS the one that the server chooses (RFC 7301), otherwise HTTP/1.1.
    Auto,
}

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// A TCP port.
    Tcp {
        /// A name or an IP literal; IPv6 without brackets.
        host: String,
        /// The port.
        port: u16,
    },
    /// A TCP port whose addresses were resolved once, as in Varnish.
    Fixed {
        /// Its name in messages.
        name: String,
        /// Its addresses, in the order of connection attempts.
        addresses: Vec<SocketAddr>,
    },
    /// A unix stream socket.
    Unix(PathBuf),
}

impl Address {
    /// The path of a unix socket; `None` for other addresses.
    pub fn socket(&self) -> Option<&Path> {
        match self {
            Self::Unix(path) => Some(path),
            Self::Tcp { .. } | Self::Fixed { .. } => None,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
            Self::Fixed { name, .. } => f.write_str(name),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// The rule that selects one of the available servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Balance {
    /// In turn, by weight (nginx's smooth weighted round robin).
    #[default]
    RoundRobin,
    /// To the server with the fewest exchanges under way, by weight (nginx's `least_conn`).
    LeastRequests,
    /// By the request's hash and by weight: equal hashes go to one server while it is available,
    /// and a server that leaves moves only its own share (rendezvous hashing).
    Hash,
}

/// Active probing, with window and threshold as in Varnish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeConfig {
    /// Target of the probe's GET.
    pub path: String,
    /// The gRPC service to check by `grpc.health.v1`, instead of a GET; empty for the whole server.
    pub grpc: Option<String>,
    /// The complete head of the request, instead of one made for `path` (Varnish: `.request`).
    pub request: Option<Vec<u8>>,
    /// Good probes assumed before the first one: they decide until it has ended, as in Varnish. If
    /// not set, requests are sent, and the first probe decides.
    pub initial: Option<u32>,
    /// A response is good only after the server has closed the connection. It is then judged by its
    /// first line only, as in Varnish.
    pub expect_close: bool,
    /// Host field of the probe; the origin's `host_header` or the server's own address if not set.
    pub host: Option<String>,
    /// The time from one probe's start to the next one's, in milliseconds.
    pub interval_ms: u64,
    /// The timeout of one probe from connect to response head, in milliseconds.
    pub timeout_ms: u64,
    /// The number of latest probes that count, 1 to 64.
    pub window: u32,
    /// The number of good probes among them for a healthy server.
    pub threshold: u32,
    /// Status of a good response.
    pub expected_status: u16,
}

impl Default for ProbeConfig {
    /// Varnish's defaults.
    fn default() -> Self {
        Self {
            path: "/".to_owned(),
            grpc: None,
            request: None,
            initial: None,
            expect_close: false,
            host: None,
            interval_ms: 5_000,
            timeout_ms: 2_000,
            window: 8,
            threshold: 3,
            expected_status: 200,
        }
    }
}

/// Timeouts of the steps of an exchange, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Connecting, for all of a name's addresses together.
    pub connect_ms: u64,
    /// From the request's last byte to the end of the response's head.
    pub first_byte_ms: u64,
    /// Between bytes of the response's body, or of the request as the server receives it.
    pub between_bytes_ms: u64,
    /// The whole exchange, including waits and retries.
    pub total_ms: u64,
    /// Holddown of a server after a failed connection.
    pub hold: HolddownTimes,
}

/// Times in which a server is not connected to after a failed connection, in milliseconds; 0 for
/// none. Its requests fail meanwhile. Varnish's `backend_*_error_holddown`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HolddownTimes {
    /// After a local failure: no address left, not permitted.
    pub local_ms: u64,
    /// After a remote failure: refused, no route.
    pub remote_ms: u64,
}

impl HolddownTimes {
    /// The time after a failure of this kind.
    pub(crate) fn after(self, kind: std::io::ErrorKind) -> u64 {
        use std::io::ErrorKind;
        match kind {
            ErrorKind::PermissionDenied | ErrorKind::AddrNotAvailable => self.local_ms,
            ErrorKind::ConnectionRefused | ErrorKind::NetworkUnreachable => self.remote_ms,
            _ => 0,
        }
    }
}

/// Rules for ejecting a server that fails requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EjectConfig {
    /// Consecutive failures that eject it; 0 switches ejection off.
    pub failures: u32,
    /// The time for which it gets no requests, in milliseconds; then one request tries it.
    pub for_ms: u64,
    /// Statuses that count as failures.
    pub statuses: Statuses,
}

impl Default for EjectConfig {
    fn default() -> Self {
        Self { failures: 3, for_ms: 10_000, statuses: Statuses::default() }
    }
}

impl OriginConfig {
    /// An origin with `servers` and the defaults of `limits`.
    ///
    /// Idle connections to FastCGI servers are not kept by default, as in nginx: a worker process
    /// of PHP-FPM serves one connection, and an idle one blocks it for all others.
    pub fn with_limits(name: &str, servers: Vec<ServerConfig>, limits: &Limits) -> Self {
        let fastcgi = servers.iter().any(|server| server.protocol == Protocol::FastCgi);
        Self {
            name: name.to_owned(),
            servers,
            balance: Balance::default(),
            probe: None,
            host_header: None,
            host_default: None,
            opening: Opening::default(),
            timeouts: Timeouts {
                connect_ms: limits.connect_timeout,
                first_byte_ms: limits.first_byte_timeout,
                between_bytes_ms: limits.between_bytes_timeout,
                total_ms: limits.total_timeout,
                hold: HolddownTimes::default(),
            },
            max_connections: clamp(limits.origin_connections),
            client_share_percent: clamp(limits.origin_share),
            queue: clamp(limits.origin_queue),
            queue_timeout_ms: limits.origin_queue_timeout,
            retries: clamp(limits.retries),
            retry_on: RetryOn::default(),
            retry_budget_percent: clamp(limits.retry_budget),
            idle_max: if fastcgi { 0 } else { clamp(limits.origin_idle) },
            idle_timeout_ms: limits.origin_idle_timeout,
            eject: EjectConfig::default(),
            slow_start_ms: 0,
            store_close_delimited: false,
            http: HttpVersion::default(),
            lenient: false,
            scripts: None,
            files: None,
            accel: None,
            tls: None,
            lookups: Lookups::default(),
            pace: None,
            reserved: Arc::default(),
        }
    }
}

fn clamp(limit: u64) -> u32 {
    u32::try_from(limit).unwrap_or(u32::MAX)
}

/// The reason why a server's URL is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerUrlError {
    /// TLS over a unix socket, where there is no network in between.
    Https,
    /// A scheme other than `http://`, `https://`, `unix:`, `http+unix:`, `fastcgi://` and
    /// `fastcgi+unix:`, or a path without one.
    Scheme,
    /// No host, or one that is neither a name nor an IP literal.
    Host,
    /// The port is not a number from 1 to 65535.
    Port,
    /// Something follows the port: a path, a query, user information.
    Extra,
    /// The socket's path is empty, relative, too long for the system, or has a NUL byte.
    Path,
}

impl fmt::Display for ServerUrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Https => "a unix socket needs no TLS: write unix:/path",
            Self::Scheme => {
                "expected [http(s)://]host:port, unix:/path, fastcgi://host:port, fastcgi+unix:"
            }
            Self::Host => "expected a host name or an IP address; IPv6 in brackets",
            Self::Port => "expected a port from 1 to 65535",
            Self::Extra => "expected nothing after host and port: requests keep their own paths",
            Self::Path => "expected an absolute path of at most 107 bytes",
        })
    }
}

impl std::error::Error for ServerUrlError {}

/// Longest path of a unix socket on Linux: `sun_path` has 108 bytes, the last of them NUL.
const SOCKET_PATH_BYTES: usize = 107;

/// The port of PHP-FPM and most other FastCGI servers.
const FASTCGI_PORT: u16 = 9000;

/// Parses a server's URL: `http://host`, `https://host:port`, `http://[::1]:8080`, `unix:/path`,
/// `http+unix:/path`, and these forms with `fastcgi` for `http`. `host:port` alone means HTTP. The
/// default port is the scheme's, or 9000 for FastCGI; the weight is 1.
pub fn parse_server(url: &str) -> Result<ServerConfig, ServerUrlError> {
    let url = url.trim();
    let scheme = |prefix: &str| {
        url.get(..prefix.len())
            .filter(|start| start.eq_ignore_ascii_case(prefix))
            .map(|_| &url[prefix.len()..])
    };
    if scheme("https+unix:").is_some() {
        return Err(ServerUrlError::Https);
    }
    let (protocol, address, tls) = if let Some(path) = scheme("fastcgi+unix:") {
        (Protocol::FastCgi, parse_socket(path)?, false)
    } else if let Some(rest) = scheme("fastcgi://") {
        (Protocol::FastCgi, parse_authority(rest, FASTCGI_PORT)?, false)
    } else if let Some(path) = scheme("http+unix:").or_else(|| scheme("unix:")) {
        (Protocol::Http, parse_socket(path)?, false)
    } else if let Some(rest) = scheme("https://") {
        (Protocol::Http, parse_authority(rest, 443)?, true)
    } else {
        // A path, or an unknown or partial scheme, is not a host name.
        let bare = Some(url).filter(|url| !url.starts_with('/') && !url.contains(":/"));
        let rest = scheme("http://").or(bare).ok_or(ServerUrlError::Scheme)?;
        (Protocol::Http, parse_authority(rest, 80)?, false)
    };
    Ok(ServerConfig { address, protocol, weight: 1, backup: false, tls })
}

fn parse_socket(path: &str) -> Result<Address, ServerUrlError> {
    // `unix:///run/app.sock` is as common as `unix:/run/app.sock`.
    let path = path.strip_prefix("//").filter(|p| p.starts_with('/')).unwrap_or(path);
    let usable = path.starts_with('/')
        && path.len() > 1
        && path.len() <= SOCKET_PATH_BYTES
        && !path.contains('\0');
    if usable { Ok(Address::Unix(PathBuf::from(path))) } else { Err(ServerUrlError::Path) }
}

fn parse_authority(rest: &str, default_port: u16) -> Result<Address, ServerUrlError> {
    let authority = rest.strip_suffix('/').unwrap_or(rest);
    if authority.contains(['/', '?', '#', '@']) {
        return Err(ServerUrlError::Extra);
    }
    let (host, port) = if let Some(bracketed) = authority.strip_prefix('[') {
        let (literal, after) = bracketed.split_once(']').ok_or(ServerUrlError::Host)?;
        literal.parse::<std::net::Ipv6Addr>().map_err(|_| ServerUrlError::Host)?;
        let port = match after {
            "" => None,
            _ => Some(after.strip_prefix(':').ok_or(ServerUrlError::Extra)?),
        };
        (literal, port)
    } else {
        match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        }
    };
    let port = match port {
        None => default_port,
        Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => {
            digits.parse().ok().filter(|p| *p != 0).ok_or(ServerUrlError::Port)?
        }
        // `http://::1`: too many colons for a port.
        Some(other) if other.contains(':') => return Err(ServerUrlError::Host),
        Some(_) => return Err(ServerUrlError::Port),
    };
    let is_name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
    let is_literal = authority.starts_with('[');
    if !is_literal && (host.is_empty() || host.len() > 253 || !host.bytes().all(is_name)) {
        return Err(ServerUrlError::Host);
    }
    Ok(Address::Tcp { host: host.to_ascii_lowercase(), port })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(host: &str, port: u16) -> Result<Address, ServerUrlError> {
        Ok(Address::Tcp { host: host.to_owned(), port })
    }

    fn address(url: &str) -> Result<Address, ServerUrlError> {
        parse_server(url).map(|server| server.address)
    }

    #[test]
    fn http_urls_name_host_and_port() {
        assert_eq!(address("http://app:8080"), tcp("app", 8080));
        assert_eq!(address("http://App.Example/"), tcp("app.example", 80));
        assert_eq!(address("HTTP://127.0.0.1:1"), tcp("127.0.0.1", 1));
        assert_eq!(address("http://[::1]:8080"), tcp("::1", 8080));
        assert_eq!(address("http://[::1]"), tcp("::1", 80));
    }

    #[test]
    fn without_a_scheme_a_host_speaks_http() {
        for (url, expected) in [
            ("127.0.0.1:8080", tcp("127.0.0.1", 8080)),
            ("localhost", tcp("localhost", 80)),
            (" [::1]:8080 ", tcp("::1", 8080)),
            ("unix", tcp("unix", 80)),
        ] {
            assert_eq!(address(url), expected, "{url}");
            let server = parse_server(url).expect("a good URL");
            assert_eq!((server.protocol, server.tls), (Protocol::Http, false));
        }
    }

    #[test]
    fn unix_urls_name_a_path() {
        let socket = Ok(Address::Unix(PathBuf::from("/run/app.sock")));
        for url in ["unix:/run/app.sock", "http+unix:/run/app.sock", "unix:///run/app.sock"] {
            assert_eq!(address(url), socket, "{url}");
        }
        assert_eq!(address("unix:run/app.sock"), Err(ServerUrlError::Path));
        assert_eq!(address(&format!("unix:/{}", "x".repeat(107))), Err(ServerUrlError::Path));
    }

    #[test]
    fn fastcgi_servers_are_spelt_like_http_ones() {
        for (url, expected) in [
            ("fastcgi://127.0.0.1:9001", "127.0.0.1:9001"),
            ("FastCGI://php", "php:9000"),
            ("fastcgi://[::1]", "[::1]:9000"),
            ("fastcgi+unix:/run/php.sock", "unix:/run/php.sock"),
            ("fastcgi+unix:///run/php.sock", "unix:/run/php.sock"),
        ] {
            let server = parse_server(url).expect("a good URL");
            assert_eq!(
                (&*server.address.to_string(), server.protocol),
                (expected, Protocol::FastCgi)
            );
        }
        assert_eq!(address("fastcgi:/run/php.sock"), Err(ServerUrlError::Scheme));
        assert_eq!(address("fastcgi+unix:php.sock"), Err(ServerUrlError::Path));
        assert_eq!(parse_server("unix:/run/app").map(|s| s.protocol), Ok(Protocol::Http));
    }

    #[test]
    fn idle_fastcgi_connections_are_kept_only_when_asked_for() {
        let idle = |url| {
            let server = parse_server(url).expect("a good URL");
            OriginConfig::with_limits("o", vec![server], &Limits::default()).idle_max
        };
        assert_eq!(idle("fastcgi://php"), 0);
        assert!(idle("http://app") > 0);
    }

    #[test]
    fn what_cannot_be_used_says_why() {
        for (url, error) in [
            ("https+unix:/run/a", ServerUrlError::Https),
            ("ftp://app", ServerUrlError::Scheme),
            ("http:/app:8080", ServerUrlError::Scheme),
            ("/run/app.sock", ServerUrlError::Scheme),
            ("", ServerUrlError::Host),
            ("::1", ServerUrlError::Host),
            ("app:port", ServerUrlError::Port),
            ("mailto:app", ServerUrlError::Port),
            ("app/path", ServerUrlError::Extra),
            ("http://", ServerUrlError::Host),
            ("http://::1", ServerUrlError::Host),
            ("http://[app]:80", ServerUrlError::Host),
            ("http://[::1", ServerUrlError::Host),
            ("http://a b", ServerUrlError::Host),
            ("http://app:", ServerUrlError::Port),
            ("http://app:0", ServerUrlError::Port),
            ("http://app:65536", ServerUrlError::Port),
            ("http://app:+80", ServerUrlError::Port),
            ("http://app/path", ServerUrlError::Extra),
            ("http://user@app", ServerUrlError::Extra),
            ("http://[::1]80", ServerUrlError::Extra),
        ] {
            assert_eq!(address(url), Err(error), "{url}");
        }
        assert!(ServerUrlError::Https.to_string().contains("TLS"));
    }

    #[test]
    fn https_has_its_own_port() {
        let server = parse_server("https://App").expect("a good URL");
        assert_eq!((server.address.to_string().as_str(), server.tls), ("app:443", true));
        assert!(!parse_server("http://app:443").expect("a good URL").tls);
    }

    #[test]
    fn a_url_shown_reads_back() {
        for url in ["app:8080", "[::1]:80", "10.0.0.1:443"] {
            let server = parse_server(&format!("http://{url}")).expect("a good URL");
            assert_eq!(server.address.to_string(), url);
        }
        let server = parse_server("unix:/run/a").expect("a good URL");
        assert_eq!(server.address.to_string(), "unix:/run/a");
    }
}
