//! varnishd's flags as a configuration: one site for every host, which a VCL decides for.

use std::net::ToSocketAddrs as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::Limits;
use policy::acl::parse_net;

use crate::diagnostic::{Diagnostic, SourceText};
use crate::listen::parse_listen;
use crate::model::{
    Admission, CacheStatus, CliSecret, Config, ConfigLocation, DiskConfig, DiskVolume, ListenSpec,
    MemoryConfig, MemorySize, PairFiles, PlacedPath, Programs, SiteConfig, VarnishCli,
};
use crate::parse::{TOP, VOLUMES_MAX, directories_overlap, finish, volume_path, volume_size};
use crate::reader::Reader;

/// The flags of varnishd.
#[derive(Clone, Debug, Default)]
pub struct Varnishd {
    /// `-a`, each: `[name=]address[:port][,PROTO][,mode=...]`; `:80` if empty.
    pub listen: Vec<String>,
    /// Certificate files, each with that of its key (`-A`).
    pub certificates: Vec<(PathBuf, PathBuf)>,
    /// `-T`, each: `address:port`.
    pub cli: Vec<String>,
    /// CLI commands come from a file (`-I`), or over an outgoing connection (`-M`).
    pub commands: bool,
    /// `-S`: the file with the clients' secret; `None` if no secret is needed.
    pub secret: Option<PathBuf>,
    /// The sizes of all `-s` in memory together; `None` for the default.
    pub memory_bytes: Option<u64>,
    /// The disk storages.
    pub disks: Vec<VolumeFlag>,
    /// Clients may begin with HTTP/2 (`-p feature=+http2`).
    pub http2: bool,
    /// The limits that the parameters set.
    pub limits: Limits,
}

/// `-s NAME=file,PATH,SIZE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeFlag {
    /// The storage's name.
    pub name: String,
    /// The directory of the volume.
    pub path: PathBuf,
    /// Bytes that it may take.
    pub bytes: u64,
}

/// One site for every host, without a policy of its own: its VCL decides.
///
/// # Errors
/// Every unusable flag; the diagnostics name it and have no span.
pub fn from_varnishd(options: &Varnishd) -> Result<Config, Vec<Diagnostic>> {
    let source = SourceText { name: String::new(), text: String::new() };
    let mut r = Reader::new(Arc::new(source), &TOP);
    let all = [":80".to_owned()];
    let wanted = if options.listen.is_empty() { &all[..] } else { &options.listen };
    let mut listen = Vec::new();
    for (at, text) in wanted.iter().enumerate() {
        match endpoint(text, at, options.http2) {
            Ok(spec) => listen.push(spec),
            Err(why) => {
                let help = "-a [name=]address[:port[-port]][,HTTP|PROXY|https], or \
                            -a [name=]/path[,mode=660]";
                r.error_nowhere(format!("-a {text}: {why}")).help = Some(help.to_owned());
            }
        }
    }
    check_certificates(&mut r, options, &listen);
    let varnish_cli = cli(&mut r, options);
    // With PROXY on a listener, all its peers are trusted.
    let trusted = match listen.iter().any(|spec| spec.proxy) {
        true => ["0.0.0.0/0", "::/0"].iter().filter_map(|net| parse_net(net).ok()).collect(),
        false => Vec::new(),
    };
    let disk = disk(&mut r, &options.disks);
    let size = options.memory_bytes.map_or(MemorySize::Auto, MemorySize::Bytes);
    let config = Config {
        listen,
        trusted_proxies: trusted,
        memory: MemoryConfig { size, place: ConfigLocation::nowhere() },
        disk,
        varnish_cli,
        vcl: Programs::Flags,
        limits: options.limits.clone(),
        sites: vec![SiteConfig { hosts: vec!["*".to_owned()], ..SiteConfig::default() }],
        certificates: options.certificates.iter().map(|(cert, key)| pair(cert, key)).collect(),
        cache_status: CacheStatus::Off,
        ..Config::default()
    };
    finish(r, Some(config)).map(|(config, _)| config)
}

