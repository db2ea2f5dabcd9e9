//! `[compression]`, and the `compress` of sites.

use codec::{Coding, Compress, Compression, LEAST_BYTES, Worth};

use crate::keys::{COUNT, TEXTS};
use crate::reader::{Item, Reader};
use crate::rows::{self, section};

/// The codings by their names.
const CODINGS: [(&str, Coding); 3] =
    [("gzip", Coding::Gzip), ("br", Coding::Brotli), ("zstd", Coding::Zstd)];

section! {
    pub(crate) COMPRESSION, COMPRESSION_ROWS: Compression; "[compression]",
    "Compression of stored responses, for all sites without a VCL: each is stored once, as it \
     came, coded forms are made of what clients ask for in a coding, and every client gets \
     the best that is there and that it takes. A site's `compress` says for which bodies. A \
     VCL has `beresp.do_gzip` and parameters.";
    "types", TEXTS, "text, JSON, XML, scripts, fonts and the like", "Media types of responses that are coded: `text/css`, `text/*`, `*+json`, or `*` for all.",
        |r, item, to| to.worth = worth(r, item);
    "min_bytes", size worth.least_bytes, "\"512\"", "Length below which a response is left as it is, where its length is known before its end.";
    "level", COUNT, "6", "Level of gzip: from 1, fast, to 9, small.",
        level;
    "gzip_hits", count32(1, u32::MAX) gzip_hits, "1", "Hits after which a response that came without a coding is coded in gzip, behind the requests, for clients that take it. The first hit is the second request.";
    "ask", "`gzip`, `br`, `zstd`, or a list of them", "[\"gzip\"]", "Codings that origins are asked for where the answer may be stored; of all of them each client gets one that it takes. With an empty list origins are asked for none.",
        |r, item, to| to.ask = ask(r, item);
    "forms", "`gzip`, `br`, `zstd`, or a list of them", "[\"br\", \"zstd\"]", "Further codings in which responses that are asked for often are kept beside the stored one, for clients that take them; the most wanted first. They are made behind requests, within the limit `coding_time`.",
        |r, item, to| to.forms = codings(r, item);
    "warm_hits", count32(1, u32::MAX) warm_hits, "8", "Hits after which such a form is made, quickly; and a copy without a coding of what an origin has coded, for clients that take none.";
    "hot_hits", count32(1, u32::MAX) hot_hits, "200", "Hits after which it is made as small as it can be.";
    "dictionaries", boolean dictionaries, "true", "Whether stored responses with `Use-As-Dictionary` serve as dictionaries (RFC 9842): clients that have one get newer responses as what differs from it, in `dcz` or `dcb`. Sites with a VCL, too.";
}

/// Reads `[compression]`; what is not set there has its default.
pub(super) fn compression(r: &mut Reader, item: &Item<'_>) -> Compression {
    let mut compression = Compression::default();
    rows::read_table(r, item, &COMPRESSION, COMPRESSION_ROWS, &mut compression);
    compression
}

fn level(r: &mut Reader, item: &Item<'_>, compression: &mut Compression) {
    if let Some(level) = r.count(item, 1, 9).and_then(|level| u8::try_from(level).ok()) {
        *compression = std::mem::take(compression).with_level(level);
    }
}

fn ask(r: &mut Reader, item: &Item<'_>) -> Box<str> {
    let names: Vec<&str> = codings(r, item).into_iter().map(Coding::token).collect();
    names.join(", ").into()
}

fn worth(r: &mut Reader, item: &Item<'_>) -> Worth {
    let mut types = Vec::new();
    for (text, item) in r.texts(item) {
        match Worth::new([text], LEAST_BYTES) {
            Ok(_) => types.push(text),
            Err(text) => {
                r.error(item.span, format!("`{text}` is no media type")).help =
                    Some("write \"text/css\", \"text/*\", \"*+json\" or \"*\"".to_owned());
            }
        }
    }
    Worth::new(types, LEAST_BYTES).unwrap_or_default()
}

fn codings(r: &mut Reader, item: &Item<'_>) -> Vec<Coding> {
    item.each().iter().filter_map(|item| r.word(item, &CODINGS)).collect()
}

/// The bodies of a site that are coded.
pub(super) fn of_site(r: &mut Reader, item: &Item<'_>) -> Option<Compress> {
    let words = [("off", Compress::Off), ("stored", Compress::Stored), ("all", Compress::All)];
    r.word(item, &words)
}
