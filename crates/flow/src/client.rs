//! Who a request comes from, and whether its connection is good enough for the site it names.

use policy::Peer;
use tls::{ClientAuth, Secured};

use crate::pages::Problem;

/// The other end of the connection that a request came over.
#[derive(Clone, Copy, Debug)]
pub struct Client<'a> {
    /// Who it is.
    pub peer: Peer,
    /// What was agreed on in its TLS handshake; none over a plain connection.
    pub secured: Option<&'a Secured>,
}

impl Client<'_> {
    /// Whether a request for `host` may come over this connection, when the site checks clients by
    /// `auth`. It fails closed: what was agreed on for another site never opens one that lets in
    /// fewer (nginx's CVE-2025-23419).
    pub(crate) fn admit(&self, host: &[u8], auth: Option<&ClientAuth>) -> Result<(), Problem> {
        match self.secured {
            None if auth.is_some_and(ClientAuth::is_required) => Err(Problem::CertificateNeeded),
            None => Ok(()),
            Some(secured) if secured.auth() == auth && secured.speaks_for(host) => Ok(()),
            Some(_) => Err(Problem::Misdirected),
        }
    }
}
