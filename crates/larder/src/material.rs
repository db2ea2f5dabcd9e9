//! Certificates, keys and authorities: read from their files, and read again when those change.
//!
//! What cannot be used is never half used: a pair is taken as a whole, or the one before stays.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base::HashSeed;
use config::{ClientFiles, Config, Diagnostic, OriginTls, PairFiles, Place};
use policy::HostTable;
use tls::{AuthMode, ClientAuth, Domain, MaterialError, Pair, Server, Upstream};

/// How often files are looked at. A change counts when it has lasted from one look to the next, so
/// that nothing is read while it is being written; two looks make less than a second.
pub(crate) const LOOK: Duration = Duration::from_millis(400);

/// What a file was when it was looked at; none when it cannot be.
type Stamp = Option<(u64, u64, u64, i64, i64)>;

/// Everything that was read, by its files.
#[derive(Debug, Default)]
pub(crate) struct Material {
    pairs: BTreeMap<(PathBuf, PathBuf), Watched<PairFiles, Arc<Pair>>>,
    upstreams: BTreeMap<usize, Upstream>,
    clients: BTreeMap<(PathBuf, bool), Watched<ClientFiles, ClientAuth>>,
}

/// A value made of files.
#[derive(Debug)]
struct Watched<F, T> {
    files: F,
    value: T,
    /// The files as they were when last read, well or badly.
    read: Vec<Stamp>,
    /// The files as they have just been found.
    found: Vec<Stamp>,
}

impl<F, T> Watched<F, T> {
    /// Whether the files were changed, and are left alone since the look before.
    fn is_due(&mut self, now: Vec<Stamp>) -> bool {
        let settled = self.found == now;
        self.found = now;
        let due = settled && self.found != self.read;
        if due {
            self.read.clone_from(&self.found);
        }
        due
    }
}

impl Material {
    /// Reads everything that `config` names. The diagnostics tell what cannot be used, as errors,
    /// and what is not as it should be, as warnings.
    pub(crate) fn read(config: &Config) -> (Self, Vec<Diagnostic>) {
        let (mut material, mut found) = (Self::default(), Vec::new());
        let all = config.sites.iter().flat_map(|site| &site.tls.pairs);
        for files in config.certificates.iter().chain(all) {
            let key = (files.cert.clone(), files.key.clone());
            if material.pairs.contains_key(&key) {
                continue;
            }
            let read = stamps_of_pair(files);
            match read_pair(files) {
                Ok(value) => {
                    found.extend(expired(files, &value));
                    let watched =
                        Watched { files: files.clone(), value, found: read.clone(), read };
                    material.pairs.insert(key, watched);
                }
                Err(problem) => found.push(*problem),
            }
        }
        for files in config.sites.iter().filter_map(|site| site.tls.client.as_ref()) {
            let key = (files.ca.clone(), files.required);
            if material.clients.contains_key(&key) {
                continue;
            }
            let read = vec![stamp(&files.ca)];
            match read_client(files) {
                Ok(value) => {
                    let watched =
                        Watched { files: files.clone(), value, found: read.clone(), read };
                    material.clients.insert(key, watched);
                }
                Err(problem) => found.push(*problem),
            }
        }
        for (at, files) in config.origin_tls.iter().enumerate() {
            let Some(files) = files else { continue };
            match read_upstream(files) {
                Ok(upstream) => _ = material.upstreams.insert(at, upstream),
                Err(problem) => found.push(*problem),
            }
        }
        found.extend(material.uncovered(config));
        (material, found)
    }

    /// Looks at the files and reads what was changed. Whether something new is there to be used,
    /// and what is not used because it cannot be.
    pub(crate) fn renew(&mut self) -> (bool, Vec<Diagnostic>) {
        let (mut renewed, mut refused) = (false, Vec::new());
        for watched in self.pairs.values_mut() {
            if !watched.is_due(stamps_of_pair(&watched.files)) {
                continue;
            }
            let pair = read_pair(&watched.files);
            match pair.and_then(|pair| match expired(&watched.files, &pair) {
                Some(late) => Err(Box::new(late)),
                None => Ok(pair),
            }) {
                Ok(pair) => (watched.value, renewed) = (pair, true),
                Err(problem) => refused.push(*problem),
            }
        }
        for watched in self.clients.values_mut() {
            if !watched.is_due(vec![stamp(&watched.files.ca)]) {
                continue;
            }
            match read_client(&watched.files) {
                Ok(auth) => (watched.value, renewed) = (auth, true),
                Err(problem) => refused.push(*problem),
            }
        }
        (renewed, refused)
    }

    /// How a site's clients are checked.
    pub(crate) fn client_auth(&self, files: &ClientFiles) -> Option<ClientAuth> {
        let key = (files.ca.clone(), files.required);
        self.clients.get(&key).map(|watched| watched.value.clone())
    }

    /// How the `at`-th origin's TLS servers are connected to.
    pub(crate) fn upstream(&self, at: usize) -> Option<Upstream> {
        self.upstreams.get(&at).cloned()
    }

