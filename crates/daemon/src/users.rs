//! Users: the files of `basic_auth`, read with the configuration.
//!
//! They are read before anything changes: an unusable file is an error of the configuration, at a
//! start, a reload and a check.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::{Config, Diagnostic};
use policy::Users;

use crate::keeper;

/// The users of every named file, by its path.
#[derive(Debug, Default)]
pub(crate) struct UserFiles(BTreeMap<PathBuf, Arc<Users>>);

impl UserFiles {
    /// Reads every file that `config` names; unusable ones are reported in `found`.
    pub(crate) fn read(config: &Config, found: &mut Vec<Diagnostic>) -> Self {
        let mut read = BTreeMap::new();
        for file in config.sites.iter().flat_map(|site| &site.users) {
            let path = &file.path;
            if read.contains_key(path) {
                continue;
            }
            match users(path, config.limits.users_bytes) {
                Ok(users) if users.is_empty() => {
                    let why = "there are no users, so every request would be refused";
                    found.push(file.place.warning(format!("{}: {why}", path.display())));
                    read.insert(path.clone(), Arc::new(users));
                }
                Ok(users) => _ = read.insert(path.clone(), Arc::new(users)),
                Err(why) => found.push(file.error(why)),
            }
        }
        Self(read)
    }

    /// The users of a file.
    pub(crate) fn of(&self, path: &Path) -> Option<Arc<Users>> {
        self.0.get(path).cloned()
    }
}

fn users(path: &Path, most: u64) -> Result<Users, String> {
    let text = keeper::read_bounded(path, "users_bytes", most)?;
    Users::parse(&text).map_err(|error| error.to_string())
}
