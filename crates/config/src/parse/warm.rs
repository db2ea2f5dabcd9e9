//! `[site.warm]`: what is fetched before a visitor asks for it.

use std::num::NonZeroU32;

use crate::keys::TEXTS;
use crate::model::WarmConfig;
use crate::reader::{Reader, SettingValue};
use crate::rows::{self, section};

/// Most sitemaps that a site names itself.
const SITEMAPS_MAX: usize = 100;
/// Most requests of `refresh_ahead`.
const REQUESTS_MAX: u32 = 1_000_000;

section! {
    pub(crate) WARM, WARM_ROWS: WarmConfig; "[site.warm]",
    "Responses that are fetched before a visitor asks for them, also on a site with a VCL: behind \
     visitors, without cookies, and as many at the same time as the origin's first-byte time \
     allows. See the limits `warm_fetches` and `warm_share`.";
    "rewarm", boolean rewarm, "false", "Whether pages that a purge removes are fetched again by themselves if visitors had asked for them, the most popular first. The list of such pages (limit `hot_urls`) is kept over a restart, after which they are fetched if they are missing.";
    "refresh_ahead", "a whole number", "none", "Number of requests beyond which a stored response is renewed in the last fifth of its lifetime, before it is stale. Without it, the first request for the stale response has it renewed.",
        |r, item, to| to.refresh_ahead = r.count32(item, 1, REQUESTS_MAX).and_then(NonZeroU32::new);
    "sitemap", TEXTS, "none", "URLs of sitemaps, or of indexes of them, whose pages are fetched after the start, and at each `larder warm` with the site's name: `https://example.com/sitemap.xml`. Larder asks the site itself for them. Only pages on the site's hosts count. See the limits `sitemap_bytes` and `sitemaps`.",
        |r, item, to| to.sitemaps = sitemaps(r, item);
    "list", path list, "none", "File with the URL of a page in each line (an absolute path), read and fetched as `sitemap`.";
}

/// Reads the settings of a site.
pub(super) fn of_site(r: &mut Reader, item: &SettingValue<'_>, to: &mut WarmConfig) {
    rows::read_table(r, item, &WARM, WARM_ROWS, to);
}

fn sitemaps(r: &mut Reader, item: &SettingValue<'_>) -> Vec<String> {
    let texts = r.texts(item);
    if texts.len() > SITEMAPS_MAX {
        r.error(item.span.clone(), format!("`sitemap` has more than {SITEMAPS_MAX} URLs")).help =
            Some("an index of sitemaps names any number of them".to_owned());
    }
    let mut sitemaps = Vec::new();
    for (text, item) in texts.into_iter().take(SITEMAPS_MAX) {
        let is_url = ["http://", "https://"].iter().any(|scheme| text.starts_with(scheme));
        if !is_url || text.bytes().any(|byte| !byte.is_ascii_graphic()) {
            r.error(item.span, format!("`{text}` is no URL of a sitemap")).help =
                Some("write \"https://example.com/sitemap.xml\"".to_owned());
        } else {
            sitemaps.push(text.to_owned());
        }
    }
    sitemaps
}
