//! Source files of a program and positions in them. No file is read here.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;

/// A position: bytes `start..end` of file number `file` in [`Sources`].
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
    /// From the beginning of `self` to the end of `other`; `self` if they are in different files.
    #[must_use]
    pub fn to(self, other: Self) -> Self {
        let end = if other.file == self.file { other.end } else { self.end };
        Self { end: end.max(self.end), ..self }
    }
}

/// Number of a statement in its program; [`Program::place`](crate::state::program::Program::place)
/// gives its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StatementNumber(NonZeroU32);

impl StatementNumber {
    /// The statement with `index`, from 0; the largest possible number beyond four billion.
    pub(crate) fn nth(index: usize) -> Self {
        let number = u32::try_from(index).unwrap_or(u32::MAX).saturating_add(1);
        Self(NonZeroU32::new(number).expect("one more than something"))
    }

    /// The number, from 0.
    pub(crate) fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// A source file.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// Name of the file in errors.
    pub name: Arc<str>,
    /// Bytes of the file. Comments and strings may have any encoding.
    pub text: Arc<[u8]>,
    /// Position of its `include`; `None` for the first file and the builtin VCL.
    pub included_at: Option<SourceSpan>,
}

/// All files of a program: the main file is number 0, the builtin VCL the last.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    files: Vec<SourceFile>,
}

impl Sources {
    /// Adds a file, and returns its number.
    pub fn add(&mut self, file: SourceFile) -> u32 {
        self.files.push(file);
        (self.files.len() - 1) as u32
    }

    /// File number `file`.
    pub fn file(&self, file: u32) -> &SourceFile {
        &self.files[file as usize]
    }

    /// All files.
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

/// File and line of one statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StatementLocation {
    file: u32,
    /// From 1.
    line: u32,
}

/// Locations of all statements of a program, computed once: a trace of a request looks nothing up.
#[derive(Clone, Debug, Default)]
pub(crate) struct StatementLocations {
    /// By [`StatementNumber`].
    locations: Box<[StatementLocation]>,
    /// Names of the files in logs.
    names: Box<[Box<str>]>,
}

impl StatementLocations {
    /// Locations of the statements at `spans` of `sources`.
    pub(crate) fn of(sources: &Sources, spans: &[SourceSpan]) -> Self {
        let files = sources.files();
        let starts: Vec<Vec<u32>> = files.iter().map(|file| line_starts(&file.text)).collect();
        let location = |span: &SourceSpan| {
            let before = starts[span.file as usize].partition_point(|start| *start <= span.start);
            StatementLocation { file: span.file, line: before as u32 }
        };
        let folder = files.first().and_then(|first| first.name.rfind('/').map(|at| at + 1));
        let folder = folder.map_or("", |end| &files[0].name[..end]);
        let name = |file: &SourceFile| file.name.strip_prefix(folder).unwrap_or(&file.name).into();
        Self {
            locations: spans.iter().map(location).collect(),
            names: files.iter().map(name).collect(),
        }
    }

    /// Number of the file, and line from 1.
    pub(crate) fn location(&self, at: StatementNumber) -> Option<(u32, u32)> {
        self.locations.get(at.index()).map(|location| (location.file, location.line))
    }

    /// Appends the location in the form of logs: `default.vcl:14`.
    pub(crate) fn write(&self, at: StatementNumber, out: &mut Vec<u8>) {
        let Some(StatementLocation { file, line }) = self.locations.get(at.index()) else { return };
        out.extend_from_slice(self.names[*file as usize].as_bytes());
        out.push(b':');
        out.extend_from_slice(itoa::Buffer::new().format(*line).as_bytes());
    }
}

/// Offsets of the lines in a text.
fn line_starts(text: &[u8]) -> Vec<u32> {
    let ends = memchr::memchr_iter(b'\n', text).map(|at| at as u32 + 1);
    std::iter::once(0).chain(ends).collect()
}

/// Loader of included files, which the caller of the compiler provides.
pub trait Loader {
    /// The file that `include "name"` in `from` means: absolute, `./` relative to `from`, or below
    /// the directories of `vcl_path`. Returns its full name and its bytes.
    ///
    /// # Errors
    /// The reason why the file cannot be loaded.
    fn load(&self, name: &str, from: &str) -> Result<(String, Vec<u8>), String>;

    /// Names that `include +glob "pattern"` in `from` means, sorted.
    ///
    /// # Errors
    /// The reason why the pattern is invalid.
    fn glob(&self, pattern: &str, from: &str) -> Result<Vec<String>, String>;

    /// Addresses of a host name in an ACL, resolved once: access never changes without the
    /// operator.
    ///
    /// # Errors
    /// The reason why the name has no address.
    fn resolve(&self, host: &str) -> Result<Vec<IpAddr>, String> {
        Err(format!("no host name can be resolved here: {host}"))
    }
}

/// A loader without files.
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
