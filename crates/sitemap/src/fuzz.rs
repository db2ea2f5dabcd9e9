//! Fuzz properties of this crate's parser, for any bytes. Fuzz targets and property tests share
//! them.

use crate::{Location, URL_BYTES_MAX, read};

/// Checks that any bytes can be read, and that lines ascend and lie within them.
///
/// # Panics
/// If the property does not hold.
pub fn sitemap(bytes: &[u8]) {
    let lines = bytes.iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
    let mut last = 1;
    let result = read(bytes, &mut |line, location| {
        assert!((last..=lines).contains(&line), "{line} after {last} of {lines}");
        last = line;
        let (Location::Page(url) | Location::Sitemap(url)) = location;
        assert!(url.len() <= URL_BYTES_MAX + bytes.len() && url.trim() == url);
    });
    if let Err(error) = result {
        assert!((1..=lines).contains(&error.line), "{error}");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    const PARTS: &[&str] = &[
        "<urlset>",
        "</urlset>",
        "<url>",
        "</url>",
        "<loc>",
        "</loc>",
        "http://a/",
        "&amp;",
        "&x;",
        "<sitemapindex>",
        "<sitemap>",
        "</sitemap>",
        "</sitemapindex>",
        "<![CDATA[",
        "]]>",
        "<!--",
        "-->",
        "\n",
        "/b",
        " ",
        "<?xml?>",
        "&#0;",
        "\u{feff}",
        "ß",
    ];

    proptest! {
        #[test]
        fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            super::sitemap(&bytes);
        }

        #[test]
        fn pieces(parts in prop::collection::vec(prop::sample::select(PARTS), 0..30)) {
            super::sitemap(parts.concat().as_bytes());
        }
    }
}
