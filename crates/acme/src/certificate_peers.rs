//! The things that daemons have in common that serve the same names: one orders, and all see the
//! account, the question that is pending, and the certificates.
//!
//! Whoever has the other daemons within reach implements [`Commons`]. Without one a daemon orders
//! for itself, as one that is alone does.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::challenge_responder::ChallengeResponder;

/// Something that takes a while.
pub type PendingFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// An entry of what is common.
#[derive(Clone, PartialEq, Eq)]
pub enum SharedEntry {
    /// It is not known what is there.
    Unknown,
    /// There is nothing.
    Absent,
    /// It is there, and cannot be used.
    Refused,
    /// This is there.
    Is(Vec<u8>),
}

/// The answer to a daemon that wants to order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrderPermission {
    /// It may, until it is told otherwise.
    Own,
    /// Another is at it.
    Others(String),
    /// It is not known who is.
    OutOfTouch,
}

/// Daemons that serve the same names.
pub trait CertificatePeers: Send + Sync {
    /// The entry of this name: words of letters, digits, `-` and `_`, with dots between them.
    fn read(&self, name: &str) -> SharedEntry;

    /// Has all see `value` under this name, over what this daemon has seen there.
    ///
    /// The error says why they may not.
    fn write<'a>(&'a self, name: &'a str, value: &'a [u8])
    -> PendingFuture<'a, Result<(), String>>;

    /// Notes that `value`, which is there, cannot be used.
    fn refuse(&self, name: &str, value: &[u8], why: &str);

    /// Takes the right to order, or keeps it.
    fn claim(&self) -> PendingFuture<'_, OrderPermission>;

    /// Ends when this daemon has not the right any more.
    fn right_is_lost(&self) -> PendingFuture<'_, ()>;

    /// Gives up the right, if this daemon has it.
    fn release(&self) -> PendingFuture<'_, ()>;

    /// Has all others answer an authority's question, before this ends; `None` withdraws it.
    ///
    /// The error says who may not.
    fn ask_all<'a>(
        &'a self,
        question: Option<&'a ChallengeAnswer>,
    ) -> PendingFuture<'a, Result<(), String>>;

    /// Grows when something of it may have changed.
    fn changes(&self) -> watch::Receiver<u64>;
}

/// An authority's question, and the answer.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChallengeAnswer {
    /// For a file over plain HTTP (RFC 8555 8.3).
    Http {
        /// The file's name.
        token: String,
        /// Its content.
        answer: String,
    },
    /// In a handshake (RFC 8737).
    Tls {
        /// The name that is asked about.
        name: String,
        /// The certificate that answers, DER.
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
    /// Has this daemon answer it.
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

    /// A question, or none, as bytes.
    pub fn encode(question: Option<&Self>) -> Vec<u8> {
        postcard::to_extend(&question, Vec::new())
            .expect("every length is known beforehand, and a Vec takes any number of bytes")
    }

    /// The question, or none, that [`Question::encode`] wrote; `None` for anything else.
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
