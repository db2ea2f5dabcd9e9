//! Pebble, a real ACME authority, as a child process that sends challenges to the test's ports.

use std::fs;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use testkit::larder::Daemon;
use testkit::origin::{Script, ScriptedOrigin};

use super::tls::{Client, client_of_pem};
use super::{PATIENCE, pause};

/// Text of every site's pages.
pub(crate) const TEXT: &str = "0123456789abcdefghij";

/// The ports to choose from: below those that the system assigns, so that no other process gets one
/// of them first.
const PORTS: std::ops::Range<u32> = 10_000..32_000;

/// A free port, reserved from other tests while `held` has its lock.
fn free_port(held: &mut Vec<fs::File>) -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Concurrent processes start far from each other, but there are only so many ports.
    let begin = std::process::id().wrapping_mul(7_919);
    loop {
        let place = begin.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = PORTS.start + place % (PORTS.end - PORTS.start);
        let port = u16::try_from(port).expect("ports have 16 bits");
        let lock = std::env::temp_dir().join(format!("larder-port-{port}"));
        let lock = fs::File::create(lock).expect("a file for the lock");
        if lock.try_lock().is_ok() && is_free(port) {
            held.push(lock);
            return port;
        }
    }
}

/// Returns true if no process uses the port, for TCP or UDP.
fn is_free(port: u16) -> bool {
    let address = ("127.0.0.1", port);
    TcpListener::bind(address).is_ok() && UdpSocket::bind(address).is_ok()
}

/// The place of an authority and of daemons that use it, with every port chosen in advance.
pub(crate) struct Place {
    pub(crate) folder: PathBuf,
    pub(crate) tls: SocketAddr,
    pub(crate) plain: SocketAddr,
    directory: u16,
    management: u16,
    dns: u16,
    /// Locks of the ports.
    _held: Vec<fs::File>,
    /// Environment variables of the authority.
    variables: Vec<(&'static str, String)>,
    pub(crate) origin: ScriptedOrigin,
}

impl Drop for Place {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.folder);
    }
}

