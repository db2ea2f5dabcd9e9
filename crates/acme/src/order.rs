//! One order: from a name to its certificate (RFC 8555 7.4). A certificate that does not fit the
//! order must never be stored.

use std::time::Duration;

use base::Limit;
use instant_acme::{
    Account, AuthorizationStatus, CertificateIdentifier, ChallengeType, Identifier, NewOrder,
    Order, OrderStatus, RetryPolicy,
};
use rcgen::{CertificateParams, CustomExtension, KeyPair};
use tls::CertificateKeyPair;

use crate::certificate_peers::{CertificatePeers, ChallengeAnswer};
use crate::challenge_responder::ChallengeResponder;
use crate::plan::Challenge;
use crate::report::{Event, OrderFailure};

/// The certificate to order, and the challenge that proves the name.
pub(crate) struct CertificateOrder<'a> {
    pub(crate) name: &'a str,
    pub(crate) challenge: Challenge,
    /// The certificate that it replaces (RFC 9773 5).
    pub(crate) replaces: Option<CertificateIdentifier<'static>>,
    pub(crate) order_ms: u64,
    /// The daemons that answer challenges too.
    pub(crate) peers: Option<&'a dyn CertificatePeers>,
}

/// A certificate and its key, PEM, key first. It has been checked against the order.
pub(crate) struct ObtainedCertificate {
    pub(crate) pem: String,
    pub(crate) pair: CertificateKeyPair,
}

/// Withdraws the answer at the end of the order.
struct Withdrawal<'a>(&'a dyn ChallengeResponder);

impl Drop for Withdrawal<'_> {
    fn drop(&mut self) {
        self.0.withdraw();
    }
}

/// Orders a certificate.
pub(crate) async fn obtain(
    account: &Account,
    wanted: CertificateOrder<'_>,
    answers: &dyn ChallengeResponder,
) -> Result<ObtainedCertificate, OrderFailure> {
    let bound = Duration::from_millis(wanted.order_ms);
    // The library's own limit excludes the time of exchanges.
    let peers = wanted.peers;
    let done = rt::time::timeout(bound, run(account, wanted, answers)).await;
    if let Some(peers) = peers {
        // An answer that is left there belongs to an earlier challenge.
        _ = peers.ask_all(None).await;
    }
    done.unwrap_or(Err(OrderFailure::Limit(Limit::AcmeOrderTimeout)))
}

async fn run(
    account: &Account,
    wanted: CertificateOrder<'_>,
    answers: &dyn ChallengeResponder,
) -> Result<ObtainedCertificate, OrderFailure> {
    let identifiers = [Identifier::Dns(wanted.name.to_owned())];
    let mut new = NewOrder::new(&identifiers);
    if let Some(replaces) = wanted.replaces.clone() {
        new = new.replaces(replaces);
    }
    let mut order = account.new_order(&new).await?;
    let polling = RetryPolicy::new().timeout(Duration::from_millis(wanted.order_ms));
    if order.state().status == OrderStatus::Pending {
        let shown = Withdrawal(answers);
        show(&mut order, &wanted, answers).await?;
        if order.poll_ready(&polling).await? != OrderStatus::Ready {
            return Err(why_invalid(&mut order).await);
        }
        drop(shown);
    }
    let key = order.finalize().await?;
    let chain = order.poll_certificate(&polling).await?;
    let unusable = |why: &dyn std::fmt::Display| OrderFailure::NotOrdered(why.to_string());
    let pair =
        CertificateKeyPair::parse(chain.as_bytes(), key.as_bytes()).map_err(|e| unusable(&e))?;
    if !pair.covers(wanted.name) {
        return Err(unusable(&"it is for another name"));
    }
    Ok(ObtainedCertificate { pem: format!("{}\n{}", key.trim_end(), chain), pair })
}

/// Prepares the answers to the challenges, and reports that to the authority.
async fn show(
    order: &mut Order,
    wanted: &CertificateOrder<'_>,
    answers: &dyn ChallengeResponder,
) -> Result<(), OrderFailure> {
    let name = wanted.name;
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization?;
        // Proved by an earlier order.
        if authorization.status == AuthorizationStatus::Valid {
            continue;
        }
        let (kind, called) = match wanted.challenge {
            Challenge::Http01 => (ChallengeType::Http01, "http-01"),
            Challenge::TlsAlpn01 => (ChallengeType::TlsAlpn01, "tls-alpn-01"),
        };
        let missing = || OrderFailure::Other(format!("the authority does not offer {called}"));
        let mut offered = authorization.challenge(kind).ok_or_else(missing)?;
        let answer = offered.key_authorization();
        let question = match wanted.challenge {
            Challenge::Http01 => {
                let (token, answer) = (offered.token.clone(), answer.as_str().to_owned());
                ChallengeAnswer::Http { token, answer }
            }
            Challenge::TlsAlpn01 => {
                let (certificate, key) = certificate_for(name, answer.digest().as_ref())?;
                ChallengeAnswer::Tls { name: name.to_owned(), certificate, key }
            }
        };
        question.show(answers).map_err(OrderFailure::Other)?;
        if let Some(peers) = wanted.peers
            && let Err(why) = peers.ask_all(Some(&question)).await
        {
            // The authority may ask another daemon.
            answers.note(Event::NotAll { name: name.to_owned(), why });
        }
        offered.set_ready().await?;
    }
    Ok(())
}

/// The certificate that answers a challenge in a handshake: for the name, self-signed, with the
/// digest in a critical extension (RFC 8737 3). The second value is its key.
fn certificate_for(name: &str, digest: &[u8]) -> Result<(Vec<u8>, Vec<u8>), OrderFailure> {
    let wrong = |error: rcgen::Error| OrderFailure::Other(error.to_string());
    let mut params = CertificateParams::new([name.to_owned()]).map_err(wrong)?;
    params.custom_extensions = vec![CustomExtension::new_acme_identifier(digest)];
    let key = KeyPair::generate().map_err(wrong)?;
    let certificate = params.self_signed(&key).map_err(wrong)?;
    Ok((certificate.der().to_vec(), key.serialize_der()))
}

/// The reason why an order is invalid: usually the error of a challenge.
async fn why_invalid(order: &mut Order) -> OrderFailure {
    let mut authorizations = order.authorizations();
    while let Some(Ok(mut authorization)) = authorizations.next().await {
        let Ok(state) = authorization.refresh().await else { continue };
        let found = state.challenges.iter().find_map(|challenge| challenge.error.as_ref());
        if let Some(problem) = found {
            return OrderFailure::of_problem(problem);
        }
    }
    OrderFailure::Other("the authority declares the order invalid without a reason".to_owned())
}
