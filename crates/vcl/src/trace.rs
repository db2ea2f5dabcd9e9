//! Notes on the actions of a request's program, for the log and for `explain`.
//!
//! Notes are taken in numbers; they become text when the record of the request is written.

use std::sync::Arc;

use base::Limit;
use message::Request;
use smallvec::SmallVec;

use crate::source::StatementNumber;
use crate::state::program::{Instance, Program};
use crate::sub::{ActionKind, Sub};
use crate::tag::Tag;

/// A line that a program has logged.
pub type LogLine = (Tag, Box<[u8]>);

/// A subroutine that has run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubroutineRun {
    /// The subroutine.
    pub sub: Sub,
    /// The verb that it returned.
    pub verb: ActionKind,
    /// The number of lines that had been logged by then.
    pub lines: u16,
    /// The `return`, or the statement that failed.
    pub at: Option<StatementNumber>,
}

impl SubroutineRun {
    /// `sub` has returned `verb` at `at`, with so many `lines` in the log.
    pub fn new(sub: Sub, verb: ActionKind, at: Option<StatementNumber>, lines: usize) -> Self {
        Self { sub, verb, lines: u16::try_from(lines).unwrap_or(u16::MAX), at }
    }

    /// The same where `before` lines stand before its own.
    pub fn after(self, before: usize) -> Self {
        Self::new(self.sub, self.verb, self.at, usize::from(self.lines) + before)
    }
}

/// Subroutines that most requests run at most: those of a hit.
pub const RAN: usize = 4;

/// The actions of a program for one request.
#[derive(Debug)]
pub struct ProgramTrace {
    /// The transaction's number (they are less than 2^30); after a restart the last one.
    pub xid: u32,
    /// The session's number.
    pub session: u32,
    /// The subroutines that have run, in their order.
    pub ran: SmallVec<[SubroutineRun; RAN]>,
    /// Lines that were logged; `None` when nothing was logged.
    pub lines: Option<Box<Vec<LogLine>>>,
    /// The program in which it went on, where a label has led to another than its site's.
    pub switched: Option<Box<LabelSwitch>>,
    /// The limit that it has reached.
    pub limit: Option<Limit>,
    /// The request as the program has left it, where a reader of the log asks for fields.
    pub req: Option<Box<Request>>,
}

/// A transaction's number as records have it.
pub fn number(xid: u64) -> u32 {
    u32::try_from(xid).unwrap_or(u32::MAX)
}

/// A program that a label led to.
#[derive(Clone, Debug)]
pub struct LabelSwitch {
    /// The instance of the program.
    pub instance: Arc<Instance>,
    /// The number of subroutines that had run in the first program.
    pub after: u16,
}

impl ProgramTrace {
    /// Returns the lines that were logged.
    pub fn lines(&self) -> &[LogLine] {
        self.lines.as_deref().map_or(&[], Vec::as_slice)
    }

    /// Returns the first error, if there was one.
    pub fn error(&self) -> Option<&[u8]> {
        let error =
            self.lines().iter().find(|(tag, _)| matches!(tag, Tag::Error | Tag::FetchError));
        error.map(|(_, text)| &**text)
    }

    /// Appends what was done as records have it, `first` being the site's program.
    ///
    /// One line for each subroutine, `recv default.vcl:14 hash`, and one for each line of the log
    /// before the one it was written in: `VCL_Log text`.
    pub fn write(&self, first: Option<&Program>, out: &mut Vec<u8>) {
        let mut rest = self.lines();
        let mut told = 0;
        for (number, ran) in self.ran.iter().enumerate() {
            let (before, after) = rest.split_at((usize::from(ran.lines) - told).min(rest.len()));
            told += before.len();
            rest = after;
            write_lines(before, out);
            let other = self.switched.as_ref().filter(|other| number >= usize::from(other.after));
            let program = other.map(|other| &**other.instance.program()).or(first);
            write_ran(ran, program, out);
        }
        write_lines(rest, out);
    }
}

fn write_ran(ran: &SubroutineRun, program: Option<&Program>, out: &mut Vec<u8>) {
    begin(out);
    out.extend_from_slice(&ran.sub.name().as_bytes()["vcl_".len()..]);
    out.push(b' ');
    match (program, ran.at) {
        (Some(program), Some(at)) => program.write_place(at, out),
        _ => out.push(b'-'),
    }
    out.push(b' ');
    out.extend_from_slice(ran.verb.word().as_bytes());
}

fn write_lines(lines: &[LogLine], out: &mut Vec<u8>) {
    for (tag, text) in lines {
        begin(out);
        out.extend_from_slice(tag.name().as_bytes());
        out.push(b' ');
        // Lines are told apart by their ends.
        out.extend(text.iter().map(|byte| if byte.is_ascii_control() { b' ' } else { *byte }));
    }
}

fn begin(out: &mut Vec<u8>) {
    if !out.is_empty() {
        out.push(b'\n');
    }
}
