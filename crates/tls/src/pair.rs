//! Pair of a certificate chain and its key.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use rustls::SignatureScheme;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use crate::certificate::{self, common_name, hosts, issuer_key_and_serial, validity};
use crate::error::MaterialError;
use crate::ocsp::{Inquiry, RevocationFacts, Staple};
use crate::provider::provider;

/// A certificate chain and its key, which were checked to match.
#[derive(Debug)]
pub struct CertificateKeyPair {
    certified: ArcSwap<CertifiedKey>,
    /// The parts of the leaf for checking its revocation.
    revocation: RevocationFacts,
    /// End of the stapled response's validity, in seconds since 1970; 0 without a staple.
    stapled_until: AtomicU64,
    /// The certificate itself.
    leaf: CertificateDer<'static>,
    /// The leaf's common name, if it has one.
    common_name: Option<Box<str>>,
    /// DNS names of the leaf, in lower case, wildcards as `*.example.com`.
    names: Vec<Box<str>>,
    addresses: Vec<std::net::IpAddr>,
    /// The identifier of the issuer's key, and the serial number.
    issuer_key: Option<(Vec<u8>, Vec<u8>)>,
    /// Start of the leaf's validity, in seconds since 1970.
    not_before: u64,
    /// End of the validity of the first certificate of the chain to expire, in seconds since 1970.
    not_after: u64,
    elliptic: bool,
}

impl CertificateKeyPair {
    /// Parses a chain, leaf first, and its key (PKCS#8, SEC1 or PKCS#1), both PEM.
    ///
    /// # Errors
    /// If one is malformed, or they do not match. An expired certificate is not an error: see
    /// [`CertificateKeyPair::not_after`].
    pub fn parse(chain_pem: &[u8], key_pem: &[u8]) -> Result<Self, MaterialError> {
        let chain = certificates(chain_pem)?;
        let key = PrivateKeyDer::from_pem_slice(key_pem).map_err(|error| match error {
            pem::Error::NoItemsFound => MaterialError::NoKey,
            error => MaterialError::Pem(error.to_string()),
        })?;
        let key = provider()
            .key_provider
            .load_private_key(key)
            .map_err(|error| MaterialError::Key(error.to_string()))?;
        let certified = CertifiedKey::new(chain, key);
        match certified.keys_match() {
            Ok(()) => {}
            Err(rustls::Error::InconsistentKeys(_)) => return Err(MaterialError::Mismatch),
            Err(error) => return Err(MaterialError::Certificate(error.to_string())),
        }
        Self::of(certified)
    }

    fn of(certified: CertifiedKey) -> Result<Self, MaterialError> {
        let (mut names, mut addresses) = (Vec::new(), Vec::new());
        let (mut issuer_key, mut common) = (None, None);
        let (mut not_before, mut not_after) = (0, u64::MAX);
        for (at, der) in certified.cert.iter().enumerate() {
            let read = certificate::read(der).map_err(MaterialError::Certificate)?;
            let (start, end) = validity(&read);
            not_after = not_after.min(end);
            if at == 0 {
                not_before = start;
                (names, addresses) = hosts(&read).map_err(MaterialError::Certificate)?;
                issuer_key = issuer_key_and_serial(&read);
                common = common_name(&read.tbs_certificate.subject).map(Into::into);
            }
        }
        let elliptic = certified
            .key
            .choose_scheme(&[
                SignatureScheme::ECDSA_NISTP256_SHA256,
                SignatureScheme::ECDSA_NISTP384_SHA384,
                SignatureScheme::ECDSA_NISTP521_SHA512,
                SignatureScheme::ED25519,
            ])
            .is_some();
        let leaf = certified.cert.first().cloned().ok_or(MaterialError::NoCertificate)?;
        let revocation = RevocationFacts::of(&certified.cert);
        Ok(Self {
            certified: ArcSwap::from_pointee(certified),
            revocation,
            stapled_until: AtomicU64::new(0),
            leaf,
            common_name: common,
            names,
            addresses,
            issuer_key,
            not_before,
            not_after,
            elliptic,
        })
    }

    /// Start of the leaf's validity, in seconds since 1970.
    pub fn not_before(&self) -> u64 {
        self.not_before
    }

    /// The identifier of the issuer's key and the serial number, by which its authority identifies
    /// the certificate (RFC 9773 4.1); `None` if it names no issuer key.
    pub fn issuer_key_and_serial(&self) -> Option<(&[u8], &[u8])> {
        self.issuer_key.as_ref().map(|(key, serial)| (&key[..], &serial[..]))
    }

    /// The leaf certificate, DER.
    pub fn leaf(&self) -> &[u8] {
        &self.leaf
    }

    /// The chain, the key and the staple, if there is one.
    pub(crate) fn certified(&self) -> Arc<CertifiedKey> {
        self.certified.load_full()
    }

    /// The certificate's name in messages: its first host.
    pub fn name(&self) -> &str {
        self.names.first().map_or("a certificate without names", |name| name)
    }

