//! `[tls.acme]`: certificates from an authority.

use std::path::PathBuf;

use data_encoding::{BASE64, BASE64URL_NOPAD};

use crate::keys::TABLE;
use crate::model::{
    AcmeBinding, AcmeChallenge, AcmeConfig, Certificates, ConfigLocation, ListenSpec, SiteConfig,
};
use crate::reader::{Reader, SettingValue, TextRange, TomlTable};
use crate::rows::{self, section};

/// The directories of Let's Encrypt, and of its staging environment.
const PRODUCTION: &str = "https://acme-v02.api.letsencrypt.org/directory";
const STAGING: &str = "https://acme-staging-v02.api.letsencrypt.org/directory";

/// The default folder of certificates.
const STORAGE: &str = "/var/lib/larder/acme";

section! {
    pub(crate) ACME, ACME_ROWS: AcmeConfig; "[tls.acme]",
    "Certificates from an authority that speaks ACME (RFC 8555). Larder orders them at the start \
     and renews them in time, for every host without a certificate file. By setting this, you \
     agree to the authority's terms of service.";
    "email", "a string", "none", "Contact address for the authority.",
        |r, item, to| to.email = email(r, item);
    "directory", "a URL, \"letsencrypt\" or \"staging\"", "\"letsencrypt\"", "URL of the authority's directory. `letsencrypt` is Let's Encrypt; `staging` is its test authority, whose certificates no client trusts.",
        |r, item, to| to.directory = directory(r, item);
    "ca", path ca, "the system's", "PEM file with the authorities that verify the directory's own certificate.";
    "storage", bare_path storage, "\"/var/lib/larder/acme\"", "Directory for the account and the certificates, for the daemon alone.";
    "challenges", "\"http-01\", \"tls-alpn-01\", or a list of both", "what listeners make possible, tls-alpn-01 first", "Challenges that prove control of a host, in order of preference. If one fails, Larder tries the other.",
        |r, item, to| challenges(r, item, &mut to.challenges);
    @table(EAB) "eab", TABLE, "none", "External account binding: see `[tls.acme.eab]`.",
        |r, item, to| to.binding = binding(r, item);
}

section! {
    pub(crate) EAB, EAB_ROWS: AcmeBinding; "[tls.acme.eab]",
    "External account binding (RFC 8555 7.3.4), for authorities that require it.";
    @needed("`eab` needs `kid` and `hmac`", "")
    "kid", string key_id, "required", "Identifier of the key.";
    #Secret @needed("`eab` needs `kid` and `hmac`", "")
    "hmac", "a string", "required", "The key in base64url, as the authority issues it.",
        |r, item, to| to.hmac = hmac(r, item);
}

/// Reads `acme` of `[tls]`.
pub(super) fn acme(
    r: &mut Reader,
    item: &SettingValue<'_>,
    listen: &[ListenSpec],
) -> Option<AcmeConfig> {
    let mut acme = usual(listen);
    acme.place = r.location(&item.span);
    let table = r.table(item, &ACME)?;
    rows::read(r, &table, ACME_ROWS, &mut acme);
    Some(acme)
}

/// The defaults: Let's Encrypt, and the challenges that `listen` permits.
fn usual(listen: &[ListenSpec]) -> AcmeConfig {
    AcmeConfig {
        email: None,
        directory: PRODUCTION.to_owned(),
        ca: None,
        storage: PathBuf::from(STORAGE),
        challenges: possible(listen),
        binding: None,
        place: ConfigLocation::nowhere(),
    }
}

/// The settings of `--acme`: Let's Encrypt, and the challenges that `listen` permits.
pub(crate) fn plain(email: &str, listen: &[ListenSpec]) -> Result<AcmeConfig, &'static str> {
    if !is_address(email) {
        return Err(NO_ADDRESS);
    }
    Ok(AcmeConfig { email: Some(email.to_owned()), ..usual(listen) })
}

const NO_ADDRESS: &str = "not an e-mail address";

fn email(r: &mut Reader, item: &SettingValue<'_>) -> Option<String> {
    let text = r.text(item)?;
    if !is_address(text) {
        r.error(item.span.clone(), format!("`email`: {NO_ADDRESS}"));
    }
    Some(text.to_owned())
}

/// Returns true if `text` can form a `mailto:` URL that names one address and nothing else (RFC
/// 8555 7.3).
fn is_address(text: &str) -> bool {
    let plain = text.bytes().all(|b| b.is_ascii_graphic() && !b",?&%#<>\"".contains(&b));
    let parts = text.split_once('@');
    plain && parts.is_some_and(|(user, host)| !user.is_empty() && host.contains(|c| c != '@'))
}

