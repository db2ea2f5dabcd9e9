//! Purge access: the ways in which a site may be purged from outside.

use policy::Purge;

/// The ways in which a site may be purged from outside; by default none.
#[derive(Clone, Debug, Default)]
pub struct PurgeAccess {
    /// The clients that may purge the site, and their dialects; `None` if no client may.
    pub by_request: Option<Purge>,
    /// HTCP may purge the site.
    pub by_htcp: bool,
}
