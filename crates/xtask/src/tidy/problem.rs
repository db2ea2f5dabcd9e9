//! A problem: a broken rule with its place.

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Problem {
    /// The file, relative to the workspace's root.
    pub(super) file: String,
    /// The line, from 1.
    pub(super) line: usize,
    /// The message.
    pub(super) what: String,
}
