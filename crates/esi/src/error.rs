//! Why a page cannot be resolved.

use std::fmt;

/// A bound that resolving a page would go beyond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Error {
    /// The page comes to more operations than [`crate::Limits::nodes`].
    Operations(usize),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operations(most) => write!(f, "the page comes to more than {most} operations"),
        }
    }
}

impl std::error::Error for Error {}