    fn pairs(&self, files: &[PairFiles]) -> Vec<Arc<Pair>> {
        let pair = |files: &PairFiles| {
            let key = (files.cert.clone(), files.key.clone());
            self.pairs.get(&key).map(|watched| Arc::clone(&watched.value))
        };
        files.iter().filter_map(pair).collect()
    }

    /// What TLS listeners shake hands with; none when there is no certificate. Tickets of
    /// `previous` stay good.
    pub(crate) fn server(
        &self,
        config: &Config,
        previous: Option<&Server>,
    ) -> Result<Option<Arc<Server>>, String> {
        if self.pairs.is_empty() {
            return Ok(None);
        }
        let mut names = HostTable::new(HashSeed::random());
        let mut domains = Vec::new();
        for (index, site) in config.sites.iter().enumerate() {
            for host in &site.hosts {
                // Hosts were checked against each other when the file was read.
                let inserted = names.insert(host, index);
                debug_assert!(inserted.is_ok(), "a checked host is refused: {host}");
            }
            let auth = site.tls.client.as_ref().and_then(|files| self.client_auth(files));
            domains.push(Domain { pairs: self.pairs(&site.tls.pairs), auth });
        }
        let default = self.pairs(&config.certificates);
        let default = (!default.is_empty()).then_some(Domain { pairs: default, auth: None });
        let find = Box::new(move |name: &[u8]| names.find(name).copied());
        Server::new(domains, default, find, previous)
            .map(|server| Some(Arc::new(server)))
            .map_err(|error| format!("larder: TLS: {error}"))
    }

    /// Warnings about hosts that their site's certificates are not valid for.
    fn uncovered(&self, config: &Config) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        for site in &config.sites {
            for files in &site.tls.pairs {
                let Some(pair) = self.pairs(std::slice::from_ref(files)).pop() else { continue };
                let missing = site.hosts.iter().filter(|host| !pair.covers_pattern(host));
                let missing: Vec<_> = missing.map(|host| format!("`{host}`")).collect();
                if !missing.is_empty() {
                    let message = format!("the certificate is not for {}", missing.join(", "));
                    found.push(files.cert_place.warning(message));
                }
            }
        }
        found
    }
}

fn read_pair(files: &PairFiles) -> Result<Arc<Pair>, Box<Diagnostic>> {
    let chain = read_file(&files.cert, &files.cert_place)?;
    let key = read_file(&files.key, &files.key_place)?;
    Pair::parse(&chain, &key).map(Arc::new).map_err(|error| {
        let (place, path) = match error {
            MaterialError::NoKey | MaterialError::Key(_) | MaterialError::Mismatch => {
                (&files.key_place, &files.key)
            }
            _ => (&files.cert_place, &files.cert),
        };
        Box::new(place.error(format!("{}: {error}", path.display())))
    })
}

fn read_client(files: &ClientFiles) -> Result<ClientAuth, Box<Diagnostic>> {
    let authorities = read_file(&files.ca, &files.place)?;
    let mode = if files.required { AuthMode::Require } else { AuthMode::Optional };
    ClientAuth::new(&authorities, mode)
        .map_err(|error| Box::new(files.place.error(format!("{}: {error}", files.ca.display()))))
}

/// Where systems keep the authorities they trust: Debian, Fedora, SUSE, Alpine.
const SYSTEM_CA: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

fn read_upstream(files: &OriginTls) -> Result<Upstream, Box<Diagnostic>> {
    let own = files.pair.as_ref().map(read_pair).transpose()?;
    let place = files.ca.as_ref().map_or(&files.place, |(_, place)| place);
    let authorities = match &files.ca {
        _ if !files.verify => None,
        Some((path, place)) => Some(read_file(path, place)?),
        None => {
            let system = SYSTEM_CA.iter().find_map(|path| std::fs::read(path).ok());
            let none = || {
                let text = "no authorities to verify servers by: set `ca`";
                Box::new(place.error(text.to_owned()))
            };
            Some(system.ok_or_else(none)?)
        }
    };
    Upstream::new(authorities.as_deref(), own)
        .map_err(|error| Box::new(place.error(error.to_string())))
}

fn read_file(path: &Path, place: &Place) -> Result<Vec<u8>, Box<Diagnostic>> {
    std::fs::read(path)
        .map_err(|error| Box::new(place.error(format!("{}: {error}", path.display()))))
}

/// A warning when the pair's time is over.
fn expired(files: &PairFiles, pair: &Pair) -> Option<Diagnostic> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let text = || format!("{}: the certificate has expired", files.cert.display());
    (pair.not_after() < now).then(|| files.cert_place.warning(text()))
}

fn stamps_of_pair(files: &PairFiles) -> Vec<Stamp> {
    vec![stamp(&files.cert), stamp(&files.key)]
}

fn stamp(path: &Path) -> Stamp {
    let meta = std::fs::metadata(path).ok()?;
    // The change time too: a file put in another's place may carry an old modification time.
    let changed = meta.ctime().wrapping_mul(1_000_000_000).wrapping_add(meta.ctime_nsec());
    let modified = meta.mtime().wrapping_mul(1_000_000_000).wrapping_add(meta.mtime_nsec());
    Some((meta.dev(), meta.ino(), meta.size(), modified, changed))
}
