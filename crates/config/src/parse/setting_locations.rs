//! Setting locations of a site: explanations of decisions name them.

use policy::rules::Settings;

use crate::reader::{Reader, TomlTable};
use crate::rows::Row;

/// Notes the locations of a table's keys, and those of the tables in it.
pub(super) fn note_places<T>(
    r: &Reader,
    table: &TomlTable<'_>,
    rows: &[Row<T>],
    settings: &mut Settings,
) {
    const WITHIN: [&str; 4] = ["cache", "cookies", "query", "vary"];
    for item in rows.iter().filter_map(|row| table.known(row.key.name)) {
        settings.places.note(item.name, r.place(&item.span));
        let within = item.pairs().filter(|_| WITHIN.contains(&item.name));
        for (key, span, value) in within.unwrap_or_default() {
            settings.places.note(format!("{}.{key}", item.name), r.place(&span));
            for (name, span, _) in value.pairs().unwrap_or_default() {
                settings.places.note(format!("{}.{key}.{name}", item.name), r.place(&span));
            }
        }
    }
}
