//! Authentication of a CLI connection: the challenge, and the digest by which a client proves that
//! it knows the secret. The secret never appears in a reply.

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::reply::{Reply, Status};

/// Challenge of one connection: 32 letters.
#[derive(Clone, Debug)]
pub struct Challenge([u8; 32]);

impl Challenge {
    /// Challenge made from 32 random bytes.
    pub fn new(random: [u8; 32]) -> Self {
        Self(random.map(|byte| b'a' + byte % 26))
    }

    /// The letters of the challenge.
    pub fn letters(&self) -> &[u8; 32] {
        &self.0
    }

    /// The reply with status 107 that opens a connection and carries the challenge.
    pub fn reply(&self) -> Reply {
        let letters = String::from_utf8_lossy(&self.0);
        Reply::new(Status::Auth, format!("{letters}\n\nAuthentication required.\n"))
    }

    /// Returns true if `answer` proves knowledge of `secret`. The right answer is the SHA-256 of
    /// the challenge, a line feed, the secret, the challenge again and another line feed, in
    /// hexadecimal digits. The comparison takes constant time.
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
