//! Parser of all dialects: bytes in as they come, nodes out as soon as they are complete. It never
//! waits for the whole page.

use crate::document::Document;
use crate::esi::EsiMachine;
use crate::limits::Limits;
use crate::machine::Machine;
use crate::node::Node;
use crate::remark::Remarks;
use crate::ssi::SsiMachine;
use crate::varnish::{VarnishMachine, VarnishRules};

/// The language of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Varnish's part of ESI, with its rules for XML.
    Varnish(VarnishRules),
    /// ESI 1.0 as in the W3C's note.
    Esi,
    /// Server-side includes as in nginx.
    Ssi,
}

/// Parser of a page in pieces. The nodes do not depend on the cuts, except that text may come in
/// several ranges.
///
/// Order of calls: [`Parser::push`] any number of times, then [`Parser::finish`].
#[derive(Debug)]
pub struct Parser(Box<dyn Machine>);

impl Parser {
    /// A parser at the beginning of a page.
    pub fn new(dialect: Dialect, limits: Limits) -> Self {
        Self(match dialect {
            Dialect::Varnish(rules) => Box::new(VarnishMachine::new(rules, limits)),
            Dialect::Esi => Box::new(EsiMachine::new(limits)),
            Dialect::Ssi => Box::new(SsiMachine::new(limits)),
        })
    }

    /// Takes the next bytes of the page. Appends finished top-level nodes to `out`; text is
    /// finished at once.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<Node>) {
        self.0.push(bytes, out);
    }

    /// Ends the page: appends the last nodes, and returns all remarks.
    pub fn finish(self, out: &mut Vec<Node>) -> Remarks {
        self.0.finish(out)
    }

    /// Returns true if an instruction was found so far.
    pub fn has_instructions(&self) -> bool {
        self.0.has_instructions()
    }
}

impl Document {
    /// Parses a whole page.
    pub fn parse(page: &[u8], dialect: Dialect, limits: Limits) -> Self {
        Self::read([page], dialect, limits)
    }

    /// Parses a page whose pieces are all present.
    pub fn read<'p>(
        page: impl IntoIterator<Item = &'p [u8]>,
        dialect: Dialect,
        limits: Limits,
    ) -> Self {
        let mut nodes = Vec::new();
        let mut parser = Parser::new(dialect, limits);
        page.into_iter().for_each(|piece| parser.push(piece, &mut nodes));
        // The first instruction may be found at the page's end; then the parser appends a node.
        let had = parser.has_instructions();
        let remarks = parser.finish(&mut nodes);
        let is_plain = !had && nodes.iter().all(|node| matches!(node, Node::Text(_)));
        Self::new(nodes, remarks, is_plain, limits)
    }
}
