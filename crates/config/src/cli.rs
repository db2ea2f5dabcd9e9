//! The CLI configuration: `larder serve --origin URL`, without a file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::Limits;
use base::units::{parse_size, size_meant};
use origin::{OriginConfig, Protocol, ScriptRules, ScriptsConfig, ServerConfig, parse_server};
use policy::Profile;

use crate::diagnostic::{Diagnostic, SourceText};
use crate::listen::{self, default_listen, parse_listen};
use crate::model::{
    AcmeConfig, Admission, Config, ConfigLocation, DiskConfig, DiskVolume, ListenSpec,
    MemoryConfig, NamedPath, SiteConfig,
};
use crate::parse::{
    Presets, TOP, WORKERS_MAX, finish, parse_acme, parse_memory, plain_origin, usual_redirect,
    volume_path, volume_size,
};
use crate::reader::Reader;

/// Options of the command line.
#[derive(Clone, Debug, Default)]
pub struct CliOptions {
    /// URL of the origin's server.
    pub origin: String,
    /// The folder of a FastCGI server's scripts.
    pub root: Option<PathBuf>,
    /// Addresses to listen on; `:80` if empty.
    pub listen: Vec<String>,
    /// Size of the memory cache, as `[memory] size`.
    pub memory: Option<String>,
    /// A cache on disk: its directory, a comma and its size.
    pub disk: Option<String>,
    /// Presets of the site, by name.
    pub presets: Vec<String>,
    /// Hosts of the site; every host if empty.
    pub hosts: Vec<String>,
    /// The e-mail address for ordering the hosts' certificates from Let's Encrypt.
    pub acme: Option<String>,
    /// Core threads.
    pub workers: Option<usize>,
    /// Defaults of the site.
    pub profile: Profile,
}

/// One site for every host in front of one origin.
///
/// # Errors
/// Every unusable option; the diagnostics name the flag and have no span.
pub fn from_cli(options: &CliOptions) -> Result<Config, Vec<Diagnostic>> {
    let source = SourceText { name: String::new(), text: String::new() };
    let mut r = Reader::new(Arc::new(source), &TOP);
    let limits = Limits::default();
    let server = flag(&mut r, "--origin", &options.origin, parse_server(&options.origin));
    check_workers(&mut r, options);
    let listen = listen_list(&mut r, options);
    let size = options.memory.as_deref().and_then(|text| {
        let size = parse_memory(text);
        flag(&mut r, "--memory", text, size)
    });
    let presets = Presets::named(&mut r, &options.presets);
    let scripts = server.as_ref().and_then(|server| scripts(&mut r, options, server, &presets));
    check_presets(&mut r, &presets, options);
    let mut rules = presets.rules(&mut r, options.profile);
    // The redirect begins with the first certificate.
    rules.redirect_https = options.acme.as_ref().and_then(|_| usual_redirect(&listen));
    let purge = crate::parse::purge_of_presets(presets.dialects);
    let hosts = hosts(&mut r, options);
    let acme = options.acme.as_ref().and_then(|email| acme(&mut r, email, &listen, &hosts));
    let config = server.map(|server| Config {
        origin_tls: vec![server.tls.then(|| plain_origin(ConfigLocation::nowhere()))],
        listen,
        workers: options.workers,
        profile: options.profile,
        memory: MemoryConfig { size: size.unwrap_or_default(), place: ConfigLocation::nowhere() },
        disk: disk(&mut r, options),
        folders: options.root.iter().map(|root| named("--root", root)).collect(),
        sockets: server.address.socket().map(|path| named("--origin", path)).into_iter().collect(),
        origins: vec![OriginConfig {
            scripts,
            ..OriginConfig::with_limits(&options.origin, vec![server], &limits)
        }],
        limits,
        sites: vec![SiteConfig {
            hosts,
            origins: vec![0],
            presets: presets.names(),
            rules,
            purge,
            includes: presets.includes.clone(),
            ..SiteConfig::default()
        }],
        acme,
        ..Config::default()
    });
    finish(r, config).map(|(config, _)| config)
}

fn check_presets(r: &mut Reader, presets: &Presets, options: &CliOptions) {
    if let (Some(name), Profile::Rfc) = (presets.names().first(), options.profile) {
        r.error_nowhere(format!("--preset {name}: presets count on --profile safe"));
    }
}

fn listen_list(r: &mut Reader, options: &CliOptions) -> Vec<ListenSpec> {
    if options.listen.is_empty() {
        return default_listen(options.acme.is_some());
    }
    options.listen.iter().filter_map(|text| one_listen(r, options, text)).collect()
}

fn check_workers(r: &mut Reader, options: &CliOptions) {
    if let Some(workers) = options.workers {
        let fits = (1..=WORKERS_MAX).contains(&(workers as u64));
        let why = format!("from 1 to {WORKERS_MAX}; without it there is one per core");
        flag(r, "--workers", &workers.to_string(), fits.then_some(()).ok_or(why));
    }
}

fn named(flag: &str, path: &Path) -> NamedPath {
    NamedPath { setting: flag.to_owned(), path: path.to_owned(), place: ConfigLocation::nowhere() }
}

