//! Certificates from an authority that speaks ACME (RFC 8555): Let's Encrypt and its kin. And word
//! of authorities that certificates are good, for handshakes to show ([`staple()`], RFC 6960).
//!
//! [`run()`] sees to it that every name of a [`Plan`] has a certificate in the plan's storage, and
//! a newer one before that expires. Whoever serves takes the files from there
//! ([`Storage::certificate`]) and answers the authority's questions ([`Answers`]). Where several
//! daemons serve the same names, one orders for all ([`Commons`]).
//!
//! It never serves, never touches what is in use, and deletes nothing: a file it cannot read is put
//! aside. It runs beside the cores, never on one.

mod client;
mod commons;
mod order;
mod report;
mod run;
mod schedule;
mod share;
mod staple;
mod storage;

use std::path::PathBuf;
use std::sync::Arc;

pub use crate::commons::{Common, Commons, Pending, Question, Turn};
pub use crate::report::{Event, Failure};
pub use crate::run::run;
pub use crate::staple::{Shown, StapleBounds, StapleEvent, Stapling, staple};
pub use crate::storage::Storage;

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
pub struct Plan {
    /// Whom to ask.
    pub authority: Arc<Authority>,
    /// DNS names in lower case, each for a certificate of its own.
    pub names: Vec<String>,
    /// The challenges that can be answered, the preferred first; at least one.
    pub challenges: Vec<Challenge>,
    /// Bounds.
    pub bounds: Bounds,
}

/// The serving side of an order: answers the authority, and is told of events.
pub trait Answers: Send + Sync {
    /// Gives `answer` to whoever asks for `token` over plain HTTP, on every listener, from when
    /// this returns until the next call of [`Answers::withdraw`].
    fn show_http(&self, token: &str, answer: &str);

    /// Shows `certificate` with `key` (DER, PKCS#8) to whoever asks about `name` in a handshake,
    /// as above.
    ///
    /// # Errors
    /// When the two cannot be used.
    fn show_tls(&self, name: &str, certificate: &[u8], key: &[u8]) -> Result<(), String>;

    /// The question is over.
    fn withdraw(&self);

    /// Something happened that the operator may want to know.
    fn note(&self, event: Event);
}
