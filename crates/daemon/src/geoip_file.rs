//! GeoIP file: the database of `geoip`, read with the configuration.
//!
//! It is read before anything changes: an unusable file is an error of the configuration, at a
//! start, a reload and a check.

use std::sync::Arc;

use config::{Config, Diagnostic, PlacedPath};
use policy::Countries;

use crate::keeper;

/// Reads the database, if `config` names one; a problem is reported in `found`.
pub(crate) fn read(config: &Config, found: &mut Vec<Diagnostic>) -> Option<Arc<Countries>> {
    let file = config.geoip.as_ref()?;
    match countries(file, config.limits.geoip_bytes) {
        Ok(countries) => Some(Arc::new(countries)),
        Err(why) => {
            found.push(file.error(why));
            None
        }
    }
}

fn countries(file: &PlacedPath, most: u64) -> Result<Countries, String> {
    let bytes = keeper::read_bounded(&file.path, "geoip_bytes", most)?;
    let countries = Countries::read(bytes)?;
    // Those about networks, hosts or anonymity have no countries.
    let kind = countries.kind();
    let others = ["ASN", "ISP", "Connection-Type", "Domain", "Anonymous-IP"];
    match others.iter().any(|other| kind.ends_with(other)) {
        true => Err(format!("a database of the type {kind} has no countries")),
        false => Ok(countries),
    }
}
