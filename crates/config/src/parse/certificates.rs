//! Certificates: checks that listeners, certificates and sites fit each other.

use crate::model::Config;
use crate::reader::{Reader, TomlTable};

/// Reports listeners, certificates and sites that do not fit each other.
pub(super) fn check(r: &mut Reader, top: &TomlTable<'_>, config: &Config) {
    let Config { listen, certificates: default, acme, sites, .. } = config;
    let acme = acme.as_ref();
    if r.is_partial {
        return;
    }
    let first = default.first().or_else(|| sites.iter().find_map(|site| site.tls.pairs.first()));
    let listens = listen.iter().any(|spec| spec.tls);
    match first {
        None if acme.is_some() => {
            if let (Some(acme), false) = (acme, listens) {
                let span = r.span_of(&acme.place);
                r.warning(span, "`acme`, and no TLS listener").help =
                    Some("add \":443 tls\" to `listen`".to_owned());
            }
        }
        None if listens => {
            let span = top.item("listen").map(|item| item.span).unwrap_or_default();
            r.error(span, "a TLS listener, and no certificate").help = Some(
                "name one in a [tls] table, or in a site: `tls = { cert = \"...\", key = \"...\" }`"
                    .to_owned(),
            );
        }
        Some(pair) if !listens => {
            let span = r.span_of(&pair.cert_place);
            r.warning(span, "a certificate, and no TLS listener").help =
                Some("add \":443 tls\" to `listen`".to_owned());
        }
        _ => {}
    }
    for client in sites.iter().filter_map(|site| match site.tls.pairs.is_empty() {
        true if acme.is_some_and(|acme| acme.is_for(site)) => None,
        true if default.is_empty() => site.tls.client.as_ref(),
        _ => None,
    }) {
        let span = r.span_of(&client.place);
        r.error(span, "`client_ca` in a site without certificate");
    }
    match acme {
        Some(acme) => super::acme::check(r, top, acme, default, sites),
        None => warn_of_unordered(r, top),
    }
}

/// Warns of a site that wants certificates ordered without an authority.
fn warn_of_unordered(r: &mut Reader, top: &TomlTable<'_>) {
    let sites = top.item("site").map(|item| item.each()).unwrap_or_default();
    for item in sites.iter().filter_map(|site| site.key("tls")?.key("acme")) {
        if item.value.as_bool() == Some(true) {
            r.error(item.span, "`acme` in a site, and no authority").help =
                Some("add `[tls]` with `acme = { email = \"ops@example.com\" }`".to_owned());
        }
    }
}
