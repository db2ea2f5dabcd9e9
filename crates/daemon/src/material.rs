//! Material: certificates, keys, authorities and error pages, read from their files. Certificates,
//! keys and authorities are read again when the files change, error pages with the configuration.
//!
//! Material must never be half used: a pair takes effect as a whole, or the previous one stays.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use acme::Webhook;
use admin::{MetricsAuthentication, Role, Tokens};
use base::HashSeed;
use config::sizing::Machine;
use config::{
    ClientFiles, Config, ConfigLocation, Diagnostic, OriginTls, PairFiles, PlacedPath, Programs,
    Tracing, WebhookConfig,
};
use policy::{HostTable, PolicyFiles};
use rustix::process::geteuid;
use tls::{
    AuthMode, CertificateKeyPair, Challenges, ClientAuth, Domain, MaterialError, ServerContext,
    TicketKeys, Upstream,
};

use crate::account::Runner;
use crate::cli_certificates::CliCertificates;
use crate::collector::Collector;
use crate::config_file::render;
use crate::crawlers::CrawlerLists;
use crate::error_pages::PageFiles;
use crate::guard::Guard;
use crate::users::UserFiles;
use crate::{certificate_orders, geoip_file, keeper, machine_warnings, redirect_files, secrets};

/// The interval at which files are checked. A change counts once it is stable from one check to the
/// next, so that no file is read while it is written; two checks take less than a second.
pub(crate) const LOOK: Duration = Duration::from_millis(400);

/// The identity and times of a file; `None` if it cannot be inspected.
type Stamp = Option<(u64, u64, u64, i64, i64)>;

/// Everything that was read, by its files.
#[derive(Debug, Default)]
pub struct Material {
    pairs: BTreeMap<(PathBuf, PathBuf), FileValue<PairFiles, Arc<CertificateKeyPair>>>,
    /// The certificates of Varnish's CLI.
    pub(crate) cli_certificates: CliCertificates,
    upstreams: BTreeMap<usize, Upstream>,
    clients: BTreeMap<(PathBuf, bool), FileValue<ClientFiles, ClientAuth>>,
    /// Ordered certificates by host; `None` until one is issued.
    ordered: BTreeMap<String, FileValue<PathBuf, Option<Arc<CertificateKeyPair>>>>,
    /// The trust for the authority itself, and the setting's location.
    authority: Option<(Upstream, ConfigLocation)>,
    /// Pages of errors.
    pub(crate) error_pages: PageFiles,
    pub(crate) users: UserFiles,
    /// Files that policies are made with.
    pub(crate) policy_files: PolicyFiles,
    pub(crate) crawlers: CrawlerLists,
    /// The guard of the Varnish CLI port, if there is one.
    pub(crate) varnish_cli: Option<Guard>,
    /// The token of metrics clients, if they need one.
    figures: Option<Arc<Tokens>>,
    /// The collector of traces, if there is one.
    pub(crate) collector: Option<Arc<Collector>>,
    /// The receiver of findings, if there is one.
    pub(crate) webhook: Option<Arc<Webhook>>,
}

/// A value made from files.
#[derive(Debug)]
struct FileValue<F, T> {
    files: F,
    value: T,
    /// The files' stamps when they were last read, well or badly.
    read: Vec<Stamp>,
    /// The files' stamps at the last check.
    found: Vec<Stamp>,
}

