//! `[site.hsts]`: Strict-Transport-Security.

use toml::de::DeValue;

use crate::reader::{Reader, SettingValue};
use crate::rows::{self, section};

section! {
    pub(crate) HSTS, HSTS_ROWS: Hsts; "[site.hsts]",
    "Strict-Transport-Security, as a table. If the origin sends this field, Larder sends the \
     origin's value.";
    "max_age", duration max_age_ms, "\"2y\"", "Time for which browsers use HTTPS only.";
    "subdomains", boolean subdomains, "false", "Whether the rule covers all hosts below this one (`includeSubDomains`).";
    "preload", boolean preload, "false", "Whether browsers may include the host in their preload lists.";
}

struct Hsts {
    max_age_ms: u64,
    subdomains: bool,
    preload: bool,
}

/// Reads `hsts`: the field's value.
pub(super) fn hsts(r: &mut Reader, item: &SettingValue<'_>) -> Option<String> {
    const TWO_YEARS_MS: u64 = 2 * 365 * 24 * 3_600_000;
    let mut hsts = Hsts { max_age_ms: TWO_YEARS_MS, subdomains: false, preload: false };
    match item.value {
        DeValue::Boolean(false) => return None,
        DeValue::Boolean(true) => {}
        DeValue::Table(_) => _ = rows::read_table(r, item, &HSTS, HSTS_ROWS, &mut hsts),
        DeValue::String(_) => {
            let known = r.duration(item);
            if known.is_none()
                && let Some(found) = r.found.last_mut()
            {
                found.help.get_or_insert_with(|| "write true, or how long: \"1y\"".to_owned());
            }
            hsts.max_age_ms = known?;
        }
        _ => {
            r.wrong_type(item);
            return None;
        }
    }
    let subdomains = if hsts.subdomains { "; includeSubDomains" } else { "" };
    let preload = if hsts.preload { "; preload" } else { "" };
    Some(format!("max-age={}{subdomains}{preload}", hsts.max_age_ms / 1000))
}
