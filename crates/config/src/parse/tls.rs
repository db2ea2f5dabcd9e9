//! `[tls]` and `[site.tls]`.

use std::net::SocketAddr;
use std::path::PathBuf;

use message::Status;
use origin::OriginConfig;
use policy::answer::Redirect;
use toml::de::DeValue;

use crate::keys::{BOOLEAN, Key, PATHS, Section, TABLE, keys};
use crate::model::{Certificates, ClientFiles, ListenSpec, OriginTls, PairFiles, Place, SiteTls};
use crate::reader::{Item, Reader, Table};

pub(crate) const TLS: Section = Section {
    title: "[tls]",
    about: "The certificate of sites that have none of their own, and of clients that name no host \
            or one without certificate. Without it such clients are refused. Files are read again \
            within a second of a change; what does not fit together changes nothing.",
    keys: || {
        let mut keys = pair_keys();
        keys.append(&mut keys! {
            "acme", TABLE, "none", "Certificates from an authority, for hosts that have none in files: see `[tls.acme]`.";
            "ocsp", BOOLEAN, "true", "Whether handshakes show an authority's word that the certificate is good (OCSP stapling), for every certificate, those of sites included, that names a responder and comes with its issuer's.";
        });
        keys
    },
    ..Section::EMPTY
};

pub(crate) const SITE_TLS: Section = Section {
    title: "[site.tls]",
    about: "A site's certificates, and how its clients are checked.",
    keys: || {
        let mut keys = pair_keys();
        keys.append(&mut keys! {
            "client_ca", "a path", "none", "PEM file with the authorities that sign clients' certificates; with it, clients are checked.";
            "acme", BOOLEAN, "whether it has no certificate", "Whether certificates are ordered as `[tls.acme]` says; `true` orders them even where those of `[tls]` are good for the hosts.";
            "client_fields", "a list of \"x-ssl\" and \"client-cert\"", "[\"x-ssl\"]", "How origins are told of a client's certificate: in X-SSL-Client-Verify (`SUCCESS` or `NONE`), X-SSL-Client-S-DN and X-SSL-Client-Fingerprint, in Client-Cert (RFC 9440), or, `[]`, not at all. Where they are told, answers are kept only if the origin says that they are for all.";
            "client_auth", "\"require\" or \"optional\"", "\"require\"", "Whether a client must have a certificate, or one that it shows need only be good. Requests over plain connections are refused where one is required.";
        });
        keys
    },
    ..Section::EMPTY
};

pub(crate) const ORIGIN_TLS: Section = Section {
    title: "[origin.tls]",
    about: "TLS to `https://` servers. Their certificates are verified, name included; the handshake is \
            part of `connect_timeout`.",
    keys: || {
        keys! {
            "ca", "a path", "the system's", "PEM file with the authorities trusted.";
            "sni", "a string", "the server's name", "The name that is asked for and that the certificate must be for.";
            "cert", "a path", "none", "PEM file with a certificate shown to servers that ask for one.";
            "key", "a path", "none", "PEM file with its private key.";
            "verify", BOOLEAN, "true", "Whether certificates are verified. Without it anyone on the way can read and change everything.";
        }
    },
    ..Section::EMPTY
};

/// A certificate and its key, in `[tls]` and in `[site.tls]`.
pub(super) fn pair_keys() -> Vec<Key> {
    keys! {
        "cert", PATHS, "none", "PEM files, each a certificate followed by its chain; with several, a client gets the first it can check, elliptic curves before RSA.";
        "key", PATHS, "none", "PEM files with the private keys, in the order of `cert`.";
    }
}

/// `[tls]`, its keys checked already.
pub(super) fn table<'a>(top: &Table<'a>) -> Option<Table<'a>> {
    Reader::known_table(&top.item("tls")?, &TLS)
}

/// The certificates of `[tls]`.
pub(super) fn default_pairs(r: &mut Reader, top: &Table<'_>) -> Certificates {
    let table = top.item("tls").and_then(|item| r.table(&item, &TLS));
    table.map(|table| pairs(r, &table)).unwrap_or_default()
}

