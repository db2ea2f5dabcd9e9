//! Error of a log format: the mistake, its place, and a suggestion.

use std::fmt;
use std::ops::Range;

/// A mistake in a format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError {
    /// The unknown part of the text, in bytes.
    pub span: Range<usize>,
    /// The message.
    pub message: String,
    /// A suggestion: the closest name, or all names.
    pub help: Option<String>,
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.help {
            Some(help) => write!(f, "; {help}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for PatternError {}
