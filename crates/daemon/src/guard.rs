//! The guard of Varnish's CLI: which clients it admits.

use std::fmt;
use std::sync::Arc;

/// The clients that are admitted.
#[derive(Clone)]
pub(crate) enum Guard {
    /// Every client that can connect: only this machine's can.
    Open,
    /// Clients that know the secret that the daemon generated.
    Own,
    /// Clients that know this secret.
    Secret(Arc<[u8]>),
}

impl fmt::Debug for Guard {
    /// Omits the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "Open",
            Self::Own => "Own",
            Self::Secret(_) => "Secret(..)",
        })
    }
}
