//! `[compression]`, and the `compress` of sites.

use codec::{Coding, Compress, Compression, LEAST_BYTES, MEDIA_TYPES, Worth};

use crate::keys;
use crate::reader::{Item, Reader, Table};

/// The codings by their names.
const CODINGS: [(&str, Coding); 3] =
    [("gzip", Coding::Gzip), ("br", Coding::Brotli), ("zstd", Coding::Zstd)];

/// Reads `[compression]`; what is not set there has its default.
pub(super) fn compression(r: &mut Reader, top: &Table<'_>) -> Compression {
    let usual = Compression::default();
    let Some(table) = top.item("compression").and_then(|item| r.table(&item, &keys::COMPRESSION))
    else {
        return usual;
    };
    let level = table.item("level").and_then(|item| r.count(&item, 1, 9));
    let level = level.and_then(|level| u8::try_from(level).ok()).unwrap_or(Compression::LEVEL);
    let hits = |r: &mut Reader, name, usual| {
        table.item(name).and_then(|item| r.count32(&item, 1, u32::MAX)).unwrap_or(usual)
    };
    let gzip_hits = hits(r, "gzip_hits", usual.gzip_hits);
    let warm_hits = hits(r, "warm_hits", usual.warm_hits);
    let hot_hits = hits(r, "hot_hits", usual.hot_hits);
    let forms = table.item("forms").map(|item| codings(r, &item));
    let ask = table.item("ask").map(|item| {
        let names: Vec<&str> = codings(r, &item).into_iter().map(Coding::token).collect();
        names.join(", ").into()
    });
    Compression {
        worth: worth(r, &table),
        ask: ask.unwrap_or(usual.ask),
        gzip_hits,
        forms: forms.unwrap_or(usual.forms),
        warm_hits,
        hot_hits,
        gzip: usual.gzip,
        dictionaries: table.item("dictionaries").and_then(|item| r.boolean(&item)).unwrap_or(true),
    }
    .with_level(level)
}

fn worth(r: &mut Reader, table: &Table<'_>) -> Worth {
    let least = table.item("min_bytes").and_then(|item| r.size(&item)).unwrap_or(LEAST_BYTES);
    let mut types = Vec::new();
    match table.item("types") {
        None => types.extend_from_slice(MEDIA_TYPES),
        Some(item) => {
            for (text, item) in r.texts(&item) {
                match Worth::new([text], least) {
                    Ok(_) => types.push(text),
                    Err(text) => {
                        r.error(item.span, format!("`{text}` is no media type")).help =
                            Some("write \"text/css\", \"text/*\", \"*+json\" or \"*\"".to_owned());
                    }
                }
            }
        }
    }
    Worth::new(types, least).unwrap_or_default()
}

fn codings(r: &mut Reader, item: &Item<'_>) -> Vec<Coding> {
    item.each().iter().filter_map(|item| r.word(item, &CODINGS)).collect()
}

/// The bodies of a site that are coded.
pub(super) fn of_site(r: &mut Reader, table: &Table<'_>) -> Compress {
    let words = [("off", Compress::Off), ("stored", Compress::Stored), ("all", Compress::All)];
    table.item("compress").and_then(|item| r.word(&item, &words)).unwrap_or_default()
}
