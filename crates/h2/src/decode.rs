//! Decoder of field blocks (RFC 7541 3 and 6).

use crate::huffman;
use crate::table::{DynamicTable, Entry};
use message::HeaderId;

/// The reason why a block is malformed. The tables of both ends differ afterwards, so the
/// connection must end (RFC 9113 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HpackError {
    /// The block ends within a representation.
    Truncated,
    /// An integer that is too large.
    Integer,
    /// An index that is in no table.
    Index,
    /// A malformed Huffman string.
    Huffman,
    /// A table size above the limit, or not at the start of a block.
    TableSize,
    /// The receiver of the fields has stopped.
    Enough,
}

/// Decodes the blocks of one connection, in their order.
#[derive(Debug)]
pub struct Decoder {
    table: DynamicTable,
    /// The largest size that the peer may set.
    allowed: usize,
    name: Vec<u8>,
    value: Vec<u8>,
}

impl Decoder {
    /// A decoder whose table may have `allowed` bytes, the value of this end's
    /// SETTINGS_HEADER_TABLE_SIZE.
    pub fn new(allowed: usize) -> Self {
        let (name, value) = (Vec::new(), Vec::new());
        Self { table: DynamicTable::new(allowed), allowed, name, value }
    }

    /// Decodes a whole block and passes each field to `field`: interned name, name, value. It
    /// returns false to stop.
    ///
    /// # Errors
    /// See [`HpackError`].
    pub fn block(
        &mut self,
        block: &[u8],
        mut field: impl FnMut(HeaderId, &[u8], &[u8]) -> bool,
    ) -> Result<(), HpackError> {
        let mut rest = block;
        let mut begun = false;
        while let Some(first) = rest.first() {
            let first = *first;
            if first & 0x80 != 0 {
                let index = integer(&mut rest, 7)?;
                let Entry { id, name, value } = self.table.get(index).ok_or(HpackError::Index)?;
                if !field(id, name, value) {
                    return Err(HpackError::Enough);
                }
            } else if first & 0xe0 == 0x20 {
                let size = integer(&mut rest, 5)?;
                if begun || size > self.allowed {
                    return Err(HpackError::TableSize);
                }
                self.table.resize(size);
                continue;
            } else {
                let indexed = first & 0x40 != 0;
                let index = integer(&mut rest, if indexed { 6 } else { 4 })?;
                self.literal(&mut rest, index, indexed, &mut field)?;
            }
            begun = true;
        }
        // The memory of one long value is not kept for the connection's life.
        for held in [&mut self.name, &mut self.value] {
            held.clear();
            held.shrink_to(KEPT);
        }
        Ok(())
    }

    fn literal(
        &mut self,
        rest: &mut &[u8],
        index: usize,
        indexed: bool,
        field: &mut impl FnMut(HeaderId, &[u8], &[u8]) -> bool,
    ) -> Result<(), HpackError> {
        let Self { table, name: named, value: spelt, .. } = self;
        let (id, name) = if index == 0 {
            let name = string(rest, named)?;
            (HeaderId::of(name), name)
        } else {
            let entry = table.get(index).ok_or(HpackError::Index)?;
            // A copy: inserting may evict the entry with this name.
            named.clear();
            named.extend_from_slice(entry.name);
            (entry.id, &named[..])
        };
        let value = string(rest, spelt)?;
        if !field(id, name, value) {
            return Err(HpackError::Enough);
        }
        if indexed {
            table.insert(Entry { id, name, value });
        }
        Ok(())
    }
}

/// Capacity that is kept for decoded strings from block to block.
const KEPT: usize = 4 << 10;

/// An integer whose prefix is the low `bits` of the first byte (RFC 7541 5.1).
fn integer(rest: &mut &[u8], bits: u32) -> Result<usize, HpackError> {
    let (first, mut after) = rest.split_first().ok_or(HpackError::Truncated)?;
    let most = (1 << bits) - 1;
    let mut number = usize::from(*first) & most;
    if number == most {
        let mut shift = 0;
        loop {
            let (byte, behind) = after.split_first().ok_or(HpackError::Truncated)?;
            // Four more bytes exceed the size of any block.
            if shift > 21 {
                return Err(HpackError::Integer);
            }
            number += usize::from(byte & 0x7f) << shift;
            shift += 7;
            after = behind;
            if byte & 0x80 == 0 {
                break;
            }
        }
    }
    *rest = after;
    Ok(number)
}

