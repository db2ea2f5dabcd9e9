//! Proxy fields: response fields that the proxy adds, and origin fields that clients may see.

use message::pseudonym::Pseudonym;

/// The fields that the proxy adds.
#[derive(Debug)]
pub struct ProxyFields {
    /// The name in `Via` and `Cache-Status`.
    pub pseudonym: Pseudonym,
    /// Send `Cache-Status` (RFC 9211).
    pub cache_status: bool,
    /// Name the deciding rule in its `detail`.
    pub detail: bool,
    /// Send `X-Cache: HIT|MISS|...`.
    pub x_cache: bool,
    /// A site sends `Server-Timing`.
    pub server_timing: bool,
    /// The different values of Strict-Transport-Security (RFC 6797) of all sites.
    pub hsts: Vec<String>,
}

impl ProxyFields {
    /// A proxy of this name that adds `Via` only.
    pub fn new(name: &str) -> Self {
        Self {
            pseudonym: Pseudonym::new(name),
            cache_status: false,
            detail: false,
            x_cache: false,
            server_timing: false,
            hsts: Vec::new(),
        }
    }
}

/// Fields that the clients of a site see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShownFields {
    /// The site's Strict-Transport-Security, as an index into [`ProxyFields::hsts`].
    pub hsts: Option<u16>,
    /// Server-Timing, if [`ProxyFields::server_timing`] is set.
    pub server_timing: bool,
    /// The fields with surrogate keys.
    pub tags: bool,
    /// Surrogate-Control.
    pub surrogate_control: bool,
}
