//! Crawlers as a configuration names them: their list, and the proofs of their names.

use message::HttpsOrigin;

use super::location::{ConfigLocation, PlacedPath};

/// `[crawlers]`: the list of crawlers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrawlersConfig {
    /// A list that precedes the built-in one.
    pub file: Option<PlacedPath>,
    /// The built-in list counts.
    pub built_in: bool,
    /// Address lists of crawlers, by name.
    pub verify: Vec<(String, PlacedPath)>,
    /// Search engines without an address list are verified by DNS.
    pub dns: bool,
    /// The crawlers that sign their requests.
    pub signatures: Vec<SigningCrawler>,
}

impl Default for CrawlersConfig {
    fn default() -> Self {
        let (verify, signatures) = (Vec::new(), Vec::new());
        Self { file: None, built_in: true, verify, dns: true, signatures }
    }
}

/// A crawler that signs its requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SigningCrawler {
    /// Its name in the list.
    pub name: String,
    /// The origin of its key directory.
    pub agent: HttpsOrigin,
    /// Its keys; `None` if they are fetched from the agent.
    pub keys: Option<PlacedPath>,
    /// The trusted authorities for a fetch, PEM; `None` for the system's.
    pub ca: Option<PlacedPath>,
    /// The location of the setting.
    pub place: ConfigLocation,
}
