//! Snefru with eight passes, the second edition of Ralph Merkle's hash, as libmhash computes it; no
//! library has it. It is for compatibility, and not secure.

use super::boxes::BOXES;

/// Words of a block: the chaining value, then the message.
const WORDS: usize = 16;
/// Rotations of the words after each round of a pass.
const TURNS: [u32; 4] = [16, 8, 16, 24];

/// Hash of `message`: 128 bits with `N` = 4, 256 bits with `N` = 8.
pub(super) fn hash<const N: usize>(message: &[u8]) -> Vec<u8> {
    let room = (WORDS - N) * 4;
    let mut chain = [0; N];
    for part in message.chunks(room) {
        chain = compress(&chain, part);
    }
    // The last block holds only the length in bits.
    let mut last = vec![0; room];
    let bits = (message.len() as u64).wrapping_mul(8).to_be_bytes();
    last[room - bits.len()..].copy_from_slice(&bits);
    chain = compress(&chain, &last);
    chain.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// Compresses `chain` and up to a block of the message; missing bytes are zero.
fn compress<const N: usize>(chain: &[u32; N], part: &[u8]) -> [u32; N] {
    let mut block = [0; WORDS];
    block[..N].copy_from_slice(chain);
    for (word, bytes) in block[N..].iter_mut().zip(part.chunks(4)) {
        let mut four = [0; 4];
        four[..bytes.len()].copy_from_slice(bytes);
        *word = u32::from_be_bytes(four);
    }
    for boxes in BOXES.chunks_exact(2) {
        for turn in TURNS {
            for at in 0..WORDS {
                let entry = boxes[at / 2 % 2][(block[at] & 0xff) as usize];
                block[(at + 1) % WORDS] ^= entry;
                block[(at + WORDS - 1) % WORDS] ^= entry;
            }
            for word in &mut block {
                *word = word.rotate_right(turn);
            }
        }
    }
    std::array::from_fn(|at| chain[at] ^ block[WORDS - 1 - at])
}
