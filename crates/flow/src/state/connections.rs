//! Connection rules: settings of client connections, which apply before a site is known.

use std::sync::Arc;

use base::Limits;
use h1::HeadLimits;
use policy::acl::CidrSet;

/// The rules for client connections.
pub struct ConnectionRules {
    /// The TLS server of TLS listeners; `None` without certificates.
    pub tls: Option<Arc<tls::ServerContext>>,
    /// Trusted proxies, which may also connect to listeners with `proxy`.
    pub trusted: CidrSet,
    /// If clients may begin with HTTP/2 without TLS, by a parameter; `None` if each listener
    /// decides.
    pub h2c: Option<bool>,
    /// The limits on heads for the engine.
    pub head_limits: HeadLimits,
}

impl ConnectionRules {
    /// No TLS, and no trusted proxy.
    pub fn new(limits: &Limits) -> Self {
        let head_limits = HeadLimits::from(limits);
        Self { tls: None, trusted: CidrSet::default(), h2c: None, head_limits }
    }
}
