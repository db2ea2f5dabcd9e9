//! Huffman code of strings (RFC 7541 5.2 and Appendix B).
//!
//! The code is canonical: symbols of one length have consecutive codes, in the order of the
//! symbols, after those of shorter lengths. So the lengths define it, and the tables are computed
//! from them at compile time.

/// Error for a malformed string: the end-of-string symbol within it, or invalid padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HuffmanError;

const EOS: usize = 256;
const LONGEST: usize = 30;

/// Bits of each symbol's code; the last is the end-of-string symbol's.
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
    28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5,
    5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6,
    6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22,
    23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22,
    21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20,
    22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19,
    21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22,
    22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
];

/// Codes by symbol; the symbols ordered by code; and for each length its first code, the index of
/// its first symbol in that order, and the number of its symbols.
struct Tables {
    codes: [u32; 257],
    sorted: [u16; 257],
    first: [u32; LONGEST + 1],
    starts: [u16; LONGEST + 1],
    counts: [u16; LONGEST + 1],
}

static TABLES: Tables = {
    let mut tables = Tables {
        codes: [0; 257],
        sorted: [0; 257],
        first: [0; LONGEST + 1],
        starts: [0; LONGEST + 1],
        counts: [0; LONGEST + 1],
    };
    let (mut code, mut at, mut length) = (0, 0, 1);
    while length <= LONGEST {
        tables.first[length] = code;
        tables.starts[length] = at;
        let mut symbol = 0;
        while symbol < LENGTHS.len() {
            if LENGTHS[symbol] as usize == length {
                tables.codes[symbol] = code;
                tables.sorted[at as usize] = symbol as u16;
                tables.counts[length] += 1;
                code += 1;
                at += 1;
            }
            symbol += 1;
        }
        code <<= 1;
        length += 1;
    }
    tables
};

/// Codes of at most this many bits are decoded in one step; normal fields have no others.
const SHORT: usize = 11;

/// For every value of the next [`SHORT`] bits: symbol and length of their first code, or length 0
/// for a longer code.
static BEGINS: [(u8, u8); 1 << SHORT] = {
    let mut begins = [(0, 0); 1 << SHORT];
    let mut symbol = 0;
    while symbol < EOS {
        let length = LENGTHS[symbol] as usize;
        if length <= SHORT {
            let spare = SHORT - length;
            let first = (TABLES.codes[symbol] as usize) << spare;
            let mut rest = 0;
            while rest < 1 << spare {
                begins[first + rest] = (symbol as u8, length as u8);
                rest += 1;
            }
        }
        symbol += 1;
    }
    begins
};

/// Decodes `coded` and appends the result to `out`.
pub(crate) fn decode(coded: &[u8], out: &mut Vec<u8>) -> Result<(), HuffmanError> {
    // Left-aligned unread bits, and their number.
    let (mut bits, mut held) = (0_u64, 0_usize);
    let mut rest = coded;
    loop {
        while held <= 56 {
            let Some((byte, after)) = rest.split_first() else { break };
            bits |= u64::from(*byte) << (56 - held);
            held += 8;
            rest = after;
        }
        if held == 0 {
            return Ok(());
        }
        let (symbol, length) = BEGINS[(bits >> (64 - SHORT)) as usize];
        let (symbol, length) = match usize::from(length) {
            0 => long(bits)?,
            length => (symbol, length),
        };
        if length > held {
            // The rest must be padding of less than a byte, with the bits of the end-of-string
            // symbol.
            let is_padding = held < 8 && bits >> (64 - held) == (1 << held) - 1;
            return if is_padding { Ok(()) } else { Err(HuffmanError) };
        }
        out.push(symbol);
        bits <<= length;
        held -= length;
    }
}

