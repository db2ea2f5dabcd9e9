//! The document: a man page or the completions for a shell, and what all pages share.

/// The book that all pages belong to, in the middle of their first line.
pub(crate) const BOOK: &str = "Larder";

/// One file: a page or the completions for a shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// The path below the folder, such as `man1/larder-serve.1`.
    pub path: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// The last line of all pages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edition<'a> {
    pub(crate) date: &'a str,
    /// The program and its version.
    pub(crate) source: &'a str,
}
