//! Sibling: another cache, and the queries that it is sent.

use std::fmt;
use std::sync::Arc;

use message::Scheme;
use origin::Origin;
use tokio::sync::oneshot;

/// A query for a stored response to a request.
#[derive(Clone, Copy, Debug)]
pub struct SiblingQuestion<'a> {
    /// The absolute URL.
    pub url: &'a [u8],
    /// Request fields that may select a response, each line with its CRLF.
    pub fields: &'a [u8],
}

/// The query port of a sibling.
pub trait SiblingPort: fmt::Debug + Send + Sync {
    /// Monotonic milliseconds since which the sibling has confirmed all local invalidations, 0 for
    /// always; `None` while it must not be asked.
    fn trusted_since(&self) -> Option<u64>;
    /// Sends a query and returns the number that [`SiblingPort::forget`] takes; `None` if it cannot
    /// be sent.
    fn ask(&self, question: &SiblingQuestion<'_>, answer: oneshot::Sender<bool>) -> Option<u32>;
    /// Drops the query of this number.
    fn forget(&self, number: u32);
    /// Notes a query without a timely reply.
    fn was_silent(&self);
}

/// A sibling cache.
#[derive(Debug)]
pub struct Sibling {
    /// The origin by which its stored responses are fetched.
    pub origin: Arc<Origin>,
    /// The names of the sites that it is asked for; empty for all.
    pub sites: Vec<String>,
    /// Its port for questions.
    pub port: Arc<dyn SiblingPort>,
}

/// All siblings.
#[derive(Debug, Default)]
pub struct Siblings(pub Vec<Sibling>);

impl Sibling {
    /// Returns true if the sibling is asked for `site` in this scheme. It would search for the
    /// other scheme in vain.
    pub(crate) fn is_for(&self, site: &str, scheme: Scheme) -> bool {
        let is_secure = self.origin.config().servers.iter().any(|server| server.tls);
        is_secure == (scheme == Scheme::Https)
            && (self.sites.is_empty() || self.sites.iter().any(|own| own == site))
    }

    /// As [`SiblingPort::trusted_since`]; `None` if its responses cannot be fetched.
    pub(crate) fn trusted_since(&self) -> Option<u64> {
        self.port.trusted_since().filter(|_| self.origin.is_healthy())
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
