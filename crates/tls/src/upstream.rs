//! Upstream: the client side of TLS, for connections to origins.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{
    verify_tls12_signature, verify_tls13_signature, verify_tls13_signature_with_raw_key,
};
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::version::{TLS12, TLS13};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use x509_cert::der::Encode;
use x509_cert::spki::SubjectPublicKeyInfoOwned;

use crate::certificate;
use crate::error::MaterialError;
use crate::pair::{CertificateKeyPair, certificates};
use crate::provider::provider;
use crate::roster::{Roster, RosterVerifier};
use crate::tickets::Tickets;

/// The settings of TLS connections to origins. Two are equal if they trust the same authorities and
/// have the same client certificate.
#[derive(Clone)]
pub struct Upstream {
    config: Arc<ClientConfig>,
    /// The authorities as configured; `None` if certificates are not verified.
    authorities: Option<Arc<[u8]>>,
    own: Option<Arc<CertificateKeyPair>>,
    /// The nodes that are trusted instead of authorities.
    roster: Option<Arc<Roster>>,
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verifies = self.authorities.is_some() || self.roster.is_some();
        f.debug_struct("Upstream").field("verify", &verifies).finish()
    }
}

impl PartialEq for Upstream {
    fn eq(&self, other: &Self) -> bool {
        let own = |upstream: &Self| upstream.own.as_ref().map(|pair| pair.leaf().to_vec());
        let roster = |upstream: &Self| upstream.roster.as_ref().map(Arc::as_ptr);
        self.authorities == other.authorities
            && own(self) == own(other)
            && roster(self) == roster(other)
    }
}

impl Eq for Upstream {}

impl Upstream {
    /// Trusts only the `authorities`, PEM; without any, every certificate is accepted. `own` is the
    /// client certificate.
    ///
    /// # Errors
    /// If none of the authorities is valid.
    pub fn new(
        authorities: Option<&[u8]>,
        own: Option<Arc<CertificateKeyPair>>,
    ) -> Result<Self, MaterialError> {
        let wrong = |error: &dyn fmt::Display| MaterialError::Authorities(error.to_string());
        let verifier: Arc<dyn ServerCertVerifier> = match authorities {
            None => Arc::new(AnyCertificateVerifier),
            Some(pem) => {
                let mut roots = RootCertStore::empty();
                // A system's collection may have unsupported certificates; the others are used.
                let (added, _) = roots.add_parsable_certificates(certificates(pem)?);
                if added == 0 {
                    return Err(wrong(&"none can be read"));
                }
                WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider())
                    .build()
                    .map_err(|error| wrong(&error))?
            }
        };
        let config = config(verifier, own.as_ref())?;
        let authorities = authorities.map(Into::into);
        Ok(Self { config: Arc::new(config), authorities, own, roster: None })
    }

    /// Trusts the nodes of `roster`, each under its own name, with the client certificate `own`.
    /// Sessions are not resumed, so that each connection checks the roster.
    ///
    /// # Errors
    /// If TLS cannot be initialised.
    pub fn of_nodes(
        roster: Arc<Roster>,
        own: Arc<CertificateKeyPair>,
    ) -> Result<Self, MaterialError> {
        let mut config = config(Arc::new(RosterVerifier(Arc::clone(&roster))), Some(&own))?;
        config.resumption = Resumption::disabled();
        let own = Some(own);
        Ok(Self { config: Arc::new(config), authorities: None, own, roster: Some(roster) })
    }

    /// Offers `protocols` (RFC 7301) instead of HTTP/1.1, and resumes sessions only if `resume`.
    #[must_use]
    pub fn offering(mut self, protocols: &[&str], resume: bool) -> Self {
        let config = Arc::make_mut(&mut self.config);
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        config.resumption = match resume {
            true => Resumption::store(Arc::new(Tickets::new())),
            false => Resumption::disabled(),
        };
        self
    }

    /// A server to connect to, by the name or address in its certificate, which is also the SNI;
    /// `None` if it is invalid in a certificate.
    pub fn peer(&self, host: &str) -> Option<UpstreamPeer> {
        let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
        let name = ServerName::try_from(bare.to_owned()).ok()?;
        Some(UpstreamPeer { config: Arc::clone(&self.config), name })
    }
}

