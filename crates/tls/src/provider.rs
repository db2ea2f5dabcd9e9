//! Provider of the cryptography of all sessions.

use std::sync::{Arc, LazyLock};

use rustls::crypto::CryptoProvider;
#[cfg(not(larder_demo))]
use rustls::crypto::aws_lc_rs::default_provider;
#[cfg(larder_demo)]
use rustls::crypto::ring::default_provider;

/// Suites, groups and signatures of Mozilla's intermediate profile without finite-field
/// Diffie-Hellman, with X25519MLKEM768 first. The client's order of suites counts.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: LazyLock<Arc<CryptoProvider>> = LazyLock::new(|| Arc::new(default_provider()));
    Arc::clone(&PROVIDER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_post_quantum_group_comes_first() {
        let provider = provider();
        assert_eq!(provider.kx_groups[0].name(), rustls::NamedGroup::X25519MLKEM768);
    }
}