impl Place {
    /// Chooses the ports; `variables` are those of `lab/pebble.sh`.
    pub(crate) async fn new(variables: &[(&'static str, &str)]) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("larder-pebble-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).expect("a folder");
        let origin = ScriptedOrigin::start().await.expect("a port for the origin");
        origin.on("/page", Script::cacheable(TEXT));
        let mut held = Vec::new();
        let [tls, plain, directory, management, dns] =
            std::array::from_fn(|_| free_port(&mut held));
        let address = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let place = Self {
            folder,
            tls: address(tls),
            plain: address(plain),
            directory,
            management,
            dns,
            _held: held,
            variables: variables.iter().map(|(name, value)| (*name, (*value).into())).collect(),
            origin,
        };
        let prepared = place.script("prepare").arg(&place.folder).status().expect("it ran");
        assert!(prepared.success(), "lab/pebble.sh prepare");
        place
    }

    fn script(&self, verb: &str) -> Command {
        let mut command = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../lab/pebble.sh"));
        command.arg(verb).stdin(Stdio::null());
        for (name, port) in [
            ("PORT", self.directory),
            ("MANAGEMENT_PORT", self.management),
            ("DNS_PORT", self.dns),
            ("HTTP_PORT", self.plain.port()),
            ("TLS_PORT", self.tls.port()),
        ] {
            command.env(name, port.to_string());
        }
        command.envs(self.variables.iter().map(|(name, value)| (*name, value.as_str())));
        command
    }

    /// Starts the authority.
    pub(crate) async fn pebble(&self) -> Pebble {
        let built = self.script("build").output().expect("it ran");
        let said = String::from_utf8_lossy(&built.stderr).into_owned();
        assert!(built.status.success(), "Pebble cannot be built: {said}");
        let programs = PathBuf::from(String::from_utf8_lossy(&built.stdout).trim());
        let dns = format!("127.0.0.1:{}", self.dns);
        let names = ["-defaultIPv6", "", "-http01", "", "-https01", "", "-tlsalpn01", ""];
        let resolver = Command::new(programs.join("pebble-challtestsrv"))
            .args(["-dnsserver", &dns, "-doh", "", "-management", "127.0.0.1:0"])
            .args(names)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let log = fs::File::create(self.folder.join("pebble.log")).expect("a log");
        let authority = Command::new(programs.join("pebble"))
            .arg("-config")
            .arg(self.folder.join("pebble.json"))
            .args(["-dnsserver", &dns])
            .env("PEBBLE_VA_NOSLEEP", "1")
            .env("PEBBLE_WFE_NONCEREJECT", "5")
            .envs(self.variables.iter().map(|(name, value)| (*name, value.as_str())))
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a log"))
            .stderr(log)
            .spawn()
            .expect("it starts");
        let pebble = Pebble { children: [resolver, authority] };
        for port in [self.dns, self.directory, self.management] {
            let log = || fs::read_to_string(self.folder.join("pebble.log")).unwrap_or_default();
            await_port(port, log).await;
        }
        pebble
    }

    /// A client that trusts certificates of the authority.
    pub(crate) async fn client(&self) -> Client {
        let own = fs::read_to_string(self.folder.join("ca.pem")).expect("a certificate");
        let management = SocketAddr::from(([127, 0, 0, 1], self.management));
        let root = client_of_pem(&own).get(management, "127.0.0.1", "/roots/0").await;
        client_of_pem(&root.text())
    }

    pub(crate) fn storage(&self) -> PathBuf {
        self.folder.join("storage")
    }

    /// The authority's folder in the storage.
    pub(crate) fn kept(&self) -> PathBuf {
        self.storage().join(format!("127.0.0.1-{}-dir", self.directory))
    }

    pub(crate) fn certificate(&self, name: &str) -> PathBuf {
        self.kept().join("certificates").join(format!("{name}.pem"))
    }

    /// A configuration: `acme` are further keys of `[tls.acme]`, `sites` whole tables whose origin
    /// is `app`.
    pub(crate) fn config(&self, acme: &str, sites: &str) -> String {
        let Self { tls, plain, directory, folder, .. } = self;
        let (storage, ca) = (self.storage(), folder.join("ca.pem"));
        let (storage, ca, origin) = (storage.display(), ca.display(), self.origin.addr());
        format!(
            r#"listen = ["{tls} tls", "{plain}"]
workers = 2
[limits]
acme_retry_wait = "100ms"
acme_retry_wait_max = "1s"
[tls.acme]
email = "ops@example.com"
directory = "https://127.0.0.1:{directory}/dir"
ca = "{ca}"
storage = "{storage}"
{acme}
[[origin]]
name = "app"
servers = "http://{origin}"
eject = {{ failures = 0 }}
{sites}"#
        )
    }

    /// A daemon for one site with `hosts`.
    pub(crate) fn start(&self, acme: &str, hosts: &[&str]) -> Daemon {
        Daemon::start(&self.config(acme, &site(hosts))).expect("larder starts")
    }
}

/// A site of `hosts`.
pub(crate) fn site(hosts: &[&str]) -> String {
    format!("[[site]]\nhost = {hosts:?}\norigin = \"app\"\n")
}

/// A running authority.
pub(crate) struct Pebble {
    children: [Child; 2],
}

impl Drop for Pebble {
    fn drop(&mut self) {
        for child in &mut self.children {
            // Both fail only if it has ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

async fn await_port(port: u16, log: impl Fn() -> String) {
    let started = Instant::now();
    while tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err() {
        assert!(started.elapsed() < PATIENCE, "nothing listens on port {port}: {}", log());
        pause(20).await;
    }
}

/// The permissions of a file or folder.
pub(crate) fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

/// The number of occurrences of `what` in the daemon's log.
pub(crate) fn said(daemon: &Daemon, what: &str) -> usize {
    daemon.log().matches(what).count()
}
