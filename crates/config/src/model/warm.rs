//! `[site.warm]` in the model: responses that are fetched before a visitor asks for them.

use std::num::NonZeroU32;

use super::location::PlacedPath;

/// `[site.warm]`.
#[derive(Clone, Debug, Default)]
pub struct WarmConfig {
    /// Pages that a purge removes come back by themselves.
    pub rewarm: bool,
    /// Requests beyond which a stored response is renewed before its end.
    pub refresh_ahead: Option<NonZeroU32>,
    /// URLs of sitemaps.
    pub sitemaps: Vec<String>,
    /// A file with a URL in each line.
    pub list: Option<PlacedPath>,
}
