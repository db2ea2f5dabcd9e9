//! Policy files: what settings name by a path, and another crate reads before a policy is made from
//! the settings.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use message::Status;

use crate::countries::Countries;
use crate::redirect_map::RedirectMap;

/// A file of redirects, as a setting names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedirectFile {
    /// Its path.
    pub path: PathBuf,
    /// The status of lines without one.
    pub status: Status,
}

/// The files that the settings of sites name, by their paths.
#[derive(Clone, Debug, Default)]
pub struct PolicyFiles {
    /// Files of redirects.
    pub redirects: BTreeMap<PathBuf, Arc<RedirectMap>>,
    /// The database of the countries of addresses.
    pub countries: Option<Arc<Countries>>,
}
