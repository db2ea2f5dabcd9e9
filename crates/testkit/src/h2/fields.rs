//! Field blocks written by hand (RFC 7541 6): literals without Huffman coding, and other
//! representations as tests need them. Nothing is checked: names and values are any bytes.

/// Fields in order, pseudo-fields among them: any bytes.
pub type FieldList = Vec<(Vec<u8>, Vec<u8>)>;

/// A field block under construction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldBlock(Vec<u8>);

impl FieldBlock {
    /// An empty block.
    pub fn new() -> Self {
        Self::default()
    }

    /// Encodes `fields` as literals without indexing.
    pub fn of<N: AsRef<[u8]>, V: AsRef<[u8]>>(fields: &[(N, V)]) -> Self {
        fields.iter().fold(Self::new(), |block, (name, value)| block.literal(name, value))
    }

    /// A literal without indexing (RFC 7541 6.2.2).
    #[must_use]
    pub fn literal(self, name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Self {
        self.integer(0x00, 4, 0).string(name.as_ref()).string(value.as_ref())
    }

    /// A literal with incremental indexing (RFC 7541 6.2.1); its index is then 62.
    #[must_use]
    pub fn remembered(self, name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Self {
        self.integer(0x40, 6, 0).string(name.as_ref()).string(value.as_ref())
    }

    /// A reference to a table's entry (RFC 7541 6.1).
    #[must_use]
    pub fn indexed(self, index: usize) -> Self {
        self.integer(0x80, 7, index)
    }

    /// A literal value with an indexed name, with incremental indexing.
    #[must_use]
    pub fn remembered_under(self, index: usize, value: impl AsRef<[u8]>) -> Self {
        self.integer(0x40, 6, index).string(value.as_ref())
    }

    /// A change of the table's size (RFC 7541 6.3).
    #[must_use]
    pub fn table_size(self, bytes: usize) -> Self {
        self.integer(0x20, 5, bytes)
    }

    /// Appends any bytes.
    #[must_use]
    pub fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// The bytes so far.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// An integer (RFC 7541 5.1).
    fn integer(mut self, pattern: u8, bits: u32, number: usize) -> Self {
        let most = (1_usize << bits) - 1;
        if number < most {
            self.0.push(pattern | number as u8);
            return self;
        }
        self.0.push(pattern | most as u8);
        let mut rest = number - most;
        while rest >= 0x80 {
            self.0.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.0.push(rest as u8);
        self
    }

    /// A string (RFC 7541 5.2) without Huffman coding.
    fn string(self, bytes: &[u8]) -> Self {
        self.integer(0x00, 7, bytes.len()).raw(bytes)
    }
}

impl From<FieldBlock> for Vec<u8> {
    fn from(block: FieldBlock) -> Self {
        block.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_rfc() {
        // RFC 7541 C.1.1 to C.1.3, with table sizes and indices.
        assert_eq!(FieldBlock::new().table_size(10).bytes(), [0x2a]);
        assert_eq!(FieldBlock::new().table_size(1337).bytes(), [0x3f, 0x9a, 0x0a]);
        // C.2.1, C.2.4
        let block = FieldBlock::new().remembered("custom-key", "custom-header");
        assert_eq!(block.bytes(), b"\x40\x0acustom-key\x0dcustom-header");
        assert_eq!(FieldBlock::new().indexed(2).bytes(), [0x82]);
        // C.2.2 with a literal name.
        let block = FieldBlock::new().literal(":path", "/sample/path");
        assert_eq!(block.bytes(), b"\x00\x05:path\x0c/sample/path");
    }

    #[test]
    fn what_is_written_a_decoder_from_elsewhere_reads() {
        let long = "x".repeat(5_000);
        let block = FieldBlock::new()
            .indexed(2)
            .literal("a", &long)
            .remembered("b", "\0\r\n")
            .remembered_under(62, "again")
            .indexed(63);
        let mut decoder = loona_hpack::Decoder::new();
        let read = decoder.decode(block.bytes()).expect("a block");
        let pair = |name: &str, value: &str| (name.as_bytes().to_vec(), value.as_bytes().to_vec());
        let wanted = [
            pair(":method", "GET"),
            pair("a", &long),
            pair("b", "\0\r\n"),
            pair("b", "again"),
            pair("b", "\0\r\n"),
        ];
        assert_eq!(read, wanted);
    }
}
