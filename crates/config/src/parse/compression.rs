//! `[compression]`, and the `compress` of sites.

use codec::{Coding, CodingCriteria, Compression, CompressionScope, LEAST_BYTES};

use crate::keys::{COUNT, TEXTS};
use crate::reader::{Reader, SettingValue};
use crate::rows::{self, section};

/// The codings by their names.
const CODINGS: [(&str, Coding); 3] =
    [("gzip", Coding::Gzip), ("br", Coding::Brotli), ("zstd", Coding::Zstd)];

section! {
    pub(crate) COMPRESSION, COMPRESSION_ROWS: Compression; "[compression]",
    "Compression of stored responses, for all sites without VCL. Larder stores each response \
     once, as it came. It then makes compressed forms in codings that clients request, and sends \
     each client the best that it accepts. A site's `compress` selects the bodies. VCL uses \
     `beresp.do_gzip` and parameters instead.";
    "types", TEXTS, "text, JSON, XML, scripts, fonts and the like", "Media types of responses that are compressed: `text/css`, `text/*`, `*+json`, or `*` for all.",
        |r, item, to| to.worth = worth(r, item);
    "min_bytes", size worth.least_bytes, "\"512\"", "Minimum length of bodies that are compressed. Does not apply to bodies whose length is unknown before their end.";
    "level", COUNT, "6", "Level of gzip, from 1 (fast) to 9 (small).",
        level;
    "gzip_hits", count32(1, u32::MAX) gzip_hits, "1", "Number of hits after which an uncompressed response is compressed with gzip, in the background, for clients that accept it. The first hit is the second request.";
    "ask", "`gzip`, `br`, `zstd`, or a list of them", "[\"gzip\"]", "Codings that Larder requests from origins if the response may be stored. Each client gets a coding that it accepts. `[]`: none.",
        |r, item, to| to.ask = ask(r, item);
    "forms", "`gzip`, `br`, `zstd`, or a list of them", "[\"br\", \"zstd\"]", "Further codings in which Larder keeps popular responses beside the stored one, in order of preference, for clients that accept them. Larder makes them in the background, within the limit `coding_time`.",
        |r, item, to| to.forms = codings(r, item);
    "warm_hits", count32(1, u32::MAX) warm_hits, "8", "Number of hits after which a form in `forms` is made, quickly. After as many hits, a compressed response gets an uncompressed copy, for clients that accept no coding.";
    "hot_hits", count32(1, u32::MAX) hot_hits, "200", "Number of hits after which a form in `forms` is made as small as possible.";
    "dictionaries", boolean dictionaries, "true", "Whether stored responses with `Use-As-Dictionary` serve as dictionaries (RFC 9842). Clients that have the dictionary get newer responses as differences from it, in `dcz` or `dcb`. Also applies to sites with VCL.";
}

/// Reads `[compression]`; missing keys keep their defaults.
pub(super) fn compression(r: &mut Reader, item: &SettingValue<'_>) -> Compression {
    let mut compression = Compression::default();
    rows::read_table(r, item, &COMPRESSION, COMPRESSION_ROWS, &mut compression);
    compression
}

fn level(r: &mut Reader, item: &SettingValue<'_>, compression: &mut Compression) {
    if let Some(level) = r.count(item, 1, 9).and_then(|level| u8::try_from(level).ok()) {
        *compression = std::mem::take(compression).with_level(level);
    }
}

fn ask(r: &mut Reader, item: &SettingValue<'_>) -> Box<str> {
    let names: Vec<&str> = codings(r, item).into_iter().map(Coding::token).collect();
    names.join(", ").into()
}

fn worth(r: &mut Reader, item: &SettingValue<'_>) -> CodingCriteria {
    let mut types = Vec::new();
    for (text, item) in r.texts(item) {
        match CodingCriteria::new([text], LEAST_BYTES) {
            Ok(_) => types.push(text),
            Err(text) => {
                r.error(item.span, format!("`{text}` is no media type")).help =
                    Some("write \"text/css\", \"text/*\", \"*+json\" or \"*\"".to_owned());
            }
        }
    }
    CodingCriteria::new(types, LEAST_BYTES).unwrap_or_default()
}

fn codings(r: &mut Reader, item: &SettingValue<'_>) -> Vec<Coding> {
    item.each().iter().filter_map(|item| r.word(item, &CODINGS)).collect()
}

/// Reads which bodies of a site are coded.
pub(super) fn of_site(r: &mut Reader, item: &SettingValue<'_>) -> Option<CompressionScope> {
    let words = [
        ("off", CompressionScope::Off),
        ("stored", CompressionScope::Stored),
        ("all", CompressionScope::All),
    ];
    r.word(item, &words)
}
