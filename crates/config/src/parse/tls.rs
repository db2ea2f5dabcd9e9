//! `[tls]` and `[site.tls]`: certificates and checks of clients.

use std::net::SocketAddr;

use message::Status;
use origin::OriginConfig;
use policy::answer::Redirect;
use toml::de::DeValue;

use super::acme;
use crate::keys::{BOOLEAN, PATHS, TABLE};
use crate::model::{
    Certificates, ClientFiles, Config, ConfigLocation, ListenSpec, OriginTls, PairFiles,
    PlacedPath, SiteTls,
};
use crate::reader::{Reader, SettingValue};
use crate::rows::{self, put, section};

/// The description of certificates, for all tables.
pub(super) const CERT: &str = "PEM files, each with a certificate followed by its chain. With several, a client gets the first that it supports, elliptic curves before RSA.";
/// The description of their keys.
pub(super) const KEY: &str = "PEM files with the private keys, in the order of `cert`.";

section! {
    pub(crate) TLS, pub(super) TLS_ROWS: Config; "[tls]",
    "Default certificate: for sites without a certificate of their own, and for clients that name \
     no host, or a host without a certificate. Without it, Larder refuses such clients. Changed \
     files take effect within a second; if certificate and key do not match, the old ones stay.";
    "cert", PATHS, "none", CERT,
        |r, item, to| to.certificates = pairs(r, item);
    "key", PATHS, "none", KEY,
        |r, item, _| lone_key(r, item);
    @table(acme::ACME) "acme", TABLE, "none", "Certificates from an ACME authority, for hosts without a certificate file: see `[tls.acme]`.",
        |r, item, to| to.acme = acme::acme(r, item, &to.listen);
    "ocsp", boolean ocsp, "true", "Whether handshakes include the authority's OCSP response (stapling). Applies to all certificates, also those of sites, that name a responder and come with the issuer's certificate.";
}

section! {
    pub(crate) SITE_TLS, SITE_TLS_ROWS: SiteTls; "[site.tls]",
    "Certificates of a site, and verification of its clients.";
    "cert", PATHS, "none", CERT,
        |r, item, to| to.pairs = pairs(r, item);
    "key", PATHS, "none", KEY,
        |r, item, _| lone_key(r, item);
    "client_ca", "a path", "none", "PEM file with the authorities that sign client certificates. With it, Larder verifies client certificates.",
        |r, item, to| {
            to.client = client(r, item).map(|client| ClientFiles { tells_x_ssl: true, ..client });
        };
    "acme", BOOLEAN, "whether it has no certificate", "Whether Larder orders certificates as `[tls.acme]` says. With `true`, Larder orders them even if the certificates of `[tls]` cover the hosts.",
        |r, item, to| {
            to.acme = r.boolean(item);
            if to.acme == Some(true) && !to.pairs.is_empty() {
                r.error(item.span.clone(), "a site's certificates are ordered, or come from files");
            }
        };
    "client_fields", "a list of \"x-ssl\" and \"client-cert\"", "[\"x-ssl\"]", "Request fields that tell origins about the client's certificate. `x-ssl`: X-SSL-Client-Verify (`SUCCESS` or `NONE`), X-SSL-Client-S-DN and X-SSL-Client-Fingerprint. `client-cert`: Client-Cert (RFC 9440). `[]`: none. With any of them, Larder stores only responses that the origin marked as shared.",
        |r, item, to| {
            let words = [
                ("x-ssl", CertificateForwarding::XSsl),
                ("client-cert", CertificateForwarding::ClientCert),
            ];
            let each = item.each();
            let told: Vec<_> = each.iter().filter_map(|item| r.word(item, &words)).collect();
            if let Some(client) = client_beside(r, item, &mut to.client, "") {
                client.tells_x_ssl = told.contains(&CertificateForwarding::XSsl);
                client.tells_client_cert = told.contains(&CertificateForwarding::ClientCert);
            }
        };
    "client_auth", "\"require\" or \"optional\"", "\"require\"", "Whether clients must present a certificate. `require`: a valid certificate is required, and requests over plain connections are refused. `optional`: a certificate must be valid if the client presents one.",
        |r, item, to| {
            let required = r.word(item, &[("require", true), ("optional", false)]);
            // Without the check every client would be admitted, against the setting.
            let help = "name the file with the authorities that sign the clients' certificates";
            if let Some(client) = client_beside(r, item, &mut to.client, help) {
                put(&mut client.required, required);
            }
        };
}

section! {
    pub(crate) ORIGIN_TLS, ORIGIN_TLS_ROWS: OriginTls; "[origin.tls]",
    "TLS to `https://` servers. Larder verifies their certificates, including the name. The \
     handshake counts towards `connect_timeout`.";
    "ca", path ca, "the system's", "PEM file with the trusted authorities.";
    "sni", "a string", "the server's name", "Server name that Larder sends (SNI) and that the certificate must have.",
        |r, item, to| to.sni = sni(r, item);
    "cert", "a path", "none", "PEM file with the client certificate, for servers that request one.",
        |r, item, to| {
            let mut pairs = pairs(r, item);
            if pairs.len() > 1 {
                r.error(item.span.clone(), "an origin is shown one certificate");
            }
            to.pair = pairs.pop();
        };
    "key", "a path", "none", "PEM file with the private key of `cert`.",
        |r, item, _| lone_key(r, item);
    "verify", BOOLEAN, "true", "Whether Larder verifies certificates. With `false`, anyone between Larder and the server can read and change all traffic.",
        |r, item, to| {
            put(&mut to.verify, r.boolean(item));
            if !to.verify {
                let text = "the servers' certificates are not verified";
                r.warning(item.span.clone(), text).help = Some(
                    "anyone on the way can read and change everything: name their authority in `ca`"
                        .to_owned(),
                );
            }
        };
}

