//! Media types that belong to the suffixes of paths.
//!
//! A rule that keeps `*.css` for a year would store an account page that an application also serves
//! at `/account/x.css` (web cache deception). The check of the type prevents that.

use message::percent;

/// Suffixes, and their types: complete, or prefixes. No list has a type that a browser displays as
/// a page.
const TYPES: &[(&[&str], &[&str])] = &[
    (&["css"], &["text/css"]),
    (&["js", "mjs"], &["text/javascript", "application/javascript", "application/x-javascript"]),
    (&["json", "map", "webmanifest"], &["application/json", "application/manifest+json"]),
    (&["map", "woff", "woff2", "ttf", "otf", "eot"], &["application/octet-stream"]),
    (
        &["woff", "woff2", "ttf", "otf", "eot"],
        &[
            "font/",
            "application/font-",
            "application/x-font-",
            "application/vnd.ms-fontobject",
            "application/vnd.ms-opentype",
        ],
    ),
    (
        &[
            "png", "jpg", "jpeg", "gif", "webp", "avif", "jxl", "heic", "ico", "cur", "bmp", "tif",
            "tiff", "svg", "svgz",
        ],
        &["image/"],
    ),
    (&["mp3", "m4a", "aac", "oga", "ogg", "opus", "wav", "flac"], &["audio/"]),
    (&["mp4", "m4v", "webm", "ogv", "ogg", "mov"], &["video/"]),
    (&["wasm"], &["application/wasm"]),
    (&["pdf"], &["application/pdf"]),
    (&["zip"], &["application/zip", "application/x-zip-compressed"]),
    (&["gz", "tgz"], &["application/gzip", "application/x-gzip"]),
    (&["txt"], &["text/plain"]),
    (&["csv"], &["text/csv"]),
    (
        &["xml", "rss", "atom"],
        &["text/xml", "application/xml", "application/rss+xml", "application/atom+xml"],
    ),
];

/// Returns true if `content_type`, a field's value, belongs to the suffix of `path`. Returns false
/// for a path with a delimiter at which an origin may cut it: `;`, or an escape of `/`, `\\`, `;`,
/// `?`, `#` or `%`.
pub(super) fn fits(path: &[u8], content_type: &[u8]) -> bool {
    let Some(dot) = path.iter().rposition(|b| matches!(b, b'.' | b'/')) else { return false };
    if path[dot] == b'/' || has_delimiter(path) {
        return false;
    }
    let suffix = &path[dot + 1..];
    let kind = content_type.split(|b| *b == b';').next().unwrap_or_default().trim_ascii();
    let same = |own: &str| own.as_bytes().eq_ignore_ascii_case(suffix);
    let stands_for = |own: &str| match own.ends_with(['/', '-']) {
        true => kind.get(..own.len()).is_some_and(|k| k.eq_ignore_ascii_case(own.as_bytes())),
        false => kind.eq_ignore_ascii_case(own.as_bytes()),
    };
    TYPES.iter().any(|(suffixes, types)| {
        suffixes.iter().any(|own| same(own)) && types.iter().any(|own| stands_for(own))
    })
}

fn has_delimiter(path: &[u8]) -> bool {
    let escaped = |w: &[u8]| percent::escaped(w).is_some_and(|byte| b"/\\;?#%".contains(&byte));
    path.contains(&b';') || path.contains(&b'\\') || path.windows(3).any(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_fits_its_suffix() {
        for (path, kind) in [
            ("/a/style.css", "text/css"),
            ("/a/style.CSS", "Text/CSS; charset=utf-8"),
            ("/app.min.js", "application/javascript"),
            ("/a.b/logo.png", "image/webp"),
            ("/font.woff2", "application/octet-stream"),
            ("/font.woff2", "font/woff2"),
            ("/a%20b.svg", "image/svg+xml"),
        ] {
            assert!(fits(path.as_bytes(), kind.as_bytes()), "{path} {kind}");
        }
    }

    #[test]
    fn p8_no_page_fits_any_suffix() {
        for (suffixes, _) in TYPES {
            for suffix in *suffixes {
                let path = format!("/account/x.{suffix}");
                for kind in ["text/html", "text/html; charset=utf-8", "application/xhtml+xml", ""] {
                    assert!(!fits(path.as_bytes(), kind.as_bytes()), "{path} {kind}");
                }
            }
        }
    }

    #[test]
    fn p8_no_delimiter_is_trusted() {
        for path in [
            "/account;x.css",
            "/account%2fx.css",
            "/account%5Cx.css",
            "/account%3Bx.css",
            "/account%3fx.css",
            "/account%23x.css",
            "/account%252fx.css",
            "/account\\x.css",
            "/account.css/",
            "/account/css",
            "/account.",
            "/account.php",
            "",
        ] {
            assert!(!fits(path.as_bytes(), b"text/css"), "{path}");
        }
    }
}
