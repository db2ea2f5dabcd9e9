//! Value patterns for query parameters, as settings contain them.

use std::borrow::Cow;
use std::fmt;

use linear::Regex;
use message::percent;

use crate::pattern::{self, PatternError};

/// A pattern of query values: the whole value, `prefix*`, or `~ regex` (`~* regex` without regard
/// to case). Matched against the decoded value: percent escapes and `+` are decoded once, as
/// applications do, so that no spelling evades the pattern.
#[derive(Clone, Debug)]
pub struct ValuePattern {
    text: String,
    /// `None` for a literal text, whole or up to its star.
    regex: Option<Regex>,
}

impl ValuePattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// If its regular expression is invalid.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let regex = match text.as_bytes() {
            [b'~', b'*', ..] => Some(pattern::regex(text[2..].trim(), true)?),
            [b'~', ..] => Some(pattern::regex(text[1..].trim(), false)?),
            _ => None,
        };
        Ok(Self { text: text.to_owned(), regex })
    }

    /// Returns true if `value`, as written in the query, matches.
    pub fn matches(&self, value: &[u8]) -> bool {
        let value = decode(value);
        match (&self.regex, self.text.as_bytes()) {
            (Some(regex), _) => regex.is_match(&value),
            (None, [start @ .., b'*']) => value.starts_with(start),
            (None, whole) => *value == *whole,
        }
    }

    /// The pattern as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for ValuePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Decodes a `value` of a form (`application/x-www-form-urlencoded`); an invalid escape is
/// unchanged.
fn decode(value: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr2(b'%', b'+', value).is_none() {
        return Cow::Borrowed(value);
    }
    // Neither `+` nor a blank is part of an escape.
    let spaced: Vec<u8> = value.iter().map(|b| if *b == b'+' { b' ' } else { *b }).collect();
    Cow::Owned(percent::decode(&spaced))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_match_as_an_application_reads_them() {
        for (pattern, yes, no) in [
            ("edit", &["edit", "%65dit"][..], &["edits", "Edit", "", "edit%"][..]),
            ("Special:*", &["Special:Login", "Special%3aX"], &["special:Login", "Talk:Special:"]),
            ("~* ^[ _]*special:", &["+_Special:X", "%20SPECIAL%3A"], &["Specials", "+x+special:"]),
            ("~ ^a.c$", &["a%0ac", "a%c"], &["a%z", "ABC"]),
            ("*", &["", "anything"], &[]),
        ] {
            let compiled = ValuePattern::parse(pattern).expect("a pattern");
            let matches = |value: &&str| compiled.matches(value.as_bytes());
            assert_eq!(yes.iter().find(|value| !matches(value)), None, "{pattern}");
            assert_eq!(no.iter().find(|value| matches(value)), None, "{pattern}");
        }
        assert!(matches!(ValuePattern::parse("~ ("), Err(PatternError::Regex(_))));
    }

    proptest! {
        #[test]
        fn an_escaped_value_is_the_value(value in prop::collection::vec(any::<u8>(), 0..20)) {
            let escaped: String = value.iter().map(|b| format!("%{b:02X}")).collect();
            prop_assert_eq!(&*decode(escaped.as_bytes()), &value[..]);
        }
    }
}