/// Returns true if OCSP stapling is on, as it is by default.
pub(super) fn ocsp(r: &mut Reader, top: &Table<'_>) -> bool {
    let item = table(top).and_then(|table| table.item("ocsp"));
    item.and_then(|item| r.boolean(&item)).unwrap_or(true)
}

/// `[site.tls]`.
pub(super) fn site(r: &mut Reader, site: &Table<'_>) -> SiteTls {
    let Some(table) = site.item("tls").and_then(|item| r.table(&item, &SITE_TLS)) else {
        return SiteTls::default();
    };
    let pairs = pairs(r, &table);
    let acme = table.item("acme");
    let acme = acme.and_then(|item| {
        let wanted = r.boolean(&item)?;
        if wanted && !pairs.is_empty() {
            r.error(item.span, "a site's certificates are ordered, or come from files");
        }
        Some(wanted)
    });
    SiteTls { pairs, client: client(r, &table), acme }
}

/// As many certificates as keys, paired in their order.
pub(super) fn pairs(r: &mut Reader, table: &Table<'_>) -> Certificates {
    let (certs, keys) = match (table.item("cert"), table.item("key")) {
        (None, None) => return Vec::new(),
        (Some(cert), None) => {
            r.error(cert.span, "`cert` without `key`").help =
                Some("every certificate needs its private key".to_owned());
            return Vec::new();
        }
        (None, Some(key)) => {
            r.error(key.span, "`key` without `cert`");
            return Vec::new();
        }
        (Some(cert), Some(key)) => (cert, key),
    };
    let (cert_files, key_files) = (paths(r, &certs), paths(r, &keys));
    if certs.each().len() != keys.each().len() {
        let related = Some((certs.span.clone(), "the certificates".to_owned()));
        let error = r.error(keys.span, "`cert` and `key` name a different number of files");
        error.related = related;
        error.help = Some("write the keys in the order of their certificates".to_owned());
        return Vec::new();
    }
    if certs.each().is_empty() {
        r.error(certs.span, "`cert` names no file");
    }
    let pair =
        |((cert, cert_place), (key, key_place))| PairFiles { cert, cert_place, key, key_place };
    cert_files.into_iter().zip(key_files).map(pair).collect()
}

/// `[origin.tls]`; what holds without it, when a server speaks TLS.
pub(super) fn origin(
    r: &mut Reader,
    origin: &Table<'_>,
    config: &OriginConfig,
) -> Option<OriginTls> {
    let used = uses_tls(config);
    let Some(item) = origin.item("tls") else {
        let place = r.lasting(&origin.span);
        return used.then(|| plain_origin(place));
    };
    let table = r.table(&item, &ORIGIN_TLS)?;
    if !used {
        r.warning(item.span.clone(), "none of the servers speaks TLS").help =
            Some("write their URLs with https://".to_owned());
    }
    let mut pairs = pairs(r, &table);
    if pairs.len() > 1 {
        r.error(item.span.clone(), "an origin is shown one certificate");
    }
    let verify = table.item("verify");
    let verified = verify.as_ref().and_then(|item| r.boolean(item)).unwrap_or(true);
    if let (Some(item), false) = (&verify, verified) {
        r.warning(item.span.clone(), "the servers' certificates are not verified").help = Some(
            "anyone on the way can read and change everything: name their authority in `ca`"
                .to_owned(),
        );
    }
    Some(OriginTls {
        ca: table.item("ca").and_then(|item| path(r, &item)),
        pair: pairs.pop(),
        sni: table.item("sni").and_then(|item| sni(r, &item)),
        verify: verified,
        place: r.lasting(&item.span),
    })
}

/// Returns true if a server of the origin speaks TLS.
pub(super) fn uses_tls(config: &OriginConfig) -> bool {
    config.servers.iter().any(|server| server.tls)
}

/// Verified by the system's authorities, nothing shown.
pub(crate) fn plain_origin(place: Place) -> OriginTls {
    OriginTls { ca: None, pair: None, sni: None, verify: true, place }
}

fn sni(r: &mut Reader, item: &Item<'_>) -> Option<String> {
    let text = r.text(item)?;
    let name = policy::hosts::canonical(text).filter(|name| !name.contains(['*', '[', '_']));
    if name.is_none() {
        r.error(item.span.clone(), "`sni` is a host name");
    }
    name
}

