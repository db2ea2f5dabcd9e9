//! Verification of clients by their certificates.

use std::sync::Arc;

use rustls::RootCertStore;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;

use crate::error::MaterialError;
use crate::pair::certificates;
use crate::roster::{Known, Roster};
use crate::server::provider;

/// A client's duty to have a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthMode {
    /// Without one there is no connection.
    Require,
    /// It may have none; one that is shown must be good.
    Optional,
}

/// The check of a site's clients. Two checks are equal when they let in the same clients: only then
/// may a connection or a ticket for one site serve another.
#[derive(Clone, Debug)]
pub struct ClientAuth {
    rule: Arc<Rule>,
}

#[derive(Debug)]
struct Rule {
    mode: AuthMode,
    /// The authorities as they came, to compare by.
    authorities: Vec<Box<[u8]>>,
    verifier: Arc<dyn ClientCertVerifier>,
}

impl ClientAuth {
    /// Trusts the authorities in `pem`, and them alone.
    ///
    /// # Errors
    /// If none is in it, or one cannot be used.
    pub fn new(pem: &[u8], mode: AuthMode) -> Result<Self, MaterialError> {
        let wrong = |error: &dyn std::fmt::Display| MaterialError::Authorities(error.to_string());
        let mut roots = RootCertStore::empty();
        let mut authorities = Vec::new();
        for certificate in certificates(pem)? {
            authorities.push(certificate.as_ref().into());
            roots.add(certificate).map_err(|error| wrong(&error))?;
        }
        authorities.sort_unstable();
        let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider());
        let builder = match mode {
            AuthMode::Require => builder,
            AuthMode::Optional => builder.allow_unauthenticated(),
        };
        let verifier = builder.build().map_err(|error| wrong(&error))?;
        Ok(Self { rule: Arc::new(Rule { mode, authorities, verifier }) })
    }

    /// Lets in the nodes of `roster`, and them alone.
    pub fn of_nodes(roster: Arc<Roster>) -> Self {
        let (mode, authorities) = (AuthMode::Require, Vec::new());
        let verifier: Arc<dyn ClientCertVerifier> = Arc::new(Known(roster));
        Self { rule: Arc::new(Rule { mode, authorities, verifier }) }
    }

    /// Returns true if a client must have a certificate.
    pub fn is_required(&self) -> bool {
        self.rule.mode == AuthMode::Require
    }

    pub(crate) fn verifier(&self) -> Arc<dyn ClientCertVerifier> {
        Arc::clone(&self.rule.verifier)
    }
}

impl PartialEq for ClientAuth {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.rule, &other.rule)
            // One without authorities has its nodes, and is like no other.
            || !self.rule.authorities.is_empty()
                && self.rule.mode == other.rule.mode
                && self.rule.authorities == other.rule.authorities
    }
}

impl Eq for ClientAuth {}
