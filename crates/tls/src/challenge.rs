//! Challenges of authorities in the handshake (TLS-ALPN-01, RFC 8737).
//!
//! The certificate of a challenge must never be sent to other clients, and no request is read over
//! its connection.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::server::{ClientHello, NoServerSessionStorage, ServerConfig};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::version::{TLS12, TLS13};

use crate::error::MaterialError;
use crate::provider::provider;

/// The ALPN protocol of challenges (RFC 8737 6.2).
const ACME_TLS: &[u8] = b"acme-tls/1";

/// The pending challenge, if there is one.
#[derive(Default)]
pub struct Challenges(ArcSwapOption<Challenge>);

struct Challenge {
    name: Box<str>,
    config: Arc<ServerConfig>,
}

impl fmt::Debug for Challenges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pending = self.0.load();
        f.debug_tuple("Challenges").field(&pending.as_ref().map(|c| &c.name)).finish()
    }
}

impl Challenges {
    /// Answers challenges about `name`, in lower case, with `certificate` and `key` (DER, PKCS#8)
    /// from now on, replacing a pending one.
    ///
    /// # Errors
    /// If the key is invalid.
    pub fn show(&self, name: &str, certificate: &[u8], key: &[u8]) -> Result<(), MaterialError> {
        let wrong = |error: rustls::Error| MaterialError::Key(error.to_string());
        let key = PrivatePkcs8KeyDer::from(key.to_vec());
        let key = provider().key_provider.load_private_key(key.into()).map_err(wrong)?;
        // Not verified: its critical extension is known to authorities only.
        let certified = CertifiedKey::new(vec![CertificateDer::from(certificate.to_vec())], key);
        let shown = Arc::new(SingleCertAndKey::from(certified));
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13, &TLS12])
            .map_err(wrong)?
            .with_no_client_auth()
            .with_cert_resolver(shown);
        config.alpn_protocols = vec![ACME_TLS.to_vec()];
        config.send_tls13_tickets = 0;
        config.session_storage = Arc::new(NoServerSessionStorage {});
        let challenge = Challenge { name: name.into(), config: Arc::new(config) };
        self.0.store(Some(Arc::new(challenge)));
        Ok(())
    }

    /// Removes the pending challenge.
    pub fn withdraw(&self) {
        self.0.store(None);
    }

    pub(crate) fn config(&self, sni: &str) -> Option<Arc<ServerConfig>> {
        let pending = self.0.load();
        let challenge = pending.as_ref()?;
        sni.eq_ignore_ascii_case(&challenge.name).then(|| Arc::clone(&challenge.config))
    }
}

/// Returns true if the client is an authority with a challenge: it offers that protocol and no
/// other (RFC 8737 3).
pub(crate) fn is_asked(hello: &ClientHello<'_>) -> bool {
    let Some(mut offered) = hello.alpn() else { return false };
    offered.next() == Some(ACME_TLS) && offered.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_pending_name_is_answered() {
        let mut params = rcgen::CertificateParams::new(["a.test".to_owned()]).expect("a name");
        params.custom_extensions = vec![rcgen::CustomExtension::new_acme_identifier(&[7; 32])];
        let key = rcgen::KeyPair::generate().expect("a key");
        let (made, key) = (params.self_signed(&key).expect("a pair"), key.serialize_der());
        let challenges = Challenges::default();
        assert!(challenges.config("a.test").is_none());
        challenges.show("a.test", made.der(), &key).expect("a usable pair");
        assert!(challenges.config("a.test").is_some() && challenges.config("A.test").is_some());
        assert!(challenges.config("b.test").is_none());
        assert!(challenges.show("b.test", made.der(), b"no key").is_err());
        assert!(challenges.config("a.test").is_some(), "what cannot be used changes nothing");
        challenges.withdraw();
        assert!(challenges.config("a.test").is_none());
    }
}
