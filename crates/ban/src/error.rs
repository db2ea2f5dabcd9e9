//! Errors of reading a ban expression, with the byte offset of the fault. They never quote stored
//! responses, only the expression.

use std::fmt;

/// Error of an expression that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Byte offset in the text, from 0.
    pub at: usize,
    /// Kind of error.
    pub kind: ErrorKind,
}

/// Kind of error in an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The expression has no condition.
    Empty,
    /// Unknown field.
    Field(String),
    /// A request field that is not stored with responses.
    RequestField(String),
    /// An operator is missing, or is not allowed for this field.
    Operator {
        /// The text in its place; empty at the end of the expression.
        found: String,
        /// The operators that are allowed there.
        expected: &'static str,
    },
    /// The argument is missing or empty.
    Argument,
    /// The argument of a duration field is no duration.
    Duration(String),
    /// Two conditions are joined by something other than `&&`.
    And(String),
    /// The regular expression is malformed or too large.
    Regex(String),
    /// A quote is not closed, or text follows the closing quote without a blank.
    Quote,
    /// Unknown escape sequence.
    Escape,
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("expected a condition: a field, an operator, an argument"),
            Self::Field(name) => write!(
                f,
                "no field `{name}`: there are req.url, req.http.host, obj.status, obj.http.NAME, \
                 obj.age, obj.ttl, obj.grace and obj.keep"
            ),
            Self::RequestField(name) => write!(
                f,
                "`{name}` is not known of stored responses: of requests there are req.url and \
                 req.http.host, those that a response was stored under"
            ),
            Self::Operator { found, expected } if found.is_empty() => {
                write!(f, "expected {expected}")
            }
            Self::Operator { found, expected } => write!(f, "expected {expected}, not `{found}`"),
            Self::Argument => f.write_str("expected an argument"),
            Self::Duration(text) => {
                write!(f, "expected a duration such as `1.5h` (ms, s, m, h, d, w, y), not `{text}`")
            }
            Self::And(found) => write!(f, "expected `&&`, not `{found}`"),
            Self::Regex(why) => write!(f, "in the regular expression: {why}"),
            Self::Quote => f.write_str("a quoted argument ends with `\"` and a blank"),
            Self::Escape => {
                f.write_str("after a backslash there is \\, \", n, r, t, xHH or three octal digits")
            }
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: {}", self.at + 1, self.kind)
    }
}

impl std::error::Error for Error {}
