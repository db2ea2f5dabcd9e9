//! The serving side of an order.

use crate::report::Event;

/// The serving side of an order: answers the authority, and is told of events.
pub trait ChallengeResponder: Send + Sync {
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
