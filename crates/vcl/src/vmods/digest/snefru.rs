//! Snefru with eight passes, which no library has: the second edition of Ralph Merkle's hash, as
//! libmhash computes it.

use super::boxes::BOXES;

/// Words of a block: what is chained, and behind it the message.
const WORDS: usize = 16;
/// Bits by which the words are turned after each round of a pass.
const TURNS: [u32; 4] = [16, 8, 16, 24];

/// The hash of `message`: of 128 bits where `N` is 4, of 256 where it is 8.
pub(super) fn hash<const N: usize>(message: &[u8]) -> Vec<u8> {
    let room = (WORDS - N) * 4;
    let mut chain = [0; N];
    for part in message.chunks(room) {
        chain = compress(&chain, part);
    }
    // A last block has nothing but the length in bits.
    let mut last = vec![0; room];
    let bits = (message.len() as u64).wrapping_mul(8).to_be_bytes();
    last[room - bits.len()..].copy_from_slice(&bits);
    chain = compress(&chain, &last);
    chain.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// `chain` and at most a block's part of the message, mixed; what is missing of it is zero.
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
