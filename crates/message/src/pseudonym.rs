//! The name of this proxy in Via and Cache-Status, and the beginnings of the fields that say it:
//! every hit writes both.

use crate::header::HeaderId;
use crate::sf::write_token_or_string;

/// The name of a proxy (RFC 9110 7.6.3), prepared for the fields that hold it.
#[derive(Debug)]
pub struct Pseudonym {
    name: Box<str>,
    /// The name as Cache-Status has it (RFC 9211 2).
    member: Box<[u8]>,
    via: [FieldStart; 2],
    hit: FieldStart,
}

/// A field's line up to some place in its value, as HTTP/1 writes it.
#[derive(Debug)]
pub struct FieldStart {
    id: HeaderId,
    /// It ends as a line does.
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

    /// The name as Cache-Status has it: a token, or a string.
    pub fn member(&self) -> &[u8] {
        &self.member
    }

    /// Via of a response that came in HTTP/1.0, or in HTTP/1.1.
    pub fn via(&self, http10: bool) -> &FieldStart {
        &self.via[usize::from(!http10)]
    }

    /// Cache-Status of a hit, to which what is known of that is added.
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

    /// The line's beginning, from the name on.
    pub fn line(&self) -> &[u8] {
        &self.line[..self.line.len() - 2]
    }

    /// The line of a field that has no more in it, with its end.
    pub fn whole_line(&self) -> &[u8] {
        &self.line
    }

    /// The value's beginning.
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
