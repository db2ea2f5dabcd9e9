//! Runs of text that are kept or dropped, as Varnish counts them: a remark has the offset of its
//! run. Text is never dropped from a page without an instruction.

use std::ops::Range;

use crate::limits::Limits;
use crate::node::Node;
use crate::remark::{RemarkKind, Remarks};
use crate::remark_collector::RemarkCollector;

/// The runs of a page. Since a page without an instruction keeps all text, nodes behind the first
/// dropped run are held back until an instruction comes.
#[derive(Debug)]
pub(super) struct Runs {
    pub(super) remarks: RemarkCollector,
    /// True if there was an instruction.
    pub(super) is_found: bool,
    /// Offset of the current run.
    from: u64,
    /// Offset up to which runs are kept or dropped.
    mark: u64,
    /// Offset up to which kept text is among the nodes.
    taken: u64,
    /// Offset up to which nodes have been handed out.
    emitted: u64,
    /// End of the text that came last, if nothing followed it.
    text_end: Option<u64>,
    has_gap: bool,
    pending: Vec<Node>,
    nodes: usize,
    most: usize,
}

impl Runs {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            remarks: RemarkCollector::new(limits.remarks),
            is_found: false,
            from: 0,
            mark: 0,
            taken: 0,
            emitted: 0,
            text_end: None,
            has_gap: false,
            pending: Vec::new(),
            nodes: 0,
            most: limits.nodes,
        }
    }

    pub(super) const fn mark(&self) -> u64 {
        self.mark
    }

    pub(super) const fn is_full(&self) -> bool {
        self.nodes >= self.most
    }

    pub(super) fn remark(&mut self, kind: RemarkKind, at: u64) {
        self.remarks.remark(kind, self.from, at);
    }

    /// Keeps the text before `at`.
    pub(super) fn keep(&mut self, at: u64) {
        self.mark = self.mark.max(at);
    }

    /// An instruction begins at the mark.
    pub(super) const fn found(&mut self) {
        self.is_found = true;
        self.from = self.mark;
    }

    /// Drops the text between the mark and `at`.
    pub(super) fn drop(&mut self, at: u64) {
        self.take();
        self.has_gap |= at > self.mark;
        self.mark = self.mark.max(at);
        (self.from, self.taken, self.text_end) = (self.mark, self.mark, None);
    }

    /// Adds an instruction.
    pub(super) fn node(&mut self, node: Node) {
        self.take();
        self.pending.push(node);
        self.nodes += 1;
        self.text_end = None;
    }

    fn take(&mut self) {
        if self.taken < self.mark {
            self.pending.push(text(self.taken..self.mark));
            // It continues the text before it if both were only cut apart.
            self.nodes += usize::from(self.text_end != Some(self.taken));
            (self.taken, self.text_end) = (self.mark, Some(self.mark));
        }
    }

    /// Hands out the nodes that are final.
    pub(super) fn emit(&mut self, out: &mut Vec<Node>) {
        if self.is_found || !self.has_gap {
            self.take();
            out.append(&mut self.pending);
            self.emitted = self.mark;
        }
    }

    pub(super) fn finish(mut self, out: &mut Vec<Node>) -> Remarks {
        if self.is_found {
            self.emit(out);
        } else if self.emitted < self.mark {
            out.push(text(self.emitted..self.mark));
        }
        self.remarks.finish()
    }
}

const fn text(range: Range<u64>) -> Node {
    Node::Text(range)
}
