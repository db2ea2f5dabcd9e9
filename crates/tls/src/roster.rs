//! Roster of the nodes of a cluster: each node makes its own certificate, and trusts only the
//! certificates whose fingerprints are in the roster.
//!
//! There is no authority, and no key is ever written to a disk: it lives as long as its process.
//! The source of the fingerprints decides who is a node.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::RwLock;
use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};

use crate::error::MaterialError;
use crate::pair::CertificateKeyPair;
use crate::provider::provider;
use crypto::digest::{SHA256, digest};

/// SHA-256 of a certificate.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The fingerprint of the certificate of `pair`.
    pub fn of(pair: &CertificateKeyPair) -> Self {
        Self::of_der(pair.leaf())
    }

    /// The fingerprint of a certificate as DER.
    pub fn of_der(der: &[u8]) -> Self {
        let mut sum = [0; 32];
        sum.copy_from_slice(digest(&SHA256, der).as_ref());
        Self(sum)
    }

    /// Parses the output of [`fmt::Display`]; `None` for any other text.
    pub fn parse(hex: &str) -> Option<Self> {
        let (mut sum, bytes) = ([0; 32], hex.as_bytes());
        if bytes.len() != 2 * sum.len() {
            return None;
        }
        let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
        for (byte, pair) in sum.iter_mut().zip(bytes.chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(Self(sum))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The trusted nodes, by the fingerprints of their certificates.
#[derive(Debug, Default)]
pub struct Roster {
    nodes: RwLock<BTreeMap<Fingerprint, Box<str>>>,
}

impl Roster {
    /// Replaces the trusted nodes. Open connections stay open.
    pub fn set(&self, nodes: impl IntoIterator<Item = (Fingerprint, Box<str>)>) {
        let nodes = nodes.into_iter().collect();
        *self.nodes.write() = nodes;
    }

    /// The name of the node with the certificate `der`; `None` for an unknown one.
    pub fn name_of(&self, der: &[u8]) -> Option<Box<str>> {
        self.nodes.read().get(&Fingerprint::of_der(der)).cloned()
    }
}

impl CertificateKeyPair {
    /// A self-signed certificate for the node `name`, with a new key. Others trust it by its
    /// fingerprint, so that it is valid as long as the key exists.
    ///
    /// # Errors
    /// If the random source fails, or the name is invalid in a certificate.
    pub fn for_node(name: &str) -> Result<Self, MaterialError> {
        let wrong = |error: rcgen::Error| MaterialError::Certificate(error.to_string());
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(wrong)?;
        let params = CertificateParams::new([name.to_owned()]).map_err(wrong)?;
        let made = params.self_signed(&key).map_err(wrong)?;
        Self::parse(made.pem().as_bytes(), key.serialize_pem().as_bytes())
    }
}

/// Verifier that trusts the nodes of a roster.
#[derive(Debug)]
pub(crate) struct RosterVerifier(pub(crate) Arc<Roster>);

impl RosterVerifier {
    fn name(
        &self,
        shown: &CertificateDer<'_>,
        rest: &[CertificateDer<'_>],
    ) -> Result<Box<str>, Error> {
        let name = if rest.is_empty() { self.0.name_of(shown) } else { None };
        name.ok_or(Error::InvalidCertificate(CertificateError::UnknownIssuer))
    }
}

impl ServerCertVerifier for RosterVerifier {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        rest: &[CertificateDer<'_>],
        asked: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        // A node must not pass for another.
        match self.name(shown, rest)?.eq_ignore_ascii_case(&asked.to_str()) {
            true => Ok(ServerCertVerified::assertion()),
            false => Err(Error::InvalidCertificate(CertificateError::NotValidForName)),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = provider().signature_verification_algorithms;
        verify_tls12_signature(message, shown, signed, &algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = provider().signature_verification_algorithms;
        verify_tls13_signature(message, shown, signed, &algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        provider().signature_verification_algorithms.supported_schemes()
    }
}

impl ClientCertVerifier for RosterVerifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        shown: &CertificateDer<'_>,
        rest: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.name(shown, rest).map(|_| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        ServerCertVerifier::verify_tls12_signature(self, message, shown, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        ServerCertVerifier::verify_tls13_signature(self, message, shown, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        ServerCertVerifier::supported_verify_schemes(self)
    }
}

#[cfg(test)]
mod tests {
    use rustls::ClientConnection;

    use super::*;
    use crate::auth::ClientAuth;
    use crate::handshake::Handshake;
    use crate::server::tests::keys;
    use crate::server::{Domain, ServerContext};
    use crate::upstream::Upstream;

    struct Node {
        pair: Arc<CertificateKeyPair>,
        roster: Arc<Roster>,
        server: ServerContext,
    }

    impl Node {
        fn named(name: &str) -> Self {
            let pair = Arc::new(CertificateKeyPair::for_node(name).expect("a certificate"));
            let roster = Arc::new(Roster::default());
            let auth = Some(ClientAuth::of_nodes(Arc::clone(&roster)));
            let domain = Domain { pairs: vec![Arc::clone(&pair)], auth };
            let server =
                ServerContext::new(Vec::new(), Some(domain), Box::new(|_| None), false, &keys());
            Self { pair, roster, server: server.expect("a server") }
        }

        fn knows(&self, nodes: &[(&Self, &str)]) {
            let known =
                nodes.iter().map(|(node, name)| (Fingerprint::of(&node.pair), (*name).into()));
            self.roster.set(known);
        }

        /// Connects to `other` as `name`; returns the name under which it is known there.
        fn asks(&self, other: &Self, name: &str) -> Option<Box<str>> {
            let upstream = Upstream::of_nodes(Arc::clone(&self.roster), Arc::clone(&self.pair));
            let peer = upstream.expect("settings").peer(name).expect("a name");
            let mut client = ClientConnection::new(peer.config(), peer.name()).expect("a client");
            let mut handshake = Handshake::default();
            while !handshake.is_done() {
                let mut sent = Vec::new();
                while client.wants_write() {
                    client.write_tls(&mut sent).expect("a Vec takes it");
                }
                handshake.feed(&sent, &other.server).ok()?;
                let mut answer = Vec::new();
                while !handshake.is_sent() {
                    handshake.send(&mut answer).expect("a Vec takes it");
                }
                let mut answer = answer.as_slice();
                while !answer.is_empty() {
                    client.read_tls(&mut answer).expect("all of it");
                    client.process_new_packets().ok()?;
                }
            }
            let (_, secured) = handshake.finish()?;
            other.roster.name_of(secured.identity()?.der())
        }
    }

    #[test]
    fn nodes_believe_whom_they_were_told_of_and_nobody_else() {
        let [one, two, stranger] = ["web-1", "web_2", "web-3"].map(Node::named);
        one.knows(&[(&two, "web_2")]);
        two.knows(&[(&one, "web-1")]);
        stranger.knows(&[(&one, "web-1"), (&two, "web_2")]);
        assert_eq!(one.asks(&two, "web_2").as_deref(), Some("web-1"));
        assert_eq!(two.asks(&one, "web-1").as_deref(), Some("web_2"));
        assert_eq!(stranger.asks(&two, "web_2"), None, "it is not known");
        assert_eq!(one.asks(&stranger, "web-3"), None, "nor is what it shows");
        // A known node must not pass for another.
        one.knows(&[(&two, "web_2"), (&stranger, "web-3")]);
        assert_eq!(one.asks(&two, "web-3"), None);
        two.knows(&[]);
        assert_eq!(one.asks(&two, "web_2"), None, "it is known no more");
    }

    #[test]
    fn fingerprints_are_written_and_read() {
        let pair = CertificateKeyPair::for_node("web-1").expect("a certificate");
        let fingerprint = Fingerprint::of(&pair);
        let written = fingerprint.to_string();
        assert_eq!((written.len(), Fingerprint::parse(&written)), (64, Some(fingerprint)));
        for wrong in ["", &written[1..], &format!("{written}0"), &written.replace(|_| true, "g")] {
            assert_eq!(Fingerprint::parse(wrong), None, "{wrong}");
        }
        let other = CertificateKeyPair::for_node("web-1").expect("a certificate");
        assert_ne!(fingerprint, Fingerprint::of(&other), "each has a key of its own");
    }
}
