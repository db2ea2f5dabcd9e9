//! The ways by which a site is purged from outside.

use policy::Purge;

/// The ways by which a site is purged from outside; by none of them at first.
#[derive(Clone, Debug, Default)]
pub struct PurgeAccess {
    /// The clients that may purge the site, and their dialects; `None` when no client may.
    pub by_request: Option<Purge>,
    /// HTCP's datagrams purge the site, too.
    pub by_htcp: bool,
}
