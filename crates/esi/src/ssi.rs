//! Server-side includes as in nginx: its documentation of `ngx_http_ssi_module`, and the output of
//! Debian's nginx for `ssi/pages.txt`. A command that fails leaves a message in its place. `if`
//! never nests: nginx has one level.

mod command;
mod condition;
mod date;
mod parameters;
mod state;
#[cfg(test)]
mod tests;
mod text;

use crate::fragment::Include;
use crate::limits::Limits;
use crate::machine::Machine;
use crate::node::{Node, join_last};
use crate::remark::{RemarkKind, Remarks};
use crate::remark_collector::RemarkCollector;
use crate::search;

pub use command::Command;
pub(crate) use command::{ConditionalPart, Kind};
pub(crate) use condition::{Pattern, SsiCondition};
pub(crate) use date::formatted;
pub(crate) use text::{Encoding, SsiText, SsiTextPart, encoded};

use parameters::Parameters;
use state::{SsiState, bad};

/// Beginning of a command.
const MARK: &[u8] = b"<!--#";

/// An open block.
#[derive(Debug)]
struct SsiBlock {
    name: Vec<u8>,
    nodes: Vec<Node>,
}

/// State machine of the dialect.
#[derive(Debug)]
pub(crate) struct SsiMachine {
    limits: Limits,
    state: SsiState,
    remarks: RemarkCollector,
    parameters: Parameters,
    /// Offset of the command that is being read.
    held_at: u64,
    /// Offset up to which the page has been put into nodes or dropped.
    taken: u64,
    block: Option<SsiBlock>,
    done: Vec<Node>,
    count: usize,
    /// End of the text that was added last, if text came last.
    text_end: Option<u64>,
    patterns: usize,
    is_found: bool,
}

impl SsiMachine {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            state: SsiState::Text,
            remarks: RemarkCollector::new(limits.remarks),
            parameters: Parameters::default(),
            held_at: 0,
            taken: 0,
            block: None,
            done: Vec::new(),
            count: 0,
            text_end: None,
            patterns: 0,
            is_found: false,
        }
    }
}

impl Machine for SsiMachine {
    fn has_instructions(&self) -> bool {
        self.is_found
    }

    fn push(&mut self, bytes: &[u8], out: &mut Vec<Node>) {
        let begin = self.remarks.offset();
        let mut at = 0;
        while at < bytes.len() {
            at += match self.state {
                SsiState::Text => search::ssi(&bytes[at..]),
                SsiState::Rest => bytes.len() - at,
                _ => 0,
            };
            if let Some(byte) = bytes.get(at) {
                self.step(*byte, begin + at as u64);
                at += 1;
            }
        }
        if let SsiState::Text | SsiState::Rest = self.state {
            self.take(begin + bytes.len() as u64);
        }
        self.remarks.end(bytes);
        out.append(&mut self.done);
    }

    fn finish(mut self: Box<Self>, out: &mut Vec<Node>) -> Remarks {
        let end = self.remarks.offset();
        if !matches!(self.state, SsiState::Text | SsiState::Mark(_) | SsiState::Rest) {
            self.remarks.remark(RemarkKind::EndsInTag, self.held_at, end);
            self.taken = end;
        }
        self.take(end);
        if self.block.take().is_some() {
            self.remarks.remark(RemarkKind::NotClosed, end, end);
        }
        out.append(&mut self.done);
        self.remarks.finish()
    }
}

impl SsiMachine {
    fn step(&mut self, byte: u8, at: u64) {
        self.state = match self.state {
            SsiState::Text if byte == b'<' => {
                self.held_at = at;
                SsiState::Mark(1)
            }
            SsiState::Text => SsiState::Text,
            SsiState::Rest => SsiState::Rest,
            SsiState::Mark(matched) => self.mark(matched, byte, at),
            SsiState::End(2) if byte == b'>' => return self.ends(at, false),
            SsiState::Bad(2) if byte == b'>' => return self.ends(at, true),
            state if at - self.held_at > self.limits.attribute_bytes as u64 => {
                if !matches!(state, SsiState::Bad(_)) {
                    self.remarks.remark(RemarkKind::TooLong, self.held_at, at);
                }
                bad(state, byte)
            }
            state => self.parameters.step(state, byte),
        };
    }

    fn mark(&mut self, matched: usize, byte: u8, at: u64) -> SsiState {
        if MARK[matched] != byte {
            // Within a mark, only its first byte can begin another.
            self.held_at = at;
            return if byte == b'<' { SsiState::Mark(1) } else { SsiState::Text };
        }
        if matched + 1 < MARK.len() {
            return SsiState::Mark(matched + 1);
        }
        self.take(self.held_at);
        self.is_found = true;
        self.parameters.clear();
        SsiState::Begun
    }

    /// A command has ended with the byte at `at`.
    fn ends(&mut self, at: u64, is_bad: bool) {
        self.taken = at + 1;
        self.state = SsiState::Text;
        let command = if is_bad { self.parameters.fault() } else { self.parameters.command() };
        self.command(command, at);
        if self.count >= self.limits.nodes {
            self.remarks.remark(RemarkKind::TooMany, self.held_at, at);
            self.state = SsiState::Rest;
        }
    }

    fn command(&mut self, command: Kind, at: u64) {
        self.text_end = None;
        match command {
            Kind::EndBlock => {
                if let Some(SsiBlock { name, nodes }) = self.block.take() {
                    self.add(Node::Inline { name: name.into(), nodes: nodes.into() });
                }
            }
            // A block within a block is ignored.
            Kind::Block(name) if self.block.is_none() => {
                self.block = Some(SsiBlock { name, nodes: Vec::new() });
            }
            Kind::Block(_) => {}
            mut command => {
                self.patterns += usize::from(command.has_pattern());
                if self.patterns > self.limits.patterns && command.has_pattern() {
                    command = self.parameters.fault();
                }
                if command.is_fault() {
                    self.remarks.remark(RemarkKind::BadCommand, self.held_at, at);
                }
                self.add(match command.plain() {
                    Some(fragment) => Node::Include(Include::fixed(fragment)),
                    None => Node::Command(Box::new(Command(command))),
                });
            }
        }
    }

    fn add(&mut self, node: Node) {
        self.text_end = None;
        self.nodes().push(node);
        self.count += 1;
    }

    fn nodes(&mut self) -> &mut Vec<Node> {
        self.block.as_mut().map_or(&mut self.done, |block| &mut block.nodes)
    }

    /// Makes text of the bytes up to `at` that were not taken yet.
    fn take(&mut self, at: u64) {
        if self.taken < at {
            // It continues the text before it if both were only cut apart.
            self.count -= usize::from(self.text_end == Some(self.taken));
            self.add(Node::Text(self.taken..at));
            join_last(self.nodes());
            (self.taken, self.text_end) = (at, Some(at));
        }
    }
}
