//! Types of content by the suffix of a name.

use std::fmt;

/// The default type (nginx's packages: `default_type`).
pub const OCTETS: &str = "application/octet-stream";

/// The built-in table, ordered by suffix: registered types (RFC 6838) where they exist, and those
/// that browsers expect. The setting `types` extends it.
const BUILT_IN: &[(&str, &str)] = &[
    ("3gp", "video/3gpp"),
    ("7z", "application/x-7z-compressed"),
    ("aac", "audio/aac"),
    ("apk", "application/vnd.android.package-archive"),
    ("apng", "image/apng"),
    ("atom", "application/atom+xml"),
    ("avi", "video/x-msvideo"),
    ("avif", "image/avif"),
    ("bmp", "image/bmp"),
    ("br", "application/x-brotli"),
    ("bz2", "application/x-bzip2"),
    ("cjs", "text/javascript"),
    ("css", "text/css"),
    ("csv", "text/csv"),
    ("cur", "image/x-icon"),
    ("deb", "application/vnd.debian.binary-package"),
    ("dmg", "application/x-apple-diskimage"),
    ("doc", "application/msword"),
    ("docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ("eot", "application/vnd.ms-fontobject"),
    ("epub", "application/epub+zip"),
    ("exe", "application/vnd.microsoft.portable-executable"),
    ("flac", "audio/flac"),
    ("geojson", "application/geo+json"),
    ("gif", "image/gif"),
    ("glb", "model/gltf-binary"),
    ("gltf", "model/gltf+json"),
    ("gz", "application/gzip"),
    ("heic", "image/heic"),
    ("htc", "text/x-component"),
    ("htm", "text/html"),
    ("html", "text/html"),
    ("ico", "image/x-icon"),
    ("ics", "text/calendar"),
    ("iso", "application/x-iso9660-image"),
    ("jar", "application/java-archive"),
    ("jp2", "image/jp2"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("js", "text/javascript"),
    ("json", "application/json"),
    ("jsonld", "application/ld+json"),
    ("jxl", "image/jxl"),
    ("kml", "application/vnd.google-earth.kml+xml"),
    ("kmz", "application/vnd.google-earth.kmz"),
    ("m3u8", "application/vnd.apple.mpegurl"),
    ("m4a", "audio/mp4"),
    ("m4s", "video/iso.segment"),
    ("m4v", "video/mp4"),
    ("map", "application/json"),
    ("md", "text/markdown"),
    ("mid", "audio/midi"),
    ("midi", "audio/midi"),
    ("mjs", "text/javascript"),
    ("mkv", "video/matroska"),
    ("mml", "text/mathml"),
    ("mov", "video/quicktime"),
    ("mp3", "audio/mpeg"),
    ("mp4", "video/mp4"),
    ("mpd", "application/dash+xml"),
    ("mpeg", "video/mpeg"),
    ("mpg", "video/mpeg"),
    ("msi", "application/x-msi"),
    ("odp", "application/vnd.oasis.opendocument.presentation"),
    ("ods", "application/vnd.oasis.opendocument.spreadsheet"),
    ("odt", "application/vnd.oasis.opendocument.text"),
    ("oga", "audio/ogg"),
    ("ogg", "audio/ogg"),
    ("ogv", "video/ogg"),
    ("opus", "audio/ogg"),
    ("otf", "font/otf"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("ppt", "application/vnd.ms-powerpoint"),
    ("pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
    ("ps", "application/postscript"),
    ("rar", "application/vnd.rar"),
    ("rpm", "application/x-rpm"),
    ("rss", "application/rss+xml"),
    ("rtf", "application/rtf"),
    ("svg", "image/svg+xml"),
    ("svgz", "image/svg+xml"),
    ("tar", "application/x-tar"),
    ("tgz", "application/gzip"),
    ("tif", "image/tiff"),
    ("tiff", "image/tiff"),
    ("ts", "video/mp2t"),
    ("ttc", "font/collection"),
    ("ttf", "font/ttf"),
    ("txt", "text/plain"),
    ("vcf", "text/vcard"),
    ("vtt", "text/vtt"),
    ("wasm", "application/wasm"),
    ("wav", "audio/wav"),
    ("weba", "audio/webm"),
    ("webm", "video/webm"),
    ("webmanifest", "application/manifest+json"),
    ("webp", "image/webp"),
    ("woff", "font/woff"),
    ("woff2", "font/woff2"),
    ("xhtml", "application/xhtml+xml"),
    ("xls", "application/vnd.ms-excel"),
    ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ("xml", "text/xml"),
    ("xpi", "application/x-xpinstall"),
    ("xsl", "text/xml"),
    ("xz", "application/x-xz"),
    ("zip", "application/zip"),
    ("zst", "application/zstd"),
];

/// Content types by suffix: the built-in ones, and those that settings add or change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Types {
    own: Vec<(String, String)>,
    charset: Option<String>,
}

/// The reason why a type was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypesError {
    /// A suffix has letters, digits, `-` and `_`, without the dot before it.
    Suffix,
    /// A type is two tokens with a slash between, and optional parameters.
    Type,
    /// A charset is one token.
    Charset,
}

impl fmt::Display for TypesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Suffix => "a suffix is written without its dot: `css`",
            Self::Type => "a type is written as `text/css`",
            Self::Charset => "a charset is one token such as \"utf-8\"",
        })
    }
}

impl std::error::Error for TypesError {}

