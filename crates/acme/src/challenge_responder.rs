//! The challenge responder: the interface to the listeners, which answer the authority's
//! challenges.

use crate::report::Event;

/// Answers the authority's challenges, and receives events.
pub trait ChallengeResponder: Send + Sync {
    /// Serves `answer` for `token` over plain HTTP on every listener, from the return of this call
    /// until [`ChallengeResponder::withdraw`].
    fn show_http(&self, token: &str, answer: &str);

    /// Presents `certificate` with `key` (DER, PKCS#8) in handshakes for `name`, for the same
    /// period.
    ///
    /// # Errors
    /// The certificate or its key cannot be used.
    fn show_tls(&self, name: &str, certificate: &[u8], key: &[u8]) -> Result<(), String>;

    /// Ends the answer.
    fn withdraw(&self);

    /// Reports an event to the operator.
    fn note(&self, event: Event);
}
