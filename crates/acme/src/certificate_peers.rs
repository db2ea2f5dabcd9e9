//! Certificate peers: daemons that serve the same names. One orders, and all share the account, the
//! pending challenge and the certificates.
//!
//! Code that reaches the other daemons implements [`CertificatePeers`]. Without it a daemon orders
//! alone.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::challenge_responder::ChallengeResponder;

/// A future result.
pub type PendingFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// An entry that the daemons share.
#[derive(Clone, PartialEq, Eq)]
pub enum SharedEntry {
    /// The state of the entry is unknown.
    Unknown,
    /// There is no entry.
    Absent,
    /// There is an entry, but it was rejected.
    Refused,
    /// The value of the entry.
    Is(Vec<u8>),
}

/// The permission to order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrderPermission {
    /// This daemon may order, until it loses the right.
    Own,
    /// Another daemon orders.
    Others(String),
    /// It is unknown which daemon orders.
    OutOfTouch,
}

/// The daemons that serve the same names.
pub trait CertificatePeers: Send + Sync {
    /// The entry with this name: parts of letters, digits, `-` and `_`, separated by dots.
    fn read(&self, name: &str) -> SharedEntry;

    /// Writes `value` under this name for all daemons, over the value that this daemon has read.
    ///
    /// The error is the reason why they may not get it.
    fn write<'a>(&'a self, name: &'a str, value: &'a [u8])
    -> PendingFuture<'a, Result<(), String>>;

    /// Notes that the entry `value` cannot be used.
    fn refuse(&self, name: &str, value: &[u8], why: &str);

    /// Takes or renews the right to order.
    fn claim(&self) -> PendingFuture<'_, OrderPermission>;

    /// Ends when this daemon loses the right to order.
    fn right_is_lost(&self) -> PendingFuture<'_, ()>;

    /// Gives up the right to order, if this daemon holds it.
    fn release(&self) -> PendingFuture<'_, ()>;

    /// Makes all other daemons answer an authority's challenge before this ends; `None` withdraws
    /// it.
    ///
    /// The error names the daemons that may not.
    fn ask_all<'a>(
        &'a self,
        question: Option<&'a ChallengeAnswer>,
    ) -> PendingFuture<'a, Result<(), String>>;

    /// Changes when an entry may have changed.
    fn changes(&self) -> watch::Receiver<u64>;
}

/// A challenge of the authority, and the answer.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChallengeAnswer {
    /// A file over plain HTTP (RFC 8555 8.3).
    Http {
        /// The file's name.
        token: String,
        /// Its content.
        answer: String,
    },
    /// A certificate in a handshake (RFC 8737).
    Tls {
        /// The name of the challenge.
        name: String,
        /// The certificate of the answer, DER.
        certificate: Vec<u8>,
        /// Its key, PKCS#8.
        key: Vec<u8>,
    },
}

impl fmt::Debug for ChallengeAnswer {
    /// Without keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http { token, .. } => f.debug_tuple("Http").field(token).finish(),
            Self::Tls { name, .. } => f.debug_tuple("Tls").field(name).finish(),
        }
    }
}

impl ChallengeAnswer {
    /// Makes this daemon answer the challenge.
    ///
    /// # Errors
    /// The certificate cannot be used.
    pub fn show(&self, answers: &dyn ChallengeResponder) -> Result<(), String> {
        match self {
            Self::Http { token, answer } => answers.show_http(token, answer),
            Self::Tls { name, certificate, key } => answers.show_tls(name, certificate, key)?,
        }
        Ok(())
    }

    /// Encodes a challenge, or its absence.
    pub fn encode(question: Option<&Self>) -> Vec<u8> {
        postcard::to_extend(&question, Vec::new())
            .expect("every length is known beforehand, and a Vec takes any number of bytes")
    }

    /// Decodes what [`ChallengeAnswer::encode`] wrote; `None` for anything else.
    pub fn decode(bytes: &[u8]) -> Option<Option<Self>> {
        let (read, left) = postcard::take_from_bytes(bytes).ok()?;
        left.is_empty().then_some(read)
    }
}

/// The name of an authority's entry of this kind.
pub(crate) fn entry(kind: &str, authority: &str, host: Option<&str>) -> String {
    let host = host.map(|host| format!(".{host}")).unwrap_or_default();
    format!("{kind}.{}{host}", authority.replace('.', "_"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_question_is_read_as_it_was_written_and_nothing_else_is(
            texts in [".{0,20}", ".{0,20}"],
            bytes in prop::collection::vec(any::<u8>(), 0..60),
        ) {
            let [token, answer] = texts;
            let http = ChallengeAnswer::Http { token: token.clone(), answer };
            let (certificate, key) = (bytes.clone(), bytes.clone());
            let tls = ChallengeAnswer::Tls { name: token, certificate, key };
            for question in [None, Some(http), Some(tls)] {
                let written = ChallengeAnswer::encode(question.as_ref());
                prop_assert_eq!(ChallengeAnswer::decode(&written), Some(question));
                for end in 0..written.len() {
                    prop_assert_eq!(ChallengeAnswer::decode(&written[..end]), None);
                }
            }
            if let Some(read) = ChallengeAnswer::decode(&bytes) {
                prop_assert!(ChallengeAnswer::encode(read.as_ref()).len() <= bytes.len());
            }
        }
    }

    #[test]
    fn an_entry_is_named_after_its_authority_and_its_host() {
        let authority = "ca.example-dir";
        assert_eq!(entry("account", authority, None), "account.ca_example-dir");
        let name = entry("certificate", authority, Some("www.a.test"));
        assert_eq!(name, "certificate.ca_example-dir.www.a.test");
    }
}