fn directory(r: &mut Reader, item: &SettingValue<'_>) -> String {
    let Some(text) = r.text(item) else { return String::new() };
    match text {
        "letsencrypt" => PRODUCTION.to_owned(),
        "staging" => STAGING.to_owned(),
        url => {
            let rest = url.strip_prefix("https://").unwrap_or_default();
            let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
            if host.is_empty() || !url.bytes().all(|b| b.is_ascii_graphic()) {
                let what = "`directory` is a URL with https://, \"letsencrypt\" or \"staging\"";
                r.error(item.span.clone(), what);
            }
            url.to_owned()
        }
    }
}

/// Reads the selected challenges, the preferred one first; they must be possible.
fn challenges(r: &mut Reader, item: &SettingValue<'_>, possible: &mut Vec<AcmeChallenge>) {
    let words = [("http-01", AcmeChallenge::Http01), ("tls-alpn-01", AcmeChallenge::TlsAlpn01)];
    let mut wanted = Vec::new();
    for item in item.each() {
        let Some(challenge) = r.word(&item, &words) else { continue };
        if !possible.contains(&challenge) {
            let (what, help) = match challenge {
                AcmeChallenge::Http01 => ("http-01 needs a plain listener", ":80"),
                AcmeChallenge::TlsAlpn01 => ("tls-alpn-01 needs a TLS listener", ":443 tls"),
            };
            r.error(item.span.clone(), what).help = Some(format!("add \"{help}\" to `listen`"));
        }
        if !wanted.contains(&challenge) {
            wanted.push(challenge);
        }
    }
    if item.each().is_empty() {
        r.error(item.span.clone(), "`challenges` is an empty list");
    }
    *possible = wanted;
}

/// The possible challenges. The one in the handshake uses the certificates' own port, so it comes
/// first.
fn possible(listen: &[ListenSpec]) -> Vec<AcmeChallenge> {
    let has = |tls| listen.iter().any(|spec| spec.tls == tls);
    let mut possible = Vec::new();
    possible.extend(has(true).then_some(AcmeChallenge::TlsAlpn01));
    possible.extend(has(false).then_some(AcmeChallenge::Http01));
    possible
}

fn binding(r: &mut Reader, item: &SettingValue<'_>) -> Option<AcmeBinding> {
    let mut binding = AcmeBinding { key_id: String::new(), hmac: Vec::new() };
    rows::read_table(r, item, &EAB, EAB_ROWS, &mut binding).then_some(binding)
}

fn hmac(r: &mut Reader, item: &SettingValue<'_>) -> Vec<u8> {
    let Some(text) = r.text(item) else { return Vec::new() };
    // Authorities use either alphabet.
    let bare = text.trim_end_matches('=');
    let plain = |_| BASE64.decode(text.as_bytes());
    let decoded = BASE64URL_NOPAD.decode(bare.as_bytes()).or_else(plain).unwrap_or_default();
    if decoded.is_empty() {
        r.error(item.span.clone(), "`hmac` is not base64url");
    }
    decoded
}

/// Reports names and listeners that do not fit the orders.
pub(super) fn check(
    r: &mut Reader,
    top: &TomlTable<'_>,
    acme: &AcmeConfig,
    default: &Certificates,
    sites: &[SiteConfig],
) {
    let written = top.item("site").map(|item| item.each()).unwrap_or_default();
    let mut any = false;
    for (site, table) in sites.iter().zip(&written) {
        if !acme.is_for(site) {
            continue;
        }
        let places = table.key("host").map(|item| item.each()).unwrap_or_default();
        for host in &site.hosts {
            let Err(why) = acme.may_order(host) else {
                any = true;
                continue;
            };
            // Nothing can be ordered for `*`, which is expected; certificates from files may cover
            // the host.
            if host == "*" || !default.is_empty() {
                continue;
            }
            warn(r, span_of(&places, host, table), host, why);
        }
    }
    if !any && r.found.iter().all(|d| d.severity == crate::Severity::Warning) {
        let span = r.span_of(&acme.place);
        r.error(span, "`acme`, and no host to order a certificate for").help =
            Some("name the hosts in a site: `host = [\"example.com\"]`".to_owned());
    }
}

fn span_of(places: &[SettingValue<'_>], host: &str, site: &SettingValue<'_>) -> TextRange {
    let is_it = |item: &&SettingValue<'_>| {
        let text = item.value.as_str();
        text.and_then(policy::hosts::canonical).is_some_and(|own| own == host)
    };
    places.iter().find(is_it).map_or_else(|| site.span.clone(), |item| item.span.clone())
}

fn warn(r: &mut Reader, span: TextRange, host: &str, why: &str) {
    r.warning(span, format!("no certificate is ordered for `{host}`: {why}")).help = Some(
        "name its certificate in `tls`, or write `tls = { acme = false }` in the site".to_owned(),
    );
}
