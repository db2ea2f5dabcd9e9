//! The client that a request comes from, and the check that its connection is good enough for the
//! site that the request names.

use std::rc::Rc;
use std::sync::Arc;

use base::Account;
use message::HeaderBlock;
use policy::ConnectionPeer;
use tls::{ClientAuth, SessionTerms};

use crate::problem::Problem;
use crate::state::vcl::VclConnection;

/// The other end of the connection that a request came over.
#[derive(Clone, Copy, Debug)]
pub struct Client<'a> {
    /// The client.
    pub peer: ConnectionPeer,
    /// The connection came from the very address that it went to.
    pub near: bool,
    /// The outcome of the TLS handshake; absent over a plain connection.
    pub secured: Option<&'a Rc<SessionTerms>>,
    /// The connection, as programs see it; made up of `peer` where it is absent.
    pub line: Option<&'a VclConnection>,
    /// The account of what is held for it.
    pub account: &'a Arc<Account>,
}

/// A site's check of its TLS clients.
#[derive(Clone, Debug)]
pub struct ClientCheck {
    /// The certificates that let a client in.
    pub auth: ClientAuth,
    /// The fields in which origins are told of them.
    pub fields: CertificateFields,
}

/// Fields that tell origins of a client's certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CertificateFields {
    /// X-SSL-Client-Verify (`SUCCESS`, `NONE`), X-SSL-Client-S-DN and X-SSL-Client-Fingerprint, as
    /// nginx has them in variables.
    pub x_ssl: bool,
    /// Client-Cert (RFC 9440).
    pub client_cert: bool,
}

impl Client<'_> {
    /// Tells the origin of the client's certificate, in fields of its request. Returns true if the
    /// client has a certificate and the fields say so: the response is for this client alone then.
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

    /// Checks that a request for `host` may come over this connection, when the site checks clients
    /// by `check`. It fails closed: a handshake for another site never opens a site that lets in
    /// fewer clients (nginx's CVE-2025-23419).
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
