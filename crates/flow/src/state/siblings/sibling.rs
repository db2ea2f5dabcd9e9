//! Siblings, and the questions that they are asked.

use std::fmt;
use std::sync::Arc;

use message::Scheme;
use origin::Origin;
use tokio::sync::oneshot;

/// A question to siblings: whether a response to this request is stored.
#[derive(Clone, Copy, Debug)]
pub struct SiblingQuestion<'a> {
    /// The absolute URL.
    pub url: &'a [u8],
    /// Fields of the request that may select a response, each line with its CRLF.
    pub fields: &'a [u8],
}

/// The port of a sibling for questions.
pub trait SiblingPort: fmt::Debug + Send + Sync {
    /// The moment since which it has confirmed everything that was invalidated here, in
    /// milliseconds of the monotonic clock, 0 for always; `None` while it is not to be asked.
    fn trusted_since(&self) -> Option<u64>;
    /// Sends a question, and returns the number that [`SiblingPort::forget`] takes; `None` if it
    /// cannot be sent.
    fn ask(&self, question: &SiblingQuestion<'_>, answer: oneshot::Sender<bool>) -> Option<u32>;
    /// Nobody waits for the answer to this question any more.
    fn forget(&self, number: u32);
    /// A question was not answered in time.
    fn was_silent(&self);
}

/// A sibling.
#[derive(Debug)]
pub struct Sibling {
    /// The way to what it has stored.
    pub way: Arc<Origin>,
    /// The names of the sites that it has pages of; empty for all.
    pub sites: Vec<String>,
    /// Its port for questions.
    pub port: Arc<dyn SiblingPort>,
}

/// All siblings.
#[derive(Debug, Default)]
pub struct Siblings(pub Vec<Sibling>);

impl Sibling {
    /// Returns true if it may have pages of `site`. Pages of the other scheme are others, which it
    /// would look for in vain.
    pub(crate) fn is_for(&self, site: &str, scheme: Scheme) -> bool {
        let is_secure = self.way.config().servers.iter().any(|server| server.tls);
        is_secure == (scheme == Scheme::Https)
            && (self.sites.is_empty() || self.sites.iter().any(|own| own == site))
    }

    /// As [`SiblingPort::trusted_since`], unless its responses are not to be had.
    pub(crate) fn trusted_since(&self) -> Option<u64> {
        self.port.trusted_since().filter(|_| self.way.is_healthy())
    }
}

impl Siblings {
    pub(crate) fn of<'a>(
        &'a self,
        site: &'a str,
        scheme: Scheme,
    ) -> impl Iterator<Item = &'a Sibling> {
        self.0.iter().filter(move |sibling| sibling.is_for(site, scheme))
    }
}
