//! The certificate plan: the certificates to have, and their authority.

use std::path::PathBuf;
use std::sync::Arc;

/// The kind of challenge by which the authority verifies a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Challenge {
    /// A file over plain HTTP (RFC 8555 8.3).
    Http01,
    /// In a TLS handshake (RFC 8737).
    TlsAlpn01,
}

/// An external account to which the account is bound (RFC 8555 7.3.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// Its name.
    pub key_id: String,
    /// The key, decoded.
    pub hmac: Vec<u8>,
}

/// The authority, and the account with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authority {
    /// URL of its directory (RFC 8555 7.1.1), `https://`.
    pub directory: String,
    /// The contact address.
    pub email: Option<String>,
    /// The trust store for the authority's own certificate.
    pub trust: tls::Upstream,
    /// The storage folder, with a folder for each authority.
    pub storage: PathBuf,
    /// The external account, if the authority requires one.
    pub binding: Option<Binding>,
}

/// Limits, in milliseconds unless otherwise stated; see `base::limits`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The time of one exchange with the authority.
    pub exchange_ms: u64,
    /// Bytes of one response.
    pub answer_bytes: u64,
    /// The time of one order.
    pub order_ms: u64,
    /// The time after a failed order; it doubles with each failure.
    pub retry_ms: u64,
    /// The longest time after a failed order.
    pub retry_max_ms: u64,
}

/// The certificates to have. A changed configuration makes a new plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificatePlan {
    /// Their authority.
    pub authority: Arc<Authority>,
    /// DNS names in lower case, each for its own certificate.
    pub names: Vec<String>,
    /// The challenges that can be answered, the preferred one first; at least one.
    pub challenges: Vec<Challenge>,
    /// The limits.
    pub bounds: Bounds,
}