/// Reports a TLS listener without a certificate, if none can be loaded later.
fn check_certificates(r: &mut Reader, options: &Varnishd, listen: &[ListenSpec]) {
    if options.certificates.is_empty()
        && options.cli.is_empty()
        && !options.commands
        && let Some(spec) = listen.iter().find(|spec| spec.tls)
    {
        r.error_nowhere(format!("-a {}: there is no certificate", spec.text)).help = Some(
            "-A FILE, in which `pem-file = \"/etc/varnish/site.pem\"` names one; or -T \
                  localhost:6082, where `tls.cert.load` loads one"
                .to_owned(),
        );
    }
}

fn pair(cert: &Path, key: &Path) -> PairFiles {
    PairFiles {
        cert: cert.to_path_buf(),
        cert_place: ConfigLocation::nowhere(),
        key: key.to_path_buf(),
        key_place: ConfigLocation::nowhere(),
    }
}

/// The volumes of all `-s`. Everything that leaves memory sinks there, as with varnishd's own.
fn disk(r: &mut Reader, flags: &[VolumeFlag]) -> Option<DiskConfig> {
    let mut volumes: Vec<DiskVolume> = Vec::new();
    for VolumeFlag { name, path, bytes } in flags {
        let text = path.display();
        let sound = volume_path(&path.to_string_lossy())
            .and_then(|_| volume_size(*bytes))
            .map_err(str::to_owned)
            .and_then(|bytes| {
                match volumes.iter().find(|own| directories_overlap(&own.path, path)) {
                    Some(own) => {
                        Err(format!("storage `{}` is there", own.name.as_deref().unwrap_or("")))
                    }
                    None => Ok(bytes),
                }
            });
        match sound {
            Err(why) => _ = r.error_nowhere(format!("-s {name}=file,{text}: {why}")),
            Ok(bytes) => volumes.push(DiskVolume {
                path: path.clone(),
                bytes,
                weight: 1,
                name: Some(name.clone()),
                place: ConfigLocation::nowhere(),
            }),
        }
    }
    if volumes.len() > VOLUMES_MAX {
        r.error_nowhere(format!("-s: {} on disk: at most {VOLUMES_MAX}", volumes.len()));
    }
    (!volumes.is_empty()).then_some(DiskConfig {
        volumes,
        admission: Admission::All,
        durable_purges: true,
        erase: false,
    })
}

/// Reads one `-a`; the one at `at` without a name is `a0`, `a1` and so on.
fn endpoint(text: &str, at: usize, http2: bool) -> Result<ListenSpec, String> {
    let mut parts = text.split(',');
    let first = parts.next().unwrap_or_default();
    let (name, address) = match first.split_once('=') {
        Some((name, address)) if !name.contains(['/', ':']) => (name.to_owned(), address),
        _ => (format!("a{at}"), first),
    };
    let (mut proxy, mut tls, mut mode) = (false, false, None);
    for word in parts {
        match word.split_once('=') {
            None if word.eq_ignore_ascii_case("PROXY") => proxy = true,
            None if word.eq_ignore_ascii_case("HTTP") => {}
            None if word.eq_ignore_ascii_case("HTTPS") => tls = true,
            Some(("mode", digits)) => mode = Some(digits),
            Some(("user" | "group", _)) => {
                return Err(format!("`{word}`: the socket belongs to larder's user"));
            }
            _ => return Err(format!("`{word}` is no protocol: there are HTTP, PROXY and https")),
        }
    }
    if let Some(ports) = port_range(address) {
        let mut all: Option<ListenSpec> = None;
        for address in ports? {
            let more = parts_of(text, &address, mode)?;
            match &mut all {
                None => all = Some(more),
                Some(all) => all.addresses.extend(more.addresses),
            }
        }
        let mut spec = all.ok_or("a range has a port at least")?;
        (spec.proxy, spec.tls, spec.h2c, spec.name) = (proxy, tls, http2 && !tls, Some(name));
        return Ok(spec);
    }
    let mut spec = parts_of(text, address, mode)?;
    (spec.proxy, spec.tls, spec.h2c, spec.name) = (proxy, tls, http2 && !tls, Some(name));
    Ok(spec)
}

