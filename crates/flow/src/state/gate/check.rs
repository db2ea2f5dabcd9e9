//! Something that a gate does not know yet, and that is to be found out.

use std::sync::Arc;

use super::gates::{BasicAuthCheck, ForwardAuthCheck};

/// Something that is to be found out.
pub(crate) enum PendingAuthCheck {
    /// A password is that of the user.
    Password { gate: Arc<BasicAuthCheck>, digest: [u8; 32], user: Vec<u8>, password: Vec<u8> },
    /// Another server lets the request in. A password that is for the gate alone is not told.
    Word { gate: Arc<ForwardAuthCheck>, digest: [u8; 32], keeps_password: bool },
}

impl PendingAuthCheck {
    /// The digest of what was shown.
    pub(crate) fn digest(&self) -> [u8; 32] {
        let (Self::Password { digest, .. } | Self::Word { digest, .. }) = self;
        *digest
    }
}