/// A string (RFC 7541 5.2): a slice of the block, or decoded into `decoded`.
fn string<'a: 'c, 'b: 'c, 'c>(
    rest: &mut &'a [u8],
    decoded: &'b mut Vec<u8>,
) -> Result<&'c [u8], HpackError> {
    let coded = rest.first().is_some_and(|first| first & 0x80 != 0);
    let length = integer(rest, 7)?;
    let (string, after) = rest.split_at_checked(length).ok_or(HpackError::Truncated)?;
    *rest = after;
    if !coded {
        return Ok(string);
    }
    decoded.clear();
    huffman::decode(string, decoded).map_err(|_| HpackError::Huffman)?;
    Ok(decoded)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
        let byte = |pair: &[u8]| {
            u8::from_str_radix(std::str::from_utf8(pair).expect("ASCII"), 16).expect("hex")
        };
        digits.chunks(2).map(byte).collect()
    }

    fn read(decoder: &mut Decoder, block: &[u8]) -> Result<Vec<String>, HpackError> {
        let mut fields = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        decoder.block(block, |id, name, value| {
            assert_eq!(id, HeaderId::of(name));
            fields.push(format!("{}: {}", text(name), text(value)));
            true
        })?;
        Ok(fields)
    }

    /// RFC 7541 C.3 and C.4: three requests on one connection, without and with Huffman coding.
    #[test]
    fn the_rfcs_requests() {
        let plain = [
            "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
            "8286 84be 5808 6e6f 2d63 6163 6865",
            "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
        ];
        let coded = [
            "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
            "8286 84be 5886 a8eb 1064 9cbf",
            "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
        ];
        for blocks in [plain, coded] {
            let mut decoder = Decoder::new(4096);
            let mut next = |block| read(&mut decoder, &hex(block)).expect("a block");
            let authority = ":authority: www.example.com";
            assert_eq!(next(blocks[0]), [":method: GET", ":scheme: http", ":path: /", authority]);
            let second = [":method: GET", ":scheme: http", ":path: /", authority];
            assert_eq!(next(blocks[1])[..4], second);
            assert_eq!(
                next(blocks[2]),
                [
                    ":method: GET",
                    ":scheme: https",
                    ":path: /index.html",
                    authority,
                    "custom-key: custom-value"
                ]
            );
        }
    }

    /// RFC 7541 C.6: responses, with a table so small that entries are evicted.
    #[test]
    fn the_rfcs_responses() {
        let mut decoder = Decoder::new(256);
        let mut next = |block| read(&mut decoder, &hex(block)).expect("a block");
        let first = next(
            "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b
             ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
        );
        let (date, location) =
            ("date: Mon, 21 Oct 2013 20:13:21 GMT", "location: https://www.example.com");
        assert_eq!(first, [":status: 302", "cache-control: private", date, location]);
        let second = next("4883 640e ffc1 c0bf");
        assert_eq!(second, [":status: 307", "cache-control: private", date, location]);
        let third = next(
            "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad
             94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160
             65c0 03ed 4ee5 b106 3d50 07",
        );
        assert_eq!(
            third,
            [
                ":status: 200",
                "cache-control: private",
                "date: Mon, 21 Oct 2013 20:13:22 GMT",
                location,
                "content-encoding: gzip",
                "set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
            ]
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        let large = format!("3f{}", "ff".repeat(5));
        for (block, error) in [
            ("80", HpackError::Index),
            ("be", HpackError::Index),
            ("7f 00 00", HpackError::Index),
            ("41", HpackError::Truncated),
            ("41 03 61", HpackError::Truncated),
            ("40 81", HpackError::Truncated),
            ("ff", HpackError::Truncated),
            ("ff 80", HpackError::Truncated),
            ("ff ff ff ff ff 7f", HpackError::Integer),
            (&*large, HpackError::Integer),
            ("3f e2 1f", HpackError::TableSize),
            ("82 20", HpackError::TableSize),
            ("00 81 ff 00", HpackError::Huffman),
        ] {
            assert_eq!(read(&mut Decoder::new(4096), &hex(block)), Err(error), "{block}");
        }
    }

    #[test]
    fn sizes_change_at_the_beginning_only_but_twice_if_need_be() {
        let mut decoder = Decoder::new(4096);
        assert_eq!(read(&mut decoder, &hex("4001 6101 62")).map(|f| f.len()), Ok(1));
        // Emptied and enlarged again (RFC 7541 4.2).
        assert_eq!(read(&mut decoder, &hex("20 3f e1 1f 82")).map(|f| f.len()), Ok(1));
        assert_eq!(read(&mut decoder, &hex("be")), Err(HpackError::Index));
    }

    proptest! {
        #[test]
        fn no_block_makes_it_panic(blocks: Vec<Vec<u8>>) {
            let mut decoder = Decoder::new(4096);
            for block in blocks {
                let mut told = 0;
                // The size of one field is bounded by the table and the block.
                let read = decoder.block(&block, |_, name, value| {
                    told += name.len() + value.len();
                    true
                });
                prop_assert!(read.is_err() || told <= block.len() * 4096);
            }
        }

        #[test]
        fn integers_come_back(number in 0..0x0fff_ffff_usize, bits in 4..8_u32) {
            let mut out = Vec::new();
            crate::encode::integer(number, bits, 0, &mut out);
            prop_assert_eq!(integer(&mut &out[..], bits), Ok(number));
        }
    }
}
