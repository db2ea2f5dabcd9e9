//! Pending check: an authentication check that the cache could not decide.

use std::sync::Arc;

use super::gates::{BasicAuthCheck, ForwardAuthCheck};

/// A pending authentication check.
pub(crate) enum PendingAuthCheck {
    /// Verify the password of a user.
    Password { gate: Arc<BasicAuthCheck>, digest: [u8; 32], user: Vec<u8>, password: Vec<u8> },
    /// Ask the authentication server. With `keeps_password` it does not get the password.
    ForwardAuth { gate: Arc<ForwardAuthCheck>, digest: [u8; 32], keeps_password: bool },
}

impl PendingAuthCheck {
    /// The digest of the credentials.
    pub(crate) fn digest(&self) -> [u8; 32] {
        let (Self::Password { digest, .. } | Self::ForwardAuth { digest, .. }) = self;
        *digest
    }
}
