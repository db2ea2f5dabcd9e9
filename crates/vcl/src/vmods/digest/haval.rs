//! HAVAL with three passes (Zheng, Pieprzyk and Seberry, 1992), as libmhash computes it; no library
//! has it. It is for compatibility, and not secure.

/// Initial state: like the constants of the passes, digits of pi.
#[rustfmt::skip]
const START: [u32; 8] = [
        0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0x082efa98,
        0xec4e6c89,
];

/// Constants that the steps of each pass add.
#[rustfmt::skip]
const ADDED: [[u32; 32]; 3] = [
    [0; 32],
    [
        0x452821e6, 0x38d01377, 0xbe5466cf, 0x34e90c6c, 0xc0ac29b7, 0xc97c50dd, 0x3f84d5b5,
        0xb5470917, 0x9216d5d9, 0x8979fb1b, 0xd1310ba6, 0x98dfb5ac, 0x2ffd72db, 0xd01adfb7,
        0xb8e1afed, 0x6a267e96, 0xba7c9045, 0xf12c7f99, 0x24a19947, 0xb3916cf7, 0x0801f2e2,
        0x858efc16, 0x636920d8, 0x71574e69, 0xa458fea3, 0xf4933d7e, 0x0d95748f, 0x728eb658,
        0x718bcd58, 0x82154aee, 0x7b54a41d, 0xc25a59b5,
    ],
    [
        0x9c30d539, 0x2af26013, 0xc5d1b023, 0x286085f0, 0xca417918, 0xb8db38ef, 0x8e79dcb0,
        0x603a180e, 0x6c9e0e8b, 0xb01e8a3e, 0xd71577c1, 0xbd314b27, 0x78af2fda, 0x55605c60,
        0xe65525f3, 0xaa55ab94, 0x57489862, 0x63e81440, 0x55ca396a, 0x2aab10b6, 0xb4cc5c34,
        0x1141e8ce, 0xa15486af, 0x7c72e993, 0xb3ee1411, 0x636fbc2a, 0x2ba9c55d, 0x741831f6,
        0xce5c3e16, 0x9b87931e, 0xafd6ba33, 0x6c24cf5c,
    ],
];

/// Index of the message word that each step of a pass uses.
#[rustfmt::skip]
const ORDER: [[u8; 32]; 3] = [
    [
        0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
        16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
    ],
    [
        5, 14, 26, 18, 11, 28, 7, 16, 0, 23, 20, 22, 1, 10, 4, 8,
        30, 3, 21, 9, 17, 24, 29, 6, 19, 12, 15, 13, 2, 25, 31, 27,
    ],
    [
        19, 9, 4, 20, 28, 17, 8, 22, 29, 14, 25, 12, 24, 30, 16, 26,
        31, 15, 7, 3, 1, 0, 18, 27, 13, 6, 21, 10, 23, 11, 5, 2,
    ],
];

/// Bytes of a block.
const BLOCK: usize = 128;

