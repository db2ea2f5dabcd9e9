//! Runs of a page that stay and that go, as Varnish counts them: its remarks name their ends.

use std::ops::Range;

use crate::limits::Limits;
use crate::node::Node;
use crate::remark::{RemarkKind, Remarks};
use crate::remark_collector::RemarkCollector;

/// The runs of a page. Nothing goes from a page without an instruction, so what follows the first
/// run that would go is held until there is one.
#[derive(Debug)]
pub(super) struct Runs {
    pub(super) lines: RemarkCollector,
    /// Tells whether there was an instruction.
    pub(super) is_found: bool,
    /// Where the current run begins.
    from: u64,
    /// All before is said to stay or to go.
    mark: u64,
    /// All before is among the nodes, if it stays.
    taken: u64,
    /// All before is known to whoever asks for the nodes.
    emitted: u64,
    /// Where the text ends that came last, if nothing came after it.
    text_end: Option<u64>,
    has_gap: bool,
    pending: Vec<Node>,
    nodes: usize,
    most: usize,
}

impl Runs {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            lines: RemarkCollector::new(limits.remarks),
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

    pub(super) fn remark(&mut self, what: RemarkKind, at: u64) {
        self.lines.remark(what, self.from, at);
    }

    /// Text before `at` stays.
    pub(super) fn keep(&mut self, at: u64) {
        self.mark = self.mark.max(at);
    }

    /// An instruction begins at the mark.
    pub(super) const fn found(&mut self) {
        self.is_found = true;
        self.from = self.mark;
    }

    /// All that is between the mark and `at` goes.
    pub(super) fn drop(&mut self, at: u64) {
        self.take();
        self.has_gap |= at > self.mark;
        self.mark = self.mark.max(at);
        (self.from, self.taken, self.text_end) = (self.mark, self.mark, None);
    }

    /// An instruction comes next.
    pub(super) fn node(&mut self, node: Node) {
        self.take();
        self.pending.push(node);
        self.nodes += 1;
        self.text_end = None;
    }

    fn take(&mut self) {
        if self.taken < self.mark {
            self.pending.push(text(self.taken..self.mark));
            // It goes on with what came before it if only a cut is between them.
            self.nodes += usize::from(self.text_end != Some(self.taken));
            (self.taken, self.text_end) = (self.mark, Some(self.mark));
        }
    }

    /// Hands out what is known.
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
        self.lines.finish()
    }
}

const fn text(range: Range<u64>) -> Node {
    Node::Text(range)
}
