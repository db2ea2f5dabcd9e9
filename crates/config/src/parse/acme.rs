//! `[tls.acme]`: certificates from an authority.

use std::path::PathBuf;

use data_encoding::{BASE64, BASE64URL_NOPAD};

use crate::keys::{Section, TABLE, keys};
use crate::model::{
    AcmeBinding, AcmeChallenge, AcmeConfig, Certificates, ListenSpec, Place, SiteConfig,
};
use crate::reader::{Item, Reader, Span, Table};

/// Let's Encrypt, and its twin for trials.
const PRODUCTION: &str = "https://acme-v02.api.letsencrypt.org/directory";
const STAGING: &str = "https://acme-staging-v02.api.letsencrypt.org/directory";

/// Where certificates are kept unless something else is said.
const STORAGE: &str = "/var/lib/larder/acme";

pub(crate) const ACME: Section = Section {
    title: "[tls.acme]",
    about: "Certificates from an authority that speaks ACME (RFC 8555), ordered at start and \
            renewed in time, for every host that no certificate from files is for. Whoever sets \
            this agrees to the authority's terms of service.",
    keys: || {
        keys! {
            "email", "a string", "none", "Where the authority may write to about the account.";
            "directory", "a URL, \"letsencrypt\" or \"staging\"", "\"letsencrypt\"", "The authority: URL of its directory. `staging` is Let's Encrypt's for trials, whose certificates nobody trusts.";
            "ca", "a path", "the system's", "PEM file with the authorities that the directory's own certificate is verified by.";
            "storage", "a path", "\"/var/lib/larder/acme\"", "Folder for the account and the certificates, the daemon's alone.";
            "challenges", "\"http-01\", \"tls-alpn-01\", or a list of both", "what listeners make possible, tls-alpn-01 first", "How hosts are proved, the preferred way first; when one fails the other is tried.";
            "eab", TABLE, "none", "See `[tls.acme.eab]`.";
        }
    },
    ..Section::EMPTY
};

pub(crate) const EAB: Section = Section {
    title: "[tls.acme.eab]",
    about: "The account elsewhere that the one with the authority is bound to (RFC 8555 7.3.4), where \
            the authority wants that.",
    keys: || {
        keys! {
            "kid", "a string", "required", "The key's identifier.";
            "hmac", "a string", "required", "The key, base64url as the authority hands it out.";
        }
    },
    ..Section::EMPTY
};

/// Reads `acme` of `[tls]`.
pub(super) fn acme(r: &mut Reader, top: &Table<'_>, listen: &[ListenSpec]) -> Option<AcmeConfig> {
    let item = super::tls::table(top)?.item("acme")?;
    let table = r.table(&item, &ACME)?;
    let email = table.item("email").and_then(|item| email(r, &item));
    let directory = table.item("directory").map(|item| directory(r, &item));
    let ca = table.item("ca").and_then(|item| super::tls::path(r, &item));
    let storage = table.item("storage").and_then(|item| super::tls::path(r, &item));
    let challenges = challenges(r, &table, listen);
    let binding = table.item("eab").and_then(|item| binding(r, &item));
    Some(AcmeConfig {
        email,
        directory: directory.unwrap_or_else(|| PRODUCTION.to_owned()),
        ca,
        storage: storage.map_or_else(|| PathBuf::from(STORAGE), |(path, _)| path),
        challenges,
        binding,
        place: r.lasting(&item.span),
    })
}

/// The settings that `--acme` stands for: Let's Encrypt, and the challenges that `listen` makes
/// possible.
pub(crate) fn plain(email: &str, listen: &[ListenSpec]) -> Result<AcmeConfig, &'static str> {
    if !is_address(email) {
        return Err(NO_ADDRESS);
    }
    Ok(AcmeConfig {
        email: Some(email.to_owned()),
        directory: PRODUCTION.to_owned(),
        ca: None,
        storage: PathBuf::from(STORAGE),
        challenges: possible(listen),
        binding: None,
        place: Place::nowhere(),
    })
}

const NO_ADDRESS: &str = "not an e-mail address";

fn email(r: &mut Reader, item: &Item<'_>) -> Option<String> {
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

fn directory(r: &mut Reader, item: &Item<'_>) -> String {
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

/// The challenges that are wanted and can be answered, the preferred first.
fn challenges(r: &mut Reader, table: &Table<'_>, listen: &[ListenSpec]) -> Vec<AcmeChallenge> {
    let possible = possible(listen);
    let Some(item) = table.item("challenges") else { return possible };
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
        r.error(item.span, "`challenges` is an empty list");
    }
    wanted
}

/// A question in the handshake stays on the port that certificates are for: it comes first.
fn possible(listen: &[ListenSpec]) -> Vec<AcmeChallenge> {
    let has = |tls| listen.iter().any(|spec| spec.tls == tls);
    let mut possible = Vec::new();
    possible.extend(has(true).then_some(AcmeChallenge::TlsAlpn01));
    possible.extend(has(false).then_some(AcmeChallenge::Http01));
    possible
}

fn binding(r: &mut Reader, item: &Item<'_>) -> Option<AcmeBinding> {
    let table = r.table(item, &EAB)?;
    let key_id = table.item("kid").and_then(|item| r.text(&item).map(str::to_owned));
    let hmac = table.item("hmac").and_then(|item| {
        let text = r.text(&item)?;
        // Authorities hand it out in either alphabet.
        let bare = text.trim_end_matches('=');
        let plain = |_| BASE64.decode(text.as_bytes());
        let decoded = BASE64URL_NOPAD.decode(bare.as_bytes()).or_else(plain).unwrap_or_default();
        if decoded.is_empty() {
            r.error(item.span, "`hmac` is not base64url");
        }
        Some(decoded)
    });
    let whole = key_id.zip(hmac);
    if whole.is_none() {
        r.error(item.span.clone(), "`eab` needs `kid` and `hmac`");
    }
    whole.map(|(key_id, hmac)| AcmeBinding { key_id, hmac })
}

/// Says where names and listeners do not fit what is to be ordered.
pub(super) fn check(
    r: &mut Reader,
    top: &Table<'_>,
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
            // For every host there is nothing to ask for, which is no surprise; and what a
            // certificate from files may cover is none either.
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

fn span_of(places: &[Item<'_>], host: &str, site: &Item<'_>) -> Span {
    let is_it = |item: &&Item<'_>| {
        let text = item.value.as_str();
        text.and_then(policy::hosts::canonical).is_some_and(|own| own == host)
    };
    places.iter().find(is_it).map_or_else(|| site.span.clone(), |item| item.span.clone())
}

fn warn(r: &mut Reader, span: Span, host: &str, why: &str) {
    r.warning(span, format!("no certificate is ordered for `{host}`: {why}")).help = Some(
        "name its certificate in `tls`, or say `tls = { acme = false }` in the site".to_owned(),
    );
}
