//! Fields of a message: a number, a length of 32 bits, and bytes.

/// A message under construction.
#[derive(Debug, Default)]
pub(super) struct FieldWriter(Vec<u8>);

impl FieldWriter {
    /// A message of this kind.
    pub(super) fn new(kind: u8) -> Self {
        Self(vec![kind])
    }

    /// Appends a field.
    pub(super) fn bytes(mut self, number: u8, value: &[u8]) -> Self {
        self.0.push(number);
        self.0.extend_from_slice(&(value.len() as u32).to_le_bytes());
        self.0.extend_from_slice(value);
        self
    }

    /// Appends a field with text.
    pub(super) fn text(self, number: u8, value: &str) -> Self {
        self.bytes(number, value.as_bytes())
    }

    /// Appends a field with a number.
    pub(super) fn number(self, number: u8, value: u64) -> Self {
        self.bytes(number, &value.to_le_bytes())
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// The fields of a message.
#[derive(Debug, Default)]
pub(super) struct Fields<'a>(Vec<(u8, &'a [u8])>);

impl<'a> Fields<'a> {
    /// The fields in `bytes`; `None` if they are cut.
    pub(super) fn read(mut bytes: &'a [u8]) -> Option<Self> {
        let mut all = Vec::new();
        while let Some((number, rest)) = bytes.split_first() {
            let (length, rest) = rest.split_first_chunk::<4>()?;
            let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
            let (value, rest) = rest.split_at_checked(length)?;
            all.push((*number, value));
            bytes = rest;
        }
        Some(Self(all))
    }

    /// Every value of a field.
    pub(super) fn all(&self, number: u8) -> impl Iterator<Item = &'a [u8]> {
        self.0.iter().filter(move |(own, _)| *own == number).map(|(_, value)| *value)
    }

    /// The value of a field; empty without it.
    pub(super) fn bytes(&self, number: u8) -> &'a [u8] {
        self.all(number).next().unwrap_or_default()
    }

    /// The text of a field; empty without it.
    pub(super) fn text(&self, number: u8) -> String {
        String::from_utf8_lossy(self.bytes(number)).into_owned()
    }

    /// The number in a field; 0 without it.
    pub(super) fn number(&self, number: u8) -> u64 {
        self.bytes(number).first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }
}
