//! Block hash: a keyed hash of bytes that come in pieces. Each block begins with the hash of those
//! before it.

use base::HashSeed;

/// Bytes of a block, which are hashed at once.
const BLOCK: usize = 256;
/// Bytes of a hash.
const HASH: usize = 8;

/// A hash in progress.
#[derive(Clone, Debug)]
pub(crate) struct BlockHash {
    block: [u8; BLOCK],
    filled: usize,
}

impl Default for BlockHash {
    fn default() -> Self {
        Self { block: [0; BLOCK], filled: HASH }
    }
}

impl BlockHash {
    pub(crate) fn push(&mut self, seed: &HashSeed, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.filled == BLOCK {
                let hash = self.value(seed).to_le_bytes();
                self.block[..HASH].copy_from_slice(&hash);
                self.filled = HASH;
            }
            let room = bytes.len().min(BLOCK - self.filled);
            let (now, later) = bytes.split_at(room);
            self.block[self.filled..self.filled + room].copy_from_slice(now);
            self.filled += room;
            bytes = later;
        }
    }

    /// The hash of all bytes so far.
    pub(crate) fn value(&self, seed: &HashSeed) -> u64 {
        seed.hash(&self.block[..self.filled])
    }
}
