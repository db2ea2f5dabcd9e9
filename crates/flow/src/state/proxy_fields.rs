//! The fields of responses that are the proxy's own, and those of origins that clients see.

use message::pseudonym::Pseudonym;

/// The proxy, as messages tell of it.
#[derive(Debug)]
pub struct ProxyFields {
    /// Its name in `Via` and `Cache-Status`.
    pub pseudonym: Pseudonym,
    /// Send `Cache-Status` (RFC 9211).
    pub cache_status: bool,
    /// Also name the rule that decided, in its `detail`.
    pub detail: bool,
    /// Send `X-Cache: HIT|MISS|...`.
    pub x_cache: bool,
    /// Some site's responses say `Server-Timing`.
    pub server_timing: bool,
    /// The different values of Strict-Transport-Security (RFC 6797) that sites send over HTTPS.
    pub hsts: Vec<String>,
}

impl ProxyFields {
    /// A proxy of this name, which only `Via` tells.
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
    /// Its Strict-Transport-Security, as an index into [`Announce::hsts`].
    pub hsts: Option<u16>,
    /// Server-Timing, where [`Announce::server_timing`] says so.
    pub server_timing: bool,
    /// The fields with surrogate keys.
    pub tags: bool,
    /// Surrogate-Control.
    pub surrogate_control: bool,
}
