//! Admission to Varnish's CLI.

use std::fmt;
use std::sync::Arc;

/// Clients that get in.
#[derive(Clone)]
pub(crate) enum Guard {
    /// Whoever can connect, which only this machine can.
    Open,
    /// Clients that know the secret that the daemon has made.
    Own,
    /// Clients that know this secret.
    Secret(Arc<[u8]>),
}

impl fmt::Debug for Guard {
    /// Without the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "Open",
            Self::Own => "Own",
            Self::Secret(_) => "Secret(..)",
        })
    }
}
