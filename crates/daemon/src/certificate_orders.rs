//! Certificate orders: which certificates an authority is to issue, and the responses to its
//! challenges.
//!
//! The ordering itself is in `acme`. Stored certificates take effect like any other file, by
//! `material`.

use std::path::PathBuf;
use std::sync::Arc;

use acme::{
    Authority, Binding, Bounds, CertificatePlan, Challenge, ChallengeResponder, Event,
    OrderFailure, Storage,
};
use base::{Counter, Counters};
use config::{AcmeChallenge, AcmeConfig, Config};
use flow::SharedState;
use tls::{CertificateKeyPair, Challenges, Upstream};

/// The hosts for which certificates are ordered, and the file of each; `default` is the authority
/// of `[tls]`.
pub(crate) fn hosts(
    config: &Config,
    default: &[Arc<CertificateKeyPair>],
) -> Vec<(String, PathBuf)> {
    let Some(acme) = &config.acme else { return Vec::new() };
    let storage = Storage::new(&acme.storage, &acme.directory);
    let mut hosts = Vec::new();
    for site in config.sites.iter().filter(|site| acme.is_for(site)) {
        let asked_for = site.tls.acme == Some(true);
        for host in &site.hosts {
            let covered = default.iter().any(|pair| pair.covers(host));
            if acme.may_order(host).is_ok() && (asked_for || !covered) {
                hosts.push((host.clone(), storage.certificate(host)));
            }
        }
    }
    hosts
}

/// The plan of certificates to order for `names`, if there are any. `trust` verifies the
/// authority's own certificate.
pub(crate) fn plan(
    config: &Config,
    names: Vec<String>,
    trust: Option<Upstream>,
) -> Option<Arc<CertificatePlan>> {
    let acme = config.acme.as_ref()?;
    if names.is_empty() {
        return None;
    }
    let limits = &config.limits;
    Some(Arc::new(CertificatePlan {
        authority: Arc::new(authority(acme, trust?)),
        names,
        challenges: acme.challenges.iter().copied().map(challenge).collect(),
        bounds: Bounds {
            exchange_ms: limits.acme_timeout,
            answer_bytes: limits.acme_answer_bytes,
            order_ms: limits.acme_order_timeout,
            retry_ms: limits.acme_retry_wait,
            retry_max_ms: limits.acme_retry_wait_max,
        },
    }))
}

fn authority(acme: &AcmeConfig, trust: Upstream) -> Authority {
    let binding = acme.binding.as_ref();
    Authority {
        directory: acme.directory.clone(),
        email: acme.email.clone(),
        trust,
        storage: acme.storage.clone(),
        binding: binding.map(|b| Binding { key_id: b.key_id.clone(), hmac: b.hmac.clone() }),
    }
}

fn challenge(challenge: AcmeChallenge) -> Challenge {
    match challenge {
        AcmeChallenge::Http01 => Challenge::Http01,
        AcmeChallenge::TlsAlpn01 => Challenge::TlsAlpn01,
    }
}

/// Answers the authority's challenges on every core, counts, and logs.
pub(crate) struct Responder {
    shared: Arc<SharedState>,
    handshakes: Arc<Challenges>,
    counters: Arc<Counters>,
}

impl Responder {
    pub(crate) fn new(shared: &Arc<SharedState>, handshakes: &Arc<Challenges>) -> Arc<Self> {
        let counters = shared.counters.register();
        let (shared, handshakes) = (Arc::clone(shared), Arc::clone(handshakes));
        Arc::new(Self { shared, handshakes, counters })
    }
}

impl ChallengeResponder for Responder {
    fn show_http(&self, token: &str, answer: &str) {
        self.shared.challenges.show(token, answer);
    }

    fn show_tls(&self, name: &str, certificate: &[u8], key: &[u8]) -> Result<(), String> {
        self.handshakes.show(name, certificate, key).map_err(|error| error.to_string())
    }

    fn withdraw(&self) {
        self.shared.challenges.withdraw();
        self.handshakes.withdraw();
    }

    fn note(&self, event: Event) {
        match &event {
            Event::Ordering { .. } => self.counters.inc(Counter::AcmeOrders),
            Event::Failed { why, .. } => {
                self.counters.inc(Counter::AcmeFailures);
                if let OrderFailure::Limit(limit) = why {
                    self.counters.limit(*limit);
                }
            }
            Event::Account { .. }
            | Event::Obtained { .. }
            | Event::Taken { .. }
            | Event::Waiting { .. }
            | Event::NotAll { .. }
            | Event::Aside { .. } => {}
        }
        if matches!(event, Event::Failed { .. }) {
            base::tell!(Error, "larder: {event}");
        } else {
            base::tell!(Notice, "larder: {event}");
        }
    }
}
