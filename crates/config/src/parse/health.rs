//! `[health]` and `[metrics]`: listeners for monitoring.

use std::net::SocketAddr;

use super::ports;
use super::tls::{self, CERT, KEY};
use crate::keys::PATHS;
use crate::listen::EXPECTED;
use crate::model::{Certificates, Config, HealthConfig, ListenSpec, MetricsConfig};
use crate::reader::{Reader, SettingValue, TomlTable};
use crate::rows::{self, put, section};

section! {
    pub(crate) HEALTH, pub(super) HEALTH_ROWS: HealthConfig; "[health]",
    "Health answers for a kubelet or a balancer. Larder reads `listen` at the start.";
    @restart("[health] listen", |own, next| own.health.listen != next.health.listen)
    "listen", "a string", "none", "Addresses on any interface that answer only `/healthz` and `/readyz`, such as \":6090\", without TLS and without a token. Written as `listen` at the top of the file. The admin listener answers these paths, too.",
        |r, item, to| to.listen = ports::address(r, item, "0.0.0.0:6090");
    "origins_down", "\"ready\" or \"not-ready\"", "\"ready\"", "Answer of `/readyz` and `health_check` if all origins of a site are down and nothing usable of the site is stored. `ready`: 200. `not-ready`: 503.",
        |r, item, to| {
            put(&mut to.tells_of_origins, r.word(item, &[("ready", false), ("not-ready", true)]));
        };
}

section! {
    pub(crate) METRICS, METRICS_ROWS: MetricsConfig; "[metrics]",
    "A separate listener for Prometheus that answers only `/metrics`. Clients need the token, a \
     certificate, or both if both are set. Larder reads `listen` at the start and the rest at \
     each reload. Changed certificates take effect within a second.";
    @needed("[metrics] needs `listen`", "")
    @restart("[metrics] listen", |own, next| {
        let listen = |config: &Config| config.metrics.as_ref().map(|own| own.listen.clone());
        listen(own) != listen(next)
    })
    "listen", "a string", "required", "Address of the listener, such as \":6091 tls\" on any interface, written as `listen` at the top of the file. Without `tls`, only loopback addresses are permitted, so that nobody can intercept the token.",
        |r, item, to| put(&mut to.listen, listen(r, item));
    "token_file", path token, "none", "File with the token that clients send in `Authorization: Bearer`: one line of at least 32 letters and digits. The daemon's user or root reads the file. A file that everybody can read is an error.";
    "client_ca", "an absolute path", "none", "PEM file with the authorities that sign client certificates. With it, clients need such a certificate.",
        |r, item, to| to.client = tls::client(r, item);
    "cert", PATHS, "those of `[tls]`", CERT,
        |r, item, to| to.pairs = tls::pairs(r, item);
    "key", PATHS, "none", KEY,
        |r, item, _| tls::lone_key(r, item);
}

/// Reads the listener for Prometheus. `default` are the certificates of `[tls]`.
pub(super) fn metrics(
    r: &mut Reader,
    whole: &SettingValue<'_>,
    default: &Certificates,
) -> Option<MetricsConfig> {
    let table = r.table(whole, &METRICS)?;
    let mut metrics = MetricsConfig::default();
    let is_good = rows::read(r, &table, METRICS_ROWS, &mut metrics);
    if table.item("token_file").is_none() && table.item("client_ca").is_none() {
        r.error(whole.span.clone(), "every client could read the metrics").help =
            Some("name a `token_file`, a `client_ca`, or both".to_owned());
    }
    let item = table.item("listen").filter(|_| is_good)?;
    let listen = &metrics.listen;
    match (listen.tls, table.item("cert")) {
        (true, None) if default.is_empty() => {
            r.error(item.span.clone(), "`tls`, and there is no certificate for it").help =
                Some("name `cert` and `key` here, or in `[tls]`".to_owned());
        }
        (false, Some(cert)) => {
            r.error(cert.span, "a certificate, and `listen` lacks `tls`").help =
                Some(format!("listen = \"{} tls\"", listen.text));
        }
        _ => {}
    }
    if !listen.tls {
        check_plain(r, &item, &table, listen);
    }
    Some(metrics)
}

/// Rejects client certificates without TLS, and warns of tokens in clear text.
fn check_plain(
    r: &mut Reader,
    item: &SettingValue<'_>,
    table: &TomlTable<'_>,
    listen: &ListenSpec,
) {
    if let Some(client) = table.item("client_ca") {
        r.error(client.span, "`client_ca`, and `listen` lacks `tls`").help =
            Some(format!("listen = \"{} tls\"", listen.text));
    }
    let is_elsewhere = |address: &&SocketAddr| !address.ip().is_loopback();
    if let Some(public) = listen.addresses.iter().find(is_elsewhere) {
        let message =
            format!("`listen`: without TLS the token is readable on the network at {public}");
        r.error(item.span.clone(), message).help = Some(format!(
            "write \"{} tls\" and name a certificate, or \"127.0.0.1:{}\"",
            listen.text,
            public.port()
        ));
    }
}

/// Reads addresses, with or without TLS.
fn listen(r: &mut Reader, item: &SettingValue<'_>) -> Option<ListenSpec> {
    let spec = r.text(item).and_then(|text| super::listen::one_listen(r, text, item))?;
    if spec.addresses.is_empty() || spec.proxy || spec.h2c {
        r.error(item.span.clone(), "an address belongs here, and at most `tls`").help =
            Some(EXPECTED.to_owned());
        return None;
    }
    Some(spec)
}