/// Symbol and length of the first code in `bits`, if it is a long one. Missing bits are 0.
fn long(bits: u64) -> Result<(u8, usize), HuffmanError> {
    for length in SHORT + 1..=LONGEST {
        let code = (bits >> (64 - length)) as u32;
        let above = code.wrapping_sub(TABLES.first[length]);
        if above < u32::from(TABLES.counts[length]) {
            let at = usize::from(TABLES.starts[length]) + above as usize;
            let symbol = u8::try_from(TABLES.sorted[at]).map_err(|_| HuffmanError)?;
            return Ok((symbol, length));
        }
    }
    Err(HuffmanError)
}

/// The length of the code of `plain` in bytes.
pub(crate) fn encoded_len(plain: &[u8]) -> usize {
    let bits: usize = plain.iter().map(|b| usize::from(LENGTHS[usize::from(*b)])).sum();
    bits.div_ceil(8)
}

/// Appends the code of `plain` to `out`.
pub(crate) fn encode(plain: &[u8], out: &mut Vec<u8>) {
    // Most text becomes shorter.
    out.reserve(plain.len());
    let (mut bits, mut held) = (0_u64, 0_usize);
    for symbol in plain {
        let symbol = usize::from(*symbol);
        // At most 31 bits are buffered, and no code has more than 30.
        let length = usize::from(LENGTHS[symbol]);
        bits = bits << length | u64::from(TABLES.codes[symbol]);
        held += length;
        if held >= 32 {
            held -= 32;
            out.extend_from_slice(&((bits >> held) as u32).to_be_bytes());
        }
    }
    while held >= 8 {
        held -= 8;
        out.push((bits >> held) as u8);
    }
    if held > 0 {
        let spare = 8 - held;
        out.push((bits << spare) as u8 | ((1 << spare) - 1));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decoded(coded: &[u8]) -> Result<Vec<u8>, HuffmanError> {
        let mut out = Vec::new();
        decode(coded, &mut out).map(|()| out)
    }

    fn encoded(plain: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        encode(plain, &mut out);
        assert_eq!(out.len(), encoded_len(plain));
        out
    }

    /// The strings of RFC 7541 C.4 and C.6.
    #[test]
    fn the_rfcs_examples() {
        let examples: [(&str, &[u8]); 6] = [
            (
                "www.example.com",
                &[0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff],
            ),
            ("no-cache", &[0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf]),
            ("custom-key", &[0x25, 0xa8, 0x49, 0xe9, 0x5b, 0xa9, 0x7d, 0x7f]),
            ("302", &[0x64, 0x02]),
            ("private", &[0xae, 0xc3, 0x77, 0x1a, 0x4b]),
            ("307", &[0x64, 0x0e, 0xff]),
        ];
        for (plain, coded) in examples {
            assert_eq!(encoded(plain.as_bytes()), coded, "{plain}");
            assert_eq!(decoded(coded).as_deref(), Ok(plain.as_bytes()), "{plain}");
        }
    }

    #[test]
    fn every_byte_comes_back() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decoded(&encoded(&all)), Ok(all));
    }

    #[test]
    fn what_is_no_padding_is_refused() {
        // Whole bytes of padding, padding that is not of ones, the end-of-string symbol, and
        // truncated codes.
        for coded in [
            &[0xff][..],
            &[0x64, 0x02, 0xff],
            &[0x00],
            &[0x64, 0x0e, 0xfe],
            &[0xff, 0xff, 0xff, 0xff],
            &[0xff, 0xff, 0xff, 0xfc],
            &[0xff, 0xc0],
        ] {
            assert_eq!(decoded(coded), Err(HuffmanError), "{coded:x?}");
        }
        assert_eq!(decoded(&[]), Ok(Vec::new()));
    }

    proptest! {
        #[test]
        fn strings_come_back(plain: Vec<u8>) {
            prop_assert_eq!(decoded(&encoded(&plain)), Ok(plain));
        }

        /// Every accepted input is the encoder's output for its result.
        #[test]
        fn there_is_one_code_for_a_string(coded: Vec<u8>) {
            if let Ok(plain) = decoded(&coded) {
                prop_assert_eq!(encoded(&plain), coded);
            }
        }
    }
}
