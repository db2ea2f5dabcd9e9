//! A request as a list of fields, valid unless a test changes it.

use super::fields::{FieldBlock, FieldList};
use super::frames;

/// A request's fields; pseudo-fields come first unless a test changes that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Fields of the block, in order.
    pub fields: FieldList,
}

impl Request {
    /// `method` of `path` on host `larder.test`, scheme `http`.
    pub fn new(method: &str, path: &str) -> Self {
        let empty = Self { fields: FieldList::new() };
        empty
            .field(":method", method)
            .field(":scheme", "http")
            .field(":authority", "larder.test")
            .field(":path", path)
    }

    /// A GET.
    pub fn get(path: &str) -> Self {
        Self::new("GET", path)
    }

    /// A POST.
    pub fn post(path: &str) -> Self {
        Self::new("POST", path)
    }

    /// A request of exactly these fields.
    pub fn of(fields: &[(&[u8], &[u8])]) -> Self {
        let fields = fields.iter().map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
        Self { fields }
    }

    /// Adds a field at the end.
    #[must_use]
    pub fn field(mut self, name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Self {
        self.fields.push((name.as_ref().to_vec(), value.as_ref().to_vec()));
        self
    }

    /// Replaces the value of the first field called `name`.
    #[must_use]
    pub fn set(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        for (own, held) in &mut self.fields {
            if own == name.as_bytes() {
                *held = value.as_ref().to_vec();
                return self;
            }
        }
        self.field(name, value)
    }

    /// Removes all fields called `name`.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.fields.retain(|(own, _)| own != name.as_bytes());
        self
    }

    /// The value of the first field called `name`.
    pub fn value(&self, name: &str) -> Option<&[u8]> {
        let found = self.fields.iter().find(|(own, _)| own == name.as_bytes());
        found.map(|(_, value)| value.as_slice())
    }

    /// Encodes the field block.
    pub fn block(&self) -> FieldBlock {
        FieldBlock::of(&self.fields)
    }

    /// Its HEADERS frame on `stream`, with CONTINUATION frames if needed.
    pub fn bytes(&self, stream: u32, end: bool) -> Vec<u8> {
        frames::header_frames(stream, self.block().bytes(), frames::PAYLOAD_BYTES, end)
    }
}