/// `[site.tls]`.
pub(super) fn site(r: &mut Reader, item: &SettingValue<'_>) -> SiteTls {
    let mut tls = SiteTls::default();
    rows::read_table(r, item, &SITE_TLS, SITE_TLS_ROWS, &mut tls);
    tls
}

/// Reports a key without a certificate.
pub(super) fn lone_key(r: &mut Reader, keys: &SettingValue<'_>) {
    if keys.table.item("cert").is_none() {
        r.error(keys.span.clone(), "`key` without `cert`");
    }
}

/// Reads pairs of certificates and keys, in their order.
pub(super) fn pairs(r: &mut Reader, certs: &SettingValue<'_>) -> Certificates {
    let Some(keys) = certs.table.item("key") else {
        r.error(certs.span.clone(), "`cert` without `key`").help =
            Some("every certificate needs its private key".to_owned());
        return Vec::new();
    };
    let (cert_files, key_files) = (paths(r, certs), paths(r, &keys));
    if certs.each().len() != keys.each().len() {
        let related = Some((certs.span.clone(), "the certificates".to_owned()));
        let error = r.error(keys.span, "`cert` and `key` name a different number of files");
        error.related = related;
        error.help = Some("write the keys in the order of their certificates".to_owned());
        return Vec::new();
    }
    if certs.each().is_empty() {
        r.error(certs.span.clone(), "`cert` names no file");
    }
    let pair = |(cert, key): (PlacedPath, PlacedPath)| PairFiles {
        cert: cert.path,
        cert_place: cert.place,
        key: key.path,
        key_place: key.place,
    };
    cert_files.into_iter().zip(key_files).map(pair).collect()
}

/// `[origin.tls]`.
pub(super) fn origin(
    r: &mut Reader,
    item: &SettingValue<'_>,
    config: &OriginConfig,
) -> Option<OriginTls> {
    if !uses_tls(config) {
        r.warning(item.span.clone(), "none of the servers speaks TLS").help =
            Some("write their URLs with https://".to_owned());
    }
    let mut tls = plain_origin(r.location(&item.span));
    rows::read_table(r, item, &ORIGIN_TLS, ORIGIN_TLS_ROWS, &mut tls);
    Some(tls)
}

/// Returns true if a server of the origin speaks TLS.
pub(super) fn uses_tls(config: &OriginConfig) -> bool {
    config.servers.iter().any(|server| server.tls)
}

/// The default: verified by the system's authorities, without a client certificate.
pub(crate) fn plain_origin(place: ConfigLocation) -> OriginTls {
    OriginTls { ca: None, pair: None, sni: None, verify: true, place }
}

fn sni(r: &mut Reader, item: &SettingValue<'_>) -> Option<String> {
    let text = r.text(item)?;
    let name = policy::hosts::canonical(text).filter(|name| !name.contains(['*', '[', '_']));
    if name.is_none() {
        r.error(item.span.clone(), "`sni` is a host name");
    }
    name
}

/// The port of the first TLS listener, if it is fixed.
pub(super) fn https_port(listen: &[ListenSpec]) -> Option<u16> {
    let https = listen.iter().find(|spec| spec.tls).and_then(|spec| spec.addresses.first());
    https.map(SocketAddr::port).filter(|port| *port != 0)
}

/// The redirect to HTTPS of a site without a file: with a TLS listener only.
pub(crate) fn usual_redirect(listen: &[ListenSpec]) -> Option<Redirect> {
    listen.iter().any(|spec| spec.tls).then(|| to_https(308, https_port(listen))).flatten()
}

fn to_https(code: u16, port: Option<u16>) -> Option<Redirect> {
    Redirect::to_https(Status::new(code)?, port.filter(|port| *port != 443)).ok()
}

/// `redirect_https`, to the port of the first TLS listener.
pub(super) fn redirect(
    r: &mut Reader,
    item: &SettingValue<'_>,
    port: Option<u16>,
) -> Option<Redirect> {
    let code = match item.value {
        DeValue::Boolean(false) => return None,
        DeValue::Boolean(true) => 308,
        DeValue::Integer(_) => match r.count(item, 301, 308)? {
            code @ (301 | 308) => code,
            _ => {
                r.error(item.span.clone(), "`redirect_https` is true, false, 301 or 308");
                return None;
            }
        },
        _ => {
            r.wrong_type(item);
            return None;
        }
    };
    // Without a TLS listener, a proxy in front ends TLS and reports it in X-Forwarded-Proto.
    to_https(u16::try_from(code).ok()?, port)
}

/// Reads the authorities of clients, which must present a certificate. Nothing is forwarded to
/// origins.
pub(super) fn client(r: &mut Reader, item: &SettingValue<'_>) -> Option<ClientFiles> {
    let PlacedPath { path: ca, place } = r.path(item)?;
    Some(ClientFiles { ca, place, required: true, tells_x_ssl: false, tells_client_cert: false })
}

/// The check that `item` refers to.
fn client_beside<'c>(
    r: &mut Reader,
    item: &SettingValue<'_>,
    client: &'c mut Option<ClientFiles>,
    help: &str,
) -> Option<&'c mut ClientFiles> {
    if item.table.item("client_ca").is_none() {
        r.error(item.span.clone(), format!("`{}` without `client_ca`", item.name)).help =
            (!help.is_empty()).then(|| help.to_owned());
    }
    client.as_mut()
}

/// A way to forward a client's certificate to origins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CertificateForwarding {
    XSsl,
    ClientCert,
}

fn paths(r: &mut Reader, item: &SettingValue<'_>) -> Vec<PlacedPath> {
    item.each().iter().filter_map(|item| r.path(item)).collect()
}
