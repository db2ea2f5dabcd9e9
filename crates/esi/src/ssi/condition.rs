//! Conditions of nginx: a variable, or a comparison with text or with a regular expression.

use super::text::Text;

/// Most bytes that a compiled expression may take.
const PATTERN_BYTES: usize = 1 << 20;

/// A condition.
#[derive(Clone, Debug)]
pub(crate) enum Condition {
    /// Some text is not empty.
    Is(Text),
    Compare {
        left: Text,
        right: Text,
        is_equal: bool,
    },
    Match {
        left: Text,
        pattern: linear::Regex,
        is_match: bool,
    },
}

impl PartialEq for Condition {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Is(own), Self::Is(other)) => own == other,
            (
                Self::Compare { left, right, is_equal },
                Self::Compare { left: l, right: r, is_equal: e },
            ) => (left, right, is_equal) == (l, r, e),
            (
                Self::Match { left, pattern, is_match },
                Self::Match { left: l, pattern: p, is_match: m },
            ) => (left, pattern.as_str(), is_match) == (l, p.as_str(), m),
            _ => false,
        }
    }
}

impl Condition {
    /// Reads a condition; `None` if it is none.
    pub(super) fn read(text: &[u8]) -> Option<Self> {
        let is_left = |byte: &u8| byte.is_ascii_alphanumeric() || b"_${}".contains(byte);
        let end = text.iter().position(|byte| !is_left(byte)).unwrap_or(text.len());
        let (left, rest) = text.split_at(end);
        let left = Text::read(left)?;
        if rest.is_empty() {
            return Some(Self::Is(left));
        }
        if end == 0 {
            return None;
        }
        let rest = rest.trim_ascii_start();
        let (is_equal, rest) = match rest.strip_prefix(b"!=") {
            Some(rest) => (false, rest),
            None => (true, rest.strip_prefix(b"=")?),
        };
        let right = rest.trim_ascii_start();
        let Some(pattern) = right.strip_prefix(b"/") else {
            return Some(Self::Compare { left, right: Text::read(right)?, is_equal });
        };
        let pattern = std::str::from_utf8(pattern.strip_suffix(b"/")?).ok()?;
        let options = linear::Options { program_bytes: PATTERN_BYTES, ..Default::default() };
        let pattern = linear::Regex::new(pattern, options).ok()?;
        Some(Self::Match { left, pattern, is_match: is_equal })
    }

    pub(crate) fn memory(&self) -> usize {
        match self {
            Self::Is(text) => text.memory(),
            Self::Compare { left, right, .. } => left.memory() + right.memory(),
            Self::Match { left, pattern, .. } => left.memory() + pattern.bytes(),
        }
    }
}
