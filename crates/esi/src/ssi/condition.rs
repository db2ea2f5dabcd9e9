//! Condition of an SSI `if`: a variable, or its comparison with text or a regular expression. It
//! never takes more than linear time.

use super::text::SsiText;

/// Most bytes of a compiled expression. An expression with variables is compiled for each request.
const PATTERN_BYTES: usize = 128 << 10;

/// A condition.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SsiCondition {
    /// Holds if the text is not empty.
    Is(SsiText),
    Compare {
        left: SsiText,
        right: SsiText,
        is_equal: bool,
    },
    Match {
        left: SsiText,
        pattern: Pattern,
        is_match: bool,
    },
}

/// A regular expression.
#[derive(Clone, Debug)]
pub(crate) enum Pattern {
    Fixed(linear::Regex),
    /// An expression with variables.
    Open(SsiText),
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Fixed(own), Self::Fixed(other)) => own.as_str() == other.as_str(),
            (Self::Open(own), Self::Open(other)) => own == other,
            _ => false,
        }
    }
}

impl Pattern {
    fn read(text: &[u8]) -> Option<Self> {
        let text = SsiText::read(text)?;
        match text.literal() {
            Some(pattern) => Self::compiled(pattern).map(Self::Fixed),
            None => Some(Self::Open(text)),
        }
    }

    /// The compiled expression; `None` if `pattern` is malformed.
    pub(crate) fn compiled(pattern: &[u8]) -> Option<linear::Regex> {
        let pattern = std::str::from_utf8(pattern).ok()?;
        let options = linear::Options { program_bytes: PATTERN_BYTES, ..Default::default() };
        linear::Regex::new(pattern, options).ok()
    }

    fn memory(&self) -> usize {
        match self {
            Self::Fixed(pattern) => pattern.bytes(),
            Self::Open(text) => text.memory(),
        }
    }
}

impl SsiCondition {
    /// Parses a condition; `None` if it is malformed.
    pub(super) fn read(text: &[u8]) -> Option<Self> {
        let is_left = |byte: &u8| byte.is_ascii_alphanumeric() || b"_${}".contains(byte);
        let end = text.iter().position(|byte| !is_left(byte)).unwrap_or(text.len());
        let (left, rest) = text.split_at(end);
        let left = SsiText::read(left)?;
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
            return Some(Self::Compare { left, right: SsiText::read(right)?, is_equal });
        };
        let pattern = Pattern::read(pattern.strip_suffix(b"/")?)?;
        Some(Self::Match { left, pattern, is_match: is_equal })
    }

    pub(crate) fn memory(&self) -> usize {
        match self {
            Self::Is(text) => text.memory(),
            Self::Compare { left, right, .. } => left.memory() + right.memory(),
            Self::Match { left, pattern, .. } => left.memory() + pattern.memory(),
        }
    }
}
