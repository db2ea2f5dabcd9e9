//! `[health]` and `[metrics]`: what those ask who watch over the daemon from elsewhere.

use std::net::SocketAddr;

use super::ports;
use super::tls::{self, CERT, KEY};
use crate::keys::PATHS;
use crate::listen::EXPECTED;
use crate::model::{Certificates, Config, HealthConfig, ListenSpec, MetricsConfig};
use crate::reader::{Item, Reader, Table};
use crate::rows::{self, put, section};

section! {
    pub(crate) HEALTH, pub(super) HEALTH_ROWS: HealthConfig; "[health]",
    "What a kubelet or a balancer is told that asks for the daemon's health. Where it \
     listens is read when the daemon starts.";
    @restart("[health] listen", |own, next| own.health.listen != next.health.listen)
    "listen", "a string", "none", "Where `/healthz` and `/readyz` are answered and nothing else, as in `listen`: addresses of any interface, such as \":6090\", without TLS. No token is asked for. They are on the admin listener in any case.",
        |r, item, to| to.listen = ports::address(r, item, "0.0.0.0:6090");
    "origins_down", "\"ready\" or \"not-ready\"", "\"ready\"", "What `/readyz` and `health_check` answer while there is a site whose origins are all down and of which nothing is stored that may answer: 200, or 503.",
        |r, item, to| {
            put(&mut to.tells_of_origins, r.word(item, &[("ready", false), ("not-ready", true)]));
        };
}

section! {
    pub(crate) METRICS, METRICS_ROWS: MetricsConfig; "[metrics]",
    "An address of its own for Prometheus, where `/metrics` is answered and nothing else, to \
     clients with a token, a certificate, or both where both are named here. Where it \
     listens is read when the daemon starts; a reload reads the rest again, and \
     certificates are read again within a second of a change.";
    @needed("[metrics] needs `listen`", "")
    @restart("[metrics] listen", |own, next| {
        let listen = |config: &Config| config.metrics.as_ref().map(|own| own.listen.clone());
        listen(own) != listen(next)
    })
    "listen", "a string", "required", "Where it listens, as in `listen`: \":6091 tls\" on any interface; without `tls` only on addresses of this machine's own, where nobody on the way can read the token.",
        |r, item, to| put(&mut to.listen, listen(r, item));
    "token_file", path token, "none", "File with the token that clients bring in `Authorization: Bearer`: one line of at least 32 letters and digits. The daemon's user reads it, or root; a file that everyone may read is refused.";
    "client_ca", "an absolute path", "none", "PEM file with the authorities that sign clients' certificates; with it, clients need one.",
        |r, item, to| to.client = tls::client(r, item);
    "cert", PATHS, "those of `[tls]`", CERT,
        |r, item, to| to.pairs = tls::pairs(r, item);
    "key", PATHS, "none", KEY,
        |r, item, _| tls::lone_key(r, item);
}

/// The listener for Prometheus. `default` are the certificates of `[tls]`.
pub(super) fn metrics(
    r: &mut Reader,
    whole: &Item<'_>,
    default: &Certificates,
) -> Option<MetricsConfig> {
    let table = r.table(whole, &METRICS)?;
    let mut metrics = MetricsConfig::default();
    let is_good = rows::read(r, &table, METRICS_ROWS, &mut metrics);
    if table.item("token_file").is_none() && table.item("client_ca").is_none() {
        r.error(whole.span.clone(), "everybody could read the figures").help =
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
            r.error(cert.span, "a certificate, and `listen` does not say `tls`").help =
                Some(format!("listen = \"{} tls\"", listen.text));
        }
        _ => {}
    }
    if !listen.tls {
        check_plain(r, &item, &table, listen);
    }
    Some(metrics)
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
