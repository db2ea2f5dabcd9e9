//! Unstored reason: why a response is not stored, under both policies, with its token in records
//! and its sentence for operators.

use cache::StoreRefusal;
use message::store::NotStored;

/// Why an answer is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnstoredReason {
    /// RFC 9111 or the declared policy forbids it.
    Rule(NotStored),
    /// The request bypassed the cache.
    Pass,
    /// A stored response for other requests stays.
    Beside,
    /// The end of the body cannot be distinguished from a cut.
    Framing,
    /// The store refused it.
    Store(StoreRefusal),
    /// The body was cut off.
    Cut,
    /// The body was not in the coding that its head named.
    NoGzip,
    /// The origin named a file.
    File,
    /// There was no usable response.
    Failed,
    /// The program marked it uncacheable.
    Uncacheable,
    /// The program of a background fetch gave it no lifetime.
    NoLifetime,
}

/// The reasons that are not [`UnstoredReason::Rule`].
pub(crate) const OWN: [UnstoredReason; 13] = [
    UnstoredReason::Pass,
    UnstoredReason::Beside,
    UnstoredReason::Framing,
    UnstoredReason::Store(StoreRefusal::TooLarge),
    UnstoredReason::Store(StoreRefusal::NoRoom),
    UnstoredReason::Store(StoreRefusal::Invalidated),
    UnstoredReason::Store(StoreRefusal::Unwanted),
    UnstoredReason::Cut,
    UnstoredReason::NoGzip,
    UnstoredReason::File,
    UnstoredReason::Failed,
    UnstoredReason::Uncacheable,
    UnstoredReason::NoLifetime,
];

impl UnstoredReason {
    /// The token of the reason in records.
    pub(crate) fn as_str(self) -> &'static str {
        self.description().0
    }

    /// Returns the reason of a token.
    pub(crate) fn of(word: &str) -> Option<Self> {
        let own = || OWN.into_iter().find(|why| why.as_str() == word);
        NotStored::of(word).map(Self::Rule).or_else(own)
    }

    /// The token, a sentence, and the rule or setting behind it.
    pub(crate) fn description(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Rule(rule) => (rule.as_str(), rule.about(), rule.rule()),
            Self::Pass => ("pass", "The request went past the cache.", "its rule"),
            Self::Beside => (
                "beside-stored",
                "Something is stored under its key that is not for this request, and stays.",
                "RFC 9111 4",
            ),
            Self::Framing => (
                "framing",
                "Its body ended with its connection, so a cut cannot be detected.",
                "RFC 9112 8; the origin's `store_close_delimited`",
            ),
            Self::Store(StoreRefusal::TooLarge) => {
                ("too-large", "Its body is larger than the limit.", "limit `object_bytes`")
            }
            Self::Store(StoreRefusal::NoRoom) => {
                ("no-room", "The cache had no memory for it.", "`[memory] size`")
            }
            Self::Store(StoreRefusal::Invalidated) => (
                "invalidated",
                "It was purged, or a ban met it, while it was fetched.",
                "RFC 9111 4.4",
            ),
            Self::Store(StoreRefusal::Unwanted) => (
                "script-failed",
                "Its script ended with a status that means failure.",
                "FastCGI's appStatus, not 0",
            ),
            Self::Cut => ("cut", "Its body did not come whole.", "RFC 9111 3.3"),
            Self::NoGzip => {
                ("no-gzip", "Its body was not in the coding that it claimed.", "RFC 9110 8.4")
            }
            Self::File => {
                ("file", "The origin named a file to answer with.", "X-Accel-Redirect, X-Sendfile")
            }
            Self::Failed => ("failed", "The origin gave no usable answer.", "the error"),
            Self::Uncacheable => (
                "uncacheable",
                "The site's program made it uncacheable.",
                "`beresp.uncacheable`, `return (pass)`",
            ),
            Self::NoLifetime => {
                ("no-ttl", "The site's program left it no lifetime.", "`beresp.ttl`")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_stands_for_one_reason() {
        for why in OWN {
            assert_eq!(UnstoredReason::of(why.as_str()), Some(why));
        }
        assert_eq!(
            UnstoredReason::of("set-cookie"),
            Some(UnstoredReason::Rule(NotStored::SetCookie))
        );
        assert_eq!(UnstoredReason::of("whatever"), None);
    }
}
