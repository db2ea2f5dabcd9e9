//! ESI 1.0 as in the W3C's note, with two extensions of Akamai (`maxwait`, `<esi:assign>`).
//! Instructions are found anywhere in a page, which need not be XML; a tag ends at its `>` outside
//! of quotes. A faulty instruction is left out with a remark, and never costs the text around it.

mod builder;
mod tag;
#[cfg(test)]
mod tests;

use crate::limits::Limits;
use crate::machine::Machine;
use crate::node::Node;
use crate::remark::{RemarkKind, Remarks};
use crate::remark_collector::RemarkCollector;
use crate::search;
use crate::variable::{ScanProgress, Variable, VariableEndScan};

use builder::Builder;
use tag::Tag;

/// Beginnings of instructions.
const MARKS: [&[u8]; 3] = [b"<esi:", b"</esi:", b"<!--esi"];
/// Longest variable in bytes; a longer one is text.
const VARIABLE_BYTES: usize = 1024;

#[derive(Clone, Copy, Debug)]
enum EsiState {
    /// In text; the number counts the matched bytes of `-->`.
    Text(u8),
    /// In a possible mark ([`MARKS`]), whose bytes are in `held`.
    Mark,
    /// In a tag, whose bytes are in `held`.
    Tag { quote: Option<u8>, is_after_equals: bool },
    /// In a variable, whose bytes are in `held`.
    Variable(VariableEndScan),
    /// In the rest of a tag that exceeds the limit.
    Lost,
    /// Beyond a limit: the rest of the page is text.
    Rest,
}

/// State machine of the dialect.
#[derive(Debug)]
pub(crate) struct EsiMachine {
    limits: Limits,
    state: EsiState,
    remarks: RemarkCollector,
    builder: Builder,
    held: Vec<u8>,
    /// Offset of the bytes in `held`.
    held_at: u64,
    /// Offset up to which the page has been put into nodes or dropped.
    taken: u64,
    is_in_comment: bool,
    is_found: bool,
}

impl EsiMachine {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            state: EsiState::Text(0),
            remarks: RemarkCollector::new(limits.remarks),
            builder: Builder::new(limits),
            held: Vec::new(),
            held_at: 0,
            taken: 0,
            is_in_comment: false,
            is_found: false,
        }
    }
}

impl Machine for EsiMachine {
    fn has_instructions(&self) -> bool {
        self.is_found
    }

    fn push(&mut self, bytes: &[u8], out: &mut Vec<Node>) {
        let begin = self.remarks.offset();
        let mut at = 0;
        while at < bytes.len() {
            at += self.skippable(&bytes[at..]);
            if let Some(byte) = bytes.get(at) {
                self.step(*byte, begin + at as u64);
                at += 1;
            }
        }
        if matches!(self.state, EsiState::Text(0) | EsiState::Rest) {
            self.take(begin + bytes.len() as u64);
        }
        self.remarks.end(bytes);
        self.builder.emit(out);
    }

    fn finish(mut self: Box<Self>, out: &mut Vec<Node>) -> Remarks {
        let end = self.remarks.offset();
        while let EsiState::Variable(_) = self.state {
            self.release();
        }
        if let EsiState::Tag { .. } | EsiState::Lost = self.state {
            self.remarks.remark(RemarkKind::EndsInTag, self.held_at, end);
            self.taken = end;
        }
        self.take(end);
        if self.is_in_comment {
            self.remarks.remark(RemarkKind::NotClosed, end, end);
        }
        self.builder.finish(|kind| self.remarks.remark(kind, end, end), out);
        self.remarks.finish()
    }
}

impl EsiMachine {
    /// Length of the prefix of `bytes` that does not change the state.
    fn skippable(&self, bytes: &[u8]) -> usize {
        let found = match (self.state, self.is_in_comment, self.builder.has_variables()) {
            (EsiState::Text(0), false, false) => Some(search::esi(bytes)),
            (EsiState::Text(0), true, false) => memchr::memchr2(b'<', b'-', bytes),
            (EsiState::Text(0), false, true) => memchr::memchr2(b'<', b'$', bytes),
            (EsiState::Text(0), true, true) => memchr::memchr3(b'<', b'-', b'$', bytes),
            (EsiState::Lost, ..) => memchr::memchr(b'>', bytes),
            (EsiState::Rest, ..) => None,
            _ => Some(0),
        };
        found.unwrap_or(bytes.len())
    }

    fn step(&mut self, byte: u8, at: u64) {
        match self.state {
            EsiState::Text(dashes) => self.text(dashes, byte, at),
            EsiState::Mark => self.mark(byte, at),
            EsiState::Tag { quote, is_after_equals } => self.tag(quote, is_after_equals, byte, at),
            EsiState::Variable(ending) => self.variable(ending, byte, at),
            EsiState::Lost if byte == b'>' => self.ends(at + 1),
            EsiState::Lost | EsiState::Rest => {}
        }
    }

