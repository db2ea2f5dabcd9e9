//! The cryptographic library: aws-lc, or ring in the demo build, which seals nothing since it has
//! no link to servers.

#[cfg(not(larder_demo))]
mod library {
    pub(crate) use aws_lc_rs::aead::AES_256_GCM_SIV as SEALING;
    pub(crate) use aws_lc_rs::rand::fill;
    pub(crate) use aws_lc_rs::{aead, digest, hkdf};
}

#[cfg(larder_demo)]
mod library {
    pub(crate) use ring::aead::AES_256_GCM as SEALING;
    use ring::error::Unspecified;
    use ring::rand::{SecureRandom, SystemRandom};
    pub(crate) use ring::{aead, digest, hkdf};

    pub(crate) fn fill(bytes: &mut [u8]) -> Result<(), Unspecified> {
        SystemRandom::new().fill(bytes)
    }
}

pub(crate) use library::{SEALING, aead, digest, fill, hkdf};
