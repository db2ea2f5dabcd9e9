//! The proof that a client knows the secret: a digest of it and of letters that were made up for
//! this connection.

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::reply::{Reply, Status};

/// The letters that a client is to answer.
#[derive(Clone, Debug)]
pub struct Challenge([u8; 32]);

impl Challenge {
    /// 32 letters made of as many random bytes.
    pub fn new(random: [u8; 32]) -> Self {
        Self(random.map(|byte| b'a' + byte % 26))
    }

    /// The letters.
    pub fn letters(&self) -> &[u8; 32] {
        &self.0
    }

    /// The reply that asks for the answer, with which a connection begins.
    pub fn reply(&self) -> Reply {
        let letters = String::from_utf8_lossy(&self.0);
        Reply::new(Status::Auth, format!("{letters}\n\nAuthentication required.\n"))
    }

    /// Tells whether `answer` comes from somebody who has `secret`. The right answer is the SHA-256
    /// of the letters, a line feed, the secret, the letters again and another line feed, in
    /// hexadecimal digits. The time of the comparison does not show where the two differ.
    pub fn is_answered(&self, secret: &[u8], answer: &[u8]) -> bool {
        let mut digest = Sha256::new();
        for part in [&self.0[..], b"\n", secret, &self.0, b"\n"] {
            digest.update(part);
        }
        let digit = |half: u8| b"0123456789abcdef"[usize::from(half & 15)];
        let hex: Vec<u8> =
            digest.finalize().iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]).collect();
        bool::from(hex.ct_eq(&answer.to_ascii_lowercase()))
    }
}
