//! Purge rules of a site: who may invalidate its stored responses, and in which dialects.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::acl::CidrSet;
use crate::peer::ConnectionPeer;

/// The clients that may purge a site, and the permitted dialects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Purge {
    /// Permitted addresses; empty if only the token counts.
    pub allow: CidrSet,
    /// The token that a purge must have, too.
    pub token: Option<Box<str>>,
    /// The permitted dialects.
    pub dialects: Dialects,
    /// The name of a group of sites: a purge of many responses of one of them applies to all.
    pub group: Option<Box<str>>,
}

/// The client that asks for a purge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asker {
    /// The peer of its connection.
    pub peer: ConnectionPeer,
    /// Its connection came from the address that it went to: from this machine, by a public
    /// address.
    pub near: bool,
}

impl Purge {
    /// Returns true if a request of `asker` is admitted; `brings` returns true if the request has a
    /// given token.
    pub fn admits(&self, asker: Asker, brings: impl FnOnce(&[u8]) -> bool) -> bool {
        let anywhere = self.allow.is_empty() && self.token.is_some();
        (anywhere || self.allow.has(asker.peer) || asker.near && self.allows_loopback())
            && self.token.as_ref().is_none_or(|token| brings(token.as_bytes()))
    }

    fn allows_loopback(&self) -> bool {
        self.allow.contains(IpAddr::V4(Ipv4Addr::LOCALHOST))
            || self.allow.contains(IpAddr::V6(Ipv6Addr::LOCALHOST))
    }
}

macro_rules! dialects {
    ($($variant:ident $name:literal $about:literal;)*) => {
        /// A convention for purge requests.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Dialect { $(#[doc = $about] $variant,)* }

        impl Dialect {
            /// All dialects: name and description.
            pub const ALL: &[(Self, &str, &str)] = &[$((Self::$variant, $name, $about),)*];
        }
    };
}

dialects! {
    Purge "purge" "`PURGE url`; with `X-Purge-Method: regex` the path is a regular expression (Proxy Cache Purge, WP Rocket, MediaWiki), as is one that ends in `.*` (W3 Total Cache).";
    NginxHelper "nginx-helper" "`GET /purge/path`, `PURGE /purge/path` and `PURGE /purgeall` (Nginx Helper for WordPress; FOSHttpCache's Nginx client with a `purge_location`).";
    Magento "magento" "`PURGE /` with `X-Magento-Tags-Pattern` or `X-Pool`.";
    Drupal "drupal" "`BAN` with `Purge-Cache-Tags` or `Cache-Tags`, `BAN /prefix/*`, `BAN /.*`, `URIBAN url`, `PURGE url`, `REFRESH url` (Drupal's purgers).";
    FosHttpCache "foshttpcache" "`PURGE url`, `BAN` with `X-Host`, `X-Url`, `X-Content-Type`, `X-Cache-Tags`, `PURGEKEYS` with `xkey-purge` or `xkey-softpurge`, `GET url` with `Cache-Control: no-cache` or `X-Refresh: 1` (Symfony).";
    Shopware "shopware" "`PURGE url`, `PURGE /` with `xkey`, `BAN /regex`.";
    Souin "souin" "`PURGE /souin-api/souin` with `Surrogate-Key`, `/souin-api/souin/regex`, `/souin-api/souin/flush`; `GET` lists what is stored (API Platform, FrankenPHP).";
    Fastly "fastly" "`PURGE url`, or with `Surrogate-Key`; `POST /service/ID/purge/KEY`, `/service/ID/purge` with `Surrogate-Key`, `/service/ID/purge_all`; `Fastly-Soft-Purge: 1`.";
    Squid "squid" "`PURGE url`, answered with 404 when nothing was stored.";
    ApiPlatform "api-platform" "`BAN` with `ApiPlatform-Ban-Regex`, `PURGE` with `xkey` (API Platform's Varnish purgers).";
    Typo3 "typo3" "`BAN` with `Varnish-Ban-All`, `Varnish-Ban-TYPO3-Pid`, `Varnish-Ban-TYPO3-Sitename`, `xkey-purge` (TYPO3's Varnish extensions).";
    Plone "plone" "`PURGE url`, for every host if Host names no site; `PURGE /VirtualHostBase/scheme/host/root/VirtualHostRoot/path` (plone.cachepurging).";
}

impl Dialect {
    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(dialect, ..)| *dialect == self).map_or("", |(_, name, _)| name)
    }

    /// The one called `name`.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known, _)| *known == name).map(|(dialect, ..)| *dialect)
    }
}

/// A set of dialects.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Dialects(u16);

impl Dialects {
    /// The set with `dialect` added.
    #[must_use]
    pub fn with(self, dialect: Dialect) -> Self {
        Self(self.0 | 1 << dialect as u16)
    }

    /// Returns true if `dialect` is in the set.
    pub fn has(self, dialect: Dialect) -> bool {
        self.0 & 1 << dialect as u16 != 0
    }

    /// Returns true if the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns true if any of `dialects` is in the set.
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
