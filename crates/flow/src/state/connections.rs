//! The rules for clients' connections, before there is a request of any site.

use std::sync::Arc;

use base::Limits;
use h1::HeadLimits;
use policy::acl::CidrSet;

/// The rules for clients' connections.
pub struct ConnectionRules {
    /// The server that TLS listeners shake hands with; `None` without certificates.
    pub tls: Option<Arc<tls::ServerContext>>,
    /// The proxies in front that are believed, and let through to listeners with `proxy`.
    pub trusted: CidrSet,
    /// Clients may begin with HTTP/2 without TLS, or may not, where a parameter says so; `None`
    /// where each listener says so for itself.
    pub h2c: Option<bool>,
    /// The limits on heads, as the engine wants them.
    pub head_limits: HeadLimits,
}

impl ConnectionRules {
    /// No TLS, and no trusted proxy.
    pub fn new(limits: &Limits) -> Self {
        let head_limits = HeadLimits::from(limits);
        Self { tls: None, trusted: CidrSet::default(), h2c: None, head_limits }
    }
}
