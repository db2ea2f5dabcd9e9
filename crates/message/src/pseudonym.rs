//! Pseudonym of this proxy in Via and Cache-Status, and prepared starts of these fields, which
//! every hit writes.

use crate::header::HeaderId;
use crate::sf::write_token_or_string;

/// The name of a proxy (RFC 9110 7.6.3), with the fields prepared for it.
#[derive(Debug)]
pub struct Pseudonym {
    name: Box<str>,
    /// The name in Cache-Status (RFC 9211 2).
    member: Box<[u8]>,
    via: [FieldStart; 2],
    hit: FieldStart,
}

/// The start of a field's line in HTTP/1, up to a place within its value.
#[derive(Debug)]
pub struct FieldStart {
    id: HeaderId,
    /// The start, with CRLF appended.
    line: Box<[u8]>,
    value_at: usize,
}

impl Pseudonym {
    /// The proxy called `name`.
    pub fn new(name: &str) -> Self {
        let mut member = Vec::new();
        write_token_or_string(name, &mut member);
        let via = |version| FieldStart::new(HeaderId::Via, &[version, name.as_bytes()]);
        let hit = FieldStart::new(HeaderId::CacheStatus, &[&member, b"; hit"]);
        Self { via: [via(b"1.0 "), via(b"1.1 ")], hit, member: member.into(), name: name.into() }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.name
    }

    /// The name in Cache-Status: a token, or a string.
    pub fn member(&self) -> &[u8] {
        &self.member
    }

    /// The Via of a response received over HTTP/1.0 or HTTP/1.1.
    pub fn via(&self, http10: bool) -> &FieldStart {
        &self.via[usize::from(!http10)]
    }

    /// The Cache-Status of a hit, to which details are appended.
    pub fn hit(&self) -> &FieldStart {
        &self.hit
    }
}

impl FieldStart {
    fn new(id: HeaderId, value: &[&[u8]]) -> Self {
        let begun = [id.name().as_bytes(), b": "].concat();
        let value_at = begun.len();
        let line = [begun, value.concat(), b"\r\n".to_vec()].concat().into();
        Self { id, line, value_at }
    }

    /// The field's name.
    pub fn id(&self) -> HeaderId {
        self.id
    }

    /// The start of the line, from the name on.
    pub fn line(&self) -> &[u8] {
        &self.line[..self.line.len() - 2]
    }

    /// The complete line of a field without further content.
    pub fn whole_line(&self) -> &[u8] {
        &self.line
    }

    /// The start of the value.
    pub fn value(&self) -> &[u8] {
        &self.line()[self.value_at..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_no_token_is_a_string_in_cache_status_alone() {
        let name = Pseudonym::new("edge 1");
        assert_eq!(name.hit().line(), b"Cache-Status: \"edge 1\"; hit");
        assert_eq!(name.via(true).value(), b"1.0 edge 1");
        assert_eq!(name.via(false).whole_line(), b"Via: 1.1 edge 1\r\n");
    }
}