/// The addresses of a range of ports (`:80-89`); `None` for other addresses.
fn port_range(address: &str) -> Option<Result<Vec<String>, String>> {
    let (host, ports) = address.rsplit_once(':')?;
    let (first, last) = ports.split_once('-')?;
    let number = |text: &str| text.parse::<u16>().ok().filter(|port| *port > 0);
    let (Some(first), Some(last)) = (number(first), number(last)) else { return None };
    if first > last {
        return Some(Err(format!("`{ports}`: the range ends before it begins")));
    }
    if last - first >= PORTS_MAX {
        return Some(Err(format!("`{ports}`: a range has {PORTS_MAX} ports at most")));
    }
    Some(Ok((first..=last).map(|port| format!("{host}:{port}")).collect()))
}

/// Most ports of one `-a`: each is a socket on each core.
const PORTS_MAX: u16 = 256;

/// Parses the address of one `-a`, written as `text`.
fn parts_of(text: &str, address: &str, mode: Option<&str>) -> Result<ListenSpec, String> {
    let mut written = match address.starts_with('/') {
        true => format!("unix:{address}"),
        false if mode.is_some() => return Err("`mode` is for unix sockets".to_owned()),
        false => with_port(address),
    };
    if let Some(mode) = mode {
        written.push_str(&format!(" mode={mode}"));
    }
    let mut spec =
        parse_listen(&written).or_else(|why| named(&written).ok_or_else(|| why.to_string()))?;
    spec.text = text.to_owned();
    Ok(spec)
}

/// An address with its port, 80 by default.
fn with_port(address: &str) -> String {
    let bare = address.rsplit_once(']').map_or(address, |(_, rest)| rest);
    match bare.contains(':') {
        true => address.to_owned(),
        false => format!("{address}:80"),
    }
}

/// A host name and a port, looked up.
fn named(written: &str) -> Option<ListenSpec> {
    let addresses: Vec<_> = written.to_socket_addrs().ok()?.collect();
    let mut spec = parse_listen(":80").ok()?;
    spec.addresses = addresses;
    Some(spec).filter(|spec| !spec.addresses.is_empty())
}

