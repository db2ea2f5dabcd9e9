//! A broken rule.

/// One broken rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Problem {
    /// File, relative to the workspace's root.
    pub(super) file: String,
    /// Line, from 1.
    pub(super) line: usize,
    /// Words that say what is wrong.
    pub(super) what: String,
}
