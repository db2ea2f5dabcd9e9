//! Errors of resolving a page.

use std::fmt;

/// A limit that the page would exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Error {
    /// The page resolves to more nodes than [`crate::Limits::nodes`].
    Operations(usize),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operations(most) => write!(f, "the page resolves to more than {most} nodes"),
        }
    }
}

impl std::error::Error for Error {}
