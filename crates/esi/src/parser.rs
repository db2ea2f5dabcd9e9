//! The parser of all dialects: bytes in as they come, nodes out as soon as they are known.

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
    /// The part of ESI that Varnish has, with its rules for what is XML.
    Varnish(VarnishRules),
    /// ESI 1.0 as its note has it.
    Esi,
    /// Server-side includes as nginx has them.
    Ssi,
}

/// Reads a page in pieces, as they come. The result does not depend on where it is cut, other than
/// that a range of text may come in parts.
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

    /// Takes the next bytes of the page. Nodes that stand in no other node are appended to `out` as
    /// soon as they are known; text that is no instruction is known at once.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<Node>) {
        self.0.push(bytes, out);
    }

    /// Ends the page: appends what is left of it, and gives all that was remarked.
    pub fn finish(self, out: &mut Vec<Node>) -> Remarks {
        self.0.finish(out)
    }

    /// Tells whether an instruction was found so far.
    pub fn has_instructions(&self) -> bool {
        self.0.has_instructions()
    }
}

impl Document {
    /// Reads a whole page.
    pub fn parse(page: &[u8], dialect: Dialect, limits: Limits) -> Self {
        Self::read([page], dialect, limits)
    }

    /// Reads a whole page that is there in pieces.
    pub fn read<'p>(
        page: impl IntoIterator<Item = &'p [u8]>,
        dialect: Dialect,
        limits: Limits,
    ) -> Self {
        let mut nodes = Vec::new();
        let mut parser = Parser::new(dialect, limits);
        page.into_iter().for_each(|piece| parser.push(piece, &mut nodes));
        // The end of a page may still bring its first: then it brings a node, too.
        let had = parser.has_instructions();
        let remarks = parser.finish(&mut nodes);
        let is_plain = !had && nodes.iter().all(|node| matches!(node, Node::Text(_)));
        Self::new(nodes, remarks, is_plain, limits)
    }
}
