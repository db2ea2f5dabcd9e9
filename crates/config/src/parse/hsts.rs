//! `[site.hsts]`.

use toml::de::DeValue;

use crate::keys::{BOOLEAN, DURATION, Section, keys};
use crate::reader::{Item, Reader};

pub(crate) const HSTS: Section = Section {
    title: "[site.hsts]",
    about: "Strict-Transport-Security, when more than its duration is to be said. Where the origin \
            sends one, that comes first and counts.",
    keys: || {
        keys! {
            "max_age", DURATION, "\"2y\"", "How long browsers use HTTPS only.";
            "subdomains", BOOLEAN, "false", "Whether that holds for all hosts below this one.";
            "preload", BOOLEAN, "false", "Whether browsers may have it built in.";
        }
    },
    ..Section::EMPTY
};

/// `hsts`: the field's value.
pub(super) fn hsts(r: &mut Reader, item: &Item<'_>) -> Option<String> {
    const TWO_YEARS_MS: u64 = 2 * 365 * 24 * 3_600_000;
    let (mut max_age_ms, mut flags) = (TWO_YEARS_MS, [false; 2]);
    match item.value {
        DeValue::Boolean(false) => return None,
        DeValue::Boolean(true) => {}
        DeValue::Table(_) => {
            let table = r.table(item, &HSTS)?;
            if let Some(item) = table.item("max_age") {
                max_age_ms = r.duration(&item)?;
            }
            for (name, flag) in ["subdomains", "preload"].into_iter().zip(&mut flags) {
                *flag = table.item(name).and_then(|item| r.boolean(&item)).unwrap_or(false);
            }
        }
        DeValue::String(_) => {
            let known = r.duration(item);
            if known.is_none()
                && let Some(found) = r.found.last_mut()
            {
                found.help.get_or_insert_with(|| "write true, or how long: \"1y\"".to_owned());
            }
            max_age_ms = known?;
        }
        _ => {
            r.wrong_type(item);
            return None;
        }
    }
    let [subdomains, preload] = flags;
    let subdomains = if subdomains { "; includeSubDomains" } else { "" };
    let preload = if preload { "; preload" } else { "" };
    Some(format!("max-age={}{subdomains}{preload}", max_age_ms / 1000))
}