impl<F, T> FileValue<F, T> {
    /// Returns true if the files were changed, and were stable since the check before.
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

/// Reads the files that a configuration names, as the user of a daemon started here; warnings go to
/// standard error, with those about the machine.
///
/// # Errors
/// The files that cannot be used.
pub fn check_material(config: &Config) -> Result<(), String> {
    let runner = Runner::expected_runner(&config.run)?;
    let mut warnings = machine_warnings::unresolvable_servers(config);
    if let Some(user) = runner.as_ref().filter(|_| geteuid().is_root()) {
        warnings.extend(machine_warnings::left_to_root(config, user, &machine_warnings::UNITS));
    }
    if !warnings.is_empty() {
        base::tell!(Warn, "{}", render(&warnings));
    }
    let refused = machine_warnings::refused(config, runner.as_ref());
    match read_for(config, runner) {
        Ok(_) if refused.is_empty() => Ok(()),
        Ok(_) => Err(render(&refused)),
        Err(more) if refused.is_empty() => Err(more),
        Err(more) => Err(format!("{}\n{more}", render(&refused))),
    }
}

/// Reads them for the daemon of this process.
pub(crate) fn read_material(config: &Config) -> Result<Material, String> {
    read_for(config, Runner::own())
}

fn read_for(config: &Config, runner: Option<Runner>) -> Result<Material, String> {
    let (material, mut found) = Material::read(config);
    found.extend(machine_warnings::unmet(config, &Machine::read(), runner.as_ref()));
    if found.iter().any(|problem| problem.severity == config::Severity::Error) {
        return Err(render(&found));
    }
    if !found.is_empty() {
        base::tell!(Warn, "{}", render(&found));
    }
    Ok(material)
}

impl Material {
    /// Reads everything that `config` names. Unusable files give errors, questionable ones
    /// warnings.
    pub(crate) fn read(config: &Config) -> (Self, Vec<Diagnostic>) {
        let (mut material, mut found) = (Self::default(), Vec::new());
        let all = config.sites.iter().flat_map(|site| &site.tls.pairs);
        let metrics = config.metrics.iter().flat_map(|metrics| &metrics.pairs);
        for files in config.certificates.iter().chain(all).chain(metrics) {
            let key = (files.cert.clone(), files.key.clone());
            if material.pairs.contains_key(&key) {
                continue;
            }
            let read = stamps_of_pair(files);
            match read_pair(files) {
                Ok(value) => {
                    found.extend(expired(files, &value));
                    found.extend(unstapled(files, &value, config.ocsp));
                    let watched =
                        FileValue { files: files.clone(), value, found: read.clone(), read };
                    material.pairs.insert(key, watched);
                }
                Err(problem) => found.push(*problem),
            }
        }
        material.begin_cli_certificates(config);
        let sites = config.sites.iter().filter_map(|site| site.tls.client.as_ref());
        let metrics = config.metrics.iter().filter_map(|metrics| metrics.client.as_ref());
        for files in sites.chain(metrics) {
            let key = (files.ca.clone(), files.required);
            if material.clients.contains_key(&key) {
                continue;
            }
            let read = vec![stamp(&files.ca)];
            match read_client(files) {
                Ok(value) => {
                    let watched =
                        FileValue { files: files.clone(), value, found: read.clone(), read };
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
        material.error_pages = PageFiles::read(config, &mut found);
        material.users = UserFiles::read(config, &mut found);
        material.policy_files.redirects = redirect_files::read(config, &mut found);
        material.crawlers = CrawlerLists::read(config, &trust, &mut found);
        material.policy_files.countries = geoip_file::read(config, &mut found);
        found.extend(material.uncovered(config));
        material.read_ordered(config, &mut found);
        // The seal is made when the daemon starts, and checked with everything else.
        found.extend(secrets::seal(config).err().map(|problem| *problem));
        match config.varnish_cli.as_ref().map(read_guard).transpose() {
            Ok(guard) => material.varnish_cli = guard,
            Err(problem) => found.push(*problem),
        }
        material.read_receivers(config, &mut found);
        let token = config.metrics.as_ref().and_then(|metrics| metrics.token.as_ref());
        match token.map(read_token).transpose() {
            Ok(tokens) => material.figures = tokens,
            Err(problem) => found.push(*problem),
        }
        (material, found)
    }

    /// Reads the receivers of traces and of findings.
    fn read_receivers(&mut self, config: &Config, found: &mut Vec<Diagnostic>) {
        match config.tracing.as_ref().map(|own| read_collector(own, config)).transpose() {
            Ok(collector) => self.collector = collector.map(Arc::new),
            Err(problem) => found.push(*problem),
        }
        match config.webhook.as_ref().map(read_webhook).transpose() {
            Ok(webhook) => self.webhook = webhook.map(Arc::new),
            Err(problem) => found.push(*problem),
        }
    }

    /// Reads the certificates ordered earlier. An unusable one is ordered again.
    fn read_ordered(&mut self, config: &Config, found: &mut Vec<Diagnostic>) {
        let Some(acme) = &config.acme else { return };
        match trust(acme.ca.as_ref(), &acme.place) {
            Ok(trust) => self.authority = Some((trust, acme.place.clone())),
            Err(problem) => found.push(*problem),
        }
        for (host, path) in certificate_orders::hosts(config, &self.pairs(&config.certificates)) {
            let read = vec![stamp(&path)];
            let value = match read_stored(&path, &host) {
                Ok(value) => value,
                Err(why) => {
                    found.push(acme.place.warning(why));
                    None
                }
            };
            if value.as_ref().is_some_and(|pair| pair.not_after() < now_secs()) {
                let text = format!("{}: the certificate has expired", path.display());
                found.push(acme.place.warning(text));
            }
            let watched = FileValue { files: path, value, found: read.clone(), read };
            self.ordered.insert(host, watched);
        }
    }

    /// Carries over ordered certificates of `before` whose files are gone: each stays until the new
    /// one is issued.
    pub(crate) fn keep_ordered(&mut self, before: &Self) {
        for (host, watched) in self.ordered.iter_mut().filter(|(_, own)| own.value.is_none()) {
            watched.value = before.ordered.get(host).and_then(|old| old.value.clone());
        }
    }

    /// Fills the CLI's certificates with those of `-A`.
    fn begin_cli_certificates(&mut self, config: &Config) {
        if config.vcl == Programs::Flags {
            let read = config.certificates.iter();
            let read = read.filter_map(|files| Some((files, self.pair(files)?)));
            self.cli_certificates = CliCertificates::given(read);
        }
    }

    /// Carries over the certificates that Varnish's CLI had loaded, staged and discarded.
    pub(crate) fn keep_cli_certificates(&mut self, before: &Self) {
        self.cli_certificates.go_on_with(&before.cli_certificates);
    }

    /// Carries over the staples of `before`, where `config` still wants stapling.
    pub(crate) fn keep_staples(&self, before: &Self, config: &Config) {
        let before = if config.ocsp { before.shown() } else { Vec::new() };
        for pair in self.shown() {
            for old in before.iter().filter(|old| !Arc::ptr_eq(old, &pair)) {
                pair.keep_staple_of(old);
            }
        }
    }

    /// Every certificate that handshakes with clients present.
    pub(crate) fn shown(&self) -> Vec<Arc<CertificateKeyPair>> {
        let files = self.pairs.values().map(|watched| &watched.value);
        let ordered = self.ordered.values().filter_map(|watched| watched.value.as_ref());
        let loaded = self.cli_certificates.shown().map(|own| &own.pair);
        let mut all: Vec<_> = files.chain(ordered).chain(loaded).map(Arc::clone).collect();
        // Those of `-A` are among the CLI's, too.
        all.sort_by_key(Arc::as_ptr);
        all.dedup_by(|a, b| Arc::ptr_eq(a, b));
        all
    }

    /// The plan of certificates to order, if there are any.
    pub(crate) fn plan(&self, config: &Config) -> Option<Arc<acme::CertificatePlan>> {
        let trust = self.authority.as_ref().map(|(trust, _)| trust.clone());
        certificate_orders::plan(config, self.ordered.keys().cloned().collect(), trust)
    }

    /// Returns true if `host` waits for its first ordered certificate, and no other certificate is
    /// valid for it.
    pub(crate) fn is_missing(&self, config: &Config, host: &str) -> bool {
        self.ordered.get(host).is_some_and(|watched| watched.value.is_none())
            && !self.pairs(&config.certificates).iter().any(|pair| pair.covers(host))
    }

    /// Every certificate: its site, empty for all; its file or its host; and its expiry, in seconds
    /// since 1970, `None` until it is issued.
    pub(crate) fn certificates(&self, config: &Config) -> BTreeMap<(String, String), Option<u64>> {
        let mut all = BTreeMap::new();
        let mut note = |site: &str, files: &PairFiles| {
            for pair in self.pairs(std::slice::from_ref(files)) {
                let file = files.cert.display().to_string();
                all.insert((site.to_owned(), file), Some(pair.not_after()));
            }
        };
        if config.vcl != Programs::Flags {
            config.certificates.iter().for_each(|files| note("", files));
        }
        config.metrics.iter().flat_map(|own| &own.pairs).for_each(|files| note("", files));
        for site in &config.sites {
            let name = site.hosts.first().map(String::as_str).unwrap_or_default();
            site.tls.pairs.iter().for_each(|files| note(name, files));
        }
        for own in self.cli_certificates.shown() {
            let file = own.order.cert.display().to_string();
            all.insert((String::new(), file), Some(own.pair.not_after()));
        }
        for site in &config.sites {
            let name = site.hosts.first().cloned().unwrap_or_default();
            for host in &site.hosts {
                let Some(watched) = self.ordered.get(host) else { continue };
                let end = watched.value.as_ref().map(|pair| pair.not_after());
                all.insert((name.clone(), host.clone()), end);
            }
        }
        all
    }

    /// Checks the files and reads the changed ones again. Returns true if something new is in use,
    /// and the problems.
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
                Ok(pair) => {
                    pair.keep_staple_of(&watched.value);
                    self.cli_certificates.take_up(&watched.files.cert, &watched.files.key, &pair);
                    (watched.value, renewed) = (pair, true);
                }
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
        for (host, watched) in &mut self.ordered {
            if !watched.is_due(vec![stamp(&watched.files)]) {
                continue;
            }
            match (read_stored(&watched.files, host), &self.authority) {
                (Ok(Some(pair)), _) => (watched.value, renewed) = (Some(pair), true),
                (Err(why), Some((_, place))) => refused.push(place.warning(why)),
                (Ok(None) | Err(_), _) => {}
            }
        }
        (renewed, refused)
    }

    /// The settings for the check of a site's clients.
    pub(crate) fn client_auth(&self, files: &ClientFiles) -> Option<ClientAuth> {
        let key = (files.ca.clone(), files.required);
        self.clients.get(&key).map(|watched| watched.value.clone())
    }

    /// The settings for TLS connections to the `at`-th origin's servers.
    pub(crate) fn upstream(&self, at: usize) -> Option<Upstream> {
        self.upstreams.get(&at).cloned()
    }

    fn pairs(&self, files: &[PairFiles]) -> Vec<Arc<CertificateKeyPair>> {
        files.iter().filter_map(|files| self.pair(files)).collect()
    }

    fn pair(&self, files: &PairFiles) -> Option<Arc<CertificateKeyPair>> {
        let key = (files.cert.clone(), files.key.clone());
        self.pairs.get(&key).map(|watched| Arc::clone(&watched.value))
    }

    /// The TLS server for the handshakes of listeners; `None` without any certificate, present,
    /// ordered or loadable. Tickets are made with `keys`.
    ///
    /// A site with certificates or a client check of its own presents no others. All other names
    /// get those loaded by the CLI, then those of `[tls]`.
    pub(crate) fn server(
        &self,
        config: &Config,
        keys: &Arc<TicketKeys>,
        challenges: &Arc<Challenges>,
    ) -> Result<Option<Arc<ServerContext>>, String> {
        let of_sites = config.sites.iter().flat_map(|site| &site.tls.pairs);
        let is_without = config.certificates.iter().chain(of_sites).next().is_none();
        let by_flags = config.vcl == Programs::Flags;
        let may_load = by_flags && config.listen.iter().any(|spec| spec.tls);
        if is_without && self.ordered.is_empty() && !may_load {
            return Ok(None);
        }
        let mut names = HostTable::new(HashSeed::random());
        let mut domains = Vec::new();
        for site in &config.sites {
            let auth = site.tls.client.as_ref().and_then(|files| self.client_auth(files));
            let whole = domains.len();
            domains.push(Domain { pairs: self.pairs(&site.tls.pairs), auth: auth.clone() });
            for host in &site.hosts {
                let mut index = whole;
                // Every host has an order, and so a certificate, of its own.
                if let Some(pair) = self.ordered.get(host).and_then(|own| own.value.clone()) {
                    index = domains.len();
                    domains.push(Domain { pairs: vec![pair], auth: auth.clone() });
                }
                // Hosts were checked for duplicates when the file was read.
                let inserted = names.insert(host, index);
                debug_assert!(inserted.is_ok(), "a checked host is refused: {host}");
            }
        }
        let own: Vec<_> = domains.iter().map(Domain::is_own).collect();
        let choice = self.cli_certificates.choice(by_flags);
        domains.extend(choice.domains);
        let default = choice.default.or_else(|| {
            // Those of `-A` are among the CLI's certificates.
            let pairs = if by_flags { Vec::new() } else { self.pairs(&config.certificates) };
            (!pairs.is_empty()).then_some(Domain { pairs, auth: None })
        });
        let find = Box::new(move |name: &[u8]| match names.find(name).copied() {
            Some(site) if own[site] => Some(site),
            site => (choice.find)(name).map(|at| own.len() + at).or(site),
        });
        ServerContext::new(domains, default, find, config.http2, keys)
            .map(|server| Some(Arc::new(server.with_challenges(Arc::clone(challenges)))))
            .map_err(|error| format!("larder: TLS: {error}"))
    }

    /// The authentication of `[metrics]` clients, over TLS if `secure`; `None` if `config` has none
    /// for this kind of listener.
    ///
    /// # Errors
    /// The random source fails.
    pub(crate) fn metrics_authentication(
        &self,
        config: &Config,
        secure: bool,
        keys: &Arc<TicketKeys>,
    ) -> Result<Option<MetricsAuthentication>, String> {
        let Some(metrics) = &config.metrics else { return Ok(None) };
        let tokens = self.figures.clone();
        if !secure {
            return Ok(tokens.map(MetricsAuthentication::plain));
        }
        let own = if metrics.pairs.is_empty() { &config.certificates } else { &metrics.pairs };
        let auth = metrics.client.as_ref().and_then(|files| self.client_auth(files));
        let certified = auth.is_some();
        let pairs = self.pairs(own);
        if pairs.is_empty() || tokens.is_none() && !certified {
            return Ok(None);
        }
        let all = Some(Domain { pairs, auth });
        let server = ServerContext::new(Vec::new(), all, Box::new(|_| None), false, keys)
            .map_err(|error| format!("larder: TLS: {error}"))?;
        Ok(server
            .config()
            .map(|acceptor| MetricsAuthentication::secure(tokens, acceptor, certified)))
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

fn read_pair(files: &PairFiles) -> Result<Arc<CertificateKeyPair>, Box<Diagnostic>> {
    let chain = read_file(&files.cert, &files.cert_place)?;
    let key = read_file(&files.key, &files.key_place)?;
    CertificateKeyPair::parse(&chain, &key).map(Arc::new).map_err(|error| {
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

fn read_upstream(files: &OriginTls) -> Result<Upstream, Box<Diagnostic>> {
    let own = files.pair.as_ref().map(read_pair).transpose()?;
    let place = files.ca.as_ref().map_or(&files.place, |file| &file.place);
    let authorities = match files.verify {
        true => Some(read_authorities(files.ca.as_ref(), place)?),
        false => None,
    };
    trusting(authorities, own, place)
}

fn read_collector(tracing: &Tracing, config: &Config) -> Result<Collector, Box<Diagnostic>> {
    let upstream = tracing.tls.as_ref().map(read_upstream).transpose()?;
    Collector::read(tracing, upstream, &config.limits)
}

fn read_webhook(webhook: &WebhookConfig) -> Result<Webhook, Box<Diagnostic>> {
    let trust = trust(webhook.ca.as_ref(), &webhook.place)?;
    Ok(Webhook { url: webhook.url.clone(), trust })
}

/// The authorities in a file, or the system's.
fn read_authorities(
    ca: Option<&PlacedPath>,
    place: &ConfigLocation,
) -> Result<Vec<u8>, Box<Diagnostic>> {
    if let Some(file) = ca {
        return read_file(&file.path, &file.place);
    }
    let none = || {
        let text = "no authorities to verify servers by: set `ca`";
        Box::new(place.error(text.to_owned()))
    };
    base::system_authorities().ok_or_else(none)
}

/// The trust in servers by the authorities in a file, or by the system's.
fn trust(ca: Option<&PlacedPath>, place: &ConfigLocation) -> Result<Upstream, Box<Diagnostic>> {
    trusting(Some(read_authorities(ca, place)?), None, place)
}

fn trusting(
    authorities: Option<Vec<u8>>,
    own: Option<Arc<CertificateKeyPair>>,
    place: &ConfigLocation,
) -> Result<Upstream, Box<Diagnostic>> {
    Upstream::new(authorities.as_deref(), own)
        .map_err(|error| Box::new(place.error(error.to_string())))
}

/// A certificate ordered for `host`; `None` until it is issued.
fn read_stored(path: &Path, host: &str) -> Result<Option<Arc<CertificateKeyPair>>, String> {
    let pem = match keeper::read(path) {
        Ok(pem) => pem,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("{}: {error}", path.display())),
    };
    match CertificateKeyPair::parse(&pem, &pem) {
        Ok(pair) if pair.covers(host) => Ok(Some(Arc::new(pair))),
        Ok(_) => Err(format!("{}: it is not for {host}", path.display())),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

fn read_file(path: &Path, place: &ConfigLocation) -> Result<Vec<u8>, Box<Diagnostic>> {
    keeper::read(path)
        .map_err(|error| Box::new(place.error(format!("{}: {error}", path.display()))))
}

/// A warning if the pair has expired.
fn expired(files: &PairFiles, pair: &CertificateKeyPair) -> Option<Diagnostic> {
    let text = || format!("{}: the certificate has expired", files.cert.display());
    (pair.not_after() < now_secs()).then(|| files.cert_place.warning(text()))
}

/// A warning if the certificate demands a staple (RFC 7633) and there will be none.
fn unstapled(files: &PairFiles, pair: &CertificateKeyPair, stapling: bool) -> Option<Diagnostic> {
    let why = match pair.inquiry() {
        Some(_) if stapling => return None,
        Some(_) => "`ocsp = false` switches it off",
        None => "it names no responder over http, or its issuer is not in the file",
    };
    let text = || {
        let file = files.cert.display();
        format!(
            "{file}: the certificate makes clients require an OCSP response, and none can be \
             shown: {why}"
        )
    };
    pair.must_staple().then(|| files.cert_place.warning(text()))
}

fn now_secs() -> u64 {
    rt::now().unix_secs()
}

fn stamps_of_pair(files: &PairFiles) -> Vec<Stamp> {
    vec![stamp(&files.cert), stamp(&files.key)]
}

fn stamp(path: &Path) -> Stamp {
    let meta = keeper::metadata(path).ok()?;
    // Includes the change time: a file moved into place may carry an old modification time.
    let changed = meta.ctime().wrapping_mul(1_000_000_000).wrapping_add(meta.ctime_nsec());
    let modified = meta.mtime().wrapping_mul(1_000_000_000).wrapping_add(meta.mtime_nsec());
    Some((meta.dev(), meta.ino(), meta.size(), modified, changed))
}

/// Reads the token of metrics clients.
fn read_token(file: &PlacedPath) -> Result<Arc<Tokens>, Box<Diagnostic>> {
    let error = |why: String| Box::new(file.error(why));
    let text = keeper::read_secret(&file.path).map_err(error)?;
    let tokens = Tokens::of_text(Role::Read, &String::from_utf8_lossy(&text));
    tokens.map(Arc::new).map_err(error)
}

/// Reads the guard of the Varnish CLI port.
fn read_guard(cli: &config::VarnishCli) -> Result<Guard, Box<Diagnostic>> {
    let file = match &cli.secret {
        config::CliSecret::None => return Ok(Guard::Open),
        config::CliSecret::Own => return Ok(Guard::Own),
        config::CliSecret::File(file) => file,
    };
    let secret = keeper::read(&file.path).map_err(|error| Box::new(file.error(error)))?;
    // The digest of an empty secret is public.
    match secret.trim_ascii().is_empty() {
        true => Err(Box::new(file.error("the secret is empty"))),
        false => Ok(Guard::Secret(secret.into())),
    }
}