fn one_listen(r: &mut Reader, options: &CliOptions, text: &str) -> Option<ListenSpec> {
    let spec = parse_listen(text).map_err(|why| format!("{why}; {}", listen::EXPECTED));
    let spec = spec.and_then(|spec| match spec {
        ListenSpec { tls: true, .. } if options.acme.is_none() => {
            Err("TLS needs a certificate: from --acme, or named in a file".to_owned())
        }
        ListenSpec { proxy: true, .. } => {
            Err("`proxy` needs `trusted_proxies`, which only a file can name".to_owned())
        }
        spec => Ok(spec),
    });
    flag(r, "--listen", text, spec)
}

/// The cache on disk.
fn disk(r: &mut Reader, options: &CliOptions) -> Option<DiskConfig> {
    let text = options.disk.as_deref()?;
    let (path, bytes) = flag(r, "--disk", text, directory_and_size(text))?;
    let place = ConfigLocation::nowhere();
    Some(DiskConfig {
        volumes: vec![DiskVolume { path, bytes, weight: 1, name: None, place }],
        admission: Admission::Hit,
        durable_purges: true,
        erase: false,
    })
}

fn directory_and_size(text: &str) -> Result<(PathBuf, u64), String> {
    let (path, size) = text.rsplit_once(',').ok_or("takes a directory, a comma and a size")?;
    let path = volume_path(path)?;
    let meant = |why| match size_meant(size) {
        Some(meant) => format!("{size}: {why}; did you mean {meant}?"),
        None => format!("{size}: {why}"),
    };
    let bytes = parse_size(size).map_err(meant)?;
    Ok((path, volume_size(bytes)?))
}

fn hosts(r: &mut Reader, options: &CliOptions) -> Vec<String> {
    if options.hosts.is_empty() {
        return vec!["*".to_owned()];
    }
    let host = |text: &String| {
        let host = policy::hosts::canonical(text).ok_or("not a host name");
        flag(r, "--host", text, host)
    };
    options.hosts.iter().filter_map(host).collect()
}

/// Certificates from Let's Encrypt, for every host.
fn acme(
    r: &mut Reader,
    email: &str,
    listen: &[ListenSpec],
    hosts: &[String],
) -> Option<AcmeConfig> {
    let acme = flag(r, "--acme", email, parse_acme(email, listen))?;
    for host in hosts {
        let may =
            if host == "*" { Err("--host must name the hosts") } else { acme.may_order(host) };
        flag(r, "--acme", email, may.map_err(|why| format!("{host}: {why}")));
    }
    Some(acme)
}

/// The scripts of a FastCGI server.
fn scripts(
    r: &mut Reader,
    options: &CliOptions,
    server: &ServerConfig,
    presets: &Presets,
) -> Option<ScriptsConfig> {
    match (&options.root, server.protocol) {
        (None, Protocol::Http) => {}
        (None, Protocol::FastCgi) => {
            let url = &options.origin;
            r.error_nowhere(format!("--origin {url}: --root must say where the scripts are"));
        }
        (Some(root), _) if !root.is_absolute() => {
            r.error_nowhere(format!("--root {}: not an absolute path", root.display()));
        }
        (Some(_), Protocol::Http) => {
            r.error_nowhere("--root is for a FastCGI origin");
        }
        (Some(root), Protocol::FastCgi) => {
            let (root, mut rules, linked) = (root.clone(), ScriptRules::default(), Vec::new());
            rules.bar(&presets.no_scripts);
            let files = Some(crate::parse::defaults_beside_scripts(&root, &linked));
            let params = Arc::default();
            return Some(ScriptsConfig { root, linked, rules, files, params });
        }
    }
    None
}

fn flag<T>(
    r: &mut Reader,
    name: &str,
    text: &str,
    value: Result<T, impl std::fmt::Display>,
) -> Option<T> {
    value.map_err(|why| r.error_nowhere(format!("{name} {text}: {why}"))).ok()
}

#[cfg(test)]
mod tests {
    use message::Status;
    use policy::answer::Redirect;

    use super::*;
    use crate::model::MemorySize;

    #[test]
    fn an_origin_is_enough() {
        let options =
            CliOptions { origin: "http://127.0.0.1:8080".into(), ..CliOptions::default() };
        let config = from_cli(&options).expect("a configuration");
        assert_eq!(config.listen[0].text, ":80");
        assert_eq!(config.origins[0].servers[0].address.to_string(), "127.0.0.1:8080");
        assert_eq!(
            (&config.sites[0].hosts[..], &config.sites[0].origins[..]),
            (&["*".to_owned()][..], &[0][..])
        );
        assert_eq!(config.memory.size, MemorySize::Auto);
    }

