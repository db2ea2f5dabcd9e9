//! Redirect files: the files of `redirect = { map = ... }`, read with the configuration.
//!
//! They are read before anything changes: an unusable file is an error of the configuration, at a
//! start, a reload and a check.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use config::{Config, Diagnostic, PlacedPath};
use policy::RedirectMap;

use crate::keeper;

/// Reads every file that `config` names, by its path; problems are reported in `found`.
pub(crate) fn read(
    config: &Config,
    found: &mut Vec<Diagnostic>,
) -> BTreeMap<PathBuf, Arc<RedirectMap>> {
    let mut read: BTreeMap<PathBuf, Arc<RedirectMap>> = BTreeMap::new();
    for site in &config.sites {
        for file in &site.redirect_maps {
            if !read.contains_key(&file.path) {
                match map(file, config.limits.redirect_map_bytes) {
                    Ok(map) => {
                        found.extend(warning(file, &map));
                        read.insert(file.path.clone(), Arc::new(map));
                    }
                    Err(why) => found.push(file.error(why)),
                }
            }
            let map = read.get(&file.path);
            if let Some(Err(error)) = map.map(|map| map.refuse_loops(&site.hosts)) {
                found.push(file.error(error));
            }
        }
    }
    read
}

fn map(file: &PlacedPath, most: u64) -> Result<RedirectMap, String> {
    let text = keeper::read_bounded(&file.path, "redirect_map_bytes", most)?;
    RedirectMap::parse(&text).map_err(|error| error.to_string())
}

/// The warning about a questionable file.
fn warning(file: &PlacedPath, map: &RedirectMap) -> Option<Diagnostic> {
    let why = match map.repeated() {
        _ if map.is_empty() => "there are no redirects".to_owned(),
        Some(repeated) => repeated.to_string(),
        None => return None,
    };
    Some(file.place.warning(format!("{}: {why}", file.path.display())))
}
