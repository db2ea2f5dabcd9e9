//! The client's side: connections to origins.

use std::fmt;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::version::{TLS12, TLS13};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};

use crate::error::MaterialError;
use crate::pair::{Pair, certificates};
use crate::server::provider;

/// How origins are connected to. Two are equal when they trust and show the same.
#[derive(Clone)]
pub struct Upstream {
    config: Arc<ClientConfig>,
    /// The authorities as they came; none when nothing is verified.
    authorities: Option<Arc<[u8]>>,
    own: Option<Arc<Pair>>,
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream").field("verify", &self.authorities.is_some()).finish()
    }
}

impl PartialEq for Upstream {
    fn eq(&self, other: &Self) -> bool {
        let own = |upstream: &Self| {
            upstream.own.as_ref().map(|pair| pair.certified.cert.first().cloned())
        };
        self.authorities == other.authorities && own(self) == own(other)
    }
}

impl Eq for Upstream {}

impl Upstream {
    /// Trusts the `authorities`, PEM, and no others; without any it believes whatever certificate
    /// it is shown. `own` is shown to servers that ask for it.
    ///
    /// # Errors
    /// When there is no authority among them that can be used.
    pub fn new(authorities: Option<&[u8]>, own: Option<Arc<Pair>>) -> Result<Self, MaterialError> {
        let wrong = |error: &dyn fmt::Display| MaterialError::Authorities(error.to_string());
        let verifier: Arc<dyn ServerCertVerifier> = match authorities {
            None => Arc::new(Anyone),
            Some(pem) => {
                let mut roots = RootCertStore::empty();
                // A system's collection may have one that nothing here can read; the others do.
                let (added, _) = roots.add_parsable_certificates(certificates(pem)?);
                if added == 0 {
                    return Err(wrong(&"none can be read"));
                }
                WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider())
                    .build()
                    .map_err(|error| wrong(&error))?
            }
        };
        let builder = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13, &TLS12])
            .map_err(|error| wrong(&error))?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut config = match &own {
            None => builder.with_no_client_auth(),
            Some(pair) => {
                let shown = rustls::sign::SingleCertAndKey::from(Arc::clone(&pair.certified));
                builder.with_client_cert_resolver(Arc::new(shown))
            }
        };
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let authorities = authorities.map(Into::into);
        Ok(Self { config: Arc::new(config), authorities, own })
    }

    /// What a connector wants.
    pub fn config(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.config)
    }
}

/// Believes every certificate, for those who said so. That its owner holds the key is still
/// checked.
#[derive(Debug)]
struct Anyone;

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = provider().signature_verification_algorithms;
        verify_tls12_signature(message, cert, signed, &algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = provider().signature_verification_algorithms;
        verify_tls13_signature(message, cert, signed, &algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        provider().signature_verification_algorithms.supported_schemes()
    }
}

/// What went wrong in a handshake with an origin, for its operator. `error` is what the connector
/// gave; other errors are as they say themselves.
pub fn explain(error: &std::io::Error) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    let why = match inner {
        Some(Error::InvalidCertificate(why)) => why,
        Some(error) => return format!("TLS: {error}"),
        None => return format!("TLS: {error}"),
    };
    let reason = match why {
        CertificateError::UnknownIssuer => "its certificate is not signed by a trusted authority",
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "its certificate has expired"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "its certificate is for another name"
        }
        other => return format!("TLS: its certificate is refused: {other}"),
    };
    format!("TLS: {reason}")
}
