//! The parser of all dialects: bytes in as they come, nodes out as soon as they are known.

use crate::document::Document;
use crate::limits::Limits;
use crate::node::Node;
use crate::remark::Remarks;
use crate::varnish::{self, VarnishRules};
use crate::{esi, ssi};

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
pub struct Parser(Inner);

#[derive(Debug)]
enum Inner {
    Varnish(Box<varnish::VarnishMachine>),
    Esi(Box<esi::EsiMachine>),
    Ssi(Box<ssi::SsiMachine>),
}

impl Parser {
    /// A parser at the beginning of a page.
    pub fn new(dialect: Dialect, limits: Limits) -> Self {
        Self(match dialect {
            Dialect::Varnish(rules) => {
                Inner::Varnish(Box::new(varnish::VarnishMachine::new(rules, limits)))
            }
            Dialect::Esi => Inner::Esi(Box::new(esi::EsiMachine::new(limits))),
            Dialect::Ssi => Inner::Ssi(Box::new(ssi::SsiMachine::new(limits))),
        })
    }

    /// Takes the next bytes of the page. Nodes that stand in no other node are appended to `out` as
    /// soon as they are known; text that is no instruction is known at once.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<Node>) {
        match &mut self.0 {
            Inner::Varnish(machine) => machine.push(bytes, out),
            Inner::Esi(machine) => machine.push(bytes, out),
            Inner::Ssi(machine) => machine.push(bytes, out),
        }
    }

    /// Ends the page: appends what is left of it, and gives all that was remarked.
    pub fn finish(self, out: &mut Vec<Node>) -> Remarks {
        match self.0 {
            Inner::Varnish(machine) => machine.finish(out),
            Inner::Esi(machine) => machine.finish(out),
            Inner::Ssi(machine) => machine.finish(out),
        }
    }

    /// Tells whether an instruction was found so far.
    pub fn has_instructions(&self) -> bool {
        match &self.0 {
            Inner::Varnish(machine) => machine.has_instructions(),
            Inner::Esi(machine) => machine.has_instructions(),
            Inner::Ssi(machine) => machine.has_instructions(),
        }
    }
}

/// Reads a whole page.
pub fn parse(page: &[u8], dialect: Dialect, limits: Limits) -> Document {
    Document::parse(page, dialect, limits)
}

impl Document {
    /// Reads a whole page.
    pub fn parse(page: &[u8], dialect: Dialect, limits: Limits) -> Self {
        let mut nodes = Vec::new();
        let mut parser = Parser::new(dialect, limits);
        parser.push(page, &mut nodes);
        // The end of a page may still bring its first: then it brings a node, too.
        let had = parser.has_instructions();
        let remarks = parser.finish(&mut nodes);
        let is_plain = !had && nodes.iter().all(|node| matches!(node, Node::Text(_)));
        Self::new(nodes, remarks, is_plain, limits)
    }
}
