//! Site context: the configuration in force and one of its sites.

use std::sync::Arc;

use crate::state::live_configuration::LiveRef;
use crate::state::site::Site;

/// The configuration in force and a site of it.
#[derive(Clone, Copy)]
pub(crate) struct SiteContext<'a> {
    pub(crate) live: &'a LiveRef,
    pub(crate) site: &'a Arc<Site>,
}
