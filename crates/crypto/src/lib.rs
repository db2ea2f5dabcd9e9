//! The cryptographic library: aws-lc. The demo build has ring, which compiles in less time, and
//! knows neither post-quantum key exchange nor a cipher that bears a nonce twice.

#[cfg(not(larder_demo))]
mod library {
    pub use aws_lc_rs::aead::AES_256_GCM_SIV as SEALING;
    pub use aws_lc_rs::rand::fill;
    pub use aws_lc_rs::{aead, digest, hkdf, signature};
}

#[cfg(larder_demo)]
mod library {
    pub use ring::aead::AES_256_GCM as SEALING;
    use ring::error::Unspecified;
    use ring::rand::{SecureRandom, SystemRandom};
    pub use ring::{aead, digest, hkdf, signature};

    /// Fills `bytes` from the system's random source.
    ///
    /// # Errors
    /// When that gives none.
    pub fn fill(bytes: &mut [u8]) -> Result<(), Unspecified> {
        SystemRandom::new().fill(bytes)
    }
}

pub use library::{SEALING, aead, digest, fill, hkdf, signature};
