//! Settings of compression, as the daemon makes them of its configuration.

use crate::{Coding, CodingCriteria, EncodeSettings};

/// The bodies of a site that are coded here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CompressionScope {
    /// None, and none is decoded either: every coding that an origin chooses is a variant.
    Off,
    /// Those that are stored.
    #[default]
    Stored,
    /// Those that are passed on, too.
    All,
}

/// Compression, the same for all sites with a declared policy.
#[derive(Clone, Debug)]
pub struct Compression {
    /// The responses that get coded forms.
    pub worth: CodingCriteria,
    /// gzip, and its level.
    pub gzip: EncodeSettings,
    /// Accept-Encoding of requests whose answers may be stored; empty to send none.
    pub ask: Box<str>,
    /// Hits after which a body that came without a coding is coded in gzip.
    pub gzip_hits: u32,
    /// Further codings in which bodies are kept beside the stored one, the most wanted first.
    pub forms: Vec<Coding>,
    /// Hits after which such a form is made.
    pub warm_hits: u32,
    /// Hits after which it is made once more, with the greatest effort.
    pub hot_hits: u32,
    /// Stored responses that say so serve as dictionaries (RFC 9842), under every policy.
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

/// gzip at `level`, or at the nearest that there is.
pub fn gzip(level: u8) -> EncodeSettings {
    let levels = EncodeSettings::levels(Coding::Gzip);
    EncodeSettings::new(Coding::Gzip, level.clamp(*levels.start(), *levels.end()))
        .expect("gzip has all levels between its first and its last")
}
