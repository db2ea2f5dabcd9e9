//! Authentication of clients by their certificates.

use std::sync::Arc;

use rustls::RootCertStore;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;

use crate::error::MaterialError;
use crate::pair::certificates;
use crate::provider::provider;
use crate::roster::{Roster, RosterVerifier};
use crypto::digest::{Context, SHA256};

/// The requirement of a client certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthMode {
    /// A connection without a certificate is rejected.
    Require,
    /// A certificate is optional, but must be valid.
    Optional,
}

/// The verification of a site's clients. Two are equal if they accept the same clients: only then
/// may a connection or a ticket of one site be used for another.
#[derive(Clone, Debug)]
pub struct ClientAuth {
    rule: Arc<Rule>,
}

#[derive(Debug)]
struct Rule {
    mode: AuthMode,
    /// The digest of mode and authorities, for comparisons. `None` for a roster's, which equals no
    /// other.
    digest: Option<[u8; 32]>,
    verifier: Arc<dyn ClientCertVerifier>,
}

impl ClientAuth {
    /// Trusts only the authorities in `pem`.
    ///
    /// # Errors
    /// If `pem` has no authority, or an invalid one.
    pub fn new(pem: &[u8], mode: AuthMode) -> Result<Self, MaterialError> {
        let wrong = |error: &dyn std::fmt::Display| MaterialError::Authorities(error.to_string());
        let mut roots = RootCertStore::empty();
        let mut authorities: Vec<Box<[u8]>> = Vec::new();
        for certificate in certificates(pem)? {
            authorities.push(certificate.as_ref().into());
            roots.add(certificate).map_err(|error| wrong(&error))?;
        }
        authorities.sort_unstable();
        let digest = Some(digest(mode, &authorities));
        let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider());
        let builder = match mode {
            AuthMode::Require => builder,
            AuthMode::Optional => builder.allow_unauthenticated(),
        };
        let verifier = builder.build().map_err(|error| wrong(&error))?;
        Ok(Self { rule: Arc::new(Rule { mode, digest, verifier }) })
    }

    /// Accepts only the nodes of `roster`.
    pub fn of_nodes(roster: Arc<Roster>) -> Self {
        let (mode, digest) = (AuthMode::Require, None);
        let verifier: Arc<dyn ClientCertVerifier> = Arc::new(RosterVerifier(roster));
        Self { rule: Arc::new(Rule { mode, digest, verifier }) }
    }

    /// Returns true if a client must have a certificate.
    pub fn is_required(&self) -> bool {
        self.rule.mode == AuthMode::Require
    }

    /// The digest that distinguishes it from others, in all processes; `None` for a roster's.
    pub(crate) fn digest(&self) -> Option<&[u8; 32]> {
        self.rule.digest.as_ref()
    }

    pub(crate) fn verifier(&self) -> Arc<dyn ClientCertVerifier> {
        Arc::clone(&self.rule.verifier)
    }
}

impl PartialEq for ClientAuth {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.rule, &other.rule)
            || self.rule.digest.is_some() && self.rule.digest == other.rule.digest
    }
}

impl Eq for ClientAuth {}

fn digest(mode: AuthMode, authorities: &[Box<[u8]>]) -> [u8; 32] {
    let mut context = Context::new(&SHA256);
    context.update(&[u8::from(mode == AuthMode::Require)]);
    for authority in authorities {
        context.update(&authority.len().to_be_bytes());
        context.update(authority);
    }
    let mut digest = [0; 32];
    digest.copy_from_slice(context.finish().as_ref());
    digest
}