/// A configuration with `verifier` for servers, and the client certificate `own`.
fn config(
    verifier: Arc<dyn ServerCertVerifier>,
    own: Option<&Arc<CertificateKeyPair>>,
) -> Result<ClientConfig, MaterialError> {
    let builder = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13, &TLS12])
        .map_err(|error| MaterialError::Authorities(error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let mut config = match own {
        None => builder.with_no_client_auth(),
        Some(pair) => {
            let shown = rustls::sign::SingleCertAndKey::from(pair.certified());
            builder.with_client_cert_resolver(Arc::new(shown))
        }
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// A server to connect to, with the settings.
#[derive(Clone)]
pub struct UpstreamPeer {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl fmt::Debug for UpstreamPeer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer").field("name", &self.name).finish_non_exhaustive()
    }
}

impl UpstreamPeer {
    /// The configuration of a connector.
    pub fn config(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.config)
    }

    /// The server's name, in the type of a connector.
    pub fn name(&self) -> ServerName<'static> {
        self.name.clone()
    }
}

/// Accepts every certificate, including X.509 version 1, if verification is switched off. The
/// server must still prove that it has the key.
#[derive(Debug)]
struct AnyCertificateVerifier;

impl ServerCertVerifier for AnyCertificateVerifier {
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
            .or_else(|_| verify_with_key(message, &public_key(cert)?, signed))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = provider().signature_verification_algorithms;
        verify_tls13_signature(message, cert, signed, &algorithms).or_else(|_| {
            let key = public_key(cert)?.to_der().map_err(|_| unreadable())?;
            let key = SubjectPublicKeyInfoDer::from(key);
            verify_tls13_signature_with_raw_key(message, &key, signed, &algorithms)
        })
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        provider().signature_verification_algorithms.supported_schemes()
    }
}

/// The key in a certificate of any version.
fn public_key(certificate: &CertificateDer<'_>) -> Result<SubjectPublicKeyInfoOwned, Error> {
    let read = certificate::read(certificate).map_err(|_| unreadable())?;
    Ok(read.tbs_certificate.subject_public_key_info)
}

fn unreadable() -> Error {
    Error::InvalidCertificate(CertificateError::BadEncoding)
}

/// Verifies a signature by `key` as in TLS 1.2, where the scheme does not determine the curve.
fn verify_with_key(
    message: &[u8],
    key: &SubjectPublicKeyInfoOwned,
    signed: &DigitallySignedStruct,
) -> Result<HandshakeSignatureValid, Error> {
    let mapping = provider().signature_verification_algorithms.mapping;
    let of_scheme = mapping.iter().find(|(scheme, _)| *scheme == signed.scheme);
    let mut algorithms = of_scheme.into_iter().flat_map(|(_, algorithms)| *algorithms);
    let fits = algorithms.any(|algorithm| {
        let key = key.subject_public_key.raw_bytes();
        algorithm.verify_signature(key, message, signed.signature()).is_ok()
    });
    match fits {
        true => Ok(HandshakeSignatureValid::assertion()),
        false => Err(Error::InvalidCertificate(CertificateError::BadSignature)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_has_a_name_or_an_address_that_a_certificate_can_be_for() {
        let upstream = Upstream::new(None, None).expect("nothing to verify by");
        for (host, name) in [
            ("origin.example", "origin.example"),
            ("192.0.2.1", "192.0.2.1"),
            ("[2001:db8::1]", "2001:db8::1"),
            ("2001:db8::1", "2001:db8::1"),
        ] {
            let peer = upstream.peer(host).unwrap_or_else(|| panic!("{host}"));
            assert_eq!(peer.name().to_str(), name);
        }
        for host in ["", "a b", "[origin.example", "-"] {
            assert!(upstream.peer(host).is_none(), "{host}");
        }
    }
}
