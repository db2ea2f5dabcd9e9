//! Resolution of a page's nodes for one request. It never sends or fetches.

mod esi;
mod ssi;
mod value_piece;
mod values;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::environment::Environment;
use crate::error::Error;
use crate::fragment::{Fragment, Include, ResolvedNode};
use crate::limits::Limits;
use crate::node::{Node, Test};
use crate::ssi::Kind;
use crate::variable::{Template, TemplatePart};

use self::ssi::{CommandContext, Outcome};
use self::value_piece::{Author, Purpose, ValuePiece, write_value};
use self::values::Values;

/// Resolver of a page for one request: the variables and blocks that the page has set so far. Nodes
/// must be resolved in the order of the page.
#[derive(Debug)]
pub struct PageResolver {
    limits: Limits,
    /// Resolved nodes, without text of the page itself.
    count: usize,
    /// Depth of inline fragments or blocks within each other.
    depth: usize,
    values: Values,
    inlines: BTreeMap<Box<[u8]>, Arc<[Node]>>,
    ssi: CommandContext,
}

impl PageResolver {
    /// A resolver at the beginning of a page.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            count: 0,
            depth: 0,
            values: Values::new(limits),
            inlines: BTreeMap::new(),
            ssi: CommandContext::default(),
        }
    }

    /// Sets the variable of a fragment with [`Fragment::set`] to the fragment's body. Such a page
    /// has to be resolved node by node, each after the fragments before it have arrived.
    pub fn assign(&mut self, name: &[u8], value: Vec<u8>) {
        self.values.assign(name, value);
    }

    /// Appends the resolved form of a node.
    ///
    /// # Errors
    /// If the page exceeds a limit.
    pub fn resolve(
        &mut self,
        node: &Node,
        env: &dyn Environment,
        ops: &mut Vec<ResolvedNode>,
    ) -> Result<(), Error> {
        self.counted(node)?;
        if !self.ssi.is_on() && !matches!(node, Node::Command(_)) {
            return Ok(());
        }
        match node {
            Node::Text(range) => ops.push(match env.text() {
                Some(text) => ResolvedNode::Bytes(text.take(range)),
                None => ResolvedNode::Text(range.clone()),
            }),
            Node::Bytes(bytes) => ops.push(ResolvedNode::Bytes(bytes.to_vec())),
            Node::Include(include) => self.include(include, env, ops)?,
            Node::Choose(branches) => {
                let taken = branches.iter().find(|branch| match &branch.test {
                    None | Some(Test::Never) => false,
                    Some(Test::Esi(test)) => {
                        let pieces = |variable| esi::pieces(variable, &self.values, env);
                        test.holds(&|variable| Some(write_value(pieces(variable)?, Purpose::Test)))
                    }
                });
                let taken = taken.or_else(|| branches.iter().find(|branch| branch.test.is_none()));
                if let Some(branch) = taken {
                    self.all(&branch.nodes, env, ops)?;
                }
            }
            Node::Try { attempt, except } => {
                let (mut first, mut second) = (Vec::new(), Vec::new());
                self.all(attempt, env, &mut first)?;
                self.all(except, env, &mut second)?;
                ops.push(ResolvedNode::Try { attempt: first, except: second });
            }
            Node::Variable(variable) => {
                let pieces = esi::pieces(variable, &self.values, env).unwrap_or_default();
                bytes(write_value(pieces, Purpose::Page), ops);
            }
            Node::Template(template) => {
                bytes(write_value(self.expanded(template, env), Purpose::Page), ops);
            }
            Node::Assign { name, value } => {
                let pieces = self.expanded(value, env);
                self.values.assign_pieces(name, pieces);
            }
            Node::Inline { name, nodes } => {
                if self.inlines.len() < self.limits.names && !self.inlines.contains_key(name) {
                    let nodes = match env.text() {
                        Some(text) => nodes.iter().map(|node| node.with_owned_text(text)).collect(),
                        None => Arc::clone(nodes),
                    };
                    self.inlines.insert(name.clone(), nodes);
                }
            }
            Node::Command(command) => self.command(&command.0, env, ops)?,
        }
        Ok(())
    }

    /// Executes a command of SSI.
    fn command(
        &mut self,
        command: &Kind,
        env: &dyn Environment,
        ops: &mut Vec<ResolvedNode>,
    ) -> Result<(), Error> {
        match self.ssi.command(command, &mut self.values, env) {
            Outcome::Bytes(value) => bytes(value, ops),
            Outcome::Include { fragment, block } => {
                let nodes = block.map(|name| self.inlines.get(name).map(Arc::clone));
                if let Some(None) = nodes {
                    bytes(self.ssi.message(), ops);
                    return Ok(());
                }
                let stub = self.stub(nodes.flatten(), env)?;
                ops.push(ResolvedNode::Include(Box::new(Fragment { stub, ..fragment })));
            }
        }
        Ok(())
    }

    /// The resolved nodes of a block that stands in for a fragment.
    fn stub(
        &mut self,
        block: Option<Arc<[Node]>>,
        env: &dyn Environment,
    ) -> Result<Option<Vec<ResolvedNode>>, Error> {
        // An include within a stub has no stub, so a stub never contains itself.
        let Some(nodes) = block.filter(|_| self.depth == 0) else { return Ok(None) };
        self.depth += 1;
        let mut stub = Vec::new();
        let done = self.all(&nodes, env, &mut stub);
        self.depth -= 1;
        done.map(|()| Some(stub))
    }

    fn all(
        &mut self,
        nodes: &[Node],
        env: &dyn Environment,
        ops: &mut Vec<ResolvedNode>,
    ) -> Result<(), Error> {
        nodes.iter().try_for_each(|node| self.resolve(node, env, ops))
    }

    /// Counts a node. Nodes of an inline fragment count each time it is included.
    fn counted(&mut self, node: &Node) -> Result<(), Error> {
        if self.depth > 0 || !matches!(node, Node::Text(_)) {
            self.count += 1;
        }
        let most = self.limits.nodes.saturating_mul(2);
        if self.count > most { Err(Error::Operations(most)) } else { Ok(()) }
    }

    fn include(
        &mut self,
        include: &Include,
        env: &dyn Environment,
        ops: &mut Vec<ResolvedNode>,
    ) -> Result<(), Error> {
        let fragment = match &include.open {
            None => (*include.fragment).clone(),
            Some(open) => {
                let address = |template| {
                    let pieces = self.expanded(template, env);
                    crate::address::safe(&write_value(pieces, Purpose::Address))
                };
                let (src, alt) = (address(&open.src), open.alt.as_ref().map(address));
                Fragment { src, alt, ..(*include.fragment).clone() }
            }
        };
        let inline = self.inlines.get(&fragment.src[..]).map(Arc::clone);
        match inline {
            Some(nodes) if self.depth < self.limits.nesting && !self.ssi.is_used() => {
                self.depth += 1;
                let done = self.all(&nodes, env, ops);
                self.depth -= 1;
                done
            }
            _ => {
                ops.push(ResolvedNode::Include(Box::new(fragment)));
                Ok(())
            }
        }
    }

    /// The pieces of a text with its variables expanded, up to the limit of a value.
    fn expanded(&self, template: &Template, env: &dyn Environment) -> Vec<ValuePiece> {
        let (mut out, mut left) = (Vec::new(), self.limits.value_bytes);
        for part in &template.0 {
            let pieces = match part {
                TemplatePart::Literal(text) => {
                    vec![ValuePiece { author: Author::Page, text: text.to_vec() }]
                }
                TemplatePart::Variable(variable) => {
                    esi::pieces(variable, &self.values, env).unwrap_or_default()
                }
            };
            for mut piece in pieces {
                piece.text.truncate(left);
                left -= piece.text.len();
                out.push(piece);
            }
        }
        out
    }
}

fn bytes(value: Vec<u8>, ops: &mut Vec<ResolvedNode>) {
    if !value.is_empty() {
        ops.push(ResolvedNode::Bytes(value));
    }
}
