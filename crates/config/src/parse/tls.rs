//! `[tls]` and `[site.tls]`.

use std::path::PathBuf;
use std::sync::Arc;

use crate::keys;
use crate::model::{Certificates, ClientFiles, ListenSpec, PairFiles, Place, SiteConfig, SiteTls};
use crate::reader::{Item, Reader, Table};

/// `[tls]`.
pub(super) fn default_pairs(r: &mut Reader, top: &Table<'_>) -> Certificates {
    let table = top.item("tls").and_then(|item| r.table(&item, &keys::TLS));
    table.map(|table| pairs(r, &table)).unwrap_or_default()
}

/// `[site.tls]`.
pub(super) fn site(r: &mut Reader, site: &Table<'_>) -> SiteTls {
    let Some(table) = site.item("tls").and_then(|item| r.table(&item, &keys::SITE_TLS)) else {
        return SiteTls::default();
    };
    let pairs = pairs(r, &table);
    SiteTls { pairs, client: client(r, &table) }
}

/// As many certificates as keys, paired in their order.
fn pairs(r: &mut Reader, table: &Table<'_>) -> Certificates {
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

fn client(r: &mut Reader, table: &Table<'_>) -> Option<ClientFiles> {
    let words = [("require", true), ("optional", false)];
    let auth = table.item("client_auth");
    let required = auth.as_ref().and_then(|item| r.word(item, &words));
    let Some(item) = table.item("client_ca") else {
        // Not checking clients that were to be checked would be the worst of answers.
        if let Some(auth) = auth {
            r.error(auth.span, "`client_auth` without `client_ca`").help = Some(
                "name the file with the authorities that sign the clients' certificates".to_owned(),
            );
        }
        return None;
    };
    let (ca, place) = path(r, &item)?;
    Some(ClientFiles { ca, place, required: required.unwrap_or(true) })
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
    let place = Place { file: Arc::clone(&r.source), span: item.span.clone() };
    Some((PathBuf::from(text), place))
}

/// Says where listeners, certificates and sites do not fit each other.
pub(super) fn check(
    r: &mut Reader,
    top: &Table<'_>,
    listen: &[ListenSpec],
    default: &Certificates,
    sites: &[SiteConfig],
) {
    let first = default.first().or_else(|| sites.iter().find_map(|site| site.tls.pairs.first()));
    let listens = listen.iter().any(|spec| spec.tls);
    match first {
        None if listens => {
            let span = top.item("listen").map(|item| item.span).unwrap_or_default();
            r.error(span, "a TLS listener, and no certificate").help = Some(
                "add `tls = { cert = \"/path/fullchain.pem\", key = \"/path/privkey.pem\" }` to a \
                 [[site]], or a [tls] table for all"
                    .to_owned(),
            );
        }
        Some(pair) if !listens => {
            let span = pair.cert_place.span.clone();
            r.warning(span, "a certificate, and no TLS listener").help =
                Some("add \":443 tls\" to `listen`".to_owned());
        }
        _ => {}
    }
    for client in sites.iter().filter_map(|site| match site.tls.pairs.is_empty() {
        true if default.is_empty() => site.tls.client.as_ref(),
        _ => None,
    }) {
        r.error(client.place.span.clone(), "`client_ca` in a site without certificate");
    }
}
