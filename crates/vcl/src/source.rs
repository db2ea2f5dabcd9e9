//! Source files: where each byte of a program comes from.

use std::net::IpAddr;
use std::sync::Arc;

/// A place in the sources: bytes `start..end` of file number `file` in [`Sources`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// Number of the file.
    pub file: u32,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// From the beginning of `self` to the end of `other`; `self` when that is in another file.
    #[must_use]
    pub fn to(self, other: Self) -> Self {
        let end = if other.file == self.file { other.end } else { self.end };
        Self { end: end.max(self.end), ..self }
    }
}

/// A file that has been read.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// Its name, as errors tell it.
    pub name: Arc<str>,
    /// Its bytes. VCL is bytes; comments and strings may hold any encoding.
    pub text: Arc<[u8]>,
    /// Where it was included; none for the first file and the builtin.
    pub included_at: Option<Span>,
}

/// All files of a program. File 0 is the one that was asked for; the builtin VCL comes last.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    files: Vec<SourceFile>,
}

impl Sources {
    /// Adds a file and says its number.
    pub fn add(&mut self, file: SourceFile) -> u32 {
        self.files.push(file);
        (self.files.len() - 1) as u32
    }

    /// File number `file`.
    pub fn file(&self, file: u32) -> &SourceFile {
        &self.files[file as usize]
    }

    /// All of them.
    pub fn files(&self) -> &[SourceFile] {
        &self.files
    }

    /// Line and column of the first byte of `span`, both from 1; columns count bytes.
    pub fn position(&self, span: Span) -> (u32, u32) {
        let text = &self.file(span.file).text[..span.start as usize];
        let line = text.iter().filter(|b| **b == b'\n').count() as u32 + 1;
        let column = text.iter().rev().take_while(|b| **b != b'\n').count() as u32 + 1;
        (line, column)
    }
}

/// How included files are got. The crate itself reads none.
pub trait Loader {
    /// The file that `include "name"` in `from` means: absolute, `./` relative to `from`, or below
    /// the directories of `vcl_path`. Its full name and its bytes.
    ///
    /// # Errors
    /// Why it cannot be had, in words.
    fn load(&self, name: &str, from: &str) -> Result<(String, Vec<u8>), String>;

    /// The names that `include +glob "pattern"` in `from` means, sorted.
    ///
    /// # Errors
    /// Why the pattern is wrong, in words.
    fn glob(&self, pattern: &str, from: &str) -> Result<Vec<String>, String>;

    /// The addresses of a host that an ACL names, once for good: access does not change behind the
    /// operator's back.
    ///
    /// # Errors
    /// Why it has none, in words.
    fn resolve(&self, host: &str) -> Result<Vec<IpAddr>, String> {
        Err(format!("no host name can be resolved here: {host}"))
    }
}

/// No file can be included.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFiles;

impl Loader for NoFiles {
    fn load(&self, name: &str, _: &str) -> Result<(String, Vec<u8>), String> {
        Err(format!("no file can be included here: {name}"))
    }

    fn glob(&self, pattern: &str, _: &str) -> Result<Vec<String>, String> {
        Err(format!("no file can be included here: {pattern}"))
    }
}
