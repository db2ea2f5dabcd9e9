//! Configuration of a root.

use std::fmt;
use std::path::PathBuf;

use crate::hidden_names::{self, HiddenNames, SOURCES};
use crate::types::Types;

/// A root of files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The directory.
    pub root: PathBuf,
    /// The prefix that is removed from a path before the lookup (nginx: `alias`); empty for no
    /// prefix (nginx: `root`). It has no final slash: the rest of the path begins with one.
    pub strip: String,
    /// Directories are served by an index or a redirect. Otherwise only regular files are.
    pub directories: bool,
    /// Names of a directory's index, in order of preference.
    pub index: Vec<String>,
    /// Directories outside the root that its links may lead to.
    pub linked: Vec<PathBuf>,
    /// Names that are never served.
    pub hide: HiddenNames,
    /// Content types.
    pub types: Types,
    /// Precompressed forms, in order of preference.
    pub precompressed: Vec<PrecompressedFile>,
    /// Request fields for Vary, besides the one for `precompressed`.
    pub vary: Vec<String>,
    /// Cache-Control by type or name; the first match counts.
    pub cache_control: Vec<CacheRule>,
}

impl Config {
    /// The directory `root` with defaults: whole paths below it, `index.html`.
    pub fn new(root: PathBuf) -> Self {
        Self {
            root,
            strip: String::new(),
            directories: true,
            index: vec!["index.html".to_owned()],
            linked: Vec::new(),
            hide: HiddenNames::of(&[SOURCES]),
            types: Types::default(),
            precompressed: Vec::new(),
            vary: Vec::new(),
            cache_control: Vec::new(),
        }
    }
}

/// Cache-Control of some files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheRule {
    /// The files.
    pub files: Selector,
    /// The field's value.
    pub value: String,
}

/// A selection of files, by type or name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// Files with this type; `image/*` for a group of types.
    Type(String),
    /// Files with a name that matches, as in [`HiddenNames`].
    Name(Box<[u8]>),
}

/// Error for a malformed selector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SelectorError;

impl fmt::Display for SelectorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("write a type (\"image/*\") or a name (\"*.css\", \"*\")")
    }
}

impl std::error::Error for SelectorError {}

impl Selector {
    /// Parses `text/css`, `image/*`, `*.css`, or `*` for all.
    ///
    /// # Errors
    /// If it is empty or has more than one slash.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let text = text.to_ascii_lowercase();
        let odd = text.contains(|c: char| c.is_control() || c.is_whitespace());
        match text.matches('/').count() {
            0 if !text.is_empty() && !odd => Ok(Self::Name(text.into_bytes().into())),
            1 if !odd && !text.starts_with('/') && !text.ends_with('/') => Ok(Self::Type(text)),
            _ => Err(SelectorError),
        }
    }

    /// Returns true if a file of type `kind` (without parameters) called `name` is selected.
    pub(crate) fn selects(&self, kind: &str, name: &[u8]) -> bool {
        match self {
            Self::Type(wanted) => match wanted.strip_suffix('*') {
                Some(start) => kind.starts_with(start),
                None => kind == wanted,
            },
            Self::Name(pattern) => hidden_names::matches(pattern, name),
        }
    }
}

/// A precompressed form of the file beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrecompressedFile {
    /// The coding.
    pub coding: Coding,
    /// The suffix behind the name of the plain file.
    pub suffix: String,
}

impl From<Coding> for PrecompressedFile {
    /// With the usual suffix.
    fn from(coding: Coding) -> Self {
        Self { coding, suffix: coding.suffix().to_owned() }
    }
}

/// A content coding of precompressed files (RFC 9110 8.4.1, RFC 7932, RFC 8878).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// `br`, in `name.br`.
    Br,
    /// `zstd`, in `name.zst`.
    Zstd,
    /// `gzip`, in `name.gz`.
    Gzip,
}

impl Coding {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Br, Self::Zstd, Self::Gzip];

    /// The name in Content-Encoding.
    pub const fn token(self) -> &'static str {
        match self {
            Self::Br => "br",
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
        }
    }

    /// The usual suffix of its files.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Br => ".br",
            Self::Zstd => ".zst",
            Self::Gzip => ".gz",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_go_by_type_or_name() {
        for (text, kind, name, expected) in [
            ("text/css", "text/css", "a.css", true),
            ("text/css", "text/csv", "a.csv", false),
            ("image/*", "image/png", "a.png", true),
            ("IMAGE/*", "image/png", "a.png", true),
            ("*.woff2", "font/woff2", "A.WOFF2", true),
            ("*.woff2", "font/woff2", "a.woff", false),
            ("*", "x/y", "whatever", true),
        ] {
            let selector = Selector::parse(text).expect("a selector");
            assert_eq!(selector.selects(kind, name.as_bytes()), expected, "{text} {name}");
        }
        for bad in ["", "/a", "a/", "a/b/c", "a b"] {
            assert_eq!(Selector::parse(bad), Err(SelectorError), "{bad:?}");
        }
    }
}
