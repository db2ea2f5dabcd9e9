//! Trace of the programs of one request, for the log and for `explain`. It is recorded as numbers,
//! which become text only when the request's record is written.

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

/// One run of a subroutine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubroutineRun {
    /// The subroutine.
    pub sub: Sub,
    /// The kind of action that it returned.
    pub verb: ActionKind,
    /// Number of log lines at its end.
    pub lines: u16,
    /// The `return`, or the statement that failed.
    pub at: Option<StatementNumber>,
}

impl SubroutineRun {
    /// A run of `sub` that returned `verb` at `at`, with `lines` in the log.
    pub fn new(sub: Sub, verb: ActionKind, at: Option<StatementNumber>, lines: usize) -> Self {
        Self { sub, verb, lines: u16::try_from(lines).unwrap_or(u16::MAX), at }
    }

    /// The run with `before` lines added in front of its own.
    pub fn after(self, before: usize) -> Self {
        Self::new(self.sub, self.verb, self.at, usize::from(self.lines) + before)
    }
}

/// Inline capacity: the subroutines of a hit.
pub const RAN: usize = 4;

/// Trace of a request's programs.
#[derive(Debug)]
pub struct ProgramTrace {
    /// Transaction number (below 2^30); after a restart the last one.
    pub xid: u32,
    /// Session number.
    pub session: u32,
    /// Subroutines in the order in which they ran.
    pub ran: SmallVec<[SubroutineRun; RAN]>,
    /// Log lines; `None` if there are none.
    pub lines: Option<Box<Vec<LogLine>>>,
    /// The switch to the program of a label, if there was one.
    pub switched: Option<Box<LabelSwitch>>,
    /// The limit that was reached.
    pub limit: Option<Limit>,
    /// The request as the program has left it, if a log reader asks for fields.
    pub req: Option<Box<Request>>,
}

/// Transaction number in the form of records.
pub fn number(xid: u64) -> u32 {
    u32::try_from(xid).unwrap_or(u32::MAX)
}

/// A switch to the program of a label.
#[derive(Clone, Debug)]
pub struct LabelSwitch {
    /// Instance of that program.
    pub instance: Arc<Instance>,
    /// Number of subroutines that had run before the switch.
    pub after: u16,
}

impl ProgramTrace {
    /// The log lines.
    pub fn lines(&self) -> &[LogLine] {
        self.lines.as_deref().map_or(&[], Vec::as_slice)
    }

    /// The first error, if any.
    pub fn error(&self) -> Option<&[u8]> {
        let error =
            self.lines().iter().find(|(tag, _)| matches!(tag, Tag::Error | Tag::FetchError));
        error.map(|(_, text)| &**text)
    }

    /// Appends the trace in the form of records; `first` is the site's program.
    ///
    /// One line for each subroutine, `recv default.vcl:14 hash`, preceded by a line `VCL_Log text`
    /// for each log line that the subroutine wrote.
    pub fn write(&self, first: Option<&Program>, out: &mut Vec<u8>) {
        let mut rest = self.lines();
        let mut written = 0;
        for (number, ran) in self.ran.iter().enumerate() {
            let (before, after) = rest.split_at((usize::from(ran.lines) - written).min(rest.len()));
            written += before.len();
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
    out.extend_from_slice(ran.verb.name().as_bytes());
}

fn write_lines(lines: &[LogLine], out: &mut Vec<u8>) {
    for (tag, text) in lines {
        begin(out);
        out.extend_from_slice(tag.name().as_bytes());
        out.push(b' ');
        // Line ends separate the lines.
        out.extend(text.iter().map(|byte| if byte.is_ascii_control() { b' ' } else { *byte }));
    }
}

fn begin(out: &mut Vec<u8>) {
    if !out.is_empty() {
        out.push(b'\n');
    }
}