    fn text(&mut self, dashes: u8, byte: u8, at: u64) {
        self.state = EsiState::Text(0);
        match byte {
            b'<' => self.hold(EsiState::Mark, byte, at),
            b'$' if self.builder.has_variables() => {
                self.hold(EsiState::Variable(VariableEndScan::default()), byte, at);
            }
            b'-' if self.is_in_comment => self.state = EsiState::Text((dashes + 1).min(2)),
            b'>' if dashes == 2 => {
                self.is_in_comment = false;
                self.take(at - 2);
                self.ends(at + 1);
            }
            _ => {}
        }
    }

    fn hold(&mut self, state: EsiState, byte: u8, at: u64) {
        self.held.clear();
        self.held.push(byte);
        self.held_at = at;
        self.state = state;
    }

    /// Makes text of the held bytes. After the first byte, an instruction may begin in them again.
    fn release(&mut self) {
        self.state = EsiState::Text(0);
        let held = std::mem::take(&mut self.held);
        for (byte, at) in held.iter().zip(self.held_at..).skip(1) {
            self.step(*byte, at);
        }
        if self.held.is_empty() {
            self.held = held;
            self.held.clear();
        }
    }

    fn mark(&mut self, byte: u8, at: u64) {
        self.held.push(byte);
        match MARKS.iter().find(|mark| mark.starts_with(&self.held)) {
            None => self.release(),
            Some(mark) if mark.len() > self.held.len() => {}
            Some(mark) if mark.ends_with(b":") => {
                self.begins();
                self.state = EsiState::Tag { quote: None, is_after_equals: false };
            }
            Some(_) => {
                self.begins();
                self.is_in_comment = true;
                self.ends(at + 1);
            }
        }
    }

    /// An instruction begins at the held bytes.
    fn begins(&mut self) {
        self.is_found = true;
        self.take(self.held_at);
    }

    /// An instruction has ended before `at`.
    fn ends(&mut self, at: u64) {
        self.taken = at;
        let is_full = self.builder.is_full();
        if is_full {
            self.remarks.remark(RemarkKind::TooMany, self.held_at, at);
        }
        self.state = if is_full { EsiState::Rest } else { EsiState::Text(0) };
    }

    fn tag(&mut self, quote: Option<u8>, is_after_equals: bool, byte: u8, at: u64) {
        self.held.push(byte);
        if byte == b'>' && quote.is_none() {
            let mut held = std::mem::take(&mut self.held);
            let (remarks, from) = (&mut self.remarks, self.held_at);
            self.builder.tag(&Tag::read(&held), |kind| remarks.remark(kind, from, at));
            held.clear();
            self.held = held;
            return self.ends(at + 1);
        }
        if self.held.len() > self.limits.attribute_bytes {
            self.remarks.remark(RemarkKind::TooLong, self.held_at, at);
            self.state = EsiState::Lost;
            return;
        }
        self.state = match (quote, byte) {
            (Some(open), _) => {
                EsiState::Tag { quote: quote.filter(|_| open != byte), is_after_equals: false }
            }
            (None, b'"' | b'\'') if is_after_equals => {
                EsiState::Tag { quote: Some(byte), is_after_equals: false }
            }
            (None, b'=') => EsiState::Tag { quote, is_after_equals: true },
            _ => EsiState::Tag {
                quote,
                is_after_equals: is_after_equals && byte.is_ascii_whitespace(),
            },
        };
    }

    fn variable(&mut self, mut ending: VariableEndScan, byte: u8, at: u64) {
        self.held.push(byte);
        let length = self.held.len();
        let progress = match length {
            2 if byte == b'(' => ScanProgress::More,
            2 => ScanProgress::Never,
            _ if length > VARIABLE_BYTES => ScanProgress::Never,
            _ => ending.step(byte),
        };
        match progress {
            ScanProgress::More => self.state = EsiState::Variable(ending),
            ScanProgress::Never => self.release(),
            ScanProgress::End => match Variable::read(&self.held[2..length - 1]) {
                None => self.release(),
                Some(variable) => {
                    self.take(self.held_at);
                    self.builder.add(Node::Variable(Box::new(variable)));
                    self.ends(at + 1);
                }
            },
        }
    }

    /// Makes text of the bytes up to `at` that were not taken yet.
    fn take(&mut self, at: u64) {
        if self.taken < at {
            self.builder.text(self.taken..at);
            self.taken = at;
        }
    }
}