    #[test]
    fn with_certificates_visitors_are_sent_to_https() {
        let told = |listen: &[&str], acme: Option<&str>| {
            let options = CliOptions {
                origin: "app".into(),
                hosts: vec!["example.com".into()],
                listen: listen.iter().map(|text| (*text).to_owned()).collect(),
                acme: acme.map(str::to_owned),
                ..CliOptions::default()
            };
            from_cli(&options).expect("a configuration").sites.remove(0).rules.redirect_https
        };
        let acme = Some("ops@example.com");
        let to = |port| Redirect::to_https(Status::new(308).expect("a status"), port).ok();
        assert_eq!(told(&[], acme), to(None));
        assert_eq!(told(&[":80", ":8443 tls"], acme), to(Some(8443)));
        assert_eq!(told(&[":80"], acme), None, "nobody here speaks TLS");
        assert_eq!(told(&[], None), None);
    }

    #[test]
    fn an_origin_without_a_scheme_speaks_http() {
        for (origin, server) in [
            ("127.0.0.1:8080", Some("127.0.0.1:8080")),
            ("localhost", Some("localhost:80")),
            ("[::1]:8080", Some("[::1]:8080")),
            ("unix:/run/app.sock", Some("unix:/run/app.sock")),
            ("ftp://app", None),
            ("app:port", None),
        ] {
            let options = CliOptions { origin: origin.into(), ..CliOptions::default() };
            let config = from_cli(&options).ok();
            let found = config.map(|config| config.origins[0].servers[0].address.to_string());
            assert_eq!(found.as_deref(), server, "{origin}");
        }
    }

    #[test]
    fn no_workers_are_refused() {
        for (workers, is_good) in [(0, false), (1, true), (1024, true), (1025, false)] {
            let (origin, workers) = ("app".into(), Some(workers));
            let options = CliOptions { origin, workers, ..CliOptions::default() };
            match from_cli(&options) {
                Ok(config) => assert!(is_good && config.workers == workers),
                Err(errors) => {
                    let why = "from 1 to 1024; without it there is one per core";
                    assert!(!is_good && errors[0].message.ends_with(why), "{}", errors[0]);
                }
            }
        }
    }

    #[test]
    fn a_fastcgi_origin_needs_a_root_and_others_have_none() {
        let with = |origin: &str, root: Option<&str>| {
            from_cli(&CliOptions {
                origin: origin.into(),
                root: root.map(PathBuf::from),
                ..CliOptions::default()
            })
        };
        let config = with("fastcgi+unix:/run/php.sock", Some("/srv")).expect("a configuration");
        let scripts = config.origins[0].scripts.as_ref().expect("scripts");
        assert_eq!(scripts.root, PathBuf::from("/srv"));
        for (origin, root, message) in [
            (
                "fastcgi://php",
                None,
                "--origin fastcgi://php: --root must say where the scripts are",
            ),
            ("fastcgi://php", Some("srv"), "--root srv: not an absolute path"),
            ("http://app", Some("/srv"), "--root is for a FastCGI origin"),
        ] {
            let errors = with(origin, root).expect_err("a mistake");
            assert_eq!(errors[0].message, message);
        }
    }

    #[test]
    fn a_preset_bars_the_folders_that_its_application_writes_to() {
        let config = from_cli(&CliOptions {
            origin: "fastcgi+unix:/run/php.sock".into(),
            root: Some("/srv".into()),
            presets: vec!["wordpress".into()],
            ..CliOptions::default()
        });
        let scripts = config.expect("a configuration").origins.remove(0).scripts.expect("scripts");
        assert!(scripts.rules.barred.iter().any(|folder| folder == "/**/uploads"));
    }

    #[test]
    fn a_disk_is_a_directory_and_a_size() {
        let with = |disk: &str| {
            let origin = "http://127.0.0.1:8080".into();
            let options = CliOptions { origin, disk: Some(disk.into()), ..CliOptions::default() };
            from_cli(&options)
                .map(|config| config.disk.expect("a disk").volumes.remove(0))
                .map_err(|errors| errors[0].message.clone())
        };
        let volume = with("/srv/a,b,20GiB").expect("a configuration");
        assert_eq!((volume.path, volume.bytes), (PathBuf::from("/srv/a,b"), 20 << 30));
        for (disk, why) in [
            ("/srv/cache", "--disk /srv/cache: takes a directory, a comma and a size"),
            ("cache,1GiB", "--disk cache,1GiB: takes an absolute path"),
            (
                "/srv/cache,1G",
                "--disk /srv/cache,1G: 1G: missing or unknown unit; did you mean 1GiB?",
            ),
            ("/srv/cache,1MiB", "--disk /srv/cache,1MiB: a disk cache needs at least 256MiB"),
        ] {
            assert_eq!(with(disk).expect_err(disk), why);
        }
    }

    #[test]
    fn every_flag_that_is_wrong_is_named() {
        let options = CliOptions {
            origin: "ftp://app".into(),
            listen: vec!["80".into(), ":81".into()],
            presets: vec!["wordpres".into()],
            memory: Some("lots".into()),
            ..CliOptions::default()
        };
        let errors = from_cli(&options).expect_err("four mistakes");
        let messages: Vec<_> =
            errors.iter().map(|e| e.message.split(':').next().unwrap_or_default()).collect();
        assert_eq!(messages, ["--origin ftp", "--listen 80", "--memory lots", "--preset wordpres"]);
        assert!(
            errors[0].to_string().starts_with("error: --origin ftp://app: expected [http(s)://]")
        );
    }
}
