//! `[health]` and `[metrics]`: what those ask who watch over the daemon from elsewhere.

use std::net::SocketAddr;

use super::{ports, tls};
use crate::keys;
use crate::listen::EXPECTED;
use crate::model::{Certificates, ClientFiles, HealthConfig, ListenSpec, MetricsConfig};
use crate::reader::{Item, Reader, Table};

/// The way in which health is told.
pub(super) fn health(r: &mut Reader, top: &Table<'_>) -> HealthConfig {
    let table = top.item("health").and_then(|item| r.table(&item, &keys::HEALTH));
    let Some(table) = table else { return HealthConfig::default() };
    let words = [("ready", false), ("not-ready", true)];
    let told = table.item("origins_down").and_then(|item| r.word(&item, &words));
    HealthConfig {
        listen: table.item("listen").and_then(|item| ports::address(r, &item, "0.0.0.0:6090")),
        tells_of_origins: told.unwrap_or_default(),
    }
}

/// The listener for Prometheus. `default` are the certificates of `[tls]`.
pub(super) fn metrics(
    r: &mut Reader,
    top: &Table<'_>,
    default: &Certificates,
) -> Option<MetricsConfig> {
    let whole = top.item("metrics")?;
    let table = r.table(&whole, &keys::METRICS)?;
    let token = tls::path_of(r, &table, "token_file");
    let client = tls::path_of(r, &table, "client_ca").map(|(ca, place)| ClientFiles {
        ca,
        place,
        required: true,
        tells_x_ssl: false,
        tells_client_cert: false,
    });
    let pairs = tls::pairs(r, &table);
    if table.item("token_file").is_none() && table.item("client_ca").is_none() {
        r.error(whole.span.clone(), "everybody could read the figures").help =
            Some("name a `token_file`, a `client_ca`, or both".to_owned());
    }
    let Some(item) = table.item("listen") else {
        r.error(whole.span, "[metrics] needs `listen`");
        return None;
    };
    let listen = listen(r, &item)?;
    let own = table.item("cert");
    match (listen.tls, own) {
        (true, None) if default.is_empty() => {
            r.error(item.span.clone(), "`tls`, and there is no certificate for it").help =
                Some("name `cert` and `key` here, or in `[tls]`".to_owned());
        }
        (false, Some(cert)) => {
            r.error(cert.span, "a certificate, and `listen` does not say `tls`").help =
                Some(format!("listen = \"{} tls\"", listen.text));
        }
        _ => {}
    }
    if !listen.tls {
        check_plain(r, &item, &table, &listen);
    }
    Some(MetricsConfig { listen, token, client, pairs })
}

/// A listener without TLS checks no certificate, and shows tokens to everyone on the way.
fn check_plain(r: &mut Reader, item: &Item<'_>, table: &Table<'_>, listen: &ListenSpec) {
    if let Some(client) = table.item("client_ca") {
        r.error(client.span, "`client_ca`, and `listen` does not say `tls`").help =
            Some(format!("listen = \"{} tls\"", listen.text));
    }
    let is_elsewhere = |address: &&SocketAddr| !address.ip().is_loopback();
    if let Some(public) = listen.addresses.iter().find(is_elsewhere) {
        let message = format!("`listen`: without TLS others could read the token at {public}");
        r.error(item.span.clone(), message).help = Some(format!(
            "write \"{} tls\" and name a certificate, or \"127.0.0.1:{}\"",
            listen.text,
            public.port()
        ));
    }
}

/// Addresses, with or without TLS.
fn listen(r: &mut Reader, item: &Item<'_>) -> Option<ListenSpec> {
    let spec = r.text(item).and_then(|text| super::listen::one_listen(r, text, item))?;
    if spec.addresses.is_empty() || spec.proxy || spec.h2c {
        r.error(item.span.clone(), "an address belongs here, and at most `tls`").help =
            Some(EXPECTED.to_owned());
        return None;
    }
    Some(spec)
}
