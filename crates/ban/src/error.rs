//! Faults of an expression, and where they are.

use std::fmt;

/// An expression that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The byte of the text at which it shows.
    pub at: usize,
    /// The kind of fault.
    pub kind: ErrorKind,
}

/// A fault of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// There is no condition.
    Empty,
    /// No such field.
    Field(String),
    /// A field of requests that stored responses know nothing of.
    RequestField(String),
    /// An operator, or one that this field can be compared by, is missing.
    Operator {
        /// The text that stands there; empty at the end.
        found: String,
        /// The operators that may stand there.
        expected: &'static str,
    },
    /// The argument is missing or empty.
    Argument,
    /// No duration.
    Duration(String),
    /// Something other than `&&` between two conditions.
    And(String),
    /// A regular expression that is malformed or too large.
    Regex(String),
    /// A quoted argument without its end, or one that does not end with its quote.
    Quote,
    /// A backslash before something that it does not go with.
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
