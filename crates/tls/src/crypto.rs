//! The cryptographic library: aws-lc. The demo build has ring, which compiles in less time, and
//! knows neither post-quantum key exchange nor a cipher that bears a nonce twice.

#[cfg(not(larder_demo))]
mod library {
    pub(crate) use aws_lc_rs::aead::AES_256_GCM_SIV as SEALING;
    pub(crate) use aws_lc_rs::rand::fill;
    pub(crate) use aws_lc_rs::{aead, digest, hkdf};
    pub(crate) use rustls::crypto::aws_lc_rs::default_provider;
}

#[cfg(larder_demo)]
mod library {
    pub(crate) use ring::aead::AES_256_GCM as SEALING;
    use ring::error::Unspecified;
    use ring::rand::{SecureRandom, SystemRandom};
    pub(crate) use ring::{aead, digest, hkdf};
    pub(crate) use rustls::crypto::ring::default_provider;

    /// Fills `bytes` from the system's random source.
    pub(crate) fn fill(bytes: &mut [u8]) -> Result<(), Unspecified> {
        SystemRandom::new().fill(bytes)
    }
}

pub(crate) use library::{SEALING, aead, default_provider, digest, fill, hkdf};