    /// The certificate's DNS names, in lower case, wildcards as `*.example.com`.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(AsRef::as_ref)
    }

    /// Returns true if both certificates have the same DNS names.
    pub(crate) fn has_names_of(&self, other: &Self) -> bool {
        self.names == other.names
    }

    /// The common name of its subject; [`CertificateKeyPair::name`] if it has none.
    pub fn subject(&self) -> &str {
        self.common_name.as_deref().unwrap_or_else(|| self.name())
    }

    /// The OCSP inquiry for the certificate; `None` if it names no responder, or the chain lacks
    /// its issuer.
    pub fn inquiry(&self) -> Option<&Inquiry> {
        self.revocation.inquiry.as_ref()
    }

    /// Returns true if clients require a staple (RFC 7633).
    pub fn must_staple(&self) -> bool {
        self.revocation.must_staple
    }

    /// Sets or removes the staple of later handshakes.
    pub fn staple(&self, staple: Option<&Staple>) {
        let mut certified = CertifiedKey::clone(&self.certified());
        certified.ocsp = staple.map(|staple| staple.der.clone());
        self.certified.store(Arc::new(certified));
        let until = staple.map_or(0, |staple| staple.until_secs);
        self.stapled_until.store(until, Ordering::Relaxed);
    }

    /// End of the staple's validity, in seconds since 1970.
    pub fn stapled_until(&self) -> Option<u64> {
        Some(self.stapled_until.load(Ordering::Relaxed)).filter(|until| *until > 0)
    }

    /// Takes over the staple of `before`, the same certificate.
    pub fn keep_staple_of(&self, before: &Self) {
        let answer = before.certified().ocsp.clone();
        if let (true, Some(der), Some(until_secs)) =
            (self.leaf() == before.leaf(), answer, before.stapled_until())
        {
            self.staple(Some(&Staple { der, until_secs }));
        }
    }

    /// End of the validity of the first certificate of the chain to expire, in seconds since 1970.
    pub fn not_after(&self) -> u64 {
        self.not_after
    }

    /// Returns true if the key is on an elliptic curve: cheaper to sign with than RSA.
    pub(crate) fn is_elliptic(&self) -> bool {
        self.elliptic
    }

    /// Returns true if the certificate is valid for `host`, in lower case; an IPv6 address is in
    /// brackets (RFC 6125 6.4: a wildcard matches one label).
    pub fn covers(&self, host: &str) -> bool {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = bare.parse() {
            return self.addresses.contains(&address);
        }
        let parent = host.split_once('.').map(|(_, parent)| parent);
        self.names.iter().any(|name| match name.strip_prefix("*.") {
            Some(below) => parent == Some(below),
            None => **name == *host,
        })
    }

    /// Returns true if the certificate covers every host of a site's host pattern (`*.example.com`,
    /// `example.com`). `*` requires no name.
    pub fn covers_pattern(&self, pattern: &str) -> bool {
        pattern == "*" || self.names.iter().any(|name| **name == *pattern) || self.covers(pattern)
    }
}

/// The certificates in a PEM file, in their order.
pub(crate) fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, MaterialError> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let chain = chain.map_err(|error| MaterialError::Pem(error.to_string()))?;
    if chain.is_empty() {
        return Err(MaterialError::NoCertificate);
    }
    Ok(chain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::tests::made;

    #[test]
    fn names_and_wildcards_cover_as_rfc_6125_says() {
        let (cert, key) = made(&["example.com", "*.example.com", "192.0.2.1"]);
        let pair = CertificateKeyPair::parse(cert.as_bytes(), key.as_bytes()).expect("a pair");
        for host in ["example.com", "www.example.com", "192.0.2.1"] {
            assert!(pair.covers(host), "{host}");
        }
        for host in ["a.b.example.com", "example.org", "com", "xexample.com", "192.0.2.2"] {
            assert!(!pair.covers(host), "{host}");
        }
        assert!(pair.covers_pattern("*.example.com") && pair.covers_pattern("*"));
        assert!(!pair.covers_pattern("*.example.org"));
    }

    #[test]
    fn what_is_no_pair_says_why() {
        let (cert, key) = made(&["a.test"]);
        let (other, _) = made(&["a.test"]);
        let parse = |cert: &str, key: &str| {
            CertificateKeyPair::parse(cert.as_bytes(), key.as_bytes()).err()
        };
        assert_eq!(parse(&cert, &key), None);
        assert_eq!(parse(&other, &key), Some(MaterialError::Mismatch));
        assert_eq!(parse("", &key), Some(MaterialError::NoCertificate));
        assert_eq!(parse(&cert, ""), Some(MaterialError::NoKey));
        let half = &cert[..cert.len() / 2];
        assert!(matches!(parse(half, &key), Some(MaterialError::Pem(_))));
        let junk = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert!(matches!(parse(junk, &key), Some(MaterialError::Certificate(_))));
    }
}
