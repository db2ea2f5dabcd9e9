//! Names and values of header fields in settings. Fields of framing must never be among them.

use std::fmt;

use message::header::{self, Field, HeaderBlock, HeaderId};

use crate::forged_fields;

/// The reason why a field was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldError {
    /// The name is not a token (RFC 9110 5.1).
    Name,
    /// The value has a control byte, or white space around it (RFC 9110 5.5).
    Value,
    /// The field belongs to the connection or to the framing of the message.
    Reserved,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Name => "a field name has only letters, digits and !#$%&'*+-.^_`|~",
            Self::Value => {
                "a field value has no control characters (no line break) and no space around it"
            }
            Self::Reserved => "the field belongs to the connection or to the message's framing",
        })
    }
}

impl std::error::Error for FieldError {}

/// A field name that is permitted in settings: a token, at most 255 bytes long, for neither framing
/// nor one connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldName {
    id: HeaderId,
    name: Box<[u8]>,
}

impl FieldName {
    /// Parses a name; its spelling is kept.
    ///
    /// # Errors
    /// If `name` is not a token, or is Host or a framing or hop-by-hop field.
    pub fn parse(name: &str) -> Result<Self, FieldError> {
        let name = name.as_bytes();
        if !header::is_token(name) || name.len() > 255 {
            return Err(FieldError::Name);
        }
        let id = HeaderId::of(name);
        let framing = matches!(id, HeaderId::ContentLength | HeaderId::Host | HeaderId::Expect);
        if framing || id.is_hop_by_hop() {
            return Err(FieldError::Reserved);
        }
        Ok(Self { id, name: name.into() })
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.name
    }

    /// Returns true if `other` is this name, without regard to case.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.name.eq_ignore_ascii_case(&other.name)
    }

    /// Returns true if `other` is this name, without regard to case and to `_` and `-`, which some
    /// recipients do not distinguish.
    pub fn is_spelt(&self, other: &[u8]) -> bool {
        let plain = |b: &u8| if *b == b'_' { b'-' } else { b.to_ascii_lowercase() };
        self.name.len() == other.len() && self.name.iter().map(plain).eq(other.iter().map(plain))
    }

    /// Returns true if a field has this name, as [`FieldName::is_spelt`] compares names.
    pub fn names(&self, field: Field<'_>) -> bool {
        match (self.id, field.id) {
            (HeaderId::Other, _) | (_, HeaderId::Other) => self.is_spelt(field.name),
            (own, other) => own == other,
        }
    }

    /// Returns true if requests of clients lose such a field, because it speaks for a proxy. Fields
    /// that say where a client is, as CDNs write them, are none of these.
    pub fn is_for_proxies(&self) -> bool {
        let field = Field { id: self.id, name: &self.name, value: b"" };
        forged_fields::is_forged(field) && !forged_fields::is_place(&self.name)
    }

    /// Its values in `block`.
    pub fn values<'a>(&'a self, block: &'a HeaderBlock) -> impl Iterator<Item = &'a [u8]> {
        block
            .iter()
            .filter(|f| {
                f.id == self.id
                    && (f.id != HeaderId::Other || f.name.eq_ignore_ascii_case(&self.name))
            })
            .map(|f| f.value)
    }
}

impl fmt::Display for FieldName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.name))
    }
}

/// A valid field value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldValue(Box<[u8]>);

impl FieldValue {
    /// Parses a value.
    ///
    /// # Errors
    /// If it has a control byte other than a tab, or white space at either end.
    pub fn parse(value: &str) -> Result<Self, FieldError> {
        let value = value.as_bytes();
        if header::is_value(value) && value.trim_ascii().len() == value.len() {
            Ok(Self(value.into()))
        } else {
            Err(FieldError::Value)
        }
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for FieldValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_could_split_or_frame_a_message_are_refused() {
        for bad in ["", "X Y", "X:", "X\r\nY", "é"] {
            assert_eq!(FieldName::parse(bad), Err(FieldError::Name), "{bad:?}");
        }
        for framing in
            ["content-length", "Transfer-Encoding", "Connection", "HOST", "te", "Trailer"]
        {
            assert_eq!(FieldName::parse(framing), Err(FieldError::Reserved), "{framing}");
        }
        for bad in ["a\r\nSet-Cookie: x", "a\nb", "\0", " a", "a\t"] {
            assert_eq!(FieldValue::parse(bad), Err(FieldError::Value), "{bad:?}");
        }
        assert!(FieldValue::parse("").is_ok() && FieldValue::parse("a\tb").is_ok());
    }
}