/// Hash of `message` with 4 to 8 words of 32 bits.
pub(super) fn hash<const WORDS: usize>(message: &[u8]) -> Vec<u8> {
    let mut state = START;
    let mut blocks = message.chunks_exact(BLOCK);
    for block in &mut blocks {
        compress(&mut state, block);
    }
    for block in tail(blocks.remainder(), message.len(), WORDS).chunks_exact(BLOCK) {
        compress(&mut state, block);
    }
    fold(&mut state, WORDS);
    state[..WORDS].iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The padding of a message to whole blocks: a one bit, zeros, then version 1, three passes and the
/// hash's bits in two bytes, and the message's bits in eight.
fn tail(rest: &[u8], bytes: usize, words: usize) -> Vec<u8> {
    const VERSION: u8 = 1;
    const PASSES: u8 = 3;
    let mut tail = rest.to_vec();
    tail.push(1);
    while tail.len() % BLOCK != BLOCK - 10 {
        tail.push(0);
    }
    let bits = (words * 32) as u16;
    tail.push((bits as u8 & 3) << 6 | PASSES << 3 | VERSION);
    tail.push((bits >> 2) as u8);
    tail.extend((bytes as u64).wrapping_mul(8).to_le_bytes());
    tail
}

fn compress(state: &mut [u32; 8], block: &[u8]) {
    let mut words = [0; 32];
    for (word, bytes) in words.iter_mut().zip(block.as_chunks::<4>().0) {
        *word = u32::from_le_bytes(*bytes);
    }
    let before = *state;
    for (pass, (order, added)) in ORDER.iter().zip(&ADDED).enumerate() {
        for (step, (word, added)) in order.iter().zip(added).enumerate() {
            // Registers rotate with each step: the eighth becomes the first.
            let x: [u32; 8] = std::array::from_fn(|at| state[(at + 32 - step) % 8]);
            let mixed = mix(pass, &x).rotate_right(7);
            let sum = mixed.wrapping_add(x[7].rotate_right(11));
            state[(7 + 32 - step) % 8] =
                sum.wrapping_add(words[usize::from(*word)]).wrapping_add(*added);
        }
    }
    for (word, before) in state.iter_mut().zip(before) {
        *word = word.wrapping_add(before);
    }
}

/// The function of a pass, with the argument order of three-pass hashes.
fn mix(pass: usize, x: &[u32; 8]) -> u32 {
    let [x0, x1, x2, x3, x4, x5, x6, _] = *x;
    let (a6, a5, a4, a3, a2, a1, a0) = match pass {
        0 => (x1, x0, x3, x5, x6, x2, x4),
        1 => (x4, x2, x1, x0, x5, x3, x6),
        _ => (x6, x1, x2, x3, x4, x5, x0),
    };
    match pass {
        0 => a1 & a4 ^ a2 & a5 ^ a3 & a6 ^ a0 & a1 ^ a0,
        1 => {
            let threes = a1 & a2 & a3 ^ a2 & a4 & a5;
            threes ^ a1 & a2 ^ a1 & a4 ^ a2 & a6 ^ a3 & a5 ^ a4 & a5 ^ a0 & a2 ^ a0
        }
        _ => a1 & a2 & a3 ^ a1 & a4 ^ a2 & a5 ^ a3 & a6 ^ a0 & a3 ^ a0,
    }
}

/// Adds the bits of the other words to the first `words` of the state.
fn fold(state: &mut [u32; 8], words: usize) {
    /// Masks of the bits of D7, D6, ... for one word, and the right rotation of their sum.
    type Taken<'a> = (&'a [u32], u32);
    let rows: &[Taken<'_>] = match words {
        4 => &[
            (&[0xff, 0xff00_0000, 0x00ff_0000, 0xff00], 8),
            (&[0xff00, 0xff, 0xff00_0000, 0x00ff_0000], 16),
            (&[0x00ff_0000, 0xff00, 0xff, 0xff00_0000], 24),
            (&[0xff00_0000, 0x00ff_0000, 0xff00, 0xff], 0),
        ],
        5 => &[
            (&[0x3f, 0x7f << 25, 0x3f << 19], 19),
            (&[0x3f << 6, 0x3f, 0x7f << 25], 25),
            (&[0x7f << 12, 0x3f << 6, 0x3f], 0),
            (&[0x3f << 19, 0x7f << 12, 0x3f << 6], 6),
            (&[0x7f << 25, 0x3f << 19, 0x7f << 12], 12),
        ],
        6 => &[
            (&[0x1f, 0x3f << 26], 26),
            (&[0x1f << 5, 0x1f], 0),
            (&[0x3f << 10, 0x1f << 5], 5),
            (&[0x1f << 16, 0x3f << 10], 10),
            (&[0x1f << 21, 0x1f << 16], 16),
            (&[0x3f << 26, 0x1f << 21], 21),
        ],
        7 => &[
            (&[0x1f << 27], 27),
            (&[0x1f << 22], 22),
            (&[0x0f << 18], 18),
            (&[0x1f << 13], 13),
            (&[0x0f << 9], 9),
            (&[0x1f << 4], 4),
            (&[0x0f], 0),
        ],
        _ => &[],
    };
    for (at, (masks, turn)) in rows.iter().enumerate() {
        let from = state.iter().rev().zip(*masks);
        let taken = from.fold(0, |all, (word, mask)| all | word & mask);
        state[at] = state[at].wrapping_add(taken.rotate_right(*turn));
    }
}