/// The CLI port.
fn cli(r: &mut Reader, options: &Varnishd) -> Option<VarnishCli> {
    let mut all: Option<ListenSpec> = None;
    for text in &options.cli {
        let spec = parse_listen(text)
            .ok()
            .or_else(|| named(text))
            .filter(|spec| spec.path.is_none() && spec.given.is_none());
        match (spec, &mut all) {
            (Some(spec), None) => all = Some(spec),
            (Some(spec), Some(all)) => all.addresses.extend(spec.addresses),
            (None, _) => {
                r.error_nowhere(format!("-T {text}: not an address and a port")).help =
                    Some("-T localhost:6082".to_owned());
            }
        }
    }
    let listen = all?;
    if options.secret.is_none() && !listen.addresses.iter().all(|at| at.ip().is_loopback()) {
        r.error_nowhere("-S none: without a secret the CLI listens on loopback addresses only")
            .help = Some("-S /etc/varnish/secret, or -T localhost:6082".to_owned());
    }
    let secret = match options.secret.clone() {
        Some(path) => CliSecret::File(PlacedPath { path, place: ConfigLocation::nowhere() }),
        None => CliSecret::None,
    };
    Some(VarnishCli { listen, secret })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listen(text: &str) -> Result<ListenSpec, String> {
        endpoint(text, 0, false)
    }

    #[test]
    fn endpoints_are_read_as_varnishd_reads_them() {
        let port = |text: &str| listen(text).expect(text).addresses[0].to_string();
        assert_eq!(port("127.0.0.1:6081"), "127.0.0.1:6081");
        assert_eq!(port("127.0.0.1"), "127.0.0.1:80");
        assert_eq!(port("[::1]"), "[::1]:80");
        assert_eq!(port("[::1]:6081,HTTP"), "[::1]:6081");
        assert_eq!(listen(":6081").expect("all").addresses.len(), 2);
        let ports = listen("127.0.0.1:80-82").expect("a range").addresses;
        assert_eq!(ports.iter().map(|at| at.port()).collect::<Vec<_>>(), [80, 81, 82]);
        assert_eq!(listen("all=:80-89").expect("a range").addresses.len(), 20);
        let secure = endpoint("s=:443,https", 0, true).expect("an endpoint");
        assert!(secure.tls && !secure.h2c && !secure.proxy);
        let named = listen("behind=127.0.0.1:6086,PROXY").expect("an endpoint");
        assert!(named.proxy && named.name.as_deref() == Some("behind"));
        assert_eq!(endpoint(":80", 3, true).expect("all").name.as_deref(), Some("a3"));
        let socket = listen("/run/larder.sock,mode=660").expect("a socket");
        assert_eq!(socket.path, Some((PathBuf::from("/run/larder.sock"), 0o660)));
    }

    #[test]
    fn what_is_wrong_with_an_endpoint_is_reported() {
        for (text, why) in [
            ("127.0.0.1:80,SPDY", "`SPDY` is no protocol: there are HTTP, PROXY and https"),
            ("127.0.0.1:89-80", "`89-80`: the range ends before it begins"),
            (":1-65535", "`1-65535`: a range has 256 ports at most"),
            ("127.0.0.1:80,mode=660", "`mode` is for unix sockets"),
            ("/run/x.sock,user=www", "`user=www`: the socket belongs to larder's user"),
        ] {
            assert_eq!(listen(text), Err(why.to_owned()));
        }
    }

    #[test]
    fn https_needs_a_certificate_or_a_cli_that_loads_one() {
        let options = Varnishd { listen: vec![":443,https".to_owned()], ..Varnishd::default() };
        let refused = from_varnishd(&options).expect_err("no certificate");
        assert_eq!(refused[0].message, "-a :443,https: there is no certificate");
        let cli = vec!["localhost:6082".to_owned()];
        assert!(from_varnishd(&Varnishd { cli, ..options.clone() }).is_ok());
        assert!(from_varnishd(&Varnishd { commands: true, ..options.clone() }).is_ok());
        let certificates = vec![(PathBuf::from("/a.pem"), PathBuf::from("/a.pem"))];
        assert!(from_varnishd(&Varnishd { certificates, ..options }).is_ok());
    }

    #[test]
    fn storages_on_disk_are_volumes() {
        let volume = |name: &str, path: &str, bytes| VolumeFlag {
            name: name.to_owned(),
            path: PathBuf::from(path),
            bytes,
        };
        let with = |disks: Vec<VolumeFlag>| {
            from_varnishd(&Varnishd { disks, ..Varnishd::default() })
                .map(|config| config.disk)
                .map_err(|problems| problems[0].message.clone())
        };
        assert_eq!(with(Vec::new()), Ok(None));
        let (a, b) = (volume("s0", "/srv/a", 20 << 30), volume("big", "/srv/b", 1 << 30));
        let disk = with(vec![a.clone(), b]).expect("a configuration").expect("a disk");
        let names: Vec<_> = disk.volumes.iter().filter_map(|own| own.name.as_deref()).collect();
        assert_eq!((names, disk.admission), (vec!["s0", "big"], Admission::All));
        for (flag, why) in [
            (volume("x", "cache.bin", 1 << 30), "-s x=file,cache.bin: takes an absolute path"),
            (volume("x", "/x", 1 << 20), "-s x=file,/x: a disk cache needs at least 256MiB"),
            (volume("x", "/srv/a/x", 1 << 30), "-s x=file,/srv/a/x: storage `s0` is there"),
        ] {
            assert_eq!(with(vec![a.clone(), flag]), Err(why.to_owned()));
        }
    }

    #[test]
    fn a_cli_that_others_can_reach_needs_a_secret() {
        let options = |secret: Option<&str>, at: &str| Varnishd {
            cli: vec![at.to_owned()],
            secret: secret.map(PathBuf::from),
            ..Varnishd::default()
        };
        assert!(from_varnishd(&options(None, "0.0.0.0:6082")).is_err());
        let config = from_varnishd(&options(Some("/s"), "0.0.0.0:6082")).expect("a configuration");
        assert!(config.varnish_cli.is_some_and(|cli| matches!(cli.secret, CliSecret::File(..))));
        assert!(from_varnishd(&options(None, "localhost:6082")).is_ok());
        assert!(from_varnishd(&options(None, "6082")).is_err());
    }
}
