//! Who may invalidate what is stored of a site, and in which words.

use std::fmt;

use crate::acl::CidrSet;
use crate::peer::Peer;

/// Who may purge a site, and in which dialects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Purge {
    /// From where; empty when the token alone counts.
    pub allow: CidrSet,
    /// What a purge must bring along, too.
    pub token: Option<Box<str>>,
    /// How purges may be said.
    pub dialects: Dialects,
}

impl Purge {
    /// Whether a request of `asker` is admitted; `brings` says whether it has a token.
    pub fn admits(&self, asker: Peer, brings: impl FnOnce(&[u8]) -> bool) -> bool {
        let anywhere = self.allow.is_empty() && self.token.is_some();
        (anywhere || self.allow.has(asker))
            && self.token.as_ref().is_none_or(|token| brings(token.as_bytes()))
    }
}

macro_rules! dialects {
    ($($variant:ident $name:literal $about:literal;)*) => {
        /// A way of saying what to purge.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Dialect { $(#[doc = $about] $variant,)* }

        impl Dialect {
            /// All of them: name, and what it is.
            pub const ALL: &[(Self, &str, &str)] = &[$((Self::$variant, $name, $about),)*];
        }
    };
}

dialects! {
    Purge "purge" "`PURGE url`; with `X-Purge-Method: regex` the path is a regular expression (Proxy Cache Purge, WP Rocket, MediaWiki).";
    NginxHelper "nginx-helper" "`GET /purge/path` and `PURGE /purgeall` (Nginx Helper for WordPress).";
    Magento "magento" "`PURGE /` with `X-Magento-Tags-Pattern` or `X-Pool`.";
    Drupal "drupal" "`BAN` with `Purge-Cache-Tags` or `Cache-Tags`, `URIBAN url`, `PURGE url`, `REFRESH url` (Drupal's purgers).";
    FosHttpCache "foshttpcache" "`PURGE url`, `BAN` with `X-Host`, `X-Url`, `X-Content-Type`, `X-Cache-Tags`, `PURGEKEYS` with `xkey-purge` or `xkey-softpurge`, `GET url` with `Cache-Control: no-cache` or `X-Refresh: 1` (Symfony).";
    Shopware "shopware" "`PURGE /` with `xkey`, `BAN /regex`.";
    Souin "souin" "`PURGE /souin-api/souin` with `Surrogate-Key`, `/souin-api/souin/regex`, `/souin-api/souin/flush`; `GET` lists what is stored (API Platform, FrankenPHP).";
    Fastly "fastly" "`PURGE url`, or with `Surrogate-Key`; `Fastly-Soft-Purge: 1`.";
    Squid "squid" "`PURGE url`, answered with 404 when nothing was stored.";
}

impl Dialect {
    /// The one called `name`.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known, _)| *known == name).map(|(dialect, ..)| *dialect)
    }
}

/// A set of dialects.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Dialects(u16);

impl Dialects {
    /// With `dialect`, too.
    #[must_use]
    pub fn with(self, dialect: Dialect) -> Self {
        Self(self.0 | 1 << dialect as u16)
    }

    /// Whether `dialect` is one of them.
    pub fn has(self, dialect: Dialect) -> bool {
        self.0 & 1 << dialect as u16 != 0
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether any of `dialects` is one of them.
    pub fn any(self, dialects: &[Dialect]) -> bool {
        dialects.iter().any(|dialect| self.has(*dialect))
    }
}

impl fmt::Debug for Dialects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Dialect::ALL.iter().filter(|(dialect, ..)| self.has(*dialect));
        f.debug_set().entries(names.map(|(_, name, _)| name)).finish()
    }
}
