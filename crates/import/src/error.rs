//! Everything that can keep a configuration from being read.

use std::fmt;

use crate::syntax::Place;

/// Reasons for which nothing is translated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// A file or folder could not be read.
    Read {
        /// Its name.
        file: String,
        /// The reason, as the system gives it.
        why: String,
    },
    /// The text breaks nginx's grammar.
    Syntax {
        /// Name of the file.
        file: String,
        /// Line and column of the fault.
        place: Place,
        /// Expectation that was not met.
        expected: &'static str,
    },
    /// An `include` leads nowhere, or back to a file that is being read.
    Include {
        /// Name of the file with the directive.
        file: String,
        /// Line and column of the directive.
        place: Place,
        /// The file that is included.
        path: String,
        /// The reason.
        why: &'static str,
    },
    /// The configuration of a program whose configurations are not translated.
    Foreign {
        /// Name of the file.
        file: String,
        /// The program.
        server: &'static str,
    },
    /// More of something than is read.
    Limit {
        /// Name of the file.
        file: String,
        /// Line and column where the limit is reached.
        place: Place,
        /// The limit.
        what: &'static str,
        /// Its value.
        most: usize,
    },
    /// The translation does not pass the check of `larder.toml`: a fault of the translation.
    Result(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read { file, why } => write!(f, "{file}: {why}"),
            Self::Syntax { file, place, expected } => write!(f, "{file}:{place}: {expected}"),
            Self::Include { file, place, path, why } => {
                write!(f, "{file}:{place}: include {path}: {why}")
            }
            Self::Limit { file, place, what, most } => {
                write!(f, "{file}:{place}: more than {most} {what}")
            }
            Self::Foreign { file, server } => {
                write!(f, "{file}: this is a configuration of {server}, which is not translated")
            }
            Self::Result(why) => write!(f, "the translation is not valid, which is a bug:\n{why}"),
        }
    }
}

impl std::error::Error for Error {}
