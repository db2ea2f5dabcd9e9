//! Source files: where each byte of a program comes from.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;

/// A place in the sources: bytes `start..end` of file number `file` in [`Sources`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SourceSpan {
    /// Number of the file.
    pub file: u32,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl SourceSpan {
    /// From the beginning of `self` to the end of `other`; `self` when that is in another file.
    #[must_use]
    pub fn to(self, other: Self) -> Self {
        let end = if other.file == self.file { other.end } else { self.end };
        Self { end: end.max(self.end), ..self }
    }
}

/// A statement, by its number in the program: where it stands is told by
/// [`Program::place`](crate::state::program::Program::place).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StatementNumber(NonZeroU32);

impl StatementNumber {
    /// Number `index`, from 0. What is beyond four billions is the last.
    pub(crate) fn nth(index: usize) -> Self {
        let number = u32::try_from(index).unwrap_or(u32::MAX).saturating_add(1);
        Self(NonZeroU32::new(number).expect("one more than something"))
    }

    /// The number, from 0.
    pub(crate) fn index(self) -> usize {
        self.0.get() as usize - 1
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
    pub included_at: Option<SourceSpan>,
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
    pub fn position(&self, span: SourceSpan) -> (u32, u32) {
        let text = &self.file(span.file).text[..span.start as usize];
        let line = text.iter().filter(|b| **b == b'\n').count() as u32 + 1;
        let column = text.iter().rev().take_while(|b| **b != b'\n').count() as u32 + 1;
        (line, column)
    }
}

/// Where a statement stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StatementLocation {
    file: u32,
    /// From 1.
    line: u32,
}

/// Where the statements of a program stand, known beforehand: a request that tells its way looks
/// nothing up.
#[derive(Clone, Debug, Default)]
pub(crate) struct StatementLocations {
    /// By [`At`].
    spots: Box<[StatementLocation]>,
    /// Names of the files in logs.
    names: Box<[Box<str>]>,
}

impl StatementLocations {
    /// Those of statements at `spans` of `sources`.
    pub(crate) fn of(sources: &Sources, spans: &[SourceSpan]) -> Self {
        let files = sources.files();
        let starts: Vec<Vec<u32>> = files.iter().map(|file| line_starts(&file.text)).collect();
        let spot = |span: &SourceSpan| {
            let before = starts[span.file as usize].partition_point(|start| *start <= span.start);
            StatementLocation { file: span.file, line: before as u32 }
        };
        let folder = files.first().and_then(|first| first.name.rfind('/').map(|at| at + 1));
        let folder = folder.map_or("", |end| &files[0].name[..end]);
        let name = |file: &SourceFile| file.name.strip_prefix(folder).unwrap_or(&file.name).into();
        Self { spots: spans.iter().map(spot).collect(), names: files.iter().map(name).collect() }
    }

    /// The number of the file, and the line from 1.
    pub(crate) fn spot(&self, at: StatementNumber) -> Option<(u32, u32)> {
        self.spots.get(at.index()).map(|spot| (spot.file, spot.line))
    }

    /// Appends the place as logs have it: `default.vcl:14`.
    pub(crate) fn write(&self, at: StatementNumber, out: &mut Vec<u8>) {
        let Some(StatementLocation { file, line }) = self.spots.get(at.index()) else { return };
        out.extend_from_slice(self.names[*file as usize].as_bytes());
        out.push(b':');
        out.extend_from_slice(itoa::Buffer::new().format(*line).as_bytes());
    }
}

/// Where the lines of a text begin.
fn line_starts(text: &[u8]) -> Vec<u32> {
    let ends = memchr::memchr_iter(b'\n', text).map(|at| at as u32 + 1);
    std::iter::once(0).chain(ends).collect()
}

/// Loads included files. The crate itself reads none.
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