/// The port of the first TLS listener, if it is known before it listens.
pub(super) fn https_port(listen: &[ListenSpec]) -> Option<u16> {
    let https = listen.iter().find(|spec| spec.tls).and_then(|spec| spec.addresses.first());
    https.map(SocketAddr::port).filter(|port| *port != 0)
}

/// The redirect to HTTPS of a site without a file: there where a listener of ours speaks TLS.
pub(crate) fn usual_redirect(listen: &[ListenSpec]) -> Option<Redirect> {
    listen.iter().any(|spec| spec.tls).then(|| to_https(308, https_port(listen))).flatten()
}

fn to_https(code: u16, port: Option<u16>) -> Option<Redirect> {
    Redirect::to_https(Status::new(code)?, port.filter(|port| *port != 443)).ok()
}

/// `redirect_https`, to the port of the first TLS listener.
pub(super) fn redirect(r: &mut Reader, site: &Table<'_>, port: Option<u16>) -> Option<Redirect> {
    let item = site.item("redirect_https")?;
    let code = match item.value {
        DeValue::Boolean(false) => return None,
        DeValue::Boolean(true) => 308,
        DeValue::Integer(_) => match r.count(&item, 301, 308)? {
            code @ (301 | 308) => code,
            _ => {
                r.error(item.span, "`redirect_https` is true, false, 301 or 308");
                return None;
            }
        },
        _ => {
            r.wrong_type(&item);
            return None;
        }
    };
    // Without a TLS listener of ours a proxy in front ends TLS, and says so in X-Forwarded-Proto.
    to_https(u16::try_from(code).ok()?, port)
}

fn client(r: &mut Reader, table: &Table<'_>) -> Option<ClientFiles> {
    let words = [("require", true), ("optional", false)];
    let auth = table.item("client_auth");
    let required = auth.as_ref().and_then(|item| r.word(item, &words));
    let fields = table.item("client_fields");
    let told = fields.as_ref().map_or_else(|| vec![Told::XSsl], |item| client_fields(r, item));
    let Some(item) = table.item("client_ca") else {
        if let Some(fields) = fields {
            r.error(fields.span, "`client_fields` without `client_ca`");
        }
        // Not checking clients that were to be checked would be the worst of answers.
        if let Some(auth) = auth {
            r.error(auth.span, "`client_auth` without `client_ca`").help = Some(
                "name the file with the authorities that sign the clients' certificates".to_owned(),
            );
        }
        return None;
    };
    let (ca, place) = path(r, &item)?;
    Some(ClientFiles {
        ca,
        place,
        required: required.unwrap_or(true),
        tells_x_ssl: told.contains(&Told::XSsl),
        tells_client_cert: told.contains(&Told::ClientCert),
    })
}

/// A way to tell origins of a client's certificate.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    XSsl,
    ClientCert,
}

fn client_fields(r: &mut Reader, item: &Item<'_>) -> Vec<Told> {
    let words = [("x-ssl", Told::XSsl), ("client-cert", Told::ClientCert)];
    item.each().iter().filter_map(|item| r.word(item, &words)).collect()
}

fn paths(r: &mut Reader, item: &Item<'_>) -> Vec<(PathBuf, Place)> {
    item.each().iter().filter_map(|item| path(r, item)).collect()
}

/// An absolute path, and where it is written.
pub(super) fn path(r: &mut Reader, item: &Item<'_>) -> Option<(PathBuf, Place)> {
    let text = r.text(item)?;
    if !text.starts_with('/') || text.contains('\0') {
        // A relative path would depend on where the daemon was started from.
        r.error(item.span.clone(), format!("`{}` takes an absolute path", item.name));
        return None;
    }
    let place = r.lasting(&item.span);
    Some((PathBuf::from(text), place))
}

/// The path under a key, if it is there.
pub(super) fn path_of(
    r: &mut Reader,
    table: &Table<'_>,
    name: &'static str,
) -> Option<(PathBuf, Place)> {
    path(r, &table.item(name)?)
}
