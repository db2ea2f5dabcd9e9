//! Compression settings, which the daemon makes of its configuration.

use crate::{Coding, CodingCriteria, EncodeSettings};

/// The bodies of a site that are coded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CompressionScope {
    /// No body is coded or decoded: each coding that an origin chooses is a variant.
    Off,
    /// Bodies that are stored.
    #[default]
    Stored,
    /// Bodies that are stored, and bodies that are passed.
    All,
}

/// Compression settings, shared by all sites with a declared policy.
#[derive(Clone, Debug)]
pub struct Compression {
    /// Criteria for responses that get coded forms.
    pub worth: CodingCriteria,
    /// Settings of gzip.
    pub gzip: EncodeSettings,
    /// Accept-Encoding of requests whose responses may be stored; empty to send none.
    pub ask: Box<str>,
    /// Hits after which a stored body without a coding is coded in gzip.
    pub gzip_hits: u32,
    /// Further codings that are kept beside the stored form, the most wanted first.
    pub forms: Vec<Coding>,
    /// Hits after which such a form is made.
    pub warm_hits: u32,
    /// Hits after which the form is made again at the highest level.
    pub hot_hits: u32,
    /// True if responses with Use-As-Dictionary serve as dictionaries (RFC 9842), under every
    /// policy.
    pub dictionaries: bool,
}

impl Default for Compression {
    fn default() -> Self {
        Self {
            worth: CodingCriteria::default(),
            gzip: gzip(Self::LEVEL),
            ask: "gzip".into(),
            gzip_hits: 1,
            forms: vec![Coding::Brotli, Coding::Zstd],
            warm_hits: 8,
            hot_hits: 200,
            dictionaries: true,
        }
    }
}

impl Compression {
    /// The level of gzip: zlib's own default.
    pub const LEVEL: u8 = 6;

    /// Settings with gzip at `level`, from 1 to 9.
    #[must_use]
    pub fn with_level(self, level: u8) -> Self {
        Self { gzip: gzip(level), ..self }
    }
}

/// gzip at `level`, or at the nearest valid level.
pub fn gzip(level: u8) -> EncodeSettings {
    let levels = EncodeSettings::levels(Coding::Gzip);
    EncodeSettings::new(Coding::Gzip, level.clamp(*levels.start(), *levels.end()))
        .expect("gzip has all levels between its first and its last")
}