impl Types {
    /// Sets the type of names that end in `.suffix`; `*` stands for unknown suffixes.
    ///
    /// # Errors
    /// If either is malformed.
    pub fn set(&mut self, suffix: &str, kind: &str) -> Result<(), TypesError> {
        let good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if suffix != "*" && (suffix.is_empty() || !suffix.chars().all(good)) {
            return Err(TypesError::Suffix);
        }
        let essence = kind.split(';').next().unwrap_or_default().trim_end();
        let token = |text: &str| message::header::is_token(text.as_bytes());
        let whole = essence.split_once('/').is_some_and(|(a, b)| token(a) && token(b));
        if !whole || !message::header::is_value(kind.as_bytes()) {
            return Err(TypesError::Type);
        }
        self.own.push((suffix.to_ascii_lowercase(), kind.to_owned()));
        Ok(())
    }

    /// Sets the charset of texts.
    ///
    /// # Errors
    /// If it is not a token.
    pub fn set_charset(&mut self, charset: &str) -> Result<(), TypesError> {
        if !message::header::is_token(charset.as_bytes()) {
            return Err(TypesError::Charset);
        }
        self.charset = Some(charset.to_owned());
        Ok(())
    }

    /// The Content-Type of a file called `name`. Texts get the charset, unless their type has one
    /// (nginx: `charset`, `charset_types`).
    pub fn of(&self, name: &[u8]) -> String {
        let kind = self.essence(name);
        match &self.charset {
            Some(charset) if is_text(kind) && !kind.contains("charset=") => {
                format!("{kind}; charset={charset}")
            }
            _ => kind.to_owned(),
        }
    }

    /// The type of a file called `name`, without charset.
    pub fn essence(&self, name: &[u8]) -> &str {
        let suffix = suffix(name).unwrap_or_default();
        let own = |wanted: &str| {
            let found = self.own.iter().rev().find(|(suffix, _)| suffix == wanted);
            found.map(|(_, kind)| kind.as_str())
        };
        own(&suffix)
            .filter(|_| suffix != "*")
            .or_else(|| {
                let at = BUILT_IN.binary_search_by_key(&&*suffix, |(known, _)| known).ok()?;
                Some(BUILT_IN[at].1)
            })
            .or_else(|| own("*"))
            .unwrap_or(OCTETS)
    }
}

/// The text after the last dot of `name`, in lower case.
fn suffix(name: &[u8]) -> Option<String> {
    let at = memchr::memrchr(b'.', name)?;
    Some(std::str::from_utf8(&name[at + 1..]).ok()?.to_ascii_lowercase())
}

fn is_text(kind: &str) -> bool {
    kind.starts_with("text/")
        || ["application/json", "application/rss+xml", "application/atom+xml"].contains(&kind)
}

/// Returns true if a file of this type is worth compressing: compressed formats have no smaller
/// precompressed form.
pub(crate) fn is_compressible(kind: &str) -> bool {
    let essence = kind.split(';').next().unwrap_or_default().trim_end();
    essence.starts_with("text/")
        || essence.ends_with("+json")
        || essence.ends_with("+xml")
        || matches!(
            essence,
            "application/json"
                | "application/javascript"
                | "application/wasm"
                | "application/xml"
                | "application/vnd.ms-fontobject"
                | "font/ttf"
                | "font/otf"
                | "image/bmp"
                | "image/x-icon"
                | "model/gltf-binary"
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_and_every_type_is_one() {
        assert!(BUILT_IN.is_sorted_by(|(a, _), (b, _)| a < b));
        let mut types = Types::default();
        for (suffix, kind) in BUILT_IN {
            assert_eq!(types.set(suffix, kind), Ok(()), "{suffix}");
        }
    }

    #[test]
    fn the_last_suffix_counts_in_any_case() {
        let types = Types::default();
        for (name, kind) in [
            ("a.css", "text/css"),
            ("a.b.CSS", "text/css"),
            ("app.min.js", "text/javascript"),
            ("a.tar.gz", "application/gzip"),
            ("LICENSE", OCTETS),
            ("a.", OCTETS),
            ("a.unheardof", OCTETS),
            ("a.*", OCTETS),
        ] {
            assert_eq!(types.of(name.as_bytes()), kind, "{name}");
        }
    }

    #[test]
    fn settings_add_replace_and_name_the_charset_of_texts() {
        let mut types = Types::default();
        types.set("css", "text/x-own").expect("a type");
        types.set("*", "text/plain").expect("a type");
        types.set_charset("utf-8").expect("a charset");
        assert_eq!(types.of(b"a.css"), "text/x-own; charset=utf-8");
        assert_eq!(types.of(b"LICENSE"), "text/plain; charset=utf-8");
        assert_eq!(types.of(b"a.png"), "image/png");
        assert_eq!(types.of(b"a.json"), "application/json; charset=utf-8");
        types.set("txt", "text/plain; charset=latin1").expect("a type");
        assert_eq!(types.of(b"a.txt"), "text/plain; charset=latin1");
        for (suffix, kind, error) in [
            (".css", "text/css", TypesError::Suffix),
            ("", "text/css", TypesError::Suffix),
            ("css", "text", TypesError::Type),
            ("css", "text/css\r\nX: y", TypesError::Type),
        ] {
            assert_eq!(types.set(suffix, kind), Err(error));
        }
        assert_eq!(types.set_charset("a b"), Err(TypesError::Charset));
    }
}
