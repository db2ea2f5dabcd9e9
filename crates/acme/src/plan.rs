//! The certificates that are wanted, and from whom.

use std::path::PathBuf;
use std::sync::Arc;

/// The authority's way of asking whether a name is ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Challenge {
    /// For a file over plain HTTP (RFC 8555 8.3).
    Http01,
    /// In a TLS handshake (RFC 8737).
    TlsAlpn01,
}

/// An account elsewhere that the one with the authority is bound to (RFC 8555 7.3.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// Its name.
    pub key_id: String,
    /// The secret, decoded.
    pub hmac: Vec<u8>,
}

/// Whom to ask, and as whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authority {
    /// URL of its directory (RFC 8555 7.1.1), `https://`.
    pub directory: String,
    /// Where it may write to.
    pub email: Option<String>,
    /// The trust by which its own certificate is verified.
    pub trust: tls::Upstream,
    /// The folder of everything that is kept; a folder per authority is made below it.
    pub storage: PathBuf,
    /// The account elsewhere, where the authority wants one.
    pub binding: Option<Binding>,
}

/// Bounds, in milliseconds where nothing else is said; see `base::limits`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// One exchange with the authority.
    pub exchange_ms: u64,
    /// Bytes of one answer.
    pub answer_bytes: u64,
    /// One order in all.
    pub order_ms: u64,
    /// From a failed order to the next; doubles.
    pub retry_ms: u64,
    /// The most that becomes of it.
    pub retry_max_ms: u64,
}

/// The certificates that are wanted. A change of the configuration makes a new plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificatePlan {
    /// Whom to ask.
    pub authority: Arc<Authority>,
    /// DNS names in lower case, each for a certificate of its own.
    pub names: Vec<String>,
    /// The challenges that can be answered, the preferred first; at least one.
    pub challenges: Vec<Challenge>,
    /// Bounds.
    pub bounds: Bounds,
}
