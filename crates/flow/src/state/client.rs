//! Client of a request, and the check that its connection satisfies the site's demands.

use std::rc::Rc;
use std::sync::Arc;

use base::Account;
use message::HeaderBlock;
use policy::ConnectionPeer;
use tls::{ClientAuth, SessionTerms};

use crate::problem::Problem;
use crate::state::vcl::VclConnection;

/// The client side of a request's connection.
#[derive(Clone, Copy, Debug)]
pub struct Client<'a> {
    /// The peer of the connection.
    pub peer: ConnectionPeer,
    /// The peer's address is the one that it connected to.
    pub near: bool,
    /// The result of the TLS handshake; `None` on a plain connection.
    pub secured: Option<&'a Rc<SessionTerms>>,
    /// The connection as programs see it; derived from `peer` if absent.
    pub vcl_connection: Option<&'a VclConnection>,
    /// The account of memory reserved for the connection.
    pub account: &'a Arc<Account>,
}

/// The client certificate check of a site.
#[derive(Clone, Debug)]
pub struct ClientCheck {
    /// The certificates that are accepted.
    pub auth: ClientAuth,
    /// The fields that forward the certificate to origins.
    pub fields: CertificateFields,
}

/// Fields that forward a client's certificate to origins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CertificateFields {
    /// X-SSL-Client-Verify (`SUCCESS`, `NONE`), X-SSL-Client-S-DN and X-SSL-Client-Fingerprint,
    /// with the values of nginx's variables.
    pub x_ssl: bool,
    /// Client-Cert (RFC 9440).
    pub client_cert: bool,
}

impl Client<'_> {
    /// Writes the certificate fields into a request for the origin. Returns true if the client has
    /// a certificate and a field shows it: the response is then for this client alone.
    pub(crate) fn tell(&self, headers: &mut HeaderBlock, fields: CertificateFields) -> bool {
        let identity = self.secured.and_then(|secured| secured.identity());
        if fields.x_ssl {
            let verify: &[u8] = if identity.is_some() { b"SUCCESS" } else { b"NONE" };
            headers.push_named(b"X-SSL-Client-Verify", verify);
        }
        let Some(identity) = identity else { return false };
        if fields.x_ssl {
            headers.push_named(b"X-SSL-Client-S-DN", identity.subject().as_bytes());
            headers.push_named(b"X-SSL-Client-Fingerprint", identity.fingerprint().as_bytes());
        }
        if fields.client_cert {
            headers.push_named(b"Client-Cert", &identity.client_cert());
        }
        fields != CertificateFields::default()
    }

    /// Checks that a request for `host` may use this connection, if the site checks clients by
    /// `check`. It fails closed: a handshake for another site must never open a site with stricter
    /// demands (nginx's CVE-2025-23419).
    pub(crate) fn admit(&self, host: &[u8], check: Option<&ClientCheck>) -> Result<(), Problem> {
        let auth = check.map(|check| &check.auth);
        match self.secured {
            None if auth.is_some_and(ClientAuth::is_required) => Err(Problem::CertificateNeeded),
            None => Ok(()),
            Some(secured) if secured.auth() == auth && secured.speaks_for(host) => Ok(()),
            Some(_) => Err(Problem::Misdirected),
        }
    }
}
